//! Random operations, each carried out on the queue and on the model.

use std::collections::{BTreeMap, BTreeSet};

use chasquimq::{server::script::RESCUE, Body, Vitals};
use redis::Value;

use super::{
    random::Random,
    state::{Keep, Model, State},
};
use crate::given::{
    plan::Plan,
    queue::{run, show_reply, TestQueue},
    step::{Place, Step},
};

pub const OWNERS: [&str; 3] = ["w0", "w1", "w2"];
const CUSTOM_IDS: [&str; 6] = ["x0", "x1", "x2", "x3", "x4", "x5"];
/// Rules under which jobs are kept: all, none, some, for a while.
const KEEPS: [Keep; 6] = [
    (-1, -1, 1000),
    (0, -1, 1000),
    (3, -1, 1000),
    (20, -1, 1000),
    (-1, 0, 2),
    (5, 1, 3),
];

/// A job that a worker believes it holds.
#[derive(Debug, Clone)]
pub struct Belief {
    pub id: String,
    pub place: Place,
    pub attempts_made: u32,
}

pub struct Drive {
    pub queue: TestQueue,
    pub model: Model,
    pub random: Random,
    pub held: BTreeMap<&'static str, Vec<Belief>>,
    /// Ids that were a job's once.
    pub ids: Vec<String>,
    /// Each worker's last step, and what it took.
    pub steps: BTreeMap<&'static str, (redis::Cmd, Vec<String>)>,
    pub step_number: u64,
    /// Finished states whose jobs were trimmed, and what is left of them, in an order in which ties do not count.
    pub drops: Vec<(&'static str, Vec<String>)>,
    /// The due time that a step answered: its worker needs no waking for it.
    told_due: Option<u64>,
    seed: u64,
    history: Vec<String>,
}

impl Drive {
    pub fn seeded(seed: u64) -> Self {
        Self {
            queue: TestQueue::fresh(),
            model: Model {
                now_ms: 1_000_000,
                ..Model::default()
            },
            random: Random::seeded(seed),
            held: OWNERS.iter().map(|owner| (*owner, Vec::new())).collect(),
            ids: vec!["nobody".to_owned(), "999999".to_owned()],
            steps: BTreeMap::new(),
            step_number: 1 << 20,
            drops: Vec::new(),
            told_due: None,
            seed,
            history: Vec::new(),
        }
    }

    pub fn operate(&mut self) {
        // several operations share a millisecond now and then
        self.model.now_ms += self.random.below(3);
        let (line, due_ms) = (self.model.line(), self.model.delayed.first().map(|(due_ms, _)| *due_ms));
        self.told_due = None;
        self.queue.command("DEL", "wake", &[]);
        match self.random.below(100) {
            0..=17 => self.add(),
            18..=64 => self.step(),
            65..=67 => self.step_again(),
            68..=73 => self.remove(),
            74..=81 => self.amend(),
            82..=85 => self.retry(),
            86..=88 => self.move_delayed(),
            89..=91 => self.move_active(),
            92..=93 => self.end_lease(),
            94..=95 => self.rescue(),
            96 => self.set_paused(),
            97 => self.set_concurrency(),
            _ => self.pass_time(),
        }
        self.compare_wake(&line, due_ms);
        self.compare();
    }

    /// What comes into the line, or is due sooner than anything was, wakes a worker that may be waiting.
    fn compare_wake(&mut self, line: &[String], due_ms: Option<u64>) {
        let is_longer = self.model.line().iter().any(|id| !line.contains(id));
        let next_due = self.model.delayed.first().map(|(due_ms, _)| *due_ms);
        let is_sooner =
            next_due.is_some_and(|next| due_ms.is_none_or(|before| next < before)) && next_due != self.told_due;
        let concurrency = self.model.concurrency as usize;
        let is_gated = self.model.paused || (concurrency > 0 && self.model.count("active") >= concurrency);
        if ((is_longer && !is_gated) || is_sooner) && !self.queue.probe.snapshot().wake {
            panic!("nobody was woken: line is longer {is_longer}, something is due sooner {is_sooner}");
        }
    }

