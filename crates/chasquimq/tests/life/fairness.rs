//! Who gets which jobs.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Mutex,
    },
    time::{Duration, Instant},
};

use chasquimq::{
    system_now_ms,
    worker::{Batch, Completed, Message, Report},
    Worker, WorkerOptions,
};
use tokio::sync::mpsc;

use crate::{
    probe::connect_options,
    runner::End,
    world::{until, World, PATIENCE},
};

/// A worker whose event loop is blocked: it is handed jobs, and starts none.
fn blocked(world: &World, concurrency: u32) -> (Worker, mpsc::UnboundedReceiver<Batch>) {
    let options = WorkerOptions {
        concurrency,
        ..WorkerOptions::default()
    };
    by_hand(world, options)
}

/// A worker whose jobs the test starts and ends.
fn by_hand(world: &World, options: WorkerOptions) -> (Worker, mpsc::UnboundedReceiver<Batch>) {
    let (sender, batches) = mpsc::unbounded_channel();
    let sink = Arc::new(move |message: Message| {
        if let Some(batch) = message.jobs {
            // the test may be over
            let _ = sender.send(batch);
        }
    });
    let worker = Worker::new(connect_options(), world.keys.clone(), options, sink);
    worker.run(system_now_ms());
    (worker, batches)
}

