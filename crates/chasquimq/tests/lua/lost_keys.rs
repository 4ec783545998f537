//! A key of a queue is gone: the state is told by the other keys, and what the others contradict is put right in the next stalled check.

use chasquimq::Event;
use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{read_events, run, run_once, show_reply, TestQueue},
    scheduler::Upsert,
    step::{at, Fail, Place, Step},
    tree::Tree,
};

/// Counters of the state that other keys tell exactly.
const TOLD: [&str; 8] = [
    "id",
    "waiting",
    "active",
    "completed",
    "holes",
    "gone",
    "apart",
    "references",
];

impl TestQueue {
    /// Makes the stalled check, in which keys are mended.
    pub fn check_stalled(&mut self) {
        self.command("DEL", "stalled", &[]);
        let mut call = self.call(&chasquimq::redis::call::library::FIND_LOST);
        call.arg(60_000).arg("scan").arg("").arg("");
        self.carry_out_unchecked(&call);
    }

    fn lose(&mut self, suffix: &str) {
        assert_eq!(self.command("DEL", suffix, &[]), Value::Int(1), "{suffix}");
    }

    /// Ids of the jobs that became active, in order.
    fn started(&mut self) -> String {
        let last = self
            .probe
            .snapshot()
            .events
            .last()
            .map(|(last, _)| *last)
            .expect("events");
        let events = read_events(self.probe.keys.clone(), (0, 0), last);
        let of = |event: &Event| {
            event
                .fields
                .iter()
                .find(|(name, _)| name == "jobId")
                .map(|(_, id)| id.clone())
        };
        let ids: Vec<String> = events
            .iter()
            .filter(|event| event.name == "active")
            .filter_map(of)
            .collect();
        ids.join(" ")
    }

    fn add_unchecked(&mut self, now_ms: u64, plan: &Plan) -> String {
        let number = self.next_number();
        let mut call = self.call(&chasquimq::redis::call::library::ADD);
        call.arg(now_ms).arg("c").arg(0).arg(number);
        plan.append_to(&mut call);
        show_reply(&self.carry_out_unchecked(&call))
    }

    fn step_unchecked(&mut self, step: &Step) {
        let call = self.step_call(step);
        self.carry_out_unchecked(&call);
    }

    /// What `show` tells, but for the state, the mark of the check, and the marker that wakes workers.
    pub fn show_but_state(&mut self) -> String {
        let is_kept = |line: &&str| {
            !["state:", "stalled:", "wake:"]
                .iter()
                .any(|name| line.starts_with(name))
        };
        self.show().lines().filter(is_kept).collect::<Vec<_>>().join("\n")
    }

    pub fn counters(&mut self) -> Vec<(&'static str, u64)> {
        let snapshot = self.probe.snapshot();
        TOLD.iter().map(|name| (*name, snapshot.state(name))).collect()
    }
}

/// Jobs in every state, in frames and with records.
fn full() -> TestQueue {
    let plan = Plan::new()
        .frame(6)
        .frame(5)
        .record("x")
        .record("y")
        .front("z")
        .delayed("d", 5000);
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").want(9));
    queue.step(
        Step::by("w")
            .done_record("z", "")
            .done(1, 6, 0, 2)
            .fail(&at(1, 6, 4), &Fail::to("failed")),
    );
    queue.add(1001, Plan::new().frame(4).record("u").record("v"));
    for id in ["8", "y", "17"] {
        run_once!(queue, REMOVE_JOB, 1001, id, 0);
    }
    queue
}

#[test]
fn a_state_is_told_by_the_other_keys() {
    let mut queue = full();
    let before = queue.counters();
    assert!(before.iter().filter(|(_, count)| *count > 0).count() > 6, "{before:?}");
    let keys = queue.show_but_state();
    queue.lose("state");
    queue.check_stalled();
    assert_eq!(queue.counters(), before);
    assert_eq!(queue.show_but_state(), keys);
}