    /// An id that has a job, most of the time.
    fn any_id(&mut self) -> String {
        let living: Vec<&String> = self.model.jobs.keys().collect();
        if living.is_empty() || self.random.once_in(5) {
            return self.random.pick(&self.ids).clone();
        }
        (*self.random.pick(&living)).clone()
    }

    /// An id of a job in this state, most of the time.
    fn id_in(&mut self, state: &str) -> String {
        let there: Vec<&String> = self
            .model
            .jobs
            .iter()
            .filter(|(_, job)| job.state.name() == state)
            .map(|(id, _)| id)
            .collect();
        if there.is_empty() || self.random.once_in(4) {
            return self.any_id();
        }
        (*self.random.pick(&there)).clone()
    }

    pub fn note(&mut self, operation: String) {
        self.history.push(format!("{} {operation}", self.model.now_ms));
    }

    fn add(&mut self) {
        let mut plan = Plan::new();
        let mut group: Vec<String> = Vec::new();
        let mut expected = Vec::new();
        let first = self.model.last_number + 1;
        let mut note = format!("add from {first}:");
        for _ in 0..=self.random.below(4) {
            if self.random.once_in(2) {
                let jobs = if self.random.once_in(8) {
                    64
                } else {
                    1 + self.random.below(10)
                };
                note += &format!(" frame of {jobs}");
                plan = plan.frame(jobs);
                self.model.wait_last(std::mem::take(&mut group));
                let ids: Vec<String> = (1..=jobs)
                    .map(|offset| (self.model.last_number + offset).to_string())
                    .collect();
                for (id, data) in ids.iter().zip(1..) {
                    self.model.create(id, &format!("{data}"));
                }
                self.ids.extend(ids.iter().cloned());
                self.model.last_number += jobs;
                self.model.wait_last(ids);
                continue;
            }
            self.model.last_number += 1;
            let custom = if self.random.once_in(3) {
                ""
            } else {
                *self.random.pick(&CUSTOM_IDS)
            };
            let id = if custom.is_empty() {
                self.model.last_number.to_string()
            } else {
                custom.to_owned()
            };
            if !custom.is_empty() {
                expected.push(format!("{} {id}", self.model.last_number - first));
            }
            let is_new = self.model.create(&id, "1");
            if is_new && !self.ids.contains(&id) {
                self.ids.push(id.clone());
            }
            let due_ms = self.model.now_ms + 1 + self.random.below(20);
            let kind = self.random.below(3);
            note += &format!(" {id}({kind}, {is_new})");
            plan = match kind {
                0 => plan.record(custom),
                1 => plan.front(custom),
                _ => plan.delayed(custom, due_ms),
            };
            match kind {
                _ if !is_new => {}
                0 => group.push(id),
                1 => self.model.wait_first(&[id]),
                _ => self.model.delay(&id, due_ms),
            }
        }
        self.model.wait_last(group);
        self.note(note);
        let reply = self.queue.add(self.model.now_ms, plan);
        self.same(&reply, &format!("[{first} [{}]]", expected.join(" ")));
    }

