//! Data and results that lie apart from what scripts read, from the add to the end.

use crate::{
    given::{
        plan::Plan,
        queue::{run, run_once, TestQueue},
        step::{at, of, Fail, Place, Step},
        tree::Tree,
    },
    read_jobs::by_ids,
};

/// x and y are active; z waits, with data that lie apart, too.
fn taken() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().large(&[("x", "\"dx\""), ("y", "\"dy\""), ("z", "\"dz\"")]));
    queue.step(Step::by("w").named("bob").at(1005).want(2));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

/// x completed with a result that lies apart, y with one that does not.
fn ended() -> TestQueue {
    let mut queue = taken();
    queue.step(
        Step::by("w")
            .at(1010)
            .done_large(&of("x"), "\"rx\"")
            .done_record("y", "1"),
    );
    queue
}

#[test]
fn numbered_jobs_are_added_with_their_data() {
    let mut queue = TestQueue::with(
        Plan::new()
            .frame(2)
            .large(&[("", "\"three\""), ("", "\"four\"")])
            .frame(1),
    );
    queue.keys_are(
        "jobs: 3=[7 {} a ''] 4=[7 {} a '']
         large: d3=\"three\" d4=\"four\"
         log: 1-2 4-r1(3) 4-r2(4) 5-1
         state: id=5 waiting=5 references=2
         vitals: 3={ld:7} 4={ld:6}
         wake: set",
    );
}

#[test]
fn a_job_that_exists_keeps_its_data() {
    let mut queue = TestQueue::with(Plan::new().large(&[("x", "1"), ("x", "22")]));
    queue.add(1001, Plan::new().large(&[("x", "333"), ("y", "4444")]));
    queue.key_is("large", "dx=1 dy=4444");
}

#[test]
fn a_worker_is_told_how_large_the_data_are() {
    let mut queue = TestQueue::with(Plan::new().large(&[("x", "1"), ("y", "22")]));
    assert_eq!(
        queue.step(Step::by("w").want(2)),
        "[[] [0 x <[7 {} a '']> <{ld:1}> 1 0 y <[7 {} a '']> <{ld:2}> 1] -1 0 0]"
    );
}

#[test]
fn what_is_taken_beyond_the_jobs_that_start_counts_their_data() {
    let data = "x".repeat(100);
    let mut queue = TestQueue::with(Plan::new().large(&[("x", "1"), ("y", &data), ("z", "1")]));
    queue.step(Step::by("w").want(1).surplus(5).max_bytes(100));
    assert_eq!(run!(queue, COUNT_JOBS), "[1 2 0 0 0 0 0]");
}

#[test]
fn a_result_lies_apart_and_is_told() {
    let mut queue = ended();
    queue.key_is("large", "dx=\"dx\" dy=\"dy\" dz=\"dz\" rx=\"rx\"");
    queue.key_is(
        "vitals",
        "x={am:1 as:1 fo:1010 ld:4 lr:4 pb:bob po:1005} y={am:1 as:1 fo:1010 ld:4 pb:bob po:1005 rv:1} z={ld:4}",
    );
    let told: Vec<Vec<String>> = queue
        .told()
        .into_iter()
        .map(|event| event.fields.into_iter().map(|(_, value)| value).collect())
        .collect();
    assert_eq!(told, [["x", "\"rx\"", "active"], ["y", "1", "active"]]);
    assert_eq!(run!(queue, JOB_STATE, "x"), "[completed '' 1]");
    assert_eq!(run!(queue, JOB_STATE, "y"), "[completed 1]");
}

#[test]
fn a_job_of_a_frame_is_given_a_record_for_it() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").named("bob").at(1005).want(3));
    queue.command("DEL", "wake", &[]);
    queue.step(
        Step::by("w")
            .at(1010)
            .done(1, 3, 0, 1)
            .done_large(&at(1, 3, 1), "\"r2\"")
            .done(1, 3, 2, 1),
    );
    queue.keys_are(
        "completed: 1@1010 2@1010 3@1010
         frames: 1=2
         jobs: 2=[7 {} a 2]
         large: r2=\"r2\"
         lease:w: set
         log: 1-3
         runs: 1=[1 1 3 1005 bob ''] 3=[1 1 3 1005 bob '']
         state: cursor=1-3 id=3 completed=3
         vitals: 2={am:1 as:1 fo:1010 lr:4 pb:bob po:1005}",
    );
}

