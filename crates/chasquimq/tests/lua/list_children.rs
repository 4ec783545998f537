//! Children that a job has or had, by steps.

use std::collections::BTreeSet;

use chasquimq::redis::call::library::LIST_CHILDREN;

use crate::given::{
    queue::TestQueue,
    step::{of, Fail, Step},
    tree::Tree,
};

type Part = (Vec<String>, Vec<String>);

/// One step: where the next one starts, and the keys of those that are waited for and of those that have ended.
fn list(queue: &mut TestQueue, ended: u8, from: (u64, &str)) -> ((u64, String), [BTreeSet<String>; 2]) {
    let mut call = queue.call(&LIST_CHILDREN);
    call.arg("r").arg(ended).arg(from.0).arg(from.1);
    let (kind, cursor, pending, gone): (u64, String, Part, Part) =
        redis::from_redis_value(queue.carry_out_value(&call)).expect("a step");
    let front = format!("{}:", queue.probe.keys.qualified_name);
    let keys = |part: Part| part.1.iter().map(|key| key.replace(&front, "")).collect();
    ((kind, cursor), [keys(pending), keys(gone)])
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn those_that_are_waited_for_are_told_apart() {
    let mut queue = TestQueue::fresh();
    let policy = r#"{"ignoreDependencyOnFailure":true}"#;
    let tree = Tree::new().root("r").child("r", "a").child_with("r", "b", policy);
    let tree = tree.child_with("r", "c", r#"{"failParentOnFailure":true}"#);
    queue.add_flows(1000, &tree.child("r", "d"));
    queue.step(Step::by("w").want(3));
    queue.step(Step::by("w").done_record("a", "1"));
    queue.step(Step::by("w").fail(&of("b"), &Fail::to("failed")));
    let done = (0, "0".to_owned());
    let pending = set(&["c", "d"]);
    assert_eq!(
        list(&mut queue, 0, (1, "0")),
        (done.clone(), [pending.clone(), set(&[])])
    );
    assert_eq!(
        list(&mut queue, 1, (1, "0")),
        (done.clone(), [pending, set(&["a", "b"])])
    );
    queue.step(Step::by("w").fail(&of("c"), &Fail::to("failed")));
    let ended = set(&["a", "b", "c"]);
    assert_eq!(list(&mut queue, 1, (1, "0")), (done, [set(&["d"]), ended]));
}

#[test]
fn very_many_come_by_steps() {
    let mut queue = TestQueue::fresh();
    let mut tree = Tree::new().root("r");
    for i in 0..2_500 {
        tree = tree.child("r", &format!("c{i}"));
    }
    queue.add_flows(1000, &tree);
    let (mut from, mut found, mut steps) = ((1, "0".to_owned()), BTreeSet::new(), 0);
    while from.0 > 0 {
        let (next, [pending, _]) = list(&mut queue, 1, (from.0, &from.1));
        assert!(pending.len() < 2_000, "{} in one step", pending.len());
        found.extend(pending);
        from = next;
        steps += 1;
    }
    assert_eq!(found.len(), 2_500);
    assert!(steps >= 2);
}
