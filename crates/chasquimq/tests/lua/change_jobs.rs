//! Removes, retries and promotes the jobs of a state that a filter picks.

use chasquimq::redis::call::library::{CHANGE_JOBS, FIND_JOBS};

use super::{
    find_jobs::{by_name, by_text, find, STATES},
    model::bulk::by_age,
    read_jobs::{full, fuller},
};
use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{finished, Step},
    tree::Tree,
};

/// Moves jobs of a state to another queue; gives the ids that they had.
fn move_to(queue: &mut TestQueue, other: &TestQueue, state: &str, filter: &[u8]) -> String {
    let number = queue.next_ticket();
    let mut call = queue.call(&CHANGE_JOBS);
    call.arg(1020).arg("c").arg("b").arg(number).arg("move").arg(state);
    call.arg(filter).arg("").arg(1000).arg(0).arg(&other.probe.keys.base);
    let reply = queue.carry_out_value(&call);
    assert_eq!(queue.carry_out_value(&call), reply);
    let (_, _, _, moved): (String, u64, u64, Vec<String>) = redis::from_redis_value(reply).expect("a step");
    moved.join(" ")
}

/// Takes steps until none is left; gives the ids of those that were changed.
pub fn change(queue: &mut TestQueue, action: &str, state: &str, filter: &[u8], room: u64) -> String {
    let (mut ids, mut place) = (Vec::new(), String::new());
    loop {
        let number = queue.next_ticket();
        let mut call = queue.call(&CHANGE_JOBS);
        call.arg(1020).arg("c").arg("b").arg(number).arg(action).arg(state);
        call.arg(filter).arg(&place).arg(room).arg(0).arg("");
        let reply = queue.carry_out_value(&call);
        // again: the same answer, and nothing changes
        assert_eq!(queue.carry_out_value(&call), reply);
        let (next, _, _, changed): (String, u64, u64, Vec<String>) = redis::from_redis_value(reply).expect("a step");
        ids.extend(changed);
        place = next;
        if place.is_empty() {
            return ids.join(" ");
        }
    }
}

fn remove(queue: &mut TestQueue, state: &str, filter: &[u8], room: u64) -> String {
    change(queue, "remove", state, filter, room)
}

#[test]
fn nothing_is_there() {
    let mut queue = TestQueue::fresh();
    for state in STATES {
        assert_eq!(remove(&mut queue, state, &by_age(-1), 100), "");
    }
    assert_eq!(change(&mut queue, "retry", "failed", &by_age(-1), 100), "");
    assert_eq!(change(&mut queue, "promote", "delayed", &by_age(-1), 100), "");
    queue.events_are("");
}

#[test]
fn jobs_of_every_state_go_whatever_a_step_removes() {
    for room in [1, 2, 1000] {
        let mut queue = fuller();
        queue.end_lease("w");
        for (state, expected) in [
            ("waiting", "z 7 8 9 g h"),
            ("active", "3 x"),
            ("delayed", "e d"),
            ("prioritized", "p"),
            ("completed", "1 2 y"),
            ("failed", "f 4"),
        ] {
            assert_eq!(
                remove(&mut queue, state, &by_age(-1), room),
                expected,
                "{state} by {room}"
            );
            assert_eq!(find(&mut queue, state, &by_age(-1), 10).0.len(), 0);
        }
        for key in [
            "jobs", "vitals", "traces", "log", "front", "runs", "frames", "takes", "active", "grouped",
        ] {
            queue.key_is(key, "(none)");
        }
    }
}

#[test]
fn only_those_go_that_are_picked() {
    let mut queue = TestQueue::with(Plan::new().named_frame(&["a", "b", "a", "b"]).record("x").front("y"));
    queue.skip_events();
    assert_eq!(remove(&mut queue, "waiting", &by_name("b"), 100), "2 4");
    queue.key_is("holes", "1=1010");
    queue.events_are("[E cleaned count 2]");
    assert_eq!(remove(&mut queue, "waiting", &by_name("a"), 2), "y 1 3 x");
    queue.key_is("log", "5-r1(x)");
    queue.key_is("state", "id=6 references=1 gone=1");
}

#[test]
fn the_next_frame_is_met_from_its_head_when_the_one_before_is_gone() {
    for room in 1..=4 {
        let mut queue = TestQueue::with(
            Plan::new()
                .named_frame(&["a", "b", "a", "b"])
                .named_frame(&["a", "b", "a", "b"]),
        );
        assert_eq!(remove(&mut queue, "waiting", &by_name("b"), room), "2 4 6 8");
        assert_eq!(remove(&mut queue, "waiting", &by_name("a"), room), "1 3 5 7");
        queue.key_is("log", "(none)");
    }
}

