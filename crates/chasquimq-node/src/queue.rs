//! `NativeQueue`: a queue's adds and its commands by id.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use chasquimq::{AddBatch, ConnectionEvent, Error, Job, JobOptions, JobRange, Keys, NewJob, Queue, RetryOptions};
use napi::{
    bindgen_prelude::{Function, Object, Uint32Array},
    Env, Result,
};
use napi_derive::napi;

use crate::{
    convert::{NativeConnection, Pieces},
    error::NativeError,
    runtime::{Output, Runtime},
    sink::Sink,
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
    /// Priority.
    pub priority: Option<u32>,
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
            priority: None,
            attempts_started: Some(vitals.attempts_started),
            attempts_made: Some(vitals.attempts_made),
            stalled_counter: Some(vitals.stalled_counter),
            processed_on: vitals.processed_on.map(|ms| ms as f64),
            finished_on: vitals.finished_on.map(|ms| ms as f64),
            processed_by: vitals.processed_by,
            parent_key: None,
            parent: None,
            deduplication_id: None,
            repeat_job_key: None,
        }
    }
}

/// Rows of a log.
#[napi(object)]
pub struct NativeLogs {
    /// The rows asked for.
    pub logs: Vec<String>,
    /// Rows there are.
    pub count: f64,
}

pub(crate) enum ToJs {
    Added,
    Connection(ConnectionEvent),
}

type Answers = Arc<Mutex<Vec<(u32, chasquimq::Result<chasquimq::Added>)>>>;

/// One queue. See `src/queue.ts`.
#[napi]
pub struct NativeQueue {
    queue: Arc<Queue>,
    runtime: Mutex<Option<Arc<Runtime>>>,
    sink: Sink<ToJs, QueueMessage>,
    answers: Answers,
    options: Mutex<HashMap<String, Arc<JobOptions>>>,
    // adds that were not answered yet, and whoever waits for them at a close
    pending: Arc<tokio::sync::watch::Sender<u64>>,
}

const CACHED_OPTIONS: usize = 256;

#[napi]
impl NativeQueue {
    /// Makes a queue; nothing is connected yet.
    #[napi(constructor)]
    pub fn new(
        options: NativeQueueOptions,
        #[napi(ts_arg_type = "(message: QueueMessage) => void")] on_message: Function<'_, QueueMessage, ()>,
    ) -> Result<Self> {
        let answers: Answers = Arc::default();
        let taken = answers.clone();
        let sink = Sink::new(&on_message, move |message| Ok(to_message(message, &taken)))?;
        let events = sink.clone();
        let queue = Queue::new(
            options.connection.to_options(options.skip_version_check),
            Keys::new(&options.prefix, &options.name),
            move |event| events.send(ToJs::Connection(event)),
        );
        Ok(Self {
            queue: Arc::new(queue),
            runtime: Mutex::new(Some(Runtime::shared()?)),
            sink,
            answers,
            options: Mutex::default(),
            pending: Arc::new(tokio::sync::watch::Sender::new(0)),
        })
    }

    fn runtime(&self) -> Result<Arc<Runtime>> {
        let runtime = self.runtime.lock().ok().and_then(|runtime| runtime.clone());
        runtime.ok_or_else(|| napi::Error::from_reason(Error::Closed.to_string()))
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
        let (queue, sink, pending) = (self.queue.clone(), self.sink.clone(), self.pending.clone());
        runtime.promise(
            env,
            async move {
                if queue.is_connected() {
                    let _ = pending.subscribe().wait_for(|pending| *pending == 0).await;
                    queue.forget_adds().await;
                }
                queue.close();
                sink.close();
                drop(held);
                Ok(())
            },
            |()| Output::Nothing,
        )
    }

    /// Closes at once.
    #[napi]
    pub fn disconnect(&self) {
        self.queue.close();
        self.sink.close();
        if let Ok(mut runtime) = self.runtime.lock() {
            runtime.take();
        }
    }

    /// Adds jobs in one atomic batch; answered by a message with the same request number.
    #[napi]
    pub fn add(&self, request: u32, now: f64, text: String, layout: Uint32Array, opts: Vec<String>) -> Result<()> {
        let runtime = self.runtime()?;
        let batch = self.pack(now as u64, &text, &layout, &opts);
        let (queue, answers, sink, pending) = (
            self.queue.clone(),
            self.answers.clone(),
            self.sink.clone(),
            self.pending.clone(),
        );
        pending.send_modify(|pending| *pending += 1);
        runtime.handle().spawn(async move {
            let added = match batch {
                Ok(batch) => queue.add(&batch).await,
                Err(error) => Err(error),
            };
            let first = answers.lock().is_ok_and(|mut answers| {
                answers.push((request, added));
                answers.len() == 1
            });
            // one call takes all answers that are there by then
            if first {
                sink.send(ToJs::Added);
            }
            pending.send_modify(|pending| *pending -= 1);
        });
        Ok(())
    }

