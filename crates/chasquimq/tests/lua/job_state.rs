//! A job's state, and what it ended with.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::{at, of, Fail, Step},
    tree::Tree,
};

#[test]
fn a_job_that_never_was_is_unknown() {
    let mut queue = TestQueue::with(Plan::new().frame(2));
    for id in ["3", "0", "01", "x", "", "99999999999999999999", "-1", "1.5", "1e0"] {
        assert_eq!(run!(queue, JOB_STATE, id), "[unknown '']", "{id}");
    }
}

#[test]
fn jobs_of_a_frame_know_their_state() {
    let mut queue = TestQueue::with(Plan::new().frame(3).frame(2));
    assert_eq!(run!(queue, JOB_STATE, "2"), "[waiting '']");
    queue.step(Step::by("w").want(3));
    assert_eq!(run!(queue, JOB_STATE, "2"), "[active '']");
    queue.step(Step::by("w").done_with(1, 3, 0, &["\"a\"", ""]));
    assert_eq!(run!(queue, JOB_STATE, "1"), "[completed \"a\"]");
    assert_eq!(run!(queue, JOB_STATE, "2"), "[completed null]");
    assert_eq!(run!(queue, JOB_STATE, "3"), "[active '']");
    queue.step(Step::by("w").keep(0, -1.0, 1000).done(1, 3, 2, 1));
    assert_eq!(run!(queue, JOB_STATE, "3"), "[unknown '']");
    assert_eq!(run!(queue, JOB_STATE, "4"), "[waiting '']");
}

#[test]
fn records_know_their_state() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y").front("z").delayed("d", 5000));
    let state = |queue: &mut TestQueue, id| run!(queue, JOB_STATE, id);
    assert_eq!(state(&mut queue, "x"), "[waiting '']");
    assert_eq!(state(&mut queue, "z"), "[waiting '']");
    assert_eq!(state(&mut queue, "d"), "[delayed '']");
    queue.step(Step::by("w").want(3));
    assert_eq!(state(&mut queue, "x"), "[active '']");
    let step = Step::by("w").done_record("x", "7").done_record("z", "");
    queue.step(step.fail(&of("y"), &Fail::to("failed")));
    assert_eq!(state(&mut queue, "x"), "[completed 7]");
    assert_eq!(state(&mut queue, "y"), "[failed boom]");
    assert_eq!(state(&mut queue, "z"), "[completed null]");
    queue.add(1000, Plan::new().prioritized("p", 3));
    assert_eq!(state(&mut queue, "p"), "[prioritized '']");
    queue.add_flows(1000, &Tree::new().root("r").child("r", "c"));
    assert_eq!(state(&mut queue, "r"), "[waiting-children '']");
}

#[test]
fn a_job_of_a_broken_frame_knows_its_state() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").want(1));
    assert_eq!(run!(queue, JOB_STATE, "1"), "[active '']");
    assert_eq!(run!(queue, JOB_STATE, "2"), "[waiting '']");
}

#[test]
fn a_job_that_left_its_frame_knows_its_state() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").want(3));
    let fail = Fail {
        due_ms: 5000,
        ..Fail::to("delayed")
    };
    queue.step(Step::by("w").fail(&at(1, 3, 1), &fail));
    assert_eq!(run!(queue, JOB_STATE, "2"), "[delayed '']");
    assert_eq!(run!(queue, JOB_STATE, "3"), "[active '']");
}
