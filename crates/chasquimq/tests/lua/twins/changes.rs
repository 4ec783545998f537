//! What somebody else does to the queue, or to a job of it.

use chasquimq::redis::call::library::{
    Script, CHANGE_PRIORITY, LOG_JOB, MOVE_DELAYED, PAUSE, PROMOTE_JOBS, REMOVE_JOB, RETRY_JOB, SET_LIMIT, UPDATE_JOB,
};

use super::{Twins, IDS};

impl Twins {
    pub(super) fn ask(&mut self, what: &str, script: &Script, arguments: &[String]) {
        self.both(format!("{what} {arguments:?}"), |queue, _| {
            let mut call = queue.call(script);
            call.arg(arguments);
            queue.carry_out_value(&call)
        });
    }

    /// The same of a script that is carried out once; `now_ms` where it is told it.
    fn ask_once(&mut self, what: &str, script: &Script, now_ms: Option<u64>, arguments: &[String]) {
        self.both(format!("{what} at {now_ms:?} {arguments:?}"), |queue, _| {
            let mut call = queue.numbered_call(script, now_ms);
            call.arg(arguments);
            queue.carry_out_value(&call)
        });
    }

    /// Somebody else changes the queue or a job of it.
    pub(super) fn change(&mut self) {
        let (now, now_ms) = (self.now_ms.to_string(), Some(self.now_ms));
        let number = 1 + self.random.below(self.number.max(1));
        let id = if self.random.once_in(3) {
            (*self.random.pick(&IDS)).to_owned()
        } else {
            number.to_string()
        };
        let [few, flag] = [3, 2].map(|end| self.random.below(end).to_string());
        let later = (self.now_ms + 30).to_string();
        match self.random.below(9) {
            0 | 1 if self.kinds.amendments => {
                let what = *self.random.pick(&["data", "progress"]);
                if self.random.once_in(3) {
                    return self.ask_once("log", &LOG_JOB, None, &[id, "row".to_owned(), "3".to_owned()]);
                }
                self.ask_once("amend", &UPDATE_JOB, now_ms, &[id, what.to_owned(), "7".to_owned()]);
            }
            2 => self.ask_once("remove", &REMOVE_JOB, now_ms, &[id, "0".to_owned()]),
            3 if self.kinds.priorities => self.ask_once("change priority", &CHANGE_PRIORITY, None, &[id, few, flag]),
            4 => {
                let state = *self.random.pick(&["failed", "completed"]);
                let arguments = [id, state.to_owned(), flag.clone(), flag.clone(), flag];
                self.ask_once("retry", &RETRY_JOB, now_ms, &arguments);
            }
            5 if self.kinds.delays => self.ask("promote", &PROMOTE_JOBS, &[now, few]),
            6 if self.kinds.delays => self.ask_once("move delayed", &MOVE_DELAYED, now_ms, &[id, later]),
            7 if self.kinds.limits => {
                let limit = *self.random.pick(&["concurrency", "length"]);
                let most = if self.random.once_in(2) { "" } else { "9" };
                self.ask_once("limit", &SET_LIMIT, None, &[limit, most, ""].map(str::to_owned));
            }
            _ if self.kinds.limits => self.ask_once("pause", &PAUSE, now_ms, &[flag]),
            _ => {}
        }
    }
}