    fn step(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        let keep = *self.random.pick(&KEEPS);
        self.step_number += 1;
        let mut step =
            Step::by(owner)
                .at(self.model.now_ms)
                .number(self.step_number)
                .keep(keep.0, keep.1 as f64, keep.2);
        self.note(format!("step of {owner}, keep {keep:?}"));
        self.model.leases.insert(owner.to_owned());
        let mut rejected = Vec::new();
        if !self.random.once_in(3) {
            (step, rejected) = self.end_some(owner, keep, step);
        }

        let (mut taken, mut due_ms, mut gated) = (Vec::new(), -1, 0);
        if !self.random.once_in(5) {
            let want = if self.random.once_in(3) {
                self.random.below(100)
            } else {
                self.random.below(6)
            };
            let surplus = if self.random.once_in(3) {
                self.random.below(80)
            } else {
                0
            };
            step = step.want(want as i64).surplus(surplus);
            self.model.promote_due();
            let (mut want, mut surplus) = (want as usize, surplus as usize);
            if self.model.concurrency > 0 {
                want = want.min((self.model.concurrency as usize).saturating_sub(self.model.count("active")));
                surplus = 0;
            }
            if self.model.paused || (self.model.concurrency > 0 && want == 0) {
                gated = 1;
            } else {
                taken = self.model.fetch(owner, want, want + surplus);
            }
            if taken.len() < want {
                due_ms = self.model.delayed.first().map_or(-1, |(due_ms, _)| *due_ms as i64);
            }
            self.note(format!("  want {want} surplus {surplus} takes {taken:?}"));
        }
        let call = self.queue.step_call(&step);
        let value = self.queue.carry_out_value(&call);
        let Value::Array(parts) = &value else {
            panic!("{value:?}")
        };
        self.accept(owner, &parts[0], &rejected);
        let waiting = self.model.line().len();
        let tail: Vec<String> = parts[2..5].iter().map(show_reply).collect();
        self.same(&tail.join(" "), &format!("{due_ms} {gated} {waiting}"));
        self.told_due = u64::try_from(due_ms).ok();
        self.drop_finished();
        self.hold(owner, &parts[1], &taken);
        if self.random.once_in(8) {
            self.note("  sent again".to_owned());
            let keys = self.queue.show();
            let again = self.queue.carry_out_value(&call);
            let same_but_time = |value: &Value| match value {
                Value::Array(parts) => show_reply(&Value::Array(parts[..6].to_vec())),
                other => panic!("{other:?}"),
            };
            self.same(&same_but_time(&again), &same_but_time(&value));
            let after = self.queue.show();
            self.same(&after, &keys);
        }
        self.steps.insert(owner, (call, taken));
    }

    /// Compares what a step took with what it had to take.
    fn hold(&mut self, owner: &'static str, taken: &Value, expected: &[String]) {
        let Value::Array(taken) = taken else {
            panic!("{taken:?}")
        };
        let mut beliefs = Vec::new();
        let mut taken = taken.iter();
        while let Some(first) = taken.next() {
            let first = redis::from_redis_value::<u64>(first.clone()).expect("number");
            if first > 0 {
                let n = taken
                    .next()
                    .map_or(0, |n| redis::from_redis_value::<u64>(n.clone()).expect("number"));
                taken.next();
                beliefs.extend((0..n).map(|offset| Belief {
                    id: (first + offset).to_string(),
                    place: Place::Frame(first, n, offset),
                    attempts_made: 0,
                }));
                continue;
            }
            let mut bytes = || {
                taken
                    .next()
                    .map(|raw| redis::from_redis_value::<Vec<u8>>(raw.clone()).expect("bytes"))
                    .unwrap_or_default()
            };
            let (id, body, vitals) = (bytes(), bytes(), bytes());
            let started = taken.next().map_or_else(String::new, show_reply);
            let id = String::from_utf8(id).expect("UTF-8");
            let vitals = Vitals::parse(&vitals).expect("vitals");
            let job = self.model.job(&id);
            let expected = format!(
                "{} {} {:?}",
                job.data, job.vitals.attempts_started, job.vitals.deferred_failure
            );
            let data = Body::parse(&body).expect("body").data;
            self.same(&format!("{data} {started} {:?}", vitals.deferred_failure), &expected);
            beliefs.push(Belief {
                place: Place::Record(id.clone()),
                attempts_made: vitals.attempts_made,
                id,
            });
        }
        let found: Vec<&String> = beliefs.iter().map(|belief| &belief.id).collect();
        self.same(&format!("{found:?}"), &format!("{expected:?}"));
        self.held.entry(owner).or_default().append(&mut beliefs);
    }

