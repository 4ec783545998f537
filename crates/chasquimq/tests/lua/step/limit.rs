//! No more jobs start in a window than the rate limit allows.

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    step::{at, of, Fail, Step},
};

const HOUR: u64 = 3_600_000;

fn started(queue: &mut TestQueue) -> i64 {
    redis::from_redis_value(queue.command("GET", "limiter", &[])).expect("a number")
}

#[test]
fn all_workers_together_start_no_more_than_the_limit() {
    let mut queue = TestQueue::with(Plan::new().frame(10).record("x"));
    assert_eq!(queue.limited_ms(Step::by("w").limiter(4, HOUR).want(3).surplus(20)), 0);
    queue.key_is(
        "state",
        "cursor=10-10 id=11 waiting=8 active=3 references=1"
            .replace("10-10", "1-10")
            .as_str(),
    );
    let left = queue.limited_ms(Step::by("v").limiter(4, HOUR).want(3));
    assert!((HOUR - 60_000..=HOUR + 1).contains(&left), "{left}");
    queue.key_is("state", "cursor=1-10 id=11 waiting=7 active=4 references=1");
    assert_eq!(queue.step(Step::by("u").limiter(4, HOUR).want(1)), "[[] [] -1 1 1]");
    assert_eq!(started(&mut queue), 4);
}

#[test]
fn a_worker_that_got_all_it_wanted_is_not_limited_yet() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    assert_eq!(queue.limited_ms(Step::by("w").limiter(2, HOUR).want(2)), 0);
    assert!(queue.limited_ms(Step::by("w").limiter(2, HOUR).want(0)) > 0);
}

#[test]
fn the_window_begins_with_its_first_start() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    run_once!(queue, PAUSE, 1000, 1);
    queue.step(Step::by("w").limiter(2, HOUR).want(2));
    run_once!(queue, PAUSE, 1000, 0);
    queue.key_is("limiter", "(none)");
    queue.step(Step::by("w").limiter(2, HOUR).want(2));
    queue.key_is("limiter", "set");
    assert_eq!(started(&mut queue), 1);
}

#[test]
fn a_worker_without_a_limit_neither_counts_nor_heeds() {
    let mut queue = TestQueue::with(Plan::new().frame(4));
    queue.step(Step::by("w").want(1));
    queue.key_is("limiter", "(none)");
    queue.step(Step::by("v").limiter(1, HOUR).want(1));
    queue.step(Step::by("w").want(2));
    assert_eq!(started(&mut queue), 1);
    queue.key_is("state", "cursor=1-4 id=4 active=4");
}

#[test]
fn the_queues_number_comes_first_and_the_workers_window_does() {
    let mut queue = TestQueue::with(Plan::new().frame(5));
    run_once!(queue, SET_LIMIT; "rate", 2, 1000);
    let left = queue.limited_ms(Step::by("w").limiter(4, HOUR).want(5));
    assert!(left > 1001, "{left}");
    queue.key_is("state", "cursor=1-5 id=5 waiting=3 active=2");
    run_once!(queue, SET_LIMIT; "window", "", "");
    let left = queue.limited_ms(Step::by("v").want(5));
    assert!((1..=1001).contains(&left), "{left}");
    queue.key_is("state", "cursor=1-5 id=5 waiting=1 active=4");
}

#[test]
fn a_job_that_starts_only_to_fail_does_not_count() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y").record("z"));
    queue.step(Step::by("dead").want(1));
    queue.end_lease("dead");
    queue.recover_stalled(1000, 1, 0);
    assert_eq!(queue.limited_ms(Step::by("w").limiter(2, HOUR).want(2)), 0);
    assert_eq!(started(&mut queue), 1);
    assert!(queue.limited_ms(Step::by("w").limiter(2, HOUR).want(2)) > 0);
    queue.key_is("state", "cursor=3-r1 id=3 active=3 references=1");
}

#[test]
fn due_jobs_of_a_limited_queue_wait_and_nobody_is_told_that_it_is_drained() {
    let mut queue = TestQueue::with(Plan::new().record("x").delayed("d", 2000));
    queue.step(Step::by("w").limiter(1, HOUR).want(1));
    queue.skip_events();
    let step = Step::by("w").at(2000).limiter(1, HOUR).done_record("x", "").want(1);
    assert_eq!(queue.step(step), "[[] [] -1 1 1]");
    queue.events_are("[X completed [x] returnvalue null prev active] [X waiting [d] prev delayed]");
    queue.key_is("wake", "set");
}

#[test]
fn a_job_that_met_a_limit_heads_the_line_and_its_worker_rests() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").want(2));
    run_once!(queue, SET_LIMIT; "window", 60_000, "");
    queue.skip_events();
    queue.command("DEL", "wake", &[]);
    let left = queue.limited_ms(Step::by("w").back(&of("1"), true).want(1));
    assert!(left > 59_000, "{left}");
    queue.events_are("[X waiting [1] prev active]");
    queue.key_is("front", "1 3");
    // whoever has no limit may take it
    queue.key_is("wake", "set");
    assert_eq!(
        queue.step(Step::by("v").want(1)),
        "[[] [0 1 <[7 {} a 1]> <{as:1 po:1000}> 2] -1 0 1]"
    );
}

#[test]
fn a_job_that_met_a_limit_starts_again_at_once_when_there_is_no_window() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("w").want(1));
    assert_eq!(
        queue.step(Step::by("w").back(&at(1, 1, 0), true).want(1)),
        "[[] [0 1 <[7 {} a 1]> <{as:1 po:1000}> 2] -1 0 0]"
    );
}

#[test]
fn whoever_rests_forgets_a_limit_that_was_lifted_before() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.command("ZADD", "open", &["0", "0"]);
    queue.step(Step::by("w").limiter(1, HOUR).want(1));
    queue.key_is("open", "set");
    queue.step(Step::by("v").limiter(1, HOUR).want(1));
    queue.key_is("open", "(none)");
}

#[test]
fn a_step_that_is_sent_again_counts_once() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    let call = queue.step_call(&Step::by("w").limiter(2, HOUR).want(3));
    let reply = queue.carry_out(&call);
    assert_eq!(started(&mut queue), 2);
    assert_eq!(queue.carry_out(&call).split(' ').count(), reply.split(' ').count());
    assert_eq!(started(&mut queue), 2);
    queue.key_is("state", "cursor=1-3 id=3 waiting=1 active=2");
}

#[test]
fn tries_count_as_starts() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("w").limiter(2, HOUR).want(1));
    queue.step(
        Step::by("w")
            .limiter(2, HOUR)
            .fail(&at(1, 1, 0), &Fail::to("waiting"))
            .want(1),
    );
    let step = Step::by("w")
        .limiter(2, HOUR)
        .fail(&of("1"), &Fail::to("waiting"))
        .want(1);
    assert!(queue.limited_ms(step) > 0);
    assert_eq!(started(&mut queue), 2);
}
