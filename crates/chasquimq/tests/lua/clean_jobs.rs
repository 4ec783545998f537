//! Any state -> gone, many at once. Most of it is tried by the model.

use redis::Value;

use super::model::bulk::by_age;
use crate::given::{
    plan::Plan,
    queue::{pack_abandoned, run, run_once, TestQueue},
    scheduler::Upsert,
    step::{at, Fail, Step},
    tree::Tree,
};

const NO_LIMIT: u64 = 1 << 53;

/// A step; the default is the first one of its client, without a limit, that writes events.
struct Call<'a> {
    client: &'a str,
    number: u64,
    state: &'a str,
    before_ms: i64,
    limit: u64,
    cursor: &'a [u8],
    untold: i64,
}

impl<'a> Call<'a> {
    fn of(state: &'a str, before_ms: i64) -> Self {
        Self {
            client: "c",
            number: 1,
            state,
            before_ms,
            limit: NO_LIMIT,
            cursor: b"",
            untold: 0,
        }
    }

    fn number(self, number: u64) -> Self {
        Self { number, ..self }
    }

    fn limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Where the step before it ended, or which active jobs are meant.
    fn from(self, cursor: &'a [u8]) -> Self {
        Self { cursor, ..self }
    }

    fn untold(self) -> Self {
        Self { untold: -1, ..self }
    }

    fn command(&self, queue: &TestQueue) -> redis::Cmd {
        let mut call = queue.call(&chasquimq::redis::call::library::CLEAN_JOBS);
        call.arg(2000)
            .arg(self.client)
            .arg("b")
            .arg(self.number)
            .arg(self.state);
        call.arg(by_age(self.before_ms)).arg(self.limit);
        call.arg(self.cursor).arg(self.untold);
        call
    }

    fn run(self, queue: &mut TestQueue) -> String {
        let call = self.command(queue);
        queue.carry_out(&call)
    }

    /// The ids, how many were removed and looked at, where the next step goes on, and what is not told yet.
    fn read(self, queue: &mut TestQueue) -> (Vec<String>, u64, u64, Vec<u8>, i64) {
        let call = self.command(queue);
        redis::from_redis_value(queue.carry_out_value(&call)).expect("a reply")
    }
}

/// Takes steps until it is done; gives the ids, and the number of steps.
fn clean(queue: &mut TestQueue, client: &str, state: &str, before_ms: i64) -> (Vec<String>, u64) {
    let (mut ids, mut cursor, mut untold, mut number) = (Vec::new(), Vec::new(), 0, 0);
    loop {
        number += 1;
        let call = Call {
            client,
            number,
            cursor: &cursor,
            untold,
            ..Call::of(state, before_ms)
        };
        let (removed, _, _, next, left) = call.read(queue);
        ids.extend(removed);
        (cursor, untold) = (next, left);
        if cursor.is_empty() {
            return (ids, number);
        }
    }
}

#[test]
fn nothing_is_there() {
    let mut queue = TestQueue::fresh();
    for state in [
        "wait",
        "active",
        "delayed",
        "prioritized",
        "completed",
        "failed",
        "paused",
        "jobs",
    ] {
        let call = Call {
            client: state,
            ..Call::of(state, 2000)
        };
        let reply = call.run(&mut queue);
        assert_eq!(reply, "[[] 0 0 '' 0]", "{state}");
        queue.events_are("[E cleaned count 0]");
    }
}

#[test]
fn a_drain_tells_nothing() {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x").front("y").delayed("z", 9000));
    queue.skip_events();
    let reply = Call::of("wait", -1).untold().run(&mut queue);
    assert_eq!(reply, "[[] 5 5 '' -1]");
    queue.keys_are(
        "delayed: z@9000+0
         jobs: z=[7 {} a 1]
         state: id=6 references=1
         wake: set",
    );
    queue.events_are("");
}

