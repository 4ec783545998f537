//! Values that no script wrote, under every name of a queue: no script raises, since one that does leaves its work half done, and
//! the queue for ever where it is.

mod families;
mod groups;
mod moves;
mod play;
mod terms;

use chasquimq::redis::call::library::{
    ADD, CANCEL_JOBS, CHANGE_JOBS, CHANGE_PRIORITY, CLEAN_JOBS, COUNT_JOBS, FAIL_EXPIRED, FIND_JOBS, JOB_STATE,
    LIST_ACTIVE, LIST_JOBS, LOG_JOB, MOVE_DELAYED, PROMOTE_JOBS, READ_JOBS, REMOVE_JOB, RETRY_JOB, RETRY_JOBS, STEP,
    UPDATE_JOB,
};

use self::play::Play;
use super::{
    cancel_jobs::named,
    fail_expired::{keep, PAST},
    find_jobs::{by_anything, STATES},
    model::bulk::by_age,
    read_jobs::{self, by_ids},
};
use crate::given::{plan::Plan, queue::TestQueue, step::Step};

/// What jobs are made of. A counter that is garbage (`state`) makes every script raise before it has written anything.
const NAMES: [&str; 16] = [
    "log", "jobs", "vitals", "traces", "active", "takes", "runs", "holes", "gone", "frames", "front", "delayed",
    "delays", "events", "failed", "expiring",
];
const IDS: [&str; 14] = ["1", "2", "3", "4", "5", "8", "9", "x", "y", "z", "d", "e", "f", "p"];

/// What is done to jobs of any kind.
impl Play {
    pub(super) fn read_all(&mut self, what: &str) {
        for state in ["waiting", "completed", "failed", "delayed", "prioritized"] {
            for ids_only in [0, 1] {
                self.run(&LIST_JOBS, what, |call| {
                    call.arg(by_ids(&[state])).arg(0).arg(-1).arg(1).arg(ids_only).arg("");
                });
            }
        }
        for whose in ["all", "held", "lost"] {
            self.run(&LIST_ACTIVE, what, |call| {
                call.arg(whose).arg("");
            });
        }
        self.run(&READ_JOBS, what, |call| {
            call.arg(by_ids(&IDS));
        });
        for id in IDS {
            self.run(&JOB_STATE, what, |call| {
                call.arg(id);
            });
        }
        self.run(&COUNT_JOBS, what, |_| {});
        for state in STATES {
            for filter in [by_age(-1), by_anything()] {
                for asked in [0, 1] {
                    self.run(&FIND_JOBS, what, |call| {
                        call.arg(state).arg(&filter).arg("").arg(10).arg(asked);
                    });
                }
            }
        }
    }

    /// Lets workers take everything, gives some of it back, and takes it again.
    pub(super) fn work(&mut self, what: &str) {
        for (owner, want, at) in [("a", 3, 4500), ("b", 100, 6000)] {
            let call = self.queue.step_call(&Step::by(owner).at(at).want(want).surplus(20));
            self.try_call(STEP.name, what, &call);
            self.lose(owner, what, 7000);
        }
    }

    pub(super) fn manage(&mut self, what: &str) {
        let id = *self.random.pick(&IDS);
        self.run_once(&LOG_JOB, None, what, |call| {
            call.arg(id).arg("row").arg(0);
        });
        for (field, value) in [("data", "5"), ("progress", "6")] {
            self.run_once(&UPDATE_JOB, Some(7001), what, |call| {
                call.arg(id).arg(field).arg(value);
            });
        }
        self.run_once(&CHANGE_PRIORITY, None, what, |call| {
            call.arg(id).arg(2).arg(0);
        });
        self.run_once(&MOVE_DELAYED, Some(7001), what, |call| {
            call.arg("d").arg(9000);
        });
        self.run_once(&RETRY_JOB, Some(7001), what, |call| {
            call.arg(id).arg("failed").arg(0).arg(0).arg(0);
        });
        for state in ["failed", "completed"] {
            let number = self.queue.next_number();
            self.run(&RETRY_JOBS, what, |call| {
                call.arg(7002).arg("c").arg("b").arg(number).arg(state);
                call.arg(9000).arg(3);
            });
        }
        self.run(&PROMOTE_JOBS, what, |call| {
            call.arg(7003).arg(1);
        });
        let number = self.queue.next_number();
        self.run(&ADD, what, |call| {
            call.arg(7004).arg("c").arg(0).arg(number);
            Plan::new().frame(3).record("new").delayed("late", 9000).append_to(call);
        });
        self.run_once(&REMOVE_JOB, Some(7005), what, |call| {
            call.arg(self::other(id)).arg(0);
        });
        self.run_once(&CANCEL_JOBS, Some(7006), what, |call| {
            call.arg("why").arg(0).arg(named(&[id]));
        });
        self.run_once(&FAIL_EXPIRED, Some(7006), what, |call| {
            call.arg(keep(-1));
        });
        let target = format!("{}other:", self.queue.probe.keys.base);
        let moves = ["waiting", "prioritized", "delayed", "completed", "failed"].map(|state| ("move", state));
        for (action, state) in [("promote", "delayed"), ("retry", "failed"), ("retry", "completed")]
            .into_iter()
            .chain(moves)
            .chain(STATES.map(|state| ("remove", state)))
            .chain(["waiting", "prioritized", "delayed", "active", "waiting-children"].map(|state| ("cancel", state)))
        {
            for filter in [by_anything(), by_age(-1)] {
                self.run_once(&CHANGE_JOBS, Some(7006), what, |call| {
                    call.arg(action)
                        .arg(state)
                        .arg(filter)
                        .arg("")
                        .arg(2)
                        .arg(0)
                        .arg(&target);
                });
            }
        }
        for state in ["wait", "active", "completed", "failed", "delayed", "prioritized"] {
            let number = self.queue.next_number();
            let cursor = match state {
                "active" => self.abandoned(what),
                _ => Vec::new(),
            };
            self.run(&CLEAN_JOBS, what, |call| {
                call.arg(7006).arg("k").arg("b").arg(number).arg(state);
                call.arg(by_age(9000)).arg(2).arg(cursor).arg(0);
            });
        }
    }
}

fn other(id: &str) -> &str {
    IDS.iter().find(|other| **other > id).unwrap_or(&"1")
}

/// Jobs in every state.
fn jobs() -> TestQueue {
    let mut queue = read_jobs::full();
    queue.add(1011, Plan::new().prioritized("p", 3).frame(5).record("r"));
    queue.add(
        1012,
        Plan::new()
            .expiring("q", 0, PAST, "{}")
            .expiring("s", 9000, PAST, "{}")
            .expiring("t", 0, PAST + 9_000_000_000_000, "{}"),
    );
    queue.command("DEL", "lease:w", &[]);
    queue
}

#[test]
fn no_script_raises_for_a_value_that_it_did_not_write() {
    Play::with(jobs()).seeds(&NAMES, |play, what| {
        let rounds = play.random.below(3);
        if rounds != 1 {
            play.read_all(what);
        }
        if rounds == 0 {
            play.manage(what);
        }
        play.work(what);
        play.manage(what);
        play.read_all(what);
    });
}
