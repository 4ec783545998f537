//! What a queue tells JavaScript, and the answers to its adds.

use chasquimq::Added;
use napi::bindgen_prelude::FnArgs;
use napi_derive::napi;

use crate::error::NativeError;

/// A call's number, as JavaScript counts them: a thread may make more than 2^32.
pub type Request = f64;

/// Request number and first id.
pub type OneAdded = FnArgs<(Request, f64)>;

/// What a queue tells.
#[napi(object)]
#[derive(Default)]
pub struct QueueMessage {
    /// Answers to `add`.
    pub added: Option<Vec<NativeAdded>>,
    /// Connecting failed.
    pub error: Option<NativeError>,
    /// It is not open any more, or still not.
    pub closed: Option<bool>,
    /// A server that runs full deletes jobs, by this policy.
    pub eviction: Option<String>,
    /// The server has somebody else's library under this name, which is ours.
    pub foreign_library: Option<String>,
}

/// Answer to one `add`.
#[napi(object)]
pub struct NativeAdded {
    /// The request's number.
    pub request: f64,
    /// Job `i` has the id `first + i`...
    pub first: f64,
    /// ...except these.
    pub exceptions: Option<Vec<NativeAddedException>>,
    /// Nothing was added.
    pub error: Option<NativeError>,
}

/// A job of a batch with an id of its own, or an error.
#[napi(object)]
pub struct NativeAddedException {
    /// Index in the batch.
    pub index: u32,
    /// Its id.
    pub id: Option<String>,
    /// Why it was not added.
    pub error: Option<NativeError>,
}

/// Answers to adds, with the numbers of their requests.
pub fn to_added_message(answers: Vec<(Request, chasquimq::Result<Added>)>) -> QueueMessage {
    let added = answers.into_iter().map(|(request, added)| to_added(request, added));
    QueueMessage {
        added: Some(added.collect()),
        ..QueueMessage::default()
    }
}

fn to_added(request: Request, added: chasquimq::Result<Added>) -> NativeAdded {
    match added {
        Ok(added) => NativeAdded {
            request,
            first: added.first as f64,
            exceptions: (!added.exceptions.is_empty()).then(|| {
                let exceptions = added.exceptions.into_iter();
                exceptions
                    .map(|(index, id)| NativeAddedException {
                        index: index as u32,
                        id: Some(id),
                        error: None,
                    })
                    .collect()
            }),
            error: None,
        },
        Err(error) => NativeAdded {
            request,
            first: 0.0,
            exceptions: None,
            error: Some(NativeError::from(&error)),
        },
    }
}
