//! One plain job ends, one starts, or both, or a few do: what a step does by its short paths is what it does for any jobs.

use chasquimq::{record::record_body, Deduplication};
use redis::Value;

use crate::{
    apart,
    given::{
        plan::{Plan, TIMESTAMP},
        queue::{run_once, show_reply, TestQueue},
        step::{at, of, Fail, Place, Step},
        tree::Tree,
    },
};

/// How a step comes to its end: it says under which claim it holds the job, and goes straight, or it leaves that open.
#[derive(Clone, Copy)]
enum Way {
    Straight,
    Any,
}

/// A queue from which worker `w` has taken so many jobs by its step of number 100.
fn holding(jobs: i64, plan: Plan, before: impl Fn(&mut TestQueue)) -> TestQueue {
    let mut queue = TestQueue::with(plan);
    // it learns that nothing limits the queue
    queue.step(Step::by("v").want(0));
    before(&mut queue);
    queue.step(Step::by("w").named("bob").number(100).at(1001).want(jobs));
    queue.skip_events();
    queue
}

/// What became of the queue: the reply, the keys, what was told, and how often the server was asked.
fn outcome_of(queue: &mut TestQueue, step: &Step) -> (String, String, String) {
    let call = queue.step_call(step);
    let Value::Array(parts) = queue.carry_out_value(&call) else {
        panic!("a reply")
    };
    let reply = show_reply(&Value::Array(parts[..6].to_vec()));
    (reply, queue.show(), queue.events())
}

/// The same as [`same_of_some`], of a worker that holds one job.
fn same_both_ways(plan: impl Fn() -> Plan, before: impl Fn(&mut TestQueue), step: impl Fn(Step) -> Step) -> TestQueue {
    same_of_some(1, plan, before, step)
}

/// Takes the step both ways, and compares all that can be seen; then sends it again.
fn same_of_some(
    held: i64,
    plan: impl Fn() -> Plan,
    before: impl Fn(&mut TestQueue),
    step: impl Fn(Step) -> Step,
) -> TestQueue {
    same_of(|| holding(held, plan(), &before), step)
}

/// The same of any queue from which worker `w` has taken jobs by its step of number 100.
fn same_of(holding: impl Fn() -> TestQueue, step: impl Fn(Step) -> Step) -> TestQueue {
    let [(mut straight, left), (_, right)] = [Way::Straight, Way::Any].map(|way| {
        let mut queue = holding();
        let claim = match way {
            Way::Straight => 200,
            Way::Any => 0,
        };
        let step = step(Step::by("w").named("bob").of_claim(claim).number(101).at(1010));
        let outcome = outcome_of(&mut queue, &step);
        let keys = queue.show();
        let again = outcome_of(&mut queue, &step);
        assert_eq!((again.0, again.1, again.2), (outcome.0.clone(), keys, String::new()));
        (queue, outcome)
    });
    assert_eq!(left, right);
    straight.skip_events();
    straight
}

fn nothing(_: &mut TestQueue) {}

#[test]
fn a_frame_of_one_completes_and_the_next_starts() {
    let plan = || Plan::new().frame(1).frame(1).frame(1);
    let mut queue = same_both_ways(plan, nothing, |step| step.done_with(1, 1, 0, &["5"]).want(1));
    queue.key_is("takes", "2=[1010 '' w bob]");
    queue.key_is("runs", "1=[1 1 1 1001 bob <[5]>]");
    queue.key_is("wake", "set");
}

#[test]
fn a_frame_of_one_is_removed_and_the_next_starts() {
    let plan = || Plan::new().frame(1).frame(1);
    same_both_ways(plan, nothing, |step| step.keep(0, -1.0, 1000).done(1, 1, 0, 1).want(1));
}

#[test]
fn the_last_job_drains_the_queue() {
    for want in [-1, 0, 1, 20] {
        let frame = || Plan::new().frame(1);
        same_both_ways(frame, nothing, |step| step.done(1, 1, 0, 1).want(want));
        let record = || Plan::new().front("x");
        same_both_ways(record, nothing, |step| step.done_record("x", "7").want(want));
    }
}

#[test]
fn a_record_completes_and_the_next_starts() {
    let plan = || Plan::new().frame(4);
    for result in ["", "{\"a\":1}"] {
        let mut queue = same_both_ways(plan, nothing, |step| step.done_record("1", result).want(1));
        queue.key_is("active", "2=[1010 1 w bob]");
        same_both_ways(plan, nothing, |step| {
            step.keep(0, -1.0, 1000).done_record("1", result).want(1)
        });
    }
}

