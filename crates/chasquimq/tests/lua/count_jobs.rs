//! Numbers of jobs by state.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::{at, Fail, Step},
};

#[test]
fn an_empty_queue_has_none() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run!(queue, COUNT_JOBS), "[0 0 0 0 0 0 0]");
    queue.keys_are("");
}

#[test]
fn every_state_is_counted() {
    let plan = Plan::new()
        .frame(6)
        .record("x")
        .front("z")
        .delayed("d", 5000)
        .delayed("e", 5000);
    let mut queue = TestQueue::with(plan);
    assert_eq!(run!(queue, COUNT_JOBS), "[8 0 0 0 2 0 0]");
    queue.step(Step::by("w").want(7));
    assert_eq!(run!(queue, COUNT_JOBS), "[1 7 0 0 2 0 0]");
    queue.step(Step::by("w").done(1, 6, 0, 3).fail(&at(1, 6, 4), &Fail::to("failed")));
    assert_eq!(run!(queue, COUNT_JOBS), "[1 3 3 1 2 0 0]");
    queue.command("ZADD", "prioritized", &["1", "p"]);
    queue.command("ZADD", "waiting-children", &["1", "q", "2", "r"]);
    let call = queue.call(&chasquimq::redis::call::library::COUNT_JOBS);
    let counts: Vec<u64> = redis::from_redis_value(queue.carry_out_unchecked(&call)).expect("counts");
    assert_eq!(counts, [1, 3, 3, 1, 2, 1, 2]);
}
