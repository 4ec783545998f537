//! How jobs ended, as JavaScript tells it.

use std::sync::Arc;

use chasquimq::{
    worker::{Completed, Ended, Outcome, Report},
    JobOptions,
};
use napi::bindgen_prelude::Float64Array;
use napi_derive::napi;

use crate::text::{LongText, Pieces};

/// An outcome other than completed and failed.
#[napi(object)]
pub struct NativeOutcome {
    /// The job.
    pub handle: u32,
    /// How it ended.
    #[napi(ts_type = "'moved' | 'returned' | 'rateLimited'")]
    pub kind: String,
}

/// Jobs that did not complete.
#[napi(object)]
pub struct NativeOthers {
    /// Tries that failed. Five numbers a job: handle, text of the reason (-1 = none), text of the stack traces, 1 = no further tries, pause by a strategy
    /// of the user's in ms (NaN = none).
    pub layout: Float64Array,
    /// Reasons, and JSON arrays of stack traces.
    pub texts: Vec<String>,
    /// What ended in any other way.
    pub outcomes: Option<Vec<NativeOutcome>>,
    /// Options that processors have changed, of jobs of this call.
    pub changed: Option<Vec<NativeChanged>>,
}

/// Options with which a job ends, and not with those it was added with.
#[napi(object)]
pub struct NativeChanged {
    /// The job.
    pub handle: u32,
    /// JSON text.
    pub opts: String,
}

/// Jobs that ended, as one report. Of those in `handles` each has a result of so many units in `text`; below 0: none.
pub fn to_report(
    report: f64,
    now_ms: u64,
    (handles, lengths): (&[u32], &[i32]),
    text: LongText,
    mut others: Option<NativeOthers>,
) -> Report {
    let mut pieces = Pieces::new(&text);
    let mut at = 0;
    let completed = handles.iter().zip(lengths.iter()).map(|(handle, units)| {
        let result = (*units >= 0).then(|| {
            let from = at;
            at += pieces.next(*units as usize).len() as u32;
            (from, at)
        });
        Completed {
            handle: *handle,
            result,
        }
    });
    let completed = completed.collect();
    let changed = others
        .as_mut()
        .and_then(|others| others.changed.take())
        .unwrap_or_default();
    Report {
        number: report as u64,
        now_ms,
        completed,
        text: Arc::new(text.joined()),
        others: others.map(to_others).unwrap_or_default(),
        // JSON of these options can be read whatever their types
        changed: changed
            .into_iter()
            .filter_map(|job| Some((job.handle, Arc::new(JobOptions::parse(&job.opts).ok()?))))
            .collect(),
    }
}

fn to_ended(ended: NativeOutcome) -> Ended {
    Ended {
        handle: ended.handle,
        outcome: match ended.kind.as_str() {
            "returned" => Outcome::Returned,
            "rateLimited" => Outcome::RateLimited,
            _ => Outcome::Moved,
        },
    }
}

fn to_others(others: NativeOthers) -> Vec<Ended> {
    let texts: Vec<Arc<str>> = others.texts.into_iter().map(Arc::from).collect();
    let text = |index: f64| texts.get(index as usize).filter(|_| index >= 0.0).cloned();
    let ended = |job: &[f64]| Ended {
        handle: job[0] as u32,
        outcome: Outcome::Failed {
            reason: text(job[1]),
            stacktrace: text(job[2]),
            unrecoverable: job[3] == 1.0,
            delay_ms: (!job[4].is_nan()).then_some(job[4]),
        },
    };
    let failed = others.layout.chunks_exact(5).map(ended);
    failed
        .chain(others.outcomes.into_iter().flatten().map(to_ended))
        .collect()
}
