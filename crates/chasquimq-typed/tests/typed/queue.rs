//! Adding and looking up.

use chasquimq_typed::{Deduplication, Error, JobRange, Keep, Pick};

use super::*;

#[tokio::test]
async fn a_bulk_keeps_its_order_and_ids() {
    let stage = Stage::new().await;
    let with_id = AddOptions {
        job_id: Some("mine".into()),
        ..AddOptions::default()
    };
    let plain = AddOptions::default();
    let data: Vec<Mail> = (0..4).map(mail).collect();
    let options = [&plain, &with_id, &plain, &with_id];
    let jobs: Vec<BulkJob<'_, Mail>> = data
        .iter()
        .zip(options)
        .map(|(data, options)| BulkJob {
            name: "mail",
            data,
            options,
        })
        .collect();
    let ids = within(stage.queue.add_bulk(&jobs)).await.expect("added");
    assert_eq!((ids[1].as_str(), ids[3].as_str()), ("mine", "mine"));
    let waiting = JobRange {
        types: vec!["waiting".into()],
        start: 0,
        stop: -1,
        ascending: true,
    };
    let found = within(stage.queue.jobs(&waiting)).await.expect("jobs");
    let found: Vec<(&str, u32)> = found
        .iter()
        .map(|found| (found.job.id.as_str(), found.data.copies))
        .collect();
    // the second job of the same id was not added
    assert_eq!(found, [(ids[0].as_str(), 0), ("mine", 1), (ids[2].as_str(), 2)]);
    assert!(within(stage.queue.add_bulk(&[])).await.expect("nothing").is_empty());
    stage.end().await;
}

#[tokio::test]
async fn priorities_decide_the_order_once_nothing_else_waits() {
    let stage = Stage::new().await;
    let priority = |priority| AddOptions {
        priority,
        ..AddOptions::default()
    };
    let first = AddOptions {
        lifo: true,
        ..AddOptions::default()
    };
    for (copies, options) in [priority(2), priority(1), priority(0), first].into_iter().enumerate() {
        stage.add(copies as u32, options).await;
    }
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.waiting, counts.prioritized), (2, 2));
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = order.clone();
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), move |job| {
            seen.lock().expect("order").push((job.data.copies, job.fields.priority));
            async { Ok(()) }
        })
        .await;
    for _ in 0..4 {
        events.completed().await;
    }
    let expected = [(3, None), (2, None), (1, Some(1)), (0, Some(2))];
    assert_eq!(*order.lock().expect("order"), expected);
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn retention_is_the_jobs_or_else_the_workers() {
    let stage = Stage::new().await;
    let kept = AddOptions {
        remove_on_complete: Some(Keep::ALL),
        ..AddOptions::default()
    };
    let gone = stage.add(1, AddOptions::default()).await;
    let kept = stage.add(2, kept).await;
    let options = WorkerOptions {
        remove_on_complete: Keep::NONE,
        ..WorkerOptions::default()
    };
    let (worker, mut events) = stage.worker(options, |_| async { Ok(()) }).await;
    events.completed().await;
    events.completed().await;
    assert_eq!(stage.state(&gone).await, "unknown");
    assert_eq!(stage.state(&kept).await, "completed");
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_job_that_failed_for_good_can_be_put_back_in_line() {
    let stage = Stage::new().await;
    let id = stage.add(1, AddOptions::default()).await;
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), |job| async move {
            match job.fields.attempts_made {
                0 => Err(JobError::failed("no")),
                _ => Ok(()),
            }
        })
        .await;
    events.failed().await;
    within(stage.queue.retry(&id)).await.expect("put back");
    assert_eq!(events.completed().await, id);
    let again = within(stage.queue.retry(&id)).await;
    assert!(matches!(again, Err(Error::NotInState { .. })));
    assert!(within(stage.queue.remove(&id)).await.expect("removed"));
    assert!(within(stage.queue.job(&id)).await.expect("looked up").is_none());
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_job_yields_to_the_owner_of_its_deduplication_id() {
    let stage = Stage::new().await;
    let options = AddOptions {
        deduplication: Some(Deduplication::of("d")),
        ..AddOptions::default()
    };
    let first = stage.add(1, options.clone()).await;
    assert_eq!(stage.add(2, options.clone()).await, first);
    let found = within(stage.queue.job(&first))
        .await
        .expect("looked up")
        .expect("a job");
    assert_eq!(found.job.fields.deduplication_id.as_deref(), Some("d"));
    let queue = stage.queue.untyped();
    let owner = within(queue.deduplication_owner("d")).await.expect("looked up");
    assert_eq!(owner.as_deref(), Some(first.as_str()));
    assert!(!within(queue.free_deduplication("d", Some("other")))
        .await
        .expect("asked"));
    assert!(within(queue.free_deduplication("d", None)).await.expect("freed"));
    assert_ne!(stage.add(3, options).await, first);
    stage.end().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_refused() {
    let no_url = TypedQueue::<Mail>::connect("http://localhost", "mail").await;
    assert!(matches!(no_url, Err(Error::Invalid(_))));
    let nobody = ConnectOptions {
        port: 1,
        ..ConnectOptions::default()
    };
    let handler = |_: TypedJob<Mail>| async { Ok::<(), JobError>(()) };
    let unreachable = TypedWorker::start(nobody, "mail", WorkerOptions::default(), handler);
    assert!(matches!(within(unreachable).await, Err(Error::Connection { .. })));
    let url = server_url();
    let no_slots = TypedWorker::start(&url, "mail", concurrency(0), handler);
    assert!(matches!(within(no_slots).await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn data_without_json_form_is_refused() {
    let stage = Stage::new().await;
    let odd = within(TypedQueue::connect(&server_url(), &stage.name))
        .await
        .expect("queue");
    let keyed_by_pairs = std::collections::HashMap::from([((1, 2), 3)]);
    let added = within(odd.add("odd", &keyed_by_pairs, &AddOptions::default())).await;
    assert!(matches!(added, Err(Error::Invalid(_))));
    within(odd.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn many_jobs_go_at_once() {
    let stage = Stage::new().await;
    let later = AddOptions {
        delay: Duration::from_secs(60),
        ..AddOptions::default()
    };
    for copies in 0..5 {
        stage.add(copies, AddOptions::default()).await;
        stage.add(copies, later.clone()).await;
    }
    let all = Pick::default();
    let two = within(stage.queue.clean("wait", &all, Some(2))).await.expect("ids");
    assert_eq!(two.len(), 2);
    within(stage.queue.drain(false)).await.expect("drained");
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.waiting, counts.delayed), (0, 5));
    within(stage.queue.drain(true)).await.expect("drained");
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.waiting, counts.delayed), (0, 0));
    assert_eq!(within(stage.queue.replay_failed(&all, None)).await.expect("none"), 0);
    stage.end().await;
}
