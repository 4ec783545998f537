//! new -> waiting, for frames of plain jobs

use crate::given::{
    plan::Plan,
    queue::{run, run_once, Forbidden, TestQueue},
    step::Step,
};

fn add_frames(queue: &mut TestQueue, now_ms: u64, number: u64, plan: &Plan) -> String {
    let mut call = queue.call(&chasquimq::redis::call::library::ADD_FRAMES);
    call.arg(now_ms).arg("c").arg(0).arg(number);
    plan.append_frames_to(&mut call);
    queue.carry_out(&call)
}

#[test]
fn a_frame_takes_consecutive_numbers() {
    let mut queue = TestQueue::fresh();
    assert_eq!(add_frames(&mut queue, 1000, 1, &Plan::new().frame(3)), "[1 []]");
    assert_eq!(
        add_frames(&mut queue, 1001, 2, &Plan::new().named_frame(&["b", "c"])),
        "[4 []]"
    );
    queue.keys_are(
        "log: 1-3 4-2
         state: id=5 waiting=5
         wake: set",
    );
    queue.events_are("[A 1 3 a] | [A 4 2 [b c]]");
}

#[test]
fn frames_of_a_batch_follow_each_other() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.skip_events();
    let plan = Plan::new().frame(2).named_frame(&["b", "c"]).frame(1);
    assert_eq!(add_frames(&mut queue, 1000, 2, &plan), "[2 []]");
    queue.keys_are(
        "jobs: x=[7 {} a 1]
         log: 1-r1(x) 2-2 4-2 6-1
         state: id=6 waiting=6 references=1
         wake: set",
    );
    queue.events_are("[A 2 2 a] [A 4 2 [b c]] [A 6 1 a]");
}

#[test]
fn it_leaves_what_add_leaves() {
    let mut one = TestQueue::told_before(1);
    let mut other = TestQueue::told_before(1);
    // more than one time, and back: events count on
    for (now_ms, number) in [(1000, 1), (1000, 2), (900, 3), (1001, 4), (50_000, 5)] {
        let plan = if number % 2 == 0 {
            Plan::new().frame(64)
        } else {
            Plan::new().named_frame(&["a", "b"])
        };
        let reply = add_frames(&mut one, now_ms, number, &plan);
        assert_eq!(reply, other.add_numbered(now_ms, number, &plan));
    }
    let keys = one.show();
    other.keys_are(&keys);
    let [one, other] = [one, other].map(|mut queue| queue.probe.snapshot());
    assert_eq!(one.events, other.events);
    assert_eq!(one.state, other.state);
}

#[test]
fn a_frame_sent_again_is_added_once() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new().frame(3);
    assert_eq!(add_frames(&mut queue, 1000, 9, &plan), "[1 []]");
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(add_frames(&mut queue, 1005, 9, &plan), "[1 []]");
    queue.keys_are(&keys);
    queue.events_are("");
    assert_eq!(run!(queue, COUNT_JOBS), "[3 0 0 0 0 0 0]");
}

#[test]
fn both_scripts_share_the_memory_of_a_slot() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new().frame(3);
    add_frames(&mut queue, 1000, 9, &plan);
    assert_eq!(queue.add_numbered(1000, 9, &plan), "[1 []]");
    queue.key_is("state", "id=3 waiting=3");
}

#[test]
fn a_refused_call_adds_nothing_and_leaves_a_usable_queue() {
    for command in ["set", "zadd", "xadd"] {
        let mut queue = TestQueue::with(Plan::new().frame(1));
        let mut call = queue.call(&chasquimq::redis::call::library::ADD_FRAMES);
        call.arg(1000).arg("c").arg(0).arg(50);
        Plan::new().frame(3).append_frames_to(&mut call);
        assert!(call.exec(&mut Forbidden::command(command).connection).is_err());
        assert_eq!(queue.probe.snapshot().log.len(), 1, "without {command}");

        let mut call = queue.call(&chasquimq::redis::call::library::ADD_FRAMES);
        call.arg(1000).arg("c").arg(0).arg(51);
        Plan::new().frame(2).append_frames_to(&mut call);
        queue.carry_out_unchecked(&call);
        for _ in 0..2 {
            let step = queue.step_call(&Step::by("w").want(10));
            queue.carry_out_unchecked(&step);
        }
        // nothing is counted that does not exist
        assert_eq!(queue.probe.snapshot().state("waiting"), 0);
        assert_eq!(queue.probe.snapshot().state("active"), 3);
    }
}

#[test]
fn jobs_past_the_maximum_length_are_refused_together() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    run_once!(queue, SET_LIMIT; "length", 5, "");
    let keys = queue.show();
    let frames = |jobs| Plan::new().frame(1).frame(jobs);
    assert_eq!(add_frames(&mut queue, 1000, 7, &frames(2)), "[-12 3 3 5]");
    queue.keys_are(&keys);
    // nothing is remembered of it: the same call works when there is room
    run_once!(queue, SET_LIMIT; "length", 6, "");
    assert_eq!(add_frames(&mut queue, 1000, 7, &frames(2)), "[4 []]");
    // what was added is answered from memory, though the queue is full
    assert_eq!(add_frames(&mut queue, 1000, 7, &frames(2)), "[4 []]");
    assert_eq!(add_frames(&mut queue, 1000, 8, &frames(1)), "[-12 2 6 6]");
}