#[test]
fn reads_tell_what_a_queue_without_a_state_holds() {
    let mut queue = full();
    let counts = run!(queue, COUNT_JOBS);
    queue.lose("state");
    let call = queue.call(&chasquimq::redis::call::library::COUNT_JOBS);
    let told = queue.carry_out_unchecked(&call);
    assert_eq!(show_reply(&told), counts);
    assert_eq!(queue.command("EXISTS", "state", &[]), Value::Int(0));
}

#[test]
fn numbers_go_on_behind_the_last_one() {
    for lost in [
        &["state"][..],
        &["state", "log"],
        &["state", "events"],
        &["state", "events", "jobs"],
    ] {
        let mut queue = TestQueue::with(Plan::new().frame(3).delayed("", 5000).frame(2));
        run_once!(queue, REMOVE_JOB, 1001, "4", 0);
        lost.iter().for_each(|key| {
            queue.command("DEL", key, &[]);
        });
        let added = queue.add_unchecked(1002, &Plan::new().frame(1));
        assert_eq!(added, "[7 []]", "{lost:?}");
    }
}

#[test]
fn events_go_on_behind_the_last_one() {
    let mut queue = TestQueue::told_before(1000);
    queue.add(2000, Plan::new().frame(1));
    queue.skip_events();
    queue.lose("state");
    queue.add(1500, Plan::new().frame(1));
    queue.events_are("[A 2 1 a]");
}

#[test]
fn a_step_takes_what_waits_though_the_state_is_gone() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x").frame(1));
    queue.step(Step::by("w").want(2));
    queue.lose("state");
    assert_eq!(
        queue.step(Step::by("w").done(1, 2, 0, 2).want(5)),
        "[[] [0 x <[7 {} a 1]> '' 1 4 1 <7 {} a 1>] -1 0 0]"
    );
}

#[test]
fn priorities_keep_their_order() {
    let mut queue = TestQueue::with(Plan::new().prioritized("a", 2).prioritized("b", 2).prioritized("c", 1));
    queue.lose("state");
    queue.add(1001, Plan::new().prioritized("d", 2).prioritized("e", 1));
    queue.step(Step::by("w").want(9));
    assert_eq!(queue.started(), "c e a b d");
}

#[test]
fn counts_of_active_jobs_are_put_right() {
    for lost in ["takes", "active"] {
        let mut queue = TestQueue::with(Plan::new().frame(2).record("x"));
        queue.step(Step::by("w").want(3));
        queue.lose(lost);
        queue.check_stalled();
        let left = if lost == "takes" { 1 } else { 2 };
        assert_eq!(queue.probe.snapshot().state("active"), left, "{lost}");
    }
}

#[test]
fn completed_runs_are_listed_again() {
    let mut queue = TestQueue::with(Plan::new().frame(3).frame(2));
    queue.step(Step::by("w").want(5));
    queue.step(Step::by("w").done(1, 3, 0, 3).done(4, 2, 0, 1));
    queue.lose("completed");
    queue.check_stalled();
    queue.probe.checked();
    assert_eq!(queue.probe.snapshot().state("completed"), 4);
}

#[test]
fn jobs_whose_runs_are_gone_count_no_more() {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x"));
    queue.step(Step::by("w").want(4));
    queue.step(Step::by("w").done(1, 3, 0, 3).done_record("x", ""));
    queue.lose("runs");
    queue.check_stalled();
    assert_eq!(queue.probe.snapshot().state("completed"), 1);
    assert_eq!(
        queue.command("ZRANGE", "completed", &["0", "-1"]),
        Value::Array(vec![Value::BulkString(b"x".to_vec())])
    );
    queue.probe.checked();
}

#[test]
fn records_that_are_gone_are_listed_no_more() {
    let mut queue = TestQueue::with(Plan::new().frame(1).record("x").delayed("d", 5000));
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").done(1, 1, 0, 1).done_record("x", ""));
    queue.lose("jobs");
    queue.check_stalled();
    assert_eq!(queue.probe.snapshot().state("completed"), 1);
    assert_eq!(queue.command("EXISTS", "delayed", &[]), Value::Int(0));
}

