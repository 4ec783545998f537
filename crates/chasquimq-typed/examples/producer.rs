//! Adds jobs to the queue `example-mail`; `worker.rs` runs them.
//!
//! ```sh
//! REDIS_URL=redis://127.0.0.1:6379 cargo run -p chasquimq-typed --example producer
//! ```

use std::{env, time::Duration};

use chasquimq_typed::{AddOptions, Backoff, BulkJob, Keep, TypedQueue};
use serde::Serialize;

/// What a job carries. Any type with a JSON form will do.
#[derive(Serialize)]
struct Mail {
    to: String,
    subject: String,
}

fn mail(to: &str) -> Mail {
    Mail {
        to: format!("{to}@example.com"),
        subject: format!("Hello, {to}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> chasquimq_typed::Result<()> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let queue = TypedQueue::connect(&url, "example-mail").await?;

    let id = queue.add("welcome", &mail("ana"), &AddOptions::default()).await?;
    println!("added job {id}");

    // three tries in all, one and two seconds apart; only the newest hundred are kept once they completed
    let options = AddOptions {
        attempts: 3,
        backoff: Some(Backoff::exponential(Duration::from_secs(1))),
        remove_on_complete: Some(Keep::newest(100)),
        ..AddOptions::default()
    };
    let newsletters: Vec<Mail> = ["berta", "carla", "diego", "elena", "fabio"].map(mail).into();
    let jobs: Vec<BulkJob<'_, Mail>> = newsletters
        .iter()
        .map(|data| BulkJob {
            name: "newsletter",
            data,
            options: &options,
        })
        .collect();
    // one atomic step, however many they are
    let ids = queue.add_bulk(&jobs).await?;
    println!("added jobs {}", ids.join(", "));

    let later = AddOptions {
        delay: Duration::from_secs(2),
        // adding it again while it exists adds nothing
        job_id: Some("reminder-ana".into()),
        ..AddOptions::default()
    };
    let id = queue.add("reminder", &mail("ana"), &later).await?;
    println!("added job {id}, which is {}", queue.state(&id).await?);

    let counts = queue.counts().await?;
    println!("in the queue: {} waiting, {} delayed", counts.waiting, counts.delayed);
    queue.close().await;
    Ok(())
}
