//! A job as its handler sees it.

use std::{ops::Range, sync::Arc, time::Duration};

use chasquimq::{frame::child_id, system_now_ms, worker::Batch, JobOptions, Queue, Result, StateFields};
use serde::{de::DeserializeOwned, Serialize};

use crate::{
    json::to_json,
    outcome::JobError,
    stop::{Stop, Stops, TimeLimit},
};

/// A job that is being run.
#[derive(Debug)]
pub struct TypedJob<T> {
    /// Id, unique in the queue.
    pub id: String,
    /// Name.
    pub name: String,
    /// Data.
    pub data: T,
    /// The options it was added with.
    pub options: Arc<JobOptions>,
    /// Creation time, epoch ms.
    pub timestamp: u64,
    /// When this try started, epoch ms.
    pub processed_on: u64,
    /// What happened in earlier tries: `attempts_made` tries ended, this is start number `attempts_started`.
    pub fields: StateFields,
    queue: Arc<Queue>,
    handle: u32,
    stops: Arc<Stops>,
}

impl<T> TypedJob<T> {
    /// Stores how far the job is, for look-ups, and tells it as a `progress` event. Source: BullMQ `job.updateProgress`.
    /// # Errors
    /// [`crate::Error::Invalid`] when the progress has no JSON form; [`crate::Error::JobMissing`] when the job was removed.
    pub async fn update_progress(&self, progress: &impl Serialize) -> Result<()> {
        let progress = to_json("progress", progress)?;
        self.queue.update_progress(system_now_ms(), &self.id, &progress).await
    }

    /// Adds a row to the job's log. Answers the number of rows. Source: BullMQ `job.log`.
    /// # Errors
    /// [`crate::Error::JobMissing`] when the job was removed.
    pub async fn log(&self, row: &str) -> Result<u64> {
        self.queue.log(&self.id, row, 0).await
    }

    /// Waits until the handler is to end, as somebody has cancelled the job, or the job's `timeout` is over, and tells why. A handler is never dropped for it: one
    /// that does not ask runs on.
    /// ```
    /// # use chasquimq_typed::{JobError, TypedJob};
    /// # async fn download(url: &str) -> String { url.to_owned() }
    /// async fn fetch(job: TypedJob<String>) -> Result<String, JobError> {
    ///     tokio::select! {
    ///         page = download(&job.data) => Ok(page),
    ///         stop = job.cancelled() => Err(stop.into()),
    ///     }
    /// }
    /// ```
    pub async fn cancelled(&self) -> Stop {
        self.stops.wait(self.handle).await
    }

    /// Whether [`TypedJob::cancelled`] has come: for handlers that compute.
    pub fn is_cancelled(&self) -> bool {
        self.stops.of(self.handle).is_some()
    }
}

/// One job of a batch, before its data was read.
#[derive(Debug, Clone)]
pub(crate) struct Delivered {
    /// The engine's name for it.
    pub(crate) handle: u32,
    batch: Arc<Batch>,
    at: usize,
    name: Range<usize>,
    data: Range<usize>,
}

impl Delivered {
    /// The offer of its batch, of which it is the next job.
    pub(crate) fn offer(&self) -> u32 {
        self.batch.offer
    }

    /// The jobs of a batch, in order.
    pub(crate) fn each(batch: Batch) -> impl Iterator<Item = Self> {
        let batch = Arc::new(batch);
        let (mut name, mut end) = (0..0, 0);
        (0..batch.jobs.len()).map(move |at| {
            let job = &batch.jobs[at];
            if let Some(len) = job.name_len {
                name = end..end + len as usize;
                end = name.end;
            }
            let data = end..end + job.data_len as usize;
            end = data.end;
            Self {
                handle: batch.base.wrapping_add(at as u32),
                batch: batch.clone(),
                at,
                name: name.clone(),
                data,
            }
        })
    }

