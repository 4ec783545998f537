//! delayed -> waiting | prioritized, or delayed -> delayed with another due time

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{of, Fail, Step},
};

fn delayed() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().delayed("x", 2000).delayed("y", 3000).frame(1));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn a_promoted_job_waits_behind_the_others() {
    let mut queue = delayed();
    assert_eq!(run_once!(queue, MOVE_DELAYED, 1500, "y", 0), "0");
    queue.keys_are(
        "delayed: x@2000+0
         jobs: x=[7 {} a 1] y=[7 {} a 1]
         log: 3-1 3-r1(y)
         state: id=3 waiting=2 references=1
         wake: set",
    );
    queue.events_are("[X waiting [y] prev delayed]");
}

#[test]
fn a_promoted_job_with_a_priority_waits_behind_those_of_it() {
    let mut queue = TestQueue::with(Plan::new().delayed_prioritized("x", 2000, 5).run(&[5, 6]));
    assert_eq!(run_once!(queue, MOVE_DELAYED, 1500, "x", 0), "0");
    queue.key_is("prioritized", "2@5+1 x@5+3 3@6+2");
    queue.key_is("state", "id=3");
}

#[test]
fn a_new_time_counts_from_now() {
    let mut queue = delayed();
    assert_eq!(run_once!(queue, MOVE_DELAYED, 1500, "y", 1600), "0");
    queue.keys_are(
        "delayed: y@1600+1 x@2000+0
         jobs: x=[7 {} a 1] y=[7 {} a 1]
         log: 3-1
         state: id=3 waiting=1
         vitals: y={d:100}
         wake: set",
    );
    queue.events_are("[X delayed [y] delay [1600]]");
    run_once!(queue, MOVE_DELAYED, 1500, "y", 2000);
    queue.key_is("delayed", "x@2000+0 y@2000+2");
}

#[test]
fn a_job_that_is_missing_is_not_moved() {
    let mut queue = delayed();
    let keys = queue.show();
    for due_ms in [0, 5000] {
        assert_eq!(run_once!(queue, MOVE_DELAYED, 1500, "z", due_ms), "-1");
    }
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_job_that_is_not_delayed_is_not_moved() {
    let mut queue = TestQueue::with(Plan::new().record("f").record("a").frame(2));
    queue.step(Step::by("w").want(3));
    queue.step(Step::by("w").fail(&of("f"), &Fail::to("failed")));
    let keys = queue.show();
    for id in ["f", "a", "3", "4"] {
        for due_ms in [0, 5000] {
            assert_eq!(run_once!(queue, MOVE_DELAYED, 1500, id, due_ms), "-3", "{id}");
        }
    }
    queue.keys_are(&keys);
}

#[test]
fn a_call_sent_again_moves_nothing_more() {
    for due_ms in [0, 1600] {
        let mut queue = delayed();
        let move_it = |queue: &mut TestQueue| run!(queue, MOVE_DELAYED, 1500, "c", "b", 1, "y", due_ms);
        assert_eq!(move_it(&mut queue), "0");
        let keys = queue.show();
        queue.skip_events();
        assert_eq!(move_it(&mut queue), "0");
        queue.keys_are(&keys);
        queue.events_are("");
        run_once!(queue, REMOVE_JOB, 1501, "y", 0);
        assert_eq!(move_it(&mut queue), "0");
    }
}
