//! Workers that wait are told of work; `park`, `lua/states/waiting_workers`.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

fn park(queue: &mut TestQueue, owner: &str) -> String {
    run!(queue, PARK, owner, 0, -1)
}

#[test]
fn a_worker_waits_unless_there_is_a_marker_which_it_takes() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.key_is("wake", "set");
    assert_eq!(park(&mut queue, "w"), "1");
    queue.key_is("wake", "(none)");
    queue.key_is("waiting-workers", "(none)");
    // it has just looked
    assert_eq!(run!(queue, PARK, "w", 0, -2), "0");
    assert_eq!(run!(queue, PARK, "w", 0, -2), "0");
    queue.key_is("waiting-workers", "w");
}

#[test]
fn a_worker_that_waits_hears_of_a_marker_that_was_left_although_it_waits() {
    let mut queue = TestQueue::fresh();
    assert_eq!(park(&mut queue, "w"), "0");
    queue.command("ZADD", "wake", &["0", "0"]);
    assert_eq!(park(&mut queue, "w"), "3");
    queue.keys_are("");
}

#[test]
fn a_worker_that_was_not_told_of_work_is_to_look() {
    let works = [
        Plan::new().frame(1),
        Plan::new().record("x"),
        Plan::new().prioritized("x", 3),
        Plan::new().delayed("x", 5000),
    ];
    for work in works {
        let mut queue = TestQueue::with(work);
        queue.command("DEL", "wake", &[]);
        assert_eq!(park(&mut queue, "w"), "2");
        queue.key_is("waiting-workers", "(none)");
    }
    // it knows when that is due
    let mut queue = TestQueue::with(Plan::new().delayed("x", 5000));
    queue.command("DEL", "wake", &[]);
    assert_eq!(run!(queue, PARK, "w", 0, 5000), "0");
    assert_eq!(run!(queue, PARK, "w", 0, 6000), "2");
}

#[test]
fn whoever_makes_work_tells_one_worker_and_leaves_no_marker() {
    let works: [fn(u64) -> Plan; 4] = [
        |_| Plan::new().frame(1),
        |_| Plan::new().record(""),
        |_| Plan::new().prioritized("", 3),
        |sooner| Plan::new().delayed("", 5000 - sooner),
    ];
    for plan in works {
        let work = |queue: &mut TestQueue, sooner| drop(queue.add(1000, plan(sooner)));
        let mut queue = TestQueue::told_before(1);
        let mut ears = ["w", "v"].map(|owner| queue.listen(owner));
        for owner in ["w", "v"] {
            park(&mut queue, owner);
        }
        work(&mut queue, 0);
        queue.key_is("wake", "(none)");
        assert_eq!(ears.each_mut().map(|ear| ear.heard()).iter().sum::<u64>(), 1);
        // and the next the other one
        work(&mut queue, 1);
        assert_eq!(ears.each_mut().map(|ear| ear.heard()).iter().sum::<u64>(), 1);
        queue.key_is("waiting-workers", "(none)");
        work(&mut queue, 2);
        queue.key_is("wake", "set");
    }
}

#[test]
fn two_jobs_tell_two_workers() {
    let works: [fn() -> Plan; 2] = [|| Plan::new().frame(2), || Plan::new().record("").record("")];
    for plan in works {
        let mut queue = TestQueue::told_before(1);
        queue.step(Step::by("u").want(0));
        let mut ears = ["u", "v", "w"].map(|owner| queue.listen(owner));
        let mut heard = || ears.each_mut().map(|ear| ear.heard()).iter().sum::<u64>();
        for owner in ["u", "v", "w"] {
            park(&mut queue, owner);
        }
        queue.add(1000, plan());
        assert_eq!(heard(), 2);
        queue.key_is("wake", "(none)");
        // whoever is left, and nobody behind that one
        queue.add(1000, plan());
        assert_eq!(heard(), 1);
        queue.key_is("wake", "(none)");
        queue.key_is("waiting-workers", "(none)");
        queue.add(1000, plan());
        queue.key_is("wake", "set");
    }
}

