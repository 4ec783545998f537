//! What a worker hears by, which an event loop other than the worker's watches.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc,
    },
    time::Duration,
};

use chasquimq::{
    redis::wire::Watch,
    system_now_ms,
    worker::{Completed, Message, Report, Standby, Worker},
    ConnectOptions, WorkerOptions,
};
use tokio::sync::{mpsc, Notify};

use crate::{
    probe::connect_options,
    runner::{End, Runner},
    world::{until, World, PATIENCE},
};

/// Adds jobs one at a time until the worker, idle in between, has taken some without its loop. Gives their number.
async fn use_lane(world: &World, worker: &Runner, by_socket: usize) -> u64 {
    for added in 1.. {
        world.add_plain(1).await;
        world.completed(added).await;
        if worker.seen().by_socket >= by_socket {
            return added;
        }
    }
    unreachable!("numbers do not end")
}

fn counting(runs: &Arc<AtomicUsize>) -> impl Fn(crate::runner::Job) -> std::future::Ready<End> + Send + Sync + 'static {
    let runs = runs.clone();
    move |_| {
        runs.fetch_add(1, Ordering::Relaxed);
        std::future::ready(End::DONE)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_come_one_at_a_time_take_the_event_loop_and_run_once_each() {
    let world = World::new();
    let runs = Arc::default();
    let worker = world.worker(WorkerOptions::default(), counting(&runs));
    let added = use_lane(&world, &worker, 50).await;
    let seen = worker.close().await;
    assert!(seen.rejected.is_empty() && seen.errors.is_empty(), "{seen:?}");
    assert_eq!(runs.load(Ordering::Relaxed) as u64, added);
    assert_eq!(world.end().completed().len() as u64, added);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_come_beside_a_running_one_start_and_the_event_loop_brings_the_next() {
    const BESIDE: usize = 3;
    let world = World::new();
    let options = WorkerOptions {
        concurrency: 3,
        // no wait is over before the test is
        drain_delay: 2 * PATIENCE,
        ..WorkerOptions::default()
    };
    let (long, ends) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (hold, ended) = (long.clone(), ends.clone());
    let worker = world.worker(options, move |job| {
        let (hold, ended) = (hold.clone(), ended.clone());
        async move {
            if job.data == "\"long\"" {
                hold.notified().await;
            }
            ended.fetch_add(1, Ordering::Relaxed);
            End::DONE
        }
    });
    let mut done = use_lane(&world, &worker, 3).await;
    for _ in 0..20 {
        let before = worker.seen().by_socket;
        world.add("{}", ["\"long\"".to_owned()]).await;
        until("the long one to run", || async { world.counts().await.active == 1 }).await;
        for _ in 0..BESIDE {
            world.add_plain(1).await;
            done += 1;
            world.completed(done).await;
        }
        long.notify_one();
        done += 1;
        world.completed(done).await;
        while worker.seen().by_socket == before {
            world.add_plain(1).await;
            done += 1;
            world.completed(done).await;
        }
    }
    let seen = worker.close().await;
    assert!(seen.rejected.is_empty() && seen.errors.is_empty(), "{seen:?}");
    assert_eq!(ends.load(Ordering::Relaxed) as u64, done);
    assert_eq!(world.end().completed().len() as u64, done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_stops_while_its_event_loop_waits_takes_nothing_any_more() {
    let mut world = World::new();
    let mut done = 0;
    for stop in ["pause", "close", "abandon", "kill"] {
        let before = done;
        let runs = Arc::default();
        let name = format!("{}-{stop}", world.keys.base.replace(':', "-"));
        let options = ConnectOptions {
            client_name: Some(name.clone()),
            ..connect_options()
        };
        let sockets = WorkerOptions {
            watches_news: true,
            ..WorkerOptions::default()
        };
        let worker = Runner::start(options, world.keys.clone(), sockets, counting(&runs));
        while worker.seen().by_socket < 3 {
            world.add_plain(1).await;
            done += 1;
            world.completed(done).await;
        }
        // what it hears by; the other one is named after the queue
        assert_eq!(clients(&mut world, &name), 1);
        let paused = match stop {
            "pause" => {
                // what it takes until it is told to stop, it still runs
                worker.worker().pause();
                Some(worker)
            }
            "close" => {
                worker.close().await;
                None
            }
            "abandon" => {
                worker.abandon().await;
                None
            }
            _ => {
                worker.kill().await;
                None
            }
        };
        while paused.is_none() && clients(&mut world, &name) > 0 {
            tokio::task::yield_now().await;
        }
        world.add_plain(20).await;
        done += 20;
        let others = Arc::default();
        let other = world.worker(WorkerOptions::default(), counting(&others));
        world.completed(done).await;
        other.close().await;
        if let Some(worker) = paused {
            worker.close().await;
        }
        let all = runs.load(Ordering::Relaxed) + others.load(Ordering::Relaxed);
        assert_eq!(all as u64, done - before, "{stop}");
    }
    assert_eq!(world.end().completed().len() as u64, done);
}

/// Number of the server's clients of this name.
fn clients(world: &mut World, name: &str) -> usize {
    let list: String = world.server(&["CLIENT", "LIST"]);
    let name = format!(" name={name} ");
    list.lines().filter(|line| line.contains(&name)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_a_busy_event_loop_does_not_read_are_kept_and_handed_over() {
    let world = World::new();
    let options = short_lease();
    let (worker, mut messages) = unread(&world, options.clone());
    let recoverer = WorkerOptions {
        stalled_interval: Some(Duration::from_millis(50)),
        ..options.clone()
    };
    let mut stalled = Vec::new();
    for number in 1..4 {
        let before = world.counts().await;
        // the worker waits again, for this one
        until("the worker to be idle", || async { world.counts().await.active == 0 }).await;
        world.add_plain(1).await;
        let handle = tokio::time::timeout(PATIENCE, next_job(&worker, &mut messages))
            .await
            .expect("the job");
        if number == 3 {
            let other = world.worker(recoverer.clone(), |_| async { End::DONE });
            tokio::time::sleep(2 * options.lock_duration).await;
            stalled = other.close().await.stalled;
        }
        complete(&worker, number, handle);
        world.completed(before.completed + 1).await;
    }
    assert!(stalled.is_empty(), "{stalled:?}");
    worker.close(false).await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_event_loop_that_holds_a_job_keeps_no_other_from_starting() {
    let world = World::new();
    let options = WorkerOptions {
        concurrency: 2,
        // no wait is over before the test is
        drain_delay: 2 * PATIENCE,
        ..short_lease()
    };
    let (worker, mut messages) = unread(&world, options);
    let mut reports = 0;
    for round in 1..=4 {
        let mut handles = Vec::new();
        for _ in 0..2 {
            world.add_plain(1).await;
            let next = tokio::time::timeout(PATIENCE, next_job(&worker, &mut messages)).await;
            handles.push(next.expect("the job"));
        }
        for handle in handles {
            reports += 1;
            complete(&worker, reports, handle);
        }
        world.completed(2 * round).await;
        until("the worker to be idle", || async { world.counts().await.active == 0 }).await;
    }
    worker.close(false).await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_event_loop_that_has_asked_for_a_job_keeps_it_from_nobody() {
    let world = World::new();
    let options = WorkerOptions {
        // no look is due before the test is over
        drain_delay: 2 * PATIENCE,
        lock_renew_time: None,
        watches_news: true,
        ..WorkerOptions::default()
    };
    let (worker, mut messages) = unread(&world, options);
    let standby = loop {
        let message = messages.recv().await.expect("a message");
        if let Some(standby) = message.standby {
            break standby;
        }
    };
    never_read(&standby);
    for round in 1..=3 {
        until("the worker to lend its step", || async {
            standby.step_along().is_some()
        })
        .await;
        world.add_plain(1).await;
        let next = tokio::time::timeout(PATIENCE, next_job(&worker, &mut messages)).await;
        complete(&worker, round, next.expect("the job"));
        world.completed(round).await;
    }
    worker.close(false).await;
    world.end();
}

fn short_lease() -> WorkerOptions {
    WorkerOptions {
        lock_duration: Duration::from_millis(1500),
        lock_renew_time: Some(Duration::from_millis(350)),
        stalled_interval: None,
        watches_news: true,
        ..WorkerOptions::default()
    }
}

/// A worker whose event loop is too busy to read, and what the worker tells.
fn unread(world: &World, options: WorkerOptions) -> (Worker, mpsc::UnboundedReceiver<Message>) {
    let (sender, messages) = mpsc::unbounded_channel();
    let sink = Arc::new(move |message: Message| drop(sender.send(message)));
    let worker = Worker::new(connect_options(), world.keys.clone(), options, sink);
    worker.run(system_now_ms());
    (worker, messages)
}

fn complete(worker: &Worker, report: u64, handle: u32) {
    worker.finish(Report {
        number: report,
        now_ms: system_now_ms(),
        completed: vec![Completed { handle, result: None }],
        ..Report::default()
    });
}

/// An event loop watches, and never reads.
fn never_read(standby: &Standby) {
    if let Some(Watch::Begins(watched)) = standby.watch(|| {}) {
        standby.watched(true);
        std::mem::forget(watched);
    }
}

/// The handle of the next job.
async fn next_job(worker: &Worker, messages: &mut mpsc::UnboundedReceiver<Message>) -> u32 {
    loop {
        let message = messages.recv().await.expect("a message");
        if message.asks_for_life {
            worker.heard();
        }
        message.standby.iter().for_each(never_read);
        if let Some(batch) = message.jobs {
            assert!(worker.draw(batch.offer));
            return batch.base;
        }
    }
}
