//! Jobs of groups: whose turn it is, and how many of a group may run.

use redis::Value;

use crate::{
    given::{
        plan::Plan,
        queue::{run_once, TestQueue},
        step::{of, Fail, Step},
    },
    probe::tree::Tree,
};

/// Ids of records that a step took, in order.
fn taken(queue: &mut TestQueue, step: Step) -> Vec<String> {
    let call = queue.step_call(&step);
    let reply = queue.carry_out_value(&call);
    let Value::Array(values) = &reply else {
        panic!("a reply: {reply:?}")
    };
    let Value::Array(taken) = &values[1] else {
        panic!("what was taken: {reply:?}")
    };
    let mut ids = Vec::new();
    for (at, value) in taken.iter().enumerate() {
        if let (Value::Int(..0), Value::BulkString(columns)) = (value, taken.get(at + 1).unwrap_or(&Value::Nil)) {
            ids.extend(Tree::one(columns).items()[0].items().iter().map(Tree::string));
        }
    }
    ids
}

fn want(jobs: i64) -> Step {
    Step::by("w").want(jobs)
}

/// Of groups a, b and c the jobs a1 to a3, b1 and b2, c1.
fn three() -> Plan {
    let plan = Plan::new()
        .grouped("b1", "b", 0)
        .grouped("a1", "a", 0)
        .grouped("a2", "a", 0);
    plan.grouped("a3", "a", 0).grouped("c1", "c", 0).grouped("b2", "b", 0)
}

fn members(queue: &mut TestQueue, set: &str) -> Vec<String> {
    redis::from_redis_value(queue.command("ZRANGE", set, &["0", "-1"])).expect("members")
}

#[test]
fn groups_have_turns_in_the_order_in_which_they_came() {
    let mut queue = TestQueue::with(three().record("x").prioritized("p", 3));
    assert_eq!(taken(&mut queue, want(2)), ["x", "p"]);
    assert_eq!(taken(&mut queue, want(4)), ["b1", "a1", "c1", "b2"]);
    // one that comes anew is behind those that wait for their turn
    queue.add(1000, Plan::new().grouped("d1", "d", 0).grouped("c2", "c", 0));
    assert_eq!(taken(&mut queue, want(3)), ["a2", "d1", "c2"]);
    assert_eq!(taken(&mut queue, want(9)), ["a3"]);
    queue.key_is("group-active", "set");
    queue.key_is("grouped", "(none)");
}

#[test]
fn those_without_a_priority_come_first_then_the_lower_numbers() {
    let plan = Plan::new().grouped("x", "a", 2).grouped("y", "a", 1);
    let mut queue = TestQueue::with(plan.grouped("z", "a", 0).grouped("u", "a", 1));
    assert_eq!(taken(&mut queue, want(9)), ["z", "y", "u", "x"]);
}

#[test]
fn a_group_of_weight_three_has_three_turns() {
    let mut plan = Plan::new();
    for i in 0..9 {
        plan = plan
            .grouped_within(&format!("a{i}"), 0, ("a", 0, 3.0), 0)
            .grouped(&format!("b{i}"), "b", 0);
    }
    let mut queue = TestQueue::with(plan);
    let first = taken(&mut queue, want(8));
    let of_a = first.iter().filter(|id| id.starts_with('a')).count();
    assert_eq!(of_a, 6, "{first:?}");
    run_once!(queue, SET_GROUP, 1000, "a", "weight", "", "");
    let then = taken(&mut queue, want(4));
    assert_eq!(then.iter().filter(|id| id.starts_with('a')).count(), 2, "{then:?}");
}

#[test]
fn what_is_tried_again_goes_to_the_end_of_its_group_and_what_comes_back_to_its_front() {
    let mut queue = TestQueue::with(three());
    assert_eq!(taken(&mut queue, want(2)), ["b1", "a1"]);
    queue.step(
        Step::by("w")
            .fail(&of("a1"), &Fail::to("waiting"))
            .back(&of("b1"), false),
    );
    assert_eq!(members(&mut queue, "group:a"), ["a2", "a3", "a1"]);
    assert_eq!(members(&mut queue, "group:b"), ["b1", "b2"]);
    queue.step(want(9).fail(&of("x"), &Fail::to("waiting")));
    queue.key_is("grouped", "(none)");
}

#[test]
fn no_more_of_a_group_run_than_its_concurrency() {
    let mut queue = TestQueue::with(three());
    let limited = |jobs| want(jobs).group_rules(1, 0, 0);
    assert_eq!(taken(&mut queue, limited(9)), ["b1", "a1", "c1"]);
    assert_eq!(members(&mut queue, "groups-maxed"), ["a", "b"]);
    assert_eq!(taken(&mut queue, limited(9)), [""; 0]);
    // the end of one of its jobs gives the group its turn
    assert_eq!(taken(&mut queue, limited(9).done_record("a1", "1")), ["a2"]);
    queue.step(Step::by("w").fail(&of("b1"), &Fail::to("failed")));
    assert_eq!(members(&mut queue, "groups"), ["b"]);
    assert_eq!(taken(&mut queue, limited(9)), ["b2"]);
    // what was set for the group comes before what the worker says
    run_once!(queue, SET_GROUP, 1000, "a", "concurrency", 2, "");
    assert_eq!(taken(&mut queue, limited(9)), ["a3"]);
}

