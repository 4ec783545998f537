//! active -> failed | delayed | waiting | front: tries that failed, and jobs that are given back.

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    step::{at, of, Fail, Step},
};

fn taken(plan: Plan, jobs: i64) -> TestQueue {
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").named("bob").at(1005).want(jobs));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn a_job_of_a_frame_that_fails_becomes_a_record() {
    let mut queue = taken(Plan::new().frame(3), 3);
    let fail = Fail {
        exhausted: true,
        ..Fail::to("failed")
    };
    assert_eq!(
        queue.step(Step::by("w").at(1010).fail(&at(1, 3, 1), &fail)),
        "[[] [] -1 0 0]"
    );
    queue.keys_are(
        "failed: 2@1010
         jobs: 2=[7 {} a 2]
         lease:w: set
         log: 1-3
         state: cursor=1-3 id=3 active=2
         takes: 1=[1005 101 w bob]
         traces: 2=[\"trace\"]
         vitals: 2={am:1 as:1 fo:1010 fr:boom pb:bob po:1005}",
    );
    queue.events_are("[X failed [2] failedReason [boom] prev active] [X retries-exhausted [2] attemptsMade [1]]");
}

#[test]
fn an_empty_reason_is_no_reason() {
    let mut queue = taken(Plan::new().record("x"), 1);
    let fail = Fail {
        reason: String::new(),
        ..Fail::to("failed")
    };
    queue.step(Step::by("w").at(1010).fail(&of("x"), &fail));
    // it may have stack traces
    queue.key_is("vitals", "x={am:1 as:1 fo:1010 pb:bob po:1005 tr:''}");
}

#[test]
fn the_reason_of_a_try_stays_until_one_has_another_be_it_empty() {
    let fail = |reason: &str, wordless| Fail {
        reason: reason.to_owned(),
        wordless,
        ..Fail::to("waiting")
    };
    for place in [of("x"), at(1, 1, 0)] {
        let mut queue = taken(Plan::new().frame(1).record("x"), 2);
        queue.step(Step::by("w").fail(&place, &fail("boom", false)));
        let id = place.id();
        for (now_ms, reason, wordless, left) in [(1010, "", true, "fr:boom "), (1020, "", false, "")] {
            queue.step(Step::by("w").at(now_ms).want(1));
            queue.step(Step::by("w").at(now_ms).fail(&of(&id), &fail(reason, wordless)));
            let vitals = queue.show();
            let vitals = vitals
                .lines()
                .find(|line| line.starts_with("vitals: "))
                .expect("fields");
            assert!(vitals.contains(&format!("{left}pb:bob")), "{vitals}");
            assert_eq!(vitals.contains("fr:"), !left.is_empty(), "{vitals}");
        }
    }
}

#[test]
fn a_failed_job_that_is_not_kept_is_gone() {
    let mut queue = taken(Plan::new().frame(1).record("x"), 2);
    run_once!(queue, LOG_JOB; "x", "row", 0);
    queue.skip_events();
    let step = Step::by("w")
        .keep(0, -1.0, 1000)
        .fail(&at(1, 1, 0), &Fail::to("failed"));
    queue.step(step.fail(&of("x"), &Fail::to("failed")));
    queue.keys_are(
        "lease:w: set
         state: cursor=2-r1 id=2 references=1",
    );
    queue.events_are("[X failed [1 x] failedReason [boom boom] prev active] [E drained]");
}

#[test]
fn a_retry_with_backoff_is_delayed() {
    let mut queue = taken(Plan::new().frame(1).record("x"), 2);
    let fail = |due_ms, attempts_made| Fail {
        due_ms,
        attempts_made,
        ..Fail::to("delayed")
    };
    let step = Step::by("w").at(1010).fail(&at(1, 1, 0), &fail(1500, 1));
    queue.step(step.fail(&of("x"), &fail(1500, 3)));
    queue.keys_are(
        "delayed: 1@1500+0 x@1500+1
         jobs: 1=[7 {} a 1] x=[7 {} a 1]
         lease:w: set
         state: cursor=2-r1 id=2 references=1
         traces: 1=[\"trace\"] x=[\"trace\"]
         vitals: 1={am:1 as:1 d:490 fr:boom pb:bob po:1005} x={am:3 as:1 d:490 fr:boom pb:bob po:1005}
         wake: set",
    );
    queue.events_are("[X delayed [1] delay 1500] [X delayed [x] delay 1500]");
}

#[test]
fn a_retry_at_once_waits_behind_the_others() {
    let mut queue = taken(Plan::new().frame(2), 2);
    queue.add(1006, Plan::new().frame(1).delayed("due", 1009).delayed("later", 1011));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue.step(Step::by("w").at(1010).fail(&at(1, 2, 1), &Fail::to("waiting")));
    queue.keys_are(
        "delayed: later@1011+0
         jobs: 2=[7 {} a 2] due=[7 {} a 1] later=[7 {} a 1]
         lease:w: set
         log: 1-2 3-1 5-r1(due) 5-r2(2)
         state: cursor=1-2 id=5 waiting=3 active=1 references=2
         takes: 1=[1005 10 w bob]
         traces: 2=[\"trace\"]
         vitals: 2={am:1 as:1 fr:boom pb:bob po:1005}
         wake: set",
    );
    queue.events_are("[X waiting [due] prev delayed] [X waiting [2] prev active]");
}

#[test]
fn a_retry_of_a_lifo_job_heads_the_line() {
    let mut queue = taken(Plan::new().frame(3), 3);
    queue.add(1006, Plan::new().front("x"));
    let step = Step::by("w").fail(&at(1, 3, 0), &Fail::to("front"));
    queue.step(step.fail(&at(1, 3, 2), &Fail::to("front")));
    queue.key_is("front", "3 1 x");
    queue.key_is("wake", "set");
}

#[test]
fn a_try_counts_from_what_was_stored() {
    let mut queue = taken(Plan::new().record("x"), 1);
    queue.step(Step::by("w").fail(&of("x"), &Fail::to("waiting")));
    let number = queue.next_number();
    let retry = || Step::by("v").number(number).at(1020).want(1);
    // it is told once more what it took
    for _ in 0..2 {
        assert_eq!(
            queue.step(retry()),
            "[[] [0 x <[7 {} a 1]> <{am:1 as:1 fr:boom pb:bob po:1005}> 2 [\"trace\"]] -1 0 0]"
        );
    }
    queue.step(Step::by("v").at(1030).done_record("x", "1"));
    queue.key_is("vitals", "x={am:2 as:2 fo:1030 fr:boom pb:bob po:1020 rv:1}");
}

#[test]
fn jobs_that_never_started_go_back_as_if_nothing_had_happened() {
    let mut queue = taken(Plan::new().frame(3).record("x"), 4);
    queue.add(1006, Plan::new().frame(1));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    let step = Step::by("w").back(&at(1, 3, 1), false).back(&at(1, 3, 2), false);
    queue.step(step.back(&of("x"), false));
    queue.keys_are(
        "front: 2 3 x
         jobs: 2=[7 {} a 2] 3=[7 {} a 3] x=[7 {} a 1]
         lease:w: set
         log: 1-3 5-1
         state: cursor=4-r1 id=5 waiting=4 active=1 references=1
         takes: 1=[1005 100 w bob]
         vitals: 2={as:0} 3={as:0} x={as:0}
         wake: set",
    );
    queue.events_are("[X waiting [2 3 x] prev active]");
}

#[test]
fn a_job_that_started_and_goes_back_counts_its_start() {
    let mut queue = taken(Plan::new().frame(1).record("x"), 2);
    queue.step(Step::by("w").back(&at(1, 1, 0), true).back(&of("x"), true));
    queue.key_is("vitals", "1={as:1 pb:bob po:1005} x={as:1 pb:bob po:1005}");
    queue.key_is("front", "1 x");
}

#[test]
fn what_a_worker_that_fetches_no_more_puts_back_wakes_another() {
    for outcome in ["waiting", "front", "delayed"] {
        let mut queue = taken(Plan::new().record("x"), 1);
        let fail = Fail {
            due_ms: 2000,
            ..Fail::to(outcome)
        };
        queue.step(Step::by("w").at(1010).fail(&of("x"), &fail));
        queue.key_is("wake", "set");
    }
    let mut queue = taken(Plan::new().record("x"), 1);
    queue.step(Step::by("w").done_record("x", ""));
    queue.key_is("wake", "(none)");
}

#[test]
fn a_job_amended_while_active_fails_with_what_it_was_given() {
    let mut queue = taken(Plan::new().frame(2), 2);
    run_once!(queue, UPDATE_JOB, 1006, "2", "data", "\"new\"");
    queue.step(Step::by("w").at(1010).fail(&at(1, 2, 1), &Fail::to("failed")));
    queue.key_is("jobs", "2=[7 {} a \"new\"]");
    queue.key_is("vitals", "2={am:1 as:1 fo:1010 fr:boom pb:bob po:1005}");
    queue.key_is("takes", "1=[1005 10 w bob]");
}
