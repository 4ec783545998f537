//! Frames that lie apart, from the add to the end: what is done with their jobs is what is done with those of others.

use chasquimq::{
    frame::FrameBuilder,
    msgpack::Packer,
    redis::call::library::{ADD_FRAMES, OBLITERATE},
};
use redis::Value;

use super::{model::bulk::by_age, read_jobs::by_ids};
use crate::given::{
    plan::TIMESTAMP,
    queue::{run, run_once, Forbidden, TestQueue},
    step::{at, Fail, Step},
};

/// Adds a frame of so many jobs, and one of a job that lies in the log. What is stored for the call is there: `is_stored`.
pub fn call(queue: &mut TestQueue, jobs: u64, is_stored: bool) -> redis::Cmd {
    call_of(queue, jobs, is_stored, 100)
}

/// The same of a frame that is said to have so many bytes.
fn call_of(queue: &mut TestQueue, jobs: u64, is_stored: bool, bytes: i64) -> redis::Cmd {
    let number = queue.next_number();
    let frame = |jobs: u64| {
        let mut frame = FrameBuilder::new(TIMESTAMP, "{}");
        (1..=jobs).for_each(|data| frame.push("a", &data.to_string()));
        frame.finish().0
    };
    if is_stored {
        let stash = queue.probe.keys.key(&format!("stash:c:0:{number}:1"));
        let mut store = redis::cmd("SET");
        store.arg(stash).arg(frame(jobs)).arg("PX").arg(600_000);
        store.exec(&mut queue.probe.connection).expect("stored");
    }
    let (mut name, mut stub) = (Packer::default(), Packer::default());
    name.str("a");
    stub.int(TIMESTAMP as i64).str("{}").int(bytes);
    let mut call = queue.call(&ADD_FRAMES);
    call.arg(1000).arg("c").arg(0).arg(number);
    call.arg(-(jobs as i64)).arg(&name.0).arg(stub.0);
    call.arg(1).arg(name.0).arg(frame(1));
    call
}