#[test]
fn a_place_comes_back_whatever_becomes_of_its_job() {
    let ways: [fn(&mut TestQueue); 6] = [
        |queue| drop(queue.step(Step::by("w").fail(&of("a1"), &Fail::to("waiting")))),
        |queue| {
            let fail = Fail {
                due_ms: 5000,
                ..Fail::to("delayed")
            };
            queue.step(Step::by("w").fail(&of("a1"), &fail));
        },
        |queue| drop(queue.step(Step::by("w").back(&of("a1"), true))),
        |queue| {
            run_once!(queue, MOVE_ACTIVE, 1000, "a1", "0", 0);
        },
        |queue| {
            run_once!(queue, MOVE_ACTIVE, 1000, "a1", "0", 5000);
        },
        |queue| {
            queue.end_lease("w");
            queue.bring_back(1000, 1, "", &[], 1);
        },
    ];
    for way in ways {
        let mut queue = TestQueue::with(Plan::new().grouped("a1", "a", 0).grouped("a2", "a", 0));
        assert_eq!(taken(&mut queue, want(9).group_rules(1, 0, 0)), ["a1"]);
        way(&mut queue);
        queue.key_is("group-active", "(none)");
        assert_eq!(members(&mut queue, "groups"), ["a"]);
        assert_eq!(taken(&mut queue, Step::by("v").want(9).group_rules(1, 0, 0)).len(), 1);
    }
}

#[test]
fn no_more_of_a_group_start_in_a_window_than_its_limit() {
    let mut queue = TestQueue::with(three());
    let limited = |jobs| want(jobs).group_rules(0, 1, 3_600_000);
    assert_eq!(taken(&mut queue, limited(9)), ["b1", "a1", "c1"]);
    assert_eq!(members(&mut queue, "groups-limited"), ["a", "b"]);
    assert_eq!(taken(&mut queue, limited(9).done_record("a1", "1")), [""; 0]);
    // when it ends
    for group in ["a", "b"] {
        queue.command("DEL", &format!("group-starts:{group}"), &[]);
        queue.command("ZADD", "groups-limited", &["1", group]);
    }
    assert_eq!(taken(&mut queue, limited(9)).len(), 2);
}

#[test]
fn both_limits_hold_together() {
    let mut queue = TestQueue::with(three().grouped("a4", "a", 0));
    let limited = |jobs| want(jobs).group_rules(1, 2, 3_600_000);
    assert_eq!(taken(&mut queue, limited(9)), ["b1", "a1", "c1"]);
    assert_eq!(taken(&mut queue, limited(9).done_record("a1", "1")), ["a2"]);
    assert_eq!(taken(&mut queue, limited(9).done_record("a2", "1")), [""; 0]);
    assert_eq!(members(&mut queue, "groups-limited"), ["a"]);
}

#[test]
fn a_worker_is_told_when_the_first_limit_ends() {
    let mut queue = TestQueue::with(three());
    let reply = queue.step(want(9).group_rules(0, 1, 60_000));
    let due: i64 = reply
        .rsplit("] ")
        .next()
        .and_then(|rest| rest.split(' ').next())
        .and_then(|due| due.parse().ok())
        .expect("a time");
    assert!((59_000..=61_001).contains(&(due - 1000)), "{reply}");
}

#[test]
fn some_are_taken_in_advance_where_nothing_may_limit_a_group() {
    let mut queue = TestQueue::with(three());
    assert_eq!(taken(&mut queue, want(1).surplus(4)).len(), 5);
    let mut queue = TestQueue::with(three());
    assert_eq!(taken(&mut queue, want(1).surplus(4).group_rules(9, 0, 0)).len(), 1);
}

#[test]
fn delayed_ones_join_their_group_when_they_are_due() {
    let mut queue = TestQueue::with(three().grouped_within("a9", 2000, ("a", 0, 0.0), 0));
    assert_eq!(taken(&mut queue, want(1)), ["b1"]);
    assert_eq!(taken(&mut queue, want(1).at(2000)), ["a1"]);
    assert_eq!(members(&mut queue, "group:a"), ["a2", "a3", "a9"]);
}

#[test]
fn a_priority_that_is_changed_is_one_in_the_group() {
    let mut queue = TestQueue::with(three());
    run_once!(queue, CHANGE_PRIORITY; "a1", 3, 0);
    assert_eq!(members(&mut queue, "group:a"), ["a2", "a3", "a1"]);
    run_once!(queue, CHANGE_PRIORITY; "a3", 0, 1);
    assert_eq!(members(&mut queue, "group:a"), ["a3", "a2", "a1"]);
}

#[test]
fn a_job_whose_record_was_lost_holds_no_place() {
    let mut queue = TestQueue::with(three());
    queue.command("HDEL", "jobs", &["a1"]);
    let call = queue.step_call(&want(9).group_rules(1, 0, 0));
    queue.carry_out_unchecked(&call);
    queue.key_is("group-active", "set");
    assert_eq!(members(&mut queue, "groups-maxed"), ["a", "b"]);
    assert_eq!(members(&mut queue, "group:a"), ["a3"]);
}

