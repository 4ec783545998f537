//! The event log, as a reader hears it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chasquimq::{system_now_ms, Event, EventMessage, EventReader, WorkerOptions};

use crate::{
    probe::connect_options,
    runner::End,
    world::{until, World},
};

/// A reader under way, and what it heard.
struct Listener {
    reader: Arc<EventReader>,
    events: Arc<Mutex<Vec<Event>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Listener {
    fn from(world: &World, place: &str) -> Self {
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let heard = events.clone();
        let sink = Arc::new(move |message| {
            if let EventMessage::Events(more) = message {
                heard.lock().expect("events").extend(more);
            }
        });
        let reader = Arc::new(EventReader::new(connect_options(), world.keys.clone(), sink.clone()));
        let task = tokio::spawn(reader.run(place, Duration::from_secs(1), sink));
        Self { reader, events, task }
    }

    fn heard(&self) -> Vec<Event> {
        self.events.lock().expect("events").clone()
    }

    async fn until(&self, events: usize) -> Vec<Event> {
        until("events to be heard", || async { self.heard().len() >= events }).await;
        self.heard()
    }

    async fn close(self) {
        self.reader.close();
        self.task.await.expect("a reader that ends");
    }
}

fn shown(events: &[Event]) -> Vec<String> {
    let job = |event: &Event| {
        event
            .fields
            .first()
            .map_or_else(String::new, |(_, id)| format!(" {id}"))
    };
    events
        .iter()
        .map(|event| format!("{}{}", event.name, job(event)))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_ready_hears_what_happens_next() {
    for _ in 0..50 {
        let world = World::new();
        world.add_plain(1).await;
        let listener = Listener::from(&world, "$");
        listener.reader.ready().await.expect("a reader");
        world.add_plain(1).await;
        assert_eq!(shown(&listener.until(2).await), ["added 2", "waiting 2"]);
        listener.close().await;
        world.end();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_tells_its_whole_life() {
    let world = World::new();
    let listener = Listener::from(&world, "0-0");
    let worker = world.worker(WorkerOptions::default(), |job| {
        std::future::ready(if job.fields.attempts_made == 0 && job.data == "1" {
            End::Failed("boom")
        } else {
            End::DONE
        })
    });
    until("the worker to wait", || async { worker.seen().drained > 0 }).await;
    world
        .add(
            r#"{"attempts":2,"backoff":{"type":"fixed","delay":20}}"#,
            ["1".to_owned()],
        )
        .await;
    world.completed(1).await;
    let events = listener.until(8).await;
    let expected = [
        "added 1",
        "waiting 1",
        "active 1",
        "delayed 1",
        "waiting 1",
        "active 1",
        "completed 1",
        "drained",
    ];
    assert_eq!(shown(&events), expected);
    worker.close().await;
    listener.close().await;
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_job_that_it_removed_is_in_the_log() {
    let world = World::new();
    let worker = world.worker(WorkerOptions::default(), |job| {
        std::future::ready(match job.data.as_str() {
            "\"fails\"" => End::Failed("boom"),
            // beyond what a record holds
            "\"large\"" => End::Completed(Some(format!("\"{}\"", "x".repeat(100_000)))),
            _ => End::Completed(Some("7".to_owned())),
        })
    });
    let jobs = ["\"passes\"", "\"fails\"", "\"large\"", "\"passes\""].map(str::to_owned);
    world
        .add(r#"{"removeOnComplete":true,"removeOnFail":true}"#, jobs)
        .await;
    let outcome = |id| world.queue.outcome(id);
    until("all to end", || async {
        outcome("4").await.expect("state").0 == "completed"
    })
    .await;
    assert_eq!(
        outcome("1").await.expect("state"),
        ("completed".to_owned(), "7".to_owned())
    );
    assert_eq!(
        outcome("2").await.expect("state"),
        ("failed".to_owned(), "boom".to_owned())
    );
    assert_eq!(outcome("3").await.expect("state").1.len(), 100_002);
    assert_eq!(outcome("5").await.expect("state").0, "unknown");
    worker.close().await;
    // somebody removed it: how it had ended before is over
    world.add(r#"{"jobId":"mine"}"#, ["1".to_owned()]).await;
    assert!(world
        .queue
        .remove(system_now_ms(), "mine", true)
        .await
        .expect("a removal"));
    assert_eq!(outcome("mine").await.expect("state").0, "unknown");
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_resumes_from_any_event() {
    let world = World::new();
    world.add_plain(30).await;
    world.add_plain(30).await;
    let first = Listener::from(&world, "0-0");
    let all = first.until(120).await;
    first.close().await;
    assert_eq!(all.len(), 120);
    for from in [1, 59, 60, 61, 119] {
        let listener = Listener::from(&world, &all[from - 1].id);
        assert_eq!(listener.until(120 - from).await, all[from..]);
        listener.close().await;
    }
    world.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_reader_hears_what_comes_from_now_on() {
    let world = World::new();
    world.add_plain(5).await;
    let listener = Listener::from(&world, "$");
    // until it has found its place it hears nothing, so it is told something new until it does
    until("the reader to hear", || async {
        world.add_plain(1).await;
        !listener.heard().is_empty()
    })
    .await;
    let id: u64 = listener.heard()[0].fields[0].1.parse().expect("number");
    assert!(id > 5);
    listener.close().await;
    world.end();
}
