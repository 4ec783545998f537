//! Random operations on jobs of groups. After each one every key is compared with the others (`probe::check`), and what was taken with the rules of its step:
//! no group has more active jobs than its concurrency, a paused group starts none, no job overtakes one of its group and priority that was added before it, and
//! in the end every job has run.

use std::collections::{BTreeMap, BTreeSet};

use redis::Value;

use crate::{
    change_jobs::change,
    find_jobs::by_text,
    given::{
        plan::Plan,
        queue::{run_once, TestQueue},
        step::{of, Fail, Step},
    },
    model::{bulk::by_age, random::Random},
    probe::tree::Tree,
};

const GROUPS: [&str; 4] = ["a", "b", "c", "d"];
const CONCURRENCY: i64 = 2;
const OPERATIONS: u64 = 150;
/// What is delayed is due by then.
const END_MS: u64 = 1_000_000;

struct Drive {
    queue: TestQueue,
    random: Random,
    now_ms: u64,
    added: u64,
    // the group of each job that is active
    active: BTreeMap<String, String>,
    paused: BTreeSet<&'static str>,
    // what was set for a group by hand
    concurrency: BTreeMap<String, i64>,
    unfinished: BTreeSet<String>,
    // those that wait where they were added: their priorities
    in_order: BTreeMap<String, u64>,
    // the number of the job that started last, of those in order, by group and priority
    last: BTreeMap<(String, u64), u64>,
}

/// The group in an id.
fn group_of(id: &str) -> String {
    id[..1].to_owned()
}

