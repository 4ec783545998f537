//! Gives whole jobs, by id or by state and rank.

use chasquimq::pack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::{at, of, Fail, Step},
};

fn by_ids(ids: &[&str]) -> Vec<u8> {
    let mut what = Packer(vec![0x81]);
    what.str("ids").array(ids.len());
    for id in ids {
        what.str(id);
    }
    what.0
}

fn by_rank(types: &[&str], start: i64, stop: i64, ascending: bool) -> Vec<u8> {
    let mut what = Packer(vec![0x84]);
    what.str("types").array(types.len());
    for state in types {
        what.str(state);
    }
    what.str("start").int(start).str("stop").int(stop).str("ascending");
    what.0.push(if ascending { 0xc3 } else { 0xc2 });
    what.0
}

/// Ids of the answer.
fn ids(queue: &mut TestQueue, types: &[&str], start: i64, stop: i64, ascending: bool) -> String {
    let mut call = queue.call(&chasquimq::server::script::READ_JOBS);
    call.arg(by_rank(types, start, stop, ascending));
    let reply: Vec<Vec<u8>> = redis::from_redis_value(queue.carry_out_value(&call)).expect("jobs");
    let ids = reply
        .chunks_exact(5)
        .map(|job| String::from_utf8_lossy(&job[0]).into_owned());
    ids.collect::<Vec<_>>().join(" ")
}

/// Every state, in frames and as records: 1 2 completed, 3 active, 4 failed; x active, y completed; 8..10 and z wait.
fn full() -> TestQueue {
    let plan = Plan::new()
        .frame(4)
        .record("x")
        .record("y")
        .frame(3)
        .delayed("d", 5000)
        .delayed("e", 4000)
        .front("z");
    let mut queue = TestQueue::with(plan);
    queue.add(1001, Plan::new().front("f"));
    queue.step(Step::by("v").named("bob").at(1002).want(1));
    queue.step(Step::by("v").at(1003).fail(&of("f"), &Fail::to("failed")));
    queue.step(Step::by("v").at(1003).want(1));
    queue.step(Step::by("v").at(1003).back(&of("z"), false));
    // z waits at the front again: the frame and the two records are behind it
    queue.step(Step::by("u").at(1004).want(1));
    queue.step(Step::by("w").named("bob").at(1005).want(6));
    queue.step(Step::by("u").at(1006).back(&of("z"), false));
    let step = Step::by("w")
        .at(1010)
        .done_with(1, 4, 0, &["10", ""])
        .fail(&at(1, 4, 3), &Fail::to("failed"));
    queue.step(step.done_record("y", "\"ok\""));
    queue
}

#[test]
fn a_job_is_whole_wherever_it_is() {
    let mut queue = full();
    assert_eq!(
        run!(queue, READ_JOBS, by_ids(&["1", "2", "3", "4", "8"])),
        "[1 completed <[7 {} a 1]> <{am:1 as:1 fo:1010 pb:bob po:1005 rv:10}> '' \
          2 completed <[7 {} a 2]> <{am:1 as:1 fo:1010 pb:bob po:1005}> '' \
          3 active <[7 {} a 3]> <{as:1 pb:bob po:1005}> '' \
          4 failed <[7 {} a 4]> <{am:1 as:1 fo:1010 fr:boom pb:bob po:1005}> [\"trace\"] \
          8 waiting <[7 {} a 2]> <[]> '']"
    );
    assert_eq!(
        run!(queue, READ_JOBS, by_ids(&["x", "y", "d", "z"])),
        "[x active <[7 {} a 1]> <{as:1 pb:bob po:1005}> '' \
          y completed <[7 {} a 1]> <{am:1 as:1 fo:1010 pb:bob po:1005 rv:\"ok\"}> '' \
          d delayed <[7 {} a 1]> <[]> '' \
          z waiting <[7 {} a 1]> <{as:0}> '']"
    );
}

#[test]
fn missing_ids_are_left_out_and_repeated_ones_given_once() {
    let mut queue = TestQueue::with(Plan::new().frame(2));
    assert_eq!(
        run!(queue, READ_JOBS, by_ids(&["9", "2", "nobody", "2", "1"])),
        "[2 waiting <[7 {} a 2]> <[]> '' 1 waiting <[7 {} a 1]> <[]> '']"
    );
    assert_eq!(run!(queue, READ_JOBS, by_ids(&[])), "[]");
}

#[test]
fn reading_changes_nothing() {
    let mut queue = full();
    let keys = queue.show();
    queue.skip_events();
    run!(queue, READ_JOBS, by_ids(&["1", "2", "3", "4", "8", "x", "y", "d", "z"]));
    for state in ["waiting", "active", "completed", "failed", "delayed"] {
        ids(&mut queue, &[state], 0, -1, true);
    }
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
    run!(queue, REMOVE_JOB, 1001, "2");
    run!(queue, REMOVE_JOB, 1001, "x");
    run!(queue, AMEND_JOB, 1001, "7", "progress", "1");
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
