//! Iterations that are due while the one before has not ended, and such as were missed.

use crate::given::{
    queue::{run_once, TestQueue},
    scheduler::{Taken, Upsert},
    step::Step,
};

const SKIP: i64 = 1;
const QUEUE: i64 = 2;
const NONE: i64 = 1;
const LATEST: i64 = 2;
const ALL: i64 = 3;

/// An iteration of 1000 that runs since then, and the next one, which a worker has taken at 1105.
fn second_taken(overlap: i64) -> TestQueue {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s"));
    queue.step(Step::by("w").at(1000).want(1));
    assert_eq!(
        queue.follow_all(1000, &[Taken::of("s", 1000).rules(overlap, 0)]),
        "[1100]"
    );
    queue.key_is("de:repeat:s", "repeat:s:1000");
    queue.step(Step::by("w").at(1105).want(1));
    queue.skip_events();
    queue
}

#[test]
fn a_run_that_meets_the_one_before_is_skipped() {
    let mut queue = second_taken(SKIP);
    assert_eq!(queue.follow_all(1105, &[Taken::of("s", 1100).rules(SKIP, 0)]), "[-1]");
    queue.key_is("active", "repeat:s:1000=[1000 1 w '']");
    queue.key_is("delayed", "repeat:s:1200@1200+0");
    queue.events_are("[X removed [repeat:s:1100] prev active] [B [repeat:s:1200] 1 [n] delayed [1200]]");
    // sent again it changes nothing
    let keys = queue.show();
    assert_eq!(queue.follow_all(1106, &[Taken::of("s", 1100).rules(SKIP, 0)]), "[-1]");
    queue.keys_are(&keys);
}

#[test]
fn a_run_that_was_due_before_the_end_of_the_one_before_is_skipped() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s"));
    queue.step(Step::by("w").at(1000).want(1));
    queue.follow_all(1000, &[Taken::of("s", 1000).rules(SKIP, 0)]);
    queue.step(Step::by("w").at(1150).done_record("repeat:s:1000", "1").want(1));
    queue.key_is("de:repeat:s", "(none)");
    assert_eq!(queue.follow_all(1151, &[Taken::of("s", 1100).rules(SKIP, 0)]), "[-1]");
    // the next one comes behind it
    queue.step(Step::by("w").at(1200).want(1));
    assert_eq!(queue.follow_all(1200, &[Taken::of("s", 1200).rules(SKIP, 0)]), "[1300]");
}

#[test]
fn a_run_that_has_started_starts_again() {
    let mut queue = second_taken(SKIP);
    assert_eq!(queue.follow_all(1105, &[Taken::of("s", 1000).rules(SKIP, 0)]), "[0]");
    queue.key_is("active", "repeat:s:1000=[1000 1 w ''] repeat:s:1100=[1105 1 w '']");
}

#[test]
fn a_run_that_has_ended_and_is_retried_waits_as_any_other() {
    for overlap in [SKIP, QUEUE] {
        let mut queue = second_taken(overlap);
        queue.step(Step::by("w").at(1106).done_record("repeat:s:1000", "1"));
        assert_eq!(
            queue.follow_all(1107, &[Taken::of("s", 1100).rules(QUEUE, 0)]),
            "[1200]"
        );
        run_once!(queue, RETRY_JOB, 1108, "repeat:s:1000", "completed", 0, 1, 1);
        queue.step(Step::by("w").at(1109).want(1));
        let retried = Taken::of("s", 1000).rules(overlap, 0);
        assert_eq!(queue.follow_all(1109, std::slice::from_ref(&retried)), "[-1]");
        queue.key_is("active", "repeat:s:1100=[1105 1 w '']");
        queue.step(Step::by("w").at(1110).done_record("repeat:s:1100", "1").want(1));
        assert_eq!(queue.follow_all(1110, &[retried]), "[0]");
        queue.key_is("de:repeat:s", "repeat:s:1000");
    }
}

#[test]
fn a_run_waits_until_the_one_before_has_ended() {
    let mut queue = second_taken(QUEUE);
    assert_eq!(queue.follow_all(1105, &[Taken::of("s", 1100).rules(QUEUE, 0)]), "[-1]");
    queue.key_is("delayed", "repeat:s:1100@6105+0");
    queue.key_is("active", "repeat:s:1000=[1000 1 w '']");
    queue.key_is("schedulers", "s@1100");
    queue.events_are("[X delayed [repeat:s:1100] delay [6105]]");
    // it is looked at again, should nobody tell
    let fields = queue.command("HGET", "vitals", &["repeat:s:1000"]);
    queue.step(Step::by("w").at(6105).want(1));
    assert_eq!(queue.follow_all(6105, &[Taken::of("s", 1100).rules(QUEUE, 0)]), "[-1]");
    queue.key_is("delayed", "repeat:s:1100@11105+0");
    assert_eq!(queue.command("HGET", "vitals", &["repeat:s:1000"]), fields);
    queue.step(Step::by("w").at(6250).done_record("repeat:s:1000", "1").want(1));
    queue.key_is("active", "repeat:s:1100=[6250 1 w '']");
    assert_eq!(
        queue.follow_all(6251, &[Taken::of("s", 1100).rules(QUEUE, NONE)]),
        "[6300]"
    );
    queue.key_is("de:repeat:s", "repeat:s:1100");
}

