//! For how long the job has waited that could have started first. All jobs here are created at 7.

use chasquimq::redis::call::library::SET_GROUP;

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{of, Fail, Step},
};

/// At 1007.
fn age(queue: &mut TestQueue) -> String {
    let keys = queue.show();
    let age = run!(queue, OLDEST_JOB, 1007, "");
    queue.keys_are(&keys);
    age
}

#[test]
fn a_queue_in_which_nothing_could_start_has_none() {
    let mut queue = TestQueue::fresh();
    assert_eq!(age(&mut queue), "-1");
    queue.add(7, Plan::new().delayed("d", 1008).frame(2).record("r").front("f"));
    queue.step(Step::by("w").at(8).want(9));
    assert_eq!(age(&mut queue), "-1");
}

#[test]
fn it_is_the_first_of_any_list() {
    for (plan, expected) in [
        (Plan::new().frame(2), "1000"),
        (Plan::new().record("r"), "1000"),
        (Plan::new().front("f"), "1000"),
        (Plan::new().prioritized("p", 3), "1000"),
        (Plan::new().grouped("g", "a", 0), "1000"),
        (Plan::new().delayed("d", 1008), "-1"),
        (Plan::new().delayed("d", 807).delayed("e", 907), "200"),
        (Plan::new().delayed("d", 907).prioritized("p", 3), "1000"),
    ] {
        assert_eq!(age(&mut TestQueue::with(plan)), expected);
    }
    let large = ("x".repeat(20_000), "y".repeat(20_000));
    let plan = Plan::new().large(&[("", &large.0), ("", &large.1)]);
    assert_eq!(age(&mut TestQueue::with(plan)), "1000");
}

#[test]
fn a_job_that_is_tried_again_waits_since_it_last_ran() {
    let mut queue = TestQueue::with(Plan::new().record("r").record("s"));
    queue.step(Step::by("w").at(500).want(2));
    queue.step(Step::by("w").at(600).fail(&of("r"), &Fail::to("waiting")).want(0));
    assert_eq!(age(&mut queue), "507");
    queue.step(Step::by("w").at(600).back(&of("s"), false).want(0));
    queue.add(7, Plan::new().prioritized("p", 1));
    assert_eq!(age(&mut queue), "1000");
}

#[test]
fn where_it_is_noted_a_job_that_is_tried_again_waits_since_it_could() {
    for (id, wordless) in [("r", false), ("s", true)] {
        let fail = |to, due_ms| Fail {
            due_ms,
            wordless,
            measured: true,
            ..Fail::to(to)
        };
        let mut queue = TestQueue::with(Plan::new().record(id));
        queue.step(Step::by("w").at(500).want(1));
        queue.step(Step::by("w").at(600).fail(&of(id), &fail("waiting", 0)).want(0));
        assert_eq!(age(&mut queue), "407");
        queue.step(Step::by("w").at(700).want(1));
        // it is back since, and nobody knows when it could start
        queue.step(Step::by("w").at(800).back(&of(id), true).want(0));
        assert_eq!(age(&mut queue), "307");
        queue.step(Step::by("w").at(800).want(1));
        queue.step(Step::by("w").at(900).fail(&of(id), &fail("delayed", 950)).want(-1));
        queue.step(Step::by("w").at(960).want(0));
        assert_eq!(age(&mut queue), "57");
        queue.step(Step::by("w").at(970).want(1));
        queue.step(Step::by("w").at(980).fail(&of(id), &fail("failed", 0)).want(0));
        assert!(!queue.show().contains(" ws:"));
    }
}

#[test]
fn references_of_jobs_that_left_are_passed_over() {
    let mut queue = TestQueue::with(Plan::new().record("r").record("s"));
    for id in ["r", "s"] {
        run_once!(queue, REMOVE_JOB, 9, id, 1);
    }
    assert_eq!(age(&mut queue), "-1");
    queue.add(7, Plan::new().record("r").frame(1));
    assert_eq!(age(&mut queue), "1000");
}

#[test]
fn so_many_references_are_passed_over_and_no_more() {
    for (removed, expected) in [(1, "1000"), (95, "1000"), (98, "-1")] {
        let mut queue = TestQueue::fresh();
        for job in 0..removed {
            let id = format!("r{job}");
            queue.add(7, Plan::new().record(&id));
            run_once!(queue, REMOVE_JOB, 9, id, 1);
        }
        queue.add(7, Plan::new().record("s"));
        assert_eq!(age(&mut queue), expected, "{removed}");
    }
}

#[test]
fn the_most_urgent_job_of_a_priority_need_not_be_the_oldest() {
    let mut queue = TestQueue::with(Plan::new().prioritized("a", 1).prioritized("b", 2).prioritized("c", 2));
    queue.step(Step::by("w").at(500).want(1));
    queue.step(Step::by("w").at(600).fail(&of("a"), &Fail::to("waiting")).want(0));
    assert_eq!(age(&mut queue), "1000");
    queue.step(Step::by("w").at(700).want(3));
    assert_eq!(age(&mut queue), "-1");
}

#[test]
fn groups_that_may_start_none_have_none() {
    let mut queue = TestQueue::with(
        Plan::new()
            .grouped("g", "a", 0)
            .grouped("h", "a", 0)
            .grouped("i", "b", 2),
    );
    let of = |queue: &mut TestQueue, group: &str| run!(queue, OLDEST_JOB, 1007, group);
    assert_eq!(
        (of(&mut queue, "a"), of(&mut queue, "b")),
        ("1000".into(), "1000".into())
    );
    assert_eq!(of(&mut queue, "c"), "-1");
    run!(queue, &SET_GROUP, 1000, "t", "t", 1, "a", "pause", "", "");
    assert_eq!((of(&mut queue, "a"), age(&mut queue)), ("-1".into(), "1000".into()));
    // it has a turn until that comes
    run!(queue, &SET_GROUP, 1000, "t", "t", 2, "b", "window", 60_000, "");
    assert_eq!((of(&mut queue, "b"), age(&mut queue)), ("-1".into(), "-1".into()));
}

#[test]
fn a_job_added_with_a_delay_waits_from_its_end_on() {
    let mut queue = TestQueue::with(Plan::new().record("r"));
    let body = chasquimq::record::record_body(7, r#"{"backoff":{"delay":5},"delay":100}"#, "a", "1");
    let mut set = redis::cmd("HSET");
    set.arg(queue.probe.keys.key("jobs")).arg("r").arg(body);
    set.exec(&mut queue.probe.connection).expect("a body");
    assert_eq!(age(&mut queue), "900");
}
