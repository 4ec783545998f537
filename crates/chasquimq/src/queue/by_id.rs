//! One job by its id: looking at it, and changing it.

use redis::Value;

use super::{read_code, Queue};
use crate::{
    clock::{due_ms, LONGEST_MS},
    error::{Error, Result},
    events::find_ending,
    job::{frame::MAX_BYTES, large::Large, whole::read_all, Job, StateFields},
    redis::call::{
        library::{
            args, CHANGE_PRIORITY, JOB_STATE, MOVE_ACTIVE, MOVE_DELAYED, REMOVE_DEDUP_KEY, RETRY_JOB, UPDATE_JOB,
        },
        reply::Reply,
    },
};

/// How a finished job is retried.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetryOptions {
    /// At the head.
    pub front: bool,
    /// Its tries are counted from 0 again.
    pub reset_attempts_made: bool,
    /// Its starts are counted from 0 again.
    pub reset_attempts_started: bool,
}

impl Queue {
    /// One job, or `None`.
    /// # Errors
    /// [`Error::Malformed`] when what is stored is not a job.
    pub async fn job(&self, id: &str) -> Result<Option<Job>> {
        match self.waiting.find(self.connection(), self.keys(), id).await {
            Some(job) => Ok(Some(job)),
            None => self.read_job(id).await,
        }
    }

    /// The same for who knows that plain reads do not do.
    /// # Errors
    /// As [`Queue::job`].
    pub async fn read_job(&self, id: &str) -> Result<Option<Job>> {
        Ok(read_all(self.connection(), self.keys(), &[id]).await?.pop())
    }

    /// Jobs by their ids, without those that are not there.
    /// # Errors
    /// As [`Queue::job`].
    pub async fn jobs_by_id(&self, ids: &[String]) -> Result<Vec<Job>> {
        read_all(self.connection(), self.keys(), ids).await
    }

    /// A job's state; `unknown` if there is no such job.
    pub async fn state(&self, id: &str) -> Result<String> {
        // by the function at once: behind plain reads that do not do, calls made since would be seen
        self.read_state(id).await?.text()
    }

    async fn read_state(&self, id: &str) -> Result<Reply> {
        self.ask(&JOB_STATE, &args![id]).await
    }

    /// As [`Queue::state`], and the job's return value (JSON text) or the reason it failed. Of a job that was removed as it ended, this is
    /// what the newest events tell.
    pub async fn outcome(&self, id: &str) -> Result<(String, String)> {
        let mut reply = self.read_state(id).await?;
        let (state, mut ended) = (reply.text()?, reply.text()?);
        if !reply.is_empty() {
            let fields = StateFields {
                large_result: Some(0),
                ..StateFields::default()
            };
            let large = Large::read(self.connection(), self.keys(), id, &fields).await?;
            ended = large.result.unwrap_or(ended);
        }
        if state == "unknown" {
            return Ok(find_ending(self.connection(), self.keys(), id)
                .await?
                .unwrap_or((state, ended)));
        }
        Ok((state, ended))
    }

    /// Replaces a job's data (JSON text).
    /// # Errors
    /// [`Error::JobMissing`].
    pub async fn update_data(&self, now_ms: u64, id: &str, data: &str) -> Result<()> {
        let what = if data.len() > MAX_BYTES { "large" } else { "data" };
        self.update(now_ms, id, what, data, "updateData").await
    }

    /// Replaces a job's progress (JSON text), and tells it as an event.
    /// # Errors
    /// [`Error::JobMissing`].
    pub async fn update_progress(&self, now_ms: u64, id: &str, progress: &str) -> Result<()> {
        self.update(now_ms, id, "progress", progress, "updateProgress").await
    }

    async fn update(&self, now_ms: u64, id: &str, what: &str, value: &str, command: &'static str) -> Result<()> {
        let reply = self.run_once(&UPDATE_JOB, now_ms, &args![id, what, value]).await?;
        read_code(&UPDATE_JOB, &reply, id, "", command).map(drop)
    }

