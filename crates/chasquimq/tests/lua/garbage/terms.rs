//! The same for what says when jobs may start: the keys that they use, who stands in line for one, when they expire, and who was cancelled.

use chasquimq::redis::call::library::{ADD, CANCEL_JOBS, FAIL_EXPIRED, MOVE_DELAYED, REMOVE_JOB, RENEW_LEASE, STEP};

use super::play::Play;
use crate::{
    cancel_jobs::named,
    fail_expired::{keep, PAST},
    given::{
        plan::Plan,
        queue::{run_once, TestQueue},
        step::{of, Fail, Step},
    },
};

const NAMES: [&str; 10] = [
    "jobs",
    "vitals",
    "active",
    "delayed",
    "expiring",
    "key-limit:k",
    "key-limit:j",
    "key-line:k",
    "key-line:j",
    "cancels:w",
];
const IDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const HOUR: i64 = 3_600_000;
const K: (&str, i64, i64, i64) = ("k", 2, HOUR, 1);
const J: (&str, i64, i64, i64) = ("j", 1, HOUR, 1);

/// Jobs that run, some of them cancelled; that stand in line; for which room is held; and that have expired.
fn terms() -> TestQueue {
    let mut queue = TestQueue::with(
        Plan::new()
            .limited("a", &[K, J], "")
            .limited("b", &[K], "g")
            .limited("c", &[K], "")
            .limited("d", &[J, K], "g")
            .on_terms("e", (0, PAST), &[K], ""),
    );
    for _ in 0..3 {
        queue.step(Step::by("w").want(9));
    }
    // room is held for it when it has come in vain
    for _ in 0..2 {
        run_once!(queue, MOVE_DELAYED, 1001, "d", 0);
        queue.step(Step::by("w").at(1001).want(9));
    }
    run_once!(queue, CANCEL_JOBS, 1002, "why", 0, named(&["a"]));
    queue.add(
        1003,
        Plan::new()
            .limited("f", &[J], "")
            .on_terms("g", (9000, PAST), &[], "g")
            .on_terms("h", (0, PAST), &[K, J], ""),
    );
    queue
}

impl Play {
    fn use_keys(&mut self, what: &str) {
        for (owner, at) in [("w", 4500), ("v", 400 * HOUR as u64)] {
            let mut step = Step::by(owner).at(at).want(9);
            for id in IDS {
                step = match self.random.below(4) {
                    0 => step.back(&of(id), false),
                    1 => step.fail(&of(id), &Fail::to("waiting")),
                    2 => step.done_record(id, "1"),
                    _ => step,
                };
            }
            let call = self.queue.step_call(&step);
            self.try_call(STEP.name, what, &call);
            self.run(&RENEW_LEASE, what, |call| {
                call.arg(owner).arg(60_000).arg(b"\x90");
            });
            self.lose(owner, what, at + 1);
        }
    }

    fn change_terms(&mut self, what: &str) {
        let id = *self.random.pick(&IDS);
        self.run_once(&MOVE_DELAYED, Some(7000), what, |call| {
            call.arg(id).arg(0);
        });
        self.run_once(&CANCEL_JOBS, Some(7001), what, |call| {
            call.arg("why").arg(0).arg(named(&IDS[..4]));
        });
        self.run_once(&FAIL_EXPIRED, Some(7002), what, |call| {
            call.arg(keep(-1));
        });
        self.run_once(&REMOVE_JOB, Some(7003), what, |call| {
            call.arg(id).arg(0);
        });
        let number = self.queue.next_number();
        self.run(&ADD, what, |call| {
            call.arg(7004).arg("c").arg(0).arg(number);
            let plan = Plan::new().limited("new", &[K, J], "g").limited("newer", &[J], "");
            plan.on_terms("newest", (9000, PAST), &[K], "").append_to(call);
        });
    }
}

#[test]
fn no_script_raises_for_terms_that_it_did_not_write() {
    Play::with(terms()).seeds(&NAMES, |play, what| {
        if play.random.once_in(2) {
            play.change_terms(what);
        }
        play.use_keys(what);
        play.change_terms(what);
        play.use_keys(what);
    });
}
