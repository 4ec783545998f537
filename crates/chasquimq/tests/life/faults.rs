//! A connection that breaks at any moment: nothing is lost, nothing is done twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use chasquimq::{unique_id, ConnectOptions, Queue, WorkerOptions};
use tokio::sync::Semaphore;

use crate::{
    probe::connect_options,
    proxy::Proxy,
    runner::{End, Runner},
    world::{add_to, until, waits_once_each, World, PATIENCE},
};

const JOBS: usize = 100_000;
const JOBS_A_BATCH: usize = 500;
const BATCHES_AT_ONCE: usize = 8;
/// Digits of data of which a frame has more bytes than may lie in the log.
const LONG: usize = 700;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_jobs_are_added_once_each() {
    let proxy = Proxy::start(5).await;
    let world = World::behind(proxy.connect_options());
    let numbers = add_in_parallel(&world.queue).await;
    assert!(proxy.cuts() > 5, "cut {} times only", proxy.cuts());
    proxy.calm();

    let mut numbers: Vec<u64> = numbers;
    numbers.sort_unstable();
    let expected = (0..JOBS / JOBS_A_BATCH).map(|batch| (batch * JOBS_A_BATCH) as u64 + 1);
    assert!(
        numbers.iter().copied().eq(expected),
        "numbers of the batches: {numbers:?}"
    );
    assert_eq!(world.counts().await.waiting, JOBS as u64);
    waits_once_each(&world.end(), JOBS);
}

