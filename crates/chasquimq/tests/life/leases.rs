//! A worker's lease: it lives while its worker does, and then its jobs go to others.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use chasquimq::{
    unique_id,
    worker::{Completed, Message, Report},
    ConnectOptions, Error, Worker, WorkerOptions,
};

use crate::{
    probe::connect_options,
    runner::{End, Job, Runner},
    world::{until, World},
};

/// A lease that ends soon after its worker.
fn short_lease() -> WorkerOptions {
    WorkerOptions {
        concurrency: 10,
        lock_duration: Duration::from_millis(1500),
        lock_renew_time: Some(Duration::from_millis(350)),
        // one worker's scan is enough for all, until its interval is over
        stalled_interval: None,
        ..WorkerOptions::default()
    }
}

/// Looks for dead workers all the time.
fn recoverer() -> WorkerOptions {
    WorkerOptions {
        stalled_interval: Some(Duration::from_millis(50)),
        ..short_lease()
    }
}

type Ids = Arc<Mutex<Vec<String>>>;

/// A handler that notes its jobs, and the note.
fn noting() -> (Ids, impl Fn(Job) -> std::future::Ready<End> + Send + Sync + 'static) {
    let ids = Ids::default();
    let noted = ids.clone();
    let handler = move |job: Job| {
        noted.lock().expect("ids").push(job.id);
        std::future::ready(End::DONE)
    };
    (ids, handler)
}

fn sorted(ids: &Ids) -> Vec<String> {
    let mut ids = ids.lock().expect("ids").clone();
    ids.sort_by_key(|id| id.parse::<u64>().unwrap_or(u64::MAX));
    ids
}

