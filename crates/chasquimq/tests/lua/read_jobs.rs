//! Gives whole jobs, by their ids.

use chasquimq::msgpack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::{at, of, Fail, Step},
};

pub fn by_ids(ids: &[&str]) -> Vec<u8> {
    let mut what = Packer::default();
    what.array(ids.len());
    for id in ids {
        what.str(id);
    }
    what.0
}

/// Every state, in frames and as records: 1 2 completed, 3 active, 4 failed; x active, y completed; 8..10 and z wait.
pub fn full() -> TestQueue {
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

/// The same, with jobs that have a priority, and jobs of groups.
pub fn fuller() -> TestQueue {
    let mut queue = full();
    queue.add(
        1011,
        Plan::new()
            .prioritized("p", 3)
            .grouped("g", "a", 0)
            .grouped("h", "b", 0),
    );
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
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn large_jobs_are_read_a_few_at_a_time() {
    let ids: Vec<String> = (0..20).map(|i| format!("x{i:02}")).collect();
    let mut plan = Plan::new().frame(2);
    for id in &ids {
        plan = plan.record(id);
    }
    let mut queue = TestQueue::with(plan);
    let mut body = Packer::default();
    let data = format!("\"{}\"", "d".repeat(200_000));
    body.array(4).int(7).str("{}").str("a").str(&data);
    for id in &ids {
        let mut set = redis::cmd("HSET");
        set.arg(queue.probe.keys.key("jobs")).arg(id).arg(body.0.as_slice());
        queue.carry_out_unchecked(&set);
    }
    let mut wanted: Vec<&str> = vec!["1", "nobody", "2"];
    wanted.extend(ids.iter().map(String::as_str));
    let mut read = |ids: &[&str]| -> Vec<redis::Value> {
        let mut call = queue.call(&chasquimq::redis::call::library::READ_JOBS);
        call.arg(by_ids(ids));
        redis::from_redis_value(queue.carry_out_unchecked(&call)).expect("jobs")
    };
    let some = read(&wanted);
    assert_eq!((some.len(), some.last()), (5 * 8 + 1, Some(&redis::Value::Int(9))));
    // the last of them leaves nothing
    assert_eq!(read(&wanted[wanted.len() - 6..]).len(), 5 * 6);
}
