//! `NativeQueue`: a queue's adds and its commands by id.

pub mod adds;
pub mod children;
pub mod flows;
pub mod manual;
pub mod schedulers;

use std::{
    future::Future,
    sync::{Arc, Mutex},
};

use chasquimq::{options::millis, scheduler_of, Error, Job, JobRange, Keys, Parent, Pick, Queue, RetryOptions};
use napi::{
    bindgen_prelude::{Function, Object, Uint32Array},
    Env, Result,
};
use napi_derive::napi;

use crate::{
    connection::NativeConnection,
    error::NativeError,
    queue::adds::{Adds, OneAdded, ToJs},
    runtime::{Fields, Output, Runtime},
};

/// What a queue is made from.
#[napi(object)]
pub struct NativeQueueOptions {
    /// Queue name.
    pub name: String,
    /// Key prefix.
    pub prefix: String,
    /// Server.
    pub connection: NativeConnection,
    /// Accept any server version.
    pub skip_version_check: Option<bool>,
}

/// What a queue tells.
#[napi(object)]
#[derive(Default)]
pub struct QueueMessage {
    /// Answers to `add`.
    pub added: Option<Vec<NativeAdded>>,
    /// Connecting failed.
    pub error: Option<NativeError>,
    /// An open connection broke.
    pub closed: Option<bool>,
    /// A server that runs full deletes jobs, by this policy.
    pub eviction: Option<String>,
}

/// Answer to one `add`.
#[napi(object)]
pub struct NativeAdded {
    /// The request's number.
    pub request: u32,
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
    /// Last activation, epoch ms.
    pub processed_on: Option<f64>,
    /// Last finish, epoch ms.
    pub finished_on: Option<f64>,
    /// Worker name.
    pub processed_by: Option<String>,
    /// Key of its parent.
    pub parent_key: Option<String>,
    /// Its parent, JSON text.
    pub parent: Option<String>,
    /// Deduplication id.
    pub deduplication_id: Option<String>,
    /// Scheduler id.
    pub repeat_job_key: Option<String>,
}

impl From<Job> for NativeJob {
    fn from(job: Job) -> Self {
        let repeat_job_key = scheduler_of(&job.id, &job.body.options).map(str::to_owned);
        let vitals = job.vitals;
        Self {
            id: job.id,
            name: job.body.name,
            data: job.body.data,
            opts: job.body.options,
            timestamp: job.body.timestamp as f64,
            progress: vitals.progress,
            returnvalue: vitals.returnvalue,
            stacktrace: vitals.stacktrace,
            failed_reason: vitals.failed_reason,
            deferred_failure: vitals.deferred_failure,
            delay: Some(job.delay_ms as f64),
            priority: Some(job.priority as f64),
            attempts_started: Some(vitals.attempts_started),
            attempts_made: Some(vitals.attempts_made),
            stalled_counter: Some(vitals.stalled_counter),
            processed_on: vitals.processed_on.map(|ms| ms as f64),
            finished_on: vitals.finished_on.map(|ms| ms as f64),
            processed_by: vitals.processed_by,
            parent_key: vitals.parent.as_ref().map(Parent::key),
            parent: vitals.parent.as_ref().map(Parent::to_json),
            deduplication_id: vitals.deduplication_id,
            repeat_job_key,
        }
    }
}

/// Finished jobs a minute.
#[napi(object)]
pub struct NativeMetrics {
    /// Jobs since counting began.
    pub count: f64,
    /// Start of the last new minute, epoch ms.
    pub prev_ts: f64,
    /// Jobs before it.
    pub prev_count: f64,
    /// Jobs a minute, newest first.
    pub data: Vec<f64>,
    /// Minutes there are.
    pub minutes: f64,
}

/// Rows of a log.
#[napi(object)]
pub struct NativeLogs {
    /// The rows asked for.
    pub logs: Vec<String>,
    /// Rows there are.
    pub count: f64,
}

/// Which jobs of a state a call is about.
#[napi(object)]
pub struct NativePick {
    /// Ended, or started, or created then or before, epoch ms.
    pub before: Option<f64>,
    /// Ended, or started, or created then or later, epoch ms.
    pub after: Option<f64>,
    /// Has one of these names.
    pub names: Option<Vec<String>>,
    /// Failed for a reason that contains this text.
    pub error: Option<String>,
}

