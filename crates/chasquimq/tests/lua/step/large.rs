//! Batches of more jobs than one call of Redis takes arguments.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::{at, of, Fail, Place, Step},
};

const RECORDS: u64 = 4500;
const FRAMES: u64 = 71;
const JOBS: u64 = RECORDS + FRAMES * 64;

/// Records first, then frames, all held by `w`; and the place of each.
fn taken() -> (TestQueue, Vec<Place>) {
    let mut plan = Plan::new();
    let mut places = Vec::new();
    for number in 1..=RECORDS {
        plan = plan.record("");
        places.push(of(&number.to_string()));
    }
    for frame in 0..FRAMES {
        plan = plan.frame(64);
        places.extend((0..64).map(|offset| at(RECORDS + 1 + 64 * frame, 64, offset)));
    }
    let mut queue = TestQueue::with(plan);
    queue.take_all(|| Step::by("w").want(JOBS as i64).max_bytes(1 << 30));
    let active = format!("[0 {JOBS} 0 0 0 0 0]");
    assert_eq!(run!(queue, COUNT_JOBS), active);
    (queue, places)
}

fn all_ids() -> String {
    (1..=JOBS)
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn all_complete_at_once_and_few_are_kept() {
    let (mut queue, _) = taken();
    let records: Vec<String> = (1..=RECORDS).map(|number| number.to_string()).collect();
    let records: Vec<(&str, &str)> = records.iter().map(|id| (id.as_str(), "1")).collect();
    let mut step = Step::by("w").at(1010).done_records(&records);
    for frame in 0..FRAMES {
        step = step.done(RECORDS + 1 + 64 * frame, 64, 0, 64);
    }
    queue.step(step);
    assert_eq!(run!(queue, COUNT_JOBS), format!("[0 0 {JOBS} 0 0 0 0]"));
    // a step drops a thousand records, or runs, more than ended in it
    for left in [JOBS - 1000, JOBS - 2000, JOBS - 3000] {
        end_one(&mut queue);
        assert_eq!(run!(queue, COUNT_JOBS), format!("[0 0 {left} 0 0 0 0]"));
    }
    for _ in 0..RECORDS / 1000 {
        end_one(&mut queue);
    }
    assert_eq!(run!(queue, COUNT_JOBS), "[0 0 10 0 0 0 0]");
}

fn end_one(queue: &mut TestQueue) {
    queue.add(1020, Plan::new().record(""));
    let id = queue.probe.snapshot().state("id").to_string();
    queue.step(Step::by("w").at(1020).want(1));
    queue.step(Step::by("w").at(1020).keep(10, -1.0, 1000).done_record(&id, ""));
}

#[test]
fn all_fail_at_once_and_few_are_kept() {
    let (mut queue, places) = taken();
    let mut step = Step::by("w").at(1010).keep(10, -1.0, 1000);
    for place in &places {
        step = step.fail(place, &Fail::to("failed"));
    }
    queue.step(step);
    assert_eq!(run!(queue, COUNT_JOBS), "[0 0 0 10 0 0 0]");
    assert_eq!(queue.probe.snapshot().hash("jobs").len(), 10);
}

#[test]
fn all_are_tried_again_in_order() {
    for (to, key) in [("waiting", "log"), ("front", "front"), ("delayed", "delayed")] {
        let (mut queue, places) = taken();
        let fail = Fail {
            due_ms: 2000,
            ..Fail::to(to)
        };
        let mut step = Step::by("w").at(1010);
        for place in &places {
            step = step.fail(place, &fail);
        }
        queue.step(step);
        let snapshot = queue.probe.snapshot();
        let ids = match key {
            "delayed" => snapshot.set("delayed").iter().map(|(id, _)| id.clone()).collect(),
            _ => snapshot.line(),
        };
        if key == "delayed" {
            // more than the places of one millisecond
            assert_eq!(ids.len() as u64, JOBS);
        } else {
            let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            if key == "front" {
                // each went before those that were there
                ids.reverse();
            }
            assert_eq!(ids.join(" "), all_ids());
        }
    }
}

#[test]
fn all_are_given_back_in_order() {
    let (mut queue, places) = taken();
    let mut step = Step::by("w");
    for place in &places {
        step = step.back(place, false);
    }
    queue.step(step);
    queue.key_is("front", &all_ids());
}

#[test]
fn all_are_brought_back_in_order() {
    let (mut queue, _) = taken();
    queue.end_lease("w");
    queue.recover_stalled(1010, 60_000, 1);
    queue.key_is("front", &all_ids());
}

#[test]
fn all_are_due_at_once() {
    let mut plan = Plan::new();
    for _ in 0..JOBS {
        plan = plan.delayed("", 2000);
    }
    let mut queue = TestQueue::with(plan);
    while queue.probe.snapshot().state("waiting") < JOBS {
        queue.step(Step::by("w").at(2000).want(0));
    }
    // the first four thousand have places of their own in their millisecond
    let line = queue.probe.snapshot().line();
    let first: Vec<String> = (1..=4095).map(|number| number.to_string()).collect();
    assert_eq!(line[..4095], first);
    assert_eq!(line.len() as u64, JOBS);
}
