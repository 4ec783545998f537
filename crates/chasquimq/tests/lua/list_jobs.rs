//! Gives jobs by state and rank.

use chasquimq::msgpack::Packer;

use super::read_jobs::{by_ids, full};
use crate::given::{
    plan::Plan,
    queue::{run, run_once, show_reply, TestQueue},
    step::Step,
};

/// Ids of the answer. Each job must be the one that is found by its id.
fn ids(queue: &mut TestQueue, types: &[&str], start: i64, stop: i64, ascending: bool) -> String {
    let (jobs, _) = queue.list(types, start, stop, ascending, false);
    let found: Vec<String> = jobs.iter().map(|job| show_reply(&job[0])).collect();
    let wanted: Vec<&str> = found.iter().map(String::as_str).collect();
    let shown: Vec<String> = jobs.iter().flatten().map(show_reply).collect();
    let by_id = run!(queue, READ_JOBS, by_ids(&wanted));
    // state fields that are empty are nothing, or an empty array
    let shown = format!("[{}]", shown.join(" ")).replace("<[7 {} a 1]> '' ''", "<[7 {} a 1]> <[]> ''");
    assert_eq!(shown, by_id);
    let (alone, _) = queue.list(types, start, stop, ascending, true);
    let alone: Vec<String> = alone.iter().map(|job| show_reply(&job[0])).collect();
    assert_eq!(alone, found);
    found.join(" ")
}

#[test]
fn reading_changes_nothing() {
    let mut queue = full();
    let keys = queue.show();
    queue.skip_events();
    let states = ["waiting", "active", "completed", "failed", "delayed", "nobody"];
    ids(&mut queue, &states, 0, -1, true);
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn every_state_has_an_order() {
    let mut queue = full();
    for (state, expected) in [
        ("waiting", "z 7 8 9"),
        ("wait", "z 7 8 9"),
        ("active", "3 x"),
        ("completed", "1 2 y"),
        ("failed", "f 4"),
        ("delayed", "e d"),
        ("prioritized", ""),
        ("waiting-children", ""),
        ("paused", ""),
    ] {
        assert_eq!(ids(&mut queue, &[state], 0, -1, true), expected, "{state}");
        let reversed: Vec<&str> = expected.split_whitespace().rev().collect();
        assert_eq!(ids(&mut queue, &[state], 0, -1, false), reversed.join(" "), "{state}");
    }
    assert_eq!(ids(&mut queue, &["failed", "delayed"], 0, 0, true), "f e");
    assert_eq!(ids(&mut queue, &["failed", "delayed"], 0, 0, false), "4 d");
}

#[test]
fn ranks_count_jobs_and_not_entries() {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x").record("y").frame(2));
    run_once!(queue, REMOVE_JOB, 1001, "2", 0);
    run_once!(queue, REMOVE_JOB, 1001, "x", 0);
    run_once!(queue, UPDATE_JOB, 1001, "7", "progress", "1");
    let line = ["1", "3", "y", "6", "7"];
    for (start, stop, from, to) in [
        (0, 0, 0, 1),
        (1, 2, 1, 3),
        (-2, -1, 3, 5),
        (3, 99, 3, 5),
        (-99, 1, 0, 2),
        (4, 2, 0, 0),
        (5, 9, 0, 0),
    ] {
        assert_eq!(
            ids(&mut queue, &["waiting"], start, stop, true),
            line[from..to].join(" "),
            "{start}..{stop}"
        );
    }
    assert_eq!(ids(&mut queue, &["waiting"], 0, 1, false), "7 6");
    assert_eq!(ids(&mut queue, &["waiting"], -2, -1, false), "3 1");
}

#[test]
fn completed_jobs_of_a_run_are_ranked_one_by_one() {
    let mut queue = TestQueue::with(Plan::new().frame(4).record("x").frame(2));
    queue.step(Step::by("w").want(7));
    queue.step(Step::by("w").at(1001).done(1, 4, 0, 4));
    queue.step(Step::by("w").at(1002).done_record("x", ""));
    queue.step(Step::by("w").at(1003).done(6, 2, 0, 2));
    assert_eq!(ids(&mut queue, &["completed"], 2, 5, true), "3 4 x 6");
    assert_eq!(ids(&mut queue, &["completed"], 0, 3, false), "7 6 x 4");
    assert_eq!(ids(&mut queue, &["completed"], -2, -1, true), "6 7");
}

#[test]
fn active_jobs_are_ranked_by_their_start() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("nan").record("x").frame(1));
    queue.step(Step::by("w").at(1002).want(1));
    queue.step(Step::by("v").at(1001).want(1));
    queue.step(Step::by("w").at(1002).want(2));
    queue.step(Step::by("v").at(1002).want(1));
    assert_eq!(ids(&mut queue, &["active"], 0, -1, true), "2 1 5 nan x");
    assert_eq!(ids(&mut queue, &["active"], 0, 1, false), "x nan");
}

