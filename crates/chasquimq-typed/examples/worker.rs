//! Runs the jobs that `producer.rs` added, until none is left.
//!
//! ```sh
//! REDIS_URL=redis://127.0.0.1:6379 cargo run -p chasquimq-typed --example worker
//! ```

use std::env;

use chasquimq_typed::{JobError, TypedJob, TypedQueue, TypedWorker, TypedWorkerOptions, WorkerEvent, WorkerOptions};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
    subject: String,
}

/// What a job leaves behind.
#[derive(Serialize, Deserialize)]
struct Receipt {
    bytes: usize,
}

async fn send(job: TypedJob<Mail>) -> Result<Receipt, JobError> {
    let Mail { to, subject } = &job.data;
    if !to.contains('@') {
        // no further try would do better
        return Err(JobError::unrecoverable(format!("{to} is no address")));
    }
    if to.starts_with("diego") && job.fields.attempts_made == 0 {
        // any std::error::Error does as well, with `?`: the job is tried again as its options say
        return Err(JobError::failed("the mail server is busy"));
    }
    job.update_progress(&100).await?;
    println!("  {}: {subject}", job.name);
    Ok(Receipt { bytes: subject.len() })
}

#[tokio::main]
async fn main() -> chasquimq_typed::Result<()> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let queue = TypedQueue::<Mail>::connect(&url, "example-mail").await?;

    let (tell, mut events) = mpsc::unbounded_channel();
    let options = WorkerOptions {
        concurrency: 10,
        ..WorkerOptions::default()
    };
    let options = TypedWorkerOptions::from(options).on_event(move |event| {
        let _ = tell.send(event);
    });
    let worker = TypedWorker::start(&url, "example-mail", options, send).await?;

    while let Some(event) = events.recv().await {
        match event {
            WorkerEvent::Completed { id } => match queue.job(&id).await? {
                Some(job) => {
                    let bytes = job.result::<Receipt>()?.map_or(0, |receipt| receipt.bytes);
                    println!("job {id} completed: {bytes} bytes sent");
                }
                None => println!("job {id} completed and was removed"),
            },
            WorkerEvent::Failed { id, reason, state, .. } => println!("job {id}: {reason} ({state:?})"),
            other => println!("{other:?}"),
        }
        let left = queue.counts().await?;
        if left.waiting + left.active + left.delayed == 0 {
            break;
        }
    }

    // waits for what runs; a real program does this when it is told to stop
    worker.close().await;
    queue.close().await;
    Ok(())
}
