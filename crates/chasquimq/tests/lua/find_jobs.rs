//! Gives, or counts, jobs of a state that a filter picks.

use chasquimq::{msgpack::Packer, redis::call::library::FIND_JOBS};
use redis::Value;

use super::{model::bulk::by_age, read_jobs::full};
use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{at, Fail, Step},
};

pub const STATES: [&str; 7] = [
    "waiting",
    "active",
    "delayed",
    "prioritized",
    "completed",
    "failed",
    "waiting-children",
];

/// A filter of times, and of a text under a name.
pub fn by_text(name: &str, text: &str) -> Vec<u8> {
    let mut filter = Packer::default();
    filter.map(3).str("before_ms").int(-1).str("after_ms").int(-1);
    filter.str(name).str(text);
    filter.0
}

pub fn by_name(name: &str) -> Vec<u8> {
    let mut filter = Packer::default();
    filter.map(3).str("before_ms").int(-1).str("after_ms").int(-1);
    filter.str("names").map(1).str(name).0.push(0xc3);
    filter.0
}

/// One that asks for all that lies in a job.
pub fn by_anything() -> Vec<u8> {
    let mut filter = Packer::default();
    filter.map(5).str("before_ms").int(9000).str("after_ms").int(1);
    filter.str("data").str("1").str("fields").str("{}");
    filter.str("names").map(1).str("a").0.push(0xc3);
    filter.0
}

/// Takes steps of `take` jobs until none is left. Gives ids, and how many steps that took.
pub fn find(queue: &mut TestQueue, state: &str, filter: &[u8], take: u64) -> (Vec<String>, u64) {
    let (mut ids, mut place, mut steps) = (Vec::new(), String::new(), 0);
    loop {
        let mut call = queue.call(&FIND_JOBS);
        call.arg(state).arg(filter).arg(&place).arg(take).arg(0);
        let (next, _, picked, jobs): (String, u64, usize, Vec<Value>) =
            redis::from_redis_value(queue.carry_out_value(&call)).expect("a step");
        assert_eq!(jobs.len(), 5 * picked);
        for job in jobs.chunks(5) {
            ids.push(redis::from_redis_value(job[0].clone()).expect("an id"));
        }
        (place, steps) = (next, steps + 1);
        if place.is_empty() {
            return (ids, steps);
        }
    }
}

fn ids(queue: &mut TestQueue, state: &str, filter: &[u8]) -> String {
    find(queue, state, filter, 1000).0.join(" ")
}

#[test]
fn nothing_is_there() {
    let mut queue = TestQueue::fresh();
    for state in STATES {
        assert_eq!(run!(queue, FIND_JOBS, state, by_age(-1), "", 10, 0), "['' 0 0 []]");
        assert_eq!(run!(queue, FIND_JOBS, state, by_anything(), "", 10, 1), "['' 0 0 []]");
    }
    queue.keys_are("");
}

#[test]
fn jobs_of_every_state_are_found_in_their_order_whatever_a_step_takes() {
    let mut queue = full();
    queue.add(1011, Plan::new().prioritized("p", 3).prioritized("q", 1));
    let keys = queue.show();
    let states = [
        ("waiting", "z 7 8 9"),
        ("active", "3 x"),
        ("delayed", "e d"),
        ("prioritized", "q p"),
        ("completed", "y 2 1"),
        ("failed", "4 f"),
        ("waiting-children", ""),
    ];
    for (state, expected) in states {
        for take in [1, 2, 1000] {
            for filter in [by_age(-1), by_text("data", "1"), by_name("a")] {
                let (found, _) = find(&mut queue, state, &filter, take);
                let all: Vec<&str> = expected.split_whitespace().collect();
                // in a frame each job has its number as its data
                let some: Vec<&str> = if filter == by_text("data", "1") {
                    all.into_iter()
                        .filter(|id| !matches!(*id, "2" | "3" | "4" | "8" | "9"))
                        .collect()
                } else {
                    all
                };
                assert_eq!(found, some, "{state} by {take}");
            }
        }
    }
    queue.keys_are(&keys);
}

