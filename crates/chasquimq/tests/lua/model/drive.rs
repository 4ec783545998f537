//! Random operations, each carried out on the queue and on the model.

use std::collections::BTreeMap;

use chasquimq::redis::call::library::OBLITERATE;
use redis::Value;

use super::{
    random::Random,
    state::{Model, State},
};
use crate::given::{
    queue::{run, run_once, TestQueue},
    step::Place,
};

pub const OWNERS: [&str; 3] = ["w0", "w1", "w2"];

/// Jobs that an owner runs at once; 0: it does not tell.
pub fn slots_of(owner: &str) -> usize {
    match owner {
        "w1" => 3,
        "w2" => 20,
        _ => 0,
    }
}
/// A job that a worker believes it holds.
#[derive(Debug, Clone)]
pub struct Belief {
    pub id: String,
    /// Of the step that took it.
    pub claim: u64,
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
    /// Each worker's last step, its claim, and what it took.
    pub steps: BTreeMap<&'static str, (redis::Cmd, u64, Vec<String>)>,
    pub step_number: u64,
    pub add_number: u64,
    /// Finished states whose jobs were trimmed, and what is left of them, in an order in which ties do not count.
    pub drops: Vec<(&'static str, Vec<String>)>,
    /// The due time that a step answered: its worker needs no waking for it.
    pub told_due: Option<u64>,
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
            step_number: 0,
            add_number: 0,
            drops: Vec::new(),
            told_due: None,
            seed,
            history: Vec::new(),
        }
    }

    pub fn operate(&mut self) {
        // several operations share a millisecond now and then
        self.model.now_ms += self.random.below(3);
        let (line, due_ms) = (self.model.work(), self.model.delayed.first().map(|(due_ms, _)| *due_ms));
        self.told_due = None;
        self.queue.command("DEL", "wake", &[]);
        match self.random.below(119) {
            0..=17 => self.add(),
            18..=64 => self.step(),
            65..=67 => self.step_again(),
            68..=73 => self.remove(),
            74..=81 => self.amend(),
            82..=83 => self.change_priority(),
            84..=85 => self.retry(),
            86..=88 => self.move_delayed(),
            89..=91 => self.move_active(),
            92..=93 => self.end_lease(),
            94..=95 => self.recover_stalled(),
            96 if self.random.once_in(2) => self.disown(),
            96 => self.release(),
            97 => self.set_paused(),
            98 => self.set_limit(),
            99..=103 => self.clean(),
            104..=105 => self.retry_many(),
            106..=107 => self.promote_many(),
            108 => self.go_and_return(),
            109..=112 => self.change_picked(),
            113..=114 => self.cancel(),
            115..=117 => self.fail_expired(),
            _ => self.pass_time(),
        }
        self.compare_wake(&line, due_ms);
        self.compare();
        if self.random.once_in(6) {
            self.lose_state();
        }
    }

    /// Other keys tell what the state says, after whatever was done, and nothing else is put right. It goes on with what it was.
    fn lose_state(&mut self) {
        let Value::BulkString(state) = self.queue.command("GET", "state", &[]) else {
            return;
        };
        let (keys, before) = (self.queue.show_but_state(), self.queue.counters());
        self.queue.command("DEL", "state", &[]);
        self.queue.check_stalled();
        assert_eq!(self.queue.show_but_state(), keys);
        let after = self.queue.counters();
        assert!(
            after.iter().zip(&before).all(|(after, before)| after.1 <= before.1),
            "{after:?}, and before {before:?}"
        );
        let mut set = redis::cmd("SET");
        set.arg(self.queue.probe.keys.key("state")).arg(state);
        set.exec(&mut self.queue.probe.connection).expect("the state of before");
    }

    /// What comes into the waiting list, or is due sooner than anything was, wakes a worker that may be waiting.
    fn compare_wake(&mut self, line: &[String], due_ms: Option<u64>) {
        let is_longer = self.model.work().iter().any(|id| !line.contains(id));
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
    pub fn any_id(&mut self) -> String {
        let living: Vec<&String> = self.model.jobs.keys().collect();
        if living.is_empty() || self.random.once_in(5) {
            return self.random.pick(&self.ids).clone();
        }
        (*self.random.pick(&living)).clone()
    }

    /// An id of a job in this state, most of the time.
    pub fn id_in(&mut self, state: &str) -> String {
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

    fn end_lease(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        self.note(format!("lease of {owner} ends"));
        self.queue.end_lease(owner);
        self.model.leases.remove(owner);
    }

    /// A worker without jobs leaves. Copies of its steps may still arrive.
    fn release(&mut self) {
        let Some(owner) = OWNERS.into_iter().find(|owner| self.held[owner].is_empty()) else {
            return;
        };
        self.note(format!("{owner} leaves"));
        let reply = run!(self.queue, RELEASE_WORKER, owner);
        self.same(&reply, "0");
        self.model.leases.remove(owner);
    }

    fn recover_stalled(&mut self) {
        self.note("recover_stalled".to_owned());
        self.queue.command("DEL", "stalled", &[]);
        let lost = self.model.lost();
        let max_stalled = if self.random.once_in(5) { 0 } else { 1 };
        let stalled = self
            .queue
            .bring_back(self.model.now_ms, 60_000, "", &[], max_stalled.into());
        let expected = self.model.recover_stalled(&lost, max_stalled, slots_of);
        self.same(&format!("{stalled:?}"), &format!("{expected:?}"));
    }

    /// A worker tells what it holds, after a change of servers.
    fn disown(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        self.note(format!("{owner} disowns"));
        let random = &mut self.random;
        let (held, lost): (Vec<_>, Vec<_>) = self.model.held_by(owner).into_iter().partition(|_| random.once_in(2));
        // that a job was held before does not keep it
        let mut claims: Vec<(&str, i64)> = lost.iter().map(|id| (id.as_str(), 1)).collect();
        for id in &held {
            match self.model.state(id) {
                Some(State::Active { claim, .. }) => claims.push((id, *claim as i64)),
                state => panic!("{id} is {state:?}"),
            }
        }
        let order = self.queue.bring_back(self.model.now_ms, 0, owner, &claims, 1);
        self.same(&format!("{order:?}"), &format!("{lost:?}"));
        self.model.recover_stalled(&lost, 1, |_| 0);
    }

    fn set_paused(&mut self) {
        self.model.paused = !self.model.paused;
        self.note(format!("paused {}", self.model.paused));
        run_once!(self.queue, PAUSE, self.model.now_ms, u8::from(self.model.paused));
    }

    fn set_limit(&mut self) {
        let number = if self.random.once_in(2) {
            0
        } else {
            1 + self.random.below(30)
        };
        let text = if number == 0 { String::new() } else { number.to_string() };
        match self.random.below(4) {
            0 => {
                self.note(format!("concurrency {number}"));
                self.model.concurrency = number;
                run_once!(self.queue, SET_LIMIT; "concurrency", text, "");
            }
            1 => {
                self.note(format!("rate {number}"));
                self.model.rate = (number > 0).then_some(number);
                run_once!(self.queue, SET_LIMIT; "rate", text, 3_600_000);
            }
            2 => {
                self.note(format!("length {number}"));
                self.model.max_length = number;
                run_once!(self.queue, SET_LIMIT; "length", text, "");
            }
            _ => {
                self.note("window ends".to_owned());
                let ended = self.model.starts.take().is_some();
                let reply = run_once!(self.queue, SET_LIMIT; "window", "", "");
                self.same(&reply, if ended { "1" } else { "0" });
            }
        }
    }

    fn pass_time(&mut self) {
        self.model.now_ms += self.random.below(1500);
    }

    /// Deletes everything.
    pub fn end(mut self) {
        self.note("obliterate".to_owned());
        run_once!(self.queue, PAUSE, self.model.now_ms, 1);
        let mut call = self.queue.numbered_call(&OBLITERATE, Some(1000));
        call.arg(50).arg(1).arg("0");
        while self.queue.carry_out_unchecked(&call) != Value::Int(0) {}
        let left = self.queue.probe.suffixes();
        let is_temporary = |key: &String| {
            ["lease:", "memo:", "cancels:"]
                .iter()
                .any(|start| key.starts_with(start))
        };
        assert!(left.iter().all(is_temporary), "{left:?}");
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
