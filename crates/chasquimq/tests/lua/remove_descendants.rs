//! Children of named parents -> gone, a step at a time.

use chasquimq::msgpack::Packer;

use crate::given::{
    queue::{run, run_once, TestQueue},
    step::{of, Fail, Step},
    tree::Tree,
};

/// Parent and child, both of this queue.
fn kin(queue: &TestQueue, pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut packed = Packer::default();
    packed.array(3 * pairs.len());
    for (parent, child) in pairs {
        let keys = &queue.probe.keys;
        packed
            .str(&keys.base)
            .str(parent)
            .str(&format!("{}:{child}", keys.qualified_name));
    }
    packed.0
}

/// r waits for a, b, c; b waits for d.
fn family() -> TestQueue {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new().root("r").child("r", "a").child("r", "b").child("b", "d");
    queue.add_flows(1000, &tree.child("r", "c"));
    queue.skip_events();
    queue
}

#[test]
fn children_of_parents_that_are_gone_go() {
    let mut queue = family();
    assert_eq!(run_once!(queue, REMOVE_JOB, 1010, "r", 0), "1");
    let all = kin(&queue, &[("r", "a"), ("r", "b"), ("r", "c"), ("b", "d")]);
    assert_eq!(
        run_once!(queue, REMOVE_DESCENDANTS, 1011, 1, all.as_slice()),
        "[1 1 1 1]"
    );
    queue.keys_are(
        "gone: a=1 c=1 d=1
         log: 5-r1(a d c)
         state: id=5 references=1 gone=3
         wake: set",
    );
    queue.events_are(
        "[X removed [r] prev waiting-children] | [X removed [a] prev wait] [X removed [b] prev waiting-children] [X removed [c d] prev wait]",
    );
    // again: they are gone
    assert_eq!(
        run_once!(queue, REMOVE_DESCENDANTS, 1011, 1, all.as_slice()),
        "[0 0 0 0]"
    );
    queue.events_are("");
}

#[test]
fn a_parent_that_stays_starts_once_it_waits_for_nothing() {
    let mut queue = family();
    let some = kin(&queue, &[("r", "a"), ("r", "b")]);
    assert_eq!(run_once!(queue, REMOVE_DESCENDANTS, 1010, 0, some.as_slice()), "[1 1]");
    queue.key_is("children:r", "q:c");
    let rest = kin(&queue, &[("b", "d"), ("r", "c")]);
    assert_eq!(run_once!(queue, REMOVE_DESCENDANTS, 1011, 0, rest.as_slice()), "[1 1]");
    queue.key_is("front", "r");
}

#[test]
fn what_is_held_stays_with_what_is_below_it() {
    let mut queue = family();
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
    run_once!(queue, REMOVE_JOB, 1010, "r", 0);
    let all = kin(&queue, &[("r", "a"), ("r", "c"), ("b", "d")]);
    assert_eq!(run_once!(queue, REMOVE_DESCENDANTS, 1011, 0, all.as_slice()), "[0 1 0]");
    assert_eq!(run_once!(queue, REMOVE_DESCENDANTS, 1011, 1, all.as_slice()), "[1 0 0]");
    // b has another parent than this says, and d is below b
    let odd = kin(&queue, &[("a", "b"), ("b", "d")]);
    queue.end_lease("w");
    assert_eq!(run_once!(queue, REMOVE_DESCENDANTS, 1012, 1, odd.as_slice()), "[0 0]");
    let right = kin(&queue, &[("r", "b"), ("b", "d")]);
    assert_eq!(run_once!(queue, REMOVE_DESCENDANTS, 1012, 1, right.as_slice()), "[1 1]");
    queue.key_is("jobs", "(none)");
}

#[test]
fn children_of_frames_go() {
    let (mut queue, other) = (TestQueue::fresh(), TestQueue::fresh());
    let mut tree = Tree::new().root("r").to(&other.probe.keys);
    for _ in 0..3 {
        tree = tree.child("r", "");
    }
    queue.add_flows(1000, &tree);
    let ids = queue
        .probe
        .snapshot()
        .framed_children()
        .keys()
        .cloned()
        .collect::<Vec<_>>();
    assert_eq!(ids.len(), 3);
    let mut packed = Packer::default();
    packed.array(9);
    for id in &ids {
        let key = format!("{}:{id}", queue.probe.keys.qualified_name);
        packed.str(&other.probe.keys.base).str("r").str(&key);
    }
    assert_eq!(
        run_once!(queue, REMOVE_DESCENDANTS, 1010, 1, packed.0.as_slice()),
        "[1 1 1]"
    );
    // a frame goes with the last of its jobs
    queue.key_is("log", "(none)");
}

#[test]
fn a_step_sent_again_tells_of_the_same_children() {
    let mut queue = family();
    run_once!(queue, REMOVE_JOB, 1010, "r", 0);
    let some = kin(&queue, &[("r", "a"), ("r", "b")]);
    let remove = |queue: &mut TestQueue| run!(queue, REMOVE_DESCENDANTS, 1011, "c", "b", 1, 1, some.as_slice());
    assert_eq!(remove(&mut queue), "[1 1]");
    let keys = queue.show();
    queue.skip_events();
    // of what is below those that stay nothing is removed
    assert_eq!(remove(&mut queue), "[1 1]");
    queue.keys_are(&keys);
    queue.events_are("");
}
