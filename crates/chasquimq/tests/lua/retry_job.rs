//! failed | completed -> waiting

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{finished, of, Fail, Step},
    tree::Tree,
};

#[test]
fn a_failed_job_waits_again() {
    let mut queue = finished();
    assert_eq!(run_once!(queue, RETRY_JOB, 1020, "4", "failed", 0, 0, 0), "0");
    queue.keys_are(
        "completed: 1@1010
         failed: x@1010
         frames: 1=3
         jobs: 4=[7 {} a 4] x=[7 {} a 1]
         lease:w: set
         log: 1-4 5-r2(4)
         runs: 1=[3 1 4 1000 bob <[10 20 30]>]
         state: cursor=5-r1 id=5 waiting=1 completed=3 references=2
         traces: 4=[\"trace\"] x=[\"trace\"]
         vitals: 4={am:2 as:1 pb:bob tr:''} x={am:2 as:1 fo:1010 fr:boom pb:bob po:1000}
         wake: set",
    );
    queue.events_are("[X waiting [4] prev failed]");
}

#[test]
fn a_job_may_start_from_nothing() {
    for (made, started, fields) in [
        (1, 0, "{as:1 pb:bob tr:''}"),
        (0, 1, "{am:2 pb:bob tr:''}"),
        (1, 1, "{pb:bob tr:''}"),
    ] {
        let mut queue = finished();
        run_once!(queue, RETRY_JOB, 1020, "x", "failed", 0, made, started);
        let others = "4={am:2 as:1 fo:1010 fr:boom pb:bob po:1000}";
        queue.key_is("vitals", &format!("{others} x={fields}"));
    }
}

#[test]
fn a_job_may_head_the_line() {
    let mut queue = finished();
    queue.add(1015, Plan::new().front("y"));
    run_once!(queue, RETRY_JOB, 1020, "x", "failed", 1, 0, 0);
    queue.key_is("front", "x y");
    queue.key_is("state", "cursor=5-r1 id=6 waiting=2 completed=3 references=1");
}

#[test]
fn a_completed_job_leaves_its_run_and_waits_again() {
    for (id, runs) in [
        ("1", "2=[2 1 4 1000 bob <[20 30]>]"),
        ("2", "1=[1 1 4 1000 bob <[10]>] 3=[1 1 4 1000 bob <[30]>]"),
        ("3", "1=[2 1 4 1000 bob <[10 20]>]"),
    ] {
        let mut queue = finished();
        assert_eq!(run_once!(queue, RETRY_JOB, 1020, id, "completed", 0, 0, 0), "0");
        queue.key_is("runs", runs);
        queue.key_is("frames", "1=2");
        queue.key_is("log", &format!("1-4 5-r2({id})"));
        queue.key_is("state", "cursor=5-r1 id=5 waiting=1 completed=2 references=2");
        queue.events_are(&format!("[X waiting [{id}] prev completed]"));
        let reply = queue.step(Step::by("w").at(1030).want(1));
        assert_eq!(
            reply,
            format!("[[] [0 {id} <[7 {{}} a {id}]> <{{am:1 as:1 pb:bob}}> 2] -1 0 0]")
        );
    }
}

#[test]
fn a_completed_record_waits_again() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").done_record("x", "1"));
    assert_eq!(run_once!(queue, RETRY_JOB, 1020, "x", "completed", 0, 1, 1), "0");
    queue.keys_are(
        "jobs: x=[7 {} a 1]
         lease:w: set
         log: 1-r2(x)
         state: cursor=1-r1 id=1 waiting=1 references=2
         wake: set",
    );
}

#[test]
fn a_job_that_fails_again_without_being_kept_is_gone() {
    let mut queue = finished();
    run_once!(queue, RETRY_JOB, 1020, "x", "failed", 0, 0, 0);
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").keep(0, -1.0, 1000).fail(&of("x"), &Fail::to("failed")));
    queue.key_is("jobs", "4=[7 {} a 4]");
    queue.key_is("failed", "4@1010");
    queue.key_is("traces", "4=[\"trace\"]");
}

#[test]
fn a_job_that_is_missing_is_not_tried_again() {
    let mut queue = finished();
    let keys = queue.show();
    assert_eq!(run_once!(queue, RETRY_JOB, 1020, "9", "failed", 0, 0, 0), "-1");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_job_in_another_state_is_not_tried_again() {
    let mut queue = finished();
    queue.add(1015, Plan::new().record("y").delayed("d", 5000));
    let keys = queue.show();
    queue.skip_events();
    for (id, state) in [("1", "failed"), ("x", "completed"), ("y", "failed"), ("d", "completed")] {
        assert_eq!(run_once!(queue, RETRY_JOB, 1020, id, state, 0, 0, 0), "-3", "{id}");
    }
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_child_is_waited_for_again() {
    for (options, kind) in [
        (r#"{"failParentOnFailure":true}"#, "faults:r"),
        (r#"{"ignoreDependencyOnFailure":true}"#, "ignored:r"),
    ] {
        let mut queue = TestQueue::fresh();
        queue.add_flows(1000, &Tree::new().root("r").child_with("r", "a", options));
        queue.step(Step::by("w").want(1));
        queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
        queue.key_is(kind, if kind == "faults:r" { "q:a" } else { "q:a=boom" });
        assert_eq!(run_once!(queue, RETRY_JOB, 1010, "a", "failed", 0, 0, 0), "0");
        queue.key_is(kind, "(none)");
        queue.key_is("children:r", "q:a");
        queue.key_is("front", "r");
    }
}

#[test]
fn a_child_that_completed_is_waited_for_again() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &Tree::new().root("r").child("r", "a"));
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").done_record("a", "7"));
    run_once!(queue, RETRY_JOB, 1010, "a", "completed", 0, 0, 0);
    queue.key_is("processed:r", "(none)");
    queue.key_is("children:r", "q:a");
}

#[test]
fn a_call_sent_again_is_answered_as_before() {
    let mut queue = finished();
    for (number, id, state) in [(1, "4", "failed"), (2, "1", "completed")] {
        let retry = |queue: &mut TestQueue| run!(queue, RETRY_JOB, 1020, "c", "b", number, id, state, 0, 0, 0);
        assert_eq!(retry(&mut queue), "0");
        let keys = queue.show();
        queue.skip_events();
        assert_eq!(retry(&mut queue), "0");
        queue.keys_are(&keys);
        queue.events_are("");
        run_once!(queue, REMOVE_JOB, 1021, id, 0);
        assert_eq!(retry(&mut queue), "0");
    }
}
