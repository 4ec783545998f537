//! delayed -> waiting, for what is due when a worker looks.

use crate::given::{
    plan::Plan,
    queue::{Forbidden, TestQueue},
    step::{of, Fail, Step},
};

#[test]
fn a_job_starts_when_it_is_due_and_not_before() {
    let mut queue = TestQueue::with(Plan::new().delayed("x", 2000));
    assert_eq!(queue.step(Step::by("w").at(1999).want(1)), "[[] [] 2000 0 0]");
    queue.skip_events();
    assert_eq!(
        queue.step(Step::by("w").at(2000).want(1)),
        "[[] [0 x <[7 {} a 1]> '' 1] -1 0 0]"
    );
    queue.events_are("[X waiting [x] prev delayed] [X active [x] prev waiting]");
}

#[test]
fn what_is_due_stays_when_nobody_is_to_look_and_is_told_of() {
    let plan = Plan::new().record("a").delayed("x", 2000);
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").want(1));
    queue.skip_events();
    let step = Step::by("w").at(2500).want(1).leaving_due().done_record("a", "");
    assert_eq!(queue.step(step), "[[] [] 2000 0 0]");
    queue.key_is("delayed", "x@2000+0");
    // the queue is not drained
    queue.events_are("[X completed [a] returnvalue null prev active]");
}

#[test]
fn due_jobs_wait_behind_the_others_in_the_order_of_their_times() {
    let plan = Plan::new()
        .delayed("c", 1500)
        .delayed("a", 1400)
        .delayed("d", 1500)
        .delayed("b", 1500)
        .frame(1);
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").at(1500).want(0));
    queue.keys_are(
        "jobs: a=[7 {} a 1] b=[7 {} a 1] c=[7 {} a 1] d=[7 {} a 1]
         lease:w: set
         log: 5-1 5-r1(a c d b)
         state: id=5 waiting=5 references=1
         wake: set",
    );
}

#[test]
fn the_next_due_time_is_told_when_there_was_room_for_more() {
    let mut queue = TestQueue::with(Plan::new().frame(1).delayed("x", 3000).delayed("y", 2000));
    assert_eq!(queue.step(Step::by("w").want(1)), "[[] [1 1 <7 {} a 1>] -1 0 0]");
    assert_eq!(queue.step(Step::by("w").want(1)), "[[] [] 2000 0 0]");
    assert_eq!(
        queue.step(Step::by("w").at(2000).want(2)),
        "[[] [0 y <[7 {} a 1]> '' 1] 3000 0 0]"
    );
}

/// Steps of each kind that may leave a worker no slot, beside a job that is delayed until 2000: by the plain path, by the general one (it has a limiter), with
/// several jobs, and without any.
fn steps_that_fill(run: impl Fn(&mut TestQueue, Step)) {
    let run = |plan: Plan, step: Step| run(&mut TestQueue::with(plan.delayed("x", 2000)), step);
    let step = |want: i64| Step::by("w").want(want);
    run(Plan::new().frame(1), step(1));
    run(Plan::new().record("a"), step(1));
    run(Plan::new().prioritized("a", 3), step(1));
    run(Plan::new().delayed("a", 900), step(1));
    run(Plan::new().frame(1).frame(1), step(2));
    run(Plan::new().frame(1), step(1).limiter(100, 1000));
    run(Plan::new(), step(0));
    run(Plan::new().frame(1), step(1).leaving_due());
}

#[test]
fn a_worker_without_a_slot_is_told_what_is_due_if_it_asks() {
    for (asks, due_ms) in [(true, "] 2000 "), (false, "] -1 ")] {
        steps_that_fill(|queue, step| {
            queue.command("DEL", "wake", &[]);
            let reply = queue.step(step.asking_due(asks));
            assert!(reply.contains(due_ms), "{reply}");
            queue.key_is("wake", "(none)");
        });
    }
}

#[test]
fn a_worker_that_fetches_nothing_is_told_nothing() {
    let mut queue = TestQueue::with(Plan::new().delayed("x", 2000));
    assert_eq!(queue.step(Step::by("w").asking_due(true)), "[[] [] -1 0 0]");
}

#[test]
fn a_worker_that_a_global_limit_keeps_from_starting_is_told_what_is_due() {
    let mut queue = TestQueue::with(Plan::new().frame(1).delayed("x", 2000));
    queue.command("HSET", "meta", &["concurrency", "1"]);
    queue.step(Step::by("v").want(1));
    assert_eq!(queue.step(Step::by("w").want(1)), "[[] [] 2000 1 0]");
}

