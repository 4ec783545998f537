//! The same for groups: who waits where, what is set for them, and how many of their jobs are active.

use chasquimq::{
    msgpack::Packer,
    redis::call::library::{
        ADD, CHANGE_PRIORITY, CLEAN_JOBS, LIST_GROUPS, LIST_JOBS, MOVE_DELAYED, PROMOTE_JOBS, READ_GROUP, READ_JOBS,
        REMOVE_JOB, SET_GROUP, STEP,
    },
};

use super::play::Play;
use crate::{
    given::{
        plan::Plan,
        queue::{run_once, TestQueue},
        step::{of, Fail, Step},
    },
    model::bulk::by_age,
    read_jobs::by_ids,
};

const NAMES: [&str; 17] = [
    "jobs",
    "vitals",
    "active",
    "takes",
    "delayed",
    "grouped",
    "groups",
    "groups-limited",
    "groups-maxed",
    "groups-paused",
    "group:a",
    "group:b",
    "group-active",
    "group-settings",
    "group-starts:b",
    "group-holds:s",
    "turns",
];
const GROUPS: [&str; 5] = ["a", "b", "p", "m", "s"];
const IDS: [&str; 12] = ["a1", "a2", "a3", "b1", "b2", "p1", "m1", "m2", "s1", "s2", "d1", "o"];

/// Groups that wait, are limited, full, paused, and held back by their order.
fn groups() -> TestQueue {
    let plan = Plan::new()
        .grouped("m1", "m", 0)
        .grouped_within("s1", 0, ("s", 0, -1.0), 0);
    let mut queue = TestQueue::with(plan.grouped("a1", "a", 0));
    run_once!(queue, SET_GROUP, 1000, "m", "concurrency", 1, "");
    run_once!(queue, SET_GROUP, 1000, "b", "limit", 1, 60_000);
    run_once!(queue, SET_GROUP, 1000, "a", "weight", "2.5", "");
    run_once!(queue, SET_GROUP, 1000, "p", "pause", "", "");
    queue.step(Step::by("w").at(1001).want(3));
    let delayed = Fail {
        due_ms: 9000,
        ..Fail::to("delayed")
    };
    queue.step(Step::by("w").at(1002).fail(&of("s1"), &delayed));
    let plan = Plan::new()
        .grouped("a2", "a", 0)
        .grouped("a3", "a", 2)
        .grouped("b1", "b", 0);
    let plan = plan.grouped("b2", "b", 1).grouped("p1", "p", 0).grouped("m2", "m", 0);
    let plan = plan.grouped("s2", "s", 0).grouped_within("d1", 4000, ("a", 0, 0.0), 0);
    queue.add(1003, plan.record("o"));
    queue.step(Step::by("v").at(1004).want(2));
    queue.command("DEL", "lease:w", &[]);
    queue
}

impl Play {
    fn look_at_groups(&mut self, what: &str) {
        let mut statuses = Packer::default();
        statuses.column(["waiting", "limited", "maxed", "paused"].into_iter(), false);
        self.run(&LIST_GROUPS, what, |call| {
            call.arg(&statuses.0).arg(0).arg(-1);
        });
        for group in GROUPS {
            self.run(&READ_GROUP, what, |call| {
                call.arg(group);
            });
            self.run(&LIST_JOBS, what, |call| {
                let state = format!("group:{group}");
                call.arg(by_ids(&[&state])).arg(0).arg(-1).arg(1).arg(0).arg("");
            });
        }
        self.run(&READ_JOBS, what, |call| {
            call.arg(by_ids(&IDS));
        });
    }

    /// Takes what can start, gives some of it back, and loses the rest.
    fn serve_groups(&mut self, what: &str) {
        for (owner, want, at) in [("a", 2, 4500), ("b", 100, 9500)] {
            let mut step = Step::by(owner).at(at).want(want).group_rules(2, 3, 1000);
            step = match self.random.below(3) {
                0 => step.fair(),
                1 => step.apart(),
                _ => step,
            };
            let call = self.queue.step_call(&step);
            self.try_call(STEP.name, what, &call);
            let mut step = Step::by(owner).at(at + 1);
            for id in IDS {
                step = match self.random.below(3) {
                    0 => step.back(&of(id), true),
                    1 => step.fail(&of(id), &Fail::to("waiting")),
                    _ => step.done_record(id, "1"),
                };
            }
            let call = self.queue.step_call(&step);
            self.try_call(STEP.name, what, &call);
            self.lose(owner, what, at + 2);
        }
    }

    fn manage_groups(&mut self, what: &str) {
        let id = *self.random.pick(&IDS);
        let group = *self.random.pick(&GROUPS);
        for (setting, value, duration_ms) in [
            ("pause", "", ""),
            ("resume", "", ""),
            ("concurrency", "2", ""),
            ("limit", "3", "1000"),
            ("weight", "0.5", ""),
            ("window", "50", ""),
            ("window", "0", ""),
        ] {
            self.run_once(&SET_GROUP, Some(7000), what, |call| {
                call.arg(group).arg(setting).arg(value).arg(duration_ms);
            });
        }
        self.run_once(&CHANGE_PRIORITY, None, what, |call| {
            call.arg(id).arg(2).arg(0);
        });
        self.run_once(&MOVE_DELAYED, Some(7001), what, |call| {
            call.arg("d1").arg(9000);
        });
        let number = self.queue.next_number();
        self.run(&ADD, what, |call| {
            call.arg(7002).arg("c").arg(0).arg(number);
            let plan = Plan::new().grouped("new", group, 0);
            plan.grouped_within("late", 9000, (group, 9, 2.0), 1).append_to(call);
        });
        self.run(&PROMOTE_JOBS, what, |call| {
            call.arg(7003).arg(1);
        });
        self.run_once(&REMOVE_JOB, Some(7004), what, |call| {
            call.arg(id).arg(0);
        });
        for state in ["wait", &format!("group:{group}")] {
            let number = self.queue.next_number();
            self.run(&CLEAN_JOBS, what, |call| {
                call.arg(7005).arg("k").arg("b").arg(number).arg(state);
                call.arg(by_age(9000)).arg(2).arg("").arg(0);
            });
        }
        self.run_once(&SET_GROUP, Some(7006), what, |call| {
            call.arg(group).arg("forget").arg("").arg("");
        });
    }
}

#[test]
fn no_script_raises_for_a_group_that_it_did_not_write() {
    Play::with(groups()).seeds(&NAMES, |play, what| {
        let order = play.random.below(3);
        if order == 0 {
            play.look_at_groups(what);
            play.manage_groups(what);
        }
        play.serve_groups(what);
        play.manage_groups(what);
        play.serve_groups(what);
        play.look_at_groups(what);
    });
}
