//! Additions, in the queue and in the model.

use chasquimq::server::script::{ADD, ADD_FRAME};

use super::drive::Drive;
use crate::given::{plan::Plan, queue::show_reply};

const CUSTOM_IDS: [&str; 6] = ["x0", "x1", "x2", "x3", "x4", "x5"];

impl Drive {
    pub fn add(&mut self) {
        let first = self.model.last_number + 1;
        self.note(format!("add from {first}:"));
        let is_frame = self.random.once_in(3);
        let (plan, exceptions) = if is_frame {
            (self.frame(Plan::new()), Vec::new())
        } else {
            self.mixture(first)
        };
        self.add_number += 1;
        let script = if is_frame && self.random.once_in(2) {
            &ADD_FRAME
        } else {
            &ADD
        };
        let mut call = self.queue.call(script);
        call.arg(self.model.now_ms).arg("c").arg(0).arg(self.add_number);
        if script.name == ADD_FRAME.name {
            plan.append_frame_to(&mut call);
        } else {
            plan.append_to(&mut call);
        }
        let expected = format!("[{first} [{}]]", exceptions.join(" "));
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
            self.model.create(id, &format!("{data}"));
        }
        self.ids.extend(ids.iter().cloned());
        self.model.last_number += jobs;
        self.model.wait_last(ids);
        plan.frame(jobs)
    }

    /// Frames and records. Gives also index and id of each job whose id is not its number.
    fn mixture(&mut self, first: u64) -> (Plan, Vec<String>) {
        let (mut plan, mut exceptions) = (Plan::new(), Vec::new());
        // records that follow each other share a place in the line
        let mut group: Vec<String> = Vec::new();
        for _ in 0..=self.random.below(4) {
            if self.random.once_in(2) {
                self.model.wait_last(std::mem::take(&mut group));
                plan = self.frame(plan);
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
            let is_new = self.model.create(&id, "1");
            if is_new && !self.ids.contains(&id) {
                self.ids.push(id.clone());
            }
            let due_ms = self.model.now_ms + 1 + self.random.below(20);
            let kind = *self.random.pick(&["last", "first", "delayed"]);
            self.note(format!("  {id} {kind}, new: {is_new}"));
            plan = match kind {
                "last" => plan.record(custom),
                "first" => plan.front(custom),
                _ => plan.delayed(custom, due_ms),
            };
            match kind {
                _ if !is_new => {}
                "last" => group.push(id),
                "first" => self.model.wait_first(&[id]),
                _ => self.model.delay(&id, due_ms),
            }
        }
        self.model.wait_last(group);
        (plan, exceptions)
    }
}
