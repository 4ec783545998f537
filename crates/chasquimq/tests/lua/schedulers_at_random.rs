//! Random operations on schedulers and their jobs. After each one every key is compared with the others (`probe::check`), and with the rules: a scheduler that
//! is not paused has a job that stands to start, or one that is to be followed; one that is paused holds what is to come; and of runs that are not to run
//! side by side (`lua/rules/overlap.lua`) one runs, and another waits no longer than that does.

use std::collections::{BTreeMap, BTreeSet};

use redis::Value;

use crate::{
    cancel_jobs::named,
    given::{
        queue::{run_once, taken_apart, TestQueue},
        scheduler::{Taken, Upsert},
        step::{of, Fail, Step},
    },
    model::{random::Random, setting},
    probe::{snapshot::Snapshot, tree::Tree},
};

const SEEDS: std::ops::Range<u64> = 1..6;
const OPERATIONS: u64 = 200;
/// Schedulers: what becomes of overlaps (0 all run, 1 skip, 2 queue), and of what was missed (0 the one that is there runs, 1 none, 2 latest, 3 all).
const SCHEDULERS: [(&str, i64, i64); 5] = [("a", 0, 0), ("b", 1, 0), ("c", 2, 0), ("d", 1, 3), ("e", 2, 1)];
const QUEUES: i64 = 2;

struct Drive {
    queue: TestQueue,
    random: Random,
    now_ms: u64,
    /// Jobs that a worker holds.
    active: BTreeSet<String>,
    /// Runs that began where none was to run beside them, and have not ended, by their schedulers.
    begun: BTreeMap<&'static str, BTreeSet<String>>,
    /// Of which schedulers a run was removed: nobody tells those that wait for it.
    untold: BTreeSet<&'static str>,
    seed: u64,
    history: Vec<String>,
}

