//! From the waiting list to the handler, and its result back.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Mutex,
    },
    time::Duration,
};

use chasquimq_typed::{AddOptions, Error, JobError, WorkerOptions};
use tokio::sync::{mpsc, Semaphore};

use super::*;

#[tokio::test]
async fn data_reaches_the_handler_and_its_result_is_kept() {
    let stage = Stage::new().await;
    let id = stage.add(2, AddOptions::default()).await;
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), |job| async move {
            assert_eq!((job.name.as_str(), &job.data), ("mail", &mail(2)));
            assert_eq!((job.fields.attempts_made, job.fields.attempts_started), (0, 1));
            Ok(vec![job.data.copies, 7])
        })
        .await;
    assert_eq!(events.completed().await, id);
    let found = stage.job(&id).await;
    assert_eq!((&found.data, found.job.state.as_str()), (&mail(2), "completed"));
    assert_eq!(found.result::<Vec<u32>>().expect("result"), Some(vec![2, 7]));
    assert!(matches!(found.result::<String>(), Err(Error::Malformed { .. })));
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn as_many_jobs_run_at_once_as_were_asked_for() {
    let stage = Stage::new().await;
    stage.add_many(9).await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (started, mut starts) = mpsc::unbounded_channel();
    let (now, peak, wait) = (running.clone(), most.clone(), gate.clone());
    let (worker, mut events) = stage
        .worker(concurrency(3), move |_| {
            let (now, peak, wait, started) = (now.clone(), peak.clone(), wait.clone(), started.clone());
            async move {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                started.send(()).expect("a test that listens");
                wait.acquire().await.expect("a permit").forget();
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
        .await;
    for _ in 0..3 {
        within(starts.recv()).await.expect("a start");
    }
    gate.add_permits(9);
    for _ in 0..9 {
        events.completed().await;
    }
    assert_eq!((most.load(Ordering::SeqCst), running.load(Ordering::SeqCst)), (3, 0));
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn more_slots_start_more_jobs() {
    let stage = Stage::new().await;
    stage.add_many(2).await;
    let (handler, mut starts, gate) = gated();
    let (worker, mut events) = stage.worker(concurrency(1), handler).await;
    within(starts.recv()).await.expect("the first");
    worker.set_concurrency(2);
    within(starts.recv()).await.expect("the second, while the first runs");
    gate.add_permits(2);
    events.completed().await;
    events.completed().await;
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_job_that_wants_to_wait_starts_again_without_a_try_lost() {
    let stage = Stage::new().await;
    let id = stage.add(1, AddOptions::default()).await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let seen = starts.clone();
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), move |job| {
            let fields = (job.fields.attempts_started, job.fields.attempts_made);
            seen.lock().expect("starts").push(fields);
            async move {
                if fields.0 == 1 {
                    return Err(JobError::delayed(Duration::from_millis(5)));
                }
                Ok(())
            }
        })
        .await;
    assert_eq!(events.completed().await, id);
    assert_eq!(*starts.lock().expect("starts"), [(1, 0), (2, 0)]);
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn a_delayed_job_starts_when_it_is_due() {
    let stage = Stage::new().await;
    let options = AddOptions {
        delay: Duration::from_millis(50),
        ..AddOptions::default()
    };
    let id = stage.add(1, options).await;
    assert_eq!(stage.state(&id).await, "delayed");
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), |job| async move {
            Ok(job.processed_on - job.timestamp)
        })
        .await;
    assert_eq!(events.completed().await, id);
    let found = stage.job(&id).await;
    let waited = found.result::<u64>().expect("result").expect("a result");
    assert!(waited >= 50, "started after {waited} ms");
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test]
async fn progress_and_log_are_kept() {
    let stage = Stage::new().await;
    let id = stage.add(1, AddOptions::default()).await;
    let (worker, mut events) = stage
        .worker(WorkerOptions::default(), |job| async move {
            job.update_progress(&serde_json::json!({ "sent": 1 })).await?;
            job.log("first").await?;
            Ok(job.log("second").await?)
        })
        .await;
    assert_eq!(events.completed().await, id);
    let found = stage.job(&id).await;
    assert_eq!(found.job.fields.progress.as_deref(), Some(r#"{"sent":1}"#));
    assert_eq!(found.result::<u64>().expect("result"), Some(2));
    let (rows, _) = within(stage.queue.untyped().logs(&id, 0, -1, true)).await.expect("log");
    assert_eq!(rows, ["first", "second"]);
    within(worker.close()).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_jobs_run_once_each() {
    let stage = Stage::new().await;
    let count = 3000;
    let runs = Arc::new(Mutex::new(vec![0; count]));
    let seen = runs.clone();
    let (worker, mut events) = stage
        .worker(concurrency(50), move |job| {
            let seen = seen.clone();
            async move {
                // some end at once, some let the others go first
                if job.data.copies % 3 == 0 {
                    tokio::task::yield_now().await;
                }
                seen.lock().expect("runs")[job.data.copies as usize] += 1;
                Ok(job.data.copies)
            }
        })
        .await;
    let ids = stage.add_many(count as u32).await;
    for _ in 0..count {
        events.completed().await;
    }
    assert!(runs.lock().expect("runs").iter().all(|runs| *runs == 1));
    let counts = within(stage.queue.counts()).await.expect("counts");
    assert_eq!((counts.completed, counts.waiting, counts.active), (3000, 0, 0));
    let found = within(stage.queue.job(&ids[1234]))
        .await
        .expect("looked up")
        .expect("a job");
    assert_eq!(found.result::<u32>().expect("result"), Some(1234));
    within(worker.close()).await;
    stage.end().await;
}
