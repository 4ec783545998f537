//! Shows what is told about a queue while jobs go through it. Brings its own queue, and removes it at the end.
//!
//! ```sh
//! REDIS_URL=redis://127.0.0.1:6379 cargo run -p chasquimq-typed --example events
//! ```

use std::{env, sync::Arc, time::Duration};

use chasquimq_typed::{
    system_now_ms, unique_id, AddOptions, ConnectOptions, Error, Event, EventMessage, EventReader, JobError, Keys,
    TypedJob, TypedQueue, TypedWorker, WorkerOptions,
};
use tokio::sync::mpsc;

async fn halve(job: TypedJob<u32>) -> Result<u32, JobError> {
    match job.data % 2 {
        0 => Ok(job.data / 2),
        _ => Err(JobError::unrecoverable(format!("{} is odd", job.data))),
    }
}

/// Events come in batches, each in BullMQ's words.
fn print(event: &Event) {
    let fields: Vec<String> = event
        .fields
        .iter()
        .map(|(field, value)| format!("{field}={value}"))
        .collect();
    println!("{} {:<10} {}", event.id, event.name, fields.join(" "));
}

#[tokio::main]
async fn main() -> chasquimq_typed::Result<()> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let server = ConnectOptions::try_from(&url)?;
    let keys = Keys::new("bull", &format!("example-events-{}", unique_id()));

    // a reader has a connection of its own, because it waits on it
    let (tell, mut told) = mpsc::unbounded_channel();
    let sink: Arc<dyn Fn(EventMessage) + Send + Sync> = Arc::new(move |message| {
        let _ = tell.send(message);
    });
    let reader = Arc::new(EventReader::new(server.clone(), keys.clone(), sink.clone()));
    // from the first event; `$` is from now on
    let reading = tokio::spawn(reader.run("0", Duration::from_secs(10), sink));
    reader.ready().await?;

    let queue = TypedQueue::connect(server.clone(), keys.clone()).await?;
    let worker = TypedWorker::start(server, keys, WorkerOptions::default(), halve).await?;
    for number in [12, 7, 100] {
        queue.add("halve", &number, &AddOptions::default()).await?;
    }

    let mut ended = 0;
    while ended < 3 {
        match told.recv().await {
            Some(EventMessage::Events(events)) => {
                events.iter().for_each(print);
                let is_end = |event: &&Event| event.name == "completed" || event.name == "failed";
                ended += events.iter().filter(is_end).count();
            }
            Some(EventMessage::Failed(error)) => return Err(error),
            Some(EventMessage::Connection(event)) => println!("{event:?}"),
            None => return Err(Error::Closed),
        }
    }

    reader.close();
    // its only way to fail is a panic, which has told itself
    let _ = reading.await;
    worker.close().await;
    queue.untyped().obliterate(system_now_ms(), true, 1000).await?;
    queue.close().await;
    Ok(())
}
