//! Steps of workers: a few jobs end, and a few start.

use std::cell::Cell;

use chasquimq::{frame::Frame, redis::call::library::MOVE_ACTIVE};
use redis::Value;

use super::{
    shown::{show_steady, state_of, WAITING},
    Held, Twins, OWNERS,
};
use crate::given::{
    queue::{taken_apart, TestQueue},
    step::{Fail, Place, Step},
};

const RULES: [(i64, f64, u64); 5] = [(-1, -1.0, 0), (0, -1.0, 0), (2, -1.0, 0), (-1, 0.01, 2), (3, 0.02, 3)];

impl Twins {
    pub(super) fn step(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        let number = self.next_number();
        let rule = *self.random.pick(&RULES);
        let mut step = Step::by(owner).named("bob").number(number).at(self.now_ms);
        if self.kinds.metrics {
            step = step.metrics(60);
        }
        step = step.keep(rule.0, rule.1, rule.2);
        let most = if self.kinds.many { 20 } else { 4 };
        let ends = match self.is_filling {
            true => *self.random.pick(&[0, 0, 1, 1, 2]),
            false => *self.random.pick(&[1, 1, 1, 2, 3, most]),
        };
        let mut what = format!("step {number} of {owner}, keep {rule:?}");
        for _ in 0..ends {
            let held = self.held.get_mut(owner).expect("a worker");
            if held.is_empty() {
                break;
            }
            let job = held.remove(self.random.below(held.len() as u64) as usize);
            step = self.end(step, &job, &mut what);
        }
        let want = *self.random.pick(&[-1, 0, 1, 1, 1, 2, most]);
        // what stalled before is no surplus, and not all of the surplus that is asked for is then taken by the general path either
        let has_stalled = self.pair[0].show().contains(" st:");
        let surplus = if want >= 0 && !has_stalled {
            *self.random.pick(&[0, 0, 0, 1, 30])
        } else {
            0
        };
        step = step.want(want).asking_due(self.random.once_in(2));
        if self.random.once_in(4) {
            step = step.leaving_due();
            what += ", leaves what is due";
        }
        let is_one_idle = self.random.once_in(4);
        what += &format!(", wants {want}+{surplus}, one is idle: {is_one_idle}");
        // a short path may leave more of the surplus waiting; the general one is asked for what it took
        let of_general = Cell::new(surplus);
        let operate = |queue: &mut TestQueue, is_short: bool| {
            let most = if is_short { surplus } else { of_general.get() };
            if is_one_idle {
                queue.command("DEL", "wake", &[]);
            }
            let call = queue.step_call(&step.clone().surplus(most));
            let reply = queue.carry_out_value(&call);
            if is_short && state_of(queue).get(WAITING).is_some_and(|waiting| *waiting > 0.0) {
                let beyond = (places_of(&reply).len() as u64).saturating_sub(want.max(0) as u64);
                of_general.set(surplus.min(beyond));
            }
            reply
        };
        let reply = self.both(what, operate);
        self.take(owner, number, &reply);
        if self.random.once_in(6) {
            let again = self.both("the same again".to_owned(), operate);
            self.same(&show_steady(&again), &show_steady(&reply));
        }
    }

    fn end(&mut self, step: Step, job: &Held, what: &mut String) -> Step {
        let random = &mut self.random;
        let step = step.of_claim(job.claim);
        let fails = self.kinds.failures && random.once_in(2);
        *what += &format!(", {:?}", job.place);
        if fails && random.once_in(6) {
            *what += " is given back";
            return step.back(&job.place, random.once_in(2));
        }
        if fails {
            let to = *random.pick(&["failed", "delayed", "waiting", "front"]);
            let fail = Fail {
                due_ms: self.now_ms + random.below(50),
                attempts_made: 1 + random.below(2),
                exhausted: random.once_in(2),
                ..Fail::to(to)
            };
            *what += &format!(" fails to {to}");
            return step.fail(&job.place, &fail);
        }
        if self.kinds.large && random.once_in(4) {
            return step.done_large(&job.place, "large result");
        }
        let result = *random.pick(&["", "5", "{\"a\":1}"]);
        match &job.place {
            Place::Frame(first, n, offset) => step.done_with(*first, *n, *offset, &[result]),
            Place::Child(..) => step.done_children(&job.place, &[result]),
            Place::Record(id) => step.done_record(id, result),
        }
    }