#[test]
fn a_surplus_is_looked_for_where_only_one_job_waits() {
    let plan = || Plan::new().frame(1).frame(1);
    same_both_ways(plan, nothing, |step| step.done(1, 1, 0, 1).want(1).surplus(30));
    let more = || Plan::new().frame(1).frame(1).frame(1);
    same_both_ways(more, nothing, |step| step.done(1, 1, 0, 1).want(1).surplus(30));
    same_both_ways(plan, nothing, |step| step.done(1, 1, 0, 1).want(0).surplus(30));
}

#[test]
fn retention_and_metrics_are_those_of_any_end() {
    let plan = || Plan::new().frame(1).frame(1).frame(1).front("x").frame(1);
    let finished = |queue: &mut TestQueue| {
        for number in [1, 2, 3] {
            queue.step(Step::by("v").number(10 * number).want(1));
            let step = Step::by("v").number(10 * number + 5).at(1001);
            match number {
                1 => queue.step(step.done_record("x", "")),
                _ => queue.step(step.done(number - 1, 1, 0, 1)),
            };
        }
    };
    for (count, age) in [(2, -1.0), (-1, 0.005), (1, 3600.0), (0, -1.0)] {
        for minutes in [0, 10] {
            same_both_ways(plan, finished, |step| {
                step.keep(count, age, 1000).metrics(minutes).done(3, 1, 0, 1).want(1)
            });
        }
    }
}

#[test]
fn a_job_that_is_not_plain_ends_as_any_job() {
    let plan = || Plan::new().frame(2).frame(1);
    // it has state fields
    let progress = |queue: &mut TestQueue| {
        run_once!(queue, UPDATE_JOB, 1001, "1", "progress", "1");
    };
    same_both_ways(plan, progress, |step| step.done_record("1", "").want(1));
    same_both_ways(plan, progress, |step| {
        step.keep(0, -1.0, 1).done_record("1", "").want(1)
    });
    // the next one has
    let next = |queue: &mut TestQueue| {
        run_once!(queue, UPDATE_JOB, 1001, "2", "progress", "1");
    };
    same_both_ways(plan, next, |step| step.done_record("1", "").want(1));
    same_both_ways(plan, next, |step| step.keep(0, -1.0, 1).done_record("1", "").want(1));
}

#[test]
fn what_is_logged_goes_with_a_job() {
    let plan = || Plan::new().front("x").front("y");
    let log = |queue: &mut TestQueue| {
        run_once!(queue, LOG_JOB; "y", "a row", 0);
    };
    let mut queue = same_both_ways(plan, log, |step| step.keep(0, -1.0, 1).done_record("y", "").want(1));
    queue.key_is("logs:y", "(none)");
}

#[test]
fn what_else_may_start_is_not_passed_over() {
    let step = |step: Step| step.done(1, 1, 0, 1).want(1);
    let one = || Plan::new().frame(1);
    same_both_ways(|| one().delayed("later", 5000), nothing, step);
    same_both_ways(|| one().delayed("due", 1005), nothing, step);
    same_both_ways(|| one().prioritized("p", 3), nothing, step);
    same_both_ways(|| one().record("x").frame(3), nothing, step);
    same_both_ways(|| one().frame(3), nothing, step);
    same_both_ways(|| one().delayed("later", 5000), nothing, |of| step(of).leaving_due());
}

#[test]
fn an_outcome_of_another_claim_is_refused() {
    let mut queue = holding(1, Plan::new().frame(1).frame(1), nothing);
    let step = Step::by("w").named("bob").number(101).of_claim(198).at(1010);
    assert_eq!(
        queue.step(step.done(1, 1, 0, 1).want(1)),
        "[[[1 0 -6 198]] [2 1 <7 {} a 1>] -1 0 0]"
    );
    let step = Step::by("v").named("bob").of_claim(200).at(1010);
    assert_eq!(queue.step(step.done(1, 1, 0, 1)), "[[[1 0 -6 200]] [] -1 0 0]");
}

/// `count` frames of one job.
fn frames(count: usize) -> Plan {
    (0..count).fold(Plan::new(), |plan, _| plan.frame(1))
}

#[test]
fn a_few_frames_of_one_complete_and_the_next_start() {
    let done = |step: Step| step.done_with(1, 1, 0, &["5"]).done(3, 1, 0, 1);
    for want in [-1, 0, 1, 2, 20] {
        same_of_some(3, || frames(6), nothing, |step| done(step).want(want));
        same_of_some(
            3,
            || frames(6),
            nothing,
            |step| done(step.keep(0, -1.0, 1000)).want(want),
        );
    }
    let mut queue = same_of_some(3, || frames(6), nothing, |step| done(step).want(2));
    queue.key_is("takes", "2=[1001 '' w bob] 4=[1010 '' w bob] 5=[1010 '' w bob]");
    queue.key_is("runs", "1=[1 1 1 1001 bob <[5]>] 3=[1 3 1 1001 bob '']");
    queue.key_is("wake", "set");
}