#[test]
fn a_limit_within_a_frame_leaves_a_gap() {
    let mut queue = TestQueue::with(Plan::new().frame(5));
    queue.skip_events();
    let reply = Call::of("wait", 2000).limit(2).run(&mut queue);
    assert_eq!(reply, "[[1 2] 2 2 '' 2]");
    queue.key_is("holes", "1=00111");
    queue.key_is("state", "id=5 waiting=3 holes=1");
    queue.events_are("[E cleaned count 2]");
    // sent again after a lost reply
    let reply = Call::of("wait", 2000).limit(2).run(&mut queue);
    assert_eq!(reply, "[[1 2] 2 2 '' 2]");
    queue.key_is("holes", "1=00111");
}

#[test]
fn many_records_go_in_steps_and_young_ones_stay() {
    let (mut old, mut young) = (Plan::new(), Plan::new());
    for number in 0..2500 {
        let id = format!("x{number}");
        old = if number % 3 == 0 {
            old.record(&id)
        } else {
            old.front(&id)
        };
        young = young.frame(2);
    }
    let mut queue = TestQueue::with(old);
    queue.add(1001, young);
    for id in ["x3", "x4"] {
        run_once!(queue, UPDATE_JOB, 1500, id, "data", "2");
    }
    // `x9` comes back behind itself
    run_once!(queue, REMOVE_JOB, 1500, "x9", 0);
    queue.add(1501, Plan::new().record("x9"));
    let (none, _) = clean(&mut queue, "a", "wait", 6);
    assert_eq!(none.len(), 0);
    let (ids, steps) = clean(&mut queue, "b", "wait", 2000);
    assert_eq!(ids.len(), 7500);
    assert!(steps > 3, "{steps} steps");
    queue.keys_are("state: id=7501 references=2\nwake: set");
}

#[test]
fn large_records_are_looked_at_a_few_at_a_time() {
    let mut plan = Plan::new();
    for number in 0..60 {
        plan = plan.delayed(&format!("x{number}"), 3000 + number);
    }
    let mut queue = TestQueue::with(plan);
    let data = format!("\"{}\"", "d".repeat(200_000));
    for number in 20..60 {
        let mut body = chasquimq::msgpack::Packer::default();
        body.array(4).int(7).str("{}").str("a").str(&data);
        let mut set = redis::cmd("HSET");
        set.arg(queue.probe.keys.key("jobs"))
            .arg(format!("x{number}"))
            .arg(body.0);
        queue.carry_out_unchecked(&set);
    }
    let (ids, steps) = clean(&mut queue, "a", "delayed", 2000);
    assert_eq!(ids.len(), 60);
    assert!((8..=12).contains(&steps), "{steps} steps");
}

// bulk-calls-in-steps: a wanted difference (docs/differences.md)
#[test]
fn what_comes_between_two_steps_stays() {
    let mut old = Plan::new();
    for number in 0..4500 {
        old = if number < 2500 { old.front("") } else { old.record("") };
    }
    let mut queue = TestQueue::with(old.delayed("later", 9000));
    let mut cursor: Vec<u8> = Vec::new();
    let mut removed = 0;
    for step in 1.. {
        let call = Call::of("wait", -1).number(step).from(&cursor).untold();
        let (_, count, _, next, _) = call.read(&mut queue);
        removed += count;
        cursor = next;
        if cursor.is_empty() {
            break;
        }
        queue.add(1700, Plan::new().frame(1).front("").record(""));
    }
    assert_eq!(removed, 4500);
    let Value::Int(front) = queue.command("LLEN", "front", &[]) else {
        panic!("no number")
    };
    assert!(front > 1, "{front} jobs were added at the head between steps");
}

