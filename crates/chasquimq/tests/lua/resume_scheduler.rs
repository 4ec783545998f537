//! A scheduler that is paused goes on.

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    scheduler::Upsert,
    step::Step,
};

const HELD: &str = r#"{"a":1,"timestamp":1000,"jobId":"repeat:s:1050","delay":50}"#;

/// A scheduler that is paused, and runs at 1050, 1150 and so on.
fn paused() -> TestQueue {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").offset(50));
    run_once!(queue, PAUSE_SCHEDULER, 1010, "s");
    queue.skip_events();
    queue
}

#[test]
fn it_goes_on_at_its_slot() {
    let mut queue = paused();
    assert_eq!(queue.resume(1020, "s", HELD, 0), "1");
    queue.keys_are(
        r#"delayed: repeat:s:1050@1050+0
           jobs: repeat:s:1050=[1020 {"a":1,"timestamp":1020,"jobId":"repeat:s:1050","delay":30} n 1]
           scheduler: s=1[n 1 T R 100 50]
           schedulers: s@1050
           state: id=2
           wake: set"#,
    );
    queue.events_are("[B [repeat:s:1050] 1 [n] delayed [1050]]");
    queue.step(Step::by("w").at(1060).want(1));
    assert_eq!(queue.follow(1060, &[("s", 1050, 0)]), "[1150]");
}

#[test]
fn what_was_missed_is_not_made_up_for() {
    let mut queue = paused();
    assert_eq!(queue.resume(9000, "s", HELD, 0), "1");
    queue.key_is("schedulers", "s@9050");
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1500));
    run_once!(queue, PAUSE_SCHEDULER, 1010, "s");
    let held = r#"{"a":1,"timestamp":1000,"jobId":"repeat:s:1500","delay":500,"prevMillis":1500}"#;
    assert_eq!(queue.resume(9000, "s", held, 9500), "1");
    queue.key_is("delayed", "repeat:s:9500@9500+0");
}

#[test]
fn where_nothing_is_to_come_it_is_not_paused_any_more() {
    let mut queue = paused();
    assert_eq!(queue.resume(1020, "s", HELD, -1), "1");
    queue.keys_are("scheduler: s=1[n 1 T R 100 50]\nschedulers: s@1050\nstate: id=1\nwake: set");
}

#[test]
fn what_it_holds_by_now_is_to_be_read_again() {
    let mut queue = paused();
    let keys = queue.show();
    assert_eq!(queue.resume(1020, "s", "{}", 0), "-1");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn one_that_is_not_paused_stays_as_it_is() {
    let mut queue = TestQueue::fresh();
    assert_eq!(queue.resume(1000, "s", "", 0), "0");
    queue.upsert(1000, &Upsert::of("s").offset(50));
    let keys = queue.show();
    assert_eq!(queue.resume(1010, "s", HELD, 0), "1");
    queue.keys_are(&keys);
}

#[test]
fn a_run_that_was_taken_while_it_was_paused_is_followed() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s"));
    queue.step(Step::by("w").want(1));
    run_once!(queue, PAUSE_SCHEDULER, 1010, "s");
    assert_eq!(queue.resume(1020, "s", "", 0), "1");
    assert_eq!(queue.follow(1030, &[("s", 1000, 0)]), "[1100]");
}

#[test]
fn taken_slots_are_passed_over_or_refused() {
    let mut queue = paused();
    queue.add(1010, Plan::new().record("repeat:s:1050"));
    assert_eq!(queue.resume(1020, "s", HELD, 1050), "-10");
    assert_eq!(queue.resume(1020, "s", HELD, 0), "1");
    queue.key_is("schedulers", "s@1150");
    let mut queue = paused();
    for n in 0..33 {
        queue.add(1010, Plan::new().record(&format!("repeat:s:{}", 1050 + 100 * n)));
    }
    assert_eq!(queue.resume(1020, "s", HELD, 0), "-11");
}
