//! Adding jobs and looking at them, with data of a type of the program's. A command fails as that of [`Queue`] of the same name does, or as
//! [`TypedQueue::add`].

use std::{marker::PhantomData, time::Duration};

use chasquimq::{
    system_now_ms, AddBatch, Change, ConnectOptions, Counts, Error, Job, JobOptions, JobRange, Keys, NewJob, Pick,
    Queue, RateLimit, Result, RetryOptions,
};
use serde::{de::DeserializeOwned, Serialize};

use crate::{
    json::{from_json, to_json},
    options::AddOptions,
};

/// A queue of jobs whose data is a `T`. Share one among tasks in an `Arc`: calls made at the same time share a connection.
#[derive(Debug)]
pub struct TypedQueue<T> {
    queue: Queue,
    data: PhantomData<fn(T)>,
}

/// One job of a bulk.
#[derive(Debug, Clone, Copy)]
pub struct BulkJob<'a, T> {
    /// Its name.
    pub name: &'a str,
    /// Its data.
    pub data: &'a T,
    /// Its options. Neighbours with the same options are stored together.
    pub options: &'a AddOptions,
}

/// A job that was looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundJob<T> {
    /// Its data.
    pub data: T,
    /// Everything else about it, and its data as text.
    pub job: Job,
}

impl<T> FoundJob<T> {
    /// What its handler returned; `None` until it completed.
    /// # Errors
    /// [`Error::Malformed`] when the result is no `R`.
    pub fn result<R: DeserializeOwned>(&self) -> Result<Option<R>> {
        let read = |text: &String| from_json(&self.job.id, "result", text);
        self.job.fields.returnvalue.as_ref().map(read).transpose()
    }
}

impl<T> TypedQueue<T> {
    /// Connects to a queue. `server` is a URL (`redis://`, `rediss://` or `unix://`) or [`ConnectOptions`]; `queue` is a name, or
    /// [`Keys`] for a prefix other than `bull`.
    /// # Errors
    /// [`Error::Invalid`] for what is no URL; the cause, when the server cannot be reached, refuses the login or is too old.
    pub async fn connect<C: TryInto<ConnectOptions>>(server: C, queue: impl Into<Keys>) -> Result<Self>
    where
        Error: From<C::Error>,
    {
        // a call that meets a broken connection waits for the next one, so there is nothing to tell
        let queue = Queue::new(server.try_into()?, queue.into(), |_| {});
        queue.ready().await?;
        Ok(Self {
            queue,
            data: PhantomData,
        })
    }

    /// The untyped queue, for everything else that can be done to jobs by their id.
    pub fn untyped(&self) -> &Queue {
        &self.queue
    }

    /// Removes every job that waits, and with `delayed` those that are not due yet. In steps; what is added meanwhile stays.
    pub async fn drain(&self, delayed: bool) -> Result<()> {
        self.queue.drain(system_now_ms(), delayed).await
    }

    /// Removes the jobs of a state that `pick` names, at most `limit`. Answers their ids.
    pub async fn clean(&self, state: &str, pick: &Pick, limit: Option<u64>) -> Result<Vec<String>> {
        let now_ms = system_now_ms();
        let state = if state == "wait" { "waiting" } else { state };
        self.queue.change_all(now_ms, Change::Remove, state, pick, limit).await
    }

    /// Retries failed jobs that `pick` names. Answers how many.
    pub async fn replay_failed(&self, pick: &Pick, limit: Option<u64>) -> Result<u64> {
        self.queue
            .change_all(system_now_ms(), Change::Retry { reset: false }, "failed", pick, limit)
            .await
            .map(|ids| ids.len() as u64)
    }

    /// Numbers of jobs by state.
    pub async fn counts(&self) -> Result<Counts> {
        self.queue.counts().await
    }

    /// A job's state in BullMQ's words; `unknown` when there is no such job.
    pub async fn state(&self, id: &str) -> Result<String> {
        self.queue.state(id).await
    }

    /// Removes a job. False when a worker holds it.
    pub async fn remove(&self, id: &str) -> Result<bool> {
        self.queue.remove(system_now_ms(), id, true).await
    }

    /// Retries a job that failed for good.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::NotInState`].
    pub async fn retry(&self, id: &str) -> Result<()> {
        let retry = RetryOptions::default();
        self.queue.retry(system_now_ms(), id, "failed", retry).await
    }

    /// Stops all workers' fetching. Jobs that run go on.
    pub async fn pause(&self) -> Result<()> {
        self.queue.pause(system_now_ms(), true).await
    }

