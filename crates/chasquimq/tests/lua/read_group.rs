//! What is known of one group.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

#[test]
fn nothing_is_known_of_a_group_that_never_was() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run!(queue, READ_GROUP, "a"), "['' 0 0 0 0 0 0 0 0 0]");
    queue.keys_are("");
}

#[test]
fn jobs_and_settings_are_told() {
    let plan = Plan::new().grouped("a1", "a", 0).grouped("a2", "a", 0);
    let mut queue = TestQueue::with(plan.grouped("a3", "a", 0));
    queue.step(Step::by("w").want(1));
    assert_eq!(run!(queue, READ_GROUP, "a"), "[waiting 2 1 0 0 0 0 0 0 0]");
    run_once!(queue, SET_GROUP, 1000, "a", "weight", "2.5", "");
    run_once!(queue, SET_GROUP, 1000, "a", "concurrency", 1, "");
    run_once!(queue, SET_GROUP, 1000, "a", "limit", 7, 1000);
    queue.step(Step::by("w").want(1));
    assert_eq!(run!(queue, READ_GROUP, "a"), "[maxed 2 1 2.5 1 7 1000 0 0 0]");
    run_once!(queue, SET_GROUP, 1000, "a", "pause", "", "");
    assert!(run!(queue, READ_GROUP, "a").starts_with("[paused 2 1"));
}

#[test]
fn the_rest_of_a_limit_is_told() {
    let mut queue = TestQueue::with(Plan::new().grouped("a1", "a", 0));
    run_once!(queue, SET_GROUP, 1000, "a", "window", 60_000, "");
    let told = run!(queue, READ_GROUP, "a");
    let left: u64 = told.split(' ').nth(7).and_then(|ms| ms.parse().ok()).expect("ms");
    assert!(
        told.starts_with("[limited 1 0") && (50_000..=60_000).contains(&left),
        "{told}"
    );
}
