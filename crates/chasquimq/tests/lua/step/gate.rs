//! Nothing is fetched while the queue is paused, or its global concurrency is used up.

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    step::{at, Fail, Step},
};

#[test]
fn a_paused_queue_gives_nothing_and_takes_outcomes() {
    let mut queue = TestQueue::with(Plan::new().frame(2).frame(2));
    queue.step(Step::by("w").want(2));
    run_once!(queue, PAUSE, 1001, 1);
    queue.skip_events();
    assert_eq!(
        queue.step(Step::by("w").done(1, 2, 0, 2).want(2).surplus(5)),
        "[[] [] -1 1 0]"
    );
    queue.key_is("state", "cursor=1-2 id=4 waiting=2 completed=2");
    queue.events_are("[C 1 2 '']");
    run_once!(queue, PAUSE, 1002, 0);
    assert_eq!(queue.step(Step::by("w").want(2)), "[[] [3 2 <7 {} a 1 - 2>] -1 0 0]");
}

#[test]
fn a_paused_queue_wakes_nobody() {
    let mut queue = TestQueue::with(Plan::new().frame(2).frame(1));
    queue.step(Step::by("w").want(2));
    run_once!(queue, PAUSE, 1001, 1);
    queue.command("DEL", "wake", &[]);
    queue.step(Step::by("w").fail(&at(1, 2, 0), &Fail::to("waiting")).want(1));
    queue.key_is("wake", "(none)");
}

#[test]
fn due_jobs_of_a_paused_queue_wait() {
    let mut queue = TestQueue::with(Plan::new().delayed("x", 2000).delayed("y", 3000));
    run_once!(queue, PAUSE, 1001, 1);
    assert_eq!(queue.step(Step::by("w").at(2000).want(1)), "[[] [] 3000 1 0]");
}

#[test]
fn all_workers_together_hold_no_more_than_the_global_concurrency() {
    let mut queue = TestQueue::with(Plan::new().frame(10));
    queue.command("HSET", "meta", &["concurrency", "3"]);
    let reply = queue.step(Step::by("w").want(2).surplus(20));
    assert!(reply.starts_with("[[] [0 1 "), "{reply}");
    queue.key_is("state", "cursor=1-10 id=10 waiting=8 active=2");
    queue.step(Step::by("v").want(5));
    queue.key_is("state", "cursor=1-10 id=10 waiting=7 active=3");
    assert_eq!(queue.step(Step::by("u").want(5)), "[[] [] -1 1 0]");
    // the place that becomes free may be taken in the same step
    queue.step(Step::by("v").done_record("3", "").want(5));
    queue.key_is("state", "cursor=1-10 id=10 waiting=6 active=3 completed=1");
}

#[test]
fn a_place_that_its_worker_does_not_take_wakes_another() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
    queue.command("HSET", "meta", &["concurrency", "1"]);
    queue.step(Step::by("w").want(1));
    queue.command("DEL", "wake", &[]);
    queue.step(Step::by("w").done_record("x", "").want(0));
    queue.key_is("wake", "set");
}
