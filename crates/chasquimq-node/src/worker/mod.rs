//! `NativeWorker`: the engine's worker loop, with JavaScript running the jobs.

#[cfg(unix)]
use std::sync::{OnceLock, Weak};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chasquimq::{
    scheduler_of,
    worker::{Batch, BatchJob, Completed, Ending, Failure, FailureState, Flush, Message, Outcome, Siblings},
    ConnectionEvent, Error, JobOptions, Keep, Keys, RateLimit, Worker, WorkerOptions,
};
use napi::{
    bindgen_prelude::{Float64Array, FnArgs, Function, Int32Array, Object, Uint32Array},
    Env, Result,
};
use napi_derive::napi;

#[cfg(unix)]
use crate::low_latency::idle_wait::Waits;
use crate::{
    connection::{units_of, NativeConnection, Pieces},
    error::NativeError,
    runtime::{Output, Runtime},
    sink::Sink,
};

/// Bytes of jobs that lie in one text at most, unless a single job has more.
const LONGEST_TEXT: usize = 64 << 20;

/// What a worker is made from.
#[napi(object)]
pub struct NativeWorkerOptions {
    /// Queue name.
    pub name: String,
    /// Key prefix.
    pub prefix: String,
    /// Server.
    pub connection: NativeConnection,
    /// Accept any server version.
    pub skip_version_check: Option<bool>,
    /// Owner of the lease.
    pub id: String,
    /// Shown as `processedBy`.
    pub worker_name: Option<String>,
    /// Jobs at once.
    pub concurrency: f64,
    /// Lease, ms.
    pub lock_duration: f64,
    /// The lease is renewed each half of this, ms.
    pub lock_renew_time: f64,
    /// Never renew.
    pub skip_lock_renewal: Option<bool>,
    /// Between scans, ms.
    pub stalled_interval: f64,
    /// Times a job may stall.
    pub max_stalled_count: u32,
    /// Never scan.
    pub skip_stalled_check: Option<bool>,
    /// Starts a job may have.
    pub max_started_attempts: Option<u32>,
    /// Longest idle wait, seconds.
    pub drain_delay: f64,
    /// Pause after a connection error, ms.
    pub run_retry_delay: f64,
    /// JSON of the worker's retention.
    pub remove_on_complete: Option<String>,
    /// JSON of the worker's retention.
    pub remove_on_fail: Option<String>,
    /// Its own rate limit.
    pub limiter: Option<NativeRateLimit>,
    /// Longest sleep while limited, ms.
    pub maximum_rate_limit_delay: f64,
    /// Minutes for which finished jobs are counted.
    pub metrics_minutes: Option<u32>,
}

/// A rate limit of a worker.
#[napi(object)]
#[derive(Clone, Copy)]
pub struct NativeRateLimit {
    /// Starts a window; 0 = as the queue says.
    pub max: f64,
    /// Length of a window, ms.
    pub duration: f64,
}

impl From<NativeRateLimit> for RateLimit {
    fn from(limit: NativeRateLimit) -> Self {
        Self {
            max: limit.max as u64,
            duration: Duration::from_millis(limit.duration as u64),
        }
    }
}

/// What a worker tells.
#[napi(object)]
#[derive(Default)]
pub struct WorkerMessage {
    /// Jobs to run.
    pub jobs: Option<NativeBatch>,
    /// Every flush up to this one is recorded.
    pub flushed: Option<u32>,
    /// Outcomes that were refused.
    pub rejected: Option<Vec<NativeRejected>>,
    /// What became of failed tries. Four numbers a job: handle, state (0 failed, 1 delayed, 2 waiting), tries that ended, pause before the next
    /// try in ms.
    pub failures: Option<Float64Array>,
    /// `finishedOn` of what ended.
    pub finished_on: Option<f64>,
    /// Nothing was left.
    pub drained: Option<bool>,
    /// Ids brought back.
    pub stalled: Option<Vec<String>>,
    /// Hand back what did not start.
    pub give_back: Option<bool>,
    /// Call `tick`.
    pub clock: Option<bool>,
    /// The lease was not renewed in time.
    pub lease_lost: Option<bool>,
    /// Something failed that is not the connection.
    pub error: Option<NativeError>,
    /// Connecting failed.
    pub connection_error: Option<NativeError>,
    /// An open connection broke.
    pub closed: Option<bool>,
    /// A server that runs full deletes jobs, by this policy.
    pub eviction: Option<String>,
}