/// A frame of three is active, and what the test does with its second job brings the job's data apart.
fn taken_frame() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").named("bob").at(1005).want(3));
    queue.command("DEL", "wake", &[]);
    queue
}

#[test]
fn long_data_of_a_failed_job_of_a_frame_go_apart() {
    let fails: [(&str, Fail, &str); 3] = [
        (
            "waiting",
            Fail::to("waiting"),
            "2={am:1 as:1 fr:boom ld:1 pb:bob po:1005}",
        ),
        (
            "delayed",
            Fail {
                due_ms: 2000,
                ..Fail::to("delayed")
            },
            "2={am:1 as:1 d:990 fr:boom ld:1 pb:bob po:1005}",
        ),
        (
            "failed",
            Fail::to("failed"),
            "2={am:1 as:1 fo:1010 fr:boom ld:1 pb:bob po:1005}",
        ),
    ];
    for (state, fail, fields) in fails {
        let mut queue = taken_frame();
        queue.step(Step::by("w").at(1010).data_apart().fail(&at(1, 3, 1), &fail));
        queue.key_is("jobs", "2=[7 {} a '']");
        queue.key_is("large", "d2=2");
        queue.key_is("vitals", fields);
        assert!(run!(queue, JOB_STATE, "2").starts_with(&format!("[{state}")));
    }
}

#[test]
fn jobs_of_a_frame_that_fail_alike_have_data_of_their_own_length() {
    let mut queue = TestQueue::with(Plan::new().frame(12));
    queue.step(Step::by("w").at(1005).want(12));
    let fail = Fail::to("failed");
    let step = Step::by("w").at(1010).data_apart();
    queue.step(step.fail(&at(1, 12, 8), &fail).fail(&at(1, 12, 9), &fail));
    queue.key_is("large", "d10=10 d9=9");
    queue.key_is(
        "vitals",
        "9={am:1 as:1 fo:1010 fr:boom ld:1 po:1005} 10={am:1 as:1 fo:1010 fr:boom ld:2 po:1005}",
    );
}

#[test]
fn long_data_of_a_job_of_a_frame_go_apart_whatever_becomes_of_it() {
    let second = || at(1, 3, 1);
    type End = fn(Step, &Place) -> Step;
    let ends: [(End, &str, &str); 3] = [
        (
            |step, place| step.done_large(place, "\"r2\""),
            "d2=2 r2=\"r2\"",
            "2={am:1 as:1 fo:1010 ld:1 lr:4 pb:bob po:1005}",
        ),
        (|step, place| step.back(place, false), "d2=2", "2={as:0 ld:1}"),
        (|step, place| step.let_go(place), "d2=2", "2={ld:1}"),
    ];
    for (end, large, fields) in ends {
        let mut queue = taken_frame();
        queue.step(end(Step::by("w").at(1010).data_apart(), &second()));
        queue.key_is("jobs", "2=[7 {} a '']");
        queue.key_is("large", large);
        queue.key_is("vitals", fields);
    }
}

#[test]
fn refused_data_of_a_frame_are_not_stored_and_those_of_a_dropped_job_go() {
    let mut queue = taken_frame();
    queue.step(Step::by("v").data_apart().fail(&at(1, 3, 1), &Fail::to("failed")));
    queue.key_is("large", "(none)");
    queue.key_is("jobs", "(none)");
    let drops = Step::by("w").keep(0, -1.0, 1000).data_apart();
    queue.step(drops.fail(&at(1, 3, 1), &Fail::to("failed")));
    queue.key_is("large", "(none)");
    queue.key_is("jobs", "(none)");
}