#[test]
fn a_few_records_complete_and_the_next_start() {
    let results = [("1", "{\"a\":1}"), ("3", ""), ("2", "\"x\"")];
    for results in [&results[..], &[("1", ""), ("2", "")]] {
        for want in [-1, 0, 1, 3, 20] {
            let plan = || Plan::new().frame(9);
            same_of_some(3, plan, nothing, |step| step.done_records(results).want(want));
            same_of_some(3, plan, nothing, |step| {
                step.keep(0, -1.0, 1000).done_records(results).want(want)
            });
        }
    }
    let mut queue = same_of_some(
        3,
        || Plan::new().frame(9),
        nothing,
        |step| step.done_records(&[("1", ""), ("3", "")]).want(2),
    );
    queue.key_is("active", "2=[1001 1 w bob] 4=[1010 1 w bob] 5=[1010 1 w bob]");
}

#[test]
fn records_and_frames_end_and_start_side_by_side() {
    let plan = || frames(2).front("x").front("y").frame(1).frame(1);
    let done = |step: Step| step.done_record("y", "1").done(1, 1, 0, 1).done_record("x", "");
    for want in [-1, 1, 2, 5] {
        same_of_some(3, plan, nothing, |step| done(step).want(want));
        same_of_some(3, plan, nothing, |step| done(step.keep(0, -1.0, 1)).want(want));
    }
    // the last of them drain it
    same_of_some(
        4,
        || frames(2).front("x").front("y"),
        nothing,
        |step| done(step).done(2, 1, 0, 1).want(1),
    );
}

#[test]
fn few_jobs_are_kept_as_any() {
    let plan = || frames(3).front("x").frame(1).frame(1);
    let finished = |queue: &mut TestQueue| {
        for number in [1, 2] {
            queue.step(Step::by("v").number(10 * number).want(1));
            let step = Step::by("v").number(10 * number + 5).at(1001);
            match number {
                1 => queue.step(step.done_record("x", "")),
                _ => queue.step(step.done(1, 1, 0, 1)),
            };
        }
    };
    for (count, age) in [(2, -1.0), (-1, 0.005), (1, 3600.0), (3, 3600.0), (0, -1.0)] {
        for minutes in [0, 10] {
            same_of_some(2, plan, finished, |step| {
                let step = step.keep(count, age, 1000).metrics(minutes);
                step.done(2, 1, 0, 1).done(3, 1, 0, 1).want(1)
            });
        }
    }
}

#[test]
fn a_few_that_are_not_all_plain_end_as_any_jobs() {
    let plan = || Plan::new().frame(4).frame(1);
    for id in ["1", "3", "4"] {
        let progress = |queue: &mut TestQueue| {
            run_once!(queue, UPDATE_JOB, 1001, id, "progress", "1");
        };
        let done = |step: Step| step.done_records(&[("1", ""), ("2", "")]).want(2);
        same_of_some(2, plan, progress, done);
        same_of_some(2, plan, progress, |step| done(step.keep(0, -1.0, 1)));
    }
    let log = |queue: &mut TestQueue| {
        run_once!(queue, LOG_JOB; "2", "a row", 0);
    };
    let mut queue = same_of_some(2, plan, log, |step| {
        step.keep(0, -1.0, 1).done_records(&[("1", ""), ("2", "")]).want(2)
    });
    queue.key_is("logs:2", "(none)");
}

#[test]
fn of_a_few_those_of_another_claim_are_refused() {
    let mut queue = holding(2, frames(3), nothing);
    let step = Step::by("w").named("bob").number(101).at(1010);
    let step = step.of_claim(200).done(1, 1, 0, 1).of_claim(198).done(2, 1, 0, 1);
    assert_eq!(queue.step(step.want(1)), "[[[2 0 -6 198]] [3 1 <7 {} a 1>] -1 0 0]");
    // the same job twice
    let step = Step::by("w").named("bob").number(102).of_claim(200).at(1010);
    assert_eq!(
        queue.step(step.done(2, 1, 0, 1).done(2, 1, 0, 1)),
        "[[[2 0 -6 200]] [] -1 0 0]"
    );
}