/// Jobs that became active together.
#[napi(object)]
pub struct NativeBatch {
    /// Handle of the first.
    pub base: u32,
    /// Number of jobs.
    pub count: u32,
    /// When they became active.
    pub processed_on: f64,
    /// The taking that made them active, of which their tokens tell.
    pub claim: f64,
    /// Names and data, back to back.
    pub text: String,
    /// Texts that follow it, of whole jobs each, where all are longer together than a string may be.
    pub more: Option<Vec<String>>,
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

/// What is known of a job with a record.
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
    /// Fail it at once, with this.
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
}

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

/// A refused outcome.
#[napi(object)]
pub struct NativeRejected {
    /// The job.
    pub handle: u32,
    /// Why.
    pub error: NativeError,
}

/// A plain job that became active alone: its handle, when it became active, its number, UTF-16 units of its name, its creation time,
/// its name and data, its options.
pub type OneJob = FnArgs<(u32, f64, f64, f64, u32, f64, String, String)>;

/// One worker. See `src/worker.ts`.
#[napi]
pub struct NativeWorker {
    worker: Arc<Worker>,
    runtime: Mutex<Option<Arc<Runtime>>>,
    sink: Sink<Message, WorkerMessage>,
    #[cfg(unix)]
    waits: Arc<Waits>,
}