#[test]
fn delayed_jobs_are_looked_for_again() {
    let mut queue = TestQueue::with(Plan::new().delayed("d", 5000));
    queue.lose("delays");
    queue.check_stalled();
    assert_eq!(queue.command("EXISTS", "delays", &[]), Value::Int(1));
    queue.step(Step::by("w").at(5000).want(1));
    assert_eq!(queue.started(), "d");
}

#[test]
fn a_job_that_left_its_frame_runs_once_though_the_holes_are_gone() {
    let mut queue = TestQueue::with(Plan::new().frame(4));
    run_once!(queue, CHANGE_PRIORITY; "2", 5, 0);
    run_once!(queue, UPDATE_JOB, 1001, "3", "data", "7");
    queue.lose("holes");
    queue.step(Step::by("w").want(9));
    assert_eq!(queue.started(), "1 3 4 2");
    queue.probe.checked();
}

#[test]
fn stale_references_are_known_by_where_their_jobs_are() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y").record("z"));
    run_once!(queue, REMOVE_JOB, 1001, "x", 0);
    run_once!(queue, CHANGE_PRIORITY; "y", 5, 0);
    queue.lose("gone");
    queue.step_unchecked(&Step::by("w").want(9));
    assert_eq!(queue.started(), "z y");
    queue.check_stalled();
    queue.probe.checked();
}

#[test]
fn nobody_looks_for_what_the_front_and_the_log_have_lost() {
    for lost in ["log", "front"] {
        let mut queue = TestQueue::with(Plan::new().frame(3).front("f"));
        run_once!(queue, REMOVE_JOB, 1001, "2", 0);
        queue.lose(lost);
        queue.step_unchecked(&Step::by("w").want(9));
        let snapshot = queue.probe.snapshot();
        assert_eq!([snapshot.state("waiting"), snapshot.state("holes")], [0, 0], "{lost}");
    }
}

#[test]
fn jobs_that_a_state_does_not_know_of_are_found() {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x"));
    let none = [0_f64; 1].map(f64::to_le_bytes).concat();
    let mut set = redis::cmd("SETRANGE");
    set.arg(queue.probe.keys.key("state")).arg(24).arg(none);
    set.exec(&mut queue.probe.connection).expect("a waiting list of none");
    queue.check_stalled();
    assert_eq!(queue.probe.checked().state("waiting"), 4);
}

#[test]
fn a_parent_whose_children_are_gone_starts_when_one_of_them_ends() {
    for (lost, child) in [("spans:p", ""), ("children:p", "c")] {
        let mut queue = TestQueue::fresh();
        let tree = Tree::new().root("p").to(&queue.probe.keys);
        let tree = tree.child("p", child).to(&queue.probe.keys);
        queue.add_flows(1000, &tree);
        queue.step(Step::by("w").want(1));
        queue.lose(lost);
        let done = match queue.probe.snapshot().header(2).map(|header| header.ids.to_owned()) {
            Some(ids) => Step::by("w").done_children(&Place::Child(2, 1, 0, ids), &["1"]),
            None => Step::by("w").done_record("c", ""),
        };
        queue.step_unchecked(&done);
        queue.key_is("front", "p");
    }
}

#[test]
fn a_scheduler_whose_place_is_gone_goes_on() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").every(1000));
    queue.lose("schedulers");
    queue.step_unchecked(&Step::by("w").at(1000).want(1));
    queue.follow(1000, &[("s", 1000, 0)]);
    assert_eq!(
        queue.command("ZSCORE", "schedulers", &["s"]),
        Value::BulkString(b"2000".to_vec())
    );
}

#[test]
fn an_obliterated_queue_has_no_phantoms() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("w").want(1));
    run_once!(queue, PAUSE, 1002, 1);
    queue.lose("takes");
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::OBLITERATE, Some(1003));
    call.arg(10).arg(0).arg("0");
    assert_eq!(queue.carry_out_unchecked(&call), Value::Int(0));
}