/// The ids of a state that another way of asking gives, and each range of them.
fn every_range(queue: &mut TestQueue, state: &str, expected: &[String]) {
    let len = expected.len() as i64;
    let some = [0, 1, 2, len / 3, len / 2, len - 1000, len - 70, len - 1];
    for start in some {
        for count in [1, 2, 63, 1000, len] {
            let (from, to) = (start.clamp(0, len), (start + count).clamp(0, len));
            for ascending in [true, false] {
                let (jobs, _) = queue.list(&[state], from, to - 1, ascending, true);
                let found: Vec<String> = jobs.iter().map(|job| show_reply(&job[0])).collect();
                let mut all = expected.to_vec();
                if !ascending {
                    all.reverse();
                }
                if to == 0 {
                    // a last rank of -1 is the end
                    continue;
                }
                assert_eq!(
                    found,
                    all[from as usize..to as usize],
                    "{state} {from}..{to} {ascending}"
                );
            }
        }
    }
}

#[test]
fn a_long_line_is_read_in_steps_from_either_end() {
    let mut plan = Plan::new();
    for number in 0..1500 {
        plan = match number % 5 {
            0 => plan.record(""),
            1 => plan.front(&format!("f{number}")),
            _ => plan.frame(1 + number % 3),
        };
    }
    let mut queue = TestQueue::with(plan);
    for id in ["100", "200", "2000"] {
        run_once!(queue, UPDATE_JOB, 1001, id, "progress", "1");
    }
    run_once!(queue, REMOVE_JOB, 1001, "201", 0);
    let (jobs, steps) = queue.list(&["waiting"], 0, -1, true, false);
    let line: Vec<String> = jobs.iter().map(|job| show_reply(&job[0])).collect();
    assert!(steps > 2, "{steps} steps");
    assert_eq!(
        line.len(),
        run!(queue, COUNT_JOBS)
            .split(' ')
            .next()
            .map_or(0, |text| text[1..].parse().expect("a number"))
    );
    assert!(line.iter().all(|id| id != "201"));
    every_range(&mut queue, "waiting", &line);
    // with a stale reference, every walk starts at the head
    let first = line.iter().position(|id| id == "1").expect("the first record");
    run_once!(queue, REMOVE_JOB, 1001, "1", 0);
    let mut line = line;
    line.remove(first);
    every_range(&mut queue, "waiting", &line);
}

#[test]
fn many_completed_jobs_are_read_in_steps_from_either_end() {
    let mut plan = Plan::new();
    for number in 0..200 {
        plan = if number % 3 == 0 {
            plan.record("")
        } else {
            plan.frame(20)
        };
    }
    let mut queue = TestQueue::with(plan);
    let (jobs, _) = queue.list(&["waiting"], 0, -1, true, true);
    let line: Vec<String> = jobs.iter().map(|job| show_reply(&job[0])).collect();
    queue.step(Step::by("w").want(line.len() as i64));
    let mut first = 1;
    for number in 0..200 {
        let step = Step::by("w").at(2000 + number);
        if number % 3 == 0 {
            queue.step(step.done_record(&first.to_string(), ""));
            first += 1;
        } else {
            let step = step.done(first, 20, 0, 7);
            queue.step(step.done_with(first, 20, 7, &["1"; 13]));
            first += 20;
        }
    }
    let (jobs, steps) = queue.list(&["completed"], 0, -1, true, false);
    let ended: Vec<String> = jobs.iter().map(|job| show_reply(&job[0])).collect();
    assert!(steps > 1, "{steps} steps");
    let mut sorted = ended.clone();
    sorted.sort_by_key(|id| id.parse::<u64>().expect("a number"));
    let mut expected = line.clone();
    expected.sort_by_key(|id| id.parse::<u64>().expect("a number"));
    assert_eq!(sorted, expected);
    every_range(&mut queue, "completed", &ended);
}