#[test]
fn a_job_is_whole_wherever_it_is() {
    let mut queue = full();
    let one = run!(queue, FIND_JOBS, "failed", by_age(-1), "", 1, 0);
    let job = "[4 failed <[7 {} a 4]> <{am:1 as:1 fo:1010 fr:boom pb:bob po:1005}> [\"trace\"]]";
    assert!(
        one.starts_with("[{") && one.ends_with(&format!("}} 1 1 {job}]")),
        "{one}"
    );
    let whole = |queue: &mut TestQueue, state: &str| run!(queue, FIND_JOBS, state, by_age(-1), "", 100, 0);
    assert_eq!(
        whole(&mut queue, "completed"),
        "['' 3 3 [y completed <[7 {} a 1]> <{am:1 as:1 fo:1010 pb:bob po:1005 rv:\"ok\"}> '' \
          2 completed <[7 {} a 2]> <{am:1 as:1 fo:1010 pb:bob po:1005}> '' \
          1 completed <[7 {} a 1]> <{am:1 as:1 fo:1010 pb:bob po:1005 rv:10}> '']]"
    );
    assert_eq!(
        whole(&mut queue, "active"),
        "['' 2 2 [3 active <[7 {} a 3]> <{as:1 pb:bob po:1005}> '' x active <[7 {} a 1]> <{as:1 pb:bob po:1005}> '']]"
    );
    assert_eq!(run!(queue, FIND_JOBS, "waiting", by_age(-1), "", 100, 1), "['' 4 4 []]");
}

#[test]
fn a_time_is_that_of_the_state() {
    let between = |after_ms: i64, before_ms: i64| {
        let mut filter = Packer::default();
        filter
            .map(2)
            .str("before_ms")
            .int(before_ms)
            .str("after_ms")
            .int(after_ms);
        filter.0
    };
    let mut queue = full();
    assert_eq!(ids(&mut queue, "failed", &between(1003, 1003)), "f");
    assert_eq!(ids(&mut queue, "failed", &between(1004, -1)), "4");
    assert_eq!(ids(&mut queue, "completed", &between(-1, 1009)), "");
    assert_eq!(ids(&mut queue, "completed", &between(1010, 1010)), "y 2 1");
    // all were created at 7
    assert_eq!(ids(&mut queue, "waiting", &between(-1, 6)), "");
    assert_eq!(ids(&mut queue, "waiting", &between(7, 7)), "z 7 8 9");
    assert_eq!(ids(&mut queue, "active", &between(1005, 1005)), "3 x");
    assert_eq!(ids(&mut queue, "active", &between(-1, 1004)), "");
}