#[test]
fn what_else_may_start_is_not_passed_over_by_a_few() {
    let done = |step: Step| step.done(1, 1, 0, 1).done(2, 1, 0, 1).want(2);
    same_of_some(2, || frames(3).delayed("later", 5000), nothing, done);
    same_of_some(2, || frames(3).delayed("due", 1005), nothing, done);
    same_of_some(2, || frames(3).prioritized("p", 3), nothing, done);
    same_of_some(2, || frames(2).record("x").frame(3), nothing, done);
    same_of_some(2, || frames(2).frame(3), nothing, done);
    same_of_some(
        2,
        || frames(3).delayed("later", 5000),
        nothing,
        |of| done(of).leaving_due(),
    );
}

#[test]
fn a_few_that_start_now_or_later_are_read_at_once() {
    let portions = |claim: u64| {
        let mut queue = holding(3, Plan::new().frame(9), nothing);
        let step = Step::by("w").named("bob").of_claim(claim).number(101).at(1010);
        let step = step.done_records(&[("1", ""), ("3", "")]).want(1).surplus(1);
        let call = queue.step_call(&step);
        let Value::Array(parts) = queue.carry_out_value(&call) else {
            panic!("a reply")
        };
        let Value::Array(items) = &parts[1] else {
            panic!("{parts:?}")
        };
        items.len() / 2
    };
    // any other way reads them in one portion each
    assert_eq!((portions(200), portions(0)), (1, 2));
}

/// Adds the jobs 1 to 4: 1 and 3 lie apart.
fn two_apart(queue: &mut TestQueue) {
    for _ in 0..2 {
        let call = apart::call(queue, 1, true);
        queue.carry_out(&call);
    }
}

#[test]
fn a_frame_that_lies_apart_goes_with_its_job() {
    let removed = |step: Step| step.keep(0, -1.0, 1).done(1, 1, 0, 1);
    let mut queue = same_both_ways(Plan::new, two_apart, |step| removed(step).want(1));
    queue.keys_are(
        "apart:3: set
         lease:v: set
         lease:w: set
         log: 2-1 3-1 4-1
         state: cursor=2-1 id=4 waiting=2 active=1
         takes: 2=[1010 '' w bob]
         wake: set",
    );
    let removed = |step: Step| removed(step).done(2, 1, 0, 1);
    let mut queue = same_of_some(2, Plan::new, two_apart, |step| removed(step).want(2));
    queue.key_is("apart:1", "(none)");
    queue.key_is("apart:3", "set");
    let mut queue = same_of_some(4, Plan::new, two_apart, |step| {
        removed(step).done(3, 1, 0, 1).done(4, 1, 0, 1)
    });
    queue.key_is("state", "cursor=4-1 id=4");
    queue.key_is("apart:3", "(none)");
}

#[test]
fn a_frame_that_lies_apart_stays_as_long_as_its_job() {
    let mut queue = same_both_ways(Plan::new, two_apart, |step| step.done(1, 1, 0, 1).want(1));
    queue.key_is("apart:1", "set");
    let first_kept = |queue: &mut TestQueue| {
        two_apart(queue);
        queue.step(Step::by("v").at(1000).want(1));
        queue.step(Step::by("v").at(1001).done(1, 1, 0, 1));
    };
    let mut queue = same_both_ways(Plan::new, first_kept, |step| {
        step.keep(1, -1.0, 1000).done(2, 1, 0, 1).want(1)
    });
    queue.key_is("apart:1", "(none)");
    let mut queue = same_of_some(2, Plan::new, first_kept, |step| {
        step.keep(1, -1.0, 1000).done(2, 1, 0, 1).done(3, 1, 0, 1).want(1)
    });
    queue.key_is("apart:1", "(none)");
    queue.key_is("apart:3", "set");
}

#[test]
fn a_frame_that_lies_apart_is_taken_by_its_stub_and_counts_its_bytes() {
    let plan = || Plan::new().frame(1);
    for most in [50, 1 << 20] {
        same_of_some(1, plan, two_apart, |step| {
            step.done(1, 1, 0, 1).want(1).surplus(2).max_bytes(most)
        });
    }
}

#[test]
fn long_bodies_are_told_one_by_one() {
    let long = record_body(TIMESTAMP, "{}", "a", &"d".repeat(5000));
    // jobs 2 and on are records in front, with long bodies but for 6
    let broken = |queue: &mut TestQueue| {
        queue.step(Step::by("v").at(1000).want(1));
        for id in ["2", "3", "4", "5"] {
            let jobs = queue.probe.keys.key("jobs");
            let mut set = redis::cmd("HSET");
            set.arg(jobs).arg(id).arg(&long);
            set.exec(&mut queue.probe.connection).expect("set");
        }
    };
    let plan = || Plan::new().frame(6);
    let behind = |held: i64, step: &dyn Fn(Step) -> Step| {
        let mut queue = same_of_some(held, plan, broken, step);
        let step = Step::by("w").named("bob").number(102).at(1020).want(2);
        let call = queue.step_call(&step);
        let Value::Array(parts) = queue.carry_out_value(&call) else {
            panic!("a reply")
        };
        let Value::Array(items) = &parts[1] else {
            panic!("{parts:?}")
        };
        items.len()
    };
    let one = |step: Step| step.keep(0, -1.0, 1).done_record("2", "").want(1);
    // two long ones
    assert_eq!(behind(1, &one), 4);
    let two = |step: Step| step.keep(0, -1.0, 1).done_records(&[("2", ""), ("3", "")]).want(1);
    // a long one, and one that is not
    assert_eq!(behind(2, &two), 4);
    let three = |step: Step| {
        let ended = [("2", ""), ("3", ""), ("4", "")];
        step.keep(0, -1.0, 1).done_records(&ended).want(1)
    };
    assert_eq!(behind(3, &three), 2);
}