impl From<NativePick> for Pick {
    fn from(pick: NativePick) -> Self {
        Self {
            before_ms: pick.before.map(|ms| ms as u64),
            after_ms: pick.after.map(|ms| ms as u64),
            names: pick.names.unwrap_or_default(),
            error: pick.error.unwrap_or_default(),
        }
    }
}

/// One queue. See `src/queue.ts`.
#[napi]
pub struct NativeQueue {
    pub(crate) queue: Arc<Queue>,
    runtime: Mutex<Option<Arc<Runtime>>>,
    pub(crate) adds: Arc<Adds>,
}

#[napi]
impl NativeQueue {
    /// Makes a queue; nothing is connected yet.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        options: NativeQueueOptions,
        #[napi(ts_arg_type = "(message: QueueMessage) => void")] on_message: Function<'_, QueueMessage, ()>,
        #[napi(ts_arg_type = "(request: number, first: number) => void")] on_added: Function<'_, OneAdded, ()>,
    ) -> Result<Self> {
        let runtime = Runtime::shared()?;
        let adds = Adds::new(&env, &on_message, &on_added, runtime.handle(), |sink| {
            Queue::new(
                options.connection.to_options(options.skip_version_check),
                Keys::new(&options.prefix, &options.name),
                move |event| sink.send(ToJs::Connection(event)),
            )
        })?;
        Ok(Self {
            queue: adds.queue(),
            runtime: Mutex::new(Some(runtime)),
            adds,
        })
    }

    pub(crate) fn runtime(&self) -> Result<Arc<Runtime>> {
        let runtime = self.runtime.lock().ok().and_then(|runtime| runtime.clone());
        runtime.ok_or_else(|| napi::Error::from_reason(Error::Closed.to_string()))
    }

    fn count<'env>(
        &self,
        env: &'env Env,
        work: impl Future<Output = chasquimq::Result<u64>> + Send + 'static,
    ) -> Result<Object<'env>> {
        self.runtime()?.promise(env, work, |count| Output::Number(count as f64))
    }

    /// Resolves when connected.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn ready<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.ready().await }, |()| Output::Nothing)
    }

    /// Waits for adds under way, then closes.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let runtime = Runtime::shared()?;
        let held = self.runtime.lock().ok().and_then(|mut runtime| runtime.take());
        let adds = self.adds.clone();
        runtime.promise(
            env,
            async move {
                adds.finish().await;
                drop(held);
                Ok(())
            },
            |()| Output::Nothing,
        )
    }

    /// Closes at once.
    #[napi]
    pub fn disconnect(&self) {
        self.adds.stop();
        if let Ok(mut runtime) = self.runtime.lock() {
            runtime.take();
        }
    }

    /// Adds one job, without options unless they are given; answered by `onAdded`, or by a message.
    #[napi]
    pub fn add_one(&self, request: u32, now: f64, name: String, data: String, opts: Option<String>) -> Result<()> {
        self.runtime()?;
        self.adds.add_one(request, now as u64, &name, &data, opts.as_deref());
        Ok(())
    }

    /// Adds jobs in one atomic batch; answered by a message with the same request number.
    #[napi]
    pub fn add(&self, request: u32, now: f64, text: String, layout: Uint32Array, opts: Vec<String>) -> Result<()> {
        self.runtime()?;
        self.adds.add(request, now as u64, &text, &layout, &opts);
        Ok(())
    }

    /// Writes the queue's version and event cap.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn set_meta<'env>(&self, env: &'env Env, version: String, max_len_events: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.configure(&version, max_len_events as u64).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Every setting of the queue.
    #[napi(ts_return_type = "Promise<Record<string, string>>")]
    pub fn get_meta<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.meta().await }, |fields| {
                Output::Fields(Fields(fields))
            })
    }

    /// One job.
    #[napi(ts_return_type = "Promise<NativeJob | null>")]
    pub fn get_job<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.job(&id).await }, |job| {
                Output::Job(job.map(|job| Box::new(job.into())))
            })
    }

    /// Jobs by state and rank.
    #[napi(ts_return_type = "Promise<Array<NativeJob>>")]
    pub fn get_jobs<'env>(
        &self,
        env: &'env Env,
        types: Vec<String>,
        start: f64,
        end: f64,
        asc: bool,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let range = to_range(types, start, end, asc);
        self.runtime()?
            .promise(env, async move { queue.jobs(&range).await }, |jobs| {
                Output::Jobs(jobs.into_iter().map(NativeJob::from).collect())
            })
    }

    /// Ids of jobs by state and rank.
    #[napi(ts_return_type = "Promise<Array<string>>")]
    pub fn get_ids<'env>(
        &self,
        env: &'env Env,
        types: Vec<String>,
        start: f64,
        end: f64,
        asc: bool,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let range = to_range(types, start, end, asc);
        self.runtime()?
            .promise(env, async move { queue.job_ids(&range).await }, Output::Texts)
    }

    /// Removes the oldest events; gives their number.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn trim_events<'env>(&self, env: &'env Env, most: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.count(env, async move { queue.trim_events(most as u64).await })
    }

    /// Number of delayed jobs due before then.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn count_delayed_before<'env>(&self, env: &'env Env, due: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.delayed_before(millis(due)).await };
        self.count(env, work)
    }

    /// Finished jobs a minute.
    #[napi(ts_return_type = "Promise<NativeMetrics>")]
    pub fn get_metrics<'env>(&self, env: &'env Env, state: String, start: f64, end: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.metrics(&state, start as i64, end as i64).await };
        self.runtime()?.promise(env, work, |metrics| {
            Output::Metrics(NativeMetrics {
                count: metrics.count as f64,
                prev_ts: metrics.prev_ms as f64,
                prev_count: metrics.prev_count as f64,
                data: metrics.data.iter().map(|count| *count as f64).collect(),
                minutes: metrics.minutes as f64,
            })
        })
    }

    /// Connected workers, or readers of events, as the server describes its clients.
    #[napi(ts_return_type = "Promise<Array<Record<string, string>>>")]
    pub fn get_clients<'env>(&self, env: &'env Env, events: bool) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move {
            if events {
                queue.event_clients().await
            } else {
                queue.worker_clients().await
            }
        };
        self.runtime()?.promise(env, work, |clients| {
            Output::Clients(clients.into_iter().map(Fields).collect())
        })
    }

    /// Numbers of jobs, one for each state asked for.
    #[napi(ts_return_type = "Promise<Array<number>>")]
    pub fn get_counts<'env>(&self, env: &'env Env, types: Vec<String>) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.counts().await }, move |counts| {
                Output::Numbers(types.iter().map(|state| counts.of(state).unwrap_or(0) as f64).collect())
            })
    }

    /// A job's state, or `unknown`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn get_state<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.state(&id).await }, Output::Text)
    }

    /// 0 unfinished, 1 completed, 2 failed, -1 unknown; and the return value or the reason.
    #[napi(ts_return_type = "Promise<[number, string]>")]
    pub fn is_finished<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.outcome(&id).await }, |(state, text)| {
                let status = match state.as_str() {
                    "completed" => 1,
                    "failed" => 2,
                    "unknown" => -1,
                    _ => 0,
                };
                Output::Finished(status, text)
            })
    }

    /// Replaces a job's data.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn update_data<'env>(&self, env: &'env Env, id: String, data: String) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.update_data(chasquimq::system_now_ms(), &id, &data).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Replaces a job's progress.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn update_progress<'env>(&self, env: &'env Env, id: String, progress: String) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.update_progress(chasquimq::system_now_ms(), &id, &progress).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Adds rows to jobs' logs. Gives the number of rows behind each; -1: there is no such job.
    #[napi(ts_return_type = "Promise<number[]>")]
    pub fn add_logs<'env>(
        &self,
        env: &'env Env,
        ids: Vec<String>,
        rows: Vec<String>,
        keep_logs: Uint32Array,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let keep_logs = keep_logs.to_vec();
        let work = async move {
            let rows: Vec<(&str, &str, u32)> = ids
                .iter()
                .zip(&rows)
                .zip(&keep_logs)
                .map(|((id, row), keep)| (id.as_str(), row.as_str(), *keep))
                .collect();
            queue.log_rows(&rows).await
        };
        self.runtime()?.promise(env, work, |counts| {
            Output::Numbers(counts.into_iter().map(|count| count as f64).collect())
        })
    }

    /// Rows of a job's log.
    #[napi(ts_return_type = "Promise<NativeLogs>")]
    pub fn get_logs<'env>(&self, env: &'env Env, id: String, start: f64, end: f64, asc: bool) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.logs(&id, start as i64, end as i64, asc).await };
        self.runtime()?.promise(env, work, |(logs, count)| {
            Output::Logs(NativeLogs {
                logs,
                count: count as f64,
            })
        })
    }

    /// Deletes a job's log, or all but its newest rows.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn clear_logs<'env>(&self, env: &'env Env, id: String, keep_logs: u32) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.clear_logs(&id, keep_logs).await }, |()| {
                Output::Nothing
            })
    }

    /// 1 removed or not there, 0 held by a worker, or a child is that it waits for.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn remove<'env>(&self, env: &'env Env, id: String, remove_children: bool) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.remove(chasquimq::system_now_ms(), &id, remove_children).await };
        self.runtime()?
            .promise(env, work, |removed| Output::Number(f64::from(u8::from(removed))))
    }

    /// Id of the job that owns a deduplication id.
    #[napi(ts_return_type = "Promise<string | null>")]
    pub fn get_deduplication_job_id<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.deduplication_owner(&id).await }, |owner| {
                owner.map_or(Output::Null, Output::Text)
            })
    }

    /// Frees a deduplication id, if that job owns it or none is named: 1, or 0.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn remove_deduplication_key<'env>(
        &self,
        env: &'env Env,
        id: String,
        job_id: Option<String>,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.free_deduplication(&id, job_id.as_deref()).await };
        self.runtime()?
            .promise(env, work, |freed| Output::Number(f64::from(u8::from(freed))))
    }

    /// Numbers of jobs in line with each of these priorities.
    #[napi(ts_return_type = "Promise<Array<number>>")]
    pub fn get_counts_per_priority<'env>(&self, env: &'env Env, priorities: Vec<f64>) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.counts_per_priority(&priorities).await };
        self.runtime()?.promise(env, work, |counts| {
            Output::Numbers(counts.into_iter().map(|count| count as f64).collect())
        })
    }

    /// Gives a job another priority.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn change_priority<'env>(&self, env: &'env Env, id: String, priority: f64, lifo: bool) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.change_priority(&id, priority as i64, lifo).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Puts a finished job back in line.
    #[allow(
        clippy::too_many_arguments,
        reason = "one argument each of BullMQ's call; the macro's copy has fewer"
    )]
    #[napi(ts_return_type = "Promise<void>")]
    pub fn retry_job<'env>(
        &self,
        env: &'env Env,
        id: String,
        state: String,
        lifo: bool,
        reset_attempts_made: bool,
        reset_attempts_started: bool,
        now: f64,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let retry = RetryOptions {
            front: lifo,
            reset_attempts_made,
            reset_attempts_started,
        };
        let work = async move { queue.retry(now as u64, &id, &state, retry).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Makes a delayed job wait.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn promote<'env>(&self, env: &'env Env, id: String, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.promote(now as u64, &id).await }, |()| {
                Output::Nothing
            })
    }

    /// Changes when a delayed job is due.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn change_delay<'env>(&self, env: &'env Env, id: String, delay: f64, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.change_delay(now as u64, &id, millis(delay)).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Moves an active job to delayed.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn move_to_delayed<'env>(
        &self,
        env: &'env Env,
        id: String,
        timestamp: f64,
        token: String,
        now: f64,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.move_to_delayed(now as u64, &id, timestamp as u64, &token).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Moves an active job to the head of the line.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn move_to_wait<'env>(&self, env: &'env Env, id: String, token: String, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.move_to_wait(now as u64, &id, &token).await };
        self.count(env, work)
    }

    /// Sets or clears the queue's flag.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn pause<'env>(&self, env: &'env Env, paused: bool) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.pause(chasquimq::system_now_ms(), paused).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// The queue's flag.
    #[napi(ts_return_type = "Promise<boolean>")]
    pub fn is_paused<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.meta().await }, |fields| {
                Output::Flag(fields.iter().any(|(field, _)| field == "paused"))
            })
    }

    /// Sets or lifts the global concurrency; answers how many settings came or went.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn limit_concurrency<'env>(&self, env: &'env Env, jobs: Option<String>) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.limit_concurrency(jobs.as_deref()).await };
        self.count(env, work)
    }

    /// Sets or lifts the global rate limit; answers how many settings came or went.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn limit_rate<'env>(
        &self,
        env: &'env Env,
        max: Option<String>,
        duration: Option<String>,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.limit_rate(max.as_deref().zip(duration.as_deref())).await };
        self.count(env, work)
    }

    /// Sets or lifts the maximum length; answers how many settings came or went.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn limit_length<'env>(&self, env: &'env Env, jobs: Option<f64>) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.limit_length(jobs.map(|jobs| jobs as u64)).await };
        self.count(env, work)
    }

    /// Uses up the window of the rate limit, or ends it; answers how many windows came or went.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn hold<'env>(&self, env: &'env Env, ms: Option<f64>) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.hold(ms.map(|ms| ms as u64)).await };
        self.count(env, work)
    }

    /// What is left of the window of the rate limit, ms.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn limit_left<'env>(&self, env: &'env Env, max: Option<String>) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.limit_left(max.as_deref()).await };
        self.runtime()?.promise(env, work, |left| Output::Number(left as f64))
    }

    /// Tells an event of the user's own; its fields, names and values in turn.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn publish_event<'env>(
        &self,
        env: &'env Env,
        now: f64,
        name: String,
        fields: Vec<String>,
        max_events: f64,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.publish_event(now as u64, &name, &fields, max_events as u64).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// The server's answer to `INFO`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn info<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.server_info().await }, Output::Text)
    }

    /// Deletes all of a queue that is paused.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn obliterate<'env>(&self, env: &'env Env, force: bool, count: u32) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.obliterate_paused(chasquimq::system_now_ms(), force, count).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Removes what waits, and what is delayed if that is wanted.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn drain<'env>(&self, env: &'env Env, delayed: bool, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.drain(now as u64, delayed).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Removes jobs of a state; gives their ids. A limit of 0 is none.
    #[napi(ts_return_type = "Promise<Array<string>>")]
    pub fn clean<'env>(
        &self,
        env: &'env Env,
        state: String,
        pick: NativePick,
        limit: f64,
        now: f64,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move {
            let limit = (limit > 0.0).then_some(limit as u64);
            queue.clean(now as u64, &state, &pick.into(), limit).await
        };
        self.runtime()?.promise(env, work, Output::Texts)
    }

    /// Puts finished jobs back in line; gives their number. A limit of 0 is none.
    #[allow(clippy::too_many_arguments, reason = "the macro's copy has fewer")]
    #[napi(ts_return_type = "Promise<number>")]
    pub fn retry_jobs<'env>(
        &self,
        env: &'env Env,
        state: String,
        pick: NativePick,
        limit: f64,
        count: f64,
        reset: bool,
        now: f64,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move {
            let limit = (limit > 0.0).then_some(limit as u64);
            let pick = pick.into();
            queue
                .retry_many(now as u64, &state, &pick, limit, count as u64, reset)
                .await
        };
        self.count(env, work)
    }

    /// Failed jobs, the latest first.
    #[napi(ts_return_type = "Promise<Array<NativeJob>>")]
    pub fn find_failed<'env>(
        &self,
        env: &'env Env,
        pick: NativePick,
        skip: f64,
        take: f64,
        now: f64,
    ) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move {
            queue
                .find_failed(now as u64, &pick.into(), skip as u64, take as u64)
                .await
        };
        self.runtime()?.promise(env, work, |jobs| {
            Output::Jobs(jobs.into_iter().map(NativeJob::from).collect())
        })
    }

    /// Number of failed jobs.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn count_failed<'env>(&self, env: &'env Env, pick: NativePick, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.count_failed(now as u64, &pick.into()).await };
        self.count(env, work)
    }

    /// Makes all delayed jobs wait.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn promote_jobs<'env>(&self, env: &'env Env, count: f64, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.promote_many(now as u64, count as u64).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }
}

fn to_range(types: Vec<String>, start: f64, end: f64, asc: bool) -> JobRange {
    JobRange {
        types,
        start: start as i64,
        stop: end as i64,
        ascending: asc,
    }
}
