//! A worker hands on what woke it.

use crate::given::{
    queue::{run, TestQueue},
    step::Step,
};

#[test]
fn the_marker_stands_again() {
    for marker in ["wake", "open"] {
        let mut queue = TestQueue::fresh();
        assert_eq!(run!(queue, WAKE_NEXT, marker, ""), "0");
        queue.keys_are(&format!("{marker}: set"));
    }
}

#[test]
fn another_worker_that_waits_is_told_and_not_the_one_that_asks() {
    let mut queue = TestQueue::fresh();
    for owner in ["w", "v"] {
        queue.step(Step::by(owner).busy().want(1));
    }
    let mut ear = queue.listen("v");
    assert_eq!(run!(queue, WAKE_NEXT, "wake", "w"), "1");
    assert_eq!(ear.heard(), 1);
    queue.key_is("wake", "(none)");
    queue.key_is("waiting-workers", "(none)");
    // nobody is left
    assert_eq!(run!(queue, WAKE_NEXT, "wake", "w"), "0");
    queue.key_is("wake", "set");
}