/// All that a worker may keep, drop or want.
fn all_ends(step: impl Fn(Step) -> Step, holding: impl Fn() -> TestQueue) {
    for want in [-1, 0, 1, 20] {
        for keep in [-1, 0, 2] {
            for minutes in [0, 10] {
                let step = |of: Step| step(of.keep(keep, -1.0, 1000).metrics(minutes)).want(want);
                same_of(&holding, step);
                same_of(&holding, |of| step(of).surplus(5));
            }
        }
    }
}

#[test]
fn jobs_with_a_priority_start_after_those_that_wait() {
    let one = || Plan::new().frame(1);
    let plans: [fn(Plan) -> Plan; 5] = [
        |plan| plan.prioritized("p", 3),
        |plan| plan.prioritized("p", 3).prioritized("q", 1),
        |plan| plan.prioritized("p", 3).frame(1),
        |plan| plan.prioritized("p", 3).record("x"),
        |plan| plan.prioritized("p", 3).frame(1).frame(1),
    ];
    for plan in plans {
        all_ends(
            |step| step.done_with(1, 1, 0, &["5"]),
            || holding(1, plan(one()), nothing),
        );
        // nothing ends
        for want in [0, 1, 20] {
            same_of_some(1, || plan(one()), nothing, |step| step.want(want));
        }
    }
    // the last one that had a priority
    let plan = || Plan::new().prioritized("p", 3);
    let mut queue = same_both_ways(plan, nothing, |step| step.done_record("p", "1").want(1));
    queue.key_is("prioritized", "(none)");
}

#[test]
fn what_is_due_starts() {
    let plans: [fn(Plan) -> Plan; 6] = [
        |plan| plan.delayed("d", 1005),
        |plan| plan.delayed("d", 1005).delayed("e", 1006),
        |plan| plan.delayed("d", 1005).delayed("e", 5000),
        |plan| plan.delayed("d", 1005).frame(1),
        |plan| plan.delayed("d", 1005).prioritized("p", 3),
        |plan| plan.delayed_prioritized("d", 1005, 3),
    ];
    for plan in plans {
        all_ends(
            |step| step.done(1, 1, 0, 1),
            || holding(1, plan(Plan::new().frame(1)), nothing),
        );
    }
    let plan = || Plan::new().frame(1).delayed("d", 1005).delayed("e", 5000);
    let mut queue = same_both_ways(plan, nothing, |step| step.done(1, 1, 0, 1).want(1));
    queue.key_is("active", "d=[1010 1 w bob]");
    queue.key_is("delayed", "e@5000+0");
}

#[test]
fn stack_traces_come_with_a_job_that_failed() {
    for bytes in [10, 5000] {
        let body = record_body(TIMESTAMP, "{}", "a", &"d".repeat(bytes));
        let failed = |queue: &mut TestQueue| {
            queue.step(Step::by("v").at(1000).want(2));
            for (id, offset) in [("1", 0), ("2", 1)] {
                queue.step(Step::by("v").at(1000).fail(&at(1, 2, offset), &Fail::to("waiting")));
                let jobs = queue.probe.keys.key("jobs");
                let mut set = redis::cmd("HSET");
                set.arg(jobs).arg(id).arg(&body);
                set.exec(&mut queue.probe.connection).expect("set");
                queue.command("HSET", "traces", &[id, &format!("[\"of {id}\"]")]);
            }
        };
        let held = || holding(1, Plan::new().frame(2), failed);
        let mut queue = same_of(held, |step| step.done_record("1", "7").want(1));
        let call = queue.step_call(&Step::by("w").named("bob").number(101).at(1010));
        let reply = queue.carry_out(&call);
        assert!(reply.contains("2 [\"of 2\"]]"), "{reply}");
    }
    // of more jobs the worker reads them
    let many = |queue: &mut TestQueue| {
        queue.step(Step::by("v").at(1000).want(9));
        let failed = (0..9).fold(Step::by("v").at(1000), |step, offset| {
            step.fail(&at(1, 9, offset), &Fail::to("waiting"))
        });
        queue.step(failed);
    };
    let mut queue = holding(0, Plan::new().frame(9), many);
    let reply = queue.step(Step::by("w").number(102).want(9));
    assert!(reply.contains("fr:boom") && !reply.contains("trace"), "{reply}");
}