    fn pack(&self, now_ms: u64, text: &str, layout: &[u32], opts: &[String]) -> chasquimq::Result<AddBatch> {
        let options = opts
            .iter()
            .map(|text| self.parse_options(text))
            .collect::<chasquimq::Result<Vec<_>>>()?;
        let mut pieces = Pieces::new(text);
        let jobs = layout.chunks_exact(3).filter_map(|job| {
            let (name, data) = (pieces.next(job[0] as usize), pieces.next(job[1] as usize));
            options
                .get(job[2] as usize)
                .map(|options| NewJob { name, data, options })
        });
        Ok(AddBatch::pack(now_ms, jobs))
    }

    fn parse_options(&self, text: &str) -> chasquimq::Result<Arc<JobOptions>> {
        let Ok(mut known) = self.options.lock() else {
            return JobOptions::parse(text).map(Arc::new);
        };
        if let Some(options) = known.get(text) {
            return Ok(options.clone());
        }
        let options = Arc::new(JobOptions::parse(text)?);
        if options.job_id.is_none() {
            if known.len() >= CACHED_OPTIONS {
                known.clear();
            }
            known.insert(text.to_owned(), options.clone());
        }
        Ok(options)
    }

    /// Writes the queue's version and event cap.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn set_meta<'env>(&self, env: &'env Env, version: String, max_len_events: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let fields = [
            ("opts.maxLenEvents", (max_len_events as i64).to_string()),
            ("version", version),
        ];
        self.runtime()?
            .promise(env, async move { queue.set_meta(&fields).await }, |()| Output::Nothing)
    }

    /// Every setting of the queue.
    #[napi(ts_return_type = "Promise<Record<string, string>>")]
    pub fn get_meta<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.meta().await }, |fields| {
                Output::Fields(fields.into_iter().collect())
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
        let range = JobRange {
            types,
            start: start as i64,
            stop: end as i64,
            ascending: asc,
        };
        self.runtime()?
            .promise(env, async move { queue.jobs(&range).await }, |jobs| {
                Output::Jobs(jobs.into_iter().map(NativeJob::from).collect())
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
            .promise(env, async move { queue.state(&id).await }, |(state, _)| {
                Output::Text(state)
            })
    }

    /// 0 unfinished, 1 completed, 2 failed, -1 unknown; and the return value or the reason.
    #[napi(ts_return_type = "Promise<[number, string]>")]
    pub fn is_finished<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.state(&id).await }, |(state, text)| {
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

    /// Adds a row to a job's log.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn add_log<'env>(&self, env: &'env Env, id: String, row: String, keep_logs: u32) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        self.runtime()?
            .promise(env, async move { queue.log(&id, &row, keep_logs).await }, |rows| {
                Output::Number(rows as f64)
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

    /// 1 removed or not there, 0 held by a worker.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn remove<'env>(&self, env: &'env Env, id: String, _remove_children: bool) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.remove(chasquimq::system_now_ms(), &id).await };
        self.runtime()?
            .promise(env, work, |removed| Output::Number(f64::from(u8::from(removed))))
    }

    /// Puts a finished job back in line.
    #[allow(clippy::too_many_arguments, reason = "one argument each of BullMQ's call; the macro's copy has fewer")]
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
        let work = async move { queue.change_delay(now as u64, &id, delay as u64).await };
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
        self.runtime()?.promise(env, work, |()| Output::Number(0.0))
    }

    /// Extends the lease behind a token: 1, or 0 when there is none.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn extend_lock<'env>(&self, env: &'env Env, _id: String, token: String, duration: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.extend_lease(&token, duration as u64).await };
        self.runtime()?
            .promise(env, work, |extended| Output::Number(f64::from(u8::from(extended))))
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

    /// Pauses the queue and deletes all of it.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn obliterate<'env>(&self, env: &'env Env, force: bool, count: u32) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.obliterate(chasquimq::system_now_ms(), force, count).await };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }
}

fn to_message(message: ToJs, answers: &Answers) -> QueueMessage {
    match message {
        ToJs::Added => {
            let answers = answers
                .lock()
                .map(|mut answers| std::mem::take(&mut *answers))
                .unwrap_or_default();
            QueueMessage {
                added: Some(
                    answers
                        .into_iter()
                        .map(|(request, added)| to_added(request, added))
                        .collect(),
                ),
                ..QueueMessage::default()
            }
        }
        ToJs::Connection(ConnectionEvent::Failed(error)) => QueueMessage {
            error: Some(NativeError::from(&error)),
            ..QueueMessage::default()
        },
        ToJs::Connection(ConnectionEvent::Lost) => QueueMessage {
            closed: Some(true),
            ..QueueMessage::default()
        },
    }
}

fn to_added(request: u32, added: chasquimq::Result<chasquimq::Added>) -> NativeAdded {
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
