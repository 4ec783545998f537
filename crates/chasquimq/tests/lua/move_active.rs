//! active -> delayed | front of waiting, by the one who holds the job

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

fn active() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x").frame(1));
    queue.step(Step::by("w").named("bob").want(4));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn a_job_of_a_frame_heads_the_line() {
    let mut queue = active();
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "2", "w", 0), "0");
    queue.keys_are(
        "active: x=[1000 1 w bob]
         front: 2
         jobs: 2=[7 {} a 2] x=[7 {} a 1]
         lease:w: set
         log: 1-3 5-1
         state: cursor=4-r1 id=5 waiting=2 active=3 references=1
         takes: 1=[1000 101 w bob]
         vitals: 2={as:1 pb:bob po:1000}
         wake: set",
    );
    queue.events_are("[X waiting [2] prev active]");
}

#[test]
fn a_record_is_delayed_from_now() {
    let mut queue = active();
    run_once!(queue, UPDATE_JOB, 1005, "x", "progress", "1");
    queue.skip_events();
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "x", "w", 1500), "0");
    queue.keys_are(
        "delayed: x@1500+0
         jobs: x=[7 {} a 1]
         lease:w: set
         log: 1-3 5-1
         state: cursor=4-r1 id=5 waiting=1 active=3 references=1
         takes: 1=[1000 '' w bob]
         vitals: x={as:1 d:490 p:1 pb:bob po:1000}
         wake: set",
    );
    queue.events_are("[X delayed [x] delay [1500]]");
}

#[test]
fn a_worker_is_woken_only_where_it_has_something_to_do() {
    let alone = || {
        let mut queue = TestQueue::with(Plan::new().record("x").delayed("d", 5000));
        queue.step(Step::by("w").want(1));
        queue.command("DEL", "wake", &[]);
        queue
    };
    for (due_ms, wake) in [(9000, "(none)"), (4000, "set"), (0, "set")] {
        let mut queue = alone();
        assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "x", "w", due_ms), "0");
        queue.key_is("wake", wake);
    }
    // what waits may start in its place
    let mut queue = alone();
    queue.add(1000, Plan::new().prioritized("p", 3));
    queue.command("DEL", "wake", &[]);
    run_once!(queue, MOVE_ACTIVE, 1010, "x", "w", 9000);
    queue.key_is("wake", "set");
}

#[test]
fn a_time_that_has_passed_is_no_delay() {
    let mut queue = active();
    run_once!(queue, MOVE_ACTIVE, 1010, "x", "w", 5);
    queue.key_is("delayed", "x@5+0");
    queue.key_is("vitals", "x={as:1 d:0 pb:bob po:1000}");
}

#[test]
fn anybody_may_move_a_job_without_naming_its_holder() {
    let mut queue = active();
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "1", "0", 0), "0");
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "x", "0", 0), "0");
    queue.key_is("front", "x 1");
}

#[test]
fn a_job_that_is_missing_is_not_moved() {
    let mut queue = active();
    let keys = queue.show();
    for owner in ["0", "w"] {
        assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "9", owner, 0), "-1");
    }
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_job_that_is_not_active_is_not_moved() {
    let mut queue = active();
    let keys = queue.show();
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "5", "0", 2000), "-3");
    // back to the waiting list without a lock: there is nothing to do
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "5", "0", 0), "0");
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "5", "w", 0), "-2");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_job_with_a_priority_goes_to_the_front_of_it() {
    let mut queue = TestQueue::with(Plan::new().run(&[2, 2, 1]));
    queue.step(Step::by("w").want(2));
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "1", "w", 0), "0");
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "3", "w", 0), "0");
    queue.key_is("prioritized", "3@1+front 1@2+front 2@2+2");
    queue.key_is("front", "(none)");
}

#[test]
fn a_job_of_another_worker_is_not_moved() {
    let mut queue = active();
    let keys = queue.show();
    for id in ["1", "x"] {
        assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, id, "v", 5000), "-6");
    }
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_job_whose_lease_ran_out_is_not_moved() {
    let mut queue = active();
    queue.end_lease("w");
    let keys = queue.show();
    for id in ["1", "x"] {
        assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, id, "w", 5000), "-2");
    }
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn every_token_of_a_worker_counts() {
    let mut queue = active();
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "x", "w:4.12", 0), "0");
    queue.key_is("front", "x");
}

#[test]
fn a_call_sent_again_moves_nothing_more() {
    for (due_ms, id) in [(0, "x"), (0, "2"), (1500, "x"), (1500, "2")] {
        let mut queue = active();
        let move_it = |queue: &mut TestQueue| run!(queue, MOVE_ACTIVE, 1010, "c", "b", 1, id, "w", due_ms);
        assert_eq!(move_it(&mut queue), "0");
        // which the same worker takes again, before the first call is sent again
        queue.step(Step::by("w").at(1600).want(1));
        let keys = queue.show();
        queue.skip_events();
        assert_eq!(move_it(&mut queue), "0");
        queue.keys_are(&keys);
        queue.events_are("");
    }
}
