//! Limits of the whole queue are set and lifted.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

/// A queue whose window is used up, without a marker.
fn limited() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    run_once!(queue, SET_LIMIT; "rate", 1, 60_000);
    assert!(queue.limited_ms(Step::by("w").want(2)) > 0);
    queue.command("DEL", "wake", &[]);
    queue
}

#[test]
fn a_concurrency_is_kept_as_it_is_written_and_lifted() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run_once!(queue, SET_LIMIT; "concurrency", "2.5", ""), "1");
    queue.keys_are("meta: concurrency=2.5");
    assert_eq!(run_once!(queue, SET_LIMIT; "concurrency", 3, ""), "0");
    queue.keys_are("meta: concurrency=3");
    assert_eq!(run_once!(queue, SET_LIMIT; "concurrency", "", ""), "1");
    assert_eq!(run_once!(queue, SET_LIMIT; "concurrency", "", ""), "0");
    queue.keys_are("");
    queue.events_are("");
}

#[test]
fn a_rate_is_two_settings() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run_once!(queue, SET_LIMIT; "rate", 3, 1000), "2");
    assert_eq!(run_once!(queue, SET_LIMIT; "rate", 4, 500), "0");
    queue.keys_are("meta: duration=500 max=4");
    assert_eq!(run_once!(queue, SET_LIMIT; "rate", "", ""), "2");
    queue.keys_are("");
}

#[test]
fn a_window_can_be_used_up_and_ended() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    assert_eq!(run_once!(queue, SET_LIMIT; "window", 60_000, ""), "1");
    assert!(queue.limited_ms(Step::by("w").limiter(1000, 1).want(1)) > 59_000);
    assert_eq!(run_once!(queue, SET_LIMIT; "window", "", ""), "1");
    assert_eq!(run_once!(queue, SET_LIMIT; "window", "", ""), "0");
    assert_eq!(queue.limited_ms(Step::by("w").limiter(1000, 1).want(1)), 0);
    queue.key_is("state", "cursor=1-1 id=1 active=1");
}

#[test]
fn a_limit_that_is_lifted_wakes_those_who_wait_and_those_who_rest() {
    for (what, value) in [("window", ""), ("rate", ""), ("rate", "5")] {
        let mut queue = limited();
        queue.key_is("open", "(none)");
        run_once!(queue, SET_LIMIT; what, value, 60_000);
        queue.key_is("open", "set");
        queue.key_is("wake", "set");
    }
}

#[test]
fn a_window_that_is_used_up_wakes_nobody() {
    let mut queue = limited();
    run_once!(queue, SET_LIMIT; "window", "", "");
    queue.command("DEL", "wake", &[]);
    run_once!(queue, SET_LIMIT; "window", 60_000, "");
    queue.key_is("open", "(none)");
    queue.key_is("wake", "(none)");
}

#[test]
fn a_length_is_a_setting_and_part_of_the_state() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run_once!(queue, SET_LIMIT; "length", 5, ""), "1");
    assert_eq!(run_once!(queue, SET_LIMIT; "length", 7, ""), "0");
    queue.keys_are(
        "meta: maxLength=7
         state: max_length=7",
    );
    assert_eq!(run_once!(queue, SET_LIMIT; "length", "", ""), "1");
    assert_eq!(run_once!(queue, SET_LIMIT; "length", "", ""), "0");
    queue.keys_are("");
}

#[test]
fn a_call_sent_again_is_answered_as_before_and_changes_nothing_more() {
    let mut queue = TestQueue::fresh();
    let mut number = 0;
    for (what, value, duration_ms, changed) in [
        ("concurrency", "2", "", "1"),
        ("rate", "3", "1000", "2"),
        ("length", "5", "", "1"),
    ] {
        for (value, other) in [(value, ""), ("", value)] {
            number += 1;
            let set = |queue: &mut TestQueue| run!(queue, SET_LIMIT, "c", "b", number, what, value, duration_ms);
            assert_eq!(set(&mut queue), changed);
            // by somebody else, before the first call is sent again
            run_once!(queue, SET_LIMIT; what, other, duration_ms);
            let keys = queue.show();
            assert_eq!(set(&mut queue), changed);
            queue.keys_are(&keys);
            run_once!(queue, SET_LIMIT; what, value, duration_ms);
        }
    }
    queue.keys_are("");
}

#[test]
fn a_window_that_was_ended_is_not_begun_again() {
    let mut queue = TestQueue::fresh();
    let hold =
        |queue: &mut TestQueue, number: u64, ms: &str| run!(queue, SET_LIMIT, "c", "b", number, "window", ms, "");
    assert_eq!(hold(&mut queue, 1, "60000"), "1");
    assert_eq!(run_once!(queue, SET_LIMIT; "window", "", ""), "1");
    assert_eq!(hold(&mut queue, 1, "60000"), "1");
    queue.key_is("limiter", "(none)");
    run_once!(queue, SET_LIMIT; "window", 60_000, "");
    assert_eq!(hold(&mut queue, 2, ""), "1");
    run_once!(queue, SET_LIMIT; "window", 60_000, "");
    assert_eq!(hold(&mut queue, 2, ""), "1");
    assert_eq!(run_once!(queue, SET_LIMIT; "window", "", ""), "1");
}
