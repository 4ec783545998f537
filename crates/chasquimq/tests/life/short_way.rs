//! Jobs that end before the worker's loop hears that they started: the event loop that ran them records that itself.

use std::{
    collections::HashMap,
    sync::{
        atomic::{AtomicU32, AtomicUsize, Ordering},
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    },
    time::Duration,
};

use chasquimq::{
    redis::wire::Value,
    system_now_ms,
    worker::{Batch, Completed, Message, RecordedBy, Report, Sink, Standby, Worker},
    ConnectOptions, WorkerOptions,
};
use tokio::{sync::mpsc, task::JoinHandle};

use crate::{
    lane::{watch, Carried},
    probe::connect_options,
    proxy::Proxy,
    runner::EVENT_LOOP,
    world::{until, World, PATIENCE},
};

/// What came of it.
#[derive(Debug, Default)]
pub struct Seen {
    /// How often each job ran, by its number.
    runs: HashMap<u64, usize>,
    /// The reports that the event loop said to be recorded, and those that the worker's loop did.
    pub by_socket: usize,
    pub by_loop: usize,
    /// The last of them.
    recorded: u64,
    refused: usize,
    errors: Vec<String>,
}

impl Seen {
    /// Of jobs with the same number, too.
    pub fn all_runs(&self) -> u64 {
        self.runs.values().sum::<usize>() as u64
    }
}

/// A worker whose jobs end the moment they are handed over, by the event loop where it took them.
pub struct Hasty {
    pub worker: Arc<Worker>,
    pub seen: Arc<Mutex<Seen>>,
    end: Outcome,
    task: JoinHandle<()>,
}

/// What is done with the worker before jobs end.
pub type Before = Arc<dyn Fn(&Worker) + Send + Sync>;

impl Hasty {
    pub fn start(world: &World, connect: ConnectOptions, options: WorkerOptions, before: Before) -> Self {
        let (sender, mut messages) = mpsc::unbounded_channel();
        let options = WorkerOptions {
            watches_news: true,
            ..options
        };
        let unread = Arc::<AtomicUsize>::default();
        let send = Arc::new({
            let unread = unread.clone();
            move |message: Message| {
                unread.fetch_add(1, Ordering::AcqRel);
                // a message for a test that is over is for nobody
                let _ = sender.send(message);
            }
        });
        let worker = Arc::new(Worker::new(connect, world.keys.clone(), options, send.clone()));
        worker.run(system_now_ms());
        let seen = Arc::<Mutex<Seen>>::default();
        let end = Outcome {
            worker: worker.clone(),
            seen: seen.clone(),
            reports: Arc::default(),
            standby: Arc::default(),
            lane: Arc::default(),
            along: Arc::default(),
            event_loop: Arc::default(),
            before,
            unread,
            send,
        };
        let hears = end.clone();
        let task = tokio::spawn(async move {
            while let Some(mut message) = messages.recv().await {
                let turn = hears.turn();
                hears.unread.fetch_sub(1, Ordering::AcqRel);
                if let Some(standby) = message.standby.take() {
                    *hears.standby.lock().expect("what it lends") = Some(standby.clone());
                    let (carry, carried) = mpsc::unbounded_channel();
                    *hears.lane.lock().expect("a lane") = Some(carry);
                    let tells = hears.clone();
                    EVENT_LOOP.spawn(watch(standby, carried, move |message| {
                        let _turn = tells.turn();
                        tells.hear_event_loop(message);
                    }));
                }
                hears.hear(message, false);
                drop(turn);
            }
        });
        Self {
            worker,
            seen,
            end,
            task,
        }
    }

    /// What the worker lends, once it does.
    pub fn standby(&self) -> Option<Standby> {
        self.end.standby.lock().expect("what it lends").clone()
    }

    /// The same, later.
    pub fn standby_of(&self) -> impl Fn() -> Option<Standby> + Send + use<> {
        let standby = self.end.standby.clone();
        move || standby.lock().expect("what it lends").clone()
    }

    /// What the connection of an add is to send for the worker: numbers of steps, and their commands. Once.
    pub fn sends_along(&self) -> mpsc::UnboundedReceiver<Carried> {
        let (sender, commands) = mpsc::unbounded_channel();
        self.end.along.set(sender).expect("one receiver");
        commands
    }

    /// The event loop that runs the jobs.
    pub fn event_loop(&self) -> EventLoop {
        EventLoop(self.end.clone())
    }

    /// Waits until all that ended is told to be recorded, and closes.
    pub async fn close(self) -> Seen {
        until("all ends to be told", || async {
            self.seen.lock().expect("seen").recorded == *self.end.reports.lock().expect("reports")
        })
        .await;
        self.worker.close(false).await;
        self.task.abort();
        let seen = std::mem::take(&mut *self.seen.lock().expect("seen"));
        assert_eq!((seen.refused, &seen.errors), (0, &Vec::new()), "{seen:?}");
        seen
    }
}

