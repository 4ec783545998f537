//! From addition to completion.

use std::sync::{Arc, Mutex};

use chasquimq::{frame::MAX_BYTES, system_now_ms, WorkerOptions};

use crate::{runner::End, world::World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_keeps_what_it_was_given_and_gets_its_result() {
    let world = World::new();
    let before_ms = system_now_ms();
    let added = world
        .add(r#"{"attempts":3}"#, [r#"{"to":"ñandú","n":[1,null]}"#.to_owned()])
        .await;
    let id = added.id(0);
    assert_eq!(world.state(&id).await, "waiting");
    let options = WorkerOptions {
        name: "bob".to_owned(),
        ..WorkerOptions::default()
    };
    let worker = world.worker(
        options,
        |job| async move { End::Completed(Some(format!("[{}]", job.data))) },
    );
    world.completed(1).await;
    let job = world.queue.job(&id).await.expect("an answer").expect("the job");
    assert_eq!(job.state, "completed");
    assert_eq!(
        (job.body.name.as_str(), job.body.options.as_str()),
        ("a", r#"{"attempts":3}"#)
    );
    assert_eq!(job.body.data, r#"{"to":"ñandú","n":[1,null]}"#);
    let fields = job.fields;
    assert_eq!((fields.attempts_made, fields.attempts_started), (1, 1));
    assert_eq!(fields.returnvalue.as_deref(), Some(r#"[{"to":"ñandú","n":[1,null]}]"#));
    assert_eq!(fields.processed_by.as_deref(), Some("bob"));
    let times = [
        Some(before_ms),
        Some(job.body.timestamp),
        fields.processed_on,
        fields.finished_on,
        Some(system_now_ms()),
    ];
    assert!(times.is_sorted(), "{times:?}");
    worker.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_any_size_arrive() {
    let world = World::new();
    let sizes = [
        0,
        1,
        1000,
        MAX_BYTES,
        MAX_BYTES + 1,
        3 * MAX_BYTES,
        10,
        MAX_BYTES - 50,
        40,
    ];
    world
        .add("{}", sizes.map(|size| format!("\"{}\"", "x".repeat(size))))
        .await;
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let started = seen.clone();
    let worker = world.worker(WorkerOptions::default(), move |job| {
        started.lock().expect("sizes").push(job.data.len() - 2);
        async move { End::Completed(Some(job.data)) }
    });
    world.completed(sizes.len() as u64).await;
    worker.close().await;
    assert_eq!(*seen.lock().expect("sizes"), sizes);
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_addition_may_hold_very_many_jobs() {
    const JOBS: usize = 30_000;
    let world = World::new();
    let added = world.add_plain(JOBS).await;
    assert_eq!((added.first, added.exceptions.len()), (1, 0));
    let delayed = world
        .add(r#"{"delay":1}"#, (0..JOBS / 2).map(|job| job.to_string()))
        .await;
    assert_eq!(delayed.first, JOBS as u64 + 1);
    let options = WorkerOptions {
        concurrency: 1000,
        ..WorkerOptions::default()
    };
    let worker = world.worker(options, |_| async { End::DONE });
    world.completed((JOBS + JOBS / 2) as u64).await;
    worker.close().await;
    assert_eq!(world.end().completed().len(), JOBS + JOBS / 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_custom_id_is_one_job_until_it_is_removed() {
    let world = World::new();
    for _ in 0..3 {
        let added = world.add(r#"{"jobId":"mine"}"#, ["1".to_owned(), "2".to_owned()]).await;
        assert_eq!((added.id(0).as_str(), added.id(1).as_str()), ("mine", "mine"));
    }
    assert_eq!(world.counts().await.waiting, 1);
    let worker = world.worker(WorkerOptions::default(), |_| async { End::DONE });
    world.completed(1).await;
    world.add(r#"{"jobId":"mine"}"#, ["3".to_owned()]).await;
    assert_eq!(world.state("mine").await, "completed");
    assert!(world
        .queue
        .remove(system_now_ms(), "mine", true)
        .await
        .expect("removal"));
    world.add(r#"{"jobId":"mine"}"#, ["3".to_owned()]).await;
    world.completed(1).await;
    worker.close().await;
    let job = world.queue.job("mine").await.expect("an answer").expect("the job");
    assert_eq!(job.body.data, "3");
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_are_not_kept_leave_nothing() {
    let world = World::new();
    let options = [
        r#"{"removeOnComplete":true}"#,
        r#"{"removeOnComplete":true,"delay":1}"#,
        r#"{"removeOnFail":true}"#,
    ];
    for options in options {
        world.add(options, (0..100).map(|job| job.to_string())).await;
    }
    let worker = world.worker(WorkerOptions::default(), |job| async move {
        match job.id.parse::<u64>() {
            Ok(number) if number > 200 => End::Failed("boom"),
            _ => End::DONE,
        }
    });
    crate::world::until("an empty queue", || async {
        let counts = world.counts().await;
        counts.waiting + counts.active + counts.delayed == 0
    })
    .await;
    worker.close().await;
    let snapshot = world.end();
    assert!(snapshot.log.is_empty() && snapshot.hash("jobs").is_empty() && snapshot.hash("vitals").is_empty());
}