    /// Id of the job that owns a deduplication id.
    pub async fn deduplication_owner(&self, dedup_id: &str) -> Result<Option<String>> {
        let key = self.keys().key(&format!("de:{dedup_id}"));
        let owner = self.connection().send(redis::cmd("GET").arg(key)).await?;
        Reply::new("the answer to GET", Value::Array(vec![owner]))?.opt_text()
    }

    /// Frees a deduplication id: whoever owns it, or only if the job `owner` does. False when it was free, or another's. What was kept
    /// to be added after the owner still is.
    pub async fn free_deduplication(&self, dedup_id: &str, owner: Option<&str>) -> Result<bool> {
        let args = args![dedup_id, owner.unwrap_or("")];
        Ok(self.int_once(&REMOVE_DEDUP_KEY, None::<u64>, &args).await? == 1)
    }

    /// Retries a finished job. `state` is the one it must be in.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::NotInState`].
    pub async fn retry(&self, now_ms: u64, id: &str, state: &str, retry: RetryOptions) -> Result<()> {
        let args = args![
            id,
            state,
            retry.front,
            retry.reset_attempts_made,
            retry.reset_attempts_started
        ];
        let reply = self.run_once(&RETRY_JOB, now_ms, &args).await?;
        read_code(&RETRY_JOB, &reply, id, state, "reprocessJob").map(drop)
    }

    /// Makes a delayed job wait at once.
    /// # Errors
    /// [`Error::NotInState`], also when there is no such job.
    pub async fn promote(&self, now_ms: u64, id: &str) -> Result<()> {
        match self.move_delayed(now_ms, id, 0, "promote").await {
            Err(Error::JobMissing { job, command }) => Err(Error::NotInState {
                job,
                state: "delayed".into(),
                command,
            }),
            done => done,
        }
    }

    async fn move_delayed(&self, now_ms: u64, id: &str, due_ms: u64, command: &'static str) -> Result<()> {
        let reply = self.run_once(&MOVE_DELAYED, now_ms, &args![id, due_ms]).await?;
        read_code(&MOVE_DELAYED, &reply, id, "delayed", command).map(drop)
    }

    /// Changes when a delayed job is due: `delay_ms` from now.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::NotInState`].
    pub async fn change_delay(&self, now_ms: u64, id: &str, delay_ms: u64) -> Result<()> {
        self.move_delayed(now_ms, id, due_ms(now_ms, delay_ms), "changeDelay")
            .await
    }

    /// Gives a job another priority (0 = none). A waiting job goes behind those of its new priority, or before them with `lifo`.
    /// # Errors
    /// [`Error::JobMissing`].
    pub async fn change_priority(&self, id: &str, priority: i64, lifo: bool) -> Result<()> {
        let reply = self
            .run_once(&CHANGE_PRIORITY, None::<u64>, &args![id, priority, lifo])
            .await?;
        read_code(&CHANGE_PRIORITY, &reply, id, "", "changePriority").map(drop)
    }

    /// Moves an active job to delayed until `due_ms`. The token `0` moves anybody's.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::LockMissing`], [`Error::NotInState`], [`Error::LockMismatch`].
    pub async fn move_to_delayed(&self, now_ms: u64, id: &str, due_ms: u64, token: &str) -> Result<()> {
        self.move_active(now_ms, id, due_ms.clamp(1, 2 * LONGEST_MS), token, "moveToDelayed")
            .await
            .map(drop)
    }

    /// Moves an active job to the head of the waiting list. Answers how long the window of the rate limit still lasts, ms.
    pub async fn move_to_wait(&self, now_ms: u64, id: &str, token: &str) -> Result<u64> {
        self.move_active(now_ms, id, 0, token, "moveJobFromActiveToWait").await
    }

    async fn move_active(&self, now_ms: u64, id: &str, due_ms: u64, token: &str, command: &'static str) -> Result<u64> {
        let reply = self.run_once(&MOVE_ACTIVE, now_ms, &args![id, token, due_ms]).await?;
        read_code(&MOVE_ACTIVE, &reply, id, "active", command).map(|ms| ms as u64)
    }
}
