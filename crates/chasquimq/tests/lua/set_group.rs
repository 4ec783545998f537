//! What is set for one group by hand.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

fn two() -> TestQueue {
    TestQueue::with(Plan::new().grouped("a1", "a", 0).grouped("b1", "b", 0))
}

fn take(queue: &mut TestQueue) -> String {
    queue.step(Step::by("w").want(9))
}

#[test]
fn no_job_of_a_paused_group_starts_until_it_is_resumed() {
    let mut queue = two();
    queue.skip_events();
    assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", "pause", "", ""), "1");
    assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", "pause", "", ""), "0");
    queue.events_are("[E group-paused groupId a]");
    queue.key_is("groups-paused", "set");
    assert!(!take(&mut queue).contains("a1"));
    queue.add(1000, Plan::new().grouped("a2", "a", 0));
    queue.command("DEL", "wake", &[]);
    assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", "resume", "", ""), "1");
    queue.key_is("wake", "set");
    assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", "resume", "", ""), "0");
    queue.key_is("group-settings", "(none)");
    assert!(take(&mut queue).contains("a1"));
}

#[test]
fn a_group_without_jobs_is_remembered_as_paused() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", "pause", "", ""), "1");
    queue.add(1000, Plan::new().grouped("a1", "a", 0));
    queue.key_is("groups-paused", "set");
    assert!(!take(&mut queue).contains("a1"));
}

#[test]
fn a_group_is_limited_by_hand_with_and_without_jobs() {
    let mut queue = two();
    run_once!(queue, SET_GROUP, 1000, "a", "window", 60_000, "");
    run_once!(queue, SET_GROUP, 1000, "c", "window", 60_000, "");
    queue.add(1000, Plan::new().grouped("c1", "c", 0));
    let reply = take(&mut queue);
    assert!(
        reply.contains("b1") && !reply.contains("a1") && !reply.contains("c1"),
        "{reply}"
    );
    queue.key_is("groups-limited", "set");
    run_once!(queue, SET_GROUP, 1000, "a", "window", 0, "");
    assert!(take(&mut queue).contains("a1"));
}

#[test]
fn a_limit_is_kept_while_the_group_is_paused() {
    let mut queue = two();
    run_once!(queue, SET_GROUP, 1000, "a", "window", 60_000, "");
    run_once!(queue, SET_GROUP, 1000, "a", "pause", "", "");
    run_once!(queue, SET_GROUP, 1000, "a", "resume", "", "");
    assert!(!take(&mut queue).contains("a1"));
}

#[test]
fn what_was_set_goes_with_the_group() {
    let mut queue = two();
    for (what, value, duration_ms) in [("concurrency", 3, ""), ("limit", 4, "1000"), ("weight", 2, "")] {
        assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", what, value, duration_ms), "1");
        assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", what, value, duration_ms), "0");
    }
    assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", "forget", "", ""), "1");
    queue.key_is("group-settings", "(none)");
    assert_eq!(run_once!(queue, SET_GROUP, 1000, "a", "forget", "", ""), "0");
}

#[test]
fn a_call_sent_again_is_neither_obeyed_nor_told_again() {
    let mut queue = two();
    queue.skip_events();
    let pause = |queue: &mut TestQueue| run!(queue, SET_GROUP, 1000, "c", "b", 1, "a", "pause", "", "");
    assert_eq!(pause(&mut queue), "1");
    run_once!(queue, SET_GROUP, 1001, "a", "resume", "", "");
    queue.skip_events();
    assert_eq!(pause(&mut queue), "1");
    queue.key_is("group-settings", "(none)");
    queue.events_are("");
}
