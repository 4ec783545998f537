//! Adds that take the step of an idle worker along, and so the record of how the job ended: by the connection of whoever adds.

use std::{
    sync::{
        atomic::{AtomicU32, AtomicUsize, Ordering},
        Arc,
    },
    time::{Duration, Instant},
};

use chasquimq::{
    add::{read_added, split_answer, Call},
    redis::wire::{Value, Watch, Watched},
    system_now_ms,
    worker::Standby,
    AddBatch, ConnectOptions, Connection, JobOptions, NewJob, Queue, WorkerOptions,
};

use crate::{
    probe::connect_options,
    proxy::Proxy,
    short_way::{assert_once_each, nothing, short_waits, Before, Hasty},
    world::{World, PATIENCE},
};

/// What becomes of what went along.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Told,
    /// It is carried out, and nobody knows.
    Lost,
    /// The answer is there, and is told long after the worker's loop has asked for it itself.
    Late,
}

/// By the number of a job, or of a step.
type Fates = fn(u64) -> Fate;

/// Whoever adds, in the thread that runs the jobs.
struct Adder<'a> {
    world: &'a World,
    worker: &'a Hasty,
    connection: Asked,
    /// How many steps went along.
    steps: usize,
    /// How many records.
    records: Arc<AtomicUsize>,
}

impl<'a> Adder<'a> {
    /// `fate` is that of all records, by their step's number.
    fn new(world: &'a World, worker: &'a Hasty, options: ConnectOptions, fate: Fates) -> Self {
        let records = Arc::<AtomicUsize>::default();
        let (mut commands, standby, event_loop) = (worker.sends_along(), worker.standby_of(), worker.event_loop());
        let (mut connection, counted) = (Asked::new(options.clone()), records.clone());
        tokio::spawn(async move {
            while let Some((number, command)) = commands.recv().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let reply = connection.ask(&command).await.map(Some);
                if let Some(standby) = standby() {
                    event_loop.settle(&standby, number, known(reply, fate(number as u64)).await);
                }
            }
        });
        Self {
            world,
            worker,
            connection: Asked::new(options),
            steps: 0,
            records,
        }
    }

    /// Adds a job, with the worker's step along if it waits.
    async fn add(&mut self, fate: Fate) {
        let producer = self.world.queue.producer();
        let call = begin(&self.world.queue, "0");
        let standby = self.worker.standby();
        let step = standby.as_ref().and_then(Standby::step_along);
        let command = match &step {
            Some(step) => producer.command_with_step(&call, step),
            None => producer.commands(&call).pieces().collect::<Vec<_>>().concat(),
        };
        let (added, stepped) = match (self.connection.ask(&command).await, &step) {
            (Some(answer), Some(_)) => {
                let (added, stepped) = split_answer(answer);
                (Some(added), Some(stepped))
            }
            (answer, _) => (answer, None),
        };
        let added = match added.map(|added| read_added(added, "a queue")) {
            Some(Ok(added)) => Ok(added),
            _ => producer.send(&call).await,
        };
        producer.end(&call, &added);
        added.expect("an addition");
        if let (Some(step), Some(standby)) = (step, standby) {
            self.steps += 1;
            let reply = known(stepped, fate).await;
            self.worker.event_loop().settle(&standby, step.number, reply);
        }
    }

    /// Adds jobs one at a time, each when the one before has completed, until so many of them took a step along. Gives their number.
    async fn one_at_a_time(&mut self, steps: usize, fate: Fates) -> usize {
        for job in 1.. {
            self.add(fate(job)).await;
            self.world.completed(job).await;
            if self.steps >= steps {
                return job as usize;
            }
        }
        unreachable!("numbers do not end")
    }
}

/// How long an event loop stays awake for an answer.
const AWAKE: Duration = Duration::from_millis(1);

/// A connection that is opened again when it breaks.
struct Asked {
    connection: Connection,
    socket: Option<Watched>,
}

impl Asked {
    fn new(options: ConnectOptions) -> Self {
        Self {
            connection: Connection::new(options, |_| {}),
            socket: None,
        }
    }

    /// Sends a command and waits for its answer; none where the connection breaks.
    async fn ask(&mut self, command: &[u8]) -> Option<Value> {
        if self.socket.is_none() {
            self.socket = match self.connection.watch(|| {}).await {
                Ok(Some(Watch::Begins(socket))) => Some(socket),
                _ => None,
            };
        }
        let socket = self.socket.as_ref()?;
        let mut replies = Vec::new();
        let sent = Instant::now();
        let mut alive = socket.send(&command.to_vec().into(), 1).is_ok();
        while alive && replies.is_empty() {
            alive = socket.receive(&mut replies).is_ok();
            // it is awake for a while, as an event loop is that expects an answer; for ever, it would keep the server from running
            match sent.elapsed() < AWAKE {
                true => tokio::task::yield_now().await,
                false => tokio::time::sleep(AWAKE).await,
            }
        }
        match replies.pop() {
            Some(Ok(answer)) => Some(answer),
            _ => {
                self.socket = None;
                None
            }
        }
    }
}

/// What is known of an answer.
async fn known(reply: Option<Option<Value>>, fate: Fate) -> Option<Option<Value>> {
    if fate == Fate::Late {
        // longer than a lease lasts
        tokio::time::sleep(Duration::from_millis(1300)).await;
    }
    reply.filter(|_| fate != Fate::Lost)
}

const TOLD: Fates = |_| Fate::Told;
const THIRD_LOST: Fates = |number| if number % 3 == 0 { Fate::Lost } else { Fate::Told };
const SECOND_LATE: Fates = |number| if number % 2 == 0 { Fate::Late } else { Fate::Told };

