//! A worker that runs an async function for each job.

use std::{future::Future, marker::PhantomData, sync::Arc};

use chasquimq::{ConnectOptions, Error, Keys, Queue, RateLimit, Result, Worker};
use serde::{de::DeserializeOwned, Serialize};
use tokio::{
    sync::{mpsc, Mutex},
    task::JoinHandle,
};

use crate::{
    event::TypedWorkerOptions,
    job::TypedJob,
    outcome::JobError,
    run::{handler, Command, Runner},
    stop::Stops,
};

/// A worker of jobs whose data is a `T`. Dropping it is a [`TypedWorker::close`] that nobody waits for.
#[derive(Debug)]
pub struct TypedWorker<T> {
    commands: mpsc::UnboundedSender<Command>,
    runner: Mutex<Option<JoinHandle<()>>>,
    data: PhantomData<fn(T)>,
}

impl<T: DeserializeOwned + Send + 'static> TypedWorker<T> {
    /// Connects, and runs `handler` for each job of the queue, as many at once as `options.concurrency`, each in a tokio task. What
    /// the handler returns is kept with the job. `server` and `queue` as for [`TypedQueue::connect`](crate::TypedQueue::connect).
    ///
    /// A job that somebody cancels, or whose `timeout` is over, runs on until its handler ends, which hears of it by [`TypedJob::cancelled`].
    ///
    /// A handler that panics fails the try. A job whose data is no `T` fails for good.
    /// # Errors
    /// [`Error::Invalid`] for what is no URL and for a concurrency of 0; the cause, when the server cannot be reached, refuses the
    /// login or is too old.
    pub async fn start<C, H, F, R, E>(
        server: C,
        queue: impl Into<Keys>,
        options: impl Into<TypedWorkerOptions>,
        handler: H,
    ) -> Result<Self>
    where
        C: TryInto<ConnectOptions>,
        Error: From<C::Error>,
        H: Fn(TypedJob<T>) -> F + Send + Sync + 'static,
        F: Future<Output = std::result::Result<R, E>> + Send + 'static,
        R: Serialize + Send,
        E: Into<JobError>,
    {
        let (connect, keys, options) = (server.try_into()?, queue.into(), options.into());
        if options.worker.concurrency == 0 {
            let message = "concurrency must be a finite number greater than 0";
            return Err(Error::Invalid(message.into()));
        }
        let (sink, messages) = mpsc::unbounded_channel();
        let core = Worker::new(
            connect.clone(),
            keys.clone(),
            options.worker.clone(),
            Arc::new(move |message| {
                // a runner that has ended hears nothing
                let _ = sink.send(message);
            }),
        );
        if let Err(error) = core.ready().await {
            core.close(true).await;
            return Err(error);
        }
        // connects when a handler first needs it
        let jobs = Arc::new(Queue::new(connect, keys, |_| {}));
        let (commands, heard) = mpsc::unbounded_channel();
        let stops = Arc::<Stops>::default();
        let run = self::handler(handler, jobs.clone(), stops.clone(), &options.worker.id);
        let runner = Runner::new(core, options, run, messages, jobs, stops);
        Ok(Self {
            commands,
            runner: Mutex::new(Some(tokio::spawn(runner.run(heard)))),
            data: PhantomData,
        })
    }
}

impl<T> TypedWorker<T> {
    /// Takes no more jobs until [`TypedWorker::resume`]. Handlers that run go on.
    pub fn pause(&self) {
        self.command(Command::Pause);
    }

    /// Ends [`TypedWorker::pause`].
    pub fn resume(&self) {
        self.command(Command::Resume);
    }

    /// Changes how many jobs run at once. At least one does.
    pub fn set_concurrency(&self, concurrency: u32) {
        self.command(Command::Concurrency(concurrency.max(1)));
    }

    /// Changes how many jobs may start in a while, over all workers of the queue that have a limiter; `None` = this one heeds only the
    /// queue's own rate limit.
    pub fn set_limiter(&self, limiter: Option<RateLimit>) {
        self.command(Command::Limiter(limiter));
    }

    /// Takes no more jobs, gives back those that did not start, waits for the handlers that run, and records how they ended.
    ///
    /// When the server is out of reach by then and stays so for `lock_duration`, or refuses everything for two seconds, nothing is recorded: those jobs run
    /// again when the lease has run out. To wait for handlers no longer than a while, drop this call and make a [`TypedWorker::close_now`].
    pub async fn close(&self) {
        self.end(Command::Close { force: false }).await;
    }

    /// Stops at once: handlers that run are dropped where they wait. Their jobs stay active until the lease runs out
    /// (`lock_duration`) and a scan of another worker brings them back.
    pub async fn close_now(&self) {
        self.end(Command::Close { force: true }).await;
    }

    async fn end(&self, close: Command) {
        self.command(close);
        let mut runner = self.runner.lock().await;
        if let Some(task) = runner.as_mut() {
            // its only way to fail is the end of the runtime
            let _ = task.await;
            *runner = None;
        }
    }

    fn command(&self, command: Command) {
        // a runner that has ended needs no command
        let _ = self.commands.send(command);
    }
}
