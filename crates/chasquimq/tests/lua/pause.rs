//! The queue's persistent flag that stops every worker's fetching.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
};

#[test]
fn the_flag_is_set_and_told() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run_once!(queue, PAUSE, 1000, 1), "0");
    queue.keys_are("meta: paused=1");
    queue.events_are("[E paused]");
}

#[test]
fn resuming_wakes_a_worker() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    run_once!(queue, PAUSE, 1000, 1);
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    assert_eq!(run_once!(queue, PAUSE, 1001, 0), "0");
    queue.keys_are(
        "log: 1-1
         state: id=1 waiting=1
         wake: set",
    );
    queue.events_are("[E resumed]");
}

#[test]
fn a_call_sent_again_is_neither_obeyed_nor_told_again() {
    let mut queue = TestQueue::fresh();
    let pause = |queue: &mut TestQueue| run!(queue, PAUSE, 1000, "c", "b", 1, 1);
    assert_eq!(pause(&mut queue), "0");
    // by somebody else, before the first call is sent again
    run_once!(queue, PAUSE, 1001, 0);
    queue.events_are("[E paused] | [E resumed]");
    assert_eq!(pause(&mut queue), "0");
    queue.key_is("meta", "(none)");
    queue.events_are("");
}
