//! active -> front of waiting, for the jobs of workers whose lease ran out, or that a worker does not hold

use redis::Value;

use crate::given::{
    plan::Plan,
    queue::TestQueue,
    scheduler::Upsert,
    step::{at, of, Step},
};

/// `dead` holds the frame 1..4 and the record x, and completed job 2; `alive` holds 6.
fn queue() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(4).record("x").frame(1).frame(1));
    queue.step(Step::by("dead").named("bob").want(5));
    queue.step(Step::by("alive").want(1));
    queue.step(Step::by("dead").at(1010).done(1, 4, 1, 1));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn jobs_of_living_workers_stay() {
    let mut queue = queue();
    let keys = queue.show();
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[]");
    queue.keys_are(&keys.replace("state:", "stalled: set\nstate:"));
    queue.events_are("");
}

#[test]
fn unfinished_jobs_of_a_dead_worker_head_the_line() {
    let mut queue = queue();
    queue.end_lease("dead");
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[1 3 4 x]");
    queue.keys_are(
        "completed: 2@1010
         frames: 1=1
         front: 1 3 4 x
         jobs: 1=[7 {} a 1] 3=[7 {} a 3] 4=[7 {} a 4] x=[7 {} a 1]
         lease:alive: set
         log: 1-4 6-1 7-1
         runs: 2=[1 1 4 1000 bob '']
         stalled: set
         state: cursor=6-1 id=7 waiting=5 active=1 completed=1 references=1
         takes: 6=[1000 '' alive '']
         vitals: 1={as:1 pb:bob po:1000 st:1} 3={as:1 pb:bob po:1000 st:1} 4={as:1 pb:bob po:1000 st:1} x={as:1 pb:bob po:1000 st:1}
         wake: set",
    );
    let ids: Vec<String> = queue
        .told()
        .iter()
        .map(|event| format!("{} {}", event.name, event.fields[0].1))
        .collect();
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    assert_eq!(
        ids,
        [
            "stalled 1",
            "stalled 3",
            "stalled 4",
            "stalled x",
            "waiting 1",
            "waiting 3",
            "waiting 4",
            "waiting x"
        ]
    );
}

#[test]
fn a_job_brought_back_counts_its_starts() {
    let mut queue = queue();
    queue.end_lease("dead");
    queue.recover_stalled(1020, 60_000, 1);
    let reply = queue.step(Step::by("v").at(1030).want(1));
    assert_eq!(reply, "[[] [0 1 <[7 {} a 1]> <{as:1 pb:bob po:1000 st:1}> 2] -1 0 1]");
}

#[test]
fn a_job_that_stalled_too_often_carries_its_failure() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    for _ in 0..2 {
        queue.step(Step::by("dead").want(1));
        queue.end_lease("dead");
        queue.command("DEL", "stalled", &[]);
        queue.recover_stalled(1020, 60_000, 1);
    }
    queue.key_is(
        "vitals",
        "1={as:2 df:job stalled more than allowable limit po:1000 st:2}",
    );
    queue.key_is("front", "1");
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.step(Step::by("dead").want(1));
    queue.end_lease("dead");
    queue.recover_stalled(1020, 60_000, 0);
    queue.key_is(
        "vitals",
        "x={as:1 df:job stalled more than allowable limit po:1000 st:1}",
    );
}

/// `dead`, which tells how many jobs it runs at once, holds the frame 1..4, the record x and 6; `other`, with a single slot, 7 and 8.
fn taken_in_advance(slots: u32) -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(4).record("x").frame(1).frame(1).frame(1));
    queue.step(Step::by("dead").named("bob").slots(slots).want(6));
    queue.step(Step::by("other").slots(1).want(2));
    queue.end_lease("dead");
    queue.end_lease("other");
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn of_each_worker_as_many_count_as_it_has_slots_and_the_rest_is_suspect() {
    let mut queue = taken_in_advance(2);
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[1 2 7]");
    queue.key_is("front", "1 2 3 4 6 7 8 x");
    queue.key_is(
        "vitals",
        "1={as:1 pb:bob po:1000 st:1} 2={as:1 pb:bob po:1000 st:1} 3={as:0 su:1} 4={as:0 su:1} 6={as:0 su:1} \
         7={as:1 po:1000 st:1} 8={as:0 su:1} x={as:0 su:1}",
    );
    let told = queue.told();
    let ids = |name: &str| -> Vec<&str> {
        let events = told.iter().filter(|event| event.name == name);
        events.map(|event| event.fields[0].1.as_str()).collect()
    };
    // by parcels, the last first
    assert_eq!(ids("waiting"), ["6", "7", "8", "x", "1", "2", "3", "4"]);
    assert_eq!(ids("stalled"), ["7", "1", "2"]);
}

#[test]
fn with_no_stall_allowed_all_count() {
    let mut queue = taken_in_advance(2);
    assert_eq!(queue.recover_stalled(1020, 60_000, 0), "[1 2 3 4 6 7 8 x]");
}