#[test]
fn a_place_of_an_active_job_that_goes_is_for_one_that_waits() {
    for (waiting, is_woken) in [(Plan::new().record("y"), true), (Plan::new().delayed("y", 9000), false)] {
        let mut queue = TestQueue::with(Plan::new().record("x"));
        queue.step(Step::by("w").want(1));
        queue.add(1000, waiting);
        queue.end_lease("w");
        queue.command("DEL", "wake", &[]);
        let all = pack_abandoned(&["x".to_owned()]);
        assert_eq!(Call::of("active", 2000).from(&all).run(&mut queue), "[[x] 1 1 '' 1]");
        assert_eq!(queue.probe.snapshot().wake, is_woken);
    }
}

#[test]
fn jobs_of_a_worker_that_is_gone_go() {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x"));
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("v").want(2));
    let all = pack_abandoned(&["1", "2", "3", "x", "nobody"].map(str::to_owned));
    let held = Call::of("active", 2000).from(&all).run(&mut queue);
    assert_eq!(held, "[[] 0 5 '' 0]");
    queue.end_lease("w");
    let gone = Call::of("active", 2000).number(2).from(&all).run(&mut queue);
    assert_eq!(gone, "[[1 2] 2 5 '' 2]");
    queue.end_lease("v");
    let old = queue.abandoned();
    let young = Call::of("active", 999).number(3).from(&old).run(&mut queue);
    assert_eq!(young, "[[] 0 2 '' 0]");
    let gone = Call::of("active", 2000).number(4).limit(1).from(&old).run(&mut queue);
    assert_eq!(gone, "[[3] 1 1 '' 1]");
    queue.key_is("state", "cursor=4-r1 id=4 active=1 references=1");
}

#[test]
fn active_jobs_of_large_frames_go_a_few_at_a_time() {
    let mut plan = Plan::new();
    for _ in 0..40 {
        plan = plan.frame(1);
    }
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").want(40));
    write_large_frames(&mut queue, 40);
    queue.end_lease("w");
    let all = queue.abandoned();
    let (_, _, looked, cursor, _) = Call::of("active", 2000).from(&all).read(&mut queue);
    assert_eq!(looked, 6);
    assert!(!cursor.is_empty());
    assert_eq!(run!(queue, COUNT_JOBS), "[0 34 0 0 0 0 0]");
}

/// A log of frames of one job each, of 200 KB.
fn write_large_frames(queue: &mut TestQueue, frames: u64) {
    let mut blob = chasquimq::msgpack::Packer::default();
    blob.int(7).str("{}").str("a");
    blob.str(&format!("\"{}\"", "d".repeat(200_000)));
    queue.command("DEL", "log", &[]);
    for first in 1..=frames {
        let mut add = redis::cmd("XADD");
        add.arg(queue.probe.keys.key("log")).arg(format!("{first}-1"));
        queue.carry_out_unchecked(add.arg("f").arg(blob.0.as_slice()));
    }
}

#[test]
fn finished_jobs_go_oldest_first() {
    let mut queue = TestQueue::with(Plan::new().frame(4));
    queue.step(Step::by("w").want(4));
    queue.step(Step::by("w").at(1010).done(1, 4, 0, 2));
    queue.step(
        Step::by("w")
            .at(1020)
            .done(1, 4, 2, 1)
            .fail(&at(1, 4, 3), &Fail::to("failed")),
    );
    let some = Call::of("completed", 1020).limit(1).run(&mut queue);
    assert_eq!(some, "[[1] 1 1 '' 1]");
    let some = Call::of("completed", 1019).number(2).run(&mut queue);
    assert_eq!(some, "[[2] 1 1 '' 1]");
    queue.key_is("completed", "3@1020");
    let (ids, _) = clean(&mut queue, "d", "failed", 1020);
    assert_eq!(ids, ["4"]);
    queue.key_is("failed", "(none)");
    queue.key_is("jobs", "(none)");
}

#[test]
fn ten_thousand_jobs_an_event() {
    let mut plan = Plan::new();
    for _ in 0..320 {
        plan = plan.frame(64);
    }
    let mut queue = TestQueue::with(plan);
    queue.skip_events();
    let (ids, _) = clean(&mut queue, "c", "wait", 2000);
    assert_eq!(ids.len(), 20480);
    let told = queue.told();
    let counts: Vec<&str> = told.iter().map(|event| event.fields[0].1.as_str()).collect();
    assert_eq!(counts, ["10000", "10000", "480"]);
}

