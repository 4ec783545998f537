//! What the end of children does to their parents.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{of, Fail, Place, Step},
    tree::Tree,
};

/// A parent `r`, its children `a` and `b`, which a worker has taken. The children have these options.
fn running(options: &str) -> TestQueue {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new()
        .root("r")
        .child_with("r", "a", options)
        .child_with("r", "b", options);
    queue.add_flows(1000, &tree);
    queue.step(Step::by("w").want(2));
    queue.skip_events();
    queue
}

#[test]
fn a_parent_starts_when_all_children_have_completed() {
    let mut queue = running("{}");
    queue.step(Step::by("w").done_record("a", "1"));
    queue.key_is("children:r", "q:b");
    queue.key_is("processed:r", "q:a=1");
    queue.key_is("waiting-children", "r@1000");
    queue.events_are("[X completed [a] returnvalue [1] prev active]");
    // it is taken by the step that ends its last child
    let reply = queue.step(Step::by("w").done_record("b", "").want(1));
    assert_eq!(reply, "[[] [0 r <[1000 {} a 1]> <{ch:1}> 1] -1 0 0]");
    queue.key_is("children:r", "(none)");
    queue.key_is("processed:r", "q:a=1 q:b=null");
    queue.key_is("waiting-children", "(none)");
    queue.events_are(
        "[X waiting [r] prev waiting-children] [X completed [b] returnvalue null prev active] [X active [r] prev waiting]",
    );
    queue.step(Step::by("w").done_record("r", "2"));
    queue.key_is("completed", "a@1000 b@1000 r@1000");
}

#[test]
fn parents_of_another_queue_start_there_once() {
    let (mut parents, mut children) = (TestQueue::fresh(), TestQueue::fresh());
    let mut tree = Tree::new();
    for parent in ["p", "q"] {
        tree = tree.root(parent);
        for i in 0..10 {
            tree = tree.child(parent, &format!("{parent}{i}")).to(&children.probe.keys);
        }
    }
    parents.add_flows(1000, &tree);
    parents.command("DEL", "wake", &[]);
    parents.skip_events();
    children.step(Step::by("w").want(20));
    let mut step = Step::by("w").at(1005);
    for i in 0..10 {
        step = step
            .done_record(&format!("p{i}"), "1")
            .done_record(&format!("q{i}"), "2");
    }
    children.step(step);
    // as if one had started after the other
    parents.key_is("front", "q p");
    parents.key_is("state", "id=2 waiting=2");
    parents.key_is("wake", "set");
    parents.events_are("[X waiting [p q] prev waiting-children]");
    let values = parents.probe.snapshot().families["p"].processed.len();
    assert_eq!(values, 10);
}

