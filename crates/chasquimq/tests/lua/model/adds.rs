//! Additions, in the queue and in the model.

use chasquimq::redis::call::library::{ADD, ADD_FRAMES};

use super::{drive::Drive, state::At};
use crate::{
    fail_expired::PAST,
    given::{plan::Plan, queue::show_reply},
};

const CUSTOM_IDS: [&str; 6] = ["x0", "x1", "x2", "x3", "x4", "x5"];

impl Drive {
    pub fn add(&mut self) {
        let first = self.model.last_number + 1;
        self.note(format!("add from {first}:"));
        let before = (self.model.clone(), self.ids.clone());
        let is_frame = self.random.once_in(3);
        let (plan, exceptions) = if is_frame {
            (self.frame(Plan::new()), Vec::new())
        } else {
            self.mixture(first)
        };
        self.add_number += 1;
        let script = if is_frame && self.random.once_in(2) {
            &ADD_FRAMES
        } else {
            &ADD
        };
        let mut call = self.queue.call(script);
        call.arg(self.model.now_ms).arg("c").arg(0).arg(self.add_number);
        if script.name == ADD_FRAMES.name {
            plan.append_frames_to(&mut call);
        } else {
            plan.append_to(&mut call);
        }
        let jobs = self.model.last_number + 1 - first;
        let (length, max_length) = (before.0.length(), before.0.max_length);
        let expected = if max_length > 0 && length + jobs > max_length {
            self.note("  refused".to_owned());
            (self.model, self.ids) = before;
            format!("[-12 {jobs} {length} {max_length}]")
        } else {
            format!("[{first} [{}]]", exceptions.join(" "))
        };
        let reply = self.queue.carry_out_value(&call);
        self.same(&show_reply(&reply), &expected);
        if self.random.once_in(8) {
            self.note("  sent again".to_owned());
            let keys = self.queue.show();
            let again = self.queue.carry_out_value(&call);
            self.same(&show_reply(&again), &expected);
            let after = self.queue.show();
            self.same(&after, &keys);
        }
    }

    fn frame(&mut self, plan: Plan) -> Plan {
        let jobs = if self.random.once_in(8) {
            64
        } else {
            1 + self.random.below(10)
        };
        self.note(format!("  a frame of {jobs}"));
        let before = self.model.last_number;
        let ids: Vec<String> = (1..=jobs).map(|offset| (before + offset).to_string()).collect();
        for (id, data) in ids.iter().zip(1..) {
            self.model.create(id, &format!("{data}"), 0);
        }
        self.ids.extend(ids.iter().cloned());
        self.model.last_number += jobs;
        self.model.tail_frame(ids);
        plan.frame(jobs)
    }

    /// Jobs with a priority, which share an item of the plan.
    fn run(&mut self, plan: Plan) -> Plan {
        let priorities: Vec<i64> = (0..=self.random.below(10))
            .map(|_| 1 + self.random.below(3) as i64)
            .collect();
        self.note(format!("  a run of {priorities:?}"));
        for priority in &priorities {
            self.model.last_number += 1;
            let id = self.model.last_number.to_string();
            self.model.create(&id, "1", *priority);
            self.ids.push(id.clone());
            self.model.wait_last(vec![id]);
        }
        plan.run(&priorities)
    }

    /// Frames and records. Gives also index and id of each job whose id is not its number.
    fn mixture(&mut self, first: u64) -> (Plan, Vec<String>) {
        let (mut plan, mut exceptions) = (Plan::new(), Vec::new());
        // records that follow each other share a place in the waiting list
        let mut group: Vec<String> = Vec::new();
        for _ in 0..=self.random.below(4) {
            if self.random.once_in(2) {
                plan = if self.random.once_in(3) {
                    self.run(plan)
                } else {
                    self.model.wait_last(std::mem::take(&mut group));
                    self.frame(plan)
                };
                continue;
            }
            self.model.last_number += 1;
            let custom = if self.random.once_in(3) {
                ""
            } else {
                *self.random.pick(&CUSTOM_IDS)
            };
            let number = self.model.last_number;
            let id = if custom.is_empty() {
                number.to_string()
            } else {
                custom.to_owned()
            };
            if !custom.is_empty() {
                exceptions.push(format!("{} {id}", number - first));
            }
            let priority = self.random.below(6).saturating_sub(2) as i64;
            let is_new = self.model.create(&id, "1", priority);
            if is_new && !self.ids.contains(&id) {
                self.ids.push(id.clone());
            }
            let due_ms = self.model.now_ms + 1 + self.random.below(20);
            let kind = *self.random.pick(&["last", "first", "delayed"]);
            self.note(format!("  {id} {kind}, priority {priority}, new: {is_new}"));
            let due_ms = if kind == "delayed" { due_ms } else { 0 };
            let expires = priority == 0 && kind != "first" && self.random.once_in(3);
            plan = if expires {
                plan.expiring(custom, due_ms, PAST, "{}")
            } else {
                plan.single(custom, due_ms, kind == "first", priority)
            };
            if is_new {
                self.model.job(&id).expires = expires;
            }
            match kind {
                _ if !is_new => {}
                "delayed" => self.model.delay(&id, due_ms),
                _ if priority != 0 => self.model.wait_last(vec![id]),
                "last" => group.push(id),
                _ => self.model.wait_first(&[(id, At::End)]),
            }
        }
        self.model.wait_last(group);
        (plan, exceptions)
    }
}
