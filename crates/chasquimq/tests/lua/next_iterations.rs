//! Makes what follows iterations that were taken.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    scheduler::{Taken, Upsert},
    step::Step,
};

fn taken(upsert: &Upsert) -> TestQueue {
    let mut queue = TestQueue::fresh();
    queue.upsert(1030, upsert);
    queue.step(Step::by("w").want(1));
    queue.skip_events();
    queue
}

#[test]
fn the_next_slot_is_an_interval_later() {
    let mut queue = taken(&Upsert::of("s"));
    assert_eq!(queue.follow(1040, &[("s", 1030, 0)]), "[1130]");
    queue.keys_are(
        r#"active: repeat:s:1030=[1000 1 w '']
           delayed: repeat:s:1130@1130+0
           jobs: repeat:s:1030=[1030 {"a":1,"timestamp":1030,"jobId":"repeat:s:1030","delay":0} n 1] repeat:s:1130=[1040 {"a":1,"timestamp":1040,"jobId":"repeat:s:1130","delay":90} n 1]
           lease:w: set
           scheduler: s=2[n 1 T R 100 30]
           schedulers: s@1130
           state: cursor=1-r1 id=2 active=1 references=1
           wake: set"#,
    );
    queue.events_are("[B [repeat:s:1130] 1 [n] delayed [1130]]");
}

#[test]
fn missed_slots_are_skipped_and_the_clock_may_go_back() {
    let mut queue = taken(&Upsert::of("s"));
    assert_eq!(queue.follow(1_000_029, &[("s", 1030, 0)]), "[1000030]");
    let mut queue = taken(&Upsert::of("s"));
    assert_eq!(queue.follow(1_000_030, &[("s", 1030, 0)]), "[1000130]");
    let mut queue = taken(&Upsert::of("s"));
    assert_eq!(queue.follow(1130, &[("s", 1030, 0)]), "[1130]");
    queue.key_is("log", "2-r2(repeat:s:1130)");
    let mut queue = taken(&Upsert::of("s"));
    assert_eq!(queue.follow(5, &[("s", 1030, 0)]), "[1130]");
}

#[test]
fn a_time_of_the_caller_is_taken() {
    let mut queue = taken(&Upsert::of("s").next(1030));
    assert_eq!(queue.follow(1040, &[("s", 1030, 2000)]), "[2000]");
    queue.key_is("delayed", "repeat:s:2000@2000+0");
    assert_eq!(queue.follow(1040, &[("s", 2000, 0)]), "[0]");
}

/// Milliseconds of the server's clock, which is this machine's.
fn server_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    since.as_millis() as i64
}

#[test]
fn what_a_slow_clock_made_a_fast_one_does_not_pass_over() {
    let mut queue = TestQueue::fresh();
    let server = server_ms();
    // two seconds behind the server, it takes a run at its time
    let slot = server - 2000;
    queue.upsert(slot as u64, &Upsert::of("s").every(1000));
    queue.step(Step::by("w").at(slot as u64).want(1));
    assert_eq!(
        queue.follow((slot + 5) as u64, &[("s", slot, 0)]),
        format!("[{}]", slot + 1000)
    );
    // by the server's clock the next one is due for a second, and the one behind it is due as well
    queue.step(Step::by("w").at((server + 10) as u64).want(1));
    assert_eq!(
        queue.follow((server + 10) as u64, &[("s", slot + 1000, 0)]),
        format!("[{}]", slot + 2000)
    );
    // the same at times that the caller computes
    queue.step(Step::by("w").at((server + 20) as u64).want(1));
    let taken = Taken::of("s", slot + 2000).next(slot + 4000).first(slot + 3000);
    assert_eq!(
        queue.follow_all((server + 1020) as u64, &[taken]),
        format!("[{}]", slot + 3000)
    );
}

#[test]
fn clocks_that_agree_skip_what_is_past_at_once() {
    let mut queue = TestQueue::fresh();
    let server = server_ms();
    // so far off that nobody takes it for a clock of the deployment
    let slot = server - 100_000;
    queue.upsert(slot as u64, &Upsert::of("s").every(1000));
    queue.step(Step::by("w").at(slot as u64).want(1));
    assert_eq!(
        queue.follow((server + 1) as u64, &[("s", slot, 0)]),
        format!("[{}]", server + 1000)
    );
}

#[test]
fn an_iteration_is_followed_once() {
    let mut queue = taken(&Upsert::of("s"));
    queue.follow(1040, &[("s", 1030, 0)]);
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(queue.follow(1040, &[("s", 1030, 0)]), "[0]");
    assert_eq!(queue.follow(9999, &[("s", 1030, 0), ("s", 930, 0)]), "[0 0]");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn one_told_twice_in_a_call_is_followed_once() {
    let mut queue = taken(&Upsert::of("s"));
    assert_eq!(queue.follow(1040, &[("s", 1030, 0), ("s", 1030, 0)]), "[1130 0]");
    queue.key_is("scheduler", "s=2[n 1 T R 100 30]");
}

#[test]
fn one_whose_scheduler_is_gone_is_the_last() {
    let mut queue = taken(&Upsert::of("s"));
    run_once!(queue, REMOVE_SCHEDULER, 1040, "s");
    let keys = queue.show();
    assert_eq!(queue.follow(1040, &[("s", 1030, 0), ("other", 1030, 0)]), "[0 0]");
    queue.keys_are(&keys);
}

#[test]
fn a_taken_id_is_told_and_left() {
    let mut queue = taken(&Upsert::of("s"));
    queue.add(1040, Plan::new().record("repeat:s:1130"));
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(queue.follow(1040, &[("s", 1030, 0)]), "[0]");
    queue.keys_are(&keys);
    queue.events_are("[X duplicated [repeat:s:1130]]");
}

#[test]
fn many_are_followed_in_one_call() {
    const IDS: [&str; 4] = ["a", "b", "c", "d"];
    let mut queue = TestQueue::fresh();
    for id in IDS {
        queue.upsert(1030, &Upsert::of(id));
    }
    queue.step(Step::by("w").want(4));
    queue.skip_events();
    let taken: Vec<(&str, i64, i64)> = IDS.iter().map(|id| (*id, 1030, 0)).collect();
    assert_eq!(queue.follow(1040, &taken), "[1130 1130 1130 1130]");
    queue.key_is(
        "delayed",
        "repeat:a:1130@1130+0 repeat:b:1130@1130+1 repeat:c:1130@1130+2 repeat:d:1130@1130+3",
    );
    queue.events_are(
        "[B [repeat:a:1130 repeat:b:1130 repeat:c:1130 repeat:d:1130] 4 [n n n n] delayed [1130 1130 1130 1130]]",
    );
}
