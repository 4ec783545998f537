//! The queue's persistent flag that stops every worker's fetching.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

#[test]
fn the_flag_is_set_and_told() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run!(queue, PAUSE, 1000, 1), "0");
    queue.keys_are("meta: paused=1");
    queue.events_are("[E paused]");
}

#[test]
fn resuming_wakes_a_worker() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    run!(queue, PAUSE, 1000, 1);
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    assert_eq!(run!(queue, PAUSE, 1001, 0), "0");
    queue.keys_are(
        "log: 1-1
         state: id=1 waiting=1
         wake: set",
    );
    queue.events_are("[E resumed]");
}
