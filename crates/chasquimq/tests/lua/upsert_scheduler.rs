//! Makes a scheduler, or changes it, with its next iteration.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    scheduler::Upsert,
    step::Step,
};

#[test]
fn a_new_scheduler_runs_at_once() {
    let mut queue = TestQueue::fresh();
    assert_eq!(queue.upsert(1030, &Upsert::of("s")), "[1030 0]");
    queue.keys_are(
        r#"jobs: repeat:s:1030=[1030 {"a":1,"timestamp":1030,"jobId":"repeat:s:1030","delay":0} n 1]
           log: 1-r1(repeat:s:1030)
           scheduler: s=1[n 1 T R 100 30]
           schedulers: s@1030
           state: id=1 waiting=1 references=1
           wake: set"#,
    );
    queue.events_are("[B [repeat:s:1030] 1 [n] waiting]");
}

#[test]
fn at_a_time_of_the_caller_it_is_delayed_and_tells_that_time() {
    let mut queue = TestQueue::fresh();
    assert_eq!(queue.upsert(1000, &Upsert::of("s").next(1500)), "[1500 500]");
    queue.key_is("delayed", "repeat:s:1500@1500+0");
    queue.key_is(
        "jobs",
        r#"repeat:s:1500=[1000 {"a":1,"timestamp":1000,"jobId":"repeat:s:1500","delay":500,"prevMillis":1500} n 1]"#,
    );
    queue.key_is("scheduler", "s=1[n 1 T R 0 0]");
    queue.events_are("[B [repeat:s:1500] 1 [n] delayed [1500]]");
}

#[test]
fn its_first_slot_follows_its_offset_and_its_start() {
    let mut queue = TestQueue::fresh();
    for (upsert, slot) in [
        (Upsert::of("a").offset(30), "[1030 1]"),
        (Upsert::of("b").offset(29), "[1129 100]"),
        (Upsert::of("c").offset(28), "[1128 99]"),
        (Upsert::of("d").start(2000), "[2000 971]"),
        (Upsert::of("e").start(10), "[1029 0]"),
        (Upsert::of("f").start(2000).offset(5), "[2000 971]"),
    ] {
        assert_eq!(queue.upsert(1029, &upsert), slot);
    }
    queue.key_is(
        "scheduler",
        "a=1[n 1 T R 100 30] b=1[n 1 T R 100 29] c=1[n 1 T R 100 28] d=1[n 1 T R 100 0] e=1[n 1 T R 100 29] f=1[n 1 T R 100 5]",
    );
}

#[test]
fn the_same_again_replaces_the_iteration_wherever_it_waits() {
    for (upsert, set, content) in [
        (Upsert::of("s"), "log", "1-r1(repeat:s:1030) 2-r2(repeat:s:1030)"),
        (Upsert::of("s").offset(50), "delayed", "repeat:s:1050@1050+0"),
        (Upsert::of("s").priority(2), "prioritized", "repeat:s:1030@2+2"),
        (Upsert::of("s").lifo(), "front", "repeat:s:1030"),
    ] {
        let mut queue = TestQueue::fresh();
        let first = queue.upsert(1030, &upsert);
        let slot = |reply: &str| reply.split(' ').next().map(str::to_owned);
        let again = queue.upsert(1040, &upsert);
        assert_eq!(slot(&first), slot(&again), "{set}");
        queue.key_is(set, content);
    }
}

#[test]
fn another_interval_runs_at_once_and_keeps_the_offset() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").offset(50));
    assert_eq!(queue.upsert(1010, &Upsert::of("s").every(70)), "[1010 0]");
    queue.key_is("delayed", "(none)");
    queue.key_is("scheduler", "s=1[n 1 T R 70 50]");
}

#[test]
fn one_that_is_active_stays_and_the_next_comes_at_its_slot() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1030, &Upsert::of("s"));
    queue.step(Step::by("w").want(1));
    assert_eq!(queue.upsert(1040, &Upsert::of("s")), "[1130 90]");
    queue.key_is("delayed", "repeat:s:1130@1130+0");
    queue.key_is("active", "repeat:s:1030=[1000 1 w '']");
    // missed slots are skipped, and an offset that is not said again is gone
    let mut queue = TestQueue::fresh();
    queue.upsert(1030, &Upsert::of("s"));
    queue.step(Step::by("w").want(1));
    assert_eq!(queue.upsert(36131, &Upsert::of("s")), "[36200 69]");
    queue.key_is("scheduler", "s=1[n 1 T R 100 0]");
}