/// The scheduler and the slot in an id.
fn parts_of(id: &str) -> ((&'static str, i64, i64), i64) {
    let mut parts = id.split(':').skip(1);
    let (name, slot) = (parts.next().expect("a scheduler"), parts.next().expect("a slot"));
    let scheduler = SCHEDULERS.into_iter().find(|(known, ..)| *known == name);
    (
        scheduler.expect("a scheduler of this test"),
        slot.parse().expect("a time"),
    )
}

fn ids_in(snapshot: &Snapshot, set: &str) -> BTreeSet<String> {
    snapshot.set(set).iter().map(|(id, _)| id.clone()).collect()
}

/// Ids of what has ended.
fn ended(snapshot: &Snapshot) -> BTreeSet<String> {
    &ids_in(snapshot, "completed") | &ids_in(snapshot, "failed")
}

/// What a scheduler that is paused holds; nothing: it is not.
fn held_by(snapshot: &Snapshot, scheduler: &str) -> Option<String> {
    let fields = Tree::one(snapshot.hash("scheduler").get(scheduler)?.get(8..)?);
    fields.items().get(7).map(Tree::string)
}

impl Drive {
    fn seeded(seed: u64) -> Self {
        Self {
            queue: TestQueue::fresh(),
            random: Random::seeded(seed),
            now_ms: 1000,
            active: BTreeSet::new(),
            begun: BTreeMap::new(),
            untold: BTreeSet::new(),
            seed,
            history: Vec::new(),
        }
    }

    fn note(&mut self, what: String) {
        self.history.push(format!("{} {what}", self.now_ms));
    }

    /// A run has ended for good, or is gone.
    fn end_run(&mut self, id: &str) {
        self.active.remove(id);
        for runs in self.begun.values_mut() {
            runs.remove(id);
        }
    }

    fn step(&mut self, want: i64, loses: bool) {
        self.note(format!("step, wants {want}"));
        let mut step = Step::by("w").at(self.now_ms).want(want);
        for id in self.active.clone() {
            let place = of(&id);
            step = match self.random.below(8) {
                0 => step.back(&place, self.random.once_in(2)),
                1 => step.fail(&place, &Fail::to("waiting")),
                2 => {
                    let due_ms = self.now_ms + 1 + self.random.below(300);
                    let fail = Fail {
                        due_ms,
                        ..Fail::to("delayed")
                    };
                    step.fail(&place, &fail)
                }
                3 => step.fail(&place, &Fail::to("failed")),
                4 | 5 => step.done_record(&id, "1"),
                _ => continue,
            };
            self.note(format!("  {id} ends"));
            self.active.remove(&id);
        }
        let call = self.queue.step_call(&step);
        let (taken, _) = self.queue.taken_by(&call);
        let mut ids = Vec::new();
        let taken = taken_apart(&taken);
        let mut values = taken.iter().peekable();
        while values.next().is_some() {
            ids.push(redis::from_redis_value::<String>(values.next().expect("an id").clone()).expect("text"));
            values.nth(2);
            values.next_if(|value| matches!(value, Value::BulkString(_)));
        }
        self.note(format!("  takes {ids:?}, is lost: {loses}"));
        self.active.extend(ids.iter().cloned());
        self.forget_ended();
        if loses {
            self.lose();
        } else {
            self.follow(&ids);
        }
    }

    /// Of jobs that were taken, those that are to run do.
    fn follow(&mut self, ids: &[String]) {
        let taken: Vec<Taken> = ids
            .iter()
            .map(|id| {
                let ((name, overlap, catch_up), slot) = parts_of(id);
                Taken::of(name, slot).id(id).rules(overlap, catch_up)
            })
            .collect();
        let there = self.queue.probe.snapshot();
        let reply = self.queue.follow_all(self.now_ms, &taken);
        self.note(format!("  follows: {reply}"));
        let slots: Vec<i64> = reply
            .trim_matches(['[', ']'])
            .split_whitespace()
            .map(|slot| slot.parse().expect("a slot"))
            .collect();
        for (id, slot) in ids.iter().zip(slots) {
            let ((name, overlap, _), _) = parts_of(id);
            if slot < 0 {
                self.active.remove(id);
            } else if overlap > 0 && there.hash("scheduler").contains_key(name) {
                self.begun.entry(name).or_default().insert(id.clone());
            }
        }
    }

    /// What has ended runs no more.
    fn forget_ended(&mut self) {
        let snapshot = self.queue.probe.snapshot();
        let jobs = snapshot.hash("jobs");
        let ended = ended(&snapshot);
        for runs in self.begun.values_mut() {
            runs.retain(|id| jobs.contains_key(id) && !ended.contains(id));
        }
    }

    fn lose(&mut self) {
        self.note("the worker is lost".to_owned());
        self.queue.end_lease("w");
        self.queue.command("DEL", "stalled", &[]);
        self.queue.bring_back(self.now_ms, 1, "", &[], 1);
        self.active.clear();
    }

    fn change_scheduler(&mut self) {
        let (name, ..) = *self.random.pick(&SCHEDULERS);
        let now_ms = self.now_ms;
        match self.random.below(12) {
            0..=3 => {
                let mut upsert = Upsert::of(name).every(*self.random.pick(&[100, 100, 40]));
                if self.random.once_in(2) {
                    upsert = upsert.offset(self.random.below(40) as i64);
                }
                if self.random.once_in(4) {
                    upsert = upsert.anew();
                }
                let reply = self.queue.upsert(now_ms, &upsert);
                self.note(format!("upsert {name}: {reply}"));
            }
            4 | 5 => {
                self.note(format!("pause {name}"));
                run_once!(self.queue, PAUSE_SCHEDULER, now_ms, name);
            }
            6 | 7 => {
                let held = held_by(&self.queue.probe.snapshot(), name).unwrap_or_default();
                let reply = self.queue.resume(now_ms, name, &held, 0);
                self.note(format!("resume {name}: {reply}"));
                assert!(["0", "1"].contains(&reply.as_str()), "resume {name}: {reply}");
            }
            8..=10 => {
                self.note(format!("run {name}"));
                self.queue.run_now(now_ms, name);
            }
            _ => {
                self.note(format!("remove scheduler {name}"));
                run_once!(self.queue, REMOVE_SCHEDULER, now_ms, name);
            }
        }
    }

    /// Somebody does something to a job.
    fn change_job(&mut self) {
        let snapshot = self.queue.probe.snapshot();
        let ids: Vec<&String> = snapshot.hash("jobs").keys().collect();
        if ids.is_empty() {
            return;
        }
        let (id, now_ms) = ((*self.random.pick(&ids)).clone(), self.now_ms);
        let ((name, ..), _) = parts_of(&id);
        let (what, reply) = match self.random.below(5) {
            0 => (
                "cancel",
                run_once!(self.queue, CANCEL_JOBS, now_ms, "", 0, named(&[&id])),
            ),
            1 => ("drop", run_once!(self.queue, CANCEL_JOBS, now_ms, "", 1, named(&[&id]))),
            2 => ("remove", run_once!(self.queue, REMOVE_JOB, now_ms, &id, 0)),
            3 => ("promote", run_once!(self.queue, MOVE_DELAYED, now_ms, &id, 0)),
            _ => {
                let state = *self.random.pick(&["failed", "completed"]);
                ("retry", run_once!(self.queue, RETRY_JOB, now_ms, &id, state, 0, 1, 1))
            }
        };
        self.note(format!("{what} {id}: {reply}"));
        if !self.queue.probe.snapshot().hash("jobs").contains_key(&id) {
            self.untold.insert(name);
            self.end_run(&id);
        }
    }

    fn check(&mut self) {
        self.forget_ended();
        let snapshot = self.queue.probe.checked();
        let jobs = snapshot.hash("jobs");
        let ended = ended(&snapshot);
        let active: BTreeSet<String> = snapshot.active().into_iter().collect();
        assert_eq!(active, self.active, "active");
        for (name, slot) in snapshot.set("schedulers") {
            let latest = format!("repeat:{name}:{}", *slot as u64);
            let goes_on = jobs.contains_key(&latest) && !ended.contains(&latest);
            match held_by(&snapshot, name) {
                Some(held) if !held.is_empty() => assert!(!goes_on, "{name} holds {held}, and {latest} is there"),
                _ => assert!(goes_on, "{name} ends: there is no {latest}"),
            }
        }
        for (name, overlap, _) in SCHEDULERS {
            let runs = self.begun.get(name).map_or(0, BTreeSet::len);
            assert!(runs <= 1, "runs of {name} side by side: {:?}", self.begun);
            let waits = |id: &&String| id.starts_with(&format!("repeat:{name}:")) && !ended.contains(*id);
            if runs == 0 && overlap == QUEUES && !self.untold.contains(name) {
                let held = |id: &&String| {
                    let fields = snapshot.hash("vitals").get(*id).map(|raw| Tree::one(raw));
                    fields.is_some_and(|fields| fields.field("d").map(Tree::number) == Some(5000))
                };
                let delayed = ids_in(&snapshot, "delayed");
                let forgotten: Vec<&String> = delayed.iter().filter(waits).filter(held).collect();
                assert!(forgotten.is_empty(), "{forgotten:?} wait for nothing");
            }
        }
    }

    fn operate(&mut self) {
        match self.random.below(20) {
            0..=4 => self.change_scheduler(),
            5..=12 => {
                let want = *self.random.pick(&[0, 1, 2, 9, 9]);
                let loses = self.random.once_in(8);
                self.step(want, loses);
            }
            13 | 14 => self.change_job(),
            15 => self.lose(),
            _ => self.now_ms += 1 + self.random.below(150),
        }
        self.check();
    }
}

// a failure, wherever it is noticed, is told with what led there
impl Drop for Drive {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SCHEDULERS_SEED={}\n{}", self.seed, self.history.join("\n"));
        }
    }
}

#[test]
fn schedulers_go_on_whatever_happens() {
    let seeds = setting("SCHEDULERS_SEED").map_or(SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        let mut drive = Drive::seeded(seed);
        for _ in 0..setting("SCHEDULERS_OPERATIONS").unwrap_or(OPERATIONS) {
            drive.operate();
        }
    }
}
