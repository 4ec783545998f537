//! Jobs that do not complete.

use std::time::Duration;

use chasquimq::{msgpack::Packer, Connection};
use chasquimq_typed::{Backoff, Error};

use super::{probe::connect_options, *};

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
    let texts = within(TypedQueue::connect(&server_url(), &stage.name))
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
    let mut stage = Stage::new().await;
    let with_id = AddOptions {
        job_id: Some("doomed".into()),
        attempts: 5,
        ..AddOptions::default()
    };
    stage.add(1, with_id).await;
    let mut fields = Packer(vec![0x81]);
    fields.str("df").str("stalled too often");
    redis::cmd("HSET")
        .arg(stage.probe.keys.key("vitals"))
        .arg("doomed")
        .arg(fields.0)
        .exec(&mut stage.probe.connection)
        .expect("doomed");
    let (worker, mut events) = stage.worker(WorkerOptions::default(), |_| async { Ok("ran") }).await;
    let expected = ("doomed".into(), "stalled too often".into(), FailureState::Failed, 1);
    assert_eq!(events.failed().await, expected);
    within(worker.close()).await;
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
    let worker = within(TypedWorker::start(&server_url(), &stage.name, options, handler))
        .await
        .expect("worker");
    assert_eq!(within(ends.recv()).await.as_ref(), ids.first());
    assert_eq!(within(ends.recv()).await.as_ref(), ids.last());
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_delay_that_a_run_asks_for_whose_lease_was_lost_moves_no_later_run() {
    let stage = Stage::new().await;
    let finder = WorkerOptions {
        stalled_interval: Some(Duration::from_millis(50)),
        ..concurrency(1)
    };
    let (held, mut busy, end_of_held) = gated();
    let (other, _events) = stage.worker(finder, held).await;
    // its slot is taken: what it finds to be lost is for the other one
    stage.add(1, AddOptions::default()).await;
    within(busy.recv()).await.expect("a start");
    let options = WorkerOptions {
        lock_renew_time: None,
        stalled_interval: None,
        ..concurrency(2)
    };
    let lease = stage.probe.keys.key(&format!("lease:{}", options.id));
    let (started, mut starts) = mpsc::unbounded_channel();
    let gates = [Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0))];
    let permits = gates.clone();
    let (worker, mut events) = stage
        .worker(options, move |job| {
            let run = job.fields.attempts_started;
            let (started, gate) = (started.clone(), permits[run as usize - 1].clone());
            async move {
                started.send(run)?;
                gate.acquire().await?.forget();
                match run {
                    1 => Err(JobError::delayed(Duration::from_secs(3600))),
                    _ => Ok(run),
                }
            }
        })
        .await;
    let id = stage.add(2, AddOptions::default()).await;
    assert_eq!(within(starts.recv()).await, Some(1));
    // it opens while the worker takes its next step, which writes the lease once more
    let connection = Connection::new(connect_options(), |_| {});
    let mut lose = redis::cmd("DEL");
    lose.arg(lease);
    let lost = within(connection.send(&lose)).await.expect("an answer");
    assert_eq!(lost, redis::Value::Int(1));
    connection.close();
    assert_eq!(within(starts.recv()).await, Some(2));
    gates[0].add_permits(1);
    let rejected = events.first(|event| match event {
        WorkerEvent::Rejected { id, error } => Some((id, error.code())),
        _ => None,
    });
    // the lock is that of the later run by now
    assert_eq!(rejected.await, (id.clone(), Some(-6)));
    assert_eq!(stage.state(&id).await, "active");
    gates[1].add_permits(1);
    assert_eq!(events.completed().await, id);
    assert_eq!(stage.job(&id).await.result::<u32>().expect("result"), Some(2));
    end_of_held.add_permits(1);
    within(worker.close()).await;
    within(other.close()).await;
    stage.end().await;
}
