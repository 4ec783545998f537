//! What the add script is given: a plan, and a blob for each of its items.

use chasquimq::{
    frame::FrameBuilder,
    msgpack::Packer,
    record::{grouped_body, prioritized_body, record_body},
    Deduplication, Group,
};

use crate::probe::tree::Tree;

/// Creation time of every job here, epoch ms.
pub const TIMESTAMP: u64 = 7;

/// Jobs to add, in order. All are named `a`; the jobs of a frame have the data 1, 2, ...; records have 1.
#[derive(Default)]
pub struct Plan {
    items: Packer,
    count: usize,
    blobs: Vec<Vec<u8>>,
}

impl Plan {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn frame(mut self, jobs: u64) -> Self {
        let mut frame = FrameBuilder::new(TIMESTAMP, "{}");
        for data in 1..=jobs {
            frame.push("a", &data.to_string());
        }
        self.items.array(2).int(jobs as i64).str("a");
        self.blobs.push(frame.finish().0);
        self.count += 1;
        self
    }

    /// A frame of jobs of these names.
    pub fn named_frame(mut self, names: &[&str]) -> Self {
        let mut frame = FrameBuilder::new(TIMESTAMP, "{}");
        self.items.array(2).int(names.len() as i64).array(names.len());
        for (name, data) in names.iter().zip(1..) {
            frame.push(name, &format!("{data}"));
            self.items.str(name);
        }
        self.blobs.push(frame.finish().0);
        self.count += 1;
        self
    }

    /// A waiting record; an empty id: its number.
    pub fn record(self, id: &str) -> Self {
        self.single(id, 0, false, 0)
    }

    /// A record at the head of the waiting list.
    pub fn front(self, id: &str) -> Self {
        self.single(id, 0, true, 0)
    }

    pub fn delayed(self, id: &str, due_ms: u64) -> Self {
        self.single(id, due_ms, false, 0)
    }

    /// A record that yields to the owner of its deduplication id.
    pub fn deduplicated(self, id: &str, due_ms: u64, dedup: &Deduplication) -> Self {
        self.deduplicated_prioritized(id, due_ms, dedup, 0)
    }

    pub fn deduplicated_prioritized(mut self, id: &str, due_ms: u64, dedup: &Deduplication, priority: i64) -> Self {
        self.items.array(7).int(-1).str(id).str("a").int(due_ms as i64).int(0);
        self.items.array(6 + usize::from(dedup.until_started));
        self.items.str(&dedup.id).int(dedup.ttl_ms as i64);
        for flag in [dedup.extend, dedup.replace, dedup.reschedule, dedup.keep_last_if_active] {
            self.items.int(i64::from(flag));
        }
        if dedup.until_started {
            self.items.int(1);
        }
        self.items.int(priority);
        self.push_body(priority);
        self.count += 1;
        self
    }

    /// Waiting records whose data lie apart; empty ids: their numbers.
    pub fn large(mut self, records: &[(&str, &str)]) -> Self {
        self.items.array(8).int(0).int(records.len() as i64);
        let are_numbered = records.iter().all(|(id, _)| id.is_empty());
        self.items
            .column(records.iter().map(|(id, _)| *id), are_numbered)
            .str("a")
            .int(0)
            .int(0)
            .int(0)
            .int(1);
        for (_, data) in records {
            self.blobs.push(record_body(TIMESTAMP, "{}", "a", ""));
            self.blobs.push((*data).into());
        }
        self.count += 1;
        self
    }

    /// A record with a priority.
    pub fn prioritized(self, id: &str, priority: i64) -> Self {
        self.single(id, 0, false, priority)
    }

    pub fn delayed_prioritized(self, id: &str, due_ms: u64, priority: i64) -> Self {
        self.single(id, due_ms, false, priority)
    }

    /// Numbered records of these priorities, in one item.
    pub fn run(mut self, priorities: &[i64]) -> Self {
        let jobs = priorities.len();
        self.items
            .array(7)
            .int(0)
            .int(jobs as i64)
            .str("")
            .str("a")
            .int(0)
            .int(0);
        self.items.array(jobs);
        for priority in priorities {
            self.items.int(*priority);
            self.blobs.push(prioritized_body(TIMESTAMP, "{}", "a", "1", *priority));
        }
        self.count += 1;
        self
    }

    /// The same jobs, not as a plan of one item.
    pub fn behind_no_jobs(&self) -> Self {
        let mut plan = Self::new().run(&[]);
        plan.items.0.extend_from_slice(&self.items.0);
        plan.blobs.extend_from_slice(&self.blobs);
        plan.count += self.count;
        plan
    }

    /// A record of a group, of this priority in it; an empty id: its number.
    pub fn grouped(self, id: &str, group: &str, priority: i64) -> Self {
        self.grouped_within(id, 0, (group, 0, 0.0), priority)
    }

