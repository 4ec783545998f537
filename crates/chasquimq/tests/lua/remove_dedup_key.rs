//! A deduplication id is free again.

use chasquimq::Deduplication;

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
};

#[test]
fn an_id_is_freed_whoever_owns_it() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &Deduplication::of("d")));
    assert_eq!(run_once!(queue, REMOVE_DEDUP_KEY; "d", ""), "1");
    queue.key_is("de:d", "(none)");
    assert_eq!(run_once!(queue, REMOVE_DEDUP_KEY; "d", ""), "0");
}

#[test]
fn an_id_is_freed_by_its_owner_only() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &Deduplication::of("d")));
    assert_eq!(run_once!(queue, REMOVE_DEDUP_KEY; "d", "y"), "0");
    queue.key_is("de:d", "x");
    assert_eq!(run_once!(queue, REMOVE_DEDUP_KEY; "d", "x"), "1");
    queue.key_is("de:d", "(none)");
}

#[test]
fn a_call_sent_again_frees_nothing_more() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &Deduplication::of("d")));
    let free = |queue: &mut TestQueue| run!(queue, REMOVE_DEDUP_KEY, "c", "b", 1, "d", "");
    assert_eq!(free(&mut queue), "1");
    // somebody else's job owns it now
    queue.add(1001, Plan::new().deduplicated("y", 0, &Deduplication::of("d")));
    assert_eq!(free(&mut queue), "1");
    queue.key_is("de:d", "y");
}
