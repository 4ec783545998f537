//! waiting -> active: what a step takes, and in which order.

use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

#[test]
fn an_empty_queue_gives_nothing() {
    let mut queue = TestQueue::fresh();
    assert_eq!(queue.step(Step::by("w").want(5)), "[[] [] -1 0 0]");
    queue.keys_are("lease:w: set");
    queue.events_are("");
}

#[test]
fn a_frame_that_fits_is_taken_whole() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.skip_events();
    let reply = queue.step(Step::by("w").named("bob").at(1005).want(3));
    assert_eq!(reply, "[[] [1 3 <7 {} a 1 - 2 - 3>] -1 0 0]");
    queue.keys_are(
        "lease:w: set
         log: 1-3
         state: cursor=1-3 id=3 active=3
         takes: 1=[1005 '' w bob]
         wake: set",
    );
    queue.events_are("[a 1 3]");
}

#[test]
fn several_frames_are_taken_at_once() {
    let mut queue = TestQueue::with(Plan::new().frame(2).frame(1).frame(3));
    let reply = queue.step(Step::by("w").want(3));
    assert_eq!(reply, "[[] [1 2 <7 {} a 1 - 2> 3 1 <7 {} a 1>] -1 0 1]");
    queue.key_is("takes", "1=[1000 '' w ''] 3=[1000 '' w '']");
    queue.key_is("state", "cursor=3-1 id=6 waiting=3 active=3");
}

#[test]
fn records_bring_their_body_and_what_happened_to_them() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
    run_once!(queue, UPDATE_JOB, 1001, "y", "progress", "5");
    queue.skip_events();
    let reply = queue.step(Step::by("w").named("bob").want(2));
    assert_eq!(reply, "[[] [0 x <[7 {} a 1]> '' 1 0 y <[7 {} a 1]> <{p:5}> 1] -1 0 0]");
    queue.keys_are(
        "active: x=[1000 1 w bob] y=[1000 1 w bob]
         jobs: x=[7 {} a 1] y=[7 {} a 1]
         lease:w: set
         state: cursor=2-r1 id=2 active=2 references=1
         vitals: y={p:5}
         wake: set",
    );
    queue.events_are("[X active [x y] prev waiting]");
}

#[test]
fn the_front_list_comes_before_the_log_and_the_log_in_order() {
    let mut queue = TestQueue::with(Plan::new().frame(1).record("x").frame(2).front("z"));
    queue.skip_events();
    let reply = queue.step(Step::by("w").want(10));
    assert_eq!(
        reply,
        "[[] [0 z <[7 {} a 1]> '' 1 1 1 <7 {} a 1> 0 x <[7 {} a 1]> '' 1 3 2 <7 {} a 1 - 2>] -1 0 0]"
    );
    queue.events_are("[X active [z] prev waiting] [a 1 1] [X active [x] prev waiting] [a 3 2]");
}

#[test]
fn what_is_left_waiting_wakes_somebody_else() {
    let mut queue = TestQueue::with(Plan::new().frame(1).frame(1));
    queue.command("DEL", "wake", &[]);
    queue.step(Step::by("w").want(1));
    queue.key_is("wake", "set");
    queue.command("DEL", "wake", &[]);
    queue.step(Step::by("w").want(1));
    queue.key_is("wake", "(none)");
}

#[test]
fn a_step_that_wants_nothing_takes_nothing() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    let keys = queue.show();
    assert_eq!(queue.step(Step::by("w").want(-1)), "[[] [] -1 0 1]");
    assert_eq!(queue.step(Step::by("w").want(0)), "[[] [] -1 0 1]");
    queue.keys_are(&keys.replace("log:", "lease:w: set\nlog:"));
}

#[test]
fn a_step_shows_its_worker_alive_for_the_time_of_its_lease() {
    let mut queue = TestQueue::fresh();
    queue.step(Step::by("w").want(1));
    let Value::Int(left_ms) = queue.command("PTTL", "lease:w", &[]) else {
        panic!("PTTL")
    };
    assert!((30_000..=60_000).contains(&left_ms), "{left_ms}");
}

