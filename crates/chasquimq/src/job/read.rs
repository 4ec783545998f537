//! A job, whole, as scripts give it, or as it lies in a frame.

use super::{
    apart::ApartPlace,
    frame::{body_in_frame, Frame},
    options::JobOptions,
    record::Body,
    state_fields::StateFields,
};
use crate::{error::Result, redis::call::reply::Reply};

/// A job, whole, as a look-up gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Id.
    pub id: String,
    /// State, in BullMQ's words.
    pub state: String,
    /// What was known when it was added.
    pub body: Body,
    /// What happened since.
    pub fields: StateFields,
    /// Milliseconds of delay, while it is delayed, or is a parent that will be; else 0.
    pub delay_ms: u64,
    /// Its priority; 0 = none.
    pub priority: i64,
    /// Where its body is to be read, which was not.
    pub(crate) apart: Option<ApartPlace>,
}

/// Reads a job; `None` when it was gone before it was read. One that cannot be read has no name and no data, and says why.
pub(crate) fn read_job(reply: &mut Reply) -> Result<Option<Job>> {
    let (id, state, body) = (reply.text()?, reply.text()?, reply.bytes()?);
    let fields = reply.bytes()?;
    let mut fields = StateFields::parse(&fields).unwrap_or_else(|error| StateFields::of_unreadable(&error));
    fields.stacktrace = Some(reply.text()?).filter(|traces| !traces.is_empty());
    if body.is_empty() {
        return Ok(None);
    }
    let apart = ApartPlace::parse(&body);
    if apart.is_some() {
        let job = Job::of_parts(id, state, Body::unreadable(), &JobOptions::none("{}"), fields);
        return Ok(Some(Job { apart, ..job }));
    }
    Ok(Some(Job::of_stored(id, state, &body, fields)))
}

/// A waiting job of a frame of plain jobs; `None` when it cannot be read there.
pub(crate) fn read_waiting(id: &str, frame: &[u8], offset: usize) -> Option<Job> {
    if Frame::parse(frame).ok()?.header.is_some() {
        return None;
    }
    let (body, options) = read_body(&body_in_frame(frame, offset)).ok()?;
    Some(Job::of_parts(
        id.to_owned(),
        "waiting".to_owned(),
        body,
        &options,
        StateFields::default(),
    ))
}

impl Job {
    fn of_stored(id: String, state: String, body: &[u8], mut fields: StateFields) -> Self {
        let (body, options) = read_body(body).unwrap_or_else(|error| {
            fields.deferred_failure.get_or_insert_with(|| error.reason_to_fail());
            (Body::unreadable(), JobOptions::none("{}"))
        });
        Self::of_parts(id, state, body, &options, fields)
    }

    /// The same with the body that was to be read.
    pub(super) fn with_body(self, body: &[u8]) -> Self {
        Self::of_stored(self.id, self.state, body, self.fields)
    }

    /// The same when its data are not there, which it is to fail for.
    pub(super) fn without_data(mut self, reason: String) -> Self {
        self.apart = None;
        self.body.data = Body::unreadable().data;
        self.fields.deferred_failure.get_or_insert(reason);
        self
    }

    fn of_parts(id: String, state: String, body: Body, options: &JobOptions, fields: StateFields) -> Self {
        let delay_ms = match (state.as_str(), fields.delay_ms) {
            ("delayed", Some(delay_ms)) | ("waiting-children", Some(delay_ms)) => delay_ms,
            ("delayed", None) => options.delay_ms,
            _ => 0,
        };
        let priority = fields.priority.unwrap_or(options.priority);
        Self {
            id,
            state,
            body,
            fields,
            delay_ms,
            priority,
            apart: None,
        }
    }
}

fn read_body(blob: &[u8]) -> Result<(Body, JobOptions)> {
    let body = Body::parse(blob)?;
    let options = JobOptions::of_stored(&body.options)?;
    Ok((body, options))
}
