//! What a queue says of itself.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

#[test]
fn the_version_and_the_cap_of_the_event_log_are_written() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run!(queue, CONFIGURE, "chasquimq:1.2.3", 500), "0");
    queue.keys_are("meta: opts.maxLenEvents=500 version=chasquimq:1.2.3");
    queue.events_are("");
    assert_eq!(queue.probe.snapshot().state("max_events"), 500);
}

#[test]
fn the_event_log_holds_about_as_many_events_as_its_cap() {
    let mut queue = TestQueue::fresh();
    run!(queue, CONFIGURE, "1", 1000);
    for _ in 0..600 {
        queue.add(1000, Plan::new().frame(10));
    }
    let events = 20 * queue.probe.snapshot().events.len();
    // the server trims whole nodes of a hundred entries
    assert!((1000..=1000 + 2 * 100 * 20).contains(&events), "{events}");
}