#[test]
fn what_stalled_is_not_taken_in_advance() {
    let mut queue = TestQueue::with(three());
    taken(&mut queue, want(2));
    queue.end_lease("w");
    queue.bring_back(1000, 1, "", &[], 3);
    let first = taken(&mut queue, Step::by("v").want(1).surplus(8));
    assert!(!first[1..].iter().any(|id| id == "b1" || id == "a1"), "{first:?}");
}

#[test]
fn jobs_without_a_group_have_turns_as_a_group_has_where_the_worker_says_so() {
    let plan = (1..=6).fold(Plan::new(), |plan, i| plan.record(&format!("x{i}")));
    let mut queue = TestQueue::with(plan.grouped("a1", "a", 0).grouped("a2", "a", 0).grouped("b1", "b", 0));
    let first = taken(&mut queue, want(5).fair());
    let others = first.iter().filter(|id| id.starts_with('x')).count();
    assert!((1..=2).contains(&others), "{first:?}");
    // one after the other it is no different
    let plan = (1..=6).fold(Plan::new(), |plan, i| plan.record(&format!("x{i}")));
    let mut queue = TestQueue::with(plan.grouped("a1", "a", 0).grouped("a2", "a", 0).grouped("b1", "b", 0));
    let ids: Vec<String> = (0..6).flat_map(|_| taken(&mut queue, want(1).fair())).collect();
    assert_eq!(ids.iter().filter(|id| id.starts_with('x')).count(), 3, "{ids:?}");
    // where no group has jobs, they start as ever
    assert_eq!(taken(&mut queue, want(9).fair()), ["x4", "x5", "x6"]);
}

#[test]
fn a_job_that_waits_for_its_next_try_holds_a_group_of_strict_order_back() {
    let plan = Plan::new()
        .grouped_within("a1", 0, ("a", 0, -1.0), 0)
        .grouped("a2", "a", 0);
    let mut queue = TestQueue::with(plan.grouped("b1", "b", 0));
    assert_eq!(taken(&mut queue, want(1)), ["a1"]);
    let fail = Fail {
        due_ms: 5000,
        ..Fail::to("delayed")
    };
    assert_eq!(taken(&mut queue, want(9).fail(&of("a1"), &fail)), ["b1"]);
    assert_eq!(members(&mut queue, "groups-limited"), ["a"]);
    // it is due: it comes first
    queue.command("ZADD", "groups-limited", &["1", "a"]);
    assert_eq!(taken(&mut queue, want(1).at(5000)), ["a1"]);
    queue.step(Step::by("w").at(5000).fail(&of("a1"), &Fail::to("waiting")));
    assert_eq!(members(&mut queue, "group:a"), ["a1", "a2"]);
}

#[test]
fn a_group_of_strict_order_goes_on_when_the_job_that_holds_it_is_promoted_or_removed() {
    let held = || {
        let plan = Plan::new()
            .grouped_within("a1", 0, ("a", 0, -1.0), 0)
            .grouped("a2", "a", 0);
        let mut queue = TestQueue::with(plan);
        let fail = Fail {
            due_ms: 60_000,
            ..Fail::to("delayed")
        };
        queue.step(want(1));
        queue.step(want(9).fail(&of("a1"), &fail));
        queue
    };
    let mut queue = held();
    run_once!(queue, MOVE_DELAYED, 2000, "a1", 0);
    assert_eq!(taken(&mut queue, want(9)), ["a1", "a2"]);
    let mut queue = held();
    run_once!(queue, REMOVE_JOB, 2000, "a1", 0);
    assert_eq!(taken(&mut queue, want(9)), ["a2"]);
}

#[test]
fn a_step_takes_jobs_of_one_group_where_the_worker_says_so() {
    let mut queue = TestQueue::with(three().record("x").record("y"));
    assert_eq!(taken(&mut queue, want(9).apart()), ["x", "y"]);
    assert_eq!(taken(&mut queue, want(9).apart()), ["b1", "b2"]);
    assert_eq!(taken(&mut queue, want(2).apart()), ["a1", "a2"]);
    assert_eq!(taken(&mut queue, want(9).apart()), ["c1"]);
    // one that is full is passed over
    queue.add(1000, Plan::new().grouped("d1", "d", 0));
    assert_eq!(taken(&mut queue, want(9).apart().group_rules(2, 0, 0)), ["d1"]);
}

#[test]
fn the_heaviest_group_lets_others_have_a_turn() {
    let plan = (0..40).fold(Plan::new(), |plan, i| {
        plan.grouped_within(&format!("a{i}"), 0, ("a", 0, 1e12), 0)
    });
    let mut queue = TestQueue::with(plan.grouped("b1", "b", 0));
    let turns = (0..5).flat_map(|_| taken(&mut queue, want(8))).collect::<Vec<_>>();
    assert_eq!(turns.len(), 40);
    assert!(turns.contains(&"b1".to_owned()), "{turns:?}");
}
