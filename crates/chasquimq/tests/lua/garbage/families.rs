//! The same for flows: what parents know of their children, and children of their parents.

use chasquimq::redis::call::library::{
    ADD_FLOWS, CLEAN_JOBS, LIST_ACTIVE, LIST_CHILDREN, LIST_JOBS, MOVE_TO_WAITING_CHILDREN, READ_DEPENDENCIES,
    READ_JOBS, REMOVE_CHILDREN, REMOVE_DEPENDENCY, REMOVE_DESCENDANTS, REMOVE_JOB, RETRY_JOB, STEP,
};

use super::play::Play;
use crate::{
    flows::active_children,
    given::{
        queue::TestQueue,
        step::{of, Fail, Place, Step},
        tree::Tree,
    },
    model::bulk::by_age,
    read_dependencies::{pages, WHOLE},
    read_jobs::by_ids,
};

const NAMES: [&str; 17] = [
    "parents",
    "waiting-children",
    "children:r",
    "children:v",
    "children:t",
    "spans:q",
    "spans:w",
    "processed:r",
    "ignored:r",
    "faults:v",
    "returned:t",
    "vitals",
    "jobs",
    "takes",
    "log",
    "active",
    "runs",
];
const PARENTS: [&str; 5] = ["r", "q", "t", "v", "w"];

