//! How long finished jobs stay: rules of count, age and limit, exact also in the middle of runs.

use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{show_reply, TestQueue},
    step::{at, of, Fail, Step},
};

fn taken(plan: Plan, jobs: i64) -> TestQueue {
    let mut queue = TestQueue::with(plan);
    queue.take_all(|| Step::by("w").at(1000).want(jobs));
    queue.command("DEL", "wake", &[]);
    queue
}

#[test]
fn a_count_cuts_the_run_that_just_completed() {
    let mut queue = taken(Plan::new().frame(5), 5);
    queue.step(
        Step::by("w")
            .keep(2, -1.0, 1000)
            .done_with(1, 5, 0, &["1", "2", "3", "", "5"]),
    );
    queue.keys_are(
        "completed: 4@1000
         frames: 1=2
         lease:w: set
         log: 1-5
         runs: 4=[2 1 5 1000 '' <['' 5]>]
         state: cursor=1-5 id=5 completed=2",
    );
}

#[test]
fn a_count_cuts_an_older_run_in_the_middle() {
    let mut queue = taken(Plan::new().frame(3).frame(2), 5);
    queue.step(Step::by("w").at(1001).done(1, 3, 0, 3));
    queue.step(Step::by("w").at(1002).keep(4, -1.0, 1000).done(4, 2, 0, 2));
    queue.key_is("completed", "2@1001 4@1002");
    queue.key_is("frames", "1=2");
    queue.key_is("runs", "2=[2 1 3 1000 '' ''] 4=[2 4 2 1000 '' '']");
}

#[test]
fn a_count_cuts_a_run_of_a_frame_still_held() {
    let mut queue = taken(Plan::new().frame(4), 4);
    queue.step(Step::by("w").at(1001).keep(1, -1.0, 1000).done(1, 4, 0, 2));
    queue.keys_are(
        "completed: 2@1001
         lease:w: set
         log: 1-4
         runs: 2=[1 1 4 1000 '' '']
         state: cursor=1-4 id=4 active=2 completed=1
         takes: 1=[1000 0k11 w '']",
    );
    queue.step(Step::by("w").at(1002).keep(1, -1.0, 1000).done(1, 4, 3, 1));
    queue.key_is("takes", "1=[1000 001k w '']");
    queue.step(Step::by("w").at(1003).keep(1, -1.0, 1000).done(1, 4, 2, 1));
    queue.keys_are(
        "completed: 3@1003
         frames: 1=1
         lease:w: set
         log: 1-4
         runs: 3=[1 1 4 1000 '' '']
         state: cursor=1-4 id=4 completed=1",
    );
}

#[test]
fn frames_leave_the_log_with_their_last_job() {
    let mut queue = taken(Plan::new().frame(2).frame(2), 4);
    queue.step(Step::by("w").at(1001).done(1, 2, 0, 2));
    queue.step(Step::by("w").at(1002).keep(2, -1.0, 1000).done(3, 2, 0, 2));
    queue.keys_are(
        "completed: 3@1002
         lease:w: set
         log: 3-2
         runs: 3=[2 3 2 1000 '' '']
         state: cursor=3-2 id=4 completed=2",
    );
}

#[test]
fn a_count_drops_records_and_runs_oldest_first() {
    let mut queue = taken(Plan::new().record("x").frame(2).record("y"), 4);
    queue.step(Step::by("w").at(1001).done_record("x", ""));
    queue.step(Step::by("w").at(1002).done(2, 2, 0, 2));
    queue.step(Step::by("w").at(1003).keep(2, -1.0, 1000).done_record("y", ""));
    queue.key_is("completed", "3@1002 y@1003");
    queue.key_is("jobs", "y=[7 {} a 1]");
}

#[test]
fn an_age_drops_what_is_older_and_keeps_the_rest() {
    let mut queue = taken(Plan::new().frame(2).record("x").frame(2), 5);
    queue.step(Step::by("w").at(1000).done(1, 2, 0, 2));
    queue.step(Step::by("w").at(2000).done_record("x", ""));
    queue.step(Step::by("w").at(2999).done(4, 2, 0, 1));
    queue.key_is("completed", "1@1000 x@2000 4@2999");
    // one second: what ended at 3000 or before
    queue.step(Step::by("w").at(4000).keep(-1, 1.0, 1000).done(4, 2, 1, 1));
    queue.keys_are(
        "completed: 5@4000
         frames: 4=1
         lease:w: set
         log: 4-2
         runs: 5=[1 4 2 1000 '' '']
         state: cursor=4-2 id=5 completed=1 references=1",
    );
}

#[test]
fn an_age_drops_as_many_as_its_limit_the_newest_first() {
    let mut queue = taken(Plan::new().frame(5).frame(2), 7);
    queue.step(Step::by("w").at(1000).done(1, 5, 0, 2));
    queue.step(Step::by("w").at(1001).done(1, 5, 2, 3));
    // a limit of two, for each of the two jobs that end
    queue.step(Step::by("w").at(9000).keep(-1, 1.0, 2).done(6, 2, 0, 2));
    queue.key_is("completed", "2@1000 6@9000");
    queue.key_is("state", "cursor=6-2 id=7 completed=3");
}

#[test]
fn an_age_and_a_count_hold_together() {
    let mut queue = taken(Plan::new().frame(2).frame(4), 6);
    queue.step(Step::by("w").at(1000).done(1, 2, 0, 2));
    queue.step(Step::by("w").at(9000).keep(3, 1.0, 1000).done(3, 4, 0, 4));
    queue.key_is("completed", "4@9000");
    queue.key_is("state", "cursor=3-4 id=6 completed=3");
}

