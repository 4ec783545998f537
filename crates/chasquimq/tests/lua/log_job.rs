//! Adds a row to a job's log.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

#[test]
fn rows_are_kept_in_order_and_counted() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.skip_events();
    assert_eq!(run_once!(queue, LOG_JOB; "x", "one", 0), "[1]");
    assert_eq!(run_once!(queue, LOG_JOB; "x", "two", 0), "[2]");
    queue.keys_are(
        "jobs: x=[7 {} a 1]
         log: 1-r1(x)
         logged: x
         logs:x: one two
         state: id=1 waiting=1 references=1
         wake: set",
    );
    queue.events_are("");
}

#[test]
fn only_the_newest_rows_are_kept() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    for (row, kept) in [("one", "[1]"), ("two", "[2]"), ("three", "[2]")] {
        assert_eq!(run_once!(queue, LOG_JOB; "x", row, 2), kept);
    }
    queue.key_is("logs:x", "two three");
}

#[test]
fn as_many_of_the_oldest_rows_go_as_a_job_keeps_less_than_none() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    for row in ["one", "two", "three"] {
        run_once!(queue, LOG_JOB; "x", row, 0);
    }
    assert_eq!(run_once!(queue, LOG_JOB; "x", "four", -2), "[-2]");
    queue.key_is("logs:x", "three four");
    // each as if it came alone
    assert_eq!(run_once!(queue, LOG_JOB; "x", "five", -2, "x", "six", -2), "[-2 -2]");
    queue.key_is("logs:x", "(none)");
    assert_eq!(run_once!(queue, LOG_JOB; "x", "seven", -1), "[-1]");
    queue.key_is("logs:x", "(none)");
}

#[test]
fn a_job_of_a_frame_gets_a_record() {
    let mut queue = TestQueue::with(Plan::new().frame(2).frame(2));
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").at(1010).done(1, 2, 0, 1));
    for id in ["1", "2", "4"] {
        assert_eq!(run_once!(queue, LOG_JOB; id, "row", 0), "[1]");
    }
    queue.keys_are(
        "active: 2=[1000 1 w '']
         completed: 1@1010
         holes: 3=1r
         jobs: 1=[7 {} a 1] 2=[7 {} a 2] 4=[7 {} a 2]
         lease:w: set
         log: 3-2
         logged: 1 2 4
         logs:1: row
         logs:2: row
         logs:4: row
         state: cursor=1-2 id=4 waiting=2 active=1 completed=1 holes=1
         vitals: 1={am:1 as:1 fo:1010 po:1000} 2={as:1 po:1000}
         wake: set",
    );
}

#[test]
fn a_job_that_is_missing_gets_no_log() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    let keys = queue.show();
    assert_eq!(run_once!(queue, LOG_JOB; "2", "row", 0), "[-1]");
    queue.keys_are(&keys);
}

#[test]
fn rows_that_come_together_are_answered_as_if_each_came_alone() {
    let mut queue = TestQueue::with(Plan::new().record("x").frame(2));
    run_once!(queue, LOG_JOB; "x", "zero", 0);
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::LOG_JOB, None);
    let rows = [
        ("x", "one", 3),
        ("x", "two", 3),
        ("x", "three", 3),
        ("2", "a", 0),
        ("gone", "b", 0),
        ("3", "c", 0),
        ("2", "d", 0),
        ("x", "four", 2),
        ("x", "five", 3),
    ];
    for (id, row, keep) in rows {
        call.arg(id).arg(row).arg(keep);
    }
    assert_eq!(queue.carry_out(&call), "[2 3 3 1 -1 1 2 2 3]");
    queue.key_is("logs:x", "three four five");
    queue.key_is("logs:2", "a d");
    queue.key_is("logged", "2 3 x");
}

#[test]
fn a_call_sent_again_adds_no_rows() {
    let mut queue = TestQueue::with(Plan::new().record("x").frame(1));
    let log = |queue: &mut TestQueue| run!(queue, LOG_JOB, "c", "b", 1, "x", "one", 0, "2", "two", 0, "9", "three", 0);
    assert_eq!(log(&mut queue), "[1 1 -1]");
    run_once!(queue, LOG_JOB; "x", "four", 0);
    assert_eq!(log(&mut queue), "[1 1 -1]");
    queue.key_is("logs:x", "one four");
    queue.key_is("logs:2", "two");
}