#[napi]
impl NativeWorker {
    /// Makes a worker that fetches nothing yet.
    #[napi(constructor)]
    pub fn new(
        env: &Env,
        options: NativeWorkerOptions,
        #[napi(ts_arg_type = "(message: WorkerMessage) => void")] on_message: Function<'_, WorkerMessage, ()>,
        #[napi(
            ts_arg_type = "(base: number, processedOn: number, claim: number, number: number, nameLength: number, timestamp: number, text: string, opts: string) => void"
        )]
        on_job: Function<'_, OneJob, ()>,
    ) -> Result<Self> {
        let runtime = Runtime::shared()?;
        let handle = runtime.handle();
        let _on_runtime = handle.enter();
        let connect = options.connection.to_options(options.skip_version_check);
        let keys = Keys::new(&options.prefix, &options.name);
        Self::start(*env, (&on_message, &on_job), runtime, |sink| {
            Worker::new(connect, keys, to_options(&options, *env), sink)
        })
    }

    fn runtime(&self) -> Result<Arc<Runtime>> {
        let runtime = self.runtime.lock().ok().and_then(|runtime| runtime.clone());
        runtime.ok_or_else(|| napi::Error::from_reason(Error::Closed.to_string()))
    }

    /// Resolves when both connections are there.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn ready<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let worker = self.worker.clone();
        self.runtime()?
            .promise(env, async move { worker.ready().await }, |()| Output::Nothing)
    }

    /// Fetches from now on.
    #[napi]
    pub fn run(&self, now: f64, fake: bool) {
        self.worker.fake_clock(fake);
        self.worker.run(now as u64);
    }

    /// Fetches no more; resolves when no fetch is under way.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn pause<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        // heard at once, and not when the engine's thread comes to it
        self.worker.pause();
        let worker = self.worker.clone();
        self.runtime()?.promise(
            env,
            async move {
                worker.paused().await;
                Ok(())
            },
            |()| Output::Nothing,
        )
    }

    /// Changes how many jobs run at once.
    #[napi]
    pub fn set_concurrency(&self, concurrency: f64) {
        self.worker.set_concurrency(concurrency as u32);
    }

    /// Changes the worker's own rate limit.
    #[napi]
    pub fn set_limiter(&self, limiter: Option<NativeRateLimit>) {
        self.worker.set_limiter(limiter.map(RateLimit::from));
    }

    /// Reports how jobs ended.
    #[napi]
    pub fn finish(
        &self,
        flush: u32,
        now: f64,
        handles: Uint32Array,
        lengths: Int32Array,
        text: String,
        mut others: Option<NativeOthers>,
    ) {
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
        self.worker.finish(Flush {
            number: flush,
            now_ms: now as u64,
            completed,
            text: Arc::new(text),
            others: others.map(to_others).unwrap_or_default(),
            // JSON of these options can be read whatever their types
            changed: changed
                .into_iter()
                .filter_map(|job| Some((job.handle, Arc::new(JobOptions::parse(&job.opts).ok()?))))
                .collect(),
        });
    }

    /// The facade's clock.
    #[napi]
    pub fn tick(&self, now: f64, fake: bool) {
        self.worker.fake_clock(fake);
        self.worker.tick(now as u64);
    }

    /// Scans for jobs of lost workers, though nothing is fetched.
    #[napi]
    pub fn scan(&self) {
        self.worker.scan();
    }

    /// Waits until a job may have come; false when it was stopped.
    #[napi(ts_return_type = "Promise<boolean>")]
    pub fn wait_for_job<'env>(&self, env: &'env Env, ms: f64) -> Result<Object<'env>> {
        let worker = self.worker.clone();
        let time = Duration::from_micros((ms.max(0.0) * 1000.0) as u64);
        self.runtime()?
            .promise(env, async move { Ok(worker.wait_for_job(time).await) }, Output::Flag)
    }

    /// Ends every wait for a job.
    #[napi]
    pub fn stop_waiting(&self) {
        self.worker.stop_waiting_by_hand();
    }

    /// Tells another worker that a job may have come.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn wake_another<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let worker = self.worker.clone();
        let work = async move {
            worker.wake_another().await;
            Ok(())
        };
        self.runtime()?.promise(env, work, |()| Output::Nothing)
    }

    /// Stops; with `force` at once.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env, force: bool) -> Result<Object<'env>> {
        let runtime = Runtime::shared()?;
        let held = self.runtime.lock().ok().and_then(|mut runtime| runtime.take());
        #[cfg(unix)]
        self.waits.close();
        let (worker, sink) = (self.worker.clone(), self.sink.clone());
        runtime.promise(
            env,
            async move {
                worker.close(force).await;
                sink.close();
                drop(held);
                Ok(())
            },
            |()| Output::Nothing,
        )
    }
}

// A JavaScript thread that ends without a close: what only this thread may let go of, it lets go of now.
#[cfg(unix)]
impl Drop for NativeWorker {
    fn drop(&mut self) {
        self.waits.close();
    }
}

#[cfg(not(unix))]
impl NativeWorker {
    fn start(
        _env: Env,
        (on_message, _): (&Function<'_, WorkerMessage, ()>, &Function<'_, OneJob, ()>),
        runtime: Arc<Runtime>,
        make: impl FnOnce(chasquimq::worker::Sink) -> Worker,
    ) -> Result<Self> {
        let sink = Sink::new(on_message, |message| Ok(to_message(message)))?;
        let messages = sink.clone();
        let worker = make(Arc::new(move |message| messages.send(message)));
        Ok(Self {
            worker: Arc::new(worker),
            runtime: Mutex::new(Some(runtime)),
            sink,
        })
    }
}

