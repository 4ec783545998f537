//! Outcomes of jobs that the worker does not hold (any more) are refused, and change nothing.

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    step::{at, of, Fail, Step},
};

/// A frame 1..3 and a record x, held by `w` until its lease ended, and brought back.
fn recovered() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x"));
    queue.step(Step::by("w").want(4));
    queue.end_lease("w");
    assert_eq!(queue.recover_stalled(1001, 60_000, 1), "[1 2 3 x]");
    queue.skip_events();
    queue
}

/// All ways to end the jobs of `recovered`.
fn endings() -> Vec<Step> {
    let fail = Fail::to("failed");
    vec![
        Step::by("w").done_with(1, 3, 0, &["1", "2", "3"]).done_record("x", "4"),
        Step::by("w")
            .fail(&at(1, 3, 0), &fail)
            .fail(&at(1, 3, 1), &fail)
            .fail(&at(1, 3, 2), &fail)
            .fail(&of("x"), &fail),
        Step::by("w")
            .back(&at(1, 3, 0), false)
            .back(&at(1, 3, 1), true)
            .back(&at(1, 3, 2), false)
            .back(&of("x"), true),
    ]
}

#[test]
fn nobody_holds_a_job_that_waits() {
    for ending in endings() {
        let mut queue = recovered();
        let keys = queue.show();
        assert_eq!(
            queue.step(ending),
            "[[[1 0 -2 0] [1 1 -2 0] [1 2 -2 0] [0 x -2 0]] [] -1 0 1]"
        );
        queue.keys_are(&keys.replace("stalled:", "lease:w: set\nstalled:"));
        queue.events_are("");
    }
}

#[test]
fn a_job_that_another_worker_holds_is_not_ended() {
    for ending in endings() {
        let mut queue = recovered();
        queue.step(Step::by("v").want(4));
        queue.skip_events();
        let active = "1=[1000 2 v ''] 2=[1000 2 v ''] 3=[1000 2 v ''] x=[1000 2 v '']";
        queue.key_is("active", active);
        assert_eq!(
            queue.step(ending),
            "[[[1 0 -6 0] [1 1 -6 0] [1 2 -6 0] [0 x -6 0]] [] -1 0 0]"
        );
        queue.key_is("active", active);
        queue.events_are("");
    }
}

#[test]
fn a_job_that_is_gone_is_not_ended() {
    for ending in endings() {
        let mut queue = recovered();
        for id in ["1", "2", "3", "x"] {
            run_once!(queue, REMOVE_JOB, 1002, id, 0);
        }
        queue.skip_events();
        assert_eq!(
            queue.step(ending),
            "[[[1 0 -1 0] [1 1 -1 0] [1 2 -1 0] [0 x -1 0]] [] -1 0 0]"
        );
        queue.key_is("state", "cursor=4-r1 id=4 references=1");
        queue.events_are("");
    }
}

#[test]
fn the_others_of_a_frame_are_ended_all_the_same() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").want(3));
    run_once!(queue, MOVE_ACTIVE, 1001, "2", "0", 5000);
    queue.skip_events();
    assert_eq!(queue.step(Step::by("w").done(1, 3, 0, 3)), "[[[1 1 -2 0]] [] -1 0 0]");
    queue.key_is("completed", "1@1000 3@1000");
    queue.key_is("delayed", "2@5000+0");
    queue.events_are("[C 1 1 ''] [C 3 1 ''] [E drained]");
}

#[test]
fn a_job_taken_twice_by_one_worker_ends_once() {
    let mut queue = TestQueue::with(Plan::new().frame(2));
    queue.step(Step::by("w").want(2));
    run_once!(queue, MOVE_ACTIVE, 1001, "2", "0", 0);
    queue.step(Step::by("w").want(1));
    assert_eq!(
        queue.step(Step::by("w").done(1, 2, 0, 2).done_record("2", "")),
        "[[[0 2 -2 0]] [] -1 0 0]"
    );
    queue.key_is("state", "cursor=1-2 id=2 completed=2");
}

/// A frame 1..2 and a record x that one step of `w` took; they went back to the waiting list, and another step of it took them again.
fn taken_again() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x"));
    queue.step(Step::by("w").number(FIRST).want(3));
    for id in ["x", "2", "1"] {
        run_once!(queue, MOVE_ACTIVE, 1001, id, "w:20.0", 0);
    }
    queue.step(Step::by("w").number(FIRST + 1).want(3));
    queue.skip_events();
    queue
}

