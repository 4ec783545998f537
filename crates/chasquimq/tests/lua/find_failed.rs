//! Gives failed jobs that a filter picks.

use chasquimq::msgpack::Packer;

use super::model::bulk::by_age;
use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::{at, Fail, Step},
};

/// Job i of 1..n failed at 1000 + i, odd ones for want of time, even ones for want of money.
fn failed(n: u64) -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(n));
    queue.step(Step::by("w").want(n as i64));
    for offset in 0..n {
        let reason = if offset % 2 == 0 { "no time" } else { "no money" };
        let fail = Fail {
            reason: reason.to_owned(),
            ..Fail::to("failed")
        };
        queue.step(Step::by("w").at(1001 + offset).fail(&at(1, n, offset), &fail));
    }
    queue
}

fn because(error: &str) -> Vec<u8> {
    let mut filter = Packer(vec![0x83]);
    filter.str("before_ms").int(-1).str("after_ms").int(1002);
    filter.str("error").str(error);
    filter.0
}

#[test]
fn nothing_failed() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    assert_eq!(run!(queue, FIND_FAILED, by_age(-1), 0, 0, 10), "[-1 0 []]");
}

#[test]
fn the_latest_come_first_and_whole() {
    let mut queue = failed(3);
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(
        run!(queue, FIND_FAILED, by_age(-1), 0, 0, 2),
        "[-1 0 [3 failed <[7 {} a 3]> <{am:1 as:1 fo:1003 fr:no time po:1000}> [\"trace\"] \
          2 failed <[7 {} a 2]> <{am:1 as:1 fo:1002 fr:no money po:1000}> [\"trace\"]]]"
    );
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn jobs_that_are_not_picked_are_passed_over() {
    let mut queue = failed(5);
    let ids = |reply: String| -> String {
        let words = reply.replace(['[', ']'], " ");
        let jobs = words
            .match_indices(" failed ")
            .map(|(place, _)| words[..place].rsplit(' ').next().unwrap_or(""));
        jobs.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(run!(queue, FIND_FAILED, because("time"), 0, 0, 10)), "5 3");
    assert_eq!(ids(run!(queue, FIND_FAILED, because("time"), 0, 1, 10)), "3");
    assert_eq!(ids(run!(queue, FIND_FAILED, because("money"), 0, 0, 1)), "4");
    // of 5, 4, 3 and 2, the first was looked at before
    let reply = run!(queue, FIND_FAILED, because("time"), 1, 9, 10);
    assert_eq!(reply, "[4 8 []]");
    assert_eq!(run!(queue, FIND_FAILED, because("time"), 4, 8, 10), "[-1 8 []]");
}