#[test]
fn a_parent_starts_by_its_own_priority_or_delay() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new()
        .root_with("p", r#"{"priority":2}"#)
        .child("p", "a")
        .root_with("d", r#"{"delay":500}"#)
        .child("d", "b");
    queue.add_flows(1000, &tree);
    queue.step(Step::by("w").want(2));
    queue.skip_events();
    queue.command("DEL", "wake", &[]);
    queue.step(Step::by("w").at(1100).done_record("a", "").done_record("b", ""));
    queue.key_is("prioritized", "p@2+1");
    queue.key_is("delayed", "d@1600+0");
    queue.key_is("wake", "set");
    queue.events_are(
        "[X delayed [d] delay [1600]] [X waiting [p] prev waiting-children] [X completed [a] returnvalue null prev active] \
         [X completed [b] returnvalue null prev active]",
    );
}

#[test]
fn parents_that_start_at_once_keep_their_order() {
    let mut queue = TestQueue::fresh();
    let mut tree = Tree::new();
    for i in 0..3 {
        tree = tree
            .root_with(&format!("p{i}"), r#"{"priority":2}"#)
            .child(&format!("p{i}"), &format!("a{i}"))
            .root_with(&format!("d{i}"), r#"{"delay":500}"#)
            .child(&format!("d{i}"), &format!("b{i}"));
    }
    queue.add_flows(1000, &tree);
    queue.step(Step::by("w").want(6));
    queue.skip_events();
    let mut step = Step::by("w").at(1100);
    for i in 0..3 {
        step = step.done_record(&format!("a{i}"), "").done_record(&format!("b{i}"), "");
    }
    queue.step(step);
    queue.key_is("prioritized", "p0@2+1 p1@2+2 p2@2+3");
    queue.key_is("delayed", "d0@1600+0 d1@1600+1 d2@1600+2");
}

/// The parent `r` of a worker that holds it, and its child `c` with these options, which it has added itself and holds as well.
fn beside_its_child(options: &str) -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().record("r"));
    queue.step(Step::by("w").number(1).want(1));
    let keys = queue.probe.keys.clone();
    queue.add_flows(1000, &Tree::new().child_of_with(&keys, "r", "c", options));
    queue.step(Step::by("w").number(2).want(1));
    queue.skip_events();
    queue
}

#[test]
fn a_parent_completes_in_the_step_in_which_its_child_ends() {
    type End = fn(Step) -> Step;
    let ends: [(&str, End); 4] = [
        ("{}", |step| step.done_record("c", "1")),
        (r#"{"ignoreDependencyOnFailure":true}"#, |step| {
            step.fail(&of("c"), &Fail::to("failed"))
        }),
        (r#"{"removeDependencyOnFailure":true}"#, |step| {
            step.fail(&of("c"), &Fail::to("failed"))
        }),
        (r#"{"continueParentOnFailure":true}"#, |step| {
            step.fail(&of("c"), &Fail::to("failed"))
        }),
    ];
    for (options, end) in ends {
        let mut queue = beside_its_child(options);
        assert_eq!(queue.step(end(Step::by("w").done_record("r", "2"))), "[[] [] -1 0 0]");
        assert_eq!(queue.probe.snapshot().state("active"), 0, "{options}");
        let mut queue = beside_its_child(options);
        let large = Step::by("w").done_large(&of("r"), "a large result");
        assert_eq!(queue.step(end(large)), "[[] [] -1 0 0]");
        queue.key_is("large", "rr=a large result");
    }
}

#[test]
fn a_parent_that_its_child_fails_in_the_same_step_is_refused() {
    let refused = |options: &str, code: &str, end: fn(Step) -> Step| {
        for large in [false, true] {
            let mut queue = beside_its_child(options);
            let step = match large {
                true => Step::by("w").done_large(&of("r"), "a large result"),
                false => Step::by("w").done_record("r", "2"),
            };
            let reply = queue.step(end(step));
            assert!(reply.starts_with(&format!("[[[0 r {code} ")), "{reply}");
            assert!(queue.show().contains("r=[1000 1 w ''"), "it is active no more");
        }
    };
    let fails: fn(Step) -> Step = |step| step.fail(&of("c"), &Fail::to("failed"));
    refused(r#"{"failParentOnFailure":true}"#, "-9", fails);
    refused("{}", "-4", fails);
    refused("{}", "-4", |step| step.fail(&of("c"), &Fail::to("delayed")));
    refused("{}", "-4", |step| step);
}

#[test]
fn a_parent_that_moved_itself_and_ends_all_the_same_starts_once_its_child_has_ended() {
    for (options, end) in [
        ("{}", (|step| step.done_record("c", "1")) as fn(Step) -> Step),
        (r#"{"failParentOnFailure":true}"#, |step| {
            step.fail(&of("c"), &Fail::to("failed"))
        }),
    ] {
        for is_first in [true, false] {
            let mut queue = beside_its_child(options);
            assert_eq!(
                run!(queue, MOVE_TO_WAITING_CHILDREN, 1000, "m", 0, 1, "r", "w", ""),
                "0"
            );
            queue.key_is("waiting-children", "r@1000");
            let step = match is_first {
                true => end(Step::by("w").done_record("r", "2")),
                false => end(Step::by("w")).done_record("r", "2"),
            };
            let reply = queue.step(step);
            assert!(reply.starts_with("[[[0 r -"), "{reply}");
            queue.key_is("waiting-children", "(none)");
            queue.key_is("front", "r");
        }
    }
}