    /// Ends [`TypedQueue::pause`].
    pub async fn resume(&self) -> Result<()> {
        self.queue.pause(system_now_ms(), false).await
    }

    /// Sets how many jobs may be active at once, over all workers of the queue; `None` = any number.
    pub async fn limit_concurrency(&self, jobs: Option<u32>) -> Result<()> {
        let jobs = jobs.map(|jobs| jobs.to_string());
        self.queue.limit_concurrency(jobs.as_deref()).await.map(drop)
    }

    /// Sets how many jobs may start in a while, over all workers of the queue; `None` = any number. It comes before the number of a
    /// worker's own limiter, whose duration comes before this one.
    pub async fn limit_rate(&self, limit: Option<RateLimit>) -> Result<()> {
        let texts = limit.map(|limit| (limit.max.to_string(), limit.duration.as_millis().to_string()));
        let texts = texts.as_ref().map(|(max, duration)| (max.as_str(), duration.as_str()));
        self.queue.limit_rate(texts).await.map(drop)
    }

    /// Sets how many jobs may wait: waiting, prioritized, delayed, or for their children; `None` = any number. Adds past that are refused
    /// ([`Error::QueueFull`]).
    pub async fn limit_length(&self, jobs: Option<u64>) -> Result<()> {
        self.queue.limit_length(jobs).await.map(drop)
    }

    /// Lets no job start for so long, wherever a rate limit holds; at least a millisecond.
    pub async fn hold(&self, time: Duration) -> Result<()> {
        hold(&self.queue, time).await
    }

    /// Ends the window of the rate limit: the next starts are the first ones of a new window. Workers that wait for it look again.
    pub async fn end_window(&self) -> Result<()> {
        self.queue.hold(None).await.map(drop)
    }

    /// Closes the connection; calls under way end with [`Error::Closed`].
    pub async fn close(&self) {
        self.queue.forget_calls().await;
        self.queue.close();
    }
}

impl<T: Serialize> TypedQueue<T> {
    /// Adds a job, exactly once whatever the connection does. Answers its id.
    /// # Errors
    /// [`Error::Invalid`] for options that [`AddOptions::to_job_options`] refuses and for data without a JSON form; otherwise as
    /// [`Queue::add`].
    pub async fn add(&self, name: &str, data: &T, options: &AddOptions) -> Result<String> {
        let ids = self.add_bulk(&[BulkJob { name, data, options }]).await?;
        ids.into_iter()
            .next()
            .ok_or_else(|| Error::malformed("the answer to add", "no id"))
    }

    /// Adds jobs, in order: all of them, or on error none. Answers their ids.
    pub async fn add_bulk(&self, jobs: &[BulkJob<'_, T>]) -> Result<Vec<String>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let mut texts = Vec::with_capacity(jobs.len());
        let mut options: Vec<JobOptions> = Vec::new();
        let mut options_of = Vec::with_capacity(jobs.len());
        let mut last: Option<&AddOptions> = None;
        for job in jobs {
            texts.push(to_json("data", job.data)?);
            if last != Some(job.options) {
                options.push(job.options.to_job_options()?);
                last = Some(job.options);
            }
            options_of.push(options.len() - 1);
        }
        let new = jobs.iter().enumerate().map(|(i, job)| NewJob {
            name: job.name,
            data: &texts[i],
            options: &options[options_of[i]],
        });
        let added = self.queue.add(AddBatch::pack(system_now_ms(), new)).await?;
        Ok((0..jobs.len()).map(|at| added.id(at)).collect())
    }
}

impl<T: DeserializeOwned> TypedQueue<T> {
    /// Looks a job up.
    /// # Errors
    /// [`Error::Malformed`] when its data is no `T`; otherwise as [`Queue::job`].
    pub async fn job(&self, id: &str) -> Result<Option<FoundJob<T>>> {
        self.queue.job(id).await?.map(found).transpose()
    }

    /// Looks up jobs by state and rank.
    /// # Errors
    /// As [`TypedQueue::job`], for any of them.
    pub async fn jobs(&self, range: &JobRange) -> Result<Vec<FoundJob<T>>> {
        self.queue.jobs(range).await?.into_iter().map(found).collect()
    }
}

/// As [`TypedQueue::hold`].
pub(crate) async fn hold(queue: &Queue, time: Duration) -> Result<()> {
    queue.hold(Some(time.as_millis().max(1) as u64)).await.map(drop)
}

fn found<T: DeserializeOwned>(job: Job) -> Result<FoundJob<T>> {
    Ok(FoundJob {
        data: from_json(&job.id, "data", &job.body.data)?,
        job,
    })
}