#[test]
fn of_a_worker_of_which_nothing_is_remembered_all_count() {
    let mut queue = taken_in_advance(2);
    queue.command("DEL", "memo:dead:s", &[]);
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[1 2 3 4 6 7 x]");
}

#[test]
fn a_suspect_is_not_taken_in_advance_and_counts_the_next_time() {
    let mut queue = taken_in_advance(1);
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[1 7]");
    queue.command("DEL", "front", &[]);
    queue.command("RPUSH", "front", &["3", "x", "1", "2", "4", "6", "7", "8"]);
    let reply = queue.step(Step::by("v").at(1030).slots(1).want(1).surplus(5));
    assert_eq!(reply, "[[] [0 3 <[7 {} a 3]> <{as:0 su:1}> 1] -1 0 1]");
    // one that comes before it ended, and is not recorded
    let reply = queue.step(Step::by("v").at(1029).slots(1).want(1));
    assert_eq!(reply, "[[] [0 x <[7 {} a 1]> <{as:0 su:1}> 1] -1 0 1]");
    queue.end_lease("v");
    queue.command("DEL", "stalled", &[]);
    assert_eq!(queue.recover_stalled(1040, 60_000, 1), "[x 3]");
    queue.key_is("front", "x 3 1 2 4 6 7 8");
}

#[test]
fn a_job_that_stalled_before_counts_though_others_are_older() {
    let mut queue = taken_in_advance(1);
    queue.recover_stalled(1020, 60_000, 1);
    queue.step(Step::by("v").at(1030).slots(1).want(8));
    queue.end_lease("v");
    queue.command("DEL", "stalled", &[]);
    queue.recover_stalled(1040, 60_000, 1);
    queue.step(Step::by("v").at(1050).want(8));
    let job =
        |at: usize, what: &str| format!("{at}={{as:2 df:job stalled more than allowable limit {what}po:1030 st:2}}");
    let vitals = queue.show();
    for expected in [job(1, "pb:bob "), job(7, "")] {
        assert!(vitals.contains(&expected), "{vitals}");
    }
}

#[test]
fn frames_that_nobody_has_touched_are_counted() {
    let mut queue = TestQueue::with(Plan::new().frame(3).frame(1).frame(4).frame(64));
    queue.step(Step::by("dead").slots(6).want(72));
    queue.end_lease("dead");
    assert!(queue.find_uncounted(0, "", &[]).uncounted().is_some());
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[1 2 3 4 5 6]");
}

#[test]
fn what_a_worker_does_not_hold_any_more_counts() {
    let mut queue = TestQueue::with(Plan::new().frame(4));
    queue.step(Step::by("w").slots(1).want(4));
    let ids = queue.bring_back(1010, 0, "w", &[("2", 4)], 1);
    assert_eq!(ids, ["1", "3", "4"]);
}

#[test]
fn a_job_of_a_scheduler_never_stalls_too_often_as_long_as_that_is_there() {
    for (is_there, fields) in [
        (true, "{as:1 po:1030 st:1}"),
        (false, "{as:1 df:job stalled more than allowable limit po:1030 st:1}"),
    ] {
        let mut queue = TestQueue::fresh();
        queue.upsert(1030, &Upsert::of("s"));
        queue.step(Step::by("dead").at(1030).want(1));
        if !is_there {
            queue.command("HDEL", "scheduler", &["s"]);
            queue.command("ZREM", "schedulers", &["s"]);
        }
        queue.end_lease("dead");
        assert_eq!(queue.recover_stalled(1040, 60_000, 0), "[repeat:s:1030]");
        queue.key_is("vitals", &format!("repeat:s:1030={fields}"));
    }
}

#[test]
fn one_scan_an_interval_is_enough() {
    let mut queue = queue();
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[]");
    queue.end_lease("dead");
    let keys = queue.show();
    assert_eq!(queue.recover_stalled(1021, 60_000, 1), "[]");
    queue.keys_are(&keys);
    queue.command("DEL", "stalled", &[]);
    assert_eq!(queue.recover_stalled(1022, 60_000, 1), "[1 3 4 x]");
}

#[test]
fn a_scan_that_comes_an_interval_after_the_last_is_carried_out() {
    let mut queue = queue();
    queue.recover_stalled(1020, 60_000, 1);
    // the next one may be on its way for less long than this one was
    let Value::Int(closed_ms) = queue.command("PTTL", "stalled", &[]) else {
        panic!("PTTL")
    };
    assert!((0..=45_000).contains(&closed_ms), "{closed_ms}");
}

#[test]
fn a_frame_that_nobody_finished_leaves_the_log() {
    let mut queue = TestQueue::with(Plan::new().frame(2));
    queue.step(Step::by("dead").want(2));
    queue.end_lease("dead");
    queue.recover_stalled(1020, 60_000, 1);
    queue.key_is("log", "(none)");
    queue.key_is("takes", "(none)");
}

