//! Limits over all workers of a queue.

use std::time::Instant;

use chasquimq_typed::{Error, Group, GroupRules, KeyLimit, RateLimit};

use super::*;

const WINDOW: Duration = Duration::from_millis(300);

fn limiter(max: u64, duration: Duration) -> WorkerOptions {
    WorkerOptions {
        limiter: Some(RateLimit { max, duration }),
        ..concurrency(10)
    }
}

#[tokio::test]
async fn two_workers_start_no_more_jobs_in_a_window_than_their_limiter_allows() {
    let stage = Stage::new().await;
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = move |_| {
        let started = started.clone();
        async move {
            started.send(Instant::now())?;
            Ok::<(), JobError>(())
        }
    };
    let (one, _events) = stage.worker(limiter(2, WINDOW), handler.clone()).await;
    let (two, _others) = stage.worker(limiter(2, WINDOW), handler).await;
    // the first window begins with the first start, which a handler may see late
    let began = Instant::now();
    stage.add_many(5).await;
    let mut times = Vec::new();
    for _ in 0..5 {
        times.push(within(starts.recv()).await.expect("a start") - began);
    }
    assert!(times[4] > WINDOW * 2 - Duration::from_millis(5), "{times:?}");
    within(one.close()).await;
    within(two.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_limiter_may_be_taken_away() {
    let stage = Stage::new().await;
    let hour = Duration::from_secs(3600);
    let (worker, mut events) = stage.worker(limiter(1, hour), |_| async { Ok(()) }).await;
    stage.add_many(3).await;
    events.completed().await;
    worker.set_limiter(None);
    events.completed().await;
    events.completed().await;
    // though the rest began that would have lasted until the limit was over
    stage.add_many(1).await;
    events.completed().await;
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn limits_of_the_queue_hold_and_wake_when_they_are_lifted() {
    let stage = Stage::new().await;
    let (handler, mut starts, gate) = gated();
    within(stage.queue.limit_concurrency(Some(2))).await.expect("limited");
    let (worker, mut events) = stage.worker(concurrency(10), handler).await;
    stage.add_many(4).await;
    for _ in 0..2 {
        within(starts.recv()).await.expect("a start");
    }
    assert_eq!(within(stage.queue.counts()).await.expect("counts").active, 2);
    within(stage.queue.limit_concurrency(None)).await.expect("lifted");
    for _ in 0..2 {
        within(starts.recv()).await.expect("a start");
    }
    gate.add_permits(10);
    for _ in 0..4 {
        events.completed().await;
    }
    let hour = Duration::from_secs(3600);
    let limit = RateLimit { max: 1, duration: hour };
    within(stage.queue.limit_rate(Some(limit))).await.expect("limited");
    stage.add_many(3).await;
    events.completed().await;
    within(stage.queue.end_window()).await.expect("ended");
    events.completed().await;
    within(stage.queue.limit_rate(None)).await.expect("lifted");
    events.completed().await;
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_full_queue_refuses_what_is_added() {
    let stage = Stage::new().await;
    within(stage.queue.limit_length(Some(2))).await.expect("limited");
    stage.add_many(2).await;
    let refused = within(stage.queue.add("mail", &mail(1), &AddOptions::default())).await;
    let full = matches!(
        refused,
        Err(Error::QueueFull {
            jobs: 1,
            length: 2,
            max_length: 2,
            ..
        })
    );
    assert!(full, "{refused:?}");
    within(stage.queue.limit_length(None)).await.expect("lifted");
    stage.add_many(1).await;
    assert_eq!(within(stage.queue.counts()).await.expect("counts").waiting, 3);
    stage.end().await;
}

#[tokio::test]
async fn a_job_that_meets_a_limit_starts_again_later_and_no_try_is_counted() {
    let stage = Stage::new().await;
    let id = stage.add(1, AddOptions::default()).await;
    let began = Instant::now();
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), |job| async move {
            match job.fields.attempts_started {
                1 => Err(JobError::rate_limited(WINDOW)),
                _ => Ok(()),
            }
        })
        .await;
    assert_eq!(events.completed().await, id);
    assert!(began.elapsed() >= WINDOW);
    let fields = stage.job(&id).await.job.fields;
    assert_eq!((fields.attempts_made, fields.attempts_started), (1, 2));
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_queue_may_be_held() {
    let stage = Stage::new().await;
    within(stage.queue.hold(WINDOW)).await.expect("held");
    let began = Instant::now();
    stage.add(1, AddOptions::default()).await;
    let (worker, mut events) = stage.worker(limiter(10, WINDOW), |_| async { Ok(()) }).await;
    events.completed().await;
    assert!(began.elapsed() >= WINDOW - Duration::from_millis(50));
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn jobs_whose_key_is_used_up_wait_and_hold_nobody_else_back() {
    let stage = Stage::new().await;
    let limits = vec![KeyLimit::of("api", 1, Duration::from_secs(600))];
    let limited = AddOptions {
        limits,
        ..AddOptions::default()
    };
    stage.add_alike(3, limited).await;
    stage.add_many(2).await;
    let (worker, mut events) = stage.worker(concurrency(1), |_| async { Ok(()) }).await;
    for _ in 0..3 {
        events.completed().await;
    }
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.delayed, counts.completed), (2, 3));
    within(worker.close()).await;
    // windows end by themselves
    stage.remove(&["memo:", "key-"]).await;
}

#[tokio::test]
async fn of_a_group_no_more_run_at_once_than_workers_let() {
    let stage = Stage::new().await;
    let (handler, mut starts, gate) = gated();
    let group_rules = GroupRules {
        concurrency: Some(1),
        ..GroupRules::default()
    };
    let options = WorkerOptions {
        group_rules,
        ..concurrency(10)
    };
    let of = |id| AddOptions {
        group: Some(Group::of(id)),
        ..AddOptions::default()
    };
    for id in ["a", "b"] {
        stage.add_alike(3, of(id)).await;
    }
    let (worker, mut events) = stage.worker(options, handler).await;
    for _ in ["a", "b"] {
        within(starts.recv()).await.expect("a start");
    }
    assert_eq!(within(stage.queue.counts()).await.expect("counts").active, 2);
    gate.add_permits(10);
    for _ in 0..6 {
        events.completed().await;
    }
    let full = AddOptions {
        group: Some(Group {
            max_size: 1,
            ..Group::of("c")
        }),
        ..AddOptions::default()
    };
    within(worker.close()).await;
    within(stage.queue.add("mail", &mail(1), &full)).await.expect("room");
    let refused = within(stage.queue.add("mail", &mail(2), &full)).await;
    assert!(matches!(refused, Err(Error::GroupFull { .. })), "{refused:?}");
    stage.end().await;
}