/// Completes jobs 1..5 and never ends another.
async fn complete_half(job: Job) -> End {
    match job.id.parse::<u64>() {
        Ok(1..=5) => End::DONE,
        _ => std::future::pending().await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_killed_worker_go_to_others_and_completed_ones_do_not() {
    let world = World::new();
    world.add_plain(10).await;
    world.add(r#"{"jobId":"x"}"#, ["0".to_owned()]).await;
    let killed = world.worker(
        WorkerOptions {
            concurrency: 11,
            ..short_lease()
        },
        complete_half,
    );
    world.completed(5).await;
    until("all jobs to be active", || async { world.counts().await.active == 6 }).await;
    killed.kill().await;
    let (ids, handler) = noting();
    let other = world.worker(recoverer(), handler);
    world.completed(11).await;
    assert_eq!(sorted(&ids), ["6", "7", "8", "9", "10", "x"]);
    let job = world.queue.job("7").await.expect("an answer").expect("the job");
    assert_eq!(
        (
            job.fields.stalled_counter,
            job.fields.attempts_started,
            job.fields.attempts_made
        ),
        (1, 2, 1)
    );
    let job = world.queue.job("3").await.expect("an answer").expect("the job");
    assert_eq!((job.fields.stalled_counter, job.fields.attempts_started), (0, 1));
    let seen = other.close().await;
    assert_eq!(seen.stalled, ["6", "7", "8", "9", "10", "x"]);
    world.end();
}

/// A scan that finds many jobs takes a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_end_while_others_are_brought_back() {
    const LOST: usize = 2_000;
    let world = World::new();
    world.add_plain(LOST).await;
    let options = WorkerOptions {
        concurrency: LOST as u32,
        ..short_lease()
    };
    let killed = world.worker(options, |_| std::future::pending());
    until("all jobs to be active", || async {
        world.counts().await.active == LOST as u64
    })
    .await;
    killed.kill().await;
    world.add_plain(1).await;
    let own: Arc<OnceLock<Worker>> = Arc::default();
    let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let (held, worker) = (Mutex::new((None, false)), own.clone());
    let sink = Arc::new(move |message: Message| {
        let (handle, has_ended) = &mut *held.lock().expect("a handle");
        if let Some(batch) = &message.jobs {
            handle.get_or_insert((batch.base, batch.offer));
        }
        // its own job ends as soon as the first of them are told
        if !message.stalled.is_empty() && !std::mem::replace(has_ended, true) {
            let (handle, offer) = handle.expect("a job");
            let worker = worker.get().expect("a worker");
            assert!(worker.draw(offer));
            worker.finish(Report {
                number: 1,
                now_ms: chasquimq::system_now_ms(),
                completed: vec![Completed { handle, result: None }],
                ..Report::default()
            });
        }
        // the test may be over
        let _ = sender.send((message.stalled.len(), message.flushed));
    });
    let options = WorkerOptions {
        concurrency: 1,
        ..recoverer()
    };
    let worker = own.get_or_init(|| Worker::new(connect_options(), world.keys.clone(), options, sink));
    worker.run(chasquimq::system_now_ms());
    let mut stalled = 0;
    while let Some((some, flushed)) = messages.recv().await {
        stalled += some;
        if flushed == Some(1) {
            break;
        }
    }
    assert!(stalled > 0 && stalled < LOST, "{stalled}");
    while stalled < LOST {
        stalled += messages.recv().await.expect("a message").0;
    }
    worker.close(true).await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_dropped_takes_nothing_any_more() {
    let mut world = World::new();
    let (_, handler) = noting();
    let name = unique_id();
    let connect = ConnectOptions {
        client_name: Some(name.clone()),
        ..connect_options()
    };
    let dropped = Runner::start(connect, world.keys.clone(), WorkerOptions::default(), handler);
    // it has looked, and waits for jobs
    until("the queue to be found empty", || async { dropped.seen().drained > 0 }).await;
    dropped.abandon().await;
    while world.server::<String>(&["CLIENT", "LIST"]).contains(&name) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.add_plain(3).await;
    let (ids, handler) = noting();
    let other = world.worker(WorkerOptions::default(), handler);
    world.completed(3).await;
    assert_eq!(sorted(&ids), ["1", "2", "3"]);
    other.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_may_block_for_three_lease_times() {
    let world = World::new();
    world.add_plain(1).await;
    let (own, note) = noting();
    let blocked = world.worker(short_lease(), move |job| {
        let noted = note(job);
        async move {
            // what blocks is the program's thread, not the engine's
            let blocking = tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(4700)));
            blocking.await.expect("a blocking handler");
            noted.await
        }
    });
    until("the job to be active", || async { world.counts().await.active == 1 }).await;
    let (others, handler) = noting();
    let recoverer = world.worker(recoverer(), handler);
    world.completed(1).await;
    let seen = blocked.close().await;
    assert!(!seen.lease_lost && seen.rejected.is_empty(), "{seen:?}");
    assert_eq!((sorted(&own), sorted(&others)), (vec!["1".to_owned()], Vec::new()));
    assert!(recoverer.close().await.stalled.is_empty());
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_that_comes_too_late_is_refused() {
    let mut world = World::new();
    world.add_plain(1).await;
    let (release, released) = tokio::sync::watch::channel(false);
    let options = WorkerOptions {
        id: "late".to_owned(),
        // without a free slot it cannot take its own job again
        concurrency: 1,
        // it does not notice in time
        lock_renew_time: None,
        ..short_lease()
    };
    let late = world.worker(options, move |_| {
        let mut released = released.clone();
        async move {
            released.wait_for(|released| *released).await.expect("a release");
            End::Completed(Some("\"late\"".to_owned()))
        }
    });
    until("the job to be active", || async { world.counts().await.active == 1 }).await;
    world.command("DEL", "lease:late");
    let other = world.worker(recoverer(), |_| async { End::Completed(Some("\"other\"".to_owned())) });
    world.completed(1).await;
    release.send(true).expect("a waiting handler");
    let seen = late.close().await;
    assert_eq!(seen.rejected, ["Missing lock for job 1. moveToFinished"]);
    assert_eq!(
        world.queue.outcome("1").await.expect("state"),
        ("completed".to_owned(), "\"other\"".to_owned())
    );
    other.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_kills_its_workers_fails() {
    let world = World::new();
    world.add_plain(1).await;
    for _ in 0..2 {
        let (starts, note) = noting();
        let killed = world.worker(recoverer(), move |job| {
            drop(note(job));
            std::future::pending()
        });
        until("the job to start", || async { !sorted(&starts).is_empty() }).await;
        killed.kill().await;
    }
    let (ids, handler) = noting();
    let last = world.worker(recoverer(), handler);
    until("the job to fail", || async { world.counts().await.failed == 1 }).await;
    assert!(sorted(&ids).is_empty());
    let (state, reason) = world.queue.outcome("1").await.expect("state");
    assert_eq!(
        (state.as_str(), reason.as_str()),
        ("failed", "job stalled more than allowable limit")
    );
    last.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_given_up_at_a_graceful_close_only() {
    let mut world = World::new();
    for (id, graceful) in [("polite", true), ("killed", false)] {
        let options = WorkerOptions {
            id: id.to_owned(),
            ..WorkerOptions::default()
        };
        world.add_plain(1).await;
        let worker = world.worker(options, |_| async { End::DONE });
        until("the jobs to complete", || async {
            world.counts().await.waiting + world.counts().await.active == 0
        })
        .await;
        let lease = format!("lease:{id}");
        assert_eq!(world.command("EXISTS", &lease), redis::Value::Int(1));
        if graceful {
            worker.close().await;
        } else {
            worker.kill().await;
        }
        assert_eq!(world.command("EXISTS", &lease), redis::Value::Int(i64::from(!graceful)));
    }
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_meets_a_fault_says_so_and_its_jobs_go_to_others() {
    let world = World::new();
    let (sender, mut faults) = tokio::sync::mpsc::unbounded_channel();
    // a fault of the engine, as far as it can be had
    let sink = Arc::new(move |message: Message| {
        assert!(message.jobs.is_none(), "a fault on purpose");
        if let Some(Error::Panicked(why)) = message.error {
            sender.send(why).expect("a test");
        }
    });
    let faulty = Worker::new(connect_options(), world.keys.clone(), short_lease(), sink);
    faulty.run(chasquimq::system_now_ms());
    world.add_plain(1).await;
    let why = faults.recv().await.expect("a fault");
    assert!(why.contains("a fault on purpose"), "{why}");
    let (ids, handler) = noting();
    let recoverer = world.worker(recoverer(), handler);
    world.completed(1).await;
    assert_eq!(sorted(&ids), ["1"]);
    recoverer.close().await;
    world.end();
}