#[test]
fn of_two_parents_the_one_whose_child_has_not_ended_is_refused() {
    let mut queue = TestQueue::with(Plan::new().record("r").record("s"));
    queue.step(Step::by("w").want(2));
    let keys = queue.probe.keys.clone();
    for (parent, child) in [("r", "c"), ("s", "d")] {
        queue.add_flows(1000, &Tree::new().child_of_with(&keys, parent, child, "{}"));
    }
    queue.step(Step::by("w").want(2));
    let step = Step::by("w")
        .done_records(&[("r", "1"), ("s", "2")])
        .done_record("d", "");
    let reply = queue.step(step);
    assert!(reply.starts_with("[[[0 r -4 "), "{reply}");
    queue.key_is("completed", "d@1000 s@1000");
}

#[test]
fn a_child_that_fails_is_waited_for() {
    let mut queue = running("{}");
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")).done_record("b", ""));
    queue.key_is("children:r", "q:a");
    queue.key_is("waiting-children", "r@1000");
}

#[test]
fn a_child_that_is_tried_again_changes_nothing() {
    let mut queue = running(r#"{"failParentOnFailure":true}"#);
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("waiting")));
    queue.key_is("children:r", "q:a q:b");
    queue.key_is("faults:r", "(none)");
}

#[test]
fn a_failed_child_that_is_not_kept_is_not_waited_for() {
    let mut queue = running("{}");
    queue.step(Step::by("w").keep(0, -1.0, 1000).fail(&of("a"), &Fail::to("failed")));
    queue.key_is("children:r", "q:b");
}