#[test]
fn a_job_that_came_again_under_its_id_goes_and_the_next_one_waits() {
    for room in [1, 100] {
        let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
        for now_ms in [1001, 1002, 1003] {
            run_once!(queue, REMOVE_JOB, now_ms, "x", 0);
            queue.add(now_ms, Plan::new().record("x"));
        }
        assert_eq!(find(&mut queue, "waiting", &by_name("a"), room).0, ["y", "x"]);
        assert_eq!(remove(&mut queue, "waiting", &by_age(-1), room), "y x");
        queue.key_is("jobs", "(none)");
        queue.add(1004, Plan::new().record("x"));
        assert_eq!(find(&mut queue, "waiting", &by_age(-1), room).0, ["x"]);
        queue.step(Step::by("w").want(9));
        assert_eq!(find(&mut queue, "active", &by_age(-1), room).0, ["x"]);
        queue.key_is("gone", "(none)");
    }
}

#[test]
fn many_stale_references_leave_the_place_short() {
    let mut plan = Plan::new();
    for i in 0..3000 {
        plan = plan.record(&format!("x{i}"));
    }
    let mut queue = TestQueue::with(plan.record("y"));
    let all = by_text("data", "1");
    assert_eq!(remove(&mut queue, "waiting", &all, 3000).split(' ').count(), 3001);
    queue.add(1001, Plan::new().record("x7").record("z"));
    let mut call = queue.call(&FIND_JOBS);
    call.arg("waiting").arg(by_age(-1)).arg("").arg(1).arg(0);
    let (place, ..): (String, u64, u64, redis::Value) =
        redis::from_redis_value(queue.carry_out_value(&call)).expect("a step");
    assert!(place.len() < 200, "{place}");
    assert_eq!(find(&mut queue, "waiting", &by_age(-1), 1).0, ["x7", "z"]);
}

#[test]
fn some_of_the_jobs_of_a_run_go() {
    let mut queue = finished();
    let reason = by_text("data", "2");
    assert_eq!(remove(&mut queue, "completed", &reason, 100), "2");
    queue.key_is("completed", "1@1010 3@1010");
    queue.key_is("runs", "1=[1 1 4 1000 bob <[10]>] 3=[1 1 4 1000 bob <[30]>]");
    assert_eq!(remove(&mut queue, "completed", &by_age(1009), 100), "");
    assert_eq!(remove(&mut queue, "completed", &by_age(1010), 100), "1 3");
    queue.key_is("state", "cursor=5-r1 id=5 references=1");
}

#[test]
fn an_active_job_stays_while_somebody_holds_it() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x"));
    queue.step(Step::by("w").want(3));
    assert_eq!(
        run!(
            queue,
            CHANGE_JOBS,
            1020,
            "d",
            "b",
            1,
            "remove",
            "active",
            by_age(-1),
            "",
            100,
            0
        ),
        "['' 3 3 []]"
    );
    queue.end_lease("w");
    assert_eq!(remove(&mut queue, "active", &by_name("a"), 100), "1 2 x");
    queue.key_is("state", "cursor=3-r1 id=3 references=1");
}

#[test]
fn a_parent_starts_whose_children_go() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &Tree::new().root("p").child("p", "c").child("p", "d"));
    assert_eq!(find(&mut queue, "waiting-children", &by_age(-1), 10).0, ["p"]);
    assert_eq!(remove(&mut queue, "waiting", &by_age(-1), 100), "c d");
    assert_eq!(find(&mut queue, "waiting", &by_age(-1), 10).0, ["p"]);
}

#[test]
fn failed_and_completed_jobs_wait_again_in_the_order_in_which_they_ended() {
    let mut queue = finished();
    assert_eq!(change(&mut queue, "retry", "failed", &by_age(1010), 100), "4 x");
    queue.key_is("log", "1-4 5-r2(4 x)");
    queue.key_is("failed", "(none)");
    queue.key_is("vitals", "4={am:2 as:1 pb:bob tr:''} x={am:2 as:1 pb:bob tr:''}");
    queue.key_is("wake", "set");
    queue.events_are("[X waiting [4 x] prev failed]");
    assert_eq!(
        change(&mut queue, "retry", "completed", &by_text("data", "2"), 100),
        "2"
    );
    assert_eq!(change(&mut queue, "retry", "completed", &by_age(1010), 100), "1 3");
    queue.key_is("log", "5-r2(4 x) 5-r3(2) 5-r4(1 3)");
    queue.key_is("runs", "(none)");
    queue.key_is("state", "cursor=5-r1 id=5 waiting=5 references=4");
}

