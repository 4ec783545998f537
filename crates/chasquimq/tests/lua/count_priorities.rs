//! Numbers of jobs that wait by priority.

use chasquimq::msgpack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
};

fn count(queue: &mut TestQueue, priorities: &[f64]) -> String {
    let mut packed = Packer::default();
    packed.array(priorities.len());
    for priority in priorities {
        packed.float(*priority);
    }
    run!(queue, COUNT_PRIORITIES, packed.0, "")
}

#[test]
fn those_of_a_group_are_counted_apart() {
    let plan = Plan::new()
        .grouped("", "a", 0)
        .grouped("", "a", 2)
        .grouped("", "a", 2)
        .grouped("", "b", 2);
    let mut queue = TestQueue::with(plan.frame(1).run(&[2]));
    let mut packed = Packer::default();
    packed.array(3).float(0.0).float(1.0).float(2.0);
    assert_eq!(run!(queue, COUNT_PRIORITIES, packed.0, "a"), "[1 0 2]");
}

#[test]
fn an_empty_queue_has_none() {
    let mut queue = TestQueue::fresh();
    assert_eq!(count(&mut queue, &[0.0, 1.0]), "[0 0]");
    assert_eq!(count(&mut queue, &[]), "[]");
    queue.keys_are("");
}

#[test]
fn each_priority_is_counted_apart() {
    let plan = Plan::new()
        .frame(4)
        .run(&[1, 3, 3, 2_097_151, -1])
        .delayed_prioritized("", 2000, 3);
    let mut queue = TestQueue::with(plan);
    // the front of a priority belongs to it
    run_once!(queue, CHANGE_PRIORITY; "1", 3, 1);
    assert_eq!(
        count(&mut queue, &[0.0, 1.0, 2.0, 3.0, 2_097_151.0, -1.0, 1.5]),
        "[3 1 0 3 1 1 0]"
    );
}