    /// An old copy of a step arrives late. It may show the worker alive, and must do nothing else.
    fn step_again(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        let Some((step, taken)) = self.steps.get(owner).cloned() else {
            return;
        };
        self.note(format!("late copy of the last step of {owner}"));
        let without_leases = |keys: String| {
            keys.lines()
                .filter(|line| !line.starts_with("lease:"))
                .collect::<String>()
        };
        let keys = without_leases(self.queue.show());
        let value = self.queue.carry_out_value(&step);
        self.model.leases.insert(owner.to_owned());
        self.compare_replay(owner, &value, &taken);
        let after = without_leases(self.queue.show());
        self.same(&after, &keys);
    }

    /// A worker that did not get its answer the first time must hear of every job it holds by then, and of no record it does not.
    fn compare_replay(&self, owner: &str, value: &Value, taken: &[String]) {
        let Value::Array(parts) = value else {
            panic!("{value:?}")
        };
        let Value::Array(items) = &parts[1] else {
            panic!("{value:?}")
        };
        let mut found = BTreeSet::new();
        let mut items = items.iter();
        while let Some(first) = items.next() {
            let first = redis::from_redis_value::<u64>(first.clone()).expect("number");
            let id = items.next().map_or_else(String::new, show_reply);
            if first > 0 {
                let n: u64 = id.parse().expect("number of jobs");
                found.extend((first..first + n).map(|number| number.to_string()));
                items.next();
            } else {
                assert!(
                    self.model.is_held_by(&id, owner),
                    "a step sent again gives {id} to {owner}"
                );
                found.insert(id);
                items.nth(2);
            }
        }
        for id in taken.iter().filter(|id| self.model.is_held_by(id, owner)) {
            assert!(
                found.contains(id),
                "a step sent again does not give {id}, which {owner} holds"
            );
        }
    }

    fn remove(&mut self) {
        let id = self.any_id();
        let expected = match self.model.state(&id) {
            Some(State::Active { owner }) if self.model.leases.contains(owner) => "0",
            _ => "1",
        };
        self.note(format!("remove {id}"));
        let reply = run!(self.queue, REMOVE_JOB, self.model.now_ms, &id);
        self.same(&reply, expected);
        if expected == "1" && self.model.state(&id).is_some() {
            self.model.remove(&id);
        }
    }

    fn amend(&mut self) {
        let id = self.any_id();
        let exists = self.model.state(&id).is_some();
        let now_ms = self.model.now_ms;
        let expected = if exists { "0" } else { "-1" };
        match self.random.below(3) {
            0 => {
                self.note(format!("amend data of {id}"));
                let reply = run!(self.queue, AMEND_JOB, now_ms, &id, "data", "\"new\"");
                self.same(&reply, expected);
                if exists {
                    self.model.job(&id).data = "\"new\"".to_owned();
                }
            }
            1 => {
                self.note(format!("amend progress of {id}"));
                let reply = run!(self.queue, AMEND_JOB, now_ms, &id, "progress", now_ms.to_string());
                self.same(&reply, expected);
                if exists {
                    self.model.job(&id).vitals.progress = Some(now_ms.to_string());
                }
            }
            _ => {
                self.note(format!("log {id}"));
                let reply = run!(self.queue, LOG_JOB, &id, "row", 1);
                self.same(&reply, if exists { "1" } else { "-1" });
            }
        }
    }

    fn retry(&mut self) {
        let state = *self.random.pick(&["failed", "completed"]);
        let id = self.id_in(state);
        let [front, made, started] = [0; 3].map(|_| self.random.below(2));
        self.note(format!("retry {id} if {state}, front {front}"));
        let expected = match self.model.state(&id) {
            None => "-1",
            Some(found) if found.name() == state => "0",
            Some(_) => "-3",
        };
        let reply = run!(
            self.queue,
            RETRY_JOB,
            self.model.now_ms,
            &id,
            state,
            front,
            made,
            started
        );
        self.same(&reply, expected);
        if expected != "0" {
            return;
        }
        let vitals = &mut self.model.job(&id).vitals;
        (
            vitals.failed_reason,
            vitals.finished_on,
            vitals.processed_on,
            vitals.returnvalue,
        ) = (None, None, None, None);
        if made == 1 {
            vitals.attempts_made = 0;
        }
        if started == 1 {
            vitals.attempts_started = 0;
        }
        if front == 1 {
            self.model.wait_first(&[id]);
        } else {
            self.model.wait_last(vec![id]);
        }
    }

