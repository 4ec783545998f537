//! Answers that cannot be read: what they brought is run all the same, once, and nothing stays active.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use chasquimq::WorkerOptions;

use crate::{
    probe::connect_options,
    proxy::{Garble, Proxy},
    runner::{End, Job, Runner, Seen},
    world::{until, World},
};

type Runs = Arc<Mutex<HashMap<String, usize>>>;

/// A worker behind a proxy, and how often it ran each job.
fn worker_behind(proxy: &Proxy, world: &World, options: WorkerOptions) -> (Runs, Runner) {
    let runs = Runs::default();
    let noted = runs.clone();
    let worker = Runner::start(proxy.connect_options(), world.keys.clone(), options, move |job| {
        *noted.lock().expect("runs").entry(job.id).or_default() += 1;
        async { End::DONE }
    });
    (runs, worker)
}

/// Each of so many jobs ran once, and nothing is left.
async fn ran_once_each(world: World, runs: &Runs, jobs: usize) {
    let counts = world.counts().await;
    assert_eq!((counts.completed, counts.active, counts.waiting), (jobs as u64, 0, 0));
    let runs = runs.lock().expect("runs").clone();
    let others: Vec<_> = runs.iter().filter(|(_, times)| **times != 1).collect();
    assert!(
        others.is_empty() && runs.len() == jobs,
        "{} jobs: {others:?}",
        runs.len()
    );
    world.end();
}

/// Adds jobs while one answer in a while is garbled. Some wait for the worker, and for some the worker waits.
async fn run(kind: Garble, concurrency: u32, watches_news: bool) -> (World, Runs, Seen, usize) {
    const ROUNDS: usize = 40;
    let world = World::behind(connect_options());
    let proxy = Proxy::start(0).await;
    let options = WorkerOptions {
        concurrency,
        watches_news,
        ..WorkerOptions::default()
    };
    let (runs, worker) = worker_behind(&proxy, &world, options);
    let mut added = 0;
    for round in 0..ROUNDS {
        if round % 3 == 1 {
            proxy.garble(kind, 1);
        }
        // records, frames, and both
        if round % 4 != 0 {
            world.add(r#"{"priority":1}"#, (0..5).map(|job| job.to_string())).await;
            added += 5;
        }
        if round % 4 != 1 {
            world.add_plain(5).await;
            added += 5;
        }
        if round % 2 == 0 {
            world.completed(added).await;
        }
    }
    world.completed(added).await;
    let garbled = proxy.garbled();
    (world, runs, worker.close().await, garbled)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_no_reply_breaks_the_connection_and_loses_nothing() {
    for watches_news in [false, cfg!(unix)] {
        let (world, runs, seen, garbled) = run(Garble::Foreign, 3, watches_news).await;
        assert!(garbled > 5, "{garbled}");
        assert!(seen.rejected.is_empty() && seen.errors.is_empty(), "{seen:?}");
        assert!(seen.stalled.is_empty(), "{seen:?}");
        let told = |fault: &String| fault.contains("does not speak the protocol of Redis: not of RESP2: ?9");
        assert!(!seen.faults.is_empty() && seen.faults.iter().all(told), "{seen:?}");
        let jobs = world.counts().await.completed as usize;
        ran_once_each(world, &runs, jobs).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_cannot_be_read_is_asked_for_again() {
    for kind in [Garble::Shape, Garble::Jobs] {
        for watches_news in [false, cfg!(unix)] {
            let (world, runs, seen, garbled) = run(kind, 3, watches_news).await;
            assert!(garbled > 5, "{garbled}");
            assert!(seen.rejected.is_empty() && seen.stalled.is_empty(), "{seen:?}");
            let told = |error: &String| error.contains(" is not readable: ");
            assert!(seen.errors.len() >= garbled && seen.errors.iter().all(told), "{seen:?}");
            let jobs = world.counts().await.completed as usize;
            ran_once_each(world, &runs, jobs).await;
        }
    }
}

/// The next step may be under way by then, and the server remembers that one alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_answer_brought_that_cannot_be_asked_for_goes_back() {
    const JOBS: usize = 10_000;
    const ANSWERS: usize = 8;
    let world = World::behind(connect_options());
    let proxy = Proxy::start(0).await;
    world
        .add(r#"{"priority":1}"#, (0..JOBS).map(|job| job.to_string()))
        .await;
    let options = WorkerOptions {
        concurrency: 20,
        ..WorkerOptions::default()
    };
    let runs = Runs::default();
    let noted = runs.clone();
    let handler = move |job: Job| {
        *noted.lock().expect("runs").entry(job.id).or_default() += 1;
        async { End::DONE }
    };
    let worker = Runner::start_with(proxy.connect_options(), world.keys.clone(), options, handler, 4);
    for answer in 0..ANSWERS {
        world.completed((answer * 1000) as u64).await;
        proxy.garble(Garble::Columns, 1);
    }
    world.completed(JOBS as u64).await;
    assert_eq!(proxy.garbled(), ANSWERS);
    let seen = worker.close().await;
    eprintln!(
        "STALLED {} REJ {} ERR {}",
        seen.stalled.len(),
        seen.rejected.len(),
        seen.errors.len()
    );
    let told = |error: &String| error.contains(" is not readable: ");
    assert!(seen.errors.len() >= ANSWERS && seen.errors.iter().all(told), "{seen:?}");
    // an end that nobody knows to be recorded is told as none
    assert!(seen.rejected.iter().all(told), "{seen:?}");
    ran_once_each(world, &runs, JOBS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_can_ask_for_goes_back_and_runs_when_the_server_can_be_read_again() {
    let world = World::behind(connect_options());
    let proxy = Proxy::start(0).await;
    world.add_plain(10).await;
    world.add(r#"{"jobId":"x"}"#, ["0".to_owned()]).await;
    // more than it asks for an answer
    proxy.garble(Garble::Shape, 6);
    let options = WorkerOptions {
        concurrency: 20,
        ..WorkerOptions::default()
    };
    let (runs, worker) = worker_behind(&proxy, &world, options);
    world.completed(11).await;
    assert_eq!(proxy.garbled(), 6);
    let seen = worker.close().await;
    assert!(seen.errors.len() >= 6 && seen.rejected.is_empty(), "{seen:?}");
    ran_once_each(world, &runs, 11).await;
}

/// A worker that can read nothing does not keep jobs from one that can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_worker_that_can_read_no_answer_come_to_another() {
    let world = World::behind(connect_options());
    let proxy = Proxy::start(0).await;
    proxy.garble(Garble::Jobs, usize::MAX);
    let options = || WorkerOptions {
        concurrency: 20,
        stalled_interval: Some(Duration::from_millis(100)),
        lock_duration: Duration::from_millis(1500),
        lock_renew_time: Some(Duration::from_millis(350)),
        ..WorkerOptions::default()
    };
    let (none, worker) = worker_behind(&proxy, &world, options());
    world.add_plain(10).await;
    until("answers that cannot be read", || async { proxy.garbled() > 1 }).await;
    let runs = Runs::default();
    let noted = runs.clone();
    let other = world.worker(options(), move |job| {
        *noted.lock().expect("runs").entry(job.id).or_default() += 1;
        async { End::DONE }
    });
    world.completed(10).await;
    assert!(none.lock().expect("runs").is_empty());
    proxy.garble(Garble::Jobs, 0);
    worker.close().await;
    other.close().await;
    ran_once_each(world, &runs, 10).await;
}