/// What only the thread that runs the jobs does.
pub struct EventLoop(Outcome);

impl EventLoop {
    /// Tells of what went along: its reply, where that is known.
    pub fn settle(&self, standby: &Standby, number: i64, reply: Option<Option<Value>>) {
        let _turn = self.0.turn();
        match reply {
            Some(reply) => standby.stepped(number, reply, |told| self.0.hear_event_loop(told.into())),
            None => standby.lose(number),
        }
    }
}

#[derive(Clone)]
struct Outcome {
    worker: Arc<Worker>,
    seen: Arc<Mutex<Seen>>,
    reports: Arc<Mutex<u64>>,
    standby: Arc<Mutex<Option<Standby>>>,
    // the steps that the event loop is to send
    lane: Arc<Mutex<Option<mpsc::UnboundedSender<Carried>>>>,
    along: Arc<OnceLock<mpsc::UnboundedSender<Carried>>>,
    // one thing at a time
    event_loop: Arc<Mutex<()>>,
    before: Before,
    // what the event loop hears must not overtake it
    unread: Arc<AtomicUsize>,
    send: Sink,
}

impl Outcome {
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.event_loop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear_event_loop(&self, message: Message) {
        match self.unread.load(Ordering::Acquire) {
            0 => self.hear(message, true),
            _ => (self.send)(message),
        }
    }

    fn hear(&self, message: Message, by_socket: bool) {
        {
            let mut seen = self.seen.lock().expect("seen");
            if let Some(flushed) = message.flushed {
                assert!(flushed > seen.recorded, "{flushed} after {}", seen.recorded);
                seen.recorded = flushed;
                *(if by_socket {
                    &mut seen.by_socket
                } else {
                    &mut seen.by_loop
                }) += 1;
            }
            seen.refused += message.rejected.len();
            seen.errors.extend(message.error.iter().map(ToString::to_string));
        }
        if message.clock {
            self.worker.tick(system_now_ms());
        }
        if message.asks_for_life {
            self.worker.heard();
        }
        if let Some(mut batch) = message.jobs {
            let drawn = draw_all(&self.worker, &batch);
            batch.jobs.truncate(drawn);
            if drawn > 0 {
                self.end(&batch);
            }
        }
    }

    fn end(&self, batch: &Batch) {
        let mut seen = self.seen.lock().expect("seen");
        for job in &batch.jobs {
            *seen.runs.entry(job.number).or_default() += 1;
        }
        drop(seen);
        (self.before)(&self.worker);
        let completed = (batch.base..).zip(&batch.jobs).map(|(handle, _)| Completed {
            handle,
            result: Some((0, 6)),
        });
        // as from one thread: in the order of their numbers
        let mut reports = self.reports.lock().expect("reports");
        *reports += 1;
        let finished = self.worker.finish(Report {
            number: *reports,
            now_ms: system_now_ms(),
            completed: completed.collect(),
            text: Arc::new("\"done\"".to_owned()),
            ..Report::default()
        });
        if let RecordedBy::Along { number, command } = finished {
            let lane = self.lane.lock().expect("a lane").clone();
            // a test that is over sends nothing, and one whose lane is gone is asked for again
            let _ = self
                .along
                .get()
                .cloned()
                .or(lane)
                .expect("a carrier")
                .send((number, command));
        }
    }
}

/// Draws the jobs of a batch. Gives how many: the worker may have taken the rest back.
fn draw_all(worker: &Worker, batch: &Batch) -> usize {
    batch.jobs.iter().take_while(|_| worker.draw(batch.offer)).count()
}

pub fn nothing() -> Before {
    Arc::new(|_| {})
}

/// After a lost wait, no short way begins until that would have ended.
pub fn short_waits() -> WorkerOptions {
    WorkerOptions {
        drain_delay: Duration::from_millis(200),
        ..WorkerOptions::default()
    }
}

/// Adds jobs one at a time, each when the one before has completed, until it is enough. Gives their number.
async fn one_at_a_time(world: &World, worker: &Hasty, is_enough: impl Fn(u64, &Seen) -> bool) -> u64 {
    for job in 1.. {
        world.add_plain(1).await;
        world.completed(job).await;
        if is_enough(job, &worker.seen.lock().expect("seen")) {
            return job;
        }
    }
    unreachable!("numbers do not end")
}