#[test]
fn what_is_known_of_a_record_goes_with_it() {
    let plan = || Plan::new().front("x").front("y").delayed("d", 1005);
    let known = |queue: &mut TestQueue| {
        for id in ["x", "y", "d"] {
            run_once!(queue, UPDATE_JOB, 1001, id, "progress", "1");
        }
    };
    for result in ["", "{\"a\":1}"] {
        all_ends(|step| step.done_record("y", result), || holding(1, plan(), known));
    }
    // started before
    let again = || {
        let mut queue = TestQueue::with(plan());
        queue.step(Step::by("v").number(10).want(1));
        known(&mut queue);
        run_once!(queue, MOVE_ACTIVE, 1002, "y", "v:20.0", 0);
        queue.step(Step::by("w").named("bob").number(100).at(1003).want(1));
        queue.skip_events();
        queue
    };
    all_ends(|step| step.done_record("y", "7"), again);
    let back = || {
        let mut queue = holding(2, plan(), known);
        run_once!(queue, MOVE_ACTIVE, 1002, "x", "w:200.0", 0);
        queue.skip_events();
        queue
    };
    let mut queue = same_of(back, |step| step.done_record("y", "7").want(1));
    queue.key_is("active", "x=[1010 2 w bob]");
}

#[test]
fn a_frame_of_one_that_became_a_record_ends_as_one() {
    let detached = |what: &'static str, value: &'static str| {
        move || {
            let mut queue = holding(1, Plan::new().frame(1).frame(1), nothing);
            run_once!(queue, UPDATE_JOB, 1002, "1", what, value);
            queue.skip_events();
            queue
        }
    };
    all_ends(|step| step.done_with(1, 1, 0, &["5"]), detached("progress", "1"));
    all_ends(|step| step.done(1, 1, 0, 1), detached("data", "2"));
    let logged = || {
        let mut queue = holding(1, Plan::new().frame(1), nothing);
        run_once!(queue, LOG_JOB; "1", "a row", 0);
        queue
    };
    all_ends(|step| step.done(1, 1, 0, 1), logged);
    // what another claim holds by now is refused, by its place
    let mut queue = detached("progress", "1")();
    run_once!(queue, MOVE_ACTIVE, 1002, "1", "w:200.0", 0);
    let step = Step::by("w").named("bob").number(101).of_claim(200).at(1010);
    assert_eq!(queue.step(step.done(1, 1, 0, 1)), "[[[1 0 -2 200]] [] -1 0 1]");
}

#[test]
fn the_end_of_a_deduplicated_job_frees_its_key() {
    for ttl_ms in [0, 60_000] {
        let dedup = || Deduplication {
            ttl_ms,
            ..Deduplication::of("d")
        };
        all_ends(
            |step| step.done_record("x", "1"),
            || holding(1, Plan::new().deduplicated("x", 0, &dedup()).frame(1), nothing),
        );
    }
}

#[test]
fn in_a_queue_of_flows_others_end_as_elsewhere() {
    let family = |queue: &mut TestQueue| {
        queue.add_flows(1000, &Tree::new().root("r").child("r", "c"));
        queue.step(Step::by("v").number(10).want(2));
        queue.skip_events();
    };
    all_ends(
        |step| step.done(3, 1, 0, 1),
        || {
            let mut queue = TestQueue::fresh();
            family(&mut queue);
            queue.add(1000, Plan::new().frame(1).front("x"));
            queue.step(Step::by("w").named("bob").number(99).at(1001).want(1));
            queue.step(Step::by("w").named("bob").number(100).at(1001).want(1));
            queue.skip_events();
            queue
        },
    );
}

/// Tries that failed: for good, with tries exhausted, and to be tried again, later or at once.
fn failures() -> [Fail; 4] {
    let exhausted = Fail {
        exhausted: true,
        attempts_made: 3,
        ..Fail::to("failed")
    };
    let later = Fail {
        due_ms: 5_000,
        ..Fail::to("delayed")
    };
    [Fail::to("failed"), exhausted, later, Fail::to("waiting")]
}