/// Number of the first step, under whose claim it takes jobs: 20.
const FIRST: u64 = 10;

#[test]
fn what_ended_before_the_job_was_taken_again_is_refused() {
    let fail = Fail::to("failed");
    let endings = [
        Step::by("w")
            .of_claim(20)
            .done_with(1, 2, 0, &["1", "2"])
            .done_record("x", "3"),
        Step::by("w")
            .of_claim(20)
            .fail(&at(1, 2, 0), &fail)
            .fail(&at(1, 2, 1), &fail)
            .fail(&of("x"), &fail),
        Step::by("w")
            .of_claim(20)
            .back(&at(1, 2, 0), false)
            .back(&at(1, 2, 1), true)
            .back(&of("x"), true),
    ];
    for ending in endings {
        let mut queue = taken_again();
        let keys = queue.show();
        assert_eq!(
            queue.step(ending.number(FIRST + 2)),
            "[[[1 0 -6 20] [1 1 -6 20] [0 x -6 20]] [] -1 0 0]"
        );
        queue.keys_are(&keys);
        queue.events_are("");
    }
}

#[test]
fn a_run_that_moved_its_job_lets_nothing_go_of_the_next_run() {
    let mut queue = taken_again();
    let keys = queue.show();
    let moved = Step::by("w").number(FIRST + 2).of_claim(20);
    let moved = moved.let_go(&at(1, 2, 0)).let_go(&at(1, 2, 1)).let_go(&of("x"));
    assert_eq!(queue.step(moved), "[[] [] -1 0 0]");
    queue.keys_are(&keys);
    let ended = Step::by("w").number(FIRST + 3).of_claim(22);
    assert_eq!(
        queue.step(ended.done_records(&[("1", ""), ("2", ""), ("x", "")])),
        "[[] [] -1 0 0]"
    );
    queue.key_is("completed", "1@1000 2@1000 x@1000");
}

#[test]
fn both_runs_may_end_in_one_step() {
    let mut queue = taken_again();
    let ended = Step::by("w").number(FIRST + 2);
    let both = ended.done_records_of(&[20, 22, 20, 22], &[("x", "1"), ("x", "2"), ("1", "3"), ("1", "4")]);
    assert_eq!(queue.step(both), "[[[0 x -6 20] [0 1 -6 20]] [] -1 0 0]");
    queue.key_is("completed", "x@1000 1@1000.0009765625");
    queue.events_are("[X completed [x 1] returnvalue [2 4] prev active]");
}

#[test]
fn the_result_of_a_job_that_was_obliterated_is_not_that_of_the_next_one_of_its_number() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").number(FIRST).want(3));
    run_once!(queue, PAUSE, 1001, 1);
    assert_eq!(run_once!(queue, OBLITERATE, 1002, 1000, 1, "0"), "0");
    queue.add(1003, Plan::new().frame(2));
    queue.step(Step::by("w").number(FIRST + 1).want(2));
    let keys = queue.show();
    let ended = Step::by("w")
        .number(FIRST + 2)
        .of_claim(20)
        .done_with(1, 3, 0, &["1", "2", "3"]);
    assert_eq!(queue.step(ended), "[[[1 0 -6 20] [1 1 -6 20] [1 2 -1 20]] [] -1 0 0]");
    queue.keys_are(&keys);
    let ended = Step::by("w").number(FIRST + 3).of_claim(22).done(1, 2, 0, 2);
    assert_eq!(queue.step(ended), "[[] [] -1 0 0]");
}

#[test]
fn an_old_result_finds_that_the_new_job_of_its_number_has_completed() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("w").number(FIRST).want(1));
    run_once!(queue, PAUSE, 1001, 1);
    assert_eq!(run_once!(queue, OBLITERATE, 1002, 1000, 1, "0"), "0");
    queue.add(1003, Plan::new().frame(2));
    queue.step(Step::by("w").number(FIRST + 1).want(2));
    queue.step(Step::by("w").number(FIRST + 2).of_claim(22).done(1, 2, 0, 2));
    let ended = Step::by("w").number(FIRST + 3).of_claim(20);
    assert_eq!(
        queue.step(ended.done_with(1, 1, 0, &["1"])),
        "[[[1 0 -2 20]] [] -1 0 0]"
    );
}
