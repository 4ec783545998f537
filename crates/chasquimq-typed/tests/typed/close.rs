//! Ways for a worker to stop.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use chasquimq_typed::{unique_id, AddOptions, WorkerEvent, WorkerOptions};

use super::*;

#[tokio::test]
async fn a_paused_worker_takes_nothing_until_it_goes_on() {
    let stage = Stage::new().await;
    let (worker, mut events) = stage.worker(WorkerOptions::default(), |_| async { Ok(()) }).await;
    events
        .first(|event| matches!(event, WorkerEvent::Drained).then_some(()))
        .await;
    worker.pause();
    let (other, mut others) = stage.worker(WorkerOptions::default(), |_| async { Ok(()) }).await;
    let ids = stage.add_many(20).await;
    for _ in &ids {
        others.completed().await;
    }
    within(other.close()).await;
    assert!(events.0.try_recv().is_err(), "the paused worker did something");
    worker.resume();
    let last = stage.add(1, AddOptions::default()).await;
    assert_eq!(events.completed().await, last);
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_close_waits_for_what_runs_and_gives_back_the_rest() {
    let stage = Stage::new().await;
    stage.add_many(3).await;
    let (handler, mut starts, gate) = gated();
    let (worker, mut events) = stage.worker(concurrency(1), handler).await;
    let running = within(starts.recv()).await.expect("a start");
    let closing = worker.close();
    tokio::pin!(closing);
    let early = tokio::time::timeout(Duration::from_millis(20), &mut closing).await;
    assert!(early.is_err(), "closed while a handler ran");
    gate.add_permits(1);
    within(closing).await;
    assert_eq!(events.completed().await, running);
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.completed, counts.waiting, counts.active), (1, 2, 0));
    // a second close has nothing to do
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_dropped_worker_closes_itself() {
    let stage = Stage::new().await;
    let id = stage.add(1, AddOptions::default()).await;
    let (handler, mut starts, gate) = gated();
    let (worker, mut events) = stage.worker(WorkerOptions::default(), handler).await;
    within(starts.recv()).await.expect("a start");
    drop(worker);
    gate.add_permits(1);
    assert_eq!(events.completed().await, id);
    // the worker's task has ended when nobody can tell events any more
    within(async { while events.0.recv().await.is_some() {} }).await;
    stage.end().await;
}

#[tokio::test]
async fn jobs_of_a_worker_that_stopped_at_once_are_run_by_another() {
    let stage = Stage::new().await;
    let id = stage.add(1, AddOptions::default()).await;
    let short_lease = WorkerOptions {
        lock_duration: Duration::from_secs(1),
        lock_renew_time: Some(Duration::from_millis(50)),
        stalled_interval: Some(Duration::from_millis(50)),
        ..WorkerOptions::default()
    };
    let (handler, mut starts, _gate) = gated();
    let (worker, _events) = stage.worker(short_lease.clone(), handler).await;
    within(starts.recv()).await.expect("a start");
    within(worker.close_now()).await;
    let other_options = WorkerOptions {
        id: unique_id(),
        ..short_lease
    };
    let (other, mut events) = stage
        .worker(other_options, |job| async move { Ok(job.fields.stalled_counter) })
        .await;
    assert_eq!(events.completed().await, id);
    let found = stage.job(&id).await;
    assert_eq!(found.result::<u32>().expect("result"), Some(1));
    within(other.close()).await;
    stage.end_after_crash().await;
}

#[tokio::test]
async fn a_close_that_takes_too_long_can_be_cut_short() {
    let stage = Stage::new().await;
    stage.add_many(1).await;
    let (handler, mut starts, _gate) = gated();
    let (worker, _events) = stage.worker(WorkerOptions::default(), handler).await;
    within(starts.recv()).await.expect("a start");
    let early = tokio::time::timeout(Duration::from_millis(20), worker.close()).await;
    assert!(early.is_err(), "closed while a handler ran");
    within(worker.close_now()).await;
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.completed, counts.active), (0, 1));
    stage.end_after_crash().await;
}

#[tokio::test]
async fn a_close_waits_for_a_server_that_is_gone_as_long_as_its_lease_lasts() {
    let stage = Stage::new().await;
    stage.add_many(1).await;
    let wire = Wire::new();
    let (handler, mut starts, gate) = gated();
    let lock_duration = Duration::from_secs(4);
    let options = WorkerOptions {
        lock_duration,
        ..WorkerOptions::default()
    };
    let worker = TypedWorker::start(wire.options(), &stage.name, options, handler);
    let worker = within(worker).await.expect("worker");
    within(starts.recv()).await.expect("a start");
    wire.cut();
    gate.add_permits(1);
    let since = Instant::now();
    within(worker.close()).await;
    assert!(since.elapsed() >= lock_duration);
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.completed, counts.active), (0, 1));
    stage.end_after_crash().await;
}

/// A way to the server that can be cut.
struct Wire {
    port: u16,
    ends: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Wire {
    fn new() -> Self {
        let server = ConnectOptions::try_from(&redis_url()).expect("a URL");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let ends = Arc::new(Mutex::new(Some(Vec::new())));
        let open = ends.clone();
        thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.expect("a connection");
                let far = TcpStream::connect((server.host.as_str(), server.port)).expect("the server");
                let mut open = open.lock().expect("ends");
                // cut: the listener goes, too
                let Some(open) = open.as_mut() else { return };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().expect("a clone"), to.try_clone().expect("a clone"));
                    thread::spawn(move || io::copy(&mut from, &mut to));
                }
                open.extend([near, far]);
            }
        });
        Self { port, ends }
    }

    fn options(&self) -> ConnectOptions {
        let server = ConnectOptions::try_from(&redis_url()).expect("a URL");
        ConnectOptions {
            host: "127.0.0.1".into(),
            port: self.port,
            ..server
        }
    }

    fn cut(&self) {
        for end in self.ends.lock().expect("ends").take().expect("an open wire") {
            // the other side may have closed it
            let _ = end.shutdown(Shutdown::Both);
        }
        // the listener notices, and goes
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}