/// Makes the bodies of records as long as a body can be; or what is known of their failures.
fn swell(queue: &mut TestQueue, hash: &str, ids: &[String], bytes: usize) {
    let mut set = redis::cmd("HSET");
    set.arg(queue.probe.keys.key(hash));
    for id in ids {
        let mut value = Packer::default();
        match hash {
            "jobs" => {
                let data = format!("\"{}\"", "d".repeat(bytes));
                value.array(4).int(7).str("{}").str("a").str(&data);
            }
            _ => drop(value.map(1).str("fr").str(&"f".repeat(bytes))),
        }
        set.arg(id).arg(value.0);
    }
    queue.carry_out_unchecked(&set);
}

#[test]
fn large_records_are_read_a_few_at_a_time() {
    let all: Vec<String> = (0..60).map(|i| format!("r{i:02}")).collect();
    let (small, large) = all.split_at(30);
    // those of one entry of the log, of a set, and of the front list
    for state in ["waiting", "delayed", "front"] {
        for hash in ["jobs", "vitals"] {
            let mut plan = Plan::new();
            for id in &all {
                plan = match state {
                    "front" => plan.front(&all[59 - all.iter().position(|other| other == id).expect("an id")]),
                    _ => plan.delayed(id, 2000),
                };
            }
            let mut queue = TestQueue::with(plan);
            if state == "waiting" {
                assert_eq!(run!(queue, PROMOTE_JOBS, 1010, 100), "[60 0]");
            }
            // small ones before large ones tell nothing of these
            swell(&mut queue, "jobs", small, 10);
            swell(&mut queue, hash, large, 200_000);
            let listed = if state == "front" { "waiting" } else { state };
            for ascending in [true, false] {
                let (jobs, steps) = queue.list(&[listed], 0, -1, ascending, false);
                assert!((5..=8).contains(&steps), "{state} {hash}: {steps} steps");
                let mut found: Vec<String> = jobs.iter().map(|job| show_reply(&job[0])).collect();
                if !ascending {
                    found.reverse();
                }
                assert_eq!(found, all, "{state} {hash} {ascending}");
                assert_eq!(queue.list(&[listed], 0, -1, ascending, true).1, 1);
            }
        }
    }
}

#[test]
fn a_stale_reference_stays_stale_however_a_step_ends() {
    let mut plan = Plan::new();
    let all: Vec<String> = (0..20).map(|i| format!("r{i:02}")).collect();
    for id in &all {
        plan = plan.delayed(id, 2000);
    }
    let mut queue = TestQueue::with(plan);
    run!(queue, PROMOTE_JOBS, 1010, 100);
    // it leaves its place in the waiting list, and comes back behind the others
    run_once!(queue, CHANGE_PRIORITY; "r01", 5, 0);
    run_once!(queue, CHANGE_PRIORITY; "r01", 0, 0);
    swell(&mut queue, "jobs", &all, 200_000);
    let (order, _) = queue.list(&["waiting"], 0, -1, true, true);
    let order: Vec<String> = order.iter().map(|job| show_reply(&job[0])).collect();
    let (jobs, steps) = queue.list(&["waiting"], 0, -1, true, false);
    assert!(steps > 2, "{steps}");
    let found: Vec<String> = jobs.iter().map(|job| show_reply(&job[0])).collect();
    assert_eq!(found, order);
    assert_eq!(found.len(), 20);
}
