//! Stopping: what runs ends, what does not goes back, nothing is lost.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc,
    },
    time::{Duration, Instant},
};

use chasquimq::{system_now_ms, WorkerOptions};

use crate::{
    proxy::Proxy,
    runner::{End, Runner},
    world::{until, World, PATIENCE},
};

/// A handler that counts, and takes so long.
fn counting(
    runs: &Arc<AtomicUsize>,
    time: Duration,
) -> impl Fn(crate::runner::Job) -> std::pin::Pin<Box<dyn std::future::Future<Output = End> + Send>> {
    let runs = runs.clone();
    move |_| {
        runs.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            tokio::time::sleep(time).await;
            End::DONE
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_in_full_flight_loses_nothing_and_runs_nothing_twice() {
    const JOBS: usize = 20_000;
    let world = World::new();
    world.add_plain(JOBS).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let mut closed = 0;
    loop {
        let options = WorkerOptions {
            concurrency: 20,
            ..WorkerOptions::default()
        };
        let before = world.counts().await.completed;
        let counted = runs.clone();
        let worker = world.worker(options, move |_| {
            let run = counted.fetch_add(1, Ordering::Relaxed) as u64;
            async move {
                // slow in the end: the close comes before all are done
                if run > before + 4000 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                End::DONE
            }
        });
        until("some jobs to complete", || async {
            world.counts().await.completed >= (before + 2000).min(JOBS as u64)
        })
        .await;
        let seen = worker.close().await;
        assert!(seen.rejected.is_empty() && seen.errors.is_empty(), "{seen:?}");
        closed += 1;
        let counts = world.counts().await;
        assert_eq!(counts.active, 0, "after a close");
        assert_eq!(counts.completed as usize, runs.load(Ordering::Relaxed));
        if counts.completed == JOBS as u64 {
            break;
        }
    }
    assert!(closed > 1);
    let snapshot = world.end();
    assert_eq!(snapshot.completed().len(), JOBS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_waits_for_running_jobs() {
    let world = World::new();
    world.add_plain(5).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let options = WorkerOptions {
        concurrency: 3,
        ..WorkerOptions::default()
    };
    let worker = world.worker(options, counting(&runs, Duration::from_millis(300)));
    until("jobs to run", || async { runs.load(Ordering::Relaxed) == 3 }).await;
    worker.close().await;
    let counts = world.counts().await;
    assert_eq!((counts.completed, counts.active, counts.waiting), (3, 0, 2));
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_closing_worker_leaves_starts_elsewhere_at_once() {
    let world = World::new();
    let runs = Arc::new(AtomicUsize::new(0));
    let idle_runs = Arc::new(AtomicUsize::new(0));
    let options = || WorkerOptions {
        concurrency: 5,
        drain_delay: 2 * PATIENCE,
        ..WorkerOptions::default()
    };
    let closing = world.worker(options(), counting(&runs, Duration::from_millis(200)));
    world.add_plain(5).await;
    until("jobs to run", || async { runs.load(Ordering::Relaxed) == 5 }).await;
    let idle = world.worker(options(), counting(&idle_runs, Duration::ZERO));
    until("the other to wait", || async { idle.seen().drained > 0 }).await;
    // it is told of these, and does not care
    closing.worker().pause();
    let begun = Instant::now();
    world.add_plain(50).await;
    until("the jobs to run", || async {
        runs.load(Ordering::Relaxed) + idle_runs.load(Ordering::Relaxed) == 55
    })
    .await;
    // an idle worker looks by itself when nobody has patience any more
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    // a fetch may have been under way
    assert!(idle_runs.load(Ordering::Relaxed) >= 45);
    closing.close().await;
    idle.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_closes_at_once() {
    let world = World::new();
    let options = WorkerOptions {
        drain_delay: 2 * PATIENCE,
        ..WorkerOptions::default()
    };
    let worker = world.worker(options, |_| async { End::DONE });
    until("the queue to be found empty", || async { worker.seen().drained > 0 }).await;
    let begun = Instant::now();
    worker.close().await;
    // not only when its wait is over
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_does_not_wait_for_a_server_that_is_out_of_reach() {
    let world = World::new();
    let proxy = Proxy::start(0).await;
    let worker = Runner::start(
        proxy.connect_options(),
        world.keys.clone(),
        WorkerOptions::default(),
        |_| async { End::DONE },
    );
    until("the queue to be found empty", || async { worker.seen().drained > 0 }).await;
    proxy.cut_off();
    let begun = Instant::now();
    worker.close().await;
    // not only when its lease would be over, after 30 s
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_queue_gets_back_what_did_not_start() {
    let world = World::new();
    world.add_plain(5000).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let options = WorkerOptions {
        concurrency: 4,
        ..WorkerOptions::default()
    };
    let worker = world.worker(options, counting(&runs, Duration::from_millis(1)));
    world.completed(1000).await;
    world.queue.pause(system_now_ms(), true).await.expect("a pause");
    until("nothing to be active", || async { world.counts().await.active == 0 }).await;
    let stopped = world.counts().await;
    assert!(stopped.completed < 5000, "{stopped:?}");
    assert_eq!((stopped.completed + stopped.waiting) as usize, 5000);
    // long enough for a worker that does not stop to show it
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.counts().await, stopped);
    world
        .queue
        .pause(system_now_ms(), false)
        .await
        .expect("the end of a pause");
    world.completed(5000).await;
    worker.close().await;
    assert_eq!(runs.load(Ordering::Relaxed), 5000);
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_obliterated_queue_serves_its_worker_again() {
    let world = World::new();
    world.add_plain(500).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let worker = world.worker(WorkerOptions::default(), counting(&runs, Duration::from_millis(1)));
    world.completed(100).await;
    world
        .queue
        .obliterate(system_now_ms(), true, 100)
        .await
        .expect("the end of a queue");
    world.add_plain(10).await;
    until("the new jobs to complete", || async {
        let counts = world.counts().await;
        counts.waiting + counts.active == 0
    })
    .await;
    worker.close().await;
    world.end();
}
