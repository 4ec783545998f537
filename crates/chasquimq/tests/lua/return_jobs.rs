//! Our jobs become BullMQ's, in their place.

use chasquimq_migrate::scripts::RETURN_JOBS;
use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{run_once, show_reply, TestQueue},
    scheduler::Upsert,
    step::Step,
};

/// Moves up to `most` jobs of a state, behind `skip`.
fn give(queue: &mut TestQueue, state: &str, skip: u64, most: u64) -> String {
    let number = queue.next_number();
    give_numbered(queue, state, skip, most, number)
}

fn give_numbered(queue: &mut TestQueue, state: &str, skip: u64, most: u64, number: u64) -> String {
    let (source, sources) = (queue.source(), queue.sources());
    let mut call = queue.call(&RETURN_JOBS);
    call.arg(5000).arg("c").arg(0).arg(number).arg(source).arg(state);
    call.arg(skip).arg(most).arg(sources);
    show_reply(&queue.carry_out_value(&call))
}

fn texts(value: Value) -> Vec<String> {
    redis::from_redis_value(value).expect("texts")
}

#[test]
fn jobs_in_line_go_in_the_order_in_which_they_would_have_run() {
    let mut queue = TestQueue::with(Plan::new().frame(4).record("a").front("b"));
    queue.skip_events();
    assert_eq!(give(&mut queue, "waiting", 0, 3), "[3 3 0 [] 0]");
    assert_eq!(give(&mut queue, "waiting", 0, 9), "[3 3 0 [] 0]");
    assert_eq!(give(&mut queue, "waiting", 0, 9), "[0 0 0 [] 0]");
    assert_eq!(
        texts(queue.at_source("LRANGE", "wait", &["0", "-1"])),
        ["a", "4", "3", "2", "1", "b"]
    );
    assert_eq!(queue.ids("waiting"), [""; 0]);
    queue.events_are("");
    queue.left_at_source();
}

#[test]
fn jobs_of_groups_go_behind_the_others_without_one() {
    let plan = Plan::new().grouped("a1", "a", 3).grouped("b1", "b", 0).record("x");
    let mut queue = TestQueue::with(plan.grouped_within("d", 7000, ("a", 0, 0.0), 2));
    assert_eq!(give(&mut queue, "waiting", 0, 9), "[3 3 0 [] 0]");
    assert_eq!(
        texts(queue.at_source("LRANGE", "wait", &["0", "-1"])),
        ["b1", "a1", "x"]
    );
    assert_eq!(give(&mut queue, "delayed", 0, 9), "[1 1 0 [] 0]");
    assert_eq!(texts(queue.at_source("ZRANGE", "delayed", &["0", "-1"])), ["d"]);
    queue.key_is("groups", "(none)");
    queue.left_at_source();
}

#[test]
fn a_step_that_is_sent_again_moves_nothing_more() {
    let mut queue = TestQueue::with(Plan::new().record("a").record("b"));
    let first = give_numbered(&mut queue, "waiting", 0, 1, 7);
    assert_eq!(first, "[1 1 0 [] 0]");
    assert_eq!(give_numbered(&mut queue, "waiting", 0, 1, 7), first);
    assert_eq!(queue.ids("waiting"), ["b"]);
    assert_eq!(texts(queue.at_source("LRANGE", "wait", &["0", "-1"])), ["a"]);
    queue.left_at_source();
}

#[test]
fn one_whose_id_is_taken_stays_and_those_behind_it_go() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("a"));
    queue.their_job("2", &[]);
    assert_eq!(give(&mut queue, "waiting", 0, 9), "[3 2 0 [2 exists] 1]");
    assert_eq!(give(&mut queue, "waiting", 1, 9), "[0 0 0 [] 0]");
    assert_eq!(queue.ids("waiting"), ["2"]);
    assert_eq!(texts(queue.at_source("LRANGE", "wait", &["0", "-1"])), ["a", "1"]);
    queue.left_at_source();
}

#[test]
fn jobs_lie_in_bullmqs_sets_with_their_scores() {
    let mut queue = TestQueue::with(Plan::new().delayed("d", 7000).prioritized("p", 4));
    assert_eq!(give(&mut queue, "delayed", 0, 9), "[1 1 0 [] 0]");
    assert_eq!(give(&mut queue, "prioritized", 0, 9), "[1 1 0 [] 0]");
    assert_eq!(
        queue.at_source("ZSCORE", "delayed", &["d"]),
        Value::BulkString(b"28672000".to_vec())
    );
    assert_eq!(
        queue.at_source("ZSCORE", "prioritized", &["p"]),
        Value::BulkString(b"17179869185".to_vec())
    );
    assert_eq!(
        texts(queue.at_source("ZRANGE", "marker", &["0", "-1", "WITHSCORES"])),
        ["0", "0", "1", "7000"]
    );
    queue.left_at_source();
}

#[test]
fn the_run_of_a_paused_scheduler_goes_and_the_scheduler_stays() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s"));
    queue.step(Step::by("w").want(1));
    run_once!(queue, MOVE_ACTIVE, 1010, "repeat:s:1000", "0", 9000);
    run_once!(queue, PAUSE_SCHEDULER, 1020, "s");
    assert_eq!(give(&mut queue, "delayed", 0, 9), "[1 1 0 [] 0]");
    assert_eq!(
        texts(queue.at_source("ZRANGE", "delayed", &["0", "-1"])),
        ["repeat:s:1000"]
    );
    assert_eq!(texts(queue.at_source("ZRANGE", "repeat", &["0", "-1"])), [""; 0]);
    queue.key_is("scheduler", "s=1[n 1 T R 100 0 false '']");
    queue.key_is("schedulers", "s@1000");
    queue.left_at_source();
}

#[test]
fn a_run_of_completed_jobs_goes_as_a_whole() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").at(2000).want(3));
    queue.step(Step::by("w").at(3000).done(1, 3, 0, 3));
    assert_eq!(give(&mut queue, "completed", 0, 9), "[3 3 0 [] 0]");
    assert_eq!(
        texts(queue.at_source("ZRANGE", "completed", &["0", "-1", "WITHSCORES"])),
        ["1", "3000", "2", "3000", "3", "3000"]
    );
    assert_eq!(
        texts(queue.at_source("HMGET", "2", &["atm", "processedOn", "finishedOn"])),
        ["1", "2000", "3000"]
    );
    queue.left_at_source();
}
