//! A worker hands on what woke it.

use crate::given::queue::{run, TestQueue};

#[test]
fn the_marker_stands_again() {
    for marker in ["wake", "open"] {
        let mut queue = TestQueue::fresh();
        assert_eq!(run!(queue, WAKE_NEXT, marker), "0");
        queue.keys_are(&format!("{marker}: set"));
    }
}
