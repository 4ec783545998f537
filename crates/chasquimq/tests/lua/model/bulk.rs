//! What is done to many jobs of a state at once, in the queue and in the model.

use chasquimq::{msgpack::Packer, redis::call::library::CLEAN_JOBS};

use super::{drive::Drive, state::Job};
use crate::given::queue::run;

const NEVER_STARTED: i64 = 10;

/// A filter of `rules/filter` that knows times only.
pub fn by_age(before_ms: i64) -> Vec<u8> {
    let mut filter = Packer::default();
    filter.0.push(0x83);
    filter.str("before_ms").int(before_ms);
    filter.str("after_ms").int(-1);
    filter.str("error").str("");
    filter.0
}

fn is_older(job: &Job, before_ms: i64) -> bool {
    let time = job.fields.finished_on.or(job.fields.processed_on).unwrap_or(7);
    before_ms < 0 || time as i64 <= before_ms
}

impl Drive {
    /// Removes jobs of a state: all, those that never started, or none.
    pub fn clean(&mut self) {
        let state = *self
            .random
            .pick(&["wait", "wait", "delayed", "active", "completed", "failed"]);
        let candidates = match state {
            "wait" => self.model.line(),
            "delayed" => self.model.delayed.iter().map(|(_, id)| id.clone()).collect(),
            "active" => self.model.lost(),
            _ => self.model.finished(state),
        };
        let is_ended = state == "completed" || state == "failed";
        let before_ms = match self.random.below(4) {
            // a drain
            0 if state == "wait" || state == "delayed" => -1,
            1 => 6,
            2 if !candidates.iter().any(|id| self.model.jobs[id].is_start_unknown) => NEVER_STARTED,
            _ => self.model.now_ms as i64,
        };
        // jobs that ended at once have an order of their own
        let room = if before_ms < 0 || is_ended || self.random.once_in(2) {
            usize::MAX >> 12
        } else {
            1 + self.random.below(70) as usize
        };
        self.note(format!("clean {state} before {before_ms}, {room} at most"));
        let mut expected: Vec<String> = candidates.into_iter().take(room).collect();
        expected.retain(|id| is_older(&self.model.jobs[id], before_ms));

        let mut removed = self.clean_in_steps(state, before_ms, room);
        if before_ms < 0 || is_ended {
            removed.sort();
            expected.sort();
        }
        self.same(&format!("{removed:?}"), &format!("{expected:?}"));
        for id in &expected {
            self.model.remove(id);
        }
    }

    /// Gives the ids of those that went.
    fn clean_in_steps(&mut self, state: &str, before_ms: i64, mut room: usize) -> Vec<String> {
        let mut cursor = match state {
            "active" => self.queue.abandoned(),
            _ => Vec::new(),
        };
        let (mut removed, mut untold) = (Vec::new(), 0);
        loop {
            self.add_number += 1;
            let mut call = self.queue.call(&CLEAN_JOBS);
            call.arg(self.model.now_ms)
                .arg("bulk")
                .arg("b")
                .arg(self.add_number)
                .arg(state);
            call.arg(by_age(before_ms)).arg(room).arg(&cursor).arg(untold);
            let reply = self.queue.carry_out_value(&call);
            // again: the same answer, and nothing changes
            assert_eq!(self.queue.carry_out_value(&call), reply);
            let (ids, _, looked, next, left): (Vec<String>, u64, usize, Vec<u8>, i64) =
                redis::from_redis_value(reply).expect("a step");
            removed.extend(ids);
            if next.is_empty() {
                return removed;
            }
            (cursor, room, untold) = (next, room - looked, left);
        }
    }

    /// Puts finished jobs back in the waiting list. Which of those that ended at once come first is the queue's affair.
    pub fn retry_many(&mut self) {
        let state = *self.random.pick(&["failed", "completed"]);
        let count = 1 + self.random.below(20) as usize;
        let reset = self.random.below(2);
        self.note(format!("retry {count} {state}"));
        let order = self.ids_of(state, 0, -1, true);
        let expected = order.len().min(count);
        self.add_number += 1;
        let reply = run!(
            self.queue,
            RETRY_JOBS,
            self.model.now_ms,
            "bulk",
            "b",
            self.add_number,
            state,
            by_age(self.model.now_ms as i64),
            count,
            0,
            reset
        );
        let done = u8::from(order.len() < count);
        self.same(&reply, &format!("[{expected} 0 {done}]"));
        let moved: Vec<String> = order[..expected].to_vec();
        for id in &moved {
            let fields = &mut self.model.job(id).fields;
            if state == "failed" {
                fields.failed_reason = None;
            }
            (fields.finished_on, fields.processed_on, fields.returnvalue) = (None, None, None);
            if reset == 1 {
                (fields.attempts_made, fields.attempts_started) = (0, 0);
            }
        }
        self.model.tail(moved);
    }

    pub fn promote_many(&mut self) {
        let count = 1 + self.random.below(10) as usize;
        self.note(format!("promote {count}"));
        let promoted = self.model.delayed.len().min(count);
        let left = self.model.delayed.len() - promoted;
        let reply = run!(self.queue, PROMOTE_JOBS, self.model.now_ms, count);
        self.same(&reply, &format!("[{promoted} {left}]"));
        let ids = self.model.delayed.drain(..promoted).map(|(_, id)| id).collect();
        self.model.tail(ids);
    }
}
