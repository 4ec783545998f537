//! Delayed jobs start when they are due.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chasquimq::{system_now_ms, JobRange, WorkerOptions};

use crate::{
    runner::{End, Job, Runner},
    world::{until, World},
};

/// A start may be late by this on a machine that is busy with other things; an idle worker looks by itself after five seconds.
const LATE_MS: u64 = 2_000;

type Starts = Arc<Mutex<Vec<(String, u64)>>>;

/// A worker that notes when each job starts.
fn noting(world: &World, options: WorkerOptions) -> (Starts, Runner) {
    let starts = Starts::default();
    let noted = starts.clone();
    let worker = world.worker(options, move |job: Job| {
        noted.lock().expect("starts").push((job.id, system_now_ms()));
        async { End::DONE }
    });
    (starts, worker)
}

async fn waits(worker: &Runner) {
    until("the worker to wait", || async { worker.seen().drained > 0 }).await;
}

async fn delay(world: &World, delay_ms: u64) -> (String, u64) {
    let now_ms = system_now_ms();
    let added = world
        .add(
            &format!(r#"{{"delay":{delay_ms},"timestamp":{now_ms}}}"#),
            ["0".to_owned()],
        )
        .await;
    (added.id(0), now_ms + delay_ms)
}

fn started_on_time(starts: &Starts, due: &[(String, u64)]) {
    let starts = starts.lock().expect("starts");
    assert_eq!(starts.len(), due.len());
    for (id, due_ms) in due {
        let (_, start_ms) = starts.iter().find(|(other, _)| other == id).expect("a start");
        let late_ms = *start_ms as i64 - *due_ms as i64;
        assert!(
            (0..=LATE_MS as i64).contains(&late_ms),
            "{id} is late by {late_ms} ms: {starts:?}, due {due:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_start_on_time_whatever_their_order() {
    let world = World::new();
    let (starts, worker) = noting(&world, WorkerOptions::default());
    waits(&worker).await;
    let mut due = Vec::new();
    for delay_ms in [600, 200, 400, 100, 500, 300] {
        due.push(delay(&world, delay_ms).await);
    }
    world.completed(6).await;
    worker.close().await;
    started_on_time(&starts, &due);
    let order: Vec<String> = starts
        .lock()
        .expect("starts")
        .iter()
        .map(|(id, _)| id.clone())
        .collect();
    due.sort_by_key(|(_, due_ms)| *due_ms);
    assert!(order.iter().eq(due.iter().map(|(id, _)| id)), "{order:?}");
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_due_before_there_was_a_worker_starts_at_once() {
    let world = World::new();
    let (id, due_ms) = delay(&world, 1).await;
    until("the job to be due", || async { system_now_ms() > due_ms }).await;
    let begun_ms = system_now_ms();
    let (starts, worker) = noting(&world, WorkerOptions::default());
    world.completed(1).await;
    worker.close().await;
    started_on_time(&starts, &[(id, begun_ms)]);
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_a_job_in_hand_starts_the_next_on_time() {
    let world = World::new();
    let starts = Starts::default();
    let noted = starts.clone();
    let options = WorkerOptions {
        concurrency: 2,
        ..WorkerOptions::default()
    };
    let worker = world.worker(options, move |job| {
        let is_long = job.data == "\"long\"";
        if !is_long {
            noted.lock().expect("starts").push((job.id, system_now_ms()));
        }
        async move {
            if is_long {
                // in hand all the while
                tokio::time::sleep(Duration::from_millis(900)).await;
            }
            End::DONE
        }
    });
    world.add("{}", ["\"long\"".to_owned()]).await;
    until("the long job to be active", || async {
        world.counts().await.active == 1
    })
    .await;
    let due = [delay(&world, 300).await, delay(&world, 500).await];
    world.completed(3).await;
    worker.close().await;
    started_on_time(&starts, &due);
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_time_counts() {
    let world = World::new();
    let (starts, worker) = noting(&world, WorkerOptions::default());
    waits(&worker).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(delay(&world, 60_000).await.0);
    }
    let now_ms = system_now_ms();
    world.queue.promote(now_ms, &jobs[0]).await.expect("promotion");
    world
        .queue
        .change_delay(now_ms, &jobs[1], 300)
        .await
        .expect("another delay");
    world.completed(2).await;
    assert_eq!(world.state(&jobs[2]).await, "delayed");
    worker.close().await;
    started_on_time(&starts, &[(jobs[0].clone(), now_ms), (jobs[1].clone(), now_ms + 300)]);
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_jobs_than_one_look_promotes_are_due_at_once() {
    let world = World::new();
    let (starts, worker) = noting(&world, WorkerOptions::default());
    waits(&worker).await;
    let due_ms = system_now_ms() + 300;
    let options = format!(r#"{{"delay":300,"timestamp":{}}}"#, due_ms - 300);
    world.add(&options, (0..2500).map(|job| job.to_string())).await;
    world.completed(2500).await;
    worker.close().await;
    let starts = starts.lock().expect("starts");
    assert!(starts.iter().all(|(_, start_ms)| *start_ms >= due_ms));
    let order: Vec<u64> = starts.iter().map(|(id, _)| id.parse().expect("number")).collect();
    assert!(order.iter().copied().eq(1..=2500), "{order:?}");
    drop(starts);
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_are_due_one_soon_after_the_other_start_in_batches() {
    const JOBS: u64 = 300;
    let world = World::new();
    let due_ms = system_now_ms() + 2000;
    for job in 0..JOBS {
        let now_ms = system_now_ms();
        let delay_ms = (due_ms + job).saturating_sub(now_ms);
        let options = format!(r#"{{"delay":{delay_ms},"timestamp":{now_ms}}}"#);
        world.add(&options, ["0".to_owned()]).await;
    }
    let options = WorkerOptions {
        concurrency: 100,
        ..WorkerOptions::default()
    };
    let (_, worker) = noting(&world, options);
    world.completed(JOBS).await;
    worker.close().await;
    let all = JobRange {
        types: vec!["completed".to_owned()],
        start: 0,
        stop: -1,
        ascending: true,
    };
    let jobs = world.queue.jobs(&all).await.expect("jobs");
    let mut taken: Vec<u64> = jobs.iter().filter_map(|job| job.fields.processed_on).collect();
    assert_eq!(taken.len() as u64, JOBS);
    taken.sort_unstable();
    let span_ms = taken[taken.len() - 1] - taken[0];
    taken.dedup();
    // one look every 5 ms, by a clock of whole milliseconds
    assert!(taken.len() as u64 <= span_ms / 4 + 2, "{taken:?}");
    world.end();
}
