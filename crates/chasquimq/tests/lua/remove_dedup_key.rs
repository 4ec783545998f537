//! A deduplication id is free again.

use chasquimq::Deduplication;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

#[test]
fn an_id_is_freed_whoever_owns_it() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &Deduplication::of("d")));
    assert_eq!(run!(queue, REMOVE_DEDUP_KEY, "d", ""), "1");
    queue.key_is("de:d", "(none)");
    assert_eq!(run!(queue, REMOVE_DEDUP_KEY, "d", ""), "0");
}

#[test]
fn an_id_is_freed_by_its_owner_only() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &Deduplication::of("d")));
    assert_eq!(run!(queue, REMOVE_DEDUP_KEY, "d", "y"), "0");
    queue.key_is("de:d", "x");
    assert_eq!(run!(queue, REMOVE_DEDUP_KEY, "d", "x"), "1");
    queue.key_is("de:d", "(none)");
}
