//! Groups with jobs, by status and rank.

use chasquimq::msgpack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

fn list(queue: &mut TestQueue, statuses: &[&str], start: i64, stop: i64) -> String {
    let mut packed = Packer::default();
    packed.column(statuses.iter().copied(), false);
    run!(queue, LIST_GROUPS, packed.0, start, stop)
}

const ALL: [&str; 4] = ["waiting", "limited", "maxed", "paused"];

#[test]
fn an_empty_queue_has_none() {
    let mut queue = TestQueue::fresh();
    assert_eq!(list(&mut queue, &ALL, 0, -1), "[[0 0 0 0] []]");
    queue.keys_are("");
}

#[test]
fn each_group_is_listed_once_by_its_status() {
    let mut plan = Plan::new();
    for group in ["d", "c", "b", "a", "c"] {
        plan = plan.grouped("", group, 0);
    }
    let mut queue = TestQueue::with(plan);
    run_once!(queue, SET_GROUP, 1000, "d", "pause", "", "");
    run_once!(queue, SET_GROUP, 1000, "a", "window", 60_000, "");
    queue.step(Step::by("w").want(1).group_rules(1, 0, 0));
    queue.step(Step::by("w").want(0).group_rules(1, 0, 0));
    assert_eq!(list(&mut queue, &["waiting"], 0, -1), "[[2] [b waiting 1 a waiting 1]]");
    // a group is seen to be limited when it is its turn
    queue.step(Step::by("w").want(9).group_rules(1, 0, 0));
    assert_eq!(
        list(&mut queue, &ALL, 0, -1),
        "[[0 1 1 1] [a limited 1 c maxed 1 d paused 1]]"
    );
    assert_eq!(list(&mut queue, &ALL, 1, 1), "[[0 1 1 1] [c maxed 1]]");
    assert_eq!(list(&mut queue, &ALL, -1, -1), "[[0 1 1 1] [d paused 1]]");
    assert_eq!(list(&mut queue, &["paused"], 0, 0), "[[1] [d paused 1]]");
}