#[cfg(unix)]
impl NativeWorker {
    fn start(
        env: Env,
        (on_message, on_job): (&Function<'_, WorkerMessage, ()>, &Function<'_, OneJob, ()>),
        runtime: Arc<Runtime>,
        make: impl FnOnce(chasquimq::worker::Sink) -> Worker,
    ) -> Result<Self> {
        let waits = Waits::new(on_message, on_job)?;
        let made: Arc<OnceLock<Weak<Worker>>> = Arc::default();
        let (receiver, worker) = (waits.clone(), made.clone());
        let sink = Sink::new(on_message, move |mut message: Message| {
            receiver.received();
            if let Some(lane) = message.lane.take() {
                let worker = worker.get().and_then(Weak::upgrade);
                if let Some(worker) = worker.filter(|_| receiver.watch(env, lane.clone())) {
                    worker.use_lane(lane);
                }
            }
            Ok(to_message(message))
        })?;
        waits.use_sink(sink.clone());
        let (sender, messages) = (waits.clone(), sink.clone());
        let worker = Arc::new(make(Arc::new(move |message| {
            sender.sending();
            messages.send(message);
        })));
        // the sink is heard on this thread, so not before this
        let _ = made.set(Arc::downgrade(&worker));
        Ok(Self {
            worker,
            runtime: Mutex::new(Some(runtime)),
            sink,
            waits,
        })
    }
}

fn to_options(options: &NativeWorkerOptions, env: Env) -> WorkerOptions {
    let ms = |ms: f64| Duration::from_micros((ms.max(0.0) * 1000.0) as u64);
    let keep = |text: &Option<String>| text.as_ref().map_or(Keep::ALL, |text| Keep::from_text(text));
    WorkerOptions {
        id: options.id.clone(),
        name: options.worker_name.clone().unwrap_or_default(),
        concurrency: options.concurrency as u32,
        lock_duration: ms(options.lock_duration),
        lock_renew_time: (options.skip_lock_renewal != Some(true)).then(|| ms(options.lock_renew_time)),
        stalled_interval: (options.skip_stalled_check != Some(true)).then(|| ms(options.stalled_interval)),
        max_stalled_count: options.max_stalled_count,
        max_started_attempts: options.max_started_attempts,
        drain_delay: ms(options.drain_delay * 1000.0),
        remove_on_complete: keep(&options.remove_on_complete),
        remove_on_fail: keep(&options.remove_on_fail),
        #[cfg(unix)]
        watches_lanes: crate::low_latency::poll::Watch::is_possible(env),
        #[cfg(not(unix))]
        watches_lanes: false,
        limiter: options.limiter.map(RateLimit::from),
        maximum_rate_limit_delay: ms(options.maximum_rate_limit_delay),
        metrics_minutes: options.metrics_minutes.unwrap_or(0),
    }
}

fn to_outcome(outcome: NativeOutcome) -> Outcome {
    let ending = match outcome.kind.as_str() {
        "returned" => Ending::Returned,
        "rateLimited" => Ending::RateLimited,
        _ => Ending::Moved,
    };
    Outcome {
        handle: outcome.handle,
        ending,
    }
}

fn to_others(others: NativeOthers) -> Vec<Outcome> {
    let texts: Vec<Arc<str>> = others.texts.into_iter().map(Arc::from).collect();
    let text = |index: f64| texts.get(index as usize).filter(|_| index >= 0.0).cloned();
    let outcome = |job: &[f64]| Outcome {
        handle: job[0] as u32,
        ending: Ending::Failed {
            reason: text(job[1]),
            stacktrace: text(job[2]),
            unrecoverable: job[3] == 1.0,
            delay_ms: (!job[4].is_nan()).then_some(job[4]),
        },
    };
    let failed = others.layout.chunks_exact(5).map(outcome);
    failed
        .chain(others.outcomes.into_iter().flatten().map(to_outcome))
        .collect()
}

