//! `NativeWorker`: the engine's worker loop, with JavaScript running the jobs.

mod batch;
pub mod job_shortcut;
pub mod messages;
pub mod options;
mod outcomes;
mod words;

use std::{future::Future, sync::Arc};

use chasquimq::{worker::RecordedBy, Keys, RateLimit, Worker};
use napi::{
    bindgen_prelude::{Function, Int32Array, Object, Uint32Array},
    Env, Result,
};
use napi_derive::napi;

use self::{
    job_shortcut::{JobShortcut, ToJs},
    messages::{to_message, OneJob, WorkerMessage},
    options::{to_duration, NativeRateLimit, NativeWorkerOptions},
    outcomes::{to_report, NativeOthers},
    words::shared_words,
};
use crate::{
    low_latency,
    queue::order::Followers,
    runtime::{Held, Runtime},
    sink::Sink,
    text::LongText,
};

/// So many outcomes share a round trip well: the engine waits for no more of them.
#[napi]
#[cfg_attr(test, expect(dead_code, reason = "only JavaScript reads it"))]
pub const ENDS_A_STEP: u32 = chasquimq::worker::ENDS_A_STEP as u32;

/// One worker. See `src/worker/worker.ts`.
#[napi]
pub struct NativeWorker {
    worker: Arc<Worker>,
    runtime: Held,
    sink: Sink<ToJs, WorkerMessage>,
    shortcut: Option<Arc<dyn JobShortcut>>,
    ends: Followers,
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
            ts_arg_type = "(base: number, offer: number, processedOn: number, claim: number, number: number, nameLength: number, timestamp: number, text: string, opts: string) => void"
        )]
        on_job: Function<'_, OneJob, ()>,
    ) -> Result<Self> {
        let runtime = Runtime::shared()?;
        let handle = runtime.handle();
        let _on_runtime = handle.enter();
        let keys = Keys::new(&options.prefix, &options.name);
        let ends = Followers::new(&options.connection.server(), runtime.line());
        let shortcut = low_latency::for_jobs(*env, keys.qualified_name.clone(), &on_message, &on_job)?;
        let sink = receive(*env, &on_message, shortcut.clone())?;
        if let Some(shortcut) = &shortcut {
            shortcut.use_sink(sink.clone());
        }
        let (sender, messages) = (shortcut.clone(), sink.clone());
        let worker = Arc::new(Worker::new(
            options.connection.to_access(options.skip_version_check),
            keys,
            options.to_options(shortcut.is_some()),
            Arc::new(move |message| {
                if let Some(shortcut) = &sender {
                    shortcut.sending();
                }
                messages.send(ToJs::Tell(Box::new(message)));
            }),
        ));
        Ok(Self {
            worker,
            runtime: Held::new(runtime),
            sink,
            shortcut,
            ends,
        })
    }

    fn call<'env, F: Future<Output = ()> + Send + 'static>(
        &self,
        env: &'env Env,
        work: impl FnOnce(Arc<Worker>) -> F,
    ) -> Result<Object<'env>> {
        let work = work(self.worker.clone());
        self.runtime.get()?.promise(env, async move {
            work.await;
            Ok(())
        })
    }

    /// Resolves when both connections are there.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn ready<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let worker = self.worker.clone();
        self.runtime.get()?.promise(env, async move { worker.ready().await })
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
        self.call(env, async move |worker| worker.paused().await)
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

    /// The words by which jobs are drawn, shared with the engine.
    #[napi(ts_return_type = "Int32Array")]
    pub fn words<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        shared_words(env, self.worker.words().shared())
    }

    /// Whether jobs may be drawn for the next millisecond. If not, the engine takes back what it has delivered.
    #[napi]
    pub fn may_start(&self) -> bool {
        self.worker.may_start()
    }

    /// Of jobs that were drawn and are held before they start: they may while this is the number that it was when they were drawn. `null` while the lease may
    /// be over.
    #[napi]
    pub fn lease_number(&self) -> Option<u32> {
        self.worker.lease_number()
    }

    /// A batch was taken back: fetches again, if that was because nobody was heard.
    #[napi]
    pub fn heard(&self) {
        self.worker.heard();
    }

    /// Takes back what was handed over and nobody has drawn: others may have it.
    #[napi]
    pub fn take_back(&self) {
        self.worker.take_back();
    }

    /// Whether nothing is to start for now, for other reasons than slots.
    #[napi]
    pub fn hold(&self, held: bool) {
        self.worker.hold(held);
    }

    /// Reports how jobs ended.
    #[napi]
    pub fn finish(
        &self,
        report: f64,
        now: f64,
        handles: Uint32Array,
        lengths: Int32Array,
        #[napi(ts_arg_type = "string | Array<string>")] text: LongText,
        others: Option<NativeOthers>,
    ) {
        let report = to_report(report, now as u64, (&handles, &lengths), text, others);
        // what a handler gave and did not await takes effect before its job ends
        if self.ends.may_wait() {
            let worker = self.worker.clone();
            return self.ends.follow(move || worker.finish_by_loop(report));
        }
        if let (RecordedBy::Along { number, command }, Some(shortcut)) = (self.worker.finish(report), &self.shortcut) {
            shortcut.clone().carry(number, &command);
        }
    }

    /// The facade's clock.
    #[napi]
    pub fn tick(&self, now: f64, fake: bool) {
        self.worker.fake_clock(fake);
        self.worker.tick(now as u64);
    }

    /// Whether jobs that were taken manually are to be told when they are cancelled.
    #[napi]
    pub fn attend(&self, attends: bool) {
        self.worker.attend(attends);
    }

    /// Scans for jobs of lost workers, though nothing is fetched.
    #[napi]
    pub fn scan(&self) {
        self.worker.scan();
    }

    /// Resolves once nothing waits, and nothing is held; false when it is paused or closed before.
    #[napi(ts_return_type = "Promise<boolean>")]
    pub fn emptied<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let worker = self.worker.clone();
        let runtime = self.runtime.get()?;
        runtime.promise(env, async move { Ok(worker.emptied().await) })
    }

    /// Waits until a job may have come; false when it was stopped.
    #[napi(ts_return_type = "Promise<boolean>")]
    pub fn wait_for_job<'env>(&self, env: &'env Env, ms: f64) -> Result<Object<'env>> {
        let worker = self.worker.clone();
        let time = to_duration(ms);
        let runtime = self.runtime.get()?;
        runtime.promise(env, async move { Ok(worker.wait_for_job(time).await) })
    }

    /// Ends every wait for a job.
    #[napi]
    pub fn stop_waiting(&self) {
        self.worker.stop_manual_waits();
    }

    /// Resolves when the server has answered nothing for so many milliseconds, or refuses everything, so that a close must not wait for it; at the close
    /// at the latest.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn unreachable<'env>(&self, env: &'env Env, patience: f64) -> Result<Object<'env>> {
        let patience = to_duration(patience);
        self.call(env, async move |worker| worker.unreachable(patience).await)
    }

    /// Tells another worker that a job may have come.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn wake_another<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        self.call(env, async move |worker| worker.wake_another().await)
    }

    /// Asks to be the one worker of the queue that holds jobs which are too few for its batch, for so many milliseconds; 0 = no more. Resolves with how many
    /// jobs may be active at once, 0 = any number; -1 where another worker does, -2 where the queue is paused.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn gather<'env>(&self, env: &'env Env, ms: f64) -> Result<Object<'env>> {
        let (worker, time) = (self.worker.clone(), to_duration(ms));
        let asked = async move { worker.gather(time).await };
        self.runtime.get()?.promise(env, async move { Ok(asked.await? as f64) })
    }

    /// Stops; with `force` at once.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env, force: bool) -> Result<Object<'env>> {
        self.close_shortcut();
        let (worker, sink) = (self.worker.clone(), self.sink.clone());
        self.runtime.close(env, async move {
            worker.close(force).await;
            sink.close();
        })
    }

    fn close_shortcut(&self) {
        if let Some(shortcut) = &self.shortcut {
            shortcut.close();
        }
    }
}

// A JavaScript thread that ends without a close: what only this thread may let go of, it lets go of now.
impl Drop for NativeWorker {
    fn drop(&mut self) {
        self.close_shortcut();
    }
}

/// Messages become calls of `on_message`; what the shortcut may watch goes to that.
fn receive(
    env: Env,
    on_message: &Function<'_, WorkerMessage, ()>,
    shortcut: Option<Arc<dyn JobShortcut>>,
) -> Result<Sink<ToJs, WorkerMessage>> {
    Sink::new(on_message, move |message| match message {
        ToJs::Run(work) => {
            work(env);
            Ok(WorkerMessage::default())
        }
        ToJs::Tell(mut message) => {
            if let Some(shortcut) = &shortcut {
                shortcut.received();
                if let Some(standby) = message.standby.take() {
                    shortcut.clone().watch(env, standby);
                }
            }
            Ok(to_message(*message))
        }
    })
}
