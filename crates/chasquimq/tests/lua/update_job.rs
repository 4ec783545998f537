//! Replaces a job's data or its progress, in any state.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

#[test]
fn a_record_gets_new_data() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.skip_events();
    assert_eq!(run_once!(queue, UPDATE_JOB, 1001, "x", "data", "{\"b\":2}"), "0");
    queue.keys_are(
        "jobs: x=[7 {} a {\"b\":2}]
         log: 1-r1(x)
         state: id=1 waiting=1 references=1
         wake: set",
    );
    queue.events_are("");
}

#[test]
fn progress_is_kept_and_told() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.skip_events();
    assert_eq!(run_once!(queue, UPDATE_JOB, 1001, "x", "progress", "42"), "0");
    queue.key_is("vitals", "x={p:42}");
    queue.events_are("[X progress [x] data 42]");
}

#[test]
fn a_waiting_job_of_a_frame_keeps_its_place() {
    let mut queue = TestQueue::with(Plan::new().named_frame(&["a", "b", "b"]).frame(1));
    run_once!(queue, UPDATE_JOB, 1001, "3", "data", "9");
    run_once!(queue, UPDATE_JOB, 1001, "3", "progress", "1");
    queue.keys_are(
        "holes: 1=11r
         jobs: 3=[7 {} b 9]
         log: 1-3 4-1
         state: id=4 waiting=4 holes=1
         vitals: 3={p:1}
         wake: set",
    );
    assert_eq!(
        queue.step(Step::by("w").want(4)),
        "[[] [0 1 <[7 {} a 1]> '' 1 0 2 <[7 {} b 2]> '' 1 0 3 <[7 {} b 9]> <{p:1}> 1 4 1 <7 {} a 1>] -1 0 0]"
    );
}

#[test]
fn an_active_job_of_a_frame_stays_with_its_worker() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").named("bob").want(3));
    run_once!(queue, UPDATE_JOB, 1001, "1", "progress", "1");
    queue.keys_are(
        "active: 1=[1000 1 w bob]
         jobs: 1=[7 {} a 1]
         lease:w: set
         log: 1-3
         state: cursor=1-3 id=3 active=3
         takes: 1=[1000 011 w bob]
         vitals: 1={as:1 p:1 pb:bob po:1000}
         wake: set",
    );
}

#[test]
fn a_completed_job_leaves_its_run_and_keeps_its_place() {
    for (id, runs) in [
        ("1", "2=[3 1 4 1000 bob <[20 30 '']>]"),
        ("2", "1=[1 1 4 1000 bob <[10]>] 3=[2 1 4 1000 bob <[30 '']>]"),
        ("4", "1=[3 1 4 1000 bob <[10 20 30]>]"),
    ] {
        let mut queue = TestQueue::with(Plan::new().frame(4));
        queue.step(Step::by("w").named("bob").want(4));
        queue.step(Step::by("w").at(1010).done_with(1, 4, 0, &["10", "20", "30", ""]));
        assert_eq!(run_once!(queue, UPDATE_JOB, 1020, id, "data", "9"), "0");
        queue.key_is("runs", runs);
        queue.key_is("jobs", &format!("{id}=[7 {{}} a 9]"));
        queue.key_is("frames", "1=3");
        queue.key_is("state", "cursor=1-4 id=4 completed=4");
        let result = format!("{id}0");
        let expected = if id == "4" { "null" } else { result.as_str() };
        assert_eq!(run!(queue, JOB_STATE, id), format!("[completed {expected}]"));
    }
}

#[test]
fn the_last_plain_job_of_a_completed_frame_takes_the_frame_along() {
    let mut queue = TestQueue::with(Plan::new().frame(2));
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").at(1010).done(1, 2, 0, 2));
    for id in ["2", "1"] {
        run_once!(queue, UPDATE_JOB, 1020, id, "progress", "1");
    }
    queue.keys_are(
        "completed: 1@1010 2@1010
         jobs: 1=[7 {} a 1] 2=[7 {} a 2]
         lease:w: set
         state: cursor=1-2 id=2 completed=2
         vitals: 1={am:1 as:1 fo:1010 p:1 po:1000} 2={am:1 as:1 fo:1010 p:1 po:1000}
         wake: set",
    );
}

#[test]
fn a_job_that_is_missing_is_not_amended() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    let keys = queue.show();
    queue.skip_events();
    for what in ["data", "progress"] {
        assert_eq!(run_once!(queue, UPDATE_JOB, 1001, "2", what, "1"), "-1");
    }
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_call_sent_again_changes_nothing_more() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.skip_events();
    let update = |queue: &mut TestQueue, number: u64, what: &str, value: &str| {
        run!(queue, UPDATE_JOB, 1001, "c", "b", number, "x", what, value)
    };
    for (number, what) in [(1, "progress"), (2, "data")] {
        assert_eq!(update(&mut queue, number, what, "5"), "0");
        // by somebody else, before the first call is sent again
        run_once!(queue, UPDATE_JOB, 1002, "x", what, "6");
        assert_eq!(update(&mut queue, number, what, "5"), "0");
    }
    queue.key_is("vitals", "x={p:6}");
    queue.key_is("jobs", "x=[7 {} a 6]");
    queue.events_are("[X progress [x] data 5] | [X progress [x] data 6]");
    run_once!(queue, REMOVE_JOB, 1003, "x", 0);
    assert_eq!(update(&mut queue, 2, "data", "5"), "0");
    assert_eq!(update(&mut queue, 3, "data", "5"), "-1");
}