/// A message as JavaScript reads it.
pub fn to_message(message: Message) -> WorkerMessage {
    let finished_on = message.finished_on as f64;
    let (connection_error, closed, eviction) = match message.connection {
        Some(ConnectionEvent::Failed(error)) => (Some(NativeError::from(&error)), None, None),
        Some(ConnectionEvent::Lost) => (None, Some(true), None),
        Some(ConnectionEvent::Evicts(policy)) => (None, None, Some(policy)),
        None => (None, None, None),
    };
    WorkerMessage {
        jobs: message.jobs.map(to_batch),
        flushed: message.flushed,
        rejected: some(message.rejected.into_iter().map(|rejected| NativeRejected {
            handle: rejected.handle,
            error: NativeError::from(&rejected.error),
        })),
        failures: (!message.failures.is_empty()).then(|| to_failures(&message.failures)),
        finished_on: message.flushed.map(|_| finished_on),
        drained: message.drained.then_some(true),
        stalled: some(message.stalled.into_iter()),
        give_back: message.give_back.then_some(true),
        clock: message.clock.then_some(true),
        lease_lost: message.lease_lost.then_some(true),
        error: message.error.as_ref().map(NativeError::from),
        connection_error,
        closed,
        eviction,
    }
}

fn to_failures(failures: &[Failure]) -> Float64Array {
    let mut layout = Vec::with_capacity(failures.len() * 4);
    for failure in failures {
        let (state, delay_ms) = match failure.state {
            FailureState::Failed => (0.0, 0.0),
            FailureState::Delayed(ms) => (1.0, ms as f64),
            FailureState::Waiting => (2.0, 0.0),
        };
        layout.extend([
            f64::from(failure.handle),
            state,
            f64::from(failure.attempts_made),
            delay_ms,
        ]);
    }
    Float64Array::new(layout)
}

fn some<T>(values: impl ExactSizeIterator<Item = T>) -> Option<Vec<T>> {
    (values.len() > 0).then(|| values.collect())
}

fn to_batch(mut batch: Batch) -> NativeBatch {
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
    let more = more_texts(&mut batch);
    NativeBatch {
        base: batch.base,
        count: batch.jobs.len() as u32,
        processed_on: batch.processed_on as f64,
        claim: batch.claim as f64,
        layout: Float64Array::new(layout),
        opts: batch.options.iter().map(|options| options.text.clone()).collect(),
        extras: to_extras(batch.extras, &batch.jobs, &batch.options),
        siblings: batch.siblings.into_iter().filter_map(to_siblings).collect(),
        more,
        text: batch.text,
    }
}

/// Cuts the text behind a job where it grows too long for one string of V8's: gives what follows.
fn more_texts(batch: &mut Batch) -> Option<Vec<String>> {
    if batch.text.len() <= LONGEST_TEXT {
        return None;
    }
    let (mut cuts, mut from, mut at) = (Vec::new(), 0, 0);
    for job in &batch.jobs {
        let end = at + (job.name_len.unwrap_or(0) + job.data_len) as usize;
        if at > from && end - from > LONGEST_TEXT {
            cuts.push(at);
            from = at;
        }
        at = end;
    }
    let mut more: Vec<String> = cuts.iter().rev().map(|&cut| batch.text.split_off(cut)).collect();
    more.reverse();
    Some(more)
}

fn to_siblings(siblings: Siblings) -> Option<NativeSiblings> {
    let parent = siblings.vitals.parent?;
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
    let vitals = extra.vitals;
    let (parent_key, parent) = vitals.parent.map(|parent| parents.texts_of(parent)).unzip();
    NativeJobExtra {
        id: (!is_numbered).then_some(extra.id),
        progress: vitals.progress,
        returnvalue: vitals.returnvalue,
        stacktrace: vitals.stacktrace,
        failed_reason: vitals.failed_reason,
        deferred_failure: vitals.deferred_failure,
        delay: None,
        priority: vitals
            .priority
            .filter(|priority| *priority != 0)
            .map(|priority| priority as f64),
        attempts_started: (vitals.attempts_started != 1).then_some(vitals.attempts_started),
        attempts_made: (vitals.attempts_made != 0).then_some(vitals.attempts_made),
        stalled_counter: (vitals.stalled_counter != 0).then_some(vitals.stalled_counter),
        finished_on: vitals.finished_on.map(|ms| ms as f64),
        processed_by: vitals.processed_by,
        parent_key,
        parent,
        deduplication_id: vitals.deduplication_id,
        repeat_job_key: None,
    }
}
