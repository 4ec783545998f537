//! Steps of workers, in the queue and in the model; copies of steps that arrive again.

use std::collections::BTreeSet;

use chasquimq::{Body, StateFields};
use redis::Value;

use super::{
    drive::{slots_of, Belief, Drive, OWNERS},
    state::{Keep, NOBODY},
};
use crate::given::{
    queue::{show_reply, taken_apart},
    step::{Place, Step},
};

/// Rules under which jobs are kept: all, none, some, for a while.
const KEEPS: [Keep; 6] = [
    (-1, -1, 1000),
    (0, -1, 1000),
    (3, -1, 1000),
    (20, -1, 1000),
    (-1, 0, 2),
    (5, 1, 3),
];

fn claim_of(step: u64) -> u64 {
    2 * step
}

impl Drive {
    pub fn step(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        let keep = *self.random.pick(&KEEPS);
        self.step_number += 1;
        let mut step = Step::by(owner)
            .at(self.model.now_ms)
            .number(self.step_number)
            .slots(slots_of(owner) as u32)
            .keep(keep.0, keep.1 as f64, keep.2);
        self.note(format!("step of {owner}, keep {keep:?}"));
        self.model.leases.insert(owner.to_owned());
        self.model.claim = claim_of(self.step_number);
        let mut rejected = Vec::new();
        if !self.random.once_in(3) {
            (step, rejected) = self.end_some(owner, keep, step);
        }

        let (mut taken, mut due_ms) = (Vec::new(), -1);
        let rests = std::mem::take(&mut self.model.met_limit) && self.model.starts.is_some();
        let (mut gated, mut limited) = (rests, rests);
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
            // a marker that nobody has taken
            let are_all_busy = self.random.once_in(2);
            if are_all_busy {
                self.queue.command("ZADD", "wake", &["0", "0"]);
            }
            let asks_due = self.random.once_in(2);
            step = step.want(want as i64).surplus(surplus).asking_due(asks_due);
            if !rests {
                let surplus = if are_all_busy { surplus as usize } else { 0 };
                (taken, due_ms, gated, limited) = self.fetch(owner, want as usize, surplus, asks_due);
            }
            self.note(format!(
                "  want {want} surplus {surplus}, all are busy: {are_all_busy}, takes {taken:?}"
            ));
        }
        let call = self.queue.step_call(&step);
        let value = self.queue.carry_out_value(&call);
        let Value::Array(parts) = &value else {
            panic!("{value:?}")
        };
        // the model knows no lease of what was let go
        self.queue.end_lease(&format!("{NOBODY}{owner}.{}", self.model.claim));
        self.accept(owner, &parts[0], &rejected);
        let is_left = !self.model.work().is_empty() && !self.model.paused && self.model.places(1) > 0;
        let tail: Vec<String> = parts[2..5].iter().map(show_reply).collect();
        self.same(
            &tail.join(" "),
            &format!("{due_ms} {} {}", u8::from(gated), u8::from(is_left)),
        );
        self.same(&(show_reply(&parts[7]) != "0").to_string(), &limited.to_string());
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
        self.steps.insert(owner, (call, self.model.claim, taken));
    }

    /// What a fetch takes, when the next job is due, whether jobs must not start, and whether that is the rate limit's doing.
    fn fetch(&mut self, owner: &str, want: usize, surplus: usize, asks_due: bool) -> (Vec<String>, i64, bool, bool) {
        let model = &mut self.model;
        model.promote_due();
        let is_bounded = model.concurrency > 0;
        let places = model.places(want);
        let most = places.min(model.room());
        if model.room() == 0 {
            return (Vec::new(), -1, true, true);
        }
        let is_gated = model.paused || (is_bounded && places == 0);
        let mut taken = Vec::new();
        if !is_gated {
            let surplus = if is_bounded || model.rate.is_some() { 0 } else { surplus };
            taken = model.fetch(owner, most, most + surplus);
            if model.count_starts(&taken) && taken.len() < places {
                return (taken, -1, true, true);
            }
        }
        let next_due = model.delayed.first().map_or(-1, |(due_ms, _)| *due_ms as i64);
        let due_ms = if asks_due || taken.len() < want { next_due } else { -1 };
        (taken, due_ms, is_gated, false)
    }

    /// Compares what a step took with what it had to take.
    fn hold(&mut self, owner: &'static str, taken: &Value, expected: &[String]) {
        let Value::Array(taken) = taken else {
            panic!("{taken:?}")
        };
        let taken = taken_apart(taken);
        let mut beliefs = Vec::new();
        let mut taken = taken.iter().peekable();
        while let Some(first) = taken.next() {
            let first = redis::from_redis_value::<u64>(first.clone()).expect("number");
            if first > 0 {
                let n = taken
                    .next()
                    .map_or(0, |n| redis::from_redis_value::<u64>(n.clone()).expect("number"));
                taken.next();
                beliefs.extend((0..n).map(|offset| Belief {
                    claim: self.model.claim,
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
            let (id, body, fields) = (bytes(), bytes(), bytes());
            let started = taken.next().map_or_else(String::new, show_reply);
            let id = String::from_utf8(id).expect("UTF-8");
            let fields = StateFields::parse(&fields).expect("state fields");
            let job = self.model.job(&id);
            let expected = format!(
                "{} {} {:?}",
                job.data, job.fields.attempts_started, job.fields.deferred_failure
            );
            let expected_traces = job.fields.stacktrace.clone();
            let data = Body::parse(&body).expect("body").data;
            self.same(&format!("{data} {started} {:?}", fields.deferred_failure), &expected);
            // they may come along
            if let Some(traces) = taken.next_if(|value| matches!(value, Value::BulkString(_))) {
                self.same(&show_reply(traces), expected_traces.as_deref().unwrap_or_default());
            }
            beliefs.push(Belief {
                claim: self.model.claim,
                place: Place::Record(id.clone()),
                attempts_made: fields.attempts_made,
                id,
            });
        }
        let found: Vec<&String> = beliefs.iter().map(|belief| &belief.id).collect();
        self.same(&format!("{found:?}"), &format!("{expected:?}"));
        self.held.entry(owner).or_default().append(&mut beliefs);
    }

    /// An old copy of a step arrives late. It may show the worker alive, and must do nothing else.
    pub fn step_again(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        let Some((step, claim, taken)) = self.steps.get(owner).cloned() else {
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
        self.compare_replay((owner, claim), &value, &taken);
        let after = without_leases(self.queue.show());
        self.same(&after, &keys);
    }

    /// A worker that did not get its answer the first time must hear of every job that it holds by then since that step, and of no record
    /// that it does not.
    fn compare_replay(&self, (owner, claim): (&str, u64), value: &Value, taken: &[String]) {
        let Value::Array(parts) = value else {
            panic!("{value:?}")
        };
        let Value::Array(items) = &parts[1] else {
            panic!("{value:?}")
        };
        let mut found = BTreeSet::new();
        let items = taken_apart(items);
        let mut items = items.iter().peekable();
        while let Some(first) = items.next() {
            let first = redis::from_redis_value::<u64>(first.clone()).expect("number");
            let id = items.next().map_or_else(String::new, show_reply);
            if first > 0 {
                let n: u64 = id.parse().expect("number of jobs");
                found.extend((first..first + n).map(|number| number.to_string()));
                items.next();
            } else {
                assert!(
                    self.model.is_held_by(&id, owner, claim),
                    "a step sent again gives {id} to {owner}"
                );
                found.insert(id);
                items.nth(2);
                items.next_if(|value| matches!(value, Value::BulkString(_)));
            }
        }
        for id in taken.iter().filter(|id| self.model.is_held_by(id, owner, claim)) {
            assert!(
                found.contains(id),
                "a step sent again does not give {id}, which {owner} holds"
            );
        }
    }
}
