//! active -> completed: jobs of a frame are kept as runs, records one by one.

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    step::Step,
};

fn taken(plan: Plan, jobs: i64) -> TestQueue {
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").named("bob").at(1005).want(jobs));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn a_frame_that_completes_whole_is_kept_whole() {
    let mut queue = taken(Plan::new().frame(3), 3);
    let reply = queue.step(Step::by("w").at(1010).done_with(1, 3, 0, &["\"x\"", "", "2"]).want(1));
    assert_eq!(reply, "[[] [] -1 0 0]");
    queue.keys_are(
        "completed: 1@1010
         lease:w: set
         log: 1-3
         runs: 1=[3 1 3 1005 bob <[\"x\" '' 2]>]
         state: cursor=1-3 id=3 completed=3",
    );
    queue.events_are("[C 1 3 <[\"x\" '' 2]>] [E drained]");
}

#[test]
fn undefined_results_take_no_room() {
    let mut queue = taken(Plan::new().frame(2), 2);
    queue.step(Step::by("w").done(1, 2, 0, 2));
    queue.key_is("runs", "1=[2 1 2 1005 bob '']");
    queue.events_are("[C 1 2 ''] [E drained]");
}

#[test]
fn jobs_of_a_frame_complete_in_any_order() {
    let mut queue = taken(Plan::new().frame(5), 5);
    queue.step(Step::by("w").at(1010).done(1, 5, 1, 2));
    queue.keys_are(
        "completed: 2@1010
         lease:w: set
         log: 1-5
         runs: 2=[2 1 5 1005 bob '']
         state: cursor=1-5 id=5 active=3 completed=2
         takes: 1=[1005 1kk11 w bob]",
    );
    queue.step(Step::by("w").at(1011).done(1, 5, 4, 1).done(1, 5, 0, 1));
    queue.key_is("takes", "1=[1005 kkk1k w bob]");
    queue.step(Step::by("w").at(1012).done(1, 5, 3, 1));
    queue.keys_are(
        "completed: 2@1010 5@1011 1@1011.0009765625 4@1012
         lease:w: set
         log: 1-5
         runs: 1=[1 1 5 1005 bob ''] 2=[2 1 5 1005 bob ''] 4=[1 1 5 1005 bob ''] 5=[1 1 5 1005 bob '']
         state: cursor=1-5 id=5 completed=5",
    );
}

#[test]
fn a_frame_of_which_nothing_is_kept_is_deleted() {
    let mut queue = taken(Plan::new().frame(2), 2);
    queue.step(Step::by("w").keep(0, -1.0, 1000).done_with(1, 2, 0, &["1", "2"]));
    queue.keys_are(
        "lease:w: set
         state: cursor=1-2 id=2",
    );
    queue.events_are("[C 1 2 <[1 2]>] [E drained]");
}

#[test]
fn a_frame_of_which_some_jobs_are_kept_counts_them() {
    let mut queue = taken(Plan::new().frame(3), 3);
    queue.step(Step::by("w").keep(0, -1.0, 1000).done(1, 3, 1, 1));
    queue.key_is("takes", "1=[1005 101 w bob]");
    queue.step(Step::by("w").done(1, 3, 0, 1).done(1, 3, 2, 1));
    queue.keys_are(
        "completed: 1@1000 3@1000
         frames: 1=2
         lease:w: set
         log: 1-3
         runs: 1=[1 1 3 1005 bob ''] 3=[1 1 3 1005 bob '']
         state: cursor=1-3 id=3 completed=2",
    );
}

#[test]
fn a_record_that_completes_is_kept_with_what_happened() {
    let mut queue = taken(Plan::new().record("x").record("y"), 2);
    queue.step(Step::by("w").at(1010).done_record("x", "\"ok\"").done_record("y", ""));
    queue.keys_are(
        "completed: x@1010 y@1010
         jobs: x=[7 {} a 1] y=[7 {} a 1]
         lease:w: set
         state: cursor=2-r1 id=2 completed=2 references=1
         vitals: x={am:1 as:1 fo:1010 pb:bob po:1005 rv:\"ok\"} y={am:1 as:1 fo:1010 pb:bob po:1005}",
    );
    queue.events_are(
        "[X completed [x] returnvalue [\"ok\"] prev active] [X completed [y] returnvalue null prev active] [E drained]",
    );
}

#[test]
fn records_that_complete_together_are_kept_with_what_happened() {
    let mut queue = taken(Plan::new().record("x").record("y").record("z"), 3);
    let reply = queue.step(
        Step::by("w")
            .at(1010)
            .done_records(&[("x", "\"ok\""), ("z", ""), ("y", "1")]),
    );
    assert_eq!(reply, "[[] [] -1 0 0]");
    queue.keys_are(
        "completed: x@1010 z@1010 y@1010.0009765625
         jobs: x=[7 {} a 1] y=[7 {} a 1] z=[7 {} a 1]
         lease:w: set
         state: cursor=3-r1 id=3 completed=3 references=1
         vitals: x={am:1 as:1 fo:1010 pb:bob po:1005 rv:\"ok\"} y={am:1 as:1 fo:1010 pb:bob po:1005 rv:1} \
         z={am:1 as:1 fo:1010 pb:bob po:1005}",
    );
    queue.events_are("[X completed [x z y] returnvalue [\"ok\" null 1] prev active] [E drained]");
}

#[test]
fn a_record_that_is_said_to_complete_twice_completes_once() {
    let mut queue = taken(Plan::new().record("x").record("y"), 2);
    let reply = queue.step(
        Step::by("w")
            .at(1010)
            .done_records(&[("x", "1"), ("x", "2"), ("y", "3")]),
    );
    assert_eq!(reply, "[[[0 x -2 0]] [] -1 0 0]");
    queue.key_is("state", "cursor=2-r1 id=2 completed=2 references=1");
    queue.events_are("[X completed [x y] returnvalue [1 3] prev active] [E drained]");
}

#[test]
fn records_of_another_worker_do_not_complete() {
    let mut queue = taken(Plan::new().record("x").record("y"), 2);
    let reply = queue.step(Step::by("v").at(1010).done_records(&[("x", ""), ("y", "")]));
    assert_eq!(reply, "[[[0 x -6 0] [0 y -6 0]] [] -1 0 0]");
    queue.key_is("state", "cursor=2-r1 id=2 active=2 references=1");
    queue.key_is("completed", "(none)");
}

#[test]
fn records_that_complete_together_and_are_not_kept_are_gone() {
    let mut queue = taken(Plan::new().record("x").record("y"), 2);
    queue.step(Step::by("w").keep(0, -1.0, 1000).done_records(&[("x", ""), ("y", "")]));
    queue.keys_are(
        "lease:w: set
         state: cursor=2-r1 id=2 references=1",
    );
}

#[test]
fn a_record_that_is_not_kept_goes_with_its_log() {
    let mut queue = taken(Plan::new().record("x"), 1);
    run_once!(queue, LOG_JOB; "x", "row", 0);
    run_once!(queue, UPDATE_JOB, 1006, "x", "progress", "1");
    queue.step(Step::by("w").keep(0, -1.0, 1000).done_record("x", "1"));
    queue.keys_are(
        "lease:w: set
         state: cursor=1-r1 id=1 references=1",
    );
}

#[test]
fn a_job_amended_while_active_completes_as_a_record() {
    let mut queue = taken(Plan::new().frame(3), 3);
    run_once!(queue, UPDATE_JOB, 1006, "2", "progress", "50");
    queue.skip_events();
    assert_eq!(
        queue.step(Step::by("w").at(1010).done_with(1, 3, 0, &["1", "2", "3"])),
        "[[] [] -1 0 0]"
    );
    queue.keys_are(
        "completed: 1@1010 2@1010 3@1010
         frames: 1=2
         jobs: 2=[7 {} a 2]
         lease:w: set
         log: 1-3
         runs: 1=[1 1 3 1005 bob <[1]>] 3=[1 1 3 1005 bob <[3]>]
         state: cursor=1-3 id=3 completed=3
         vitals: 2={am:1 as:1 fo:1010 p:50 pb:bob po:1005 rv:2}",
    );
    queue.events_are("[C 1 1 <[1]>] [X completed [2] returnvalue [2] prev active] [C 3 1 <[3]>] [E drained]");
}

#[test]
fn jobs_of_a_frame_that_were_amended_or_ended_before_are_told_by_their_places() {
    let mut queue = taken(Plan::new().frame(6), 6);
    run_once!(queue, UPDATE_JOB, 1006, "2", "progress", "50");
    run_once!(queue, UPDATE_JOB, 1006, "3", "progress", "60");
    queue.step(Step::by("w").at(1007).done(1, 6, 4, 1));
    queue.skip_events();
    assert_eq!(
        queue.step(Step::by("w").at(1010).done_with(1, 6, 0, &["1", "", "3", "", "5", "6"])),
        "[[[1 4 -2 0]] [] -1 0 0]"
    );
    queue.keys_are(
        "completed: 5@1007 1@1010 2@1010 3@1010 4@1010 6@1010
         frames: 1=4
         jobs: 2=[7 {} a 2] 3=[7 {} a 3]
         lease:w: set
         log: 1-6
         runs: 1=[1 1 6 1005 bob <[1]>] 4=[1 1 6 1005 bob ''] 5=[1 1 6 1005 bob ''] 6=[1 1 6 1005 bob <[6]>]
         state: cursor=1-6 id=6 completed=6
         vitals: 2={am:1 as:1 fo:1010 p:50 pb:bob po:1005} 3={am:1 as:1 fo:1010 p:60 pb:bob po:1005 rv:3}",
    );
    queue.events_are(
        "[C 1 1 <[1]>] [X completed [2 3] returnvalue [null 3] prev active] [C 4 1 ''] [C 6 1 <[6]>] [E drained]",
    );
}

#[test]
fn a_frame_may_end_as_records_only() {
    let mut queue = taken(Plan::new().frame(1), 1);
    run_once!(queue, UPDATE_JOB, 1006, "1", "progress", "50");
    queue.key_is("log", "(none)");
    assert_eq!(queue.step(Step::by("w").at(1010).done(1, 1, 0, 1)), "[[] [] -1 0 0]");
    queue.key_is("completed", "1@1010");
}

#[test]
fn finishing_and_fetching_are_one_step() {
    let mut queue = taken(Plan::new().frame(1).frame(1), 1);
    let reply = queue.step(Step::by("w").at(1010).done(1, 1, 0, 1).want(1));
    assert_eq!(reply, "[[] [2 1 <7 {} a 1>] -1 0 0]");
    queue.key_is("state", "cursor=2-1 id=2 active=1 completed=1");
    queue.events_are("[C 1 1 ''] [a 2 1]");
}

#[test]
fn the_queue_is_drained_once_nothing_waits_and_nothing_is_active() {
    let mut queue = taken(Plan::new().frame(2).delayed("x", 5000), 2);
    queue.step(Step::by("w").done(1, 2, 0, 1).want(1));
    queue.events_are("[C 1 1 '']");
    // something is delayed
    queue.step(Step::by("w").done(1, 2, 1, 1).want(1));
    queue.events_are("[C 2 1 '']");
    queue.step(Step::by("w").at(5000).want(1));
    queue.skip_events();
    queue.step(Step::by("w").at(5001).done_record("x", "").want(1));
    queue.events_are("[X completed [x] returnvalue null prev active] [E drained]");
}