pub fn assert_once_each(world: World, seen: &Seen, jobs: usize) {
    assert_eq!(seen.runs.len(), jobs);
    assert!(seen.runs.values().all(|runs| *runs == 1), "{:?}", seen.runs);
    assert_eq!(world.end().completed().len(), jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_at_once_is_recorded_by_the_event_loop_that_ran_it() {
    let world = World::new();
    let worker = Hasty::start(&world, connect_options(), WorkerOptions::default(), nothing());
    let jobs = one_at_a_time(&world, &worker, |_, seen| seen.by_socket >= 20).await;
    let last = world
        .queue
        .job(&jobs.to_string())
        .await
        .expect("an answer")
        .expect("a job");
    assert_eq!(last.fields.returnvalue.as_deref(), Some("\"done\""));
    let seen = worker.close().await;
    assert_once_each(world, &seen, jobs as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_has_slots_left_does_so_too() {
    let world = World::new();
    let options = WorkerOptions {
        concurrency: 10,
        // no wait is over before the test is
        drain_delay: 2 * PATIENCE,
        ..WorkerOptions::default()
    };
    let worker = Hasty::start(&world, connect_options(), options, nothing());
    let jobs = one_at_a_time(&world, &worker, |jobs, seen| {
        assert!(jobs < 1_000, "{seen:?}");
        seen.by_socket >= 20
    })
    .await;
    let seen = worker.close().await;
    assert_once_each(world, &seen, jobs as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_at_any_moment_loses_no_end() {
    for concurrency in [1, 10] {
        let world = World::new();
        let proxy = Proxy::start(60).await;
        let options = WorkerOptions {
            concurrency,
            ..short_waits()
        };
        let worker = Hasty::start(&world, proxy.connect_options(), options, nothing());
        let jobs = one_at_a_time(&world, &worker, |_, seen| seen.by_socket >= 20 && proxy.cuts() > 5).await;
        proxy.calm();
        let seen = worker.close().await;
        assert_once_each(world, &seen, jobs as usize);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_between_a_start_and_its_end_loses_no_end() {
    let world = World::new();
    let proxy = Arc::new(Proxy::start(0).await);
    let (ends, cut) = (AtomicU32::new(0), proxy.clone());
    let before: Before = Arc::new(move |_: &Worker| {
        if ends.fetch_add(1, Ordering::Relaxed) % 4 == 3 {
            cut.orphan();
        }
    });
    let worker = Hasty::start(&world, proxy.connect_options(), short_waits(), before);
    let jobs = one_at_a_time(&world, &worker, |jobs, seen| jobs >= 40 && seen.by_socket >= 10).await;
    let seen = worker.close().await;
    assert_once_each(world, &seen, jobs as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_worker_is_told_meanwhile_holds() {
    let world = World::new();
    let told = AtomicU32::new(0);
    // whatever its loop has to do comes between a start and its end
    let before: Before = Arc::new(move |worker: &Worker| match told.fetch_add(1, Ordering::Relaxed) % 6 {
        0 => worker.set_concurrency(3),
        1 => worker.scan(),
        2 => worker.tick(system_now_ms()),
        3 => {
            worker.pause();
            worker.run(system_now_ms());
        }
        _ => {}
    });
    let worker = Hasty::start(&world, connect_options(), WorkerOptions::default(), before);
    let jobs = one_at_a_time(&world, &worker, |jobs, _| jobs == 120).await;
    let seen = worker.close().await;
    assert_once_each(world, &seen, jobs as usize);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_worker_takes_nothing_more() {
    let world = World::new();
    let worker = Hasty::start(
        &world,
        connect_options(),
        WorkerOptions::default(),
        Arc::new(Worker::pause),
    );
    world.add_plain(1).await;
    world.completed(1).await;
    worker.worker.paused().await;
    world.add_plain(1).await;
    assert_eq!(world.counts().await.waiting, 1);
    worker.worker.run(system_now_ms());
    world.completed(2).await;
    let seen = worker.close().await;
    assert_once_each(world, &seen, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_meanwhile_starts_in_its_time() {
    let world = World::new();
    let options = WorkerOptions {
        // longer than the test waits
        drain_delay: 2 * PATIENCE,
        ..WorkerOptions::default()
    };
    let worker = Hasty::start(&world, connect_options(), options, nothing());
    for round in 1..=20 {
        world.add(r#"{"delay":20}"#, ["0".to_owned()]).await;
        world.add_plain(1).await;
        world.completed(2 * round).await;
    }
    let seen = worker.close().await;
    assert_once_each(world, &seen, 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_come_while_an_end_is_recorded_run() {
    const JOBS: usize = 400;
    let world = World::new();
    let options = WorkerOptions {
        drain_delay: 2 * PATIENCE,
        ..WorkerOptions::default()
    };
    let worker = Hasty::start(&world, connect_options(), options, nothing());
    for _ in 0..JOBS {
        world.add_plain(1).await;
        // now in the middle of the last one's way, now behind it
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    world.completed(JOBS as u64).await;
    let seen = worker.close().await;
    assert!(seen.by_socket > 0, "{seen:?}");
    assert_once_each(world, &seen, JOBS);
}