#[test]
fn a_run_that_waits_starts_when_the_one_before_is_removed() {
    let mut queue = second_taken(QUEUE);
    queue.follow_all(1105, &[Taken::of("s", 1100).rules(QUEUE, 0)]);
    run_once!(queue, MOVE_ACTIVE, 1110, "repeat:s:1000", "0", 90_000);
    run_once!(queue, REMOVE_JOB, 1111, "repeat:s:1000", 1);
    queue.step(Step::by("w").at(6105).want(1));
    assert_eq!(
        queue.follow_all(6106, &[Taken::of("s", 1100).rules(QUEUE, 0)]),
        "[6200]"
    );
}

#[test]
fn a_run_that_was_missed_waits_with_skip_as_well() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s"));
    queue.step(Step::by("w").at(1350).want(1));
    assert_eq!(
        queue.follow_all(1350, &[Taken::of("s", 1000).rules(SKIP, ALL)]),
        "[1100]"
    );
    queue.step(Step::by("w").at(1351).want(1));
    assert_eq!(queue.follow_all(1351, &[Taken::of("s", 1100).rules(SKIP, ALL)]), "[-1]");
    queue.step(Step::by("w").at(1360).done_record("repeat:s:1000", "1").want(1));
    assert_eq!(
        queue.follow_all(1360, &[Taken::of("s", 1100).rules(SKIP, ALL)]),
        "[1200]"
    );
}

#[test]
fn missed_runs_are_dropped_or_made_up_for() {
    for (catch_up, reply, schedulers) in [
        (0, "[1400]", "s@1400"),
        (NONE, "[-1]", "s@1400"),
        (LATEST, "[-1]", "s@1300"),
        (ALL, "[1100]", "s@1100"),
    ] {
        let mut queue = TestQueue::fresh();
        queue.upsert(1000, &Upsert::of("s"));
        queue.step(Step::by("w").at(1350).want(1));
        assert_eq!(
            queue.follow_all(1350, &[Taken::of("s", 1000).rules(0, catch_up)]),
            reply
        );
        queue.key_is("schedulers", schedulers);
    }
}

#[test]
fn the_caller_tells_what_was_missed_where_it_knows_the_times() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1010));
    queue.step(Step::by("w").at(1350).want(1));
    let taken = Taken::of("s", 1010).next(1400).rules(0, NONE).missed();
    assert_eq!(queue.follow_all(1350, &[taken]), "[-1]");
    queue.key_is("active", "(none)");
    queue.key_is("delayed", "repeat:s:1400@1400+0");
}

#[test]
fn the_last_run_is_judged_as_well() {
    let mut queue = second_taken(SKIP);
    assert_eq!(
        queue.follow_all(1105, &[Taken::of("s", 1100).next(-1).rules(SKIP, 0)]),
        "[-1]"
    );
    queue.key_is("delayed", "(none)");
}

#[test]
fn what_somebody_else_holds_is_left_alone() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s"));
    queue.step(Step::by("other").at(1000).want(1));
    let keys = queue.show();
    assert_eq!(queue.follow_all(1000, &[Taken::of("s", 1000).rules(SKIP, 0)]), "[-1]");
    queue.keys_are(&keys);
}

#[test]
fn jobs_of_a_scheduler_with_jitter_are_due_later_and_always_at_that_time() {
    let mut dues = Vec::new();
    for _ in 0..2 {
        let mut queue = TestQueue::fresh();
        queue.upsert(1000, &Upsert::of("s").next(2000).jitter(500));
        let first = queue.command("ZSCORE", "delayed", &["repeat:s:2000"]);
        queue.upsert(1100, &Upsert::of("s").next(2000).jitter(500));
        assert_eq!(queue.command("ZSCORE", "delayed", &["repeat:s:2000"]), first);
        queue.key_is("schedulers", "s@2000");
        dues.push(first);
    }
    assert_eq!(dues[0], dues[1]);
}

#[test]
fn a_job_for_which_somebody_asked_counts_as_a_run() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").offset(50));
    queue.run_now(1010, "s");
    queue.step(Step::by("w").at(1010).want(1));
    let asked = Taken::of("s", 1010).id("repeat:s:01010").rules(SKIP, 0);
    assert_eq!(queue.follow_all(1010, &[asked]), "[0]");
    queue.step(Step::by("w").at(1050).want(1));
    assert_eq!(queue.follow_all(1050, &[Taken::of("s", 1050).rules(SKIP, 0)]), "[-1]");
}