#[test]
fn a_thousand_due_jobs_are_promoted_at_once_and_the_rest_next_time() {
    let mut plan = Plan::new();
    for _ in 0..1001 {
        plan = plan.delayed("", 2000);
    }
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").at(2000).want(0));
    queue.key_is("delayed", "1001@2000+1000");
    queue.step(Step::by("w").at(2000).want(0));
    queue.key_is("delayed", "(none)");
    queue.key_is("state", "id=1001 waiting=1001 references=2");
}

#[test]
fn a_retry_falls_in_line_with_what_is_due_at_the_same_time() {
    let mut queue = TestQueue::with(Plan::new().record("x").delayed("y", 2000).delayed("z", 2001));
    queue.step(Step::by("w").want(1));
    let fail = Fail {
        due_ms: 2000,
        ..Fail::to("delayed")
    };
    queue.step(Step::by("w").fail(&of("x"), &fail));
    queue.key_is("delayed", "y@2000+0 x@2000+1 z@2001+0");
}

#[test]
fn a_retry_whose_time_is_over_by_now_has_no_delay() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.step(Step::by("w").want(1));
    let fail = Fail {
        due_ms: 1999,
        ..Fail::to("delayed")
    };
    queue.step(Step::by("w").at(2000).fail(&of("x"), &fail));
    queue.key_is("delayed", "x@1999+0");
    queue.key_is("vitals", "x={am:1 as:1 d:0 fr:boom po:1000}");
}

#[test]
fn a_step_that_is_refused_leaves_what_is_due_to_the_next_one() {
    let mut queue = TestQueue::with(Plan::new().delayed("y", 2000));
    let step = queue.step_call(&Step::by("w").at(3000).want(1));
    assert!(step.exec(&mut Forbidden::command("lpop").connection).is_err());
    let reply = queue.step(Step::by("w").at(3000).want(1));
    assert_eq!(reply, "[[] [0 y <[7 {} a 1]> '' 1] -1 0 0]");
    queue.key_is("state", "id=1 active=1");
}

#[test]
fn many_due_jobs_start_without_a_place_in_line() {
    let plan = (0..20).fold(Plan::new(), |plan, job| plan.delayed(&format!("d{job:02}"), 2000));
    let mut queue = TestQueue::with(plan);
    queue.skip_events();
    queue.step(Step::by("w").at(2000).want(18));
    queue.key_is("log", "20-r1(d18 d19)");
    queue.key_is("delayed", "(none)");
    queue.key_is("state", "id=20 waiting=2 active=18 references=1");
    let ids: Vec<String> = (0..20).map(|job| format!("d{job:02}")).collect();
    queue.events_are(&format!(
        "[X waiting [{}] prev delayed] [X active [{}] prev waiting]",
        ids.join(" "),
        ids[..18].join(" ")
    ));
}

#[test]
fn of_very_many_due_jobs_those_stay_delayed_that_cannot_start() {
    let plan = (0..1000).fold(Plan::new(), |plan, _| plan.delayed("", 2000));
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").at(2000).want(3));
    queue.key_is("log", "(none)");
    queue.key_is("state", "id=1000 active=3");
    // others who wait hear of it
    queue.key_is("wake", "set");
    let reply = queue.step(Step::by("v").at(2000).want(1));
    assert!(reply.starts_with("[[] [0 4 "), "{reply}");
}

#[test]
fn many_due_jobs_wait_while_the_queue_is_paused() {
    let plan = (0..20).fold(Plan::new(), |plan, job| plan.delayed(&format!("d{job:02}"), 2000));
    let mut queue = TestQueue::with(plan);
    queue.command("HSET", "meta", &["paused", "1"]);
    queue.step(Step::by("w").at(2000).want(30));
    queue.key_is("delayed", "(none)");
    queue.key_is("state", "id=20 waiting=20 references=1");
}

#[test]
fn a_step_that_is_refused_loses_no_due_job() {
    for command in ["hset", "hmget", "lpop", "xadd"] {
        let plan = (0..20).fold(Plan::new(), |plan, _| plan.delayed("", 2000));
        let mut queue = TestQueue::with(plan);
        let step = queue.step_call(&Step::by("w").at(3000).want(30));
        assert!(
            step.exec(&mut Forbidden::command(command).connection).is_err(),
            "{command}"
        );
        let reply = queue.step(Step::by("w").at(3000).want(30));
        assert_eq!(reply.matches("<[").count(), 20, "{command}: {reply}");
    }
}
