//! Jobs that do not complete.

use std::time::Duration;

use chasquimq::{msgpack::Packer, Backoff, Error};

use super::*;

#[tokio::test]
async fn a_failed_try_is_followed_by_another_after_its_pause() {
    let stage = Stage::new().await;
    let options = AddOptions {
        attempts: 3,
        backoff: Some(Backoff::fixed(Duration::from_millis(5))),
        ..AddOptions::default()
    };
    let id = stage.add(1, options).await;
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), |job| async move {
            match job.fields.attempts_made {
                0 => Err(JobError::from(std::fmt::Error)),
                1 => Err(JobError::failed("again").retry_after(Duration::from_millis(9))),
                _ => Ok("at last"),
            }
        })
        .await;
    let message = std::fmt::Error.to_string();
    assert_eq!(
        events.failed().await,
        (id.clone(), message.clone(), FailureState::Delayed(5), 1)
    );
    assert_eq!(
        events.failed().await,
        (id.clone(), "again".into(), FailureState::Delayed(9), 2)
    );
    assert_eq!(events.completed().await, id);
    let found = stage.job(&id).await;
    let traces = found.job.fields.stacktrace.expect("traces");
    let traces: Vec<String> = serde_json::from_str(&traces).expect("traces");
    assert_eq!(traces, [message, "again".into()]);
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn an_unrecoverable_failure_uses_no_further_tries() {
    let stage = Stage::new().await;
    let options = AddOptions {
        attempts: 5,
        ..AddOptions::default()
    };
    let id = stage.add(1, options).await;
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), |_| async {
            Err::<(), _>(JobError::unrecoverable("no such address"))
        })
        .await;
    let expected = (id.clone(), "no such address".to_owned(), FailureState::Failed, 1);
    assert_eq!(events.failed().await, expected);
    assert_eq!(stage.state(&id).await, "failed");
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_panic_is_a_failed_try_and_the_worker_goes_on() {
    let stage = Stage::new().await;
    let ids = stage.add_many(2).await;
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), |job| {
            // outside the future, where nobody awaits it
            assert!(job.data.copies > 0, "no copies");
            async { Ok(()) }
        })
        .await;
    let (id, reason, state, _) = events.failed().await;
    assert_eq!((&id, state), (&ids[0], FailureState::Failed));
    assert_eq!(reason, "the handler panicked: no copies");
    assert_eq!(events.completed().await, ids[1]);
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn data_of_another_type_fails_for_good() {
    let stage = Stage::new().await;
    let texts = within(TypedQueue::connect(&redis_url(), &stage.name))
        .await
        .expect("queue");
    let options = AddOptions {
        attempts: 5,
        ..AddOptions::default()
    };
    let id = within(texts.add("text", &"no mail", &options)).await.expect("added");
    let (worker, mut events) = stage.worker(WorkerOptions::default(), |_| async { Ok(()) }).await;
    let (failed, reason, state, _) = events.failed().await;
    assert_eq!((&failed, state), (&id, FailureState::Failed));
    assert!(reason.starts_with("the data is not readable"), "{reason}");
    assert!(matches!(
        within(stage.queue.job(&id)).await,
        Err(Error::Malformed { .. })
    ));
    within(worker.close()).await;
    within(texts.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_job_whose_failure_was_decided_does_not_run() {
    let stage = Stage::new().await;
    let with_id = AddOptions {
        job_id: Some("doomed".into()),
        attempts: 5,
        ..AddOptions::default()
    };
    stage.add(1, with_id).await;
    let mut fields = Packer(vec![0x81]);
    fields.str("df").str("stalled too often");
    let keys = Keys::from(&stage.name);
    let connection = connection();
    let mut doom = redis::cmd("HSET");
    doom.arg(keys.key("vitals")).arg("doomed").arg(fields.0);
    within(connection.send(&doom)).await.expect("doomed");
    let (worker, mut events) = stage.worker(WorkerOptions::default(), |_| async { Ok("ran") }).await;
    let expected = ("doomed".into(), "stalled too often".into(), FailureState::Failed, 1);
    assert_eq!(events.failed().await, expected);
    within(worker.close()).await;
    connection.close();
    stage.end().await;
}

#[tokio::test]
async fn a_job_that_is_gone_when_it_ends_is_told() {
    let stage = Stage::new().await;
    let id = stage.add(1, AddOptions::default()).await;
    let (handler, mut starts, gate) = gated();
    let (worker, mut events) = stage.worker(WorkerOptions::default(), handler).await;
    within(starts.recv()).await.expect("a start");
    let queue = stage.queue.untyped();
    within(queue.obliterate(system_now_ms(), true, 1000))
        .await
        .expect("obliterated");
    gate.add_permits(1);
    let rejected = events
        .first(|event| match event {
            WorkerEvent::Rejected { id, error } => Some((id, error.code())),
            _ => None,
        })
        .await;
    assert_eq!(rejected, (id, Some(-1)));
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_listener_that_panics_costs_no_job() {
    let stage = Stage::new().await;
    let ids = stage.add_many(2).await;
    let options = TypedWorkerOptions::default().on_event(|event| {
        assert!(!matches!(event, WorkerEvent::Completed { .. }), "a listener's panic");
    });
    let (ended, mut ends) = mpsc::unbounded_channel();
    let handler = move |job: TypedJob<Mail>| {
        let ended = ended.clone();
        async move {
            let _ = ended.send(job.id);
            Ok::<(), JobError>(())
        }
    };
    let worker = within(TypedWorker::start(&redis_url(), &stage.name, options, handler))
        .await
        .expect("worker");
    assert_eq!(within(ends.recv()).await.as_ref(), ids.first());
    assert_eq!(within(ends.recv()).await.as_ref(), ids.last());
    within(worker.close()).await;
    stage.end().await;
}
