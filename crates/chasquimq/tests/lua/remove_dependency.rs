//! What waits for a job does not any more

use crate::given::{
    queue::{run, run_once, TestQueue},
    step::Step,
    tree::Tree,
};

fn family() -> TestQueue {
    let mut queue = TestQueue::fresh();
    queue.add_flows(
        1000,
        &Tree::new()
            .root_with("r", r#"{"priority":2}"#)
            .child("r", "a")
            .child("r", "b"),
    );
    queue.skip_events();
    queue
}

#[test]
fn the_last_child_starts_its_parent_at_the_head_of_the_line() {
    let mut queue = family();
    assert_eq!(
        run!(queue, REMOVE_DEPENDENCY, 1010, chasquimq::unique_id(), 0, 1, "a"),
        "0"
    );
    queue.key_is("children:r", "q:b");
    queue.key_is("vitals", "b={pa:[{q}: r '']} r={ch:1}");
    queue.events_are("");
    assert_eq!(
        run!(queue, REMOVE_DEPENDENCY, 1010, chasquimq::unique_id(), 0, 1, "b"),
        "0"
    );
    queue.key_is("front", "r");
    queue.key_is("waiting-children", "(none)");
    queue.key_is("wake", "set");
    queue.events_are("[X waiting [r] prev waiting-children]");
    assert_eq!(
        run!(queue, REMOVE_DEPENDENCY, 1010, chasquimq::unique_id(), 0, 1, "b"),
        "-5"
    );
}

#[test]
fn a_child_that_ended_is_not_waited_for() {
    let mut queue = family();
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").done_record("a", "7"));
    let keys = queue.show();
    assert_eq!(
        run!(queue, REMOVE_DEPENDENCY, 1010, chasquimq::unique_id(), 0, 1, "a"),
        "1"
    );
    queue.keys_are(&keys);
}

#[test]
fn both_must_exist() {
    let mut queue = family();
    assert_eq!(
        run!(queue, REMOVE_DEPENDENCY, 1010, chasquimq::unique_id(), 0, 1, "z"),
        "-1"
    );
    run_once!(queue, REMOVE_JOB, 1010, "r", 0);
    assert_eq!(
        run!(queue, REMOVE_DEPENDENCY, 1010, chasquimq::unique_id(), 0, 1, "a"),
        "-5"
    );
}

#[test]
fn a_call_sent_again_is_answered_from_memory() {
    let mut queue = family();
    for _ in 0..2 {
        assert_eq!(run!(queue, REMOVE_DEPENDENCY, 1010, "c", 0, 7, "a"), "0");
    }
    queue.key_is("children:r", "q:b");
}

#[test]
fn a_child_in_a_frame_that_nobody_waits_for_stays_as_it_is() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &Tree::new().root("r").child("r", "").child("r", ""));
    let id = queue.probe.snapshot().line()[0].clone();
    run_once!(queue, REMOVE_JOB, 1010, "r", 0);
    let keys = queue.show();
    assert_eq!(
        run!(queue, REMOVE_DEPENDENCY, 1010, chasquimq::unique_id(), 0, 1, &id),
        "-5"
    );
    queue.keys_are(&keys);
}