/// Adds `JOBS` jobs whose data counts up. Gives the first number of each batch.
async fn add_in_parallel(queue: &Arc<Queue>) -> Vec<u64> {
    let tasks: Vec<_> = (0..BATCHES_AT_ONCE)
        .map(|task| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut numbers = Vec::new();
                for batch in (task..JOBS / JOBS_A_BATCH).step_by(BATCHES_AT_ONCE) {
                    // some frames are so long that they lie apart
                    let digits = if batch % 8 == 0 { LONG } else { 1 };
                    let data = (0..JOBS_A_BATCH).map(|job| format!("{:0digits$}", batch * JOBS_A_BATCH + job));
                    numbers.push(add_to(&queue, "{}", data).await.first);
                }
                numbers
            })
        })
        .collect();
    let mut numbers = Vec::new();
    for task in tasks {
        numbers.extend(task.await.expect("additions"));
    }
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_the_connection_and_says_nothing_is_as_bad_as_none() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let options = ConnectOptions {
        port: silent.local_addr().expect("an address").port(),
        connect_timeout: Duration::from_millis(100),
        ..ConnectOptions::default()
    };
    let queue = Queue::new(options, World::new().keys.clone(), |_| {});
    let error = queue.ready().await.expect_err("no server");
    assert_eq!(error.to_string(), "connect ETIMEDOUT");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_complete_once_each() {
    const JOBS: usize = 8_000;
    let world = World::behind(connect_options());
    let proxy = Proxy::start(6).await;
    let runs: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let workers: Vec<Runner> = (0..3)
        .map(|worker| {
            let runs = runs.clone();
            let options = WorkerOptions {
                concurrency: 20,
                watches_news: cfg!(unix) && worker != 0,
                ..WorkerOptions::default()
            };
            Runner::start(proxy.connect_options(), world.keys.clone(), options, move |job| {
                *runs.lock().expect("runs").entry(job.id).or_default() += 1;
                async { End::Completed(Some("1".to_owned())) }
            })
        })
        .collect();
    // records and frames, in many batches, so that workers wait and wake in between
    for batch in 0..JOBS / 100 {
        let options = if batch % 4 == 0 { r#"{"delay":1}"# } else { "{}" };
        let digits = if batch % 4 == 1 { LONG } else { 1 };
        world.add(options, (0..100).map(|job| format!("{job:0digits$}"))).await;
    }
    until("all jobs to complete", || async {
        world.counts().await.completed == JOBS as u64
    })
    .await;
    let cuts = proxy.cuts();
    proxy.calm();
    for worker in workers {
        let seen = worker.close().await;
        assert!(seen.rejected.is_empty() && seen.errors.is_empty(), "{seen:?}");
    }
    assert!(cuts > 5, "cut {cuts} times only");
    let runs = runs.lock().expect("runs");
    assert_eq!(runs.len(), JOBS);
    assert!(runs.values().all(|times| *times == 1));
    drop(runs);
    assert_eq!(world.end().completed().len(), JOBS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_end_survives_a_broken_connection() {
    const JOBS: usize = 2000;
    let world = World::behind(connect_options());
    let proxy = Proxy::start(10).await;
    let runs: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let counted = runs.clone();
    let options = WorkerOptions {
        concurrency: 50,
        watches_news: cfg!(unix),
        ..WorkerOptions::default()
    };
    let worker = Runner::start(proxy.connect_options(), world.keys.clone(), options, move |job| {
        let run = {
            let mut runs = counted.lock().expect("runs");
            let run = runs.entry(job.id.clone()).or_default();
            *run += 1;
            *run
        };
        // a third completes at once, a third on its second try, a third never
        let kind = job.data.parse::<usize>().expect("number") % 3;
        async move {
            match kind {
                0 => End::DONE,
                1 if run == 2 => End::DONE,
                _ => End::Failed("boom"),
            }
        }
    });
    for options in [
        r#"{"attempts":2}"#,
        r#"{"attempts":2,"backoff":{"type":"fixed","delay":5}}"#,
    ] {
        world.add(options, (0..JOBS / 2).map(|job| job.to_string())).await;
    }
    until("all jobs to end", || async {
        let counts = world.counts().await;
        counts.completed + counts.failed == JOBS as u64
    })
    .await;
    proxy.calm();
    let counts = world.counts().await;
    let seen = worker.close().await;
    assert!(seen.rejected.is_empty() && seen.errors.is_empty(), "{seen:?}");
    let never = 2 * (0..JOBS / 2).filter(|job| job % 3 == 2).count();
    assert_eq!((counts.completed, counts.failed), ((JOBS - never) as u64, never as u64));
    let total: usize = runs.lock().expect("runs").values().sum();
    let at_once = 2 * (0..JOBS / 2).filter(|job| job % 3 == 0).count();
    assert_eq!(total, at_once + 2 * (JOBS - at_once));
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_come_and_go_on_broken_connections() {
    const JOBS: usize = 10_000;
    let world = World::behind(connect_options());
    let proxy = Proxy::start(12).await;
    let runs: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let adding = tokio::spawn({
        let queue = world.queue.clone();
        async move {
            for batch in 0..JOBS / 50 {
                let options = if batch % 5 == 0 { r#"{"delay":3}"# } else { "{}" };
                add_to(&queue, options, (0..50).map(|job| job.to_string())).await;
                // so that workers find the queue empty now and then
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    let all_done = || async { world.counts().await.completed == JOBS as u64 };
    let come_and_go = |number: u64| {
        let (runs, proxy, all_done) = (runs.clone(), &proxy, &all_done);
        let keys = world.keys.clone();
        async move {
            for life in 1.. {
                let runs = runs.clone();
                let options = WorkerOptions {
                    concurrency: 10,
                    watches_news: cfg!(unix) && number != 1,
                    ..WorkerOptions::default()
                };
                let worker = Runner::start(proxy.connect_options(), keys.clone(), options, move |job| {
                    *runs.lock().expect("runs").entry(job.id).or_default() += 1;
                    async { End::DONE }
                });
                // lives of many lengths
                tokio::time::sleep(Duration::from_millis(20 + (life * number * 37) % 200)).await;
                let seen = worker.close().await;
                assert!(seen.rejected.is_empty() && seen.errors.is_empty(), "{seen:?}");
                if all_done().await {
                    break;
                }
            }
        }
    };
    let lives = async { tokio::join!(come_and_go(1), come_and_go(2), come_and_go(3)) };
    let ended = tokio::time::timeout(PATIENCE, lives).await;
    assert!(ended.is_ok(), "{:?}", world.counts().await);
    adding.await.expect("additions");
    let runs = runs.lock().expect("runs");
    assert_eq!(runs.len(), JOBS);
    let twice: Vec<_> = runs.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    drop(runs);
    assert_eq!(world.end().completed().len(), JOBS);
}

/// The server hands news to a connection of an idle worker's that is gone without its knowing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_that_a_lost_wait_takes_along_is_looked_for() {
    let mut world = World::new();
    let proxy = Proxy::start(0).await;
    let name = unique_id();
    let connect = ConnectOptions {
        client_name: Some(name.clone()),
        ..proxy.connect_options()
    };
    let options = WorkerOptions {
        concurrency: 2,
        // no time of a wait ends within this test
        drain_delay: 4 * PATIENCE,
        stalled_interval: None,
        ..WorkerOptions::default()
    };
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let worker = Runner::start(connect, world.keys.clone(), options, move |job| {
        let gate = opened.clone();
        async move {
            // a worker that holds a job hears of work all the same
            if job.data == "0" {
                drop(gate.acquire().await);
            }
            End::DONE
        }
    });
    world.add_plain(1).await;
    until_waiting(&mut world, &name, 1).await;
    proxy.orphan();
    // the server tells the lost one as well
    until_waiting(&mut world, &name, 2).await;
    world.add("{}", ["1".to_owned()]).await;
    world.completed(1).await;
    gate.add_permits(1);
    world.completed(2).await;
    let seen = worker.close().await;
    assert!(seen.rejected.is_empty() && seen.errors.is_empty(), "{seen:?}");
    world.end();
}

/// Waits until workers hear by so many connections of this name.
async fn until_waiting(world: &mut World, name: &str, connections: usize) {
    let named = format!(" name={name} ");
    for _ in 0..PATIENCE.as_millis() {
        let clients: String = world.server(&["CLIENT", "LIST"]);
        let waiting = clients
            .lines()
            .filter(|line| line.contains(&named) && line.contains(" ssub=1 "));
        if waiting.count() == connections {
            return;
        }
        // the server gives no signal of what is asked here
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("waited in vain for {connections} connections");
}
