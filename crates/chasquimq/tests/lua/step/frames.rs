//! Frames that do not fit are broken: what fits is taken, the rest heads the waiting list in order.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

#[test]
fn a_frame_that_does_not_fit_is_broken() {
    let mut queue = TestQueue::with(Plan::new().named_frame(&["a", "a", "b", "b"]).frame(1));
    queue.skip_events();
    let reply = queue.step(Step::by("w").want(1));
    assert_eq!(reply, "[[] [0 1 <[7 {} a 1]> '' 1] -1 0 1]");
    queue.keys_are(
        "active: 1=[1000 1 w '']
         front: 2 3 4
         jobs: 1=[7 {} a 1] 2=[7 {} a 2] 3=[7 {} b 3] 4=[7 {} b 4]
         lease:w: set
         log: 5-1
         state: cursor=1-4 id=5 waiting=4 active=1
         wake: set",
    );
    queue.events_are("[X active [1] prev waiting]");
    assert_eq!(run!(queue, READ_JOBS, all_waiting()), "[2 waiting <[7 {} a 2]> <[]> '' 3 waiting <[7 {} b 3]> <[]> '' 4 waiting <[7 {} b 4]> <[]> '' 5 waiting <[7 {} a 1]> <[]> '']");
}

fn all_waiting() -> Vec<u8> {
    let mut ids = chasquimq::msgpack::Packer::default();
    ids.array(4);
    for id in ["2", "3", "4", "5"] {
        ids.str(id);
    }
    ids.0
}

#[test]
fn ten_workers_share_a_frame() {
    let mut queue = TestQueue::with(Plan::new().frame(50));
    for worker in 1..=10 {
        let owner = format!("w{worker}");
        let reply = queue.step(Step::by(&owner).want(1));
        assert_eq!(reply, format!("[[] [0 {worker} <[7 {{}} a {worker}]> '' 1] -1 0 1]"));
    }
}

#[test]
fn the_rest_of_a_frame_comes_before_what_waited_behind_it() {
    let mut queue = TestQueue::with(Plan::new().frame(3).frame(2));
    queue.step(Step::by("w").want(2));
    let reply = queue.step(Step::by("w").want(3));
    assert_eq!(reply, "[[] [0 3 <[7 {} a 3]> '' 1 4 2 <7 {} a 1 - 2>] -1 0 0]");
}

#[test]
fn a_reference_that_does_not_fit_is_broken() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y").record("z").frame(1));
    queue.step(Step::by("w").want(2));
    queue.keys_are(
        "active: x=[1000 1 w ''] y=[1000 1 w '']
         front: z
         jobs: x=[7 {} a 1] y=[7 {} a 1] z=[7 {} a 1]
         lease:w: set
         log: 4-1
         state: cursor=3-r1 id=4 waiting=2 active=2 references=1
         wake: set",
    );
}

#[test]
fn a_frame_with_an_amended_job_is_taken_as_records() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    run_once!(queue, UPDATE_JOB, 1001, "2", "data", "9");
    queue.key_is("holes", "1=1r1");
    let reply = queue.step(Step::by("w").want(3));
    assert_eq!(
        reply,
        "[[] [0 1 <[7 {} a 1]> '' 1 0 2 <[7 {} a 9]> '' 1 0 3 <[7 {} a 3]> '' 1] -1 0 0]"
    );
    queue.keys_are(
        "active: 1=[1000 1 w ''] 2=[1000 1 w ''] 3=[1000 1 w '']
         jobs: 1=[7 {} a 1] 2=[7 {} a 9] 3=[7 {} a 3]
         lease:w: set
         state: cursor=1-3 id=3 active=3
         wake: set",
    );
}

#[test]
fn a_removed_job_of_a_frame_takes_no_room() {
    let mut queue = TestQueue::with(Plan::new().frame(4));
    run_once!(queue, REMOVE_JOB, 1001, "1", 0);
    run_once!(queue, UPDATE_JOB, 1001, "3", "progress", "1");
    queue.key_is("holes", "1=01r1");
    let reply = queue.step(Step::by("w").want(2));
    assert_eq!(reply, "[[] [0 2 <[7 {} a 2]> '' 1 0 3 <[7 {} a 3]> <{p:1}> 1] -1 0 1]");
    queue.keys_are(
        "active: 2=[1000 1 w ''] 3=[1000 1 w '']
         front: 4
         jobs: 2=[7 {} a 2] 3=[7 {} a 3] 4=[7 {} a 4]
         lease:w: set
         state: cursor=1-4 id=4 waiting=1 active=2
         vitals: 3={p:1}
         wake: set",
    );
}
