//! Jobs with a priority: when they are taken, and where they come back.

use crate::given::{
    plan::Plan,
    queue::TestQueue,
    step::{of, Fail, Step},
};

#[test]
fn they_are_taken_when_the_line_is_empty_by_priority() {
    let mut queue = TestQueue::with(Plan::new().run(&[2, 1]).frame(1).front("x"));
    queue.skip_events();
    let reply = queue.step(Step::by("w").named("bob").want(3));
    assert_eq!(
        reply,
        "[[] [0 x <[7 {} a 1]> '' 1 3 1 <7 {} a 1> 0 2 <[7 {} a 1 1]> '' 1] -1 0 1]"
    );
    queue.keys_are(
        "active: 2=[1000 1 w bob] x=[1000 1 w bob]
         jobs: 1=[7 {} a 1 2] 2=[7 {} a 1 1] x=[7 {} a 1]
         lease:w: set
         log: 3-1
         prioritized: 1@2+1
         state: cursor=3-1 id=4 active=3
         takes: 3=[1000 '' w bob]
         wake: set",
    );
    queue.events_are("[X active [x] prev waiting] [a 3 1] [X active [2] prev waiting]");
}

#[test]
fn places_are_counted_from_the_first_once_none_is_left() {
    let mut queue = TestQueue::with(Plan::new().run(&[2, 2]));
    queue.step(Step::by("w").want(3));
    queue.add(1000, Plan::new().run(&[2]));
    queue.key_is("prioritized", "3@2+1");
}

#[test]
fn surplus_is_bounded_by_its_bytes() {
    let mut queue = TestQueue::with(Plan::new().run(&[1; 200]));
    queue.step(Step::by("w").want(3).surplus(10));
    queue.key_is("state", "id=200 active=13");
    queue.step(Step::by("w").want(3).surplus(150).max_bytes(1));
    queue.key_is("state", "id=200 active=16");
    // looked at after some jobs, and then every 64
    queue.step(Step::by("w").want(3).surplus(150).max_bytes(20));
    queue.key_is("state", "id=200 active=19");
    queue.step(Step::by("w").want(3).surplus(180).max_bytes(100));
    queue.key_is("state", "id=200 active=30");
    queue.step(Step::by("w").want(3).surplus(160).max_bytes(150));
    queue.key_is("state", "id=200 active=105");
}

#[test]
fn a_worker_that_took_some_leaves_word_that_there_are_more() {
    let mut queue = TestQueue::with(Plan::new().run(&[1, 1]));
    queue.command("DEL", "wake", &[]);
    queue.step(Step::by("w").want(1));
    queue.key_is("wake", "set");
    queue.command("DEL", "wake", &[]);
    queue.step(Step::by("w").want(1));
    queue.key_is("wake", "(none)");
}

#[test]
fn the_queue_is_drained_when_none_is_left() {
    let mut queue = TestQueue::with(Plan::new().run(&[1, 1]));
    queue.step(Step::by("w").want(1));
    queue.skip_events();
    queue.step(Step::by("w").done_record("1", "").want(0));
    queue.events_are("[X completed [1] returnvalue null prev active]");
    queue.step(Step::by("w").want(1));
    queue.skip_events();
    queue.step(Step::by("w").done_record("2", "").want(1));
    queue.events_are("[X completed [2] returnvalue null prev active] [E drained]");
}

#[test]
fn what_is_due_takes_its_place() {
    let plan = Plan::new()
        .delayed_prioritized("a", 2000, 2)
        .delayed("b", 2000)
        .delayed_prioritized("c", 1500, 2)
        .delayed_prioritized("d", 2001, 1)
        .run(&[2]);
    let mut queue = TestQueue::with(plan);
    queue.skip_events();
    queue.step(Step::by("w").at(2000).want(0));
    queue.key_is("prioritized", "5@2+1 c@2+2 a@2+3");
    queue.key_is("log", "5-r1(b)");
    queue.key_is("delayed", "d@2001+0");
    queue.events_are("[X waiting [c a b] prev delayed]");
}

#[test]
fn a_failed_try_goes_to_the_end_of_its_priority() {
    let mut queue = TestQueue::with(Plan::new().run(&[1, 1, 1, 1]).record("x"));
    queue.step(Step::by("w").want(3));
    let step = Step::by("w")
        .fail(&of("1"), &Fail::to("waiting"))
        .fail(&of("x"), &Fail::to("waiting"))
        .fail(&of("2"), &Fail::to("front"));
    queue.step(step);
    queue.key_is("prioritized", "3@1+3 4@1+4 1@1+5 2@1+6");
    queue.key_is("log", "5-r2(x)");
}

#[test]
fn what_did_not_start_comes_back_to_where_it_was() {
    let mut queue = TestQueue::with(Plan::new().run(&[1, 1, 2, 2, 2, 1]));
    queue.step(Step::by("w").want(5));
    queue.step(
        Step::by("w")
            .back(&of("2"), false)
            .back(&of("6"), false)
            .back(&of("3"), false)
            .back(&of("4"), false),
    );
    queue.key_is("prioritized", "2@1-1 6@1+0 3@2+3 4@2+4 5@2+5");
    queue.key_is("state", "id=6 active=1");
}

#[test]
fn what_met_a_rate_limit_comes_back_to_the_front_of_its_priority() {
    let mut queue = TestQueue::with(Plan::new().run(&[1, 1, 1]));
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").back(&of("2"), true).back(&of("1"), false));
    queue.key_is("prioritized", "2@1+front 1@1+2 3@1+3");
    queue.key_is("vitals", "1={as:0} 2={as:1 po:1000}");
}
