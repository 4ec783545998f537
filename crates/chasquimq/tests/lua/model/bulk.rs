//! What is done to many jobs of a state at once, in the queue and in the model.

use chasquimq::{
    msgpack::Packer,
    redis::call::library::{CHANGE_JOBS, CLEAN_JOBS},
};

use super::{
    drive::Drive,
    state::{Job, CANCELLED},
};
use crate::{find_jobs::by_name, given::queue::run};

const NEVER_STARTED: i64 = 10;

/// A filter of `rules/filter` that knows times only.
pub fn by_age(before_ms: i64) -> Vec<u8> {
    let mut filter = Packer::default();
    filter.map(2).str("before_ms").int(before_ms).str("after_ms").int(-1);
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
            self.model.now_ms,
            count
        );
        let done = u8::from(order.len() < count);
        self.same(&reply, &format!("[{expected} {done}]"));
        let moved: Vec<String> = order[..expected].to_vec();
        for id in &moved {
            self.model.begin_again(id, state);
        }
        self.model.tail(moved);
    }

    /// Removes, retries, promotes or cancels jobs of a state as a filter picks them, a step at a time.
    pub fn change_picked(&mut self) {
        let (action, state) = *self.random.pick(&[
            ("remove", "waiting"),
            ("remove", "prioritized"),
            ("remove", "delayed"),
            ("remove", "active"),
            ("remove", "completed"),
            ("remove", "failed"),
            ("retry", "completed"),
            ("retry", "failed"),
            ("promote", "delayed"),
            ("cancel", "waiting"),
            ("cancel", "prioritized"),
            ("cancel", "delayed"),
            ("cancel", "active"),
        ]);
        let room = 1 + self.random.below(90);
        // names are `a`
        let filter = if self.random.once_in(2) {
            by_age(-1)
        } else {
            by_name("a")
        };
        let mut expected = match state {
            "active" if action == "remove" => self.model.lost(),
            _ => self.ids_of(state, 0, -1, true),
        };
        if state == "active" && action == "cancel" {
            // who was told is not told again
            expected.retain(|id| self.model.jobs[id].fields.deferred_failure.as_deref() != Some(CANCELLED));
        }
        self.note(format!("{action} {state}, {room} a step"));
        let mut changed = self.change_in_steps(action, state, &filter, room);
        for id in &changed {
            match action {
                "remove" => self.model.remove(id),
                "cancel" => self.model.cancel(id),
                "promote" => self.model.delayed.retain(|(_, other)| other != id),
                _ => self.model.begin_again(id, state),
            }
        }
        if ["retry", "promote"].contains(&action) {
            // each step enters its jobs by itself
            for ids in changed.chunks(usize::try_from(room).expect("a few")) {
                self.model.wait_last(ids.to_vec());
            }
        }
        if state == "active" {
            changed.sort();
            expected.sort();
        }
        self.same(&format!("{changed:?}"), &format!("{expected:?}"));
    }

    fn change_in_steps(&mut self, action: &str, state: &str, filter: &[u8], room: u64) -> Vec<String> {
        let (mut changed, mut place) = (Vec::new(), String::new());
        loop {
            self.add_number += 1;
            let mut call = self.queue.call(&CHANGE_JOBS);
            call.arg(self.model.now_ms).arg("bulk").arg("b").arg(self.add_number);
            call.arg(action)
                .arg(state)
                .arg(filter)
                .arg(&place)
                .arg(room)
                .arg(0)
                .arg("");
            let reply = self.queue.carry_out_value(&call);
            assert_eq!(self.queue.carry_out_value(&call), reply);
            let (next, _, _, ids): (String, u64, u64, Vec<String>) = redis::from_redis_value(reply).expect("a step");
            changed.extend(ids);
            place = next;
            if place.is_empty() {
                return changed;
            }
        }
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
