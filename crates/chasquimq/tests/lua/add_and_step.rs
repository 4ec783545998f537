//! new -> active, for a job that a worker waits for: adding it and taking that worker's step are one call.

use chasquimq::redis::call::library::{ADD, ADD_AND_STEP, ADD_FRAMES};
use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{run, run_once, show_reply, Forbidden, TestQueue},
    step::Step,
};

/// The step that goes along: the first of worker `w` in its slot.
fn step() -> Step {
    Step::by("w").named("bob").number(100).at(1010).want(1)
}

fn call(queue: &TestQueue, number: u64, plan: &Plan, step: &Step) -> redis::Cmd {
    let mut call = queue.call(&ADD_AND_STEP);
    call.arg(step.asked(0)).arg(i64::from(plan.is_record()));
    append_add(&mut call, number, plan);
    call
}

fn append_add(call: &mut redis::Cmd, number: u64, plan: &Plan) {
    call.arg(1000).arg("c").arg(0).arg(number);
    plan.append_to_own(call);
}

/// The add by itself.
fn add_call(queue: &TestQueue, number: u64, plan: &Plan) -> redis::Cmd {
    let script = if plan.is_record() { &ADD } else { &ADD_FRAMES };
    let mut call = queue.call(script);
    append_add(&mut call, number, plan);
    call
}

/// One plain job.
fn plain() -> Plan {
    Plan::new().frame(1)
}

/// Adds one plain job, and takes the step along. Gives both replies, the latter without its times.
fn add_and_step(queue: &mut TestQueue, number: u64, step: &Step) -> String {
    add_plan_and_step(queue, number, &plain(), step)
}

fn add_plan_and_step(queue: &mut TestQueue, number: u64, plan: &Plan, step: &Step) -> String {
    let call = call(queue, number, plan, step);
    let Value::Array(mut replies) = queue.carry_out_value(&call) else {
        panic!("replies")
    };
    if let Some(Value::Array(stepped)) = replies.get_mut(1) {
        stepped.truncate(5);
    }
    show_reply(&Value::Array(replies))
}

#[test]
fn a_worker_that_took_a_job_along_tells_its_slots() {
    let mut queue = free(|_| ());
    assert!(add_and_step(&mut queue, 1, &step().slots(7)).contains(" [1 1 "));
    queue.end_lease("w");
    let found = run!(queue, FIND_LOST, 0, "s", "", "");
    assert!(found.ends_with(" [w 7] [1]]"), "{found}");
}

/// What became of the queue: both replies, the keys, and what was told.
fn outcome_of(queue: &mut TestQueue, replies: String) -> (String, String, String) {
    // events are those of one call or of two
    (replies, queue.show(), queue.events().replace(" | ", " "))
}

