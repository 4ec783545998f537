//! Tries that fail, and what comes after them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chasquimq::{system_now_ms, worker::Outcome, RetryOptions, WorkerOptions};

use crate::{
    runner::{End, Job, Runner},
    world::{until, World},
};

type Starts = Arc<Mutex<Vec<u64>>>;

/// A worker whose jobs fail so many times before they complete, and the time of each try.
fn failing(world: &World, times: usize) -> (Starts, Runner) {
    let starts = Starts::default();
    let noted = starts.clone();
    let worker = world.worker(WorkerOptions::default(), move |_: Job| {
        let mut starts = noted.lock().expect("starts");
        starts.push(system_now_ms());
        std::future::ready(if starts.len() > times {
            End::DONE
        } else {
            End::Failed("boom")
        })
    });
    (starts, worker)
}

fn pauses(starts: &Starts) -> Vec<u64> {
    let starts = starts.lock().expect("starts");
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Pauses are as long as they should be, and not much longer: the machine may be busy with other things. An idle worker looks by itself after
/// five seconds.
fn are_about(pauses: &[u64], expected: &[u64]) {
    assert_eq!(pauses.len(), expected.len());
    for (pause, expected) in pauses.iter().zip(expected) {
        assert!(
            (*expected..*expected + 2_000).contains(pause),
            "{pauses:?}, expected {expected:?}"
        );
    }
}

/// A job that fails three times and then completes, after pauses of about these milliseconds.
async fn pauses_are(backoff: &str, expected: &[u64]) {
    let world = World::new();
    let (starts, worker) = failing(&world, 3);
    world
        .add(&format!(r#"{{"attempts":4,"backoff":{backoff}}}"#), ["0".to_owned()])
        .await;
    world.completed(1).await;
    are_about(&pauses(&starts), expected);
    let job = world.queue.job("1").await.expect("an answer").expect("the job");
    assert_eq!((job.fields.attempts_made, job.fields.attempts_started), (4, 4));
    assert_eq!(job.fields.failed_reason.as_deref(), Some("boom"));
    worker.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_pause_stays_the_same() {
    pauses_are(r#"{"type":"fixed","delay":100}"#, &[100, 100, 100]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exponential_pause_doubles() {
    pauses_are(r#"{"type":"exponential","delay":100}"#, &[100, 200, 400]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_try_fails_for_good_and_may_be_retried() {
    let world = World::new();
    let (starts, worker) = failing(&world, 2);
    world.add(r#"{"attempts":2}"#, ["0".to_owned()]).await;
    until("the job to fail", || async { world.counts().await.failed == 1 }).await;
    assert_eq!(starts.lock().expect("starts").len(), 2);
    assert_eq!(
        world.queue.outcome("1").await.expect("state"),
        ("failed".to_owned(), "boom".to_owned())
    );
    world
        .queue
        .retry(system_now_ms(), "1", "failed", RetryOptions::default())
        .await
        .expect("a retry");
    world.completed(1).await;
    let job = world.queue.job("1").await.expect("an answer").expect("the job");
    assert_eq!((job.fields.attempts_made, job.fields.failed_reason), (3, None));
    worker.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_without_a_pause_comes_behind_the_others() {
    let world = World::new();
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = order.clone();
    world.add(r#"{"attempts":2}"#, (0..3).map(|job| job.to_string())).await;
    let worker = world.worker(WorkerOptions::default(), move |job| {
        noted.lock().expect("order").push(job.id.clone());
        std::future::ready(if job.id == "1" && job.fields.attempts_made == 0 {
            End::Failed("boom")
        } else {
            End::DONE
        })
    });
    world.completed(3).await;
    worker.close().await;
    assert_eq!(*order.lock().expect("order"), ["1", "2", "3", "1"]);
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_says_itself_when_it_is_tried_again_or_never() {
    let world = World::new();
    let worker = world.worker(WorkerOptions::default(), |job| {
        let failed = |unrecoverable, delay_ms| {
            End::Other(Outcome::Failed {
                reason: Some("boom".into()),
                stacktrace: Some("[\"trace\"]".into()),
                unrecoverable,
                delay_ms,
            })
        };
        std::future::ready(match job.data.as_str() {
            "\"unrecoverable\"" => failed(true, None),
            "\"never\"" => failed(false, Some(-1.0)),
            _ if job.fields.attempts_made == 0 => failed(false, Some(50.0)),
            _ => End::Completed(job.fields.stacktrace),
        })
    });
    let data = ["unrecoverable", "never", "later"].map(|data| format!("\"{data}\""));
    world.add(r#"{"attempts":5,"backoff":{"type":"mine"}}"#, data).await;
    until("the jobs to end", || async {
        let counts = world.counts().await;
        (counts.failed, counts.completed) == (2, 1)
    })
    .await;
    assert_eq!(world.queue.outcome("3").await.expect("state").1, "[\"trace\"]");
    worker.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_takes_over_a_retry_of_a_busy_one() {
    let world = World::new();
    let starts = Starts::default();
    let noted = starts.clone();
    let handler = move |job: Job| {
        let noted = noted.clone();
        async move {
            match job.data.as_str() {
                "\"flaky\"" => {
                    noted.lock().expect("starts").push(system_now_ms());
                    if job.fields.attempts_made == 0 {
                        return End::Failed("boom");
                    }
                }
                // long enough to keep its worker busy until the other has tried again
                _ => tokio::time::sleep(Duration::from_secs(4)).await,
            }
            End::DONE
        }
    };
    // the worker finishes a flaky job and takes a long one in the same step; nobody else is awake
    world
        .add(
            r#"{"attempts":2,"backoff":{"type":"fixed","delay":100}}"#,
            ["\"flaky\"".to_owned()],
        )
        .await;
    world.add("{}", ["\"long\"".to_owned()]).await;
    let busy = world.worker(WorkerOptions::default(), handler.clone());
    until("the long job to be active", || async {
        world.state("2").await == "active"
    })
    .await;
    let idle = world.worker(WorkerOptions::default(), handler);
    world.completed(2).await;
    are_about(&pauses(&starts), &[100]);
    busy.close().await;
    idle.close().await;
    world.end();
}