#[test]
fn a_failure_fails_the_parent_at_once() {
    let mut queue = running(r#"{"failParentOnFailure":true}"#);
    let reply = queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")).want(1));
    let child = format!("child {}:a failed", queue.probe.keys.qualified_name);
    assert_eq!(
        reply,
        format!("[[] [0 r <[1000 {{}} a 1]> <{{ch:1 df:{child}}}> 1] -1 0 0]")
    );
    queue.key_is("children:r", "q:b");
    queue.key_is("faults:r", "q:a");
    queue.key_is("waiting-children", "(none)");
}

#[test]
fn a_delayed_parent_fails_at_once_too() {
    let mut queue = TestQueue::with(Plan::new().delayed("r", 9000));
    let keys = queue.probe.keys.clone();
    let options = r#"{"failParentOnFailure":true}"#;
    queue.add_flows(1000, &Tree::new().child_of_with(&keys, "r", "a", options));
    queue.step(Step::by("w").want(1));
    queue.skip_events();
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
    queue.key_is("delayed", "(none)");
    queue.key_is("front", "r");
    queue.events_are("[X waiting [r] prev waiting-children] [X failed [a] failedReason [boom] prev active]");
}

#[test]
fn a_failure_starts_the_parent_at_once() {
    let mut queue = running(r#"{"continueParentOnFailure":true}"#);
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
    queue.key_is("children:r", "q:b");
    queue.key_is("ignored:r", "q:a=boom");
    queue.key_is("front", "r");
    // the other one is still waited for: the parent must not complete
    assert_eq!(
        queue.step(Step::by("w").want(1)),
        "[[] [0 r <[1000 {} a 1]> <{ch:1}> 1] -1 0 0]"
    );
    queue.add(1000, Plan::new().record("x").record("y"));
    // and keeps its place until it has failed
    assert_eq!(
        queue.step(Step::by("w").done_record("r", "").want(1)),
        "[[[0 r -4 0]] [] -1 0 1]"
    );
    assert_eq!(
        queue.step(Step::by("w").done_record("r", "").want(2)),
        "[[[0 r -4 0]] [0 x <[7 {} a 1]> '' 1] -1 0 1]"
    );
    queue.step(Step::by("w").done_record("b", "").done_record("r", ""));
    queue.key_is("completed", "b@1000 r@1000");
}

#[test]
fn a_failure_that_is_ignored_counts_as_done() {
    let mut queue = running(r#"{"ignoreDependencyOnFailure":true}"#);
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
    queue.key_is("waiting-children", "r@1000");
    queue.step(Step::by("w").fail(&of("b"), &Fail::to("failed")));
    queue.key_is("ignored:r", "q:a=boom q:b=boom");
    queue.key_is("front", "r");
}

#[test]
fn a_failure_that_is_forgotten_leaves_nothing() {
    let mut queue = running(r#"{"removeDependencyOnFailure":true}"#);
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")).done_record("b", "1"));
    queue.key_is("children:r", "(none)");
    queue.key_is("ignored:r", "(none)");
    queue.key_is("processed:r", "q:b=1");
    queue.key_is("front", "r");
}

#[test]
fn a_parent_with_a_failed_child_does_not_complete() {
    let mut queue = TestQueue::with(Plan::new().record("r"));
    let keys = queue.probe.keys.clone();
    queue.step(Step::by("w").want(1));
    let options = r#"{"failParentOnFailure":true}"#;
    queue.add_flows(1000, &Tree::new().child_of_with(&keys, "r", "a", options));
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
    assert_eq!(
        queue.step(Step::by("w").done_record("r", "")),
        "[[[0 r -9 0]] [] -1 0 0]"
    );
    queue.step(Step::by("w").fail(&of("r"), &Fail::to("failed")));
    queue.key_is("failed", "a@1000 r@1000");
}

#[test]
fn a_parent_that_left_its_frame_does_not_complete_with_a_large_result_either() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    let keys = queue.probe.keys.clone();
    queue.step(Step::by("w").want(1));
    queue.add_flows(
        1000,
        &Tree::new().child_of_with(&keys, "1", "a", r#"{"failParentOnFailure":true}"#),
    );
    let large = || Step::by("w").done_large(&Place::Frame(1, 1, 0), "large result");
    assert_eq!(queue.step(large()), "[[[1 0 -4 0]] [] -1 0 1]");
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
    assert_eq!(queue.step(large()), "[[[1 0 -9 0]] [] -1 0 0]");
}

#[test]
fn what_a_parent_knew_goes_with_it() {
    let mut queue = running("{}");
    queue.step(Step::by("w").done_record("a", "1").done_record("b", "2").want(1));
    queue.step(Step::by("w").keep(0, -1.0, 1000).done_record("r", ""));
    queue.keys_are(
        "completed: a@1000 b@1000
         jobs: a=[1000 {} a 1] b=[1000 {} a 1]
         lease:w: set
         state: cursor=3-r1 id=3 completed=2 references=1
         vitals: a={am:1 as:1 fo:1000 pa:[{q}: r ''] po:1000 rv:1} b={am:1 as:1 fo:1000 pa:[{q}: r ''] po:1000 rv:2}
         wake: set",
    );
}

#[test]
fn children_of_a_parent_that_is_gone_end_as_any_job() {
    let mut queue = running("{}");
    run_once!(queue, REMOVE_JOB, 1000, "r", 0);
    queue.step(Step::by("w").done_record("a", "1").done_record("b", "2"));
    queue.key_is("completed", "a@1000 b@1000");
    queue.key_is("processed:r", "(none)");
}

#[test]
fn values_stay_when_children_go() {
    let mut queue = running("{}");
    queue.step(
        Step::by("w")
            .keep(0, -1.0, 1000)
            .done_record("a", "1")
            .done_record("b", "2"),
    );
    queue.key_is("processed:r", "q:a=1 q:b=2");
    queue.key_is("front", "r");
}

#[test]
fn very_many_children_may_fail_their_parent_at_once() {
    let mut queue = TestQueue::fresh();
    let ids: Vec<String> = (0..5000).map(|i| format!("c{i}")).collect();
    let tree = ids.iter().fold(Tree::new().root("r"), |tree, id| {
        tree.child_with("r", id, r#"{"failParentOnFailure":true}"#)
    });
    queue.add_flows(1000, &tree);
    queue.take_all(|| Step::by("w").want(5000));
    let step = ids.iter().fold(Step::by("w").at(1005), |step, id| {
        step.fail(&of(id), &Fail::to("failed"))
    });
    queue.step(step);
    queue.key_is("children:r", "(none)");
    queue.key_is("waiting-children", "(none)");
    assert_eq!(queue.command("ZCARD", "faults:r", &[]), redis::Value::Int(5000));
}