/// A queue of which is known that nothing limits it.
fn free(before: impl Fn(&mut TestQueue)) -> TestQueue {
    let mut queue = TestQueue::told_before(1);
    queue.step(Step::by("v").want(0));
    before(&mut queue);
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

/// Adds and takes the step by one call and by two, and compares all that can be seen.
fn same_as_two_calls(before: impl Fn(&mut TestQueue), step: impl Fn() -> Step) -> TestQueue {
    same_of(plain, before, step)
}

fn same_of(plan: impl Fn() -> Plan, before: impl Fn(&mut TestQueue), step: impl Fn() -> Step) -> TestQueue {
    let mut one = free(&before);
    let replies = add_plan_and_step(&mut one, 9, &plan(), &step());
    let together = outcome_of(&mut one, replies);

    let mut two = free(&before);
    let call = add_call(&two, 9, &plan());
    let added = two.carry_out(&call);
    // as by the wait that it ends
    two.command("DEL", "wake", &[]);
    let stepped = two.step(step());
    let snapshot = two.probe.snapshot();
    let is_left = snapshot.state("waiting") > 0 || two.show().contains("prioritized");
    let is_in_vain = stepped.starts_with("[[] []") && is_left;
    if is_in_vain {
        two.command("ZADD", "wake", &["0", "0"]);
    }
    let apart = outcome_of(&mut two, format!("[{added} {stepped}]"));
    assert_eq!(together, apart);
    one
}

fn nothing(_: &mut TestQueue) {}

#[test]
fn a_job_starts_as_it_is_added() {
    let mut queue = same_as_two_calls(nothing, step);
    queue.key_is("log", "1-1");
    queue.key_is("state", "cursor=1-1 id=1 active=1");
    queue.key_is("takes", "1=[1010 '' w bob]");
    queue.key_is("lease:w", "set");
    queue.key_is("wake", "(none)");
    queue.step(Step::by("w").named("bob").number(101).at(1020).done(1, 1, 0, 1));
    queue.key_is("runs", "1=[1 1 1 1010 bob '']");
}

#[test]
fn a_worker_that_has_no_slot_left_then_is_told_what_is_due_if_it_asks() {
    let delayed = |queue: &mut TestQueue| drop(queue.add(1000, Plan::new().delayed("x", 2000)));
    for asks in [true, false] {
        for want in [1, 2] {
            let step_of = || step().want(want).asking_due(asks);
            same_of(|| Plan::new().record("y"), delayed, step_of);
            same_as_two_calls(delayed, step_of);
            same_as_two_calls(delayed, || step_of().leaving_due());
        }
    }
}

#[test]
fn it_does_so_whatever_ended_before() {
    let ended = |queue: &mut TestQueue| {
        queue.add(1000, Plan::new().frame(2).record("x"));
        queue.step(Step::by("v").want(3));
        queue.step(Step::by("v").at(1001).done(1, 2, 0, 2).done_record("x", "7"));
    };
    same_as_two_calls(ended, step);
}

#[test]
fn what_stands_before_it_starts_first() {
    let waiting: [fn(&mut TestQueue); 4] = [
        |queue| drop(queue.add(1000, Plan::new().frame(1))),
        |queue| drop(queue.add(1000, Plan::new().frame(3).record("x"))),
        |queue| drop(queue.add(1000, Plan::new().front("x"))),
        |queue| drop(queue.add(1000, Plan::new().prioritized("x", 3))),
    ];
    for before in waiting {
        for want in [1, 3] {
            same_as_two_calls(before, || step().want(want));
        }
    }
}

#[test]
fn it_waits_where_nothing_may_start() {
    let held: [fn(&mut TestQueue); 3] = [
        |queue| drop(run_once!(queue, PAUSE, 1000, 1)),
        |queue| {
            drop(
                run_once!(queue, SET_LIMIT; "concurrency", 1, "")
                    + &queue.add(1000, Plan::new().frame(1))
                    + &queue.step(Step::by("v").want(1)),
            )
        },
        |queue| drop(queue.add(1000, Plan::new().delayed("x", 5000))),
    ];
    for before in held {
        same_as_two_calls(before, step);
    }
    same_as_two_calls(nothing, || step().limiter(1, 60_000));
    same_as_two_calls(nothing, || step().want(0));
}

/// Records that may start at once.
const RECORDS: [fn() -> Plan; 5] = [
    || Plan::new().record("x"),
    || Plan::new().record(""),
    || Plan::new().front("x"),
    || Plan::new().prioritized("x", 3),
    || Plan::new().prioritized("", 3),
];

#[test]
fn a_job_with_a_record_starts_as_it_is_added() {
    for plan in RECORDS {
        for want in [1, 3] {
            let mut queue = same_of(plan, nothing, || step().want(want));
            assert_eq!(queue.probe.snapshot().state("active"), 1);
            queue.key_is("wake", "(none)");
        }
        let mut two = free(nothing);
        two.add(1000, Plan::new().record("other"));
        let replies = add_plan_and_step(&mut two, 9, &plan(), &step());
        assert!(replies.contains("]] [[] ["), "{replies}");
        // what is left, others hear of
        two.key_is("wake", "set");
    }
}

#[test]
fn one_whose_id_is_another_s_starts_nothing_and_wakes_nobody() {
    let mut queue = free(|queue| {
        queue.add(1000, Plan::new().record("x"));
        queue.step(Step::by("v").want(1));
    });
    let replies = add_plan_and_step(&mut queue, 9, &Plan::new().record("x"), &step());
    assert_eq!(replies, "[[2 [0 x]] [[] [] -1 0 0]]");
    queue.key_is("wake", "(none)");
}

#[test]
fn a_record_waits_where_nothing_may_start() {
    for plan in RECORDS {
        same_of(plan, |queue| drop(run_once!(queue, PAUSE, 1000, 1)), step);
        same_of(plan, nothing, || step().limiter(1, 60_000));
        same_of(plan, nothing, || step().want(0));
    }
}

#[test]
fn a_job_starts_as_it_is_added_while_others_are_delayed() {
    let later = |queue: &mut TestQueue| drop(queue.add(1000, Plan::new().delayed("x", 4_000_000_000_000)));
    for want in [1, 3] {
        let mut queue = same_as_two_calls(later, || step().want(want));
        queue.key_is("takes", "2=[1010 '' w bob]");
        same_of(RECORDS[0], later, || step().want(want));
    }
    // what is due starts as well
    for due_ms in [1, 1010] {
        for want in [1, 3] {
            let due = |queue: &mut TestQueue| drop(queue.add(1000, Plan::new().delayed("x", due_ms)));
            same_as_two_calls(due, || step().want(want));
            same_as_two_calls(due, || step().want(want).leaving_due());
        }
    }
}

#[test]
fn what_several_jobs_leave_in_line_others_hear_of() {
    let mut queue = free(nothing);
    let call = call(&queue, 9, &Plan::new().frame(3), &step());
    queue.carry_out_value(&call);
    queue.key_is("state", "cursor=1-3 id=3 waiting=2 active=1");
    queue.key_is("wake", "set");
}

#[test]
fn a_full_queue_takes_neither() {
    let mut queue = free(|queue| {
        queue.add(1000, Plan::new().frame(1));
        run_once!(queue, SET_LIMIT; "length", 1, "");
    });
    let keys = queue.show();
    assert_eq!(add_and_step(&mut queue, 9, &step()), "[[-12 1 1 1]]");
    queue.keys_are(&keys);
}

#[test]
fn both_parts_are_carried_out_once() {
    let mut queue = free(nothing);
    let replies = add_and_step(&mut queue, 9, &step());
    let keys = queue.show();
    queue.skip_events();
    let call = add_call(&queue, 9, &plain());
    let added = queue.carry_out(&call);
    let stepped = queue.step(step());
    assert_eq!(format!("[{added} {stepped}]"), replies);
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_worker_that_waits_waits_on_where_it_has_room_and_no_more_where_it_has_none() {
    for plan in [plain, || Plan::new().record("x")] {
        for (want, left) in [(2, "2"), (1, "0")] {
            let mut queue = free(|queue| drop(queue.step(Step::by("w").busy().want(1))));
            queue.key_is("waiting-workers", "w");
            let replies = add_plan_and_step(&mut queue, 9, &plan(), &step().waiting().want(want));
            assert!(replies.ends_with(&format!(" {left}]]")), "{replies}");
            queue.key_is("waiting-workers", if want == 2 { "w" } else { "(none)" });
        }
    }
}

#[test]
fn an_entry_at_the_end_of_the_log_that_is_none_of_ours_goes() {
    let mut queue = free(nothing);
    queue.command("XADD", "log", &["9-9", "other", "entry"]);
    let replies = {
        let call = call(&queue, 9, &Plan::new().frame(1), &step());
        queue.carry_out_unchecked(&call)
    };
    assert!(show_reply(&replies).starts_with("[[1 []] [[] [1 1 "), "{replies:?}");
    queue.key_is("log", "1-1");
    queue.key_is("front", "unreadable-9-9");
    queue.key_is("wake", "set");
}

#[test]
fn a_refused_call_leaves_a_usable_queue() {
    for command in ["set", "hset", "xadd", "time"] {
        let mut queue = free(nothing);
        let refused = call(&queue, 50, &Plan::new().frame(1), &step());
        assert!(
            refused.exec(&mut Forbidden::command(command).connection).is_err(),
            "without {command}"
        );

        queue.carry_out_unchecked(&add_call(&queue, 50, &plain()));
        for owner in ["w", "v"] {
            let step = queue.step_call(&Step::by(owner).number(101).want(10));
            queue.carry_out_unchecked(&step);
        }
        assert_eq!(queue.probe.snapshot().state("active"), 1, "without {command}");
        assert_eq!(queue.probe.snapshot().state("waiting"), 0, "without {command}");
    }
}