#[test]
fn parents_of_this_queue_go_with_their_last_child_and_others_start_untold() {
    let (mut queue, mut other) = (TestQueue::fresh(), TestQueue::fresh());
    let tree = Tree::new()
        .root("x")
        .to(&other.probe.keys)
        .child("x", "r")
        .to(&queue.probe.keys)
        .child("r", "a")
        .to(&queue.probe.keys)
        .child("r", "b")
        .to(&queue.probe.keys);
    queue.add_flows(1000, &tree);
    queue.skip_events();
    other.skip_events();
    let reply = Call::of("wait", -1).untold().run(&mut queue);
    assert_eq!(reply, "[[] 2 2 '' -1]");
    queue.keys_are("state: id=3 references=1\nwake: set");
    queue.events_are("");
    other.key_is("front", "x");
    other.key_is("wake", "set");
    other.events_are("");
}

#[test]
fn a_parent_with_another_child_stays() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new()
        .root("r")
        .child("r", "a")
        .child_with("r", "d", r#"{"delay":9000}"#);
    queue.add_flows(1000, &tree);
    Call::of("wait", -1).untold().run(&mut queue);
    queue.key_is("children:r", "q:d");
    queue.key_is("waiting-children", "r@1000");
}

#[test]
fn parents_go_by_the_time_they_wait_and_leave_their_children() {
    let mut queue = TestQueue::fresh();
    for (now_ms, parent, child) in [(1000, "r", "a"), (1500, "s", "b")] {
        queue.add_flows(now_ms, &Tree::new().root(parent).child(parent, child));
    }
    queue.skip_events();
    let reply = Call::of("waiting-children", 1200).run(&mut queue);
    assert_eq!(reply, "[[r] 1 1 '' 1]");
    queue.key_is("waiting-children", "s@1500");
    queue.key_is("parents", "s");
    queue.key_is("children:r", "(none)");
    queue.events_are("[E cleaned count 1]");
    let reply = Call::of("wait", -1).number(2).run(&mut queue);
    assert_eq!(reply, "[[a b] 2 2 '' 2]");
    queue.key_is("waiting-children", "(none)");
}

#[test]
fn the_latest_iteration_of_a_scheduler_stays_though_its_worker_is_gone() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.upsert(1000, &Upsert::of("s"));
    queue.step(Step::by("w").want(2));
    queue.end_lease("w");
    let all = queue.abandoned();
    let gone = Call::of("active", 5000).from(&all).run(&mut queue);
    assert_eq!(gone, "[[x] 1 2 '' 1]");
    assert_eq!(queue.probe.checked().hash("active").len(), 1);
}

#[test]
fn latest_iterations_of_schedulers_stay() {
    for before_ms in [-1, 5000] {
        let mut queue = TestQueue::with(
            Plan::new()
                .record("x")
                .front("y")
                .delayed("d", 3000)
                .prioritized("p", 2)
                .frame(2),
        );
        queue.upsert(1000, &Upsert::of("delayed").next(1500));
        queue.upsert(1000, &Upsert::of("waiting"));
        queue.upsert(1000, &Upsert::of("front").lifo());
        queue.upsert(1000, &Upsert::of("prioritized").priority(2));
        queue.add(1000, Plan::new().record("repeat:waiting:7"));
        let mut removed = Vec::new();
        for state in ["wait", "delayed", "prioritized"] {
            removed.extend(clean(&mut queue, state, state, before_ms).0);
        }
        removed.sort();
        assert_eq!(removed, ["5", "6", "d", "p", "repeat:waiting:7", "x", "y"]);
        assert_eq!(queue.probe.checked().hash("jobs").len(), 4);
    }
}