impl Drive {
    fn seeded(seed: u64) -> Self {
        Self {
            queue: TestQueue::fresh(),
            random: Random::seeded(seed),
            now_ms: 1000,
            added: 0,
            active: BTreeMap::new(),
            paused: BTreeSet::new(),
            concurrency: BTreeMap::new(),
            unfinished: BTreeSet::new(),
            in_order: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    fn add(&mut self) {
        let mut plan = Plan::new();
        for _ in 0..=self.random.below(4) {
            self.added += 1;
            let group = *self.random.pick(&GROUPS);
            let id = format!("{group}{}", self.added);
            let due_ms = if self.random.once_in(4) {
                self.now_ms + 1 + self.random.below(50)
            } else {
                0
            };
            // below 0: a group of strict order from now on
            let weight = *self.random.pick(&[0.0, 0.0, 3.0, -1.0]);
            let priority = self.random.below(3);
            plan = plan.grouped_within(&id, due_ms, (group, 0, weight), priority as i64);
            if due_ms == 0 {
                self.in_order.insert(id.clone(), priority);
            }
            self.unfinished.insert(id);
        }
        if self.random.once_in(5) {
            self.added += 1;
            let id = format!("-{}", self.added);
            plan = plan.record(&id);
            self.unfinished.insert(id);
        }
        self.queue.add(self.now_ms, plan);
    }

    /// How some active jobs end.
    fn with_ends(&mut self, mut step: Step) -> Step {
        let ids: Vec<String> = self.active.keys().cloned().collect();
        for id in ids {
            let place = of(&id);
            step = match self.random.below(8) {
                0 => step.back(&place, self.random.once_in(2)),
                1 => step.fail(&place, &Fail::to("waiting")),
                2 => {
                    let due_ms = self.now_ms + 1 + self.random.below(80);
                    step.fail(
                        &place,
                        &Fail {
                            due_ms,
                            ..Fail::to("delayed")
                        },
                    )
                }
                3 => {
                    self.unfinished.remove(&id);
                    step.fail(&place, &Fail::to("failed"))
                }
                4 | 5 => {
                    self.unfinished.remove(&id);
                    step.done_record(&id, "1")
                }
                _ => continue,
            };
            self.active.remove(&id);
        }
        step
    }

    fn step(&mut self, want: i64) {
        let mut step = Step::by("w").want(want).at(self.now_ms).group_rules(CONCURRENCY, 0, 0);
        if self.random.once_in(3) {
            step = step.fair();
        }
        let step = self.with_ends(step);
        let call = self.queue.step_call(&step);
        let (taken, _) = self.queue.taken_by(&call);
        for pair in taken.windows(2) {
            let [Value::Int(..0), Value::BulkString(columns)] = pair else {
                continue;
            };
            for id in Tree::one(columns).items()[0].items().iter().map(Tree::string) {
                let group = group_of(&id);
                self.check_order(&id, &group);
                assert!(
                    !self.paused.contains(group.as_str()),
                    "{id} starts while its group is paused"
                );
                assert_eq!(self.active.insert(id.clone(), group.clone()), None, "{id} starts twice");
                let running = self.active.values().filter(|other| **other == group).count() as i64;
                let most = *self.concurrency.get(&group).unwrap_or(&CONCURRENCY);
                assert!(group == "-" || running <= most, "{running} of {group} run");
            }
        }
    }

    fn check_order(&mut self, id: &str, group: &str) {
        let Some(priority) = self.in_order.remove(id) else {
            return;
        };
        let number: u64 = id[1..].parse().expect("a number");
        let before = self.last.insert((group.to_owned(), priority), number);
        assert!(before < Some(number), "{id} starts after {before:?}");
    }

    fn lose(&mut self) {
        self.queue.end_lease("w");
        self.queue.bring_back(self.now_ms, 1, "", &[], 1_000);
        self.active.clear();
    }

    fn turn_pause(&mut self) {
        let group = *self.random.pick(&GROUPS);
        let what = if self.paused.insert(group) {
            "pause"
        } else {
            self.paused.remove(group);
            "resume"
        };
        self.set_group(group, what, "");
    }

    fn set_group(&mut self, group: &str, what: &str, value: &str) {
        run_once!(self.queue, SET_GROUP, self.now_ms, group, what, value, "");
    }

    /// How many jobs of a group start is set, or lifted.
    fn set_one(&mut self) {
        let group = *self.random.pick(&GROUPS);
        let value = self.random.below(4);
        let text = if value == 0 { String::new() } else { value.to_string() };
        if self.random.once_in(2) {
            return self.set_group(group, "weight", &text);
        }
        self.set_group(group, "concurrency", &text);
        if value == 0 {
            self.concurrency.remove(group);
        } else {
            self.concurrency.insert(group.to_owned(), value as i64);
        }
    }

    /// A group is deleted: the jobs that wait in it, and what was set for it.
    fn delete_one(&mut self) {
        let group = *self.random.pick(&GROUPS);
        let ids = change(&mut self.queue, "remove", "waiting", &by_text("group", group), 1000);
        for id in ids.split_whitespace() {
            self.unfinished.remove(id);
        }
        self.set_group(group, "forget", "");
        self.paused.remove(group);
        self.concurrency.remove(group);
    }

    fn touch_one(&mut self) {
        let ids: Vec<String> = self.unfinished.iter().cloned().collect();
        if ids.is_empty() {
            return;
        }
        let id = self.random.pick(&ids).clone();
        self.in_order.remove(&id);
        match self.random.below(3) {
            0 => drop(run_once!(self.queue, CHANGE_PRIORITY; &id, self.random.below(4), 0)),
            1 if !self.active.contains_key(&id) => {
                run_once!(self.queue, REMOVE_JOB, self.now_ms, &id, 0);
                self.unfinished.remove(&id);
            }
            _ => drop(run_once!(self.queue, MOVE_DELAYED, self.now_ms, &id, 0)),
        }
    }

    /// Jobs of a group, or of any, are removed or promoted by a filter.
    fn change_some(&mut self) {
        let group = *self.random.pick(&GROUPS);
        let filter = if self.random.once_in(3) {
            by_age(-1)
        } else {
            by_text("group", group)
        };
        let (action, state) =
            *self
                .random
                .pick(&[("remove", "waiting"), ("remove", "delayed"), ("promote", "delayed")]);
        let room = 1 + self.random.below(4);
        let ids = change(&mut self.queue, action, state, &filter, room);
        for id in ids.split_whitespace().filter(|_| action == "remove") {
            self.unfinished.remove(id);
        }
    }

    fn operate(&mut self) {
        self.now_ms += self.random.below(30);
        match self.random.below(16) {
            15 if self.random.once_in(3) => self.delete_one(),
            13..=15 => self.set_one(),
            12 => self.change_some(),
            0..=3 => self.add(),
            4..=7 => {
                let want = self.random.below(6) as i64;
                self.step(want);
            }
            8 => self.turn_pause(),
            9 | 10 => self.touch_one(),
            _ => self.lose(),
        }
    }

    /// Everything runs to its end.
    fn end(&mut self) {
        self.now_ms = END_MS;
        for group in std::mem::take(&mut self.paused) {
            self.set_group(group, "resume", "");
        }
        for _ in 0..500 {
            if self.unfinished.is_empty() {
                break;
            }
            // a group that is held back looks again when the limit ends, by the server's clock
            for group in GROUPS {
                self.queue.command("ZADD", "groups-limited", &["XX", "1", group]);
            }
            self.now_ms += 100;
            self.step(8);
        }
        assert_eq!(self.unfinished, BTreeSet::new());
        for key in ["grouped", "groups", "groups-limited", "groups-maxed", "group-active"] {
            self.queue.key_is(key, "(none)");
        }
    }
}

#[test]
fn groups_keep_their_rules_whatever_happens() {
    for seed in 1..=6 {
        let mut drive = Drive::seeded(seed);
        for _ in 0..OPERATIONS {
            drive.operate();
        }
        drive.end();
    }
}