fn begin(queue: &Arc<Queue>, data: &str) -> Call {
    let options = JobOptions::parse("{}").expect("options");
    let job = NewJob {
        name: "a",
        data,
        options: &options,
    };
    queue.producer().begin(AddBatch::one(system_now_ms(), job))
}

/// Waits that are longer than the test: whatever it needs them to bring comes at once.
fn long_waits() -> WorkerOptions {
    WorkerOptions {
        drain_delay: 2 * PATIENCE,
        ..WorkerOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_starts_and_ends_by_the_connection_that_added_it() {
    let world = World::new();
    let worker = Hasty::start(&world, connect_options(), long_waits(), nothing());
    let mut adder = Adder::new(&world, &worker, connect_options(), TOLD);
    let jobs = adder.one_at_a_time(100, TOLD).await;
    assert!(adder.records.load(Ordering::Relaxed) > 0);
    let seen = worker.close().await;
    assert_once_each(world, &seen, jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_at_any_moment_loses_no_job() {
    for concurrency in [1, 10] {
        let world = World::new();
        let proxy = Proxy::start(15).await;
        let options = WorkerOptions {
            concurrency,
            ..short_waits()
        };
        let worker = Hasty::start(&world, proxy.connect_options(), options, nothing());
        let mut adder = Adder::new(&world, &worker, proxy.connect_options(), TOLD);
        let mut jobs = 0;
        while proxy.cuts() < 30 || adder.records.load(Ordering::Relaxed) < 20 {
            jobs += 1;
            adder.add(Fate::Told).await;
            world.completed(jobs).await;
        }
        proxy.calm();
        let seen = worker.close().await;
        assert_once_each(world, &seen, jobs as usize);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_is_asked_for_again() {
    let world = World::new();
    let worker = Hasty::start(&world, connect_options(), short_waits(), nothing());
    let mut adder = Adder::new(&world, &worker, connect_options(), THIRD_LOST);
    let jobs = adder.one_at_a_time(60, THIRD_LOST).await;
    let seen = worker.close().await;
    assert!(seen.by_loop > 0, "{seen:?}");
    assert_once_each(world, &seen, jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_loop_that_does_not_read_keeps_no_job_from_running() {
    let world = World::new();
    let options = WorkerOptions {
        lock_duration: Duration::from_secs(1),
        lock_renew_time: Some(Duration::from_millis(100)),
        ..long_waits()
    };
    let worker = Hasty::start(&world, connect_options(), options, nothing());
    let mut adder = Adder::new(&world, &worker, connect_options(), SECOND_LATE);
    let jobs = adder.one_at_a_time(10, SECOND_LATE).await;
    let seen = worker.close().await;
    assert!(seen.by_loop > 0, "{seen:?}");
    assert_once_each(world, &seen, jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_add_comes_as_before() {
    let world = World::new();
    let worker = Hasty::start(&world, connect_options(), long_waits(), nothing());
    let mut adder = Adder::new(&world, &worker, connect_options(), TOLD);
    let mut jobs = 0;
    for round in 0.. {
        if adder.steps >= 60 {
            break;
        }
        for _ in 0..round % 3 {
            adder.add(Fate::Told).await;
            jobs += 1;
        }
        // in the middle of what went along, or behind it
        let others = world.add_plain(1 + round % 4);
        let own = adder.add(Fate::Told);
        tokio::join!(others, own);
        jobs += 2 + round as u64 % 4;
        world.completed(jobs).await;
    }
    let seen = worker.close().await;
    assert_once_each(world, &seen, jobs as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_worker_is_told_meanwhile_holds() {
    let world = World::new();
    let told = AtomicU32::new(0);
    let before: Before = Arc::new(move |worker| match told.fetch_add(1, Ordering::Relaxed) % 6 {
        0 => worker.set_concurrency(1),
        1 => worker.scan(),
        2 => worker.tick(system_now_ms()),
        3 => {
            worker.pause();
            worker.run(system_now_ms());
        }
        4 => worker.set_limiter(None),
        _ => {}
    });
    let worker = Hasty::start(&world, connect_options(), short_waits(), before);
    let mut adder = Adder::new(&world, &worker, connect_options(), TOLD);
    let jobs = adder.one_at_a_time(60, TOLD).await;
    let seen = worker.close().await;
    assert_once_each(world, &seen, jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_starts_in_its_time() {
    let world = World::new();
    let worker = Hasty::start(&world, connect_options(), long_waits(), nothing());
    let mut adder = Adder::new(&world, &worker, connect_options(), TOLD);
    for round in 1..=20 {
        adder.add(Fate::Told).await;
        world.add(r#"{"delay":20}"#, ["0".to_owned()]).await;
        adder.add(Fate::Told).await;
        world.completed(3 * round).await;
    }
    let seen = worker.close().await;
    assert_once_each(world, &seen, 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_emptied_keeps_no_job_that_nobody_runs() {
    let mut world = World::new();
    let worker = Hasty::start(&world, connect_options(), long_waits(), nothing());
    let mut adder = Adder::new(&world, &worker, connect_options(), TOLD);
    let jobs = adder.one_at_a_time(20, TOLD).await as u64;
    drop(adder);
    for name in world.server::<Vec<String>>(&["KEYS", &format!("{}*", world.keys.base)]) {
        world.server::<i64>(&["DEL", &name]);
    }
    // the server has forgotten that the worker waits
    for job in 1..=3 {
        world.add_plain(1).await;
        world.completed(job).await;
    }
    let seen = worker.close().await;
    assert_eq!(seen.all_runs(), jobs + 3);
    assert_eq!(world.end().completed().len(), 3);
}