/// Parents that wait for children in frames and for records, which wait, are held, and ended in every way.
fn families() -> (TestQueue, Vec<Place>) {
    let mut queue = TestQueue::fresh();
    let of_three = |tree: Tree, parent: &str| (0..3).fold(tree, |tree, _| tree.child(parent, ""));
    let tree = of_three(Tree::new().root("t"), "t");
    let tree = of_three(tree.root("r"), "r");
    let tree = of_three(tree.root("w"), "w");
    let tree = tree
        .child_with("r", "c", r#"{"ignoreDependencyOnFailure":true}"#)
        .child_with("r", "i", r#"{"ignoreDependencyOnFailure":true}"#)
        .child("r", "a")
        .root("v")
        .child_with("v", "f", r#"{"failParentOnFailure":true}"#)
        .child("v", "g")
        .child("t", "u")
        .child("u", "b");
    queue.add_flows(1000, &tree);
    queue.step(Step::by("w").at(1001).want(14));
    let held: Vec<Place> = active_children(&queue.probe.snapshot()).into_iter().flatten().collect();
    // all of t's, and one of r's
    let mut step = Step::by("w").at(1002).done_children(&held[0], &["1", "2", "3"]);
    step = step.done_children(&held[3], &["4"]);
    for id in ["c", "f"] {
        step = step.fail(&of(id), &Fail::to("failed"));
    }
    queue.step(step);
    queue.add_flows(1003, &of_three(Tree::new().root("q"), "q").child("q", "x"));
    queue.command("DEL", "lease:w", &[]);
    (queue, held)
}

/// Ids of all jobs: of records, and of children in frames.
fn all_ids(queue: &mut TestQueue) -> Vec<String> {
    let snapshot = queue.probe.snapshot();
    let framed = snapshot.framed_children().into_keys();
    framed.chain(snapshot.hash("jobs").keys().cloned()).collect()
}

impl Play {
    fn read_families(&mut self, what: &str, ids: &[&str]) {
        for wanted in [
            &WHOLE[..],
            &[("processed", 0, 2), ("children", 0, 2), ("faults", 0, -1)],
        ] {
            self.run(&READ_DEPENDENCIES, what, |call| {
                call.arg(by_ids(&PARENTS)).arg(pages(wanted));
            });
        }
        for whose in ["all", "held", "lost"] {
            self.run(&LIST_ACTIVE, what, |call| {
                call.arg(whose).arg("");
            });
        }
        for parent in PARENTS {
            self.run(&LIST_CHILDREN, what, |call| {
                call.arg(parent).arg(1).arg(1).arg(0);
            });
        }
        self.run(&READ_JOBS, what, |call| {
            call.arg(by_ids(ids));
        });
        for state in ["waiting-children", "waiting", "failed", "completed"] {
            self.run(&LIST_JOBS, what, |call| {
                call.arg(by_ids(&[state])).arg(0).arg(-1).arg(1).arg(0).arg("");
            });
        }
    }

    fn next_number(&mut self) -> u64 {
        self.queue.next_number()
    }

    /// Ends children that were held at first, all of a frame at once, as far as they are held by this worker; takes what can start.
    fn end_children(&mut self, what: &str, held: &[Place], owner: &str, at: u64) {
        let call = self.queue.step_call(&Step::by(owner).at(at).want(100));
        self.try_call(STEP.name, what, &call);
        let mut step = Step::by(owner).at(at + 1);
        for place in held {
            step = match self.random.below(4) {
                0 => step.fail(place, &Fail::to("failed")),
                1 => step.back(place, true),
                _ => step.done_children(place, &["1"]),
            };
        }
        for id in ["a", "b", "c", "f", "g", "i", "u", "x"].into_iter().chain(PARENTS) {
            step = match self.random.below(3) {
                0 => step.fail(&of(id), &Fail::to("failed")),
                _ => step.done_record(id, "1"),
            };
        }
        let call = self.queue.step_call(&step);
        self.try_call(STEP.name, what, &call);
        self.lose(owner, what, at + 2);
    }

    fn manage_families(&mut self, what: &str, ids: &[&str]) {
        let id = *self.random.pick(ids);
        let number = self.next_number();
        self.run(&MOVE_TO_WAITING_CHILDREN, what, |call| {
            call.arg(7000).arg("k").arg(0).arg(number).arg(id).arg("0").arg("");
        });
        for id in [*self.random.pick(ids), *self.random.pick(&PARENTS)] {
            let number = self.next_number();
            self.run(&REMOVE_DEPENDENCY, what, |call| {
                call.arg(7001).arg("k").arg(0).arg(number).arg(id);
            });
            for state in ["failed", "completed"] {
                self.run_once(&RETRY_JOB, Some(7002), what, |call| {
                    call.arg(id).arg(state).arg(0).arg(0).arg(0);
                });
            }
        }
        let keys = self.queue.probe.keys.clone();
        let number = self.next_number();
        let more = Tree::new().child_of(&keys, "r", "new").child_of(&keys, "q", id);
        let call = self.queue.add_flows_call(7003, number, &more);
        self.try_call(ADD_FLOWS.name, what, &call);
        for state in ["wait", "failed", "completed"] {
            let number = self.next_number();
            self.run(&CLEAN_JOBS, what, |call| {
                call.arg(7004).arg("k").arg("b").arg(number).arg(state);
                call.arg(by_age(9000)).arg(2).arg("").arg(0);
            });
        }
        let parent = *self.random.pick(&PARENTS);
        self.run_once(&REMOVE_CHILDREN, Some(7005), what, |call| {
            call.arg(parent);
        });
        let keys = self.queue.probe.keys.clone();
        let some = ids.iter().rev().take(3);
        let kin: Vec<String> = some
            .flat_map(|id| {
                [
                    keys.base.clone(),
                    "q".to_owned(),
                    format!("{}:{id}", keys.qualified_name),
                ]
            })
            .collect();
        let kin: Vec<&str> = kin.iter().map(String::as_str).collect();
        self.run_once(&REMOVE_DESCENDANTS, Some(7006), what, |call| {
            call.arg(1).arg(by_ids(&kin));
        });
        let (parent, with_children) = (*self.random.pick(&PARENTS), self.random.below(2));
        self.run_once(&REMOVE_JOB, Some(7006), what, |call| {
            call.arg(parent).arg(with_children);
        });
    }
}

#[test]
fn no_script_raises_for_a_family_that_it_did_not_write() {
    let (mut queue, held) = families();
    let ids = all_ids(&mut queue);
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    Play::with(queue).seeds(&NAMES, |play, what| {
        let order = play.random.below(3);
        if order == 0 {
            play.read_families(what, &ids);
            play.manage_families(what, &ids);
        }
        play.end_children(what, &held, "a", 4500);
        play.manage_families(what, &ids);
        play.end_children(what, &held, "b", 6000);
        play.read_families(what, &ids);
    });
}
