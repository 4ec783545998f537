//! A job as JavaScript reads it.

use chasquimq::{scheduler_of, Job, StateFields};
use napi_derive::napi;

/// Everything about one job; JSON texts where BullMQ has values.
#[napi(object)]
pub struct NativeJob {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Data, JSON text.
    pub data: String,
    /// Options, JSON text.
    pub opts: String,
    /// Creation time, epoch ms.
    pub timestamp: f64,
    /// Last activation, epoch ms.
    pub processed_on: Option<f64>,
    /// What else is known of it.
    pub extra: NativeJobExtra,
}

/// What is known of a job besides what it was added with; of one that becomes active, what differs from a job that starts for the first time.
#[napi(object)]
pub struct NativeJobExtra {
    /// Id.
    pub id: Option<String>,
    /// JSON text.
    pub progress: Option<String>,
    /// JSON text.
    pub returnvalue: Option<String>,
    /// JSON array of texts.
    pub stacktrace: Option<String>,
    /// Message of the last error.
    pub failed_reason: Option<String>,
    /// Reason to fail it when a worker has it.
    pub deferred_failure: Option<String>,
    /// Current delay, ms.
    pub delay: Option<f64>,
    /// Priority; 0 = none.
    pub priority: Option<f64>,
    /// Times it became active.
    pub attempts_started: Option<u32>,
    /// Tries that ended.
    pub attempts_made: Option<u32>,
    /// Times it stalled.
    pub stalled_counter: Option<u32>,
    /// Last finish, epoch ms.
    pub finished_on: Option<f64>,
    /// Name of the worker that had it before.
    pub processed_by: Option<String>,
    /// Key of its parent.
    pub parent_key: Option<String>,
    /// Its parent, JSON text.
    pub parent: Option<String>,
    /// Deduplication id.
    pub deduplication_id: Option<String>,
    /// Scheduler id.
    pub repeat_job_key: Option<String>,
    /// From when on it could start, epoch ms, where a worker that takes it measures latency.
    pub ready_on: Option<f64>,
}

impl NativeJobExtra {
    /// `parent`: its key, and the reference to it as JSON text.
    pub fn of(fields: StateFields, parent: Option<(String, String)>) -> Self {
        let (parent_key, parent) = parent.unzip();
        Self {
            id: None,
            progress: fields.progress,
            returnvalue: fields.returnvalue,
            stacktrace: fields.stacktrace,
            failed_reason: fields.failed_reason,
            deferred_failure: fields.deferred_failure,
            delay: None,
            priority: fields.priority.map(|priority| priority as f64),
            attempts_started: Some(fields.attempts_started),
            attempts_made: Some(fields.attempts_made),
            stalled_counter: Some(fields.stalled_counter),
            finished_on: fields.finished_on.map(|ms| ms as f64),
            processed_by: fields.processed_by,
            parent_key,
            parent,
            deduplication_id: fields.deduplication_id,
            repeat_job_key: None,
            ready_on: None,
        }
    }
}

impl From<Job> for NativeJob {
    fn from(job: Job) -> Self {
        let repeat_job_key = scheduler_of(&job.id, &job.body.options).map(str::to_owned);
        let mut fields = job.fields;
        let parent = fields.parent.take().map(|parent| (parent.key(), parent.to_json()));
        Self {
            id: job.id,
            name: job.body.name,
            data: job.body.data,
            opts: job.body.options,
            timestamp: job.body.timestamp as f64,
            processed_on: fields.processed_on.map(|ms| ms as f64),
            extra: NativeJobExtra {
                delay: Some(job.delay_ms as f64),
                priority: Some(job.priority as f64),
                repeat_job_key,
                ..NativeJobExtra::of(fields, parent)
            },
        }
    }
}

/// The same of many.
pub fn to_jobs(jobs: Vec<Job>) -> Vec<NativeJob> {
    jobs.into_iter().map(NativeJob::from).collect()
}
