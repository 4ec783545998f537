//! What a job waits for -> gone

use crate::given::{
    queue::{run, run_once, TestQueue},
    step::{of, Fail, Step},
    tree::Tree,
};

#[test]
fn children_and_theirs_go_and_the_parent_starts() {
    let (mut queue, mut other) = (TestQueue::fresh(), TestQueue::fresh());
    let tree = Tree::new()
        .root("r")
        .child("r", "a")
        .to(&other.probe.keys)
        .child("a", "b")
        .child("r", "repeat:x:1");
    queue.add_flows(1000, &tree);
    queue.skip_events();
    other.skip_events();
    assert_eq!(run_once!(queue, REMOVE_CHILDREN, 1010, "r"), "0");
    queue.keys_are(
        "front: r
         gone: b=1 repeat:x:1=1
         jobs: r=[1000 {} a 1]
         log: 3-r1(b repeat:x:1)
         parents: r
         state: id=3 waiting=1 references=1 gone=2
         vitals: r={ch:1}
         wake: set",
    );
    other.keys_are("state: id=1\nwake: set");
    // its own child went first
    other.events_are("[X waiting [a] prev waiting-children] [X removed [a] prev wait]");
}

#[test]
fn what_is_held_or_has_failed_stays() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new().root("r").child("r", "a").child("r", "b").child("r", "c");
    queue.add_flows(1000, &tree);
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
    queue.skip_events();
    run_once!(queue, REMOVE_CHILDREN, 1010, "r");
    queue.key_is("children:r", "q:a q:b");
    queue.events_are("[X removed [c] prev wait]");
}

#[test]
fn a_job_without_children_loses_nothing() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &Tree::new().root("r").child("r", "a"));
    let keys = queue.show();
    for id in ["a", "z"] {
        run_once!(queue, REMOVE_CHILDREN, 1010, id);
    }
    queue.keys_are(&keys);
}

#[test]
fn a_call_sent_again_leaves_children_that_came_since() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &Tree::new().root("r").child("r", "a"));
    let remove = |queue: &mut TestQueue| run!(queue, REMOVE_CHILDREN, 1010, "c", "b", 1, "r");
    assert_eq!(remove(&mut queue), "0");
    queue.add_flows(1020, &Tree::new().root("s").child("s", "a"));
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(remove(&mut queue), "0");
    queue.keys_are(&keys);
    queue.events_are("");
}
