//! What is done to single jobs by their ids, in the queue and in the model.

use super::{
    drive::Drive,
    state::{At, Job, State, EXPIRED},
};
use crate::{cancel_jobs::named, fail_expired::keep, given::queue::run_once};

impl Drive {
    pub fn remove(&mut self) {
        let id = self.any_id();
        let expected = match self.model.state(&id) {
            Some(State::Active { owner, .. }) if self.model.leases.contains(owner) => "0",
            _ => "1",
        };
        self.note(format!("remove {id}"));
        let reply = run_once!(self.queue, REMOVE_JOB, self.model.now_ms, &id, 0);
        self.same(&reply, expected);
        if expected == "1" && self.model.state(&id).is_some() {
            self.model.remove(&id);
        }
    }

    pub fn cancel(&mut self) {
        let id = self.any_id();
        self.note(format!("cancel {id}"));
        let reply = run_once!(self.queue, CANCEL_JOBS, self.model.now_ms, "", 0, named(&[&id]));
        let expected = match self.model.state(&id) {
            None => "[0]",
            Some(State::Completed | State::Failed) => "[3]",
            Some(State::Active { .. }) => "[2]",
            Some(_) => "[1]",
        };
        self.same(&reply, expected);
        if ["[1]", "[2]"].contains(&expected) {
            self.model.cancel(&id);
        }
    }

    pub fn fail_expired(&mut self) {
        self.note("fail_expired".to_owned());
        let reply = run_once!(self.queue, FAIL_EXPIRED, self.model.now_ms, keep(-1));
        self.same(&reply, "0");
        let jobs = self.model.jobs.iter();
        let is_due = |job: &Job| job.is_late() && ["waiting", "prioritized", "delayed"].contains(&job.state.name());
        let late: Vec<String> = jobs.filter(|(_, job)| is_due(job)).map(|(id, _)| id.clone()).collect();
        for id in late {
            self.model.fail_unstarted(&id, EXPIRED);
        }
    }

    pub fn amend(&mut self) {
        let id = self.any_id();
        let exists = self.model.state(&id).is_some();
        let now_ms = self.model.now_ms;
        let expected = if exists { "0" } else { "-1" };
        match self.random.below(3) {
            0 => {
                self.note(format!("amend data of {id}"));
                let reply = run_once!(self.queue, UPDATE_JOB, now_ms, &id, "data", "\"new\"");
                self.same(&reply, expected);
                if exists {
                    self.model.job(&id).data = "\"new\"".to_owned();
                }
            }
            1 => {
                self.note(format!("amend progress of {id}"));
                let reply = run_once!(self.queue, UPDATE_JOB, now_ms, &id, "progress", now_ms.to_string());
                self.same(&reply, expected);
                if exists {
                    self.model.job(&id).fields.progress = Some(now_ms.to_string());
                }
            }
            _ => {
                self.note(format!("log {id}"));
                let reply = run_once!(self.queue, LOG_JOB; &id, "row", 1);
                self.same(&reply, if exists { "[1]" } else { "[-1]" });
            }
        }
    }

    pub fn retry(&mut self) {
        let state = *self.random.pick(&["failed", "completed"]);
        let id = self.id_in(state);
        let [front, made, started] = [0; 3].map(|_| self.random.below(2));
        self.note(format!("retry {id} if {state}, front {front}"));
        let expected = match self.model.state(&id) {
            None => "-1",
            Some(found) if found.name() == state => "0",
            Some(_) => "-3",
        };
        let reply = run_once!(
            self.queue,
            RETRY_JOB,
            self.model.now_ms,
            &id,
            state,
            front,
            made,
            started
        );
        self.same(&reply, expected);
        if expected != "0" {
            return;
        }
        self.model.begin_again(&id, state);
        let fields = &mut self.model.job(&id).fields;
        if made == 1 {
            fields.attempts_made = 0;
        }
        if started == 1 {
            fields.attempts_started = 0;
        }
        if front == 1 {
            self.model.wait_first(&[(id, At::End)]);
        } else {
            self.model.wait_last(vec![id]);
        }
    }

    pub fn change_priority(&mut self) {
        let state = *self.random.pick(&["waiting", "prioritized", "delayed", "active"]);
        let id = self.id_in(state);
        let (priority, lifo) = (self.random.below(4), self.random.below(2));
        self.note(format!("change priority of {id} to {priority}, lifo {lifo}"));
        let exists = self.model.state(&id).is_some();
        let reply = run_once!(self.queue, CHANGE_PRIORITY; &id, priority, lifo);
        self.same(&reply, if exists { "0" } else { "-1" });
        if exists {
            self.model.change_priority(&id, priority as i64, lifo == 1);
        }
    }

    pub fn move_delayed(&mut self) {
        let id = self.id_in("delayed");
        let now_ms = self.model.now_ms;
        let due_ms = if self.random.once_in(2) {
            0
        } else {
            now_ms + self.random.below(20)
        };
        self.note(format!("move delayed {id} to {due_ms}"));
        let expected = match self.model.state(&id) {
            None => "-1",
            Some(State::Delayed { .. }) => "0",
            Some(_) => "-3",
        };
        let reply = run_once!(self.queue, MOVE_DELAYED, now_ms, &id, due_ms);
        self.same(&reply, expected);
        if expected != "0" {
            return;
        }
        self.model.take_out(&id);
        if due_ms == 0 {
            self.model.wait_last(vec![id]);
        } else {
            self.model.job(&id).fields.delay_ms = Some(due_ms - now_ms);
            self.model.delay(&id, due_ms);
        }
    }

    /// Anybody's, a worker's, or one that a handler has: of the run under way, or of an older one.
    fn token_for(&mut self, id: &str) -> String {
        let plain = *self.random.pick(&["0", "w0", "w1"]);
        match self.model.state(id) {
            Some(State::Active { owner, claim }) if self.random.once_in(2) => {
                let older = if self.random.once_in(2) { 2 } else { 0 };
                format!("{owner}:{}.7", claim.saturating_sub(older))
            }
            _ => plain.to_owned(),
        }
    }

    pub fn move_active(&mut self) {
        let id = self.id_in("active");
        let by = self.token_for(&id);
        let now_ms = self.model.now_ms;
        let due_ms = if self.random.once_in(2) {
            0
        } else {
            now_ms + self.random.below(20)
        };
        self.note(format!("move active {id} of '{by}' to {due_ms}"));
        let expected = match self.model.state(&id) {
            None => "-1",
            Some(State::Active { .. }) if by == "0" => "0",
            Some(State::Active { owner, .. }) if !self.model.leases.contains(owner) => "-2",
            Some(State::Active { owner, claim }) if by == *owner || by == format!("{owner}:{claim}.7") => "0",
            Some(State::Active { .. }) => "-6",
            Some(_) if by != "0" => "-2",
            Some(_) if due_ms == 0 => "0",
            Some(_) => "-3",
        };
        let moves = expected == "0" && matches!(self.model.state(&id), Some(State::Active { .. }));
        let reply = run_once!(self.queue, MOVE_ACTIVE, now_ms, &id, &by, due_ms);
        if moves && due_ms == 0 && self.model.starts.is_some() {
            assert!(reply != "0", "the window of the rate limit is under way");
        } else {
            self.same(&reply, expected);
        }
        if !moves {
            return;
        }
        if due_ms == 0 {
            self.model.job(&id).fields.delay_ms = None;
            self.model.wait_first(&[(id, At::Front)]);
        } else {
            self.model.job(&id).fields.delay_ms = Some(due_ms - now_ms);
            self.model.delay(&id, due_ms);
        }
    }
}
