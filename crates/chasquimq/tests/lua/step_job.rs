//! waiting -> active and active -> completed | failed | delayed | waiting, one job at a time, under a token

use chasquimq::redis::call::library::STEP_JOB;

use crate::given::{
    plan::Plan,
    queue::{run_once, show_reply, TestQueue},
    step::{of, Fail, Step},
    tree::Tree,
};

/// What one call is given. It is call 1 of slot 1 of client `c`, at 1000, and fetches nothing, unless told otherwise.
struct Call<'a> {
    number: u64,
    now_ms: u64,
    token: &'a str,
    fetch: u32,
    ended: Step,
}

const CALL: fn() -> Call<'static> = || Call {
    number: 1,
    now_ms: 1000,
    token: "t",
    fetch: 0,
    ended: Step::by(""),
};

fn step(queue: &mut TestQueue, call: &Call<'_>) -> String {
    let (outcomes, keeps) = call.ended.packed();
    let mut script = queue.call(&STEP_JOB);
    script.arg(call.now_ms).arg("c").arg(1).arg(call.number).arg(call.token);
    script
        .arg(60_000)
        .arg("w")
        .arg("bob")
        .arg(call.fetch)
        .arg(outcomes)
        .arg(keeps)
        .arg(&[0u8][..]);
    show_reply(&queue.carry_out_value(&script))
}

/// For the worker w.
pub fn take(queue: &mut TestQueue, number: u64, token: &str) -> String {
    let call = Call {
        number,
        token,
        fetch: 1,
        ..CALL()
    };
    step(queue, &call)
}

/// `t` holds the record x by take 1, and the frame 2 by take 2.
fn held() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().record("x").frame(1).frame(2));
    take(&mut queue, 1, "t");
    take(&mut queue, 2, "t");
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

const X: &str = "[1000 1 t#c.1.1 bob]";

#[test]
fn a_record_is_taken_with_a_lease_of_its_own() {
    let mut queue = TestQueue::with(Plan::new().record("x").frame(1));
    queue.skip_events();
    assert_eq!(
        take(&mut queue, 1, "t"),
        "[0 0 -1 0 x active <[7 {} a 1]> <{as:1 pb:bob po:1000}> '']"
    );
    queue.keys_are(&format!(
        "active: x={X}
         jobs: x=[7 {{}} a 1]
         lease:t#c.1.1: set
         log: 2-1
         state: cursor=1-r1 id=2 waiting=1 active=1 references=1
         wake: set"
    ));
    queue.events_are("[X active [x] prev waiting]");
}

#[test]
fn a_frame_of_one_stays_one_and_a_larger_one_is_broken() {
    let mut queue = TestQueue::with(Plan::new().frame(1).frame(2));
    assert_eq!(
        take(&mut queue, 1, "t"),
        "[0 0 -1 0 1 active <[7 {} a 1]> <{as:1 pb:bob po:1000}> '']"
    );
    queue.key_is("takes", "1=[1000 '' t#c.1.1 bob]");
    assert_eq!(
        take(&mut queue, 2, "t"),
        "[0 0 -1 0 2 active <[7 {} a 1]> <{as:1 pb:bob po:1000}> '']"
    );
    queue.key_is("active", "2=[1000 1 t#c.1.2 bob]");
    queue.key_is("front", "3");
}

#[test]
fn nothing_is_taken_of_an_empty_or_a_paused_queue() {
    let mut queue = TestQueue::with(Plan::new().delayed("d", 1500));
    queue.skip_events();
    let keys = queue.show();
    assert_eq!(take(&mut queue, 1, "t"), "[0 0 1500 0]");
    run_once!(queue, PAUSE, 1000, 1);
    queue.add(1000, Plan::new().frame(1));
    queue.skip_events();
    assert_eq!(take(&mut queue, 2, "t"), "[0 1 1500 0]");
    assert!(!keys.contains("lease"));
    queue.events_are("");
}

#[test]
fn somebody_else_hears_of_what_is_due_soon() {
    for (due_ms, is_heard_of) in [(2000, true), (61_001, false)] {
        let mut queue = TestQueue::with(Plan::new().record("x").delayed("y", due_ms));
        queue.command("DEL", "wake", &[]);
        take(&mut queue, 1, "t");
        assert_eq!(queue.probe.snapshot().wake, is_heard_of, "{due_ms}");
    }
}

#[test]
fn the_token_0_takes_without_a_lease() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    take(&mut queue, 1, "0");
    queue.key_is("active", "x=[1000 1 0#c.1.1 bob]");
    queue.key_is("lease:0#c.1.1", "(none)");
}

#[test]
fn a_call_sent_again_gives_the_same_job() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
    let first = take(&mut queue, 1, "t");
    let keys = queue.show();
    assert_eq!(take(&mut queue, 1, "t"), first);
    queue.keys_are(&keys);
}