    /// The jobs that a step gave to its worker.
    pub(super) fn take(&mut self, owner: &'static str, number: u64, reply: &Value) {
        let claim = 2 * number;
        let held = self.held.get_mut(owner).expect("a worker");
        held.extend(places_of(reply).into_iter().map(|place| Held { place, claim }));
    }

    /// A handler moves its job, and its worker lets it go.
    pub(super) fn move_itself(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        let Some(job) = self.held.get_mut(owner).and_then(Vec::pop) else {
            return;
        };
        let due_ms = if self.random.once_in(3) {
            0
        } else {
            self.now_ms + self.random.below(40)
        };
        let id = job.place.id();
        let token = format!("{owner}:{}.0", job.claim);
        let what = format!("move {:?} to {due_ms}", job.place);
        let now_ms = self.now_ms;
        self.both(what, |queue, _| {
            let mut call = queue.numbered_call(&MOVE_ACTIVE, Some(now_ms));
            call.arg(&id).arg(&token).arg(due_ms);
            queue.carry_out_value(&call)
        });
        let number = self.next_number();
        let want = *self.random.pick(&[-1, 0, 1, 1]);
        let step = Step::by(owner)
            .named("bob")
            .number(number)
            .at(self.now_ms)
            .of_claim(job.claim);
        let step = step.let_go(&job.place).want(want).asking_due(self.random.once_in(2));
        let reply = self.both(
            format!("step {number} of {owner} lets it go, wants {want}"),
            |queue, _| {
                let call = queue.step_call(&step);
                queue.carry_out_value(&call)
            },
        );
        self.take(owner, number, &reply);
    }

    /// A worker loses what it holds, and a scan brings it back.
    pub(super) fn lose(&mut self) {
        let owner = *self.random.pick(&OWNERS);
        let now_ms = self.now_ms;
        self.held.insert(owner, Vec::new());
        self.both(format!("{owner} is lost"), |queue, _| {
            queue.end_lease(owner);
            queue.end_leases_of_nobody();
            queue.command("DEL", "stalled", &[]);
            let ids = queue.bring_back(now_ms, 60_000, "", &[], 9);
            Value::Array(ids.into_iter().map(|id| Value::BulkString(id.into_bytes())).collect())
        });
    }
}

/// The jobs that a step took.
fn places_of(reply: &Value) -> Vec<Place> {
    let Value::Array(parts) = reply else {
        panic!("{reply:?}")
    };
    let Value::Array(taken) = &parts[1] else {
        panic!("{reply:?}")
    };
    let (taken, mut places) = (taken_apart(taken), Vec::new());
    let mut taken = taken.iter().peekable();
    while let Some(first) = taken.next() {
        let first: u64 = redis::from_redis_value(first.clone()).expect("a number");
        let mut next = || taken.next().expect("a value").clone();
        if first == 0 {
            places.push(Place::Record(redis::from_redis_value(next()).expect("an id")));
            taken.nth(2);
            taken.next_if(|value| matches!(value, Value::BulkString(_)));
            continue;
        }
        let n: u64 = redis::from_redis_value(next()).expect("a number");
        let blob: Vec<u8> = redis::from_redis_value(next()).expect("a frame");
        let header = Frame::parse(&blob).ok().and_then(|frame| frame.header);
        let ids = header.map(|header| header.ids.to_owned());
        places.extend((0..n).map(|offset| match &ids {
            Some(ids) => Place::Child(first, n, offset, ids.clone()),
            None => Place::Frame(first, n, offset),
        }));
    }
    places
}