/// The only worker waits for jobs: whoever does takes a marker.
async fn until_it_waits(world: &mut World) {
    let key = world.keys.key("wake");
    world.server::<i64>(&["ZADD", &key, "0", "0"]);
    while world.command("EXISTS", "wake") == redis::Value::Int(1) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_workers_share_one_addition_of_slow_jobs() {
    let world = World::new();
    let runs: Arc<Vec<AtomicUsize>> = Arc::new((0..10).map(|_| AtomicUsize::new(0)).collect());
    let workers: Vec<_> = (0..10)
        .map(|worker| {
            let runs = runs.clone();
            world.worker(WorkerOptions::default(), move |_| {
                runs[worker].fetch_add(1, Ordering::Relaxed);
                async {
                    // a slow job
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    End::DONE
                }
            })
        })
        .collect();
    world.add_plain(50).await;
    until("ten workers to be busy", || async { world.counts().await.active == 10 }).await;
    world.completed(50).await;
    let runs: Vec<usize> = runs.iter().map(|runs| runs.load(Ordering::Relaxed)).collect();
    assert_eq!(runs.iter().sum::<usize>(), 50);
    assert!(
        runs.iter().all(|runs| (3..=7).contains(runs)),
        "jobs a worker: {runs:?}"
    );
    for worker in workers {
        worker.close().await;
    }
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_worker_holds_what_its_slots_hold() {
    let world = World::new();
    world.add_plain(40).await;
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let queue = world.queue.clone();
    let options = WorkerOptions {
        concurrency: 3,
        ..WorkerOptions::default()
    };
    let worker = world.worker(options, move |_| {
        let (queue, seen) = (queue.clone(), seen.clone());
        async move {
            let counts = queue.counts().await.expect("counts");
            seen.fetch_max(counts.active as usize, Ordering::Relaxed);
            End::DONE
        }
    });
    world.completed(40).await;
    assert_eq!(most.load(Ordering::Relaxed), 3);
    worker.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_start_in_the_order_in_which_they_were_added() {
    let world = World::new();
    let order = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..10 {
        world.add_plain(70).await;
    }
    let started = order.clone();
    let worker = world.worker(WorkerOptions::default(), move |job| {
        started
            .lock()
            .expect("order")
            .push(job.id.parse::<u64>().expect("number"));
        async { End::DONE }
    });
    world.completed(700).await;
    worker.close().await;
    let order = order.lock().expect("order");
    assert!(order.iter().copied().eq(1..=700), "{order:?}");
    drop(order);
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn surplus_that_does_not_start_goes_to_others() {
    let world = World::new();
    // short jobs earn the worker a surplus, then each job is slow
    world.add_plain(3000).await;
    let slow = |job: crate::runner::Job| async move {
        if job.id.parse::<u64>().is_ok_and(|number| number > 2000) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        End::DONE
    };
    let first = world.worker(WorkerOptions::default(), slow);
    world.completed(2000).await;
    let second = Arc::new(AtomicUsize::new(0));
    let runs = second.clone();
    let options = WorkerOptions {
        concurrency: 200,
        ..WorkerOptions::default()
    };
    let other = world.worker(options, move |job| {
        runs.fetch_add(1, Ordering::Relaxed);
        slow(job)
    });
    // alone, the first worker would need twenty seconds
    world.completed(3000).await;
    assert!(second.load(Ordering::Relaxed) > 500);
    first.close().await;
    other.close().await;
    let snapshot = world.end();
    assert_eq!(snapshot.completed().len(), 3000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_draws_goes_to_a_worker_that_is_idle() {
    let mut world = World::new();
    let (blocked, mut batches) = blocked(&world, 5);
    until_it_waits(&mut world).await;
    world.add_plain(4).await;
    let first = batches.recv().await.expect("jobs");
    assert_eq!(first.jobs.len(), 1, "others may be idle");
    assert!(blocked.draw(first.offer));
    blocked.heard();
    // nobody was
    let batch = batches.recv().await.expect("jobs");
    assert_eq!(batch.jobs.len(), 3);
    assert!(blocked.draw(batch.offer));
    let idle = world.worker(WorkerOptions::default(), |_| async { End::DONE });
    world.completed(2).await;
    // what comes meanwhile is not the blocked one's either
    world.add_plain(1).await;
    world.completed(3).await;
    idle.close().await;
    assert!(!blocked.draw(batch.offer));
    // it is heard again
    world.add_plain(1).await;
    let next = loop {
        let next = batches.recv().await.expect("jobs");
        if blocked.draw(next.offer) {
            break next;
        }
    };
    complete(&blocked, 1, vec![first.base, batch.base, next.base]);
    world.completed(6).await;
    blocked.close(false).await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_draws_stays_while_no_other_worker_is_idle() {
    let mut world = World::new();
    let (blocked, mut batches) = blocked(&world, 2);
    until_it_waits(&mut world).await;
    world.add_plain(2).await;
    let first = batches.recv().await.expect("jobs");
    blocked.heard();
    let second = batches.recv().await.expect("jobs");
    // it looks whether anybody takes another one
    while world.command("EXISTS", "wake") == redis::Value::Int(0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.counts().await.active, 2);
    assert!(blocked.draw(first.offer) && blocked.draw(second.offer));
    blocked.close(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_took_jobs_as_it_waited_waits_again_beside_the_marker() {
    let mut world = World::new();
    let options = WorkerOptions {
        concurrency: 2,
        // longer than the test waits
        drain_delay: Duration::from_secs(3_600),
        ..WorkerOptions::default()
    };
    let (worker, mut batches) = by_hand(&world, options);
    let waiting = world.keys.key("waiting-workers");
    until_a_member(&mut world, &waiting).await;
    world.add_plain(1).await;
    let first = drawn(&worker, &mut batches, 1).await;
    until_a_member(&mut world, &waiting).await;
    // it was told of work, and has not heard yet: what is added now leaves the marker
    world.server::<Vec<String>>(&["SPOP", &waiting, "1"]);
    world.add_plain(2).await;
    complete(&worker, 1, first);
    let others = drawn(&worker, &mut batches, 2).await;
    assert_eq!(world.command("EXISTS", "wake"), redis::Value::Int(1));
    complete(&worker, 2, others);
    until_a_member(&mut world, &waiting).await;
    world.completed(3).await;
    worker.close(false).await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_paused_and_runs_again_at_once_is_told_of_work() {
    let mut world = World::new();
    let options = WorkerOptions {
        // longer than the test waits
        drain_delay: Duration::from_secs(3_600),
        ..WorkerOptions::default()
    };
    let (worker, mut batches) = by_hand(&world, options);
    let waiting = world.keys.key("waiting-workers");
    for round in 1..=500 {
        until_a_member(&mut world, &waiting).await;
        worker.pause();
        // in whatever its loop does meanwhile
        let paused = Instant::now();
        while paused.elapsed() < Duration::from_micros(round) {
            std::hint::spin_loop();
        }
        worker.run(system_now_ms());
        world.add_plain(1).await;
        let handles = tokio::time::timeout(PATIENCE, drawn(&worker, &mut batches, 1)).await;
        complete(&worker, round, handles.unwrap_or_else(|_| panic!("round {round}")));
        world.completed(round).await;
    }
    worker.close(false).await;
    world.end();
}

/// Starts so many jobs of a worker.
async fn drawn(worker: &Worker, batches: &mut mpsc::UnboundedReceiver<Batch>, jobs: usize) -> Vec<u32> {
    let mut drawn = Vec::new();
    while drawn.len() < jobs {
        let batch = batches.recv().await.expect("jobs");
        assert!(worker.draw(batch.offer));
        worker.heard();
        drawn.extend((0..batch.jobs.len() as u32).map(|at| batch.base + at));
    }
    drawn
}

fn complete(worker: &Worker, number: u64, handles: Vec<u32>) {
    worker.finish(Report {
        number,
        now_ms: system_now_ms(),
        completed: handles
            .into_iter()
            .map(|handle| Completed { handle, result: None })
            .collect(),
        ..Report::default()
    });
}

async fn until_a_member(world: &mut World, key: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while world.server::<usize>(&["SCARD", key]) == 0 {
        assert!(Instant::now() < deadline, "nobody waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
