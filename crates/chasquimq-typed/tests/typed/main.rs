//! Typed queues and workers, against the server that `REDIS_URL` names.

#[expect(dead_code, reason = "the script tests look at more than these")]
#[path = "../../../chasquimq/tests/probe/mod.rs"]
mod probe;
#[expect(dead_code, reason = "the life tests break more than these")]
#[path = "../../../chasquimq/tests/life/proxy.rs"]
mod proxy;

mod close;
mod fail;
mod flow;
mod limit;
mod queue;
mod run;
mod stop;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use chasquimq_typed::{
    system_now_ms, unique_id, AddOptions, BulkJob, ConnectOptions, FailureState, FoundJob, JobError, Keys, TypedJob,
    TypedQueue, TypedWorker, TypedWorkerOptions, WorkerEvent, WorkerOptions,
};
use probe::{server_url, Probe};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, Semaphore};

/// No test needs so long; one that does hangs.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Mail {
    to: String,
    copies: u32,
}

fn mail(copies: u32) -> Mail {
    Mail {
        to: "ñandú@example.com".into(),
        copies,
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("took too long")
}

/// A queue of a test's own, gone at its end.
struct Stage {
    name: String,
    queue: TypedQueue<Mail>,
    probe: Probe,
}

impl Stage {
    async fn new() -> Self {
        let name = format!("typed-{}", unique_id());
        let queue = within(TypedQueue::connect(&server_url(), &name)).await.expect("queue");
        let probe = Probe::of(Keys::from(&name));
        Self { name, queue, probe }
    }

    async fn add(&self, copies: u32, options: AddOptions) -> String {
        within(self.queue.add("mail", &mail(copies), &options))
            .await
            .expect("added")
    }

    async fn add_many(&self, count: u32) -> Vec<String> {
        self.add_alike(count, AddOptions::default()).await
    }

    async fn add_alike(&self, count: u32, options: AddOptions) -> Vec<String> {
        let data: Vec<Mail> = (0..count).map(mail).collect();
        let jobs: Vec<BulkJob<'_, Mail>> = data
            .iter()
            .map(|data| BulkJob {
                name: "mail",
                data,
                options: &options,
            })
            .collect();
        within(self.queue.add_bulk(&jobs)).await.expect("added")
    }

    async fn worker<H, F, R>(&self, options: WorkerOptions, handler: H) -> (TypedWorker<Mail>, Events)
    where
        H: Fn(TypedJob<Mail>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<R, JobError>> + Send + 'static,
        R: Serialize + Send,
    {
        let (tell, events) = mpsc::unbounded_channel();
        let options = TypedWorkerOptions::from(options).on_event(move |event| {
            let _ = tell.send(event);
        });
        let worker = within(TypedWorker::start(&server_url(), &self.name, options, handler)).await;
        (worker.expect("worker"), Events(events))
    }

    /// A look-up of a job that exists.
    async fn job(&self, id: &str) -> FoundJob<Mail> {
        within(self.queue.job(id)).await.expect("looked up").expect("a job")
    }

    async fn state(&self, id: &str) -> String {
        within(self.queue.state(id)).await.expect("state")
    }

    /// Removes the queue, and fails when a key stays behind: something was not closed.
    async fn end(self) {
        // what a worker was answered is remembered for a minute after it left
        self.remove(&["memo:"]).await;
    }

    /// As [`Stage::end`], for a queue with a worker that could not tidy up.
    async fn end_after_crash(self) {
        self.remove(&["memo:", "lease:"]).await;
    }

    /// Pardoned keys go by themselves, later.
    async fn remove(mut self, pardoned: &[&str]) {
        let queue = self.queue.untyped();
        within(queue.obliterate(system_now_ms(), true, 1000))
            .await
            .expect("obliterated");
        within(self.queue.close()).await;
        let mut left = self.probe.suffixes();
        left.retain(|suffix| !pardoned.iter().any(|pardoned| suffix.starts_with(pardoned)));
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

struct Events(mpsc::UnboundedReceiver<WorkerEvent>);

impl Events {
    /// Waits for the first event that `pick` makes something of.
    async fn first<T>(&mut self, pick: impl Fn(WorkerEvent) -> Option<T>) -> T {
        within(async {
            loop {
                let event = self.0.recv().await.expect("the worker ended");
                if let Some(found) = pick(event) {
                    return found;
                }
            }
        })
        .await
    }

    async fn completed(&mut self) -> String {
        self.first(|event| match event {
            WorkerEvent::Completed { id } => Some(id),
            _ => None,
        })
        .await
    }

    async fn failed(&mut self) -> (String, String, FailureState, u32) {
        self.first(|event| match event {
            WorkerEvent::Failed {
                id,
                reason,
                state,
                attempts_made,
            } => Some((id, reason, state, attempts_made)),
            _ => None,
        })
        .await
    }
}

fn concurrency(concurrency: u32) -> WorkerOptions {
    WorkerOptions {
        concurrency,
        ..WorkerOptions::default()
    }
}

type Handled = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;

/// A handler that tells each start and then waits for a permit; the starts; the permits.
fn gated() -> (
    impl Fn(TypedJob<Mail>) -> Handled,
    mpsc::UnboundedReceiver<String>,
    Arc<Semaphore>,
) {
    let (started, starts) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let permits = gate.clone();
    let handler = move |job: TypedJob<Mail>| -> Handled {
        let (started, permits) = (started.clone(), permits.clone());
        Box::pin(async move {
            let _ = started.send(job.id);
            permits.acquire().await?.forget();
            Ok(())
        })
    };
    (handler, starts, gate)
}