#[test]
fn a_call_sent_again_does_not_give_a_job_that_went_elsewhere() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    take(&mut queue, 1, "t");
    run_once!(queue, MOVE_ACTIVE, 1000, "x", "0", 0);
    queue.step(Step::by("w").want(1));
    assert_eq!(take(&mut queue, 1, "t"), "[0 0 -1 0]");
}

#[test]
fn a_record_completes_and_the_next_is_taken() {
    let mut queue = held();
    let call = Call {
        number: 3,
        now_ms: 1010,
        fetch: 1,
        ended: Step::by("").done_record("x", "5"),
        ..CALL()
    };
    assert_eq!(
        step(&mut queue, &call),
        "[0 0 -1 0 3 active <[7 {} a 1]> <{as:1 pb:bob po:1010}> '']"
    );
    queue.key_is("completed", "x@1010");
    queue.key_is("vitals", "x={am:1 as:1 fo:1010 pb:bob po:1000 rv:5}");
    queue.key_is("lease:t#c.1.1", "(none)");
    queue.key_is("lease:t#c.1.3", "set");
    queue.events_are("[X completed [x] returnvalue [5] prev active] [X active [3] prev waiting]");
}

#[test]
fn a_job_of_a_frame_completes_as_a_record() {
    let mut queue = held();
    let call = Call {
        number: 3,
        ended: Step::by("").done_record("2", "5"),
        ..CALL()
    };
    assert_eq!(step(&mut queue, &call), "[0 0 -1 0]");
    queue.key_is("completed", "2@1000");
    queue.key_is("vitals", "2={am:1 as:1 fo:1000 pb:bob po:1000 rv:5}");
    queue.key_is("takes", "(none)");
    queue.key_is("lease:t#c.1.2", "(none)");
}

#[test]
fn a_failed_try_of_a_frame_or_a_record_leaves_its_lease() {
    let mut queue = held();
    for (number, id) in [(3, "x"), (4, "2")] {
        let call = Call {
            number,
            now_ms: 1010,
            ended: Step::by("").fail(&of(id), &Fail::to("failed")),
            ..CALL()
        };
        assert_eq!(step(&mut queue, &call), "[0 0 -1 0]");
    }
    queue.key_is("failed", "2@1010 x@1010");
    queue.key_is("jobs", "2=[7 {} a 1] x=[7 {} a 1]");
    queue.key_is("lease:t#c.1.1", "(none)");
    queue.key_is("lease:t#c.1.2", "(none)");
    queue.key_is("takes", "(none)");
}

#[test]
fn who_does_not_hold_a_job_does_not_end_it() {
    let mut queue = held();
    queue.end_lease("t#c.1.2");
    let keys = queue.show();
    let refusals = [
        ("x", "v", -6),
        ("x", "t#c.1", -6),
        ("9", "t", -1),
        ("3", "t", -2),
        ("3", "0", -3),
        ("2", "t", -2),
    ];
    for (id, token, code) in refusals {
        for ended in [
            Step::by("").done_record(id, ""),
            Step::by("").fail(&of(id), &Fail::to("failed")),
        ] {
            let call = Call {
                number: 3,
                token,
                fetch: 1,
                ended,
                ..CALL()
            };
            assert_eq!(step(&mut queue, &call), format!("[{code} 0 -1 0]"), "{id} by {token}");
        }
    }
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn the_token_0_ends_anybodys_job_and_a_workers_lease_stays() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
    queue.step(Step::by("w").want(2));
    for (number, id, token) in [(1, "x", "0"), (2, "y", "w:4.7")] {
        let call = Call {
            number,
            token,
            ended: Step::by("").done_record(id, ""),
            ..CALL()
        };
        assert_eq!(step(&mut queue, &call), "[0 0 -1 0]");
    }
    queue.key_is("completed", "x@1000 y@1000");
    queue.key_is("lease:w", "set");
}

#[test]
fn what_was_taken_manually_is_recovered_when_its_lease_is_over() {
    let mut queue = held();
    queue.end_lease("t#c.1.1");
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[x]");
    queue.key_is("takes", "2=[1000 '' t#c.1.2 bob]");
}

#[test]
fn a_parent_does_not_complete_before_its_children() {
    for (options, code) in [("{}", "-4"), (r#"{"failParentOnFailure":true}"#, "-9")] {
        let mut queue = held();
        let keys = queue.probe.keys.clone();
        queue.add_flows(1000, &Tree::new().child_of_with(&keys, "x", "a", options));
        if code == "-9" {
            queue.step(Step::by("w").want(3));
            queue.step(Step::by("w").fail(&of("a"), &Fail::to("failed")));
        }
        let before = queue.show();
        let call = Call {
            number: 3,
            ended: Step::by("").done_record("x", "1"),
            ..CALL()
        };
        assert_eq!(step(&mut queue, &call), format!("[{code} 0 -1 0]"));
        // whatever the token
        let call = Call {
            token: "other",
            number: 4,
            ..call
        };
        assert_eq!(step(&mut queue, &call), format!("[{code} 0 -1 0]"));
        queue.keys_are(&before);
    }
}