#[test]
fn a_job_fails_and_the_next_starts() {
    let frames = || Plan::new().frame(1).frame(1).frame(1);
    let records = || Plan::new().front("z").front("y").front("x");
    for fail in failures() {
        for want in [-1, 0, 1, 20] {
            same_both_ways(frames, nothing, |step| step.fail(&at(1, 1, 0), &fail).want(want));
            same_both_ways(records, nothing, |step| step.fail(&of("x"), &fail).want(want));
            // the last one
            same_both_ways(
                || Plan::new().frame(1),
                nothing,
                |step| step.fail(&at(1, 1, 0), &fail).want(want),
            );
            same_both_ways(
                || Plan::new().front("x"),
                nothing,
                |step| step.fail(&of("x"), &fail).want(want),
            );
        }
    }
}

#[test]
fn a_failure_is_kept_by_its_rule_and_counted() {
    let three_failed = |queue: &mut TestQueue| {
        for (n, id) in ["a", "b", "c"].iter().enumerate() {
            queue.step(Step::by("v").number(10 * (n as u64 + 1)).want(1));
            let step = Step::by("v").number(10 * (n as u64 + 1) + 5).at(1001);
            queue.step(step.fail(&of(id), &Fail::to("failed")));
        }
    };
    for (count, age) in [(2, -1.0), (-1, 0.005), (1, 3600.0), (0, -1.0), (-1, -1.0)] {
        for fail in failures() {
            same_both_ways(
                || Plan::new().frame(1).front("x").front("c").front("b").front("a"),
                three_failed,
                |step| step.keep(count, age, 1000).metrics(3).fail(&of("x"), &fail).want(1),
            );
        }
    }
}

#[test]
fn what_is_delayed_by_a_failure_is_looked_for() {
    let later = |due_ms| Fail {
        due_ms,
        ..Fail::to("delayed")
    };
    for due_ms in [1_005, 1_010, 1_011, 2_000, 90_000] {
        for want in [-1, 0, 1, 20] {
            // nothing else is delayed; something that is due later, before, and now
            for plan in [
                || Plan::new().front("x"),
                || Plan::new().front("x").delayed("d", 50_000),
                || Plan::new().front("x").delayed("d", 1_500).delayed("e", 60_000),
                || Plan::new().delayed("d", 1_008).front("y").front("x"),
            ] {
                same_both_ways(plan, nothing, |step| step.fail(&of("x"), &later(due_ms)).want(want));
                same_both_ways(plan, nothing, |step| {
                    step.fail(&of("x"), &later(due_ms)).want(want).leaving_due()
                });
            }
        }
    }
}

#[test]
fn what_is_due_starts_before_a_job_that_is_tried_again_at_once() {
    for want in [-1, 0, 1, 20] {
        for plan in [
            || Plan::new().front("x").delayed("d", 1_008),
            || Plan::new().front("x").delayed("d", 1_008).delayed("e", 1_009),
            || Plan::new().front("x").delayed("d", 50_000),
            || Plan::new().delayed("d", 1_008).front("y").front("x"),
        ] {
            let again = |step: Step| step.fail(&of("x"), &Fail::to("waiting")).want(want);
            same_both_ways(plan, nothing, again);
            same_both_ways(plan, nothing, |step| again(step).leaving_due());
        }
    }
}

#[test]
fn what_is_known_of_a_record_stays_as_it_fails() {
    let known = |queue: &mut TestQueue| {
        run_once!(queue, UPDATE_JOB, 1001, "x", "progress", "1");
        run_once!(queue, LOG_JOB; "x", "a row", 0);
    };
    for fail in failures() {
        same_both_ways(
            || Plan::new().front("x"),
            known,
            |step| step.fail(&of("x"), &fail).want(1),
        );
        for ttl_ms in [0, 60_000] {
            let dedup = || Deduplication {
                ttl_ms,
                ..Deduplication::of("d")
            };
            let plan = || Plan::new().deduplicated("x", 0, &dedup()).frame(1);
            same_both_ways(plan, nothing, |step| step.fail(&of("x"), &fail).want(1));
        }
        // one that was alone in its frame
        let amended = || {
            let mut queue = holding(1, Plan::new().frame(1).frame(1), nothing);
            run_once!(queue, UPDATE_JOB, 1002, "1", "progress", "1");
            queue.skip_events();
            queue
        };
        same_of(amended, |step| step.fail(&at(1, 1, 0), &fail).want(1));
        // the second try
        let again = || {
            let mut queue = TestQueue::with(Plan::new().front("y").front("x"));
            queue.step(Step::by("v").number(10).want(1));
            run_once!(queue, MOVE_ACTIVE, 1001, "x", "v:20.0", 0);
            queue.step(Step::by("w").named("bob").number(100).at(1002).want(1));
            queue.skip_events();
            queue
        };
        same_of(again, |step| step.fail(&of("x"), &fail).want(1));
    }
}