#[test]
fn surplus_is_taken_beyond_what_is_wanted() {
    let mut queue = TestQueue::with(Plan::new().frame(2).frame(2).frame(2));
    let reply = queue.step(Step::by("w").want(1).surplus(3));
    assert_eq!(reply, "[[] [1 2 <7 {} a 1 - 2> 3 2 <7 {} a 1 - 2>] -1 0 1]");
}

fn active(queue: &mut TestQueue) -> String {
    let counts = run!(queue, COUNT_JOBS);
    counts.split(' ').nth(1).expect("a count").to_owned()
}

#[test]
fn a_worker_reaches_no_farther_while_another_one_is_idle() {
    let plans = [
        Plan::new().frame(1).frame(1).frame(1),
        Plan::new().record("x").record("y").record("z"),
        Plan::new().prioritized("x", 1).prioritized("y", 1).prioritized("z", 1),
        Plan::new().delayed("x", 1000).delayed("y", 1000).delayed("z", 1000),
    ];
    for plan in plans {
        let mut queue = TestQueue::with(plan);
        let step = || Step::by("w").at(1000).want(3).reach(1).surplus(9);
        queue.command("DEL", "wake", &[]);
        let reply = queue.step(step());
        assert!(reply.ends_with(" 1]"), "work is left: {reply}");
        assert_eq!(active(&mut queue), "1");
        // nobody took the marker that this has left
        queue.step(step());
        assert_eq!(active(&mut queue), "3");
    }
}

#[test]
fn surplus_stops_at_the_byte_bound_and_what_is_wanted_does_not() {
    // a frame of two takes some ten bytes
    let plan = || Plan::new().frame(2).frame(2).frame(2).frame(2);
    let mut queue = TestQueue::with(plan());
    queue.step(Step::by("w").want(2).surplus(100).max_bytes(12));
    queue.key_is("state", "cursor=3-2 id=8 waiting=4 active=4");
    let mut queue = TestQueue::with(plan());
    queue.step(Step::by("w").want(6).surplus(100).max_bytes(1));
    queue.key_is("state", "cursor=5-2 id=8 waiting=2 active=6");
}

#[test]
fn a_job_that_stalled_before_is_no_surplus() {
    let mut queue = TestQueue::with(Plan::new().frame(1).frame(2));
    queue.step(Step::by("dead").want(1));
    queue.end_lease("dead");
    queue.recover_stalled(1001, 1, 1);
    queue.key_is("front", "1");
    assert_eq!(queue.step(Step::by("w").want(0).surplus(10)), "[[] [] -1 0 1]");
    let reply = queue.step(Step::by("w").want(1).surplus(10));
    assert!(reply.starts_with("[[] [0 1 "), "{reply}");
    queue.key_is("state", "cursor=2-2 id=3 active=3");
}

#[test]
fn surplus_from_the_front_list_ends_before_a_job_that_stalled() {
    let mut queue = TestQueue::with(Plan::new().frame(1).frame(1));
    queue.step(Step::by("dead").want(1));
    queue.end_lease("dead");
    queue.recover_stalled(1001, 1, 1);
    queue.add(1002, Plan::new().front("x"));
    queue.key_is("front", "x 1");
    queue.step(Step::by("w").want(0).surplus(10));
    queue.key_is("front", "1");
    queue.key_is("active", "x=[1000 1 w '']");
}

#[test]
fn references_of_removed_jobs_are_passed_over() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y").record("z"));
    run_once!(queue, REMOVE_JOB, 1001, "x", 0);
    queue.key_is("gone", "x=1");
    // the reference counts for nothing: y is the one job that fits
    assert_eq!(queue.step(Step::by("w").want(1)), "[[] [0 y <[7 {} a 1]> '' 1] -1 0 1]");
    queue.keys_are(
        "active: y=[1000 1 w '']
         front: z
         jobs: y=[7 {} a 1] z=[7 {} a 1]
         lease:w: set
         state: cursor=3-r1 id=3 waiting=1 active=1 references=1
         wake: set",
    );
}

