//! A job of a scheduler, now.

use crate::given::{
    queue::{run_once, TestQueue},
    scheduler::Upsert,
    step::Step,
};

#[test]
fn it_waits_and_the_next_run_stays_where_it_is() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").offset(50));
    queue.skip_events();
    assert_eq!(queue.run_now(1010, "s"), "1");
    queue.keys_are(
        r#"delayed: repeat:s:1050@1050+0
           jobs: repeat:s:01010=[1010 {"a":1,"timestamp":1010,"jobId":"repeat:s:01010","delay":0} n 1] repeat:s:1050=[1000 {"a":1,"timestamp":1000,"jobId":"repeat:s:1050","delay":50} n 1]
           log: 2-r1(repeat:s:01010)
           scheduler: s=1[n 1 T R 100 50]
           schedulers: s@1050
           state: id=2 waiting=1 references=1
           wake: set"#,
    );
    queue.events_are("[B [repeat:s:01010] 1 [n] waiting]");
    // it is followed by none
    queue.step(Step::by("w").at(1010).want(1));
    assert_eq!(queue.follow(1011, &[("s", 1010, 0)]), "[0]");
}

#[test]
fn several_in_a_millisecond_have_ids_of_their_own() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").offset(50));
    assert_eq!([queue.run_now(1010, "s"), queue.run_now(1010, "s")], ["1", "2"]);
    queue.key_is("log", "2-r1(repeat:s:01010) 3-r2(repeat:s:001010)");
}

#[test]
fn one_that_is_paused_runs_as_well() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").offset(50));
    run_once!(queue, PAUSE_SCHEDULER, 1005, "s");
    assert_eq!(queue.run_now(1010, "s"), "1");
    queue.key_is("log", "2-r1(repeat:s:01010)");
}

#[test]
fn one_that_is_not_there_is_told() {
    let mut queue = TestQueue::fresh();
    assert_eq!(queue.run_now(1010, "s"), "0");
    queue.keys_are("");
}
