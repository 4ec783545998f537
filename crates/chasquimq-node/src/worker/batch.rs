//! Jobs that became active together, as JavaScript reads them: in a few long texts and arrays, because each value costs.

use std::sync::Arc;

use chasquimq::{
    scheduler_of,
    worker::{Batch, BatchJob, Siblings},
    JobOptions,
};
use napi::bindgen_prelude::Float64Array;
use napi_derive::napi;

use crate::{
    queue::job::NativeJobExtra,
    text::{units_of, LongTextForJs},
};

/// Bytes of jobs that lie in one text at most, unless a single job has more. V8 asks the system for the memory of each string from
/// 128 KiB on, and the faults of its pages cost more than the copying; and a job that is kept keeps no more than this of the others.
const LONGEST_TEXT: usize = 64 << 10;

/// Jobs that became active together.
#[napi(object, object_from_js = false)]
pub struct NativeBatch {
    /// Handle of the first.
    pub base: u32,
    /// Number of jobs.
    pub count: u32,
    /// When they became active.
    pub processed_on: f64,
    /// The taking that made them active, of which their tokens tell.
    pub claim: f64,
    /// The offer by which they are drawn (`src/worker/drawing.ts`).
    pub offer: u32,
    /// Names and data, back to back; where all are long together in several texts, of whole jobs each.
    #[napi(ts_type = "string | Array<string>")]
    pub text: LongTextForJs,
    /// Six numbers a job: id (NaN: its extra has it), name units, data units, options, timestamp, extra (-1: none; -2, -3...: the
    /// first, second... of the siblings).
    pub layout: Float64Array,
    /// Option texts.
    pub opts: Vec<String>,
    /// Jobs with a record.
    pub extras: Vec<NativeJobExtra>,
    /// Children in frames, by their parents.
    pub siblings: Vec<NativeSiblings>,
}

/// Children of one parent in a frame.
#[napi(object)]
pub struct NativeSiblings {
    /// What their ids begin with; the number of each follows, in twelve hexadecimal digits.
    pub ids: String,
    /// Key of their parent.
    pub parent_key: String,
    /// Their parent, JSON text.
    pub parent: String,
}

/// A batch as JavaScript reads it.
pub fn to_batch(batch: Batch) -> NativeBatch {
    let ascii = batch.text.is_ascii();
    let mut layout = Vec::with_capacity(batch.jobs.len() * 6);
    let mut at = 0;
    let mut units = |bytes: u32| {
        let piece = &batch.text[at..at + bytes as usize];
        at += bytes as usize;
        (if ascii { piece.len() } else { units_of(piece) }) as f64
    };
    for job in &batch.jobs {
        layout.push(if job.number == 0 { f64::NAN } else { job.number as f64 });
        layout.push(job.name_len.map_or(-1.0, &mut units));
        layout.push(units(job.data_len));
        layout.push(f64::from(job.options));
        layout.push(job.timestamp as f64);
        layout.push(match (job.extra, job.siblings) {
            (Some(extra), _) => f64::from(extra),
            (None, Some(siblings)) => -2.0 - f64::from(siblings),
            (None, None) => -1.0,
        });
    }
    let cuts = cuts_of(&batch);
    NativeBatch {
        base: batch.base,
        count: batch.jobs.len() as u32,
        processed_on: batch.processed_on as f64,
        claim: batch.claim as f64,
        offer: batch.offer,
        layout: Float64Array::new(layout),
        opts: batch.options.iter().map(|options| options.text.clone()).collect(),
        extras: to_extras(batch.extras, &batch.jobs, &batch.options),
        siblings: batch.siblings.into_iter().filter_map(to_siblings).collect(),
        text: LongTextForJs::new(batch.text, ascii, cuts),
    }
}

/// Where to cut the text, behind a job each, so that none grows too long.
fn cuts_of(batch: &Batch) -> Vec<usize> {
    let (mut cuts, mut from, mut at) = (Vec::new(), 0, 0);
    if batch.text.len() <= LONGEST_TEXT {
        return cuts;
    }
    for job in &batch.jobs {
        let end = at + (job.name_len.unwrap_or(0) + job.data_len) as usize;
        if at > from && end - from > LONGEST_TEXT {
            cuts.push(at);
            from = at;
        }
        at = end;
    }
    cuts
}

fn to_siblings(siblings: Siblings) -> Option<NativeSiblings> {
    let parent = siblings.fields.parent?;
    Some(NativeSiblings {
        ids: siblings.ids.to_string(),
        parent_key: parent.key(),
        parent: parent.to_json(),
    })
}

fn to_extras(
    extras: Vec<chasquimq::worker::Extra>,
    jobs: &[BatchJob],
    options: &[Arc<JobOptions>],
) -> Vec<NativeJobExtra> {
    let with_extra = jobs.iter().filter(|job| job.extra.is_some());
    let mut parents = Parents::default();
    extras
        .into_iter()
        .zip(with_extra)
        .map(|(extra, job)| {
            let repeat_job_key = scheduler_of(&extra.id, &options[job.options as usize].text).map(str::to_owned);
            NativeJobExtra {
                repeat_job_key,
                ..to_extra(extra, job.number > 0, &mut parents)
            }
        })
        .collect()
}

/// Siblings mostly come one behind the other: the texts of their parent are made once.
#[derive(Default)]
struct Parents {
    last: Option<(chasquimq::Parent, String, String)>,
}

impl Parents {
    /// Its key, and the reference to it as JSON text.
    fn texts_of(&mut self, parent: chasquimq::Parent) -> (String, String) {
        match &self.last {
            Some((last, key, json)) if *last == parent => (key.clone(), json.clone()),
            _ => {
                let (key, json) = (parent.key(), parent.to_json());
                self.last = Some((parent, key.clone(), json.clone()));
                (key, json)
            }
        }
    }
}

/// What differs from a job that starts for the first time.
fn to_extra(extra: chasquimq::worker::Extra, is_numbered: bool, parents: &mut Parents) -> NativeJobExtra {
    let mut fields = extra.fields;
    let parent = fields.parent.take().map(|parent| parents.texts_of(parent));
    let known = NativeJobExtra::of(fields, parent);
    NativeJobExtra {
        id: (!is_numbered).then_some(extra.id),
        ready_on: extra.ready_ms.map(|ms| ms as f64),
        priority: known.priority.filter(|priority| *priority != 0.0),
        attempts_started: known.attempts_started.filter(|starts| *starts != 1),
        attempts_made: known.attempts_made.filter(|tries| *tries != 0),
        stalled_counter: known.stalled_counter.filter(|times| *times != 0),
        ..known
    }
}
