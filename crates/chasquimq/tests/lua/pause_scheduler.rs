//! A scheduler makes no iterations until it is resumed.

use crate::given::{
    queue::{run, run_once, TestQueue},
    scheduler::Upsert,
    step::Step,
};

#[test]
fn the_iteration_that_stands_to_start_is_taken_back() {
    for (upsert, state) in [
        (Upsert::of("s"), "waiting"),
        (Upsert::of("s").offset(50), "delayed"),
        (Upsert::of("s").priority(2), "prioritized"),
        (Upsert::of("s").lifo(), "waiting"),
    ] {
        let mut queue = TestQueue::fresh();
        let slot = queue.upsert(1030, &upsert);
        let slot = slot
            .trim_start_matches('[')
            .split(' ')
            .next()
            .expect("a slot")
            .to_owned();
        queue.skip_events();
        assert_eq!(run_once!(queue, PAUSE_SCHEDULER, 1040, "s"), "1");
        queue.key_is("jobs", "(none)");
        queue.key_is("schedulers", &format!("s@{slot}"));
        queue.events_are(&format!("[X removed [repeat:s:{slot}] prev {state}]"));
        assert_eq!(run!(queue, COUNT_JOBS), "[0 0 0 0 0 0 0]");
        assert_eq!(run_once!(queue, PAUSE_SCHEDULER, 1050, "s"), "1");
        queue.events_are("");
    }
}

#[test]
fn its_options_are_held() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1500));
    run_once!(queue, PAUSE_SCHEDULER, 1010, "s");
    queue.keys_are(
        r#"scheduler: s=1[n 1 T R 0 0 false {"a":1,"timestamp":1000,"jobId":"repeat:s:1500","delay":500,"prevMillis":1500}]
           schedulers: s@1500
           state: id=1
           wake: set"#,
    );
}

#[test]
fn one_that_runs_goes_on_and_what_follows_is_held() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1030, &Upsert::of("s"));
    queue.step(Step::by("w").want(1));
    run_once!(queue, PAUSE_SCHEDULER, 1040, "s");
    queue.key_is("scheduler", "s=1[n 1 T R 100 30 false '']");
    assert_eq!(queue.follow(1050, &[("s", 1030, 0)]), "[0]");
    queue.key_is("active", "repeat:s:1030=[1000 1 w '']");
    queue.key_is("delayed", "(none)");
    queue.key_is(
        "scheduler",
        r#"s=2[n 1 T R 100 30 false {"a":1,"timestamp":1050,"jobId":"repeat:s:1130","delay":80}]"#,
    );
    queue.key_is("schedulers", "s@1130");
    // once
    let keys = queue.show();
    assert_eq!(queue.follow(1060, &[("s", 1030, 0)]), "[0]");
    queue.keys_are(&keys);
}

#[test]
fn an_upsert_leaves_it_paused() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1500));
    run_once!(queue, PAUSE_SCHEDULER, 1010, "s");
    queue.skip_events();
    assert_eq!(queue.upsert(1020, &Upsert::of("s").next(7500)), "0");
    queue.key_is("jobs", "(none)");
    queue.key_is("schedulers", "s@7500");
    queue.events_are("");
    assert_eq!(queue.upsert(1020, &Upsert::of("s").every(100)), "0");
    queue.key_is(
        "scheduler",
        r#"s=1[n 1 T R 100 0 false {"a":1,"timestamp":1020,"jobId":"repeat:s:1020","delay":0}]"#,
    );
}

#[test]
fn one_that_is_tried_again_stays() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s"));
    queue.step(Step::by("w").want(1));
    run_once!(queue, MOVE_ACTIVE, 1010, "repeat:s:1000", "0", 5000);
    run_once!(queue, PAUSE_SCHEDULER, 1020, "s");
    queue.key_is("delayed", "repeat:s:1000@5000+0");
    queue.key_is("scheduler", "s=1[n 1 T R 100 0 false '']");
}

#[test]
fn one_that_is_not_there_is_told() {
    let mut queue = TestQueue::fresh();
    assert_eq!(run_once!(queue, PAUSE_SCHEDULER, 1000, "s"), "0");
    queue.keys_are("");
}

#[test]
fn a_call_sent_again_is_carried_out_once() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1500));
    let pause = |queue: &mut TestQueue| run!(queue, PAUSE_SCHEDULER, 1010, "c", "b", 1, "s");
    assert_eq!(pause(&mut queue), "1");
    let held = r#"{"a":1,"timestamp":1000,"jobId":"repeat:s:1500","delay":500,"prevMillis":1500}"#;
    assert_eq!(queue.resume(1020, "s", held, 1500), "1");
    let keys = queue.show();
    assert_eq!(pause(&mut queue), "1");
    queue.keys_are(&keys);
}