#[test]
fn an_id_that_is_used_again_keeps_its_new_place() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
    run_once!(queue, REMOVE_JOB, 1001, "x", 0);
    queue.add(1002, Plan::new().record("x"));
    queue.key_is("gone", "x=1");
    assert_eq!(queue.step(Step::by("w").want(1)), "[[] [0 y <[7 {} a 1]> '' 1] -1 0 1]");
    assert_eq!(queue.step(Step::by("w").want(1)), "[[] [0 x <[7 {} a 1]> '' 1] -1 0 0]");
    queue.key_is("gone", "(none)");
}

#[test]
fn an_id_that_is_used_again_at_the_head_of_the_line_starts_first() {
    let mut queue = TestQueue::with(Plan::new().record("y").record("x"));
    run_once!(queue, REMOVE_JOB, 1001, "x", 0);
    queue.add(1002, Plan::new().front("x"));
    assert_eq!(queue.step(Step::by("w").want(1)), "[[] [0 x <[7 {} a 1]> '' 1] -1 0 1]");
    queue.step(Step::by("w").done_record("x", ""));
    assert_eq!(queue.step(Step::by("w").want(2)), "[[] [0 y <[7 {} a 1]> '' 1] -1 0 0]");
    queue.key_is("gone", "(none)");
}

#[test]
fn a_batch_of_more_references_than_a_call_takes_arguments_is_taken() {
    let mut plan = Plan::new();
    for number in 0..9000 {
        plan = plan.record(&format!("x{number}"));
    }
    let mut queue = TestQueue::with(plan);
    // no more than 400 a step, and the marker tells that there are others
    queue.step(Step::by("w").want(20_000));
    queue.key_is("state", "cursor=9000-r1 id=9000 waiting=8600 active=400 references=9");
    queue.key_is("wake", "set");
    queue.take_all(|| Step::by("w").want(20_000));
    queue.key_is("state", "cursor=9000-r9 id=9000 active=9000 references=9");
}

#[test]
fn a_step_without_a_time_reads_the_clock_itself() {
    let mut queue = TestQueue::with(Plan::new().record("x").delayed("y", 1_000_000));
    let call = queue.step_call(&Step::by("w").when_it_comes(-500_000_000).want(5));
    let Value::Array(parts) = queue.carry_out_value(&call) else {
        panic!("a reply")
    };
    let [now_ms, server_us] = [5, 6].map(|i| redis::from_redis_value::<i64>(parts[i].clone()).expect("a time"));
    assert_eq!(now_ms, (server_us - 500_000_000).div_euclid(1000));
    // y was due by that clock
    queue.key_is("active", &format!("x=[{now_ms} 1 w ''] y=[{now_ms} 1 w '']"));
}

#[test]
fn what_a_step_fetches_starts_when_it_is_carried_out() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
    queue.step(Step::by("w").want(1));
    let call = queue.step_call(&Step::by("w").at(2000).clock(-500_000_000).done_record("x", "").want(1));
    let Value::Array(parts) = queue.carry_out_value(&call) else {
        panic!("a reply")
    };
    let [now_ms, server_us] = [5, 6].map(|i| redis::from_redis_value::<i64>(parts[i].clone()).expect("a time"));
    assert_eq!(now_ms, (server_us - 500_000_000).div_euclid(1000));
    queue.key_is("active", &format!("y=[{now_ms} 1 w '']"));
    // what ended did so when the caller says
    queue.key_is("completed", "x@2000");
}

#[test]
fn nothing_is_taken_in_advance_while_a_worker_waits() {
    let plans = [
        Plan::new().frame(1).frame(1).frame(1).frame(1),
        Plan::new().front("a").front("b").front("c").front("d"),
        Plan::new().run(&[1, 1, 1, 1]),
    ];
    for plan in plans {
        let mut queue = TestQueue::with(plan);
        // whoever waited has taken the marker
        queue.command("DEL", "wake", &[]);
        queue.step(Step::by("w").want(1).surplus(2));
        assert_eq!(run!(queue, COUNT_JOBS).split(' ').nth(1), Some("1"));
        queue.key_is("wake", "set");
        // nobody has
        queue.step(Step::by("w").want(0).surplus(2));
        assert_eq!(run!(queue, COUNT_JOBS).split(' ').nth(1), Some("3"));
    }
}