#[test]
fn a_count_keeps_what_ended_last_in_a_millisecond_whatever_its_name() {
    let mut queue = taken(Plan::new().frame(9).frame(2).record("b").record("a"), 13);
    let keep = |step: Step, count| step.at(1001).keep(count, -1.0, 1000);
    queue.step(keep(Step::by("w"), 2).done(1, 9, 0, 9).done(10, 2, 0, 2));
    queue.key_is("completed", "10@1001.0009765625");
    queue.key_is("runs", "10=[2 10 2 1000 '' '']");
    // a call later in the same millisecond
    queue.step(keep(Step::by("w"), 2).done_record("b", ""));
    queue.step(keep(Step::by("w"), 2).done_record("a", ""));
    queue.key_is("completed", "b@1001.001953125 a@1001.0029296875");
}

#[test]
fn a_count_keeps_the_last_failed_job_whatever_its_name() {
    let mut queue = taken(Plan::new().record("c").record("b").record("a"), 3);
    let fail = Fail::to("failed");
    let step = Step::by("w").at(1001).keep(1, -1.0, 1000);
    queue.step(step.fail(&of("b"), &fail).fail(&of("c"), &fail).fail(&of("a"), &fail));
    queue.key_is("failed", "a@1001.0009765625");
}

#[test]
fn what_shares_a_millisecond_has_whole_times_and_goes_with_it() {
    let mut queue = taken(Plan::new().record("b").record("a").frame(4), 6);
    queue.step(
        Step::by("w")
            .at(1001)
            .done_record("b", "")
            .done_record("a", "")
            .done(3, 4, 0, 3),
    );
    queue.key_is("completed", "b@1001 a@1001.0009765625 3@1001.001953125");
    let (jobs, _) = queue.list(&["completed"], 0, -1, true, false);
    let ids: Vec<String> = jobs.iter().map(|job| show_reply(&job[0])).collect();
    assert_eq!(ids, ["b", "a", "3", "4", "5"]);
    for job in &jobs {
        let Value::BulkString(fields) = &job[3] else {
            panic!("{job:?}")
        };
        let finished_on = b"\xa2fo\xcd\x03\xe9";
        assert!(
            fields.windows(finished_on.len()).any(|part| part == finished_on),
            "{job:?}"
        );
    }
    // one second after they ended
    queue.step(Step::by("w").at(2001).keep(-1, 1.0, 1000).done(3, 4, 3, 1));
    queue.key_is("completed", "6@2001");
}

#[test]
fn a_rule_says_nothing_of_jobs_that_end_later() {
    let mut queue = taken(Plan::new().record("c").record("b").record("a"), 3);
    let step = Step::by("w").at(1001).keep(1, -1.0, 1000);
    let step = step.done_record("c", "").done_record("b", "");
    queue.step(step.then_keep(-1, -1.0, 1000).done_record("a", ""));
    queue.key_is("completed", "b@1001.0009765625 a@1001.001953125");
}

#[test]
fn failed_jobs_have_a_rule_of_their_own() {
    let mut queue = taken(Plan::new().frame(4), 4);
    let fail = Fail::to("failed");
    queue.step(Step::by("w").at(1001).done(1, 4, 0, 1).fail(&at(1, 4, 1), &fail));
    queue.step(Step::by("w").at(1002).keep(1, -1.0, 1000).fail(&at(1, 4, 2), &fail));
    queue.key_is("failed", "3@1002");
    queue.key_is("jobs", "3=[7 {} a 3]");
    queue.key_is("traces", "3=[\"trace\"]");
    queue.key_is("completed", "1@1001");
    queue.step(Step::by("w").at(9000).keep(-1, 1.0, 1000).fail(&at(1, 4, 3), &fail));
    queue.key_is("failed", "4@9000");
}

/// Fails `count` jobs of which all are kept.
fn failed(count: usize) -> TestQueue {
    let mut plan = Plan::new();
    for i in 0..count {
        plan = plan.record(&format!("x{i}"));
    }
    let mut queue = taken(plan, count as i64);
    let mut step = Step::by("w").at(1001);
    for i in 0..count {
        step = step.fail(&of(&format!("x{i}")), &Fail::to("failed"));
    }
    queue.step(step);
    queue
}

fn fail_one(queue: &mut TestQueue, keep: (i64, f64, u64)) -> usize {
    queue.add(1002, Plan::new().record(""));
    let id = queue.probe.snapshot().state("id").to_string();
    queue.step(Step::by("w").at(9000).want(1));
    let step = Step::by("w").at(9000).keep(keep.0, keep.1, keep.2);
    queue.step(step.fail(&of(&id), &Fail::to("failed")));
    queue.probe.snapshot().set("failed").len()
}

#[test]
fn a_count_far_below_what_is_kept_holds_after_a_few_steps() {
    let mut queue = failed(2_500);
    let left: Vec<usize> = (0..4).map(|_| fail_one(&mut queue, (5, -1.0, 1000))).collect();
    assert_eq!(left, [1_500, 500, 5, 5]);
}

#[test]
fn an_age_drops_no_more_a_step_whatever_its_limit() {
    let mut queue = failed(2_500);
    let left: Vec<usize> = (0..4).map(|_| fail_one(&mut queue, (-1, 1.0, 50_000))).collect();
    assert_eq!(left, [1_500, 500, 3, 4]);
}