#[test]
fn what_a_job_holds_is_looked_for() {
    let mut queue = TestQueue::with(Plan::new().named_frame(&["mail", "mail", "call"]).record("x"));
    run_once!(
        queue,
        UPDATE_JOB,
        1001,
        "2",
        "data",
        r#"{"to":{"name":"Ana","age":4},"tags":[1,2],"none":null}"#
    );
    run_once!(queue, UPDATE_JOB, 1001, "x", "data", r#"{"to":"Ana"}"#);
    let mut found = |filter: &[u8]| ids(&mut queue, "waiting", filter);
    assert_eq!(found(&by_name("mail")), "1 2");
    assert_eq!(found(&by_name("call")), "3");
    assert_eq!(found(&by_text("data", "Ana")), "2 x");
    assert_eq!(found(&by_text("data", ".*")), "");
    for (fields, expected) in [
        (r#"{"to":"Ana"}"#, "x"),
        (r#"{"to":{"name":"Ana"}}"#, "2"),
        (r#"{"to":{"name":"Ana","age":5}}"#, ""),
        (r#"{"tags":[1,2]}"#, "2"),
        (r#"{"tags":[1]}"#, ""),
        (r#"{"none":null}"#, "2"),
        (r#"{"other":null}"#, ""),
        ("{}", "2 x"),
    ] {
        assert_eq!(found(&by_text("fields", fields)), expected, "{fields}");
    }
    assert_eq!(found(&by_text("reason", "x")), "");
    assert_eq!(found(&by_text("group", "x")), "");
}

#[test]
fn large_data_are_looked_into() {
    let mut queue = TestQueue::with(Plan::new().large(&[("big", "needle"), ("other", "hay")]));
    assert_eq!(ids(&mut queue, "waiting", &by_text("data", "needle")), "big");
}

#[test]
fn a_step_reads_no_more_than_about_a_mib() {
    let data = format!("\"{}\"", "d".repeat(400_000));
    let ids: Vec<String> = (0..6).map(|i| format!("x{i}")).collect();
    let large: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), data.as_str())).collect();
    let mut queue = TestQueue::with(Plan::new().large(&large));
    let (found, steps) = find(&mut queue, "waiting", &by_text("data", "ddd"), 100);
    assert_eq!((found, steps), (ids, 3));
}

#[test]
fn failed_jobs_are_found_by_their_reason() {
    let mut queue = TestQueue::with(Plan::new().frame(5));
    queue.step(Step::by("w").want(5));
    for offset in 0..5 {
        let reason = if offset % 2 == 0 { "no time" } else { "no money" };
        let fail = Fail {
            reason: reason.to_owned(),
            ..Fail::to("failed")
        };
        queue.step(Step::by("w").at(1001 + offset).fail(&at(1, 5, offset), &fail));
    }
    for take in [1, 10] {
        assert_eq!(
            find(&mut queue, "failed", &by_text("reason", "time"), take).0.join(" "),
            "5 3 1"
        );
    }
    assert_eq!(ids(&mut queue, "failed", &by_text("reason", "money")), "4 2");
}

#[test]
fn jobs_of_a_group_are_found_by_themselves_and_among_the_others() {
    let plan = Plan::new()
        .frame(1)
        .grouped("a1", "a", 2)
        .grouped("b1", "b", 0)
        .grouped("a2", "a", 0);
    let mut queue = TestQueue::with(plan);
    for take in [1, 10] {
        assert_eq!(find(&mut queue, "waiting", &by_age(-1), take).0.join(" "), "1 a1 b1 a2");
        assert_eq!(
            find(&mut queue, "waiting", &by_text("group", "a"), take).0.join(" "),
            "a2 a1"
        );
    }
    queue.step(Step::by("w").want(4));
    assert_eq!(ids(&mut queue, "active", &by_text("group", "b")), "b1");
}

#[test]
fn stale_references_are_passed_over() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y").record("z"));
    run_once!(queue, REMOVE_JOB, 1001, "x", 0);
    queue.add(1002, Plan::new().record("x"));
    for take in [1, 2, 10] {
        assert_eq!(find(&mut queue, "waiting", &by_age(-1), take).0.join(" "), "y z x");
    }
}

#[test]
fn a_step_is_bounded_and_many_jobs_are_found_in_some() {
    let mut plan = Plan::new();
    for _ in 0..50 {
        plan = plan.frame(64);
    }
    for i in 0..1200 {
        plan = plan.delayed(&format!("d{i}"), 5000);
    }
    let mut queue = TestQueue::with(plan);
    let (found, steps) = find(&mut queue, "waiting", &by_name("a"), 1 << 40);
    assert_eq!(
        (found.len(), found[0].as_str(), found[3199].as_str()),
        (3200, "1", "3200")
    );
    assert!((2..=5).contains(&steps), "{steps}");
    let (found, steps) = find(&mut queue, "delayed", &by_name("a"), 1 << 40);
    assert_eq!(
        (found.len(), found[0].as_str(), found[1199].as_str()),
        (1200, "d0", "d1199")
    );
    assert!((3..=4).contains(&steps), "{steps}");
}

#[test]
fn who_stays_is_found_once_whatever_comes_and_goes() {
    let mut plan = Plan::new();
    for i in 0..20 {
        plan = plan.delayed(&format!("d{i:02}"), 5000);
    }
    let mut queue = TestQueue::with(plan);
    let (mut found, mut place, mut round) = (Vec::new(), String::new(), 0);
    loop {
        let mut call = queue.call(&FIND_JOBS);
        call.arg("delayed").arg(by_age(-1)).arg(&place).arg(3).arg(0);
        let (next, _, _, jobs): (String, u64, u64, Vec<Value>) =
            redis::from_redis_value(queue.carry_out_value(&call)).expect("a step");
        found.extend(
            jobs.chunks(5)
                .map(|job| redis::from_redis_value::<String>(job[0].clone()).expect("an id")),
        );
        // the last one found leaves, and one before it as well
        for id in found.iter().rev().take(2) {
            run_once!(queue, REMOVE_JOB, 1001, id, 0);
        }
        queue.add(1002, Plan::new().delayed(&format!("e{round}"), 4000));
        (place, round) = (next, round + 1);
        if place.is_empty() {
            break;
        }
    }
    let expected: Vec<String> = (0..20).map(|i| format!("d{i:02}")).collect();
    assert_eq!(found, expected);
}
