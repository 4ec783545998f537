//! Adds: of one job, mostly, by itself or for a worker that waits.

use chasquimq::{
    redis::call::library::{ADD, ADD_AND_STEP, ADD_FLOWS, ADD_FRAMES},
    Deduplication,
};
use redis::Value;

use super::{shown::show_plan, Twins, IDS, OWNERS};
use crate::{
    given::{plan::Plan, step::Step, tree::Tree},
    model::random::Random,
};

const POLICIES: [&str; 4] = [
    "{}",
    r#"{"failParentOnFailure":true}"#,
    r#"{"continueParentOnFailure":true}"#,
    r#"{"ignoreDependencyOnFailure":true}"#,
];

impl Twins {
    /// A job, mostly, or a few.
    fn plan(&mut self) -> Plan {
        let (random, kinds) = (&mut self.random, &self.kinds);
        let jobs = if kinds.frames_of_several && random.once_in(3) {
            2 + random.below(if kinds.many { 20 } else { 4 })
        } else {
            1
        };
        if !kinds.records || random.once_in(3) {
            return Plan::new().frame(jobs);
        }
        self.record()
    }

    fn record(&mut self) -> Plan {
        let (random, kinds) = (&mut self.random, &self.kinds);
        let id = if random.once_in(2) { *random.pick(&IDS) } else { "" };
        let mut if_some = |kind: bool, number: u64| if kind && random.once_in(2) { number } else { 0 };
        let due_ms = if_some(kinds.delays, self.now_ms + 1 + self.number % 60);
        let priority = if_some(kinds.priorities, 1 + self.number % 3) as i64;
        if kinds.deduplication && random.once_in(2) {
            let dedup = deduplication(random);
            return Plan::new().deduplicated_prioritized(id, due_ms, &dedup, priority);
        }
        if kinds.deduplication && random.once_in(3) {
            // long ago, or never
            let expires = if random.once_in(2) { 1 } else { 9_000_000_000_000 };
            return Plan::new().expiring(id, due_ms, expires, "{}");
        }
        if kinds.deduplication && due_ms == 0 && random.once_in(3) {
            // room for all: when others are due depends on the server's clock
            return Plan::new().limited(id, &[("k", 1_000_000, 60_000, 1)], "");
        }
        if kinds.large && random.once_in(3) {
            return Plan::new().large(&[(id, "large data")]);
        }
        let front = due_ms == 0 && random.once_in(3);
        Plan::new().single(id, due_ms, front, priority)
    }

    pub(super) fn add(&mut self) {
        let (number, now_ms) = (self.next_number(), self.now_ms);
        if self.kinds.flows && self.random.once_in(3) {
            return self.add_flow();
        }
        let plan = self.plan();
        let what = show_plan(&plan);
        self.both(format!("add {what}"), |queue, by_itself| {
            let script = if by_itself && !plan.is_record() {
                &ADD_FRAMES
            } else {
                &ADD
            };
            let mut call = queue.call(script);
            call.arg(now_ms).arg("c").arg(0).arg(number);
            match by_itself {
                true => plan.append_to_own(&mut call),
                false => plan.behind_no_jobs().append_to(&mut call),
            }
            first_of(queue.carry_out_value(&call))
        });
    }

    /// A parent and a child without an id, or two children with ids. Both queues get the same ids.
    fn add_flow(&mut self) {
        let (number, now_ms) = (self.next_number(), self.now_ms);
        let (root, child) = (format!("r{number}"), format!("c{number}"));
        let tree = Tree::new().root(&root);
        let tree = match self.random.below(2) {
            0 => tree.child(&root, ""),
            _ => {
                let policy = *self.random.pick(&POLICIES);
                tree.child_with(&root, &child, policy)
                    .child(&root, &format!("{child}b"))
            }
        };
        let keys = self.pair[0].probe.keys.clone();
        let flows = tree.pack(now_ms, &keys);
        let (plan, bodies) = flows.packed();
        self.both(format!("add a flow {root}"), |queue, _| {
            let own = |packed: &[u8]| renamed(packed, &keys.qualified_name, &queue.probe.keys.qualified_name);
            let mut call = queue.call(&ADD_FLOWS);
            call.arg(now_ms).arg("f").arg(0).arg(number).arg(own(plan));
            for body in bodies {
                call.arg(own(body));
            }
            first_of(queue.carry_out_value(&call))
        });
    }

    /// A worker waits for the job that is added.
    pub(super) fn add_and_step(&mut self) {
        let plan = self.plan();
        let owner = *self.random.pick(&OWNERS);
        let (number, now_ms) = (self.next_number(), self.now_ms);
        let want = 1 + self.random.below(3) as i64;
        let step = Step::by(owner)
            .named("bob")
            .number(number)
            .at(now_ms)
            .want(want)
            .asking_due(self.random.once_in(2));
        let what = format!("add {} for {owner}, which wants {want}", show_plan(&plan));
        let reply = self.both(what, |queue, _| {
            let mut call = queue.call(&ADD_AND_STEP);
            call.arg(step.asked(0)).arg(i64::from(plan.is_record()));
            call.arg(now_ms).arg("c").arg(0).arg(number);
            plan.append_to_own(&mut call);
            match queue.carry_out_value(&call) {
                Value::Array(replies) => Value::Array(replies.into_iter().skip(1).collect()),
                other => other,
            }
        });
        if let Value::Array(replies) = &reply {
            replies.iter().for_each(|stepped| self.take(owner, number, stepped));
        }
    }
}

fn deduplication(random: &mut Random) -> Deduplication {
    let keep_last_if_active = random.once_in(3);
    let has_end = random.once_in(3) && !keep_last_if_active;
    let replace = random.once_in(3);
    Deduplication {
        id: (*random.pick(&["d0", "d1"])).to_owned(),
        ttl_ms: if has_end { 3_600_000 } else { 0 },
        extend: random.once_in(3),
        replace,
        reschedule: random.once_in(3) && !replace,
        keep_last_if_active,
        until_started: !keep_last_if_active && random.once_in(3),
    }
}

/// What an add says of the number of its first job: frames are told no more than that.
fn first_of(reply: Value) -> Value {
    match reply {
        Value::Array(parts) => parts[0].clone(),
        other => other,
    }
}

/// Packed values with the name of another queue, which is as long.
fn renamed(packed: &[u8], name: &str, other: &str) -> Vec<u8> {
    assert_eq!(name.len(), other.len());
    let mut packed = packed.to_vec();
    for at in 0..packed.len().saturating_sub(name.len()) {
        if packed[at..].starts_with(name.as_bytes()) {
            packed[at..at + name.len()].copy_from_slice(other.as_bytes());
        }
    }
    packed
}