#[test]
fn a_job_that_was_let_go_and_not_moved_is_brought_back() {
    let mut queue = TestQueue::with(Plan::new().frame(1).record("x"));
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").let_go(&at(1, 1, 0)).let_go(&of("x")));
    queue.key_is("active", "1=[1000 1 -w.6 ''] x=[1000 1 -w.6 '']");
    // they may still be moved
    assert_eq!(queue.recover_stalled(1010, 1, 1), "[]");
    queue.end_lease("-w.6");
    queue.command("DEL", "stalled", &[]);
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[1 x]");
}

#[test]
fn jobs_that_are_let_go_later_do_not_hold_up_those_that_were_let_go_before() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").let_go(&of("x")));
    queue.end_lease("-w.6");
    queue.step(Step::by("w").let_go(&of("y")));
    assert_eq!(queue.recover_stalled(1010, 60_000, 1), "[x]");
}

/// `w` holds the frame 1..4, the record x and 6; `other` holds 7.
fn held() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(4).record("x").frame(1).frame(1));
    queue.step(Step::by("w").named("bob").want(6));
    queue.step(Step::by("other").want(1));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn what_a_worker_holds_stays() {
    let mut queue = held();
    let keys = queue.show();
    let all = ["1", "2", "3", "4", "x", "6"].map(|id| (id, 4));
    assert!(queue.bring_back(1010, 0, "w", &all, 1).is_empty());
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn what_a_worker_does_not_hold_heads_the_line() {
    let mut queue = held();
    let ids = queue.bring_back(1010, 0, "w", &[("2", 4), ("4", 4)], 1);
    assert_eq!(ids, ["1", "3", "6", "x"]);
    queue.keys_are(
        "front: 1 3 6 x
         jobs: 1=[7 {} a 1] 3=[7 {} a 3] 6=[7 {} a 1] x=[7 {} a 1]
         lease:other: set
         lease:w: set
         log: 1-4 7-1
         state: cursor=7-1 id=7 waiting=4 active=3 references=1
         takes: 1=[1000 0101 w bob] 7=[1000 '' other '']
         vitals: 1={as:1 pb:bob po:1000 st:1} 3={as:1 pb:bob po:1000 st:1} 6={as:1 pb:bob po:1000 st:1} x={as:1 pb:bob po:1000 st:1}
         wake: set",
    );
    // the others end as ever
    let reply = queue.step(Step::by("w").at(1020).done(1, 4, 1, 1).done(1, 4, 3, 1));
    assert_eq!(reply, "[[] [] -1 0 1]");
    let reply = queue.step(Step::by("w").at(1030).done(1, 4, 0, 1));
    assert_eq!(reply, "[[[1 0 -2 0]] [] -1 0 1]");
}

#[test]
fn a_copy_that_comes_late_takes_nothing_away() {
    let mut queue = held();
    let mut lost = queue.find_lost(0, "w", &[]);
    let (items, _, _) = lost.parcel().expect("what is lost");
    let recover = |queue: &mut TestQueue, number: u64| {
        let mut call = queue.call(&chasquimq::redis::call::library::RECOVER_STALLED);
        call.arg(1010).arg("c").arg("b").arg(number);
        call.arg(1).arg("w").arg(items.as_slice()).arg(1);
        queue.carry_out(&call)
    };
    assert_eq!(recover(&mut queue, 1), "[0 6 [1 2 3 4 6 x]]");
    // under another claim
    queue.step(Step::by("w").at(1020).number(9).want(2));
    let keys = queue.show();
    assert_eq!(recover(&mut queue, 2), "[0 0 []]");
    queue.keys_are(&keys);
}

#[test]
fn many_bytes_are_brought_back_a_part_at_a_time() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y").record("z"));
    queue.step(Step::by("w").want(3));
    for id in ["x", "y", "z"] {
        // a failure of 600 kB
        let fr = "f".repeat(600_000);
        let mut fields = chasquimq::msgpack::Packer::default();
        fields.map(1).str("fr").str(&fr);
        let mut set = redis::cmd("HSET");
        set.arg(queue.probe.keys.key("vitals")).arg(id).arg(fields.0);
        queue.carry_out_unchecked(&set);
    }
    queue.end_lease("w");
    let (items, count, is_last) = queue.find_lost(0, "", &[]).parcel().expect("what is lost");
    assert_eq!((count, is_last), (3, true));
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::RECOVER_STALLED, Some(1010));
    call.arg(1).arg("").arg(items).arg(1);
    assert_eq!(queue.carry_out(&call), "[1 2 [y z]]");
    queue.key_is("front", "y z");
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[x]");
    queue.key_is("front", "x y z");
}

#[test]
fn a_call_sent_again_tells_of_the_same_jobs() {
    let mut queue = queue();
    queue.end_lease("dead");
    let (items, ..) = queue.find_lost(0, "", &[]).parcel().expect("what is lost");
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::RECOVER_STALLED, Some(1020));
    call.arg(1).arg("").arg(items).arg(1);
    assert_eq!(queue.carry_out(&call), "[0 4 [1 3 4 x]]");
    let keys = queue.show();
    assert_eq!(queue.carry_out(&call), "[0 4 [1 3 4 x]]");
    queue.keys_are(&keys);
}
