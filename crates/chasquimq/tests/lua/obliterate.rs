//! A paused queue -> nothing.

use chasquimq::Deduplication;
use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    scheduler::Upsert,
    step::{at, Fail, Step},
    tree::Tree,
};

pub(crate) fn obliterate(queue: &mut TestQueue, count: u64, force: u64) -> Value {
    obliterate_from(queue, count, force, b"0")
}

fn obliterate_from(queue: &mut TestQueue, count: u64, force: u64, cursor: &[u8]) -> Value {
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::OBLITERATE, Some(1000));
    call.arg(count).arg(force).arg(cursor);
    queue.carry_out_unchecked(&call)
}

/// Jobs in every state, some with logs.
fn full() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(5).frame(3).record("x").front("z").delayed("d", 5000));
    queue.add(1000, Plan::new().deduplicated("u", 5000, &Deduplication::of("u")));
    queue.step(Step::by("w").want(6));
    queue.step(
        Step::by("w")
            .done_record("z", "")
            .done(1, 5, 0, 2)
            .fail(&at(1, 5, 4), &Fail::to("failed")),
    );
    for id in ["2", "3", "7", "x", "d"] {
        run_once!(queue, LOG_JOB; id, "row", 0);
    }
    run_once!(queue, REMOVE_JOB, 1001, "8", 0);
    queue.upsert(1001, &Upsert::of("s").next(5000));
    queue
}

#[test]
fn a_queue_that_is_not_paused_stays() {
    let mut queue = full();
    let keys = queue.show();
    assert_eq!(obliterate(&mut queue, 10, 1), Value::Int(-1));
    queue.keys_are(&keys);
}

#[test]
fn active_jobs_stay_unless_forced() {
    let mut queue = full();
    run_once!(queue, PAUSE, 1002, 1);
    let keys = queue.show();
    assert_eq!(obliterate(&mut queue, 10, 0), Value::Int(-2));
    queue.keys_are(&keys);
}

#[test]
fn everything_goes_in_steps() {
    let mut queue = full();
    run_once!(queue, PAUSE, 1002, 1);
    let mut steps = 0;
    while obliterate(&mut queue, 2, 1) != Value::Int(0) {
        steps += 1;
        assert!(steps < 100, "no end");
    }
    assert!(steps > 0);
    // leases and memories end by themselves, and workers still use them
    assert_eq!(
        queue.probe.suffixes(),
        [
            "lease:w",
            "memo:c:0",
            "memo:last-event",
            "memo:t:t",
            "memo:u:1",
            "memo:w:s"
        ]
    );
}

#[test]
fn an_obliterated_queue_starts_again() {
    let mut queue = full();
    run_once!(queue, PAUSE, 1002, 1);
    while obliterate(&mut queue, 1000, 1) != Value::Int(0) {}
    assert_eq!(queue.add(1003, Plan::new().frame(1)), "[1 []]");
    assert_eq!(queue.step(Step::by("v").want(1)), "[[] [1 1 <7 {} a 1>] -1 0 0]");
}

#[test]
fn events_go_on_behind_the_last_one_of_before() {
    let mut queue = full();
    run_once!(queue, PAUSE, 1002, 1);
    queue.skip_events();
    while obliterate(&mut queue, 1000, 1) != Value::Int(0) {}
    assert_ne!(queue.command("PTTL", "memo:last-event", &[]), Value::Int(-1));
    // in the same millisecond, and by a clock that is slow
    queue.add(1002, Plan::new().frame(1));
    queue.events_are("[A 1 1 a]");
    queue.add(700, Plan::new().frame(1));
    queue.events_are("[A 2 1 a]");
}

#[test]
fn a_queue_without_records_goes_at_once() {
    let mut queue = TestQueue::with(Plan::new().frame(5));
    run_once!(queue, PAUSE, 1002, 1);
    assert_eq!(obliterate(&mut queue, 1, 0), Value::Int(0));
    assert_eq!(queue.probe.suffixes(), ["memo:c:0", "memo:last-event", "memo:t:t"]);
}

#[test]
fn parents_elsewhere_start_untold_and_those_of_this_queue_go() {
    let (mut queue, mut other) = (TestQueue::fresh(), TestQueue::fresh());
    let tree = Tree::new()
        .root("x")
        .to(&other.probe.keys)
        .child("x", "r")
        .to(&queue.probe.keys)
        .child("x", "")
        .to(&queue.probe.keys)
        .child("r", "a")
        .to(&queue.probe.keys)
        .root("y")
        .to(&queue.probe.keys)
        .child("y", "c")
        .to(&other.probe.keys);
    queue.add_flows(1000, &tree);
    other.skip_events();
    run_once!(queue, PAUSE, 1002, 1);
    let mut steps = 0;
    let mut cursor = b"0".to_vec();
    while let Value::BulkString(next) = obliterate_from(&mut queue, 1, 0, &cursor) {
        cursor = next;
        steps += 1;
        assert!(steps < 100, "no end");
    }
    assert_eq!(queue.probe.suffixes(), ["memo:f:0", "memo:last-event", "memo:t:t"]);
    other.key_is("front", "x");
    other.key_is(
        "vitals",
        &format!("c={{pa:[{} y '']}} x={{ch:1}}", queue.probe.keys.base),
    );
    other.events_are("");
}

#[test]
fn the_last_step_is_answered_as_before_when_it_is_sent_again() {
    let mut queue = TestQueue::with(Plan::new().frame(5));
    run_once!(queue, PAUSE, 1002, 1);
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::OBLITERATE, Some(1003));
    call.arg(10).arg(0).arg("0");
    assert_eq!(queue.carry_out_unchecked(&call), Value::Int(0));
    // by others, who use the queue again
    queue.add(1004, Plan::new().frame(1));
    run_once!(queue, PAUSE, 1005, 1);
    let keys = queue.show();
    assert_eq!(queue.carry_out_unchecked(&call), Value::Int(0));
    queue.keys_are(&keys);
}