/// The jobs 1..4 lie apart, 5 does not.
fn added() -> TestQueue {
    let mut queue = TestQueue::fresh();
    let call = call(&mut queue, 4, true);
    assert_eq!(queue.carry_out(&call), "[1 []]");
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

fn taken() -> TestQueue {
    let mut queue = added();
    queue.step(Step::by("w").named("bob").at(1005).want(4));
    queue
}

/// 1 and 2 have completed and are kept, 3 and 4 are active.
fn half_kept() -> TestQueue {
    let mut queue = taken();
    queue.step(Step::by("w").at(1010).done(1, 4, 0, 2));
    queue
}

#[test]
fn what_was_stored_becomes_the_frame() {
    let mut queue = TestQueue::fresh();
    let call = call(&mut queue, 4, true);
    assert_eq!(queue.carry_out(&call), "[1 []]");
    queue.keys_are(
        "apart:1: set
         log: 1-4 5-1
         state: id=5 waiting=5
         wake: set",
    );
    queue.events_are("[A 1 4 a] [A 5 1 a]");
    // it lasts
    assert_eq!(queue.command("PTTL", "apart:1", &[]), Value::Int(-1));
    // sent again
    assert_eq!(queue.carry_out(&call), "[1 []]");
    queue.key_is("state", "id=5 waiting=5");
}

#[test]
fn a_user_that_may_not_make_it_last_has_it_for_long() {
    let mut queue = TestQueue::fresh();
    let call = call(&mut queue, 4, true);
    call.exec(&mut Forbidden::command("persist").connection).expect("added");
    queue.key_is("state", "id=5 waiting=5");
    let lasts: i64 = redis::from_redis_value(queue.command("PTTL", "apart:1", &[])).expect("ms");
    assert!(lasts > 3_000_000_000_000, "{lasts}");
}

#[test]
fn a_call_without_what_was_to_be_stored_adds_nothing() {
    let mut queue = TestQueue::fresh();
    let call = call(&mut queue, 4, false);
    let refused = call.exec(&mut queue.probe.connection).expect_err("a refusal");
    assert!(refused.to_string().contains("STASHLOST"), "{refused}");
    queue.keys_are("");
}

#[test]
fn a_call_of_which_a_part_was_not_stored_adds_nothing() {
    let mut queue = TestQueue::fresh();
    let mut call = call(&mut queue, 4, true);
    let (mut name, mut stub) = (Packer::default(), Packer::default());
    name.str("a");
    stub.int(TIMESTAMP as i64).str("{}").int(100);
    // a second frame that lies apart
    call.arg(-2).arg(name.0).arg(stub.0);
    let refused = call.exec(&mut queue.probe.connection).expect_err("a refusal");
    assert!(refused.to_string().contains("STASHLOST"), "{refused}");
    assert_eq!(queue.command("EXISTS", "apart:1", &[]), Value::Int(0));
    assert_eq!(queue.command("EXISTS", "state", &[]), Value::Int(0));
}

#[test]
fn what_was_stored_for_a_call_that_adds_nothing_goes() {
    let mut queue = TestQueue::fresh();
    let first = call(&mut queue, 4, true);
    assert_eq!(queue.carry_out(&first), "[1 []]");
    assert_eq!(stashes(&mut queue), 0);
    // sent again, with what it needs
    let stash = queue.probe.keys.key("stash:c:0:1:1");
    let mut store = redis::cmd("SET");
    store.arg(stash).arg("frame");
    store.exec(&mut queue.probe.connection).expect("stored");
    assert_eq!(stashes(&mut queue), 1);
    assert_eq!(queue.carry_out(&first), "[1 []]");
    assert_eq!(stashes(&mut queue), 0);
    run_once!(queue, SET_LIMIT; "length", 5, "");
    let refused = call(&mut queue, 4, true);
    assert_eq!(queue.carry_out(&refused), "[-12 5 5 5]");
    assert_eq!(stashes(&mut queue), 0);
}

/// Number of keys in which producers have put something.
fn stashes(queue: &mut TestQueue) -> usize {
    let pattern = queue.probe.keys.key("stash:*");
    let keys: Vec<String> = redis::cmd("KEYS")
        .arg(pattern)
        .query(&mut queue.probe.connection)
        .expect("keys");
    keys.len()
}

#[test]
fn it_is_taken_by_its_stub_and_goes_with_the_last_of_its_jobs() {
    let mut queue = added();
    assert_eq!(
        queue.step(Step::by("w").at(1005).want(5)),
        "[[] [1 4 <7 {} 100> 5 1 <7 {} a 1>] -1 0 0]"
    );
    let remove = |step: Step| step.keep(0, -1.0, 1000);
    queue.step(remove(Step::by("w").at(1010).done(1, 4, 0, 3)));
    queue.key_is("apart:1", "set");
    queue.step(remove(Step::by("w").at(1010).done(1, 4, 3, 1)));
    queue.key_is("apart:1", "(none)");
    queue.key_is("state", "cursor=5-1 id=5 active=1");
    // none is dropped with a frame that lies in the log
    queue.step(remove(Step::by("w").at(1010).done(5, 1, 0, 1)));
    queue.key_is("log", "(none)");
}

#[test]
fn a_step_sent_again_brings_its_stub() {
    let mut queue = added();
    let number = queue.next_number();
    let step = || Step::by("w").number(number).at(1005).want(4);
    let taken = queue.step(step());
    assert_eq!(queue.step(step()), taken);
}

#[test]
fn what_was_taken_beyond_the_jobs_that_start_counts_its_bytes() {
    let mut queue = added();
    queue.command("ZADD", "wake", &["0", "0"]);
    queue.step(Step::by("w").at(1005).want(1).surplus(5).max_bytes(100));
    assert_eq!(run!(queue, COUNT_JOBS), "[1 4 0 0 0 0 0]");
}

#[test]
fn a_frame_for_which_there_is_no_room_is_broken() {
    let mut queue = added();
    queue.step(Step::by("w").at(1005).want(1));
    queue.keys_are(
        "active: 1=[1005 1 w '']
         front: 2 3 4
         jobs: 1=[7 {} a 1] 2=[7 {} a 2] 3=[7 {} a 3] 4=[7 {} a 4]
         lease:w: set
         log: 5-1
         state: cursor=1-4 id=5 waiting=4 active=1
         wake: set",
    );
}

#[test]
fn getters_are_told_where_its_jobs_lie() {
    let ids = || by_ids(&["1", "3"]);
    let mut queue = added();
    let waiting = run!(queue, READ_JOBS, ids());
    assert_eq!(waiting, "[1 waiting <[1 0 100]> <[]> '' 3 waiting <[1 2 100]> <[]> '']");
    let (listed, _) = queue.list(&["wait"], 0, -1, true, false);
    assert_eq!(listed.len(), 5);
    assert_eq!(listed[3][2], Value::BulkString(place(3)));
    let mut queue = half_kept();
    assert_eq!(
        run!(queue, READ_JOBS, ids()),
        "[1 completed <[1 0 100]> <{am:1 as:1 fo:1010 pb:bob po:1005}> '' \
          3 active <[1 2 100]> <{as:1 pb:bob po:1005}> '']"
    );
    let (listed, _) = queue.list(&["completed"], 0, -1, true, false);
    assert_eq!(listed[1][2], Value::BulkString(place(1)));
}

/// What stands for the body of the job at this place of the frame.
fn place(offset: i64) -> Vec<u8> {
    let mut place = Packer::default();
    place.array(3).int(1).int(offset).int(100);
    place.0
}

#[test]
fn a_job_that_fails_or_changes_gets_a_record() {
    let mut queue = half_kept();
    queue.step(Step::by("w").at(1011).fail(&at(1, 4, 2), &Fail::to("waiting")));
    run_once!(queue, UPDATE_JOB, 1012, "2", "data", "22");
    queue.key_is("jobs", "2=[7 {} a 22] 3=[7 {} a 3]");
    queue.key_is("apart:1", "set");
}

#[test]
fn data_of_a_job_that_is_alone_go_on_lying_apart() {
    let mut queue = TestQueue::fresh();
    let call = call(&mut queue, 1, true);
    queue.carry_out(&call);
    run_once!(queue, UPDATE_JOB, 1001, "1", "progress", "5");
    queue.key_is("jobs", "1=[7 {} a '']");
    queue.key_is("large", "d1=1");
    queue.key_is("vitals", "1={ld:1 p:5}");
    queue.key_is("apart:1", "set");
    queue.step(Step::by("w").at(1005).want(1));
    queue.step(Step::by("w").at(1010).keep(0, -1.0, 1000).done_record("1", ""));
    for key in ["jobs", "large", "vitals"] {
        queue.key_is(key, "(none)");
    }
}

#[test]
fn a_step_that_retries_reads_no_more_than_a_few() {
    let mut queue = TestQueue::fresh();
    for _ in 0..3 {
        let call = call_of(&mut queue, 1, true, 600_000);
        queue.carry_out(&call);
    }
    // a step takes no more than a MiB
    queue.take_all(|| Step::by("w").at(1005).want(6));
    let ends = (1..=6).fold(Step::by("w").at(1010), |step, first| step.done(first, 1, 0, 1));
    queue.step(ends);
    let retry = |queue: &mut TestQueue| run_once!(queue, RETRY_JOBS, 1020, "completed", 1010, 500);
    assert_eq!(retry(&mut queue), "[3 0]");
    queue.key_is("jobs", "1=[7 {} a ''] 2=[7 {} a 1] 3=[7 {} a '']");
    queue.key_is("large", "d1=1 d3=1");
    queue.key_is("vitals", "1={am:1 as:1 ld:1} 2={am:1 as:1} 3={am:1 as:1 ld:1}");
    assert_eq!(retry(&mut queue), "[3 1]");
    queue.key_is("completed", "(none)");
    queue.key_is("large", "d1=1 d3=1 d5=1");
}

#[test]
fn it_goes_with_the_last_job_that_is_kept() {
    let mut queue = taken();
    queue.step(Step::by("w").at(1010).done(1, 4, 0, 4));
    assert_eq!(
        run!(queue, RETRY_JOBS, 1020, "c", "b", 1, "completed", 1010, 3),
        "[3 0]"
    );
    queue.key_is("jobs", "1=[7 {} a 1] 2=[7 {} a 2] 3=[7 {} a 3]");
    queue.key_is("apart:1", "set");
    run_once!(queue, REMOVE_JOB, 1021, "4", 0);
    queue.key_is("apart:1", "(none)");
    queue.key_is("state", "cursor=1-4 id=5 waiting=4 references=1");
}

#[test]
fn jobs_of_a_worker_that_is_gone_come_back() {
    let mut queue = half_kept();
    queue.end_lease("w");
    assert_eq!(queue.recover_stalled(1020, 60_000, 1), "[3 4]");
    queue.key_is("jobs", "3=[7 {} a 3] 4=[7 {} a 4]");
}

#[test]
fn a_drain_takes_it_along() {
    let mut queue = added();
    run!(queue, CLEAN_JOBS, 1001, "c", "b", 1, "wait", by_age(-1), 100, "", -1);
    queue.keys_are("state: id=5");
}

#[test]
fn nothing_is_left_of_a_queue_that_is_obliterated() {
    let mut queue = half_kept();
    queue.command("HSET", "meta", &["paused", "1"]);
    let mut cursor = Value::BulkString(b"0".to_vec());
    while let Value::BulkString(at) = cursor {
        let mut call = queue.numbered_call(&OBLITERATE, Some(1030));
        call.arg(10).arg(1).arg(at);
        cursor = queue.carry_out_unchecked(&call);
    }
    assert_eq!(cursor, Value::Int(0));
    assert!(queue
        .probe
        .suffixes()
        .iter()
        .all(|suffix| suffix.starts_with("memo:") || suffix.starts_with("lease:")));
}
