//! A worker leaves.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::Step,
};

#[test]
fn the_lease_is_given_up_and_what_was_to_be_read() {
    let mut queue = TestQueue::fresh();
    queue.step(Step::by("w").want(1));
    queue.key_is("lease:w", "set");
    queue.command("HSET", "cancels:w", &["m1000:1", "why"]);
    assert_eq!(run!(queue, RELEASE_WORKER, "w"), "0");
    queue.keys_are("");
}

#[test]
fn another_worker_is_woken_if_jobs_wait_or_are_delayed() {
    for plan in [
        Plan::new().frame(1),
        Plan::new().run(&[1]),
        Plan::new().delayed("x", 5000),
    ] {
        let mut queue = TestQueue::with(plan);
        queue.command("DEL", "wake", &[]);
        let keys = queue.show();
        assert_eq!(run!(queue, RELEASE_WORKER, "w"), "0");
        queue.keys_are(&format!("{keys}\nwake: set"));
    }
}

#[test]
fn nobody_is_woken_for_nothing() {
    let mut queue = TestQueue::fresh();
    run!(queue, RELEASE_WORKER, "w");
    queue.key_is("wake", "(none)");
}

#[test]
fn a_step_that_arrives_late_takes_nothing() {
    let mut queue = TestQueue::with(Plan::new().frame(1).frame(1));
    for step in [
        Step::by("w").number(1).want(1),
        Step::by("w").when_it_comes(0).number(2).want(-1),
    ] {
        let call = queue.step_call(&step);
        queue.carry_out_value(&call);
        run!(queue, RELEASE_WORKER, "w");
        let before = queue.probe.snapshot().state("waiting");
        queue.carry_out_value(&call);
        assert_eq!(queue.probe.snapshot().state("waiting"), before);
    }
}
