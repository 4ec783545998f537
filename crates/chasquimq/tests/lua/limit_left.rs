//! How long the window of the rate limit still lasts.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

fn left(queue: &mut TestQueue, max: &str) -> i64 {
    let reply = run!(queue, LIMIT_LEFT, max);
    reply.parse().expect("ms")
}

#[test]
fn without_a_window_it_is_minus_two_or_nothing() {
    let mut queue = TestQueue::fresh();
    assert_eq!([left(&mut queue, ""), left(&mut queue, "3")], [-2, 0]);
    run_once!(queue, SET_LIMIT; "rate", 2, 1000);
    assert_eq!([left(&mut queue, ""), left(&mut queue, "3")], [0, 0]);
}

#[test]
fn a_limit_that_is_not_reached_leaves_nothing_to_wait_for() {
    let mut queue = TestQueue::with(Plan::new().frame(4));
    queue.step(Step::by("w").limiter(10, 60_000).want(2));
    assert!(left(&mut queue, "") > 59_000);
    assert!(left(&mut queue, "2") > 59_000);
    assert_eq!(left(&mut queue, "3"), 0);
    run_once!(queue, SET_LIMIT; "rate", 3, 1000);
    assert_eq!(left(&mut queue, ""), 0);
    run_once!(queue, SET_LIMIT; "rate", 2, 1000);
    assert!(left(&mut queue, "") > 59_000);
}

#[test]
fn a_window_without_end_is_minus_one() {
    let mut queue = TestQueue::fresh();
    queue.command("SET", "limiter", &["5"]);
    assert_eq!([left(&mut queue, ""), left(&mut queue, "3")], [-1, 0]);
}
