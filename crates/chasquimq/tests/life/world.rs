//! What a life test stands in: a fresh queue, ways to add to it, and waiting for what must come.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use chasquimq::{
    frame::Frame, system_now_ms, AddBatch, Added, ConnectOptions, Counts, JobOptions, Keys, NewJob, Queue,
    WorkerOptions,
};

use crate::{
    probe::{
        connect_options,
        snapshot::{Content, Snapshot},
        Probe,
    },
    runner::{End, Job, Runner},
};

/// Longer than anything here takes, on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Longer than a look takes, unless the machine stands still.
const ONE_LOOK: Duration = Duration::from_secs(1);

/// A queue, and everything a test needs around it.
pub struct World {
    pub queue: Arc<Queue>,
    pub keys: Keys,
    probe: Probe,
}

impl World {
    pub fn new() -> Self {
        Self::behind(connect_options())
    }

    /// A world whose queue reaches the server this way.
    pub fn behind(connect: ConnectOptions) -> Self {
        let probe = Probe::fresh();
        let keys = probe.keys.clone();
        Self {
            queue: Arc::new(Queue::new(connect, keys.clone(), |_| {})),
            keys,
            probe,
        }
    }

    /// Starts a worker, whose steps an event loop takes where it can; what it calls for each job is `handler`.
    pub fn worker<F>(&self, options: WorkerOptions, handler: impl Fn(Job) -> F + Send + Sync + 'static) -> Runner
    where
        F: Future<Output = End> + Send + 'static,
    {
        let options = WorkerOptions {
            watches_news: cfg!(unix),
            ..options
        };
        Runner::start(connect_options(), self.keys.clone(), options, handler)
    }

    /// Adds jobs named `a`, one for each data (JSON text), with these options (JSON text).
    pub async fn add(&self, options: &str, data: impl IntoIterator<Item = String>) -> Added {
        add_to(&self.queue, options, data).await
    }

    /// Adds `jobs` plain jobs with the data 0, 1, ...
    pub async fn add_plain(&self, jobs: usize) -> Added {
        self.add("{}", (0..jobs).map(|number| number.to_string())).await
    }

    pub async fn counts(&self) -> Counts {
        self.queue.counts().await.expect("counts")
    }

    /// Waits until so many jobs have completed.
    pub async fn completed(&self, jobs: u64) {
        let counts = Mutex::new(None);
        let is_so = || async {
            let found = self.counts().await;
            let are_completed = found.completed >= jobs;
            *counts.lock().expect("counts") = Some(found);
            are_completed
        };
        let described = || format!("{jobs} jobs to complete; there are {:?}", counts.lock());
        until_described(&described, is_so).await;
    }

    pub async fn state(&self, id: &str) -> String {
        self.queue.state(id).await.expect("state")
    }

    /// Runs a plain command on one of the queue's keys.
    pub fn command(&mut self, name: &str, suffix: &str) -> redis::Value {
        let key = self.keys.key(suffix);
        redis::cmd(name)
            .arg(key)
            .query(&mut self.probe.connection)
            .expect("command")
    }

    /// Runs a command of the server.
    pub fn server<T: redis::FromRedisValue>(&mut self, command: &[&str]) -> T {
        redis::cmd(command[0])
            .arg(&command[1..])
            .query(&mut self.probe.connection)
            .expect("command")
    }

    /// Ends a test: compares the keys with each other.
    pub fn end(mut self) -> Snapshot {
        self.queue.close();
        self.probe.checked()
    }
}

pub async fn add_to(queue: &Queue, options: &str, data: impl IntoIterator<Item = String>) -> Added {
    let options = JobOptions::parse(options).expect("options");
    let data: Vec<String> = data.into_iter().collect();
    let jobs = data.iter().map(|data| NewJob {
        name: "a",
        data,
        options: &options,
    });
    let batch = AddBatch::pack(system_now_ms(), jobs);
    queue.add(batch).await.expect("an addition")
}

/// Compares what waits with plain jobs whose data counts up from 0.
pub fn waits_once_each(snapshot: &Snapshot, jobs: usize) {
    let mut seen = vec![0; jobs];
    for entry in &snapshot.log {
        let Content::Frame(blob) = &entry.content else {
            panic!("a plain job is in a frame")
        };
        let mut frame = Frame::parse(blob).expect("a frame");
        while let Some((_, data)) = frame.next_job().expect("a job") {
            seen[data.trim_matches('"').parse::<usize>().expect("number")] += 1;
        }
    }
    let wrong: Vec<(usize, i32)> = (0..).zip(seen).filter(|(_, times)| *times != 1).collect();
    assert!(wrong.is_empty(), "number and times: {wrong:?}");
}

/// Waits for a condition.
pub async fn until<F: Future<Output = bool>>(what: &str, is_so: impl FnMut() -> F) {
    until_described(&|| what.to_owned(), is_so).await;
}

async fn until_described<F: Future<Output = bool>>(what: &(dyn Fn() -> String + Sync), mut is_so: impl FnMut() -> F) {
    let (mut waited, mut longest) = (Duration::ZERO, Duration::ZERO);
    loop {
        let asked = Instant::now();
        if is_so().await {
            return;
        }
        assert!(
            waited < PATIENCE,
            "waited {waited:?} for {}; one look took {longest:?}",
            what()
        );
        // the server gives no signal of what is asked here
        tokio::time::sleep(Duration::from_millis(5)).await;
        longest = longest.max(asked.elapsed());
        // while a machine stands still, nothing goes on
        waited += asked.elapsed().min(ONE_LOOK);
    }
}
