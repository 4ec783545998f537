//! new -> waiting | prioritized | delayed | waiting-children, for trees and for children of parents that exist

use chasquimq::frame::child_id;

use super::read_dependencies;
use crate::given::{
    plan::Plan,
    queue::{run, run_once, show_reply, Forbidden, TestQueue},
    step::{of, Fail, Place, Step},
    tree::Tree,
};

fn family() -> Tree {
    Tree::new().root("r").child("r", "a").child("r", "b")
}

#[test]
fn a_parent_is_parked_and_its_children_wait() {
    let mut queue = TestQueue::fresh();
    assert_eq!(queue.add_flows(1000, &family()), "[]");
    queue.keys_are(
        "children:r: q:a q:b
         jobs: a=[1000 {} a 1] b=[1000 {} a 1] r=[1000 {} a 1]
         log: 3-r1(a b)
         parents: r
         state: id=3 waiting=2 references=1
         vitals: a={pa:[{q}: r '']} b={pa:[{q}: r '']} r={ch:1}
         waiting-children: r@1000
         wake: set",
    );
    queue.events_are("[B [r] 1 [a] waiting-children] [B [a b] 2 [a a] waiting]");
}

#[test]
fn children_may_lie_in_another_queue() {
    let (mut queue, mut other) = (TestQueue::fresh(), TestQueue::fresh());
    let tree = Tree::new().root("r").child("r", "a").to(&other.probe.keys);
    queue.add_flows(1000, &tree);
    queue.key_is("waiting-children", "r@1000");
    queue.events_are("[B [r] 1 [a] waiting-children]");
    other.key_is("log", "1-r1(a)");
    other.key_is("wake", "set");
    other.events_are("[B [a] 1 [a] waiting]");
    let base = &queue.probe.keys.base;
    other.key_is("vitals", &format!("a={{pa:[{base} r '']}}"));
}

#[test]
fn parents_are_parked_by_their_timestamps() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new().root_with("r", r#"{"timestamp":900}"#).child("r", "a");
    queue.add_flows(1000, &tree);
    queue.key_is("waiting-children", "r@900");
}