#[test]
fn a_job_may_go_apart_without_a_result() {
    let mut queue = taken();
    queue.step(Step::by("w").at(1010).done_large(&of("x"), ""));
    queue.key_is("large", "dx=\"dx\" dy=\"dy\" dz=\"dz\"");
    queue.key_is("completed", "x@1010");
    assert_eq!(run!(queue, JOB_STATE, "x"), "[completed null]");
    let told: Vec<_> = queue
        .told()
        .remove(0)
        .fields
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    assert_eq!(told, ["x", "null", "active"]);
}

#[test]
fn parents_are_told_null_of_a_child_without_a_result() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &Tree::new().root("r").child("r", "a"));
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").at(1010).done_large(&of("a"), ""));
    queue.key_is("processed:r", "q:a=null");
}

#[test]
fn a_result_of_a_job_that_is_not_held_is_refused() {
    let mut queue = taken();
    let refused = Step::by("v")
        .done_large(&of("x"), "1")
        .done_large(&of("z"), "2")
        .done_large(&of("q"), "3");
    assert_eq!(queue.step(refused), "[[[0 x -6 0] [0 z -2 0] [0 q -1 0]] [] -1 0 1]");
    queue.key_is("large", "dx=\"dx\" dy=\"dy\" dz=\"dz\"");
    queue.events_are("");
}

#[test]
fn what_is_not_kept_leaves_nothing() {
    let mut queue = taken();
    queue.step(
        Step::by("w")
            .keep(0, -1.0, 1000)
            .done_large(&of("x"), "\"rx\"")
            .done_record("y", "1"),
    );
    queue.key_is("large", "dz=\"dz\"");
    assert_eq!(queue.told().len(), 2);
}

#[test]
fn retention_takes_it_along() {
    let mut queue = ended();
    queue.step(Step::by("w").at(1020).want(1));
    queue.step(Step::by("w").at(1021).keep(1, -1.0, 1000).done_record("z", ""));
    queue.key_is("large", "dz=\"dz\"");
}

#[test]
fn a_removed_job_takes_it_along() {
    let mut queue = ended();
    run_once!(queue, REMOVE_JOB, 1020, "x", 0);
    run_once!(queue, REMOVE_JOB, 1020, "z", 0);
    queue.key_is("large", "dy=\"dy\"");
}

#[test]
fn a_job_that_runs_again_has_no_result_any_more() {
    let mut queue = ended();
    assert_eq!(run_once!(queue, RETRY_JOB, 1020, "x", "completed", 0, 0, 0), "0");
    queue.key_is("large", "dx=\"dx\" dy=\"dy\" dz=\"dz\"");
}

#[test]
fn a_failed_try_and_a_lost_worker_leave_the_data() {
    let mut queue = taken();
    queue.step(Step::by("w").at(1010).fail(&of("x"), &Fail::to("waiting")));
    queue.end_lease("w");
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[y]");
    assert_eq!(
        run!(queue, READ_JOBS, by_ids(&["x", "y"])),
        "[x waiting <[7 {} a '']> <{am:1 as:1 fr:boom ld:4 pb:bob po:1005}> [\"trace\"] \
          y waiting <[7 {} a '']> <{as:1 ld:4 pb:bob po:1005 st:1}> '']"
    );
}

#[test]
fn data_come_to_lie_apart_and_stay_there() {
    let mut queue = TestQueue::with(Plan::new().frame(1).record("x"));
    for id in ["1", "x"] {
        assert_eq!(run_once!(queue, UPDATE_JOB, 1001, id, "large", "12345"), "0");
        queue.key_is("large", &format!("d{id}=12345"));
        assert_eq!(run_once!(queue, UPDATE_JOB, 1002, id, "data", "1"), "0");
        queue.key_is("large", &format!("d{id}=1"));
        run_once!(queue, REMOVE_JOB, 1003, id, 0);
    }
}

#[test]
fn nothing_is_left_of_an_obliterated_queue() {
    let mut queue = ended();
    run_once!(queue, PAUSE, 1020, 1);
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::OBLITERATE, Some(1020));
    call.arg(1000).arg(1).arg("0");
    queue.carry_out_unchecked(&call);
    queue.keys_are("lease:w: set");
}
