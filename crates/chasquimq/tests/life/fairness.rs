//! Who gets which jobs.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Mutex,
    },
    time::Duration,
};

use chasquimq::WorkerOptions;

use crate::{
    runner::End,
    world::{until, World},
};

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