#[test]
fn jobs_enter_by_their_own_options_and_parents_by_none() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new()
        .root_with("r", r#"{"delay":500}"#)
        .child_with("r", "d", r#"{"delay":500}"#)
        .child_with("r", "p", r#"{"priority":3,"failParentOnFailure":true}"#)
        .child_with("r", "l", r#"{"lifo":true}"#);
    queue.add_flows(1000, &tree);
    queue.key_is("waiting-children", "r@1000");
    queue.key_is("delayed", "d@1500+0");
    queue.key_is("prioritized", "p@3+1");
    queue.key_is("front", "l");
    queue.key_is(
        "vitals",
        "d={pa:[{q}: r '']} l={pa:[{q}: r '']} p={pa:[{q}: r f]} r={ch:1 d:500}",
    );
    queue.events_are("[B [r] 1 [a] waiting-children] [B [d] 1 [a] delayed [1500]] [B [p l] 2 [a a] waiting]");
}

#[test]
fn flows_sent_again_are_added_once() {
    let mut queue = TestQueue::fresh();
    queue.add_flows_numbered(1000, 5, &family());
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(queue.add_flows_numbered(1001, 5, &family()), "[]");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_child_is_added_to_a_job_that_exists() {
    let mut queue = TestQueue::with(Plan::new().frame(2));
    queue.skip_events();
    let keys = queue.probe.keys.clone();
    assert_eq!(queue.add_flows(1000, &Tree::new().child_of(&keys, "2", "")), "[0 3]");
    queue.keys_are(
        "children:2: q:3
         holes: 1=1r
         jobs: 2=[7 {} a 2] 3=[1000 {} a 1]
         log: 1-2 3-r1(3)
         parents: 2
         state: id=3 waiting=3 references=1 holes=1
         vitals: 2={ch:1} 3={pa:[{q}: 2 '']}
         wake: set",
    );
    queue.events_are("[B [3] 1 [a] waiting]");
}

#[test]
fn a_tree_without_its_parent_is_left_out() {
    let mut queue = TestQueue::fresh();
    let keys = queue.probe.keys.clone();
    let tree = Tree::new().child_of(&keys, "nobody", "x").child("x", "y").root("z");
    assert_eq!(queue.add_flows(1000, &tree), "[0 -5]");
    queue.keys_are(
        "jobs: z=[1000 {} a 1]
         log: 1-r1(z)
         state: id=1 waiting=1 references=1
         wake: set",
    );
}

#[test]
fn a_child_that_exists_is_linked_again() {
    let mut queue = TestQueue::with(Plan::new().record("a"));
    queue.skip_events();
    assert_eq!(queue.add_flows(1000, &family()), "[]");
    queue.key_is("children:r", "q:a q:b");
    queue.key_is("state", "id=4 waiting=2 references=2");
    queue.events_are("[B [r] 1 [a] waiting-children] [X duplicated [a]] [B [b] 1 [a] waiting]");
}

#[test]
fn a_child_that_has_completed_counts_as_processed() {
    let mut queue = TestQueue::with(Plan::new().record("a"));
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").done_record("a", "7"));
    queue.skip_events();
    queue.add_flows(2000, &Tree::new().root("r").child("r", "a"));
    queue.key_is("processed:r", "q:a=7");
    queue.key_is("children:r", "(none)");
    queue.key_is("waiting-children", "(none)");
    queue.key_is("front", "r");
    queue.events_are("[B [r] 1 [a] waiting-children] [X duplicated [a]] [X waiting [r] prev waiting-children]");
}

#[test]
fn a_child_of_another_parent_stays_with_it() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &family());
    let keys = queue.probe.keys.clone();
    queue.add_flows(1000, &Tree::new().root("s").child("s", "c"));
    assert_eq!(queue.add_flows(1000, &Tree::new().child_of(&keys, "s", "a")), "[0 -7]");
    queue.key_is("children:s", "q:c");
    queue.skip_events();
    // the only child stays with its own parent: this one does not run without it
    assert_eq!(queue.add_flows(1000, &Tree::new().root("t").child("t", "b")), "[1 -7]");
    queue.key_is("front", "(none)");
    queue.events_are("[B [t] 1 [a] waiting-children]");
}

#[test]
fn a_lone_job_may_yield_to_another() {
    let mut queue = TestQueue::fresh();
    let lone = |id: &str| Tree::new().root_with(id, r#"{"deduplication":{"id":"d"}}"#);
    assert_eq!(queue.add_flows(1000, &lone("x")), "[]");
    assert_eq!(queue.add_flows(1000, &lone("y")), "[0 x]");
    queue.key_is("de:d", "x");
    queue.key_is("log", "1-r1(x)");
}

#[test]
fn of_a_root_that_yields_nothing_is_added() {
    let (mut queue, mut other) = (TestQueue::fresh(), TestQueue::fresh());
    let root = r#"{"deduplication":{"id":"d"}}"#;
    let flow = |first: &str, second: &str, other: &TestQueue| {
        // of the second root a child lies where the first call adds, its own child where the first root lies
        Tree::new()
            .root_with(first, root)
            .root_with(second, root)
            .to(&other.probe.keys)
            .child(first, &format!("{first}a"))
            .to(&other.probe.keys)
            .child(second, &format!("{second}b"))
            .child(&format!("{second}b"), &format!("{second}c"))
            .to(&other.probe.keys)
            .child(first, "")
    };
    let first = flow("r", "s", &other);
    // the child without an id has a number
    assert_eq!(queue.add_flows(1000, &first), "[5 3]");
    let [keys, others_keys] = [queue.show(), other.show()];
    queue.skip_events();
    other.skip_events();
    let second = flow("x", "y", &other);
    assert_eq!(queue.add_flows(1001, &second), "[0 r 1 s]");
    // numbers are used up, by the two roots
    let stateless = |keys: &str| {
        let lines = keys.lines().filter(|line| !line.contains("state:"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(stateless(&queue.show()), stateless(&keys));
    assert_eq!(stateless(&other.show()), stateless(&others_keys));
    queue.events_are("[X deduplicated [r] deduplicationId d deduplicatedJobId x]");
    other.events_are("[X deduplicated [s] deduplicationId d deduplicatedJobId y]");
}

#[test]
fn an_id_whose_job_yielded_is_free_for_a_parent_behind_it() {
    let mut queue = TestQueue::fresh();
    let lone = |id: &str| Tree::new().root_with(id, r#"{"deduplication":{"id":"d"}}"#);
    queue.add_flows(1000, &lone("x"));
    assert_eq!(queue.add_flows(1001, &lone("y").root("y").child_of_last("a")), "[0 x]");
    queue.key_is("children:y", "q:a");
    queue.key_is("waiting-children", "y@1001");
}

#[test]
fn a_root_owns_its_deduplication_id_until_it_ends() {
    let ends: [fn(Step) -> Step; 3] = [
        |step| step.done_record("r", "1"),
        |step| step.done_large(&of("r"), "a large result"),
        |step| step.fail(&of("r"), &Fail::to("failed")),
    ];
    for end in ends {
        let mut queue = TestQueue::fresh();
        let root = r#"{"deduplication":{"id":"d"}}"#;
        queue.add_flows(1000, &Tree::new().root_with("r", root).child("r", "a"));
        queue.step(Step::by("w").want(1));
        queue.step(Step::by("w").done_record("a", "").want(1));
        queue.key_is("de:d", "r");
        queue.step(end(Step::by("w")));
        queue.key_is("de:d", "(none)");
    }
}

#[test]
fn what_was_added_runs_children_first() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(1000, &family());
    assert_eq!(run!(queue, COUNT_JOBS), "[2 0 0 0 0 0 1]");
    queue.step(Step::by("w").want(3));
    queue.key_is("waiting-children", "r@1000");
}

#[test]
fn flows_are_refused_as_a_whole() {
    let (mut queue, mut other) = (TestQueue::fresh(), TestQueue::fresh());
    let tree = Tree::new().root("r").child("r", "a").to(&other.probe.keys);
    for command in ["hset", "sadd"] {
        let call = queue.add_flows_call(1000, 7, &tree);
        let refused = call
            .exec(&mut Forbidden::command(command).connection)
            .expect_err(command);
        assert_eq!(refused.code(), Some("NOPERM"));
    }
    other.command("SET", "jobs", &["somebody's"]);
    let call = queue.add_flows_call(1000, 7, &tree);
    assert!(call.exec(&mut queue.probe.connection).is_err());
    other.command("DEL", "jobs", &[]);
    queue.keys_are("");
    other.keys_are("");
    queue.add_flows_numbered(1000, 7, &tree);
    queue.key_is("children:r", &format!("{}:a", other.probe.keys.qualified_name));
}

/// What is read of a parent's children.
fn dependencies(queue: &mut TestQueue, parent: &str, pages: &[(&str, i64, i64)]) -> String {
    let name = queue.probe.keys.qualified_name.clone();
    read_dependencies::read(queue, &[parent], pages).replace(&name, "q")
}

/// A queue with frames of children: r waits for 1, 2 (and its own), s for 3; and what their ids begin with.
fn litter() -> (TestQueue, String) {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new()
        .root("r")
        .root("s")
        .child("r", "")
        .child("r", "")
        .child("s", "")
        .child("r", "own");
    queue.add_flows(1000, &tree);
    let ids = queue
        .probe
        .snapshot()
        .header(3)
        .expect("a frame of children")
        .ids
        .to_owned();
    (queue, ids)
}

#[test]
fn a_log_that_another_program_wrote_to_takes_frames_of_children() {
    let mut queue = TestQueue::fresh();
    queue.command("XADD", "log", &["9-9", "other", "entry"]);
    let tree = Tree::new().root("r").child("r", "").child("r", "");
    queue.add_flows(1000, &tree);
    queue.key_is("log", "2-2");
    queue.key_is("front", "unreadable-9-9");
}

#[test]
fn children_without_ids_lie_in_frames() {
    let (mut queue, ids) = litter();
    assert!(ids.len() == 24 && ids.as_bytes()[14] == b'4', "{ids}");
    queue.key_is("log", "3-3 6-r1(own)");
    queue.key_is("spans:r", &format!("3+2 q:{ids}"));
    queue.key_is("spans:s", &format!("5+1 q:{ids}"));
    queue.key_is("children:r", "q:own");
    queue.key_is("state", "id=6 waiting=4 references=1");
    let told: Vec<(String, String)> = queue
        .told()
        .into_iter()
        .map(|event| (event.name, event.fields[0].1.clone()))
        .collect();
    let child = |number: u64| child_id(&ids, number);
    let expected = [
        ("added", "r".to_owned()),
        ("waiting-children", "r".to_owned()),
        ("added", "s".to_owned()),
        ("waiting-children", "s".to_owned()),
        ("added", child(3)),
        ("waiting", child(3)),
        ("added", child(4)),
        ("waiting", child(4)),
        ("added", child(5)),
        ("waiting", child(5)),
        ("added", "own".to_owned()),
        ("waiting", "own".to_owned()),
    ];
    assert_eq!(told, expected.map(|(name, id)| (name.to_owned(), id)));
}

#[test]
fn children_that_end_together_are_told_of_together() {
    let (mut queue, ids) = litter();
    queue.step(Step::by("w").want(3));
    let from = Place::Child(3, 3, 0, ids.clone());
    queue.step(Step::by("w").at(1010).done_children(&from, &["1", "", "2"]));
    queue.key_is("spans:r", "(none)");
    queue.key_is("returned:r", &format!("3+2 q:{ids}=<[1 '']>"));
    queue.key_is("front", "s");
    let pages = [("processed", 0, 0), ("children", 0, 0)];
    let read = format!("[0 [q:{} 1 q:{} null] 0 [q:own]]", child_id(&ids, 3), child_id(&ids, 4));
    assert_eq!(dependencies(&mut queue, "r", &pages), read);
}

#[test]
fn a_child_that_ends_before_its_siblings_is_told_of_alone() {
    let (mut queue, ids) = litter();
    queue.step(Step::by("w").want(3));
    let from = Place::Child(3, 3, 1, ids.clone());
    queue.step(Step::by("w").at(1010).done_children(&from, &["1", "2"]));
    queue.key_is("spans:r", "(none)");
    queue.key_is("children:r", &format!("q:{} q:own", child_id(&ids, 3)));
    queue.key_is("processed:r", &format!("q:{}=1", child_id(&ids, 4)));
    queue.key_is("returned:s", &format!("5+1 q:{ids}=<[2]>"));
}

#[test]
fn pages_of_children_in_frames_begin_where_the_last_one_ended() {
    let (mut queue, ids) = litter();
    let key = |number: u64| format!("q:{}", child_id(&ids, number));
    const IN_SPANS: i64 = 1 << 50;
    let next = |number: i64| IN_SPANS + number;
    assert_eq!(dependencies(&mut queue, "r", &[("children", 0, -1)]), "[3 []]");
    // where small sets are hash tables, as before 7.2, one may be scanned further though it has no more
    let first = dependencies(&mut queue, "r", &[("children", 0, 1)]);
    assert!(
        first == format!("[{IN_SPANS} [q:own]]") || first.ends_with(" [q:own]]") || first.ends_with(" []]"),
        "{first}"
    );
    assert_eq!(
        dependencies(&mut queue, "r", &[("children", IN_SPANS, 1)]),
        format!("[{} [{}]]", next(3), key(3))
    );
    assert_eq!(
        dependencies(&mut queue, "r", &[("children", next(3), 9)]),
        format!("[0 [{}]]", key(4))
    );
    assert_eq!(
        dependencies(&mut queue, "r", &[("children", 0, 9)]),
        format!("[0 [q:own {} {}]]", key(3), key(4))
    );
}

#[test]
fn a_flow_is_refused_as_a_whole_by_any_of_its_queues_that_is_full() {
    let (mut queue, mut other) = (TestQueue::fresh(), TestQueue::fresh());
    run_once!(other, SET_LIMIT; "length", 1, "");
    let keys = [queue.show(), other.show()];
    let there = other.probe.keys.clone();
    let tree = |children: &[&str]| {
        let tree = Tree::new().root("r");
        children
            .iter()
            .fold(tree, |tree, child| tree.child("r", child).to(&there))
    };
    let [large, small] = [tree(&["a", "b"]), tree(&["a"])];
    let call = queue.add_flows_call(1000, 1, &large);
    assert_eq!(show_reply(&queue.carry_out_value(&call)), "[-12 2 0 1 1]");
    queue.keys_are(&keys[0]);
    other.keys_are(&keys[1]);
    assert_eq!(queue.add_flows(1000, &small), "[]");
    other.key_is("log", "1-r1(a)");
}