#[test]
fn one_that_waits_in_a_paused_queue_stays() {
    let mut queue = TestQueue::fresh();
    run_once!(queue, PAUSE, 1000, 1);
    queue.upsert(1030, &Upsert::of("s"));
    assert_eq!(queue.upsert(1040, &Upsert::of("s")), "[1130 90]");
    queue.key_is("log", "1-r1(repeat:s:1030)");
    queue.key_is("delayed", "repeat:s:1130@1130+0");
}

#[test]
fn a_taken_id_refuses_a_time_of_the_caller() {
    let mut queue = TestQueue::with(Plan::new().record("repeat:s:1500"));
    let keys = queue.show();
    assert_eq!(queue.upsert(1000, &Upsert::of("s").next(1500)), "-10");
    queue.keys_are(&keys);
}

#[test]
fn a_slot_whose_job_was_promoted_and_has_ended_is_used_again() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(11_500));
    run!(queue, PROMOTE_JOBS, 1010, 10);
    queue.step(Step::by("w").at(1020).want(1));
    queue.upsert(1030, &Upsert::of("s").next(12_500));
    // while it runs it is refused
    assert_eq!(queue.upsert(1040, &Upsert::of("s").next(11_500)), "-10");
    queue.step(Step::by("w").at(1050).done_record("repeat:s:11500", "1"));
    assert_eq!(queue.upsert(1060, &Upsert::of("s").next(11_500)), "[11500 10440]");
    queue.key_is("delayed", "repeat:s:11500@11500+0");
    queue.key_is("completed", "(none)");
    queue.key_is("schedulers", "s@11500");
    assert_eq!(run!(queue, COUNT_JOBS), "[0 0 0 0 1 0 0]");
}

#[test]
fn taken_slots_are_passed_over_up_to_a_limit() {
    let mut plan = Plan::new();
    for n in 0..32 {
        plan = plan.record(&format!("repeat:s:{}", 1000 + 100 * n));
    }
    let mut queue = TestQueue::with(plan);
    assert_eq!(queue.upsert(1000, &Upsert::of("s")), "[4200 3200]");
    run_once!(queue, REMOVE_SCHEDULER, 1000, "s");
    queue.add(1000, Plan::new().record("repeat:s:4200"));
    let keys = queue.show();
    assert_eq!(queue.upsert(1000, &Upsert::of("s")), "-11");
    queue.keys_are(&keys);
}

#[test]
fn upserted_as_it_was_a_run_that_is_due_stays() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(2000));
    // by a clock that is ahead, and by one that is behind
    assert_eq!(queue.upsert(2500, &Upsert::of("s").next(3000)), "[2000 0]");
    queue.key_is("schedulers", "s@2000");
    assert_eq!(queue.upsert(900, &Upsert::of("s").next(1000)), "[2000 1100]");
    queue.key_is("delayed", "repeat:s:2000@2000+0");
    // unless it is to begin anew, or its times are others
    assert_eq!(queue.upsert(2500, &Upsert::of("s").next(2500).anew()), "[2500 0]");
    queue.key_is("schedulers", "s@2500");
}

#[test]
fn upserted_as_it_was_no_slot_runs_twice() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(2000));
    queue.step(Step::by("w").at(2000).want(1));
    // a clock that is behind
    let keys = queue.show();
    assert_eq!(queue.upsert(900, &Upsert::of("s").next(1000)), "-10");
    queue.keys_are(&keys);
}

#[test]
fn upserted_as_it_was_just_behind_the_start_of_a_run_no_slot_is_passed_over() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(2000));
    queue.step(Step::by("w").at(2000).want(1));
    // a clock that is ahead
    let keys = queue.show();
    assert_eq!(queue.upsert(4500, &Upsert::of("s").next(5000)), "-1");
    queue.keys_are(&keys);
    assert_eq!(queue.upsert(4500, &Upsert::of("s").next(3000).after(2000)), "[3000 0]");
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").every(1000));
    queue.step(Step::by("w").at(1000).want(1));
    assert_eq!(queue.upsert(3500, &Upsert::of("s").every(1000)), "[2000 0]");
    // a run that comes late on a busy machine
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(2000));
    queue.step(Step::by("w").at(9000).want(1));
    assert_eq!(queue.upsert(12500, &Upsert::of("s").next(13000)), "-1");
    assert_eq!(queue.upsert(12500, &Upsert::of("s").next(3000).after(2000)), "[3000 0]");
}

#[test]
fn a_call_sent_again_is_carried_out_once() {
    let mut queue = TestQueue::fresh();
    let upsert = Upsert::of("s").number(7);
    queue.upsert(1030, &upsert);
    queue.step(Step::by("w").want(1));
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(queue.upsert(1040, &upsert), "[1030 0]");
    queue.keys_are(&keys);
    queue.events_are("");
}
