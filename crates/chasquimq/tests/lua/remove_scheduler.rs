//! A scheduler -> nothing.

use crate::given::{
    queue::{run, run_once, TestQueue},
    scheduler::Upsert,
};

#[test]
fn its_delayed_iteration_goes_with_it() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1500));
    queue.skip_events();
    assert_eq!(run_once!(queue, REMOVE_SCHEDULER, 1010, "s"), "1");
    queue.keys_are("state: id=1\nwake: set");
    queue.events_are("[X removed [repeat:s:1500] prev delayed]");
    assert_eq!(run_once!(queue, REMOVE_SCHEDULER, 1010, "s"), "0");
}

#[test]
fn one_that_waits_stays() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s"));
    queue.skip_events();
    assert_eq!(run_once!(queue, REMOVE_SCHEDULER, 1010, "s"), "1");
    queue.key_is("log", "1-r1(repeat:s:1000)");
    queue.key_is("scheduler", "(none)");
    queue.events_are("");
}

#[test]
fn a_call_sent_again_leaves_a_scheduler_that_came_since() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1500));
    let remove = |queue: &mut TestQueue| run!(queue, REMOVE_SCHEDULER, 1010, "c", "b", 1, "s");
    assert_eq!(remove(&mut queue), "1");
    queue.upsert(1020, &Upsert::of("s").next(1500));
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(remove(&mut queue), "1");
    queue.keys_are(&keys);
    queue.events_are("");
}