#[test]
fn a_failure_of_another_claim_is_refused() {
    // taken once more by the same worker, since
    let retaken = || {
        let mut queue = TestQueue::with(Plan::new().front("x"));
        queue.step(Step::by("w").named("bob").number(90).at(1001).want(1));
        run_once!(queue, MOVE_ACTIVE, 1001, "x", "w:180.0", 0);
        queue.step(Step::by("w").named("bob").number(100).at(1002).want(1));
        queue.skip_events();
        queue
    };
    for fail in failures() {
        let mut queue = retaken();
        let keys = queue.show();
        let step = Step::by("w").named("bob").of_claim(180).number(101).at(1010);
        assert_eq!(queue.step(step.fail(&of("x"), &fail)), "[[[0 x -6 180]] [] -1 0 0]");
        assert_eq!(queue.show(), keys);
        queue.events_are("");
    }
    let mut queue = retaken();
    let keys = queue.show();
    let step = Step::by("w").named("bob").of_claim(180).number(101).at(1010);
    assert_eq!(queue.step(step.let_go(&of("x"))), "[[] [] -1 0 0]");
    assert_eq!(queue.show(), keys);
}

#[test]
fn a_try_again_waits_behind_what_others_wrote_into_the_log() {
    let plan = || Plan::new().frame(1).frame(1).front("x");
    for want in [-1, 0] {
        let strange = || {
            let mut queue = holding(1, plan(), nothing);
            queue.command("XADD", "log", &["9-1", "strange", "entry"]);
            queue
        };
        same_of(strange, |step| step.fail(&of("x"), &Fail::to("waiting")).want(want));
    }
}

/// A time of nine bytes, as all real ones.
const NOW_MS: u64 = 1_700_000_000_000;

/// A flow of one child without an id, which lies alone in a frame; and its place.
fn only_child() -> (TestQueue, Place) {
    let mut queue = TestQueue::fresh();
    queue.add_flows(NOW_MS, &Tree::new().root("r").child("r", ""));
    let header = queue
        .probe
        .snapshot()
        .header(2)
        .expect("a frame of children")
        .ids
        .to_owned();
    queue.step(Step::by("w").named("bob").number(100).at(NOW_MS).want(1));
    queue.skip_events();
    (queue, Place::Child(2, 1, 0, header))
}

#[test]
fn a_child_fails_as_elsewhere() {
    for fail in failures() {
        let fail = Fail {
            due_ms: fail.due_ms + NOW_MS,
            ..fail
        };
        // each tree has ids of its own
        let [(mut straight, place), (mut any, twin)] = [only_child(), only_child()];
        let step = |claim| Step::by("w").named("bob").of_claim(claim).number(101).at(NOW_MS + 9);
        straight.step(step(200).fail(&place, &fail).want(1));
        any.step(step(0).fail(&twin, &fail).want(1));
        let of_twin = any.show().replace(&twin.id()[..24], &place.id()[..24]);
        assert_eq!(straight.show(), of_twin, "{}", fail.to);
        let is_alone = straight.show().contains("pa:[");
        assert!(is_alone || fail.to == "failed", "{}", straight.show());
        let child = || {
            let mut queue = TestQueue::fresh();
            queue.add_flows(1000, &Tree::new().root("r").child("r", "c"));
            queue.step(Step::by("w").named("bob").number(100).at(1001).want(1));
            queue.skip_events();
            queue
        };
        same_of(child, |step| step.fail(&of("c"), &fail));
    }
}

#[test]
fn a_job_that_moved_itself_is_let_go_and_the_next_starts() {
    for want in [-1, 0, 1, 20] {
        let moved = || {
            let mut queue = holding(1, Plan::new().frame(1).front("x"), nothing);
            run_once!(queue, MOVE_ACTIVE, 1002, "x", "w:200.0", 5_000);
            queue.skip_events();
            queue
        };
        same_of(moved, |step| step.let_go(&of("x")).want(want));
        let frame = || {
            let mut queue = holding(1, Plan::new().frame(1).frame(1), nothing);
            run_once!(queue, MOVE_ACTIVE, 1002, "1", "w:200.0", 5_000);
            queue.skip_events();
            queue
        };
        same_of(frame, |step| step.let_go(&at(1, 1, 0)).want(want));
        // held by its worker all the same
        same_both_ways(
            || Plan::new().front("x"),
            nothing,
            |step| step.let_go(&of("x")).want(want),
        );
        same_both_ways(
            || Plan::new().frame(1),
            nothing,
            |step| step.let_go(&at(1, 1, 0)).want(want),
        );
    }
}
