//! What becomes of a deduplication id, and of what was kept for it, when its owner finishes.

use chasquimq::Deduplication;

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    step::{of, Fail, Step},
};

fn by(id: &str) -> Deduplication {
    Deduplication::of(id)
}

fn keeping() -> Deduplication {
    Deduplication {
        keep_last_if_active: true,
        ..by("d")
    }
}

fn active(dedup: &Deduplication) -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, dedup));
    queue.step(Step::by("w").want(1));
    queue.skip_events();
    queue
}

#[test]
fn the_id_is_free_when_its_owner_has_completed() {
    for keep in [-1, 0] {
        let mut queue = active(&by("d"));
        queue.step(Step::by("w").keep(keep, -1.0, 1000).done_record("x", ""));
        queue.key_is("de:d", "(none)");
    }
}

#[test]
fn the_id_is_free_when_its_owner_has_failed_for_good() {
    let mut queue = active(&by("d"));
    queue.step(Step::by("w").fail(&of("x"), &Fail::to("waiting")).want(1));
    queue.key_is("de:d", "x");
    queue.step(Step::by("w").fail(&of("x"), &Fail::to("failed")));
    queue.key_is("de:d", "(none)");
}

#[test]
fn an_id_with_a_time_outlives_its_owner_and_the_owners_retention() {
    let mut queue = active(&Deduplication {
        ttl_ms: 60_000,
        ..by("d")
    });
    queue.step(Step::by("w").done_record("x", ""));
    queue.add(1000, Plan::new().frame(1));
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").at(2000).keep(1, -1.0, 1000).done(2, 1, 0, 1));
    queue.key_is("jobs", "(none)");
    queue.key_is("de:d", "x...");
}

#[test]
fn an_id_of_another_job_stays() {
    let mut queue = active(&by("d"));
    run_once!(queue, REMOVE_DEDUP_KEY; "d", "");
    queue.add(1000, Plan::new().deduplicated("y", 2000, &by("d")));
    queue.step(Step::by("w").done_record("x", ""));
    queue.key_is("de:d", "y");
}

#[test]
fn what_was_kept_becomes_a_job_before_its_owner_completes() {
    let mut queue = active(&by("d"));
    queue.add(1000, Plan::new().deduplicated("", 0, &keeping()));
    queue.skip_events();
    queue.step(Step::by("w").at(1500).keep(0, -1.0, 1000).done_record("x", ""));
    queue.keys_are(
        "de:d: 2
         jobs: 2=[1500 {} a 1]
         lease:w: set
         log: 3-r2(2)
         state: cursor=1-r1 id=3 waiting=1 references=2
         vitals: 2={di:d}
         wake: set",
    );
    queue.events_are("[B [2] 1 a waiting] [X completed [x] returnvalue null prev active]");
}

#[test]
fn what_was_kept_is_delayed_from_the_time_at_which_it_is_added() {
    let mut queue = active(&by("d"));
    // 100 ms after its timestamp
    queue.add(1000, Plan::new().deduplicated("y", 107, &keeping()));
    queue.skip_events();
    queue.step(Step::by("w").at(1500).fail(&of("x"), &Fail::to("failed")));
    queue.key_is("delayed", "y@1600+0");
    queue.key_is("de:d", "y");
    queue.events_are("[B [y] 1 a delayed [1600]] [X failed [x] failedReason [boom] prev active] [E drained]");
}

#[test]
fn what_was_kept_outlasts_retries_and_leaves_with_its_owner() {
    let mut queue = active(&by("d"));
    queue.add(1000, Plan::new().deduplicated("y", 0, &keeping()));
    let again = Fail {
        due_ms: 2000,
        ..Fail::to("delayed")
    };
    queue.step(Step::by("w").fail(&of("x"), &again));
    queue.key_is("jobs", "x=[7 {} a 1]");
    run_once!(queue, REMOVE_JOB, 1500, "x", 0);
    queue.key_is("de:d", "(none)");
    queue.key_is("vitals", "(none)");
    queue.step(Step::by("w").at(3000).want(1));
    queue.key_is("state", "cursor=1-r1 id=2 references=1");
}

#[test]
fn what_was_kept_is_not_added_over_a_job_of_its_id() {
    let mut queue = active(&by("d"));
    queue.add(1000, Plan::new().deduplicated("y", 0, &keeping()).delayed("y", 5000));
    queue.skip_events();
    queue.step(Step::by("w").done_record("x", ""));
    queue.key_is("delayed", "y@5000+0");
    queue.key_is("de:d", "(none)");
    queue.events_are("[X duplicated [y]] [X completed [x] returnvalue null prev active] [E drained]");
}

#[test]
fn a_step_sent_again_adds_once() {
    let mut queue = active(&by("d"));
    queue.add(1000, Plan::new().deduplicated("", 0, &keeping()));
    for _ in 0..2 {
        queue.step(Step::by("w").number(50).done_record("x", ""));
    }
    queue.key_is("jobs", "2=[1000 {} a 1] x=[7 {} a 1]");
    queue.key_is("log", "3-r2(2)");
}

#[test]
fn what_was_kept_takes_its_priority() {
    let mut queue = active(&keeping());
    let next = Plan::new().deduplicated_prioritized("y", 0, &keeping(), 3);
    queue.add(1010, next.run(&[3, 4]));
    queue.step(Step::by("w").at(1020).done_record("x", ""));
    queue.key_is("prioritized", "3@3+1 y@3+3 4@4+2");
    queue.key_is("jobs", "3=[7 {} a 1 3] 4=[7 {} a 1 4] x=[7 {} a 1] y=[1020 {} a 1 3]");
}