#[test]
fn retried_jobs_may_begin_from_0() {
    let mut queue = finished();
    run!(
        queue,
        CHANGE_JOBS,
        1020,
        "c",
        "b",
        1,
        "retry",
        "failed",
        by_age(-1),
        "",
        1,
        1
    );
    queue.key_is(
        "vitals",
        "4={pb:bob tr:''} x={am:2 as:1 fo:1010 fr:boom pb:bob po:1000}",
    );
}

#[test]
fn delayed_jobs_wait_with_their_priority() {
    let mut queue = TestQueue::with(
        Plan::new()
            .delayed("x", 9000)
            .delayed_prioritized("p", 9500, 4)
            .delayed("y", 8000),
    );
    queue.skip_events();
    assert_eq!(change(&mut queue, "promote", "delayed", &by_age(-1), 1), "y x p");
    queue.key_is("delayed", "(none)");
    queue.events_are("[X waiting [y] prev delayed] | [X waiting [x] prev delayed] | [X waiting [p] prev delayed]");
    assert_eq!(find(&mut queue, "waiting", &by_age(-1), 10).0, ["y", "x"]);
    assert_eq!(find(&mut queue, "prioritized", &by_age(-1), 10).0, ["p"]);
}

#[test]
fn jobs_of_most_states_are_moved_to_another_queue_where_they_are_new() {
    let mut queue = full();
    queue.add(1011, Plan::new().prioritized("p", 3).grouped("g", "a", 2));
    let mut other = TestQueue::with(Plan::new().frame(2).record("g"));
    other.skip_events();
    queue.skip_events();
    for (state, expected) in [
        ("waiting", "z 7 8 9"),
        ("prioritized", "p"),
        ("delayed", "e d"),
        ("failed", "f 4"),
        ("completed", "1 2 y"),
    ] {
        assert_eq!(move_to(&mut queue, &other, state, &by_age(-1)), expected);
    }
    // it is there already
    assert_eq!(find(&mut queue, "waiting", &by_age(-1), 10).0, ["g"]);
    let mut there = |state: &str| find(&mut other, state, &by_age(-1), 100).0.join(" ");
    let (waiting, prioritized, delayed) = (there("waiting"), there("prioritized"), there("delayed"));
    assert_eq!((prioritized.as_str(), delayed.as_str()), ("p", "e d"));
    assert_eq!(waiting, "1 2 g z 4 5 6 f 7 8 9 y");
    other.key_is("delayed", "e@4000+0 d@5000+0");
    other.key_is("vitals", "(none)");
    other.key_is("traces", "(none)");
    queue.key_is("jobs", "g=[7 {} a 1 2 a] x=[7 {} a 1]");
}

#[test]
fn data_group_and_priority_come_along() {
    let mut queue = TestQueue::with(
        Plan::new()
            .large(&[("big", "needle")])
            .grouped("g", "a", 2)
            .delayed_prioritized("p", 9000, 4),
    );
    let mut other = TestQueue::fresh();
    assert_eq!(move_to(&mut queue, &other, "waiting", &by_age(-1)), "big g");
    assert_eq!(move_to(&mut queue, &other, "delayed", &by_age(-1)), "p");
    assert_eq!(find(&mut other, "waiting", &by_text("group", "a"), 10).0, ["g"]);
    assert_eq!(find(&mut other, "waiting", &by_text("data", "needle"), 10).0, ["big"]);
    assert_eq!(change(&mut other, "promote", "delayed", &by_age(-1), 10), "p");
    assert_eq!(find(&mut other, "prioritized", &by_age(-1), 10).0, ["p"]);
    for key in ["jobs", "vitals", "large", "grouped", "delayed"] {
        queue.key_is(key, "(none)");
    }
}

#[test]
fn what_belongs_to_other_jobs_is_not_moved() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &Tree::new().root("p").child("p", "c"));
    let other = TestQueue::fresh();
    assert_eq!(move_to(&mut queue, &other, "waiting", &by_age(-1)), "");
    assert_eq!(find(&mut queue, "waiting", &by_age(-1), 10).0, ["c"]);
}

#[test]
fn a_step_changes_no_more_than_some() {
    let mut plan = Plan::new();
    for _ in 0..20 {
        plan = plan.frame(64);
    }
    let mut queue = TestQueue::with(plan);
    let reply = run!(
        queue,
        CHANGE_JOBS,
        1020,
        "c",
        "b",
        1,
        "remove",
        "waiting",
        by_age(-1),
        "",
        5000,
        0
    );
    assert!(reply.contains(" 250 250 [1 2 3 "), "{reply}");
    queue.key_is("holes", &format!("193={}{}", "0".repeat(58), "1".repeat(6)));
}