    /// The same, due later; with the most jobs that the group may have, and its weight (0 = not said).
    pub fn grouped_within(
        mut self,
        id: &str,
        due_ms: u64,
        (group, most, weight): (&str, i64, f64),
        priority: i64,
    ) -> Self {
        self.columns(9, id, due_ms, false, priority);
        self.items.nil().array(1);
        if most == 0 && weight == 0.0 {
            self.items.str(group);
        } else {
            // an order is told by the sign of the weight: below 0 is strict
            let order = i64::from(weight < 0.0);
            self.items
                .array(4)
                .str(group)
                .int(most)
                .float(weight.max(0.0))
                .int(order);
        }
        let group = Group {
            id: group.to_owned(),
            priority,
            max_size: 0,
            weight: 0.0,
            strict: None,
        };
        self.blobs.push(grouped_body(TIMESTAMP, "{}", "a", "1", &group));
        self.count += 1;
        self
    }

    /// A record that expires (`lua/rules/expiry.lua`), with these options; an empty id: its number.
    pub fn expiring(mut self, id: &str, due_ms: u64, expires: i64, options: &str) -> Self {
        self.columns(10, id, due_ms, false, 0);
        self.items.nil().nil().array(1).int(expires);
        self.blobs.push(record_body(TIMESTAMP, options, "a", "1"));
        self.count += 1;
        self
    }

    /// A record that uses keys (`lua/rules/key_limits.lua`): of each its name, max, ms and cost; in a group, if one is named.
    pub fn limited(self, id: &str, limits: &[(&str, i64, i64, i64)], group: &str) -> Self {
        self.on_terms(id, (0, 0), limits, group)
    }

    /// The same, due later, and to expire; 0 = neither.
    pub fn on_terms(
        mut self,
        id: &str,
        (due_ms, expires): (u64, i64),
        limits: &[(&str, i64, i64, i64)],
        group: &str,
    ) -> Self {
        self.columns(10, id, due_ms, false, 0);
        self.items.nil();
        let own = Group {
            id: group.to_owned(),
            priority: 0,
            max_size: 0,
            weight: 0.0,
            strict: None,
        };
        self.blobs.push(if group.is_empty() {
            self.items.nil();
            record_body(TIMESTAMP, "{}", "a", "1")
        } else {
            self.items.array(1).str(group);
            grouped_body(TIMESTAMP, "{}", "a", "1", &own)
        });
        self.items.array(1);
        match (expires, limits) {
            (0, []) => drop(self.items.nil()),
            (_, []) => drop(self.items.int(expires)),
            _ => drop(self.items.array(2).int(expires).array(limits.len())),
        }
        for (key, max, duration_ms, cost) in limits {
            self.items.array(4).str(key).int(*max).int(*duration_ms).int(*cost);
        }
        self.count += 1;
        self
    }

    /// A column of one number; 0 = none.
    fn number_or_none(&mut self, number: i64) {
        if number == 0 {
            self.items.int(0);
        } else {
            self.items.array(1).int(number);
        }
    }

    /// Those that every record has, of so many values.
    fn columns(&mut self, values: usize, id: &str, due_ms: u64, front: bool, priority: i64) {
        self.items.array(values).int(0).int(1);
        if id.is_empty() {
            self.items.str("");
        } else {
            self.items.array(1).str(id);
        }
        self.items.str("a");
        self.number_or_none(due_ms as i64);
        self.items.int(i64::from(front));
        self.number_or_none(priority);
    }

    /// A record; `due_ms` 0 is at once, an empty id its number.
    pub fn single(mut self, id: &str, due_ms: u64, front: bool, priority: i64) -> Self {
        self.columns(7, id, due_ms, front, priority);
        self.push_body(priority);
        self.count += 1;
        self
    }

    fn push_body(&mut self, priority: i64) {
        self.blobs.push(if priority == 0 {
            record_body(TIMESTAMP, "{}", "a", "1")
        } else {
            prioritized_body(TIMESTAMP, "{}", "a", "1", priority)
        });
    }

    pub fn append_to(&self, call: &mut redis::Cmd) {
        let mut plan = Packer::default();
        plan.array(self.count);
        plan.0.extend_from_slice(&self.items.0);
        call.arg(plan.0);
        for blob in &self.blobs {
            call.arg(blob);
        }
    }

    /// Whether its first item is no frame.
    pub fn is_record(&self) -> bool {
        let items = Tree::all(&self.items.0).expect("a plan");
        !matches!(items[0].items()[0], Tree::Number(jobs) if jobs > 0.0)
    }

    /// As its script takes it: `add` records, `add_frames` frames.
    pub fn append_to_own(&self, call: &mut redis::Cmd) {
        match self.is_record() {
            true => self.append_to(call),
            false => self.append_frames_to(call),
        }
    }

    /// The frames of this plan, as `add_frames` takes them.
    pub fn append_frames_to(&self, call: &mut redis::Cmd) {
        let plan = Tree::all(&self.items.0).expect("a plan");
        for (item, blob) in plan.iter().zip(&self.blobs) {
            let mut names = Packer::default();
            match &item.items()[1] {
                Tree::Bytes(name) => names.bytes(name),
                each => {
                    names.array(each.items().len());
                    each.items()
                        .iter()
                        .fold(&mut names, |names, name| names.bytes(name.bytes()))
                }
            };
            call.arg(item.items()[0].number()).arg(names.0).arg(blob);
        }
    }
}
