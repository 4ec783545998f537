//! Ways for a worker to stop.

use std::time::{Duration, Instant};

use chasquimq_typed::{unique_id, AddOptions, WorkerEvent, WorkerOptions};

use super::{proxy::Proxy, *};

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
    let proxy = Proxy::start(0).await;
    let (handler, mut starts, gate) = gated();
    let lock_duration = Duration::from_secs(4);
    let options = WorkerOptions {
        lock_duration,
        ..WorkerOptions::default()
    };
    let worker = TypedWorker::start(proxy.connect_options(), &stage.name, options, handler);
    let worker = within(worker).await.expect("worker");
    within(starts.recv()).await.expect("a start");
    proxy.cut_off();
    gate.add_permits(1);
    let since = Instant::now();
    within(worker.close()).await;
    assert!(since.elapsed() >= lock_duration);
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.completed, counts.active), (0, 1));
    stage.end_after_crash().await;
}