    /// Its id.
    pub(crate) fn id(&self) -> String {
        let job = &self.batch.jobs[self.at];
        match (job.extra, job.siblings) {
            (Some(extra), _) => self.batch.extras[extra as usize].id.clone(),
            (None, Some(siblings)) => child_id(&self.batch.siblings[siblings as usize].ids, job.number),
            (None, None) => job.number.to_string(),
        }
    }

    /// By which taking the worker holds it.
    pub(crate) fn claim(&self) -> u64 {
        self.batch.claim
    }

    /// What happened to the job so far; `None`: this is its first start.
    pub(crate) fn fields(&self) -> Option<&StateFields> {
        let job = &self.batch.jobs[self.at];
        match (job.extra, job.siblings) {
            (Some(extra), _) => Some(&self.batch.extras[extra as usize].fields),
            (None, Some(siblings)) => Some(&self.batch.siblings[siblings as usize].fields),
            (None, None) => None,
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.batch.text[self.name.clone()]
    }

    /// How long a try may take, if its options say so. Others may have stored them, who mean something else.
    pub(crate) fn time_limit(&self) -> Option<TimeLimit> {
        let text = &self.options().text;
        if !text.contains("\"timeout\"") {
            return None;
        }
        let options: serde_json::Value = serde_json::from_str(text).ok()?;
        let ms = options["timeout"].as_f64().filter(|ms| *ms > 0.0)?;
        Some(TimeLimit {
            time: Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX),
            is_final: options["timeoutIsFinal"] == true,
        })
    }

    /// The options it was added with.
    pub(crate) fn options(&self) -> &Arc<JobOptions> {
        &self.batch.options[self.batch.jobs[self.at].options as usize]
    }

    /// The handler's view of the job. Data of another type fails it for good: no further try would read it better.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        queue: Arc<Queue>,
        stops: Arc<Stops>,
    ) -> std::result::Result<TypedJob<T>, JobError> {
        let data = serde_json::from_str(&self.batch.text[self.data.clone()])
            .map_err(|error| JobError::unrecoverable(format!("the data is not readable: {error}")))?;
        Ok(TypedJob {
            name: self.name().to_owned(),
            data,
            options: self.options().clone(),
            timestamp: self.batch.jobs[self.at].timestamp,
            processed_on: self.batch.processed_on,
            fields: self.fields().cloned().unwrap_or_else(StateFields::first_start),
            id: self.id(),
            queue,
            handle: self.handle,
            stops,
        })
    }
}

#[cfg(test)]
mod tests {
    use chasquimq::worker::{BatchJob, Extra};

    use super::*;

    fn job(number: u64, name_len: Option<u32>, data_len: u32, extra: Option<u32>) -> BatchJob {
        BatchJob {
            number,
            name_len,
            data_len,
            options: 0,
            timestamp: 7,
            extra,
            siblings: None,
        }
    }

    #[test]
    fn a_batch_is_taken_apart_into_jobs() {
        let extra = Extra {
            id: "mine".into(),
            fields: StateFields {
                attempts_made: 2,
                ..StateFields::default()
            },
            ready_ms: None,
        };
        let batch = Batch {
            base: u32::MAX,
            text: r#"mail"a""b"call"c""#.into(),
            jobs: vec![
                job(1, Some(4), 3, None),
                job(2, None, 3, None),
                job(0, Some(4), 3, Some(0)),
            ],
            options: vec![Arc::new(JobOptions::none("{}"))],
            extras: vec![extra],
            ..Batch::default()
        };
        let jobs: Vec<Delivered> = Delivered::each(batch).collect();
        let seen: Vec<(u32, String, &str, &str)> = jobs
            .iter()
            .map(|job| {
                let text = &job.batch.text;
                (job.handle, job.id(), &text[job.name.clone()], &text[job.data.clone()])
            })
            .collect();
        let expected = [
            (u32::MAX, "1".into(), "mail", r#""a""#),
            (0, "2".into(), "mail", r#""b""#),
            (1, "mine".into(), "call", r#""c""#),
        ];
        assert_eq!(seen, expected);
        assert_eq!(jobs[2].fields().map(|fields| fields.attempts_made), Some(2));
        assert!(jobs[0].fields().is_none());
    }
}
