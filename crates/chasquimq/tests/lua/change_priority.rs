//! waiting | prioritized -> waiting | prioritized, by the job's new priority

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{at, of, Fail, Step},
};

fn in_line() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(3).run(&[3, 3]).record("x"));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn a_job_of_a_frame_gets_a_record_and_a_priority() {
    let mut queue = in_line();
    assert_eq!(run_once!(queue, CHANGE_PRIORITY; "2", 3, 0), "0");
    queue.keys_are(
        "holes: 1=101
         jobs: 2=[7 {} a 2] 4=[7 {} a 1 3] 5=[7 {} a 1 3] x=[7 {} a 1]
         log: 1-3 6-r1(x)
         prioritized: 4@3+1 5@3+2 2@3+3
         state: id=6 waiting=3 references=1 holes=1
         vitals: 2={pr:3}",
    );
    queue.events_are("");
}

#[test]
fn a_priority_of_0_puts_the_job_in_line() {
    let mut queue = in_line();
    assert_eq!(run_once!(queue, CHANGE_PRIORITY; "4", 0, 0), "0");
    queue.keys_are(
        "jobs: 4=[7 {} a 1 3] 5=[7 {} a 1 3] x=[7 {} a 1]
         log: 1-3 6-r1(x) 6-r2(4)
         prioritized: 5@3+2
         state: id=6 waiting=5 references=2
         vitals: 4={pr:0}",
    );
}

#[test]
fn with_lifo_it_goes_to_the_front() {
    let mut queue = in_line();
    run_once!(queue, CHANGE_PRIORITY; "x", 3, 1);
    run_once!(queue, CHANGE_PRIORITY; "5", 0, 1);
    queue.key_is("prioritized", "x@3+front 4@3+1");
    queue.key_is("front", "5");
    queue.key_is("gone", "x=1");
}

#[test]
fn a_job_that_left_its_frame_and_came_back_is_where_it_came_back() {
    let mut queue = in_line();
    for priority in [4, 0, 5, 0, 0] {
        assert_eq!(run_once!(queue, CHANGE_PRIORITY; "2", priority, 0), "0");
    }
    queue.key_is("holes", "1=101");
    assert_eq!(queue.step(Step::by("w").want(3)), {
        let plain = |id: &str, data: u32| format!("0 {id} <[7 {{}} a {data}]> '' 1");
        format!(
            "[[] [{} {} 0 x <[7 {{}} a 1]> '' 1] -1 0 1]",
            plain("1", 1),
            plain("3", 3)
        )
    });
    assert_eq!(run_once!(queue, REMOVE_JOB, 1000, "2", 0), "1");
    queue.key_is("gone", "2=3");
    queue.add(1000, Plan::new().frame(1));
    queue.step(Step::by("w").want(1));
    queue.key_is("gone", "(none)");
    queue.key_is("log", "7-1");
}

#[test]
fn in_another_state_only_the_priority_changes() {
    let mut queue = TestQueue::with(Plan::new().frame(3).delayed("d", 2000));
    queue.step(Step::by("w").want(3));
    queue.step(Step::by("w").done(1, 3, 0, 1).fail(&at(1, 3, 1), &Fail::to("failed")));
    queue.skip_events();
    for id in ["1", "2", "3", "d"] {
        assert_eq!(run_once!(queue, CHANGE_PRIORITY; id, 4, 1), "0", "{id}");
    }
    assert_eq!(run!(queue, COUNT_JOBS), "[0 1 1 1 1 0 0]");
    queue.events_are("");
    // each takes its place when it comes back
    run_once!(queue, RETRY_JOB, 1010, "1", "completed", 1, 0, 0);
    run_once!(queue, RETRY_JOB, 1010, "2", "failed", 0, 0, 0);
    queue.step(Step::by("w").at(2000).want(0).fail(&of("3"), &Fail::to("front")));
    queue.key_is("prioritized", "1@4+1 2@4+2 3@4+3 d@4+4");
}

#[test]
fn a_job_that_is_missing_is_not_changed() {
    let mut queue = in_line();
    let keys = queue.show();
    assert_eq!(run_once!(queue, CHANGE_PRIORITY; "9", 1, 0), "-1");
    queue.keys_are(&keys);
}

#[test]
fn a_call_sent_again_leaves_the_job_where_it_is() {
    let mut queue = TestQueue::with(Plan::new().run(&[0, 5, 0]));
    let change = |queue: &mut TestQueue| run!(queue, CHANGE_PRIORITY, "c", "b", 1, "1", 5, 0);
    assert_eq!(change(&mut queue), "0");
    // behind it, before the call is sent again
    assert_eq!(run_once!(queue, CHANGE_PRIORITY; "3", 5, 0), "0");
    let keys = queue.show();
    assert_eq!(change(&mut queue), "0");
    queue.keys_are(&keys);
    run_once!(queue, REMOVE_JOB, 1001, "1", 0);
    assert_eq!(change(&mut queue), "0");
}
