//! Handlers that are to end before they have: their jobs are cancelled, or take too long.

use chasquimq_typed::Stop;

use super::*;

type Heard = Pin<Box<dyn Future<Output = Result<&'static str, JobError>> + Send>>;

/// A handler that says that it runs, waits to be stopped, and gives what `end` makes of that.
fn hears(
    end: fn(Stop) -> Result<&'static str, JobError>,
) -> (impl Fn(TypedJob<Mail>) -> Heard, mpsc::UnboundedReceiver<String>) {
    let (started, starts) = mpsc::unbounded_channel();
    let handler = move |job: TypedJob<Mail>| -> Heard {
        let started = started.clone();
        Box::pin(async move {
            assert!(!job.is_cancelled());
            let _ = started.send(job.id.clone());
            let stop = job.cancelled().await;
            assert!(job.is_cancelled());
            end(stop)
        })
    };
    (handler, starts)
}

fn tried_again() -> AddOptions {
    AddOptions {
        attempts: 2,
        ..AddOptions::default()
    }
}

async fn cancel(stage: &Stage, id: &str) {
    let queue = stage.queue.untyped();
    within(queue.cancel(system_now_ms(), id, "enough", false, false))
        .await
        .expect("cancelled");
}

#[tokio::test]
async fn a_handler_hears_that_its_job_is_cancelled_and_fails_for_good() {
    let stage = Stage::new().await;
    let id = stage.add(1, tried_again()).await;
    let other = stage.add(1, tried_again()).await;
    let (handler, mut starts) = hears(|stop| Err(stop.into()));
    let (worker, mut events) = stage.worker(concurrency(2), handler).await;
    for _ in 0..2 {
        within(starts.recv()).await.expect("a start");
    }
    for id in [id, other] {
        cancel(&stage, &id).await;
        let text = "The job was cancelled: enough".to_owned();
        assert_eq!(events.failed().await, (id, text, FailureState::Failed, 1));
    }
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_cancelled_job_whose_handler_returns_completes() {
    let stage = Stage::new().await;
    let id = stage.add(1, tried_again()).await;
    let (handler, mut starts) = hears(|_| Ok("done"));
    let (worker, mut events) = stage.worker(WorkerOptions::default(), handler).await;
    within(starts.recv()).await.expect("a start");
    cancel(&stage, &id).await;
    assert_eq!(events.completed().await, id);
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_try_that_takes_too_long_fails_whatever_its_handler_returns() {
    let stage = Stage::new().await;
    let limited = |timeout_is_final| AddOptions {
        timeout: Duration::from_millis(20),
        timeout_is_final,
        ..tried_again()
    };
    let again = stage.add(1, limited(false)).await;
    let (handler, _starts) = hears(|_| Ok("late"));
    let (worker, mut events) = stage.worker(WorkerOptions::default(), handler).await;
    let text = "Job mail took longer than 20 ms".to_owned();
    for (state, made) in [(FailureState::Waiting, 1), (FailureState::Failed, 2)] {
        assert_eq!(events.failed().await, (again.clone(), text.clone(), state, made));
    }
    let last = stage.add(1, limited(true)).await;
    assert_eq!(events.failed().await, (last, text, FailureState::Failed, 1));
    within(worker.close()).await;
    stage.end().await;
}