#[test]
fn one_that_nobody_hears_is_passed_over() {
    let mut queue = TestQueue::told_before(1);
    queue.add(1000, Plan::new().frame(1));
    queue.command("DEL", "wake", &[]);
    for owner in ["gone", "lost", "away"] {
        assert_eq!(run!(queue, PARK, owner, 0, -2), "0");
    }
    let mut ear = queue.listen("w");
    queue.add(1000, Plan::new().frame(1));
    queue.key_is("wake", "set");
    queue.key_is("waiting-workers", "(none)");
    assert_eq!(ear.heard(), 0);
}

#[test]
fn whoever_listens_hears_of_the_first_job_of_a_queue_that_was_emptied() {
    let mut queue = TestQueue::told_before(1);
    let mut ears = ["v", "w"].map(|owner| queue.listen(owner));
    let mut heard = || ears.each_mut().map(|ear| ear.heard());
    queue.add(1000, Plan::new().frame(1));
    queue.key_is("wake", "set");
    assert_eq!(heard(), [1, 1]);
    queue.add(1000, Plan::new().frame(1));
    assert_eq!(heard(), [0, 0]);
}

#[test]
fn a_step_that_finds_too_little_waits_and_one_that_is_full_does_not() {
    let mut queue = TestQueue::with(Plan::new().frame(1).record("x"));
    queue.command("DEL", "wake", &[]);
    // one job, few, and any
    for (step, left) in [
        (Step::by("w").busy().want(1), 1),
        (Step::by("w").busy().want(2), 2),
        (Step::by("w").waiting().want(2), 2),
        (Step::by("w").busy().want(2).limiter(9, 1000), 2),
    ] {
        let reply = queue.step(step);
        assert!(reply.ends_with(&format!(" 0 {left}]")), "{reply}");
        if left == 1 {
            queue.command("DEL", "wake", &[]);
        }
        queue.key_is("waiting-workers", if left == 2 { "w" } else { "(none)" });
    }
    // it has no slot
    queue.step(Step::by("w").waiting().want(0));
    queue.key_is("waiting-workers", "(none)");
    // nobody hears for it
    queue.step(Step::by("w").want(2));
    queue.key_is("waiting-workers", "(none)");
}

#[test]
fn a_step_beside_a_marker_does_not_wait() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    let reply = queue.step(Step::by("w").busy().want(2));
    assert!(reply.ends_with(" 0 0]"), "{reply}");
    queue.key_is("waiting-workers", "(none)");
    assert_eq!(park(&mut queue, "w"), "1");
}

#[test]
fn those_who_rest_are_told_together_when_a_limit_is_lifted() {
    let mut queue = TestQueue::told_before(1);
    let mut ears = ["w", "v"].map(|owner| queue.listen(owner));
    run_once!(queue, SET_LIMIT; "rate", 1, 60_000);
    run_once!(queue, SET_LIMIT; "window", 60_000, "");
    for owner in ["w", "v"] {
        assert_eq!(run!(queue, PARK, owner, 60_000, -1), "0");
    }
    queue.key_is("waiting-workers", "(none)");
    run_once!(queue, SET_LIMIT; "window", "", "");
    assert_eq!(ears.each_mut().map(|ear| ear.heard()), [1, 1]);
    queue.key_is("resting", "(none)");
    // one that comes to rest then looks at once
    assert_eq!(run!(queue, PARK, "w", 60_000, -1), "1");
}

#[test]
fn a_worker_that_leaves_waits_for_nothing() {
    let mut queue = TestQueue::fresh();
    park(&mut queue, "w");
    run!(queue, PARK, "w", 60_000, -1);
    run!(queue, RELEASE_WORKER, "w");
    queue.keys_are("");
}
