//! A step that is sent again after its answer was lost changes nothing, and brings what the worker holds by then.

use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{run_once, show_reply, TestQueue},
    step::{at, of, Fail, Step},
};

fn with_jobs() -> TestQueue {
    TestQueue::with(Plan::new().frame(2).record("x").frame(3).delayed("later", 5000))
}

fn six_parts(value: &Value) -> String {
    match value {
        // the server's clock goes on
        Value::Array(parts) => show_reply(&Value::Array(parts[..6].to_vec())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_answer_is_the_same_and_nothing_changes() {
    let mut queue = with_jobs();
    let calls = [
        queue.step_call(&Step::by("w").want(4)),
        queue.step_call(
            &Step::by("w")
                .at(1010)
                .done(1, 2, 0, 1)
                .fail(&at(1, 2, 1), &Fail::to("waiting"))
                .want(10),
        ),
        queue.step_call(&Step::by("w").at(1020).done_record("x", "").done(99, 1, 0, 1).want(1)),
    ];
    for call in calls {
        let reply = queue.carry_out_value(&call);
        let keys = queue.show();
        queue.skip_events();
        let again = queue.carry_out_value(&call);
        assert_eq!(six_parts(&again), six_parts(&reply));
        queue.keys_are(&keys);
        queue.events_are("");
    }
    // the last one was refused something, and is so again
    queue.key_is("completed", "1@1010 x@1020");
}

#[test]
fn a_late_copy_of_an_older_step_changes_nothing() {
    let mut queue = with_jobs();
    let old = queue.step_call(&Step::by("w").want(1));
    queue.carry_out_value(&old);
    queue.step(Step::by("w").done_record("1", "").want(5));
    let keys = queue.show();
    queue.carry_out_value(&old);
    queue.keys_are(&keys);
}

#[test]
fn one_that_looks_in_vain_leaves_nothing() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    run_once!(queue, REMOVE_JOB, 1001, "1", 0);
    let keys = queue.show();
    let wait = queue.step_call(&Step::by("w").when_it_comes(0).number(3).want(1));
    assert_eq!(queue.carry_out(&wait), "[[] [] -1 0 0 0 0 0 6]");
    queue.keys_are(&keys);
}

#[test]
fn one_that_looks_in_vain_hears_when_the_next_job_is_due() {
    const DUE_MS: u64 = 4_000_000_000_000;
    let mut queue = TestQueue::with(Plan::new().delayed("later", DUE_MS));
    let keys = queue.show();
    let wait = queue.step_call(&Step::by("w").when_it_comes(-500_000_000).number(3).want(1));
    let Value::Array(parts) = queue.carry_out_value(&wait) else {
        panic!("a reply")
    };
    let [due_ms, now_ms, server_us] =
        [2, 5, 6].map(|i| redis::from_redis_value::<i64>(parts[i].clone()).expect("a number"));
    assert_eq!(due_ms, DUE_MS as i64);
    assert_eq!(now_ms, (server_us - 500_000_000).div_euclid(1000));
    queue.keys_are(&keys);
}

#[test]
fn one_that_looks_for_jobs_with_a_priority_finds_them() {
    let mut queue = TestQueue::with(Plan::new().run(&[1]));
    let wait = |queue: &mut TestQueue| {
        let call = queue.step_call(&Step::by("w").when_it_comes(0).want(1));
        queue.carry_out(&call).contains("[] [] -1 0 0 0 0 0")
    };
    queue.step(Step::by("v").want(2));
    assert!(wait(&mut queue));
    // given back, it stands where the places begin
    queue.step(Step::by("v").back(&of("1"), false));
    assert!(!wait(&mut queue));
    queue.key_is("state", "id=1 active=1");
}

#[test]
fn one_whose_answer_was_lost_takes_nothing_behind_its_copy() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("v").want(1));
    let step = || Step::by("w").when_it_comes(0).number(1).want(1);
    let (wait, copy) = (queue.step_call(&step()), queue.step_call(&step().at(1001)));
    // it found nothing, and nobody heard
    queue.carry_out_value(&wait);
    queue.add(1001, Plan::new().frame(1).frame(1));
    queue.carry_out_value(&copy);
    queue.key_is("state", "cursor=2-1 id=3 waiting=1 active=2");
    let keys = queue.show();
    queue.carry_out_value(&wait);
    queue.keys_are(&keys);
}

#[test]
fn a_queue_without_a_state_gets_one() {
    let mut queue = TestQueue::fresh();
    // by a whole step, which the next one need not be
    for keys in ["lease:w: set", ""] {
        let wait = queue.step_call(&Step::by("w").when_it_comes(0).want(1));
        queue.carry_out_value(&wait);
        queue.keys_are(keys);
        queue.end_lease("w");
    }
}

#[test]
fn jobs_that_became_records_meanwhile_are_still_brought() {
    let mut queue = TestQueue::with(Plan::new().frame(2).frame(1).record("x"));
    let call = queue.step_call(&Step::by("w").want(4));
    queue.carry_out_value(&call);
    for id in ["2", "3"] {
        run_once!(queue, UPDATE_JOB, 1001, id, "progress", "1");
    }
    let again = queue.carry_out_value(&call);
    assert_eq!(
        six_parts(&again),
        "[[] [1 2 <7 {} a 1 - 2> 0 3 <[7 {} a 1]> <{as:1 p:1 po:1000}> 1 0 x <[7 {} a 1]> '' 1] -1 0 0 1000]"
    );
}

#[test]
fn jobs_that_went_elsewhere_meanwhile_are_not_brought() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x").record("y"));
    let call = queue.step_call(&Step::by("w").want(4));
    queue.carry_out_value(&call);
    queue.end_lease("w");
    queue.recover_stalled(1001, 1, 1);
    queue.step(Step::by("v").want(3));
    let again = queue.carry_out_value(&call);
    assert_eq!(six_parts(&again), "[[] [] -1 0 1 1000]");
    queue.key_is("state", "cursor=4-r1 id=4 waiting=1 active=3 references=1");
}