    fn move_delayed(&mut self) {
        let id = self.id_in("delayed");
        let now_ms = self.model.now_ms;
        let due_ms = if self.random.once_in(2) {
            0
        } else {
            now_ms + self.random.below(20)
        };
        self.note(format!("move delayed {id} to {due_ms}"));
        let expected = match self.model.state(&id) {
            None => "-1",
            Some(State::Delayed { .. }) => "0",
            Some(_) => "-3",
        };
        let reply = run!(self.queue, MOVE_DELAYED, now_ms, &id, due_ms);
        self.same(&reply, expected);
        if expected != "0" {
            return;
        }
        self.model.take_out(&id);
        if due_ms == 0 {
            self.model.wait_last(vec![id]);
        } else {
            self.model.job(&id).vitals.delay_ms = Some(due_ms - now_ms);
            self.model.delay(&id, due_ms);
        }
    }

    fn move_active(&mut self) {
        let id = self.id_in("active");
        let by = *self.random.pick(&["", "w0", "w1"]);
        let now_ms = self.model.now_ms;
        let due_ms = if self.random.once_in(2) {
            0
        } else {
            now_ms + self.random.below(20)
        };
        self.note(format!("move active {id} of '{by}' to {due_ms}"));
        let expected = match self.model.state(&id) {
            None => "-1",
            Some(State::Active { owner }) if by.is_empty() || by == owner => "0",
            Some(State::Active { .. }) => "-6",
            Some(_) if by.is_empty() => "-3",
            Some(_) => "-2",
        };
        let reply = run!(self.queue, MOVE_ACTIVE, now_ms, &id, by, due_ms);
        self.same(&reply, expected);
        if expected != "0" {
            return;
        }
        if due_ms == 0 {
            self.model.job(&id).vitals.delay_ms = None;
            self.model.wait_first(&[id]);
        } else {
            self.model.job(&id).vitals.delay_ms = Some(due_ms - now_ms);
            self.model.delay(&id, due_ms);
        }
    }

    fn end_lease(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        self.note(format!("lease of {owner} ends"));
        self.queue.end_lease(owner);
        self.model.leases.remove(owner);
    }

    fn rescue(&mut self) {
        self.note("rescue".to_owned());
        self.queue.command("DEL", "stalled", &[]);
        let lost = self.model.lost();
        let mut call = self.queue.call(&RESCUE);
        call.arg(self.model.now_ms).arg(60_000).arg(1);
        let reply = self.queue.carry_out_unchecked(&call);
        let order: Vec<String> = redis::from_redis_value(reply).expect("ids");
        self.same(&format!("{order:?}"), &format!("{lost:?}"));
        self.model.rescue(&lost, 1);
    }

    fn set_paused(&mut self) {
        self.model.paused = !self.model.paused;
        self.note(format!("paused {}", self.model.paused));
        run!(self.queue, PAUSE, self.model.now_ms, u8::from(self.model.paused));
    }

    fn set_concurrency(&mut self) {
        self.model.concurrency = if self.random.once_in(2) {
            0
        } else {
            1 + self.random.below(30)
        };
        self.note(format!("concurrency {}", self.model.concurrency));
        let text = self.model.concurrency.to_string();
        self.queue.command("HSET", "meta", &["concurrency", &text]);
    }

    fn pass_time(&mut self) {
        self.model.now_ms += self.random.below(1500);
    }

    pub fn same(&self, found: &str, expected: &str) {
        assert!(found == expected, "expected {expected}\nfound    {found}");
    }
}

// a failure, wherever it is noticed, is told with what led there
impl Drop for Drive {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let from = self.history.len().saturating_sub(60);
            eprintln!("MODEL_SEED={}\n{}", self.seed, self.history[from..].join("\n"));
        }
    }
}
