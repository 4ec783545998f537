//! Jobs that are cancelled, by id or by a filter: what waits for something fails for good, and of what runs its worker is told.

use chasquimq::msgpack::Packer;

use super::{
    add::by,
    change_jobs::change,
    extend_locks::locks,
    find_jobs::{find, STATES},
    model::bulk::by_age,
    read_jobs::{full, fuller},
    step_job::take,
};
use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{at, Fail, Step},
    tree::Tree,
};

/// Jobs that are named by their ids.
pub fn named(ids: &[&str]) -> Vec<u8> {
    let mut packed = Packer::default();
    packed.array(3 * ids.len());
    for id in ids {
        packed.str(id).str("").str("");
    }
    packed.0
}

fn cancel(queue: &mut TestQueue, ids: &[&str]) -> String {
    run_once!(queue, CANCEL_JOBS, 1010, "why", 0, named(ids))
}

#[test]
fn what_is_not_there_or_has_ended_is_told() {
    let mut queue = full();
    queue.skip_events();
    let keys = queue.show();
    assert_eq!(cancel(&mut queue, &["none", "1", "y", "f", "4"]), "[0 3 3 3 3]");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn jobs_that_wait_for_something_fail_for_good() {
    let mut queue = TestQueue::with(
        Plan::new()
            .frame(3)
            .record("x")
            .front("y")
            .delayed("d", 9000)
            .prioritized("p", 3),
    );
    queue.add(1001, Plan::new().grouped("g", "a", 0));
    queue.skip_events();
    assert_eq!(cancel(&mut queue, &["2", "x", "y", "d", "p", "g"]), "[1 1 1 1 1 1]");
    queue.keys_are(
        "failed: 2@1010 d@1010 g@1010 p@1010 x@1010 y@1010
         gone: x=1
         holes: 1=101
         jobs: 2=[7 {} a 2] d=[7 {} a 1] g=[7 {} a 1 0 a] p=[7 {} a 1 3] x=[7 {} a 1] y=[7 {} a 1]
         log: 1-3 4-r1(x)
         state: id=8 waiting=2 references=1 holes=1 gone=1
         turns: set
         vitals: 2={fo:1010 fr:The job was cancelled: why} d={fo:1010 fr:The job was cancelled: why} g={fo:1010 fr:The job was cancelled: why} \
         p={fo:1010 fr:The job was cancelled: why} x={fo:1010 fr:The job was cancelled: why} y={fo:1010 fr:The job was cancelled: why}
         wake: set",
    );
    let why = "The job was cancelled: why";
    queue.events_are(&format!(
        "[X failed [2 x y] failedReason [{why} {why} {why}] prev waiting] [X failed [d] failedReason [{why}] prev delayed] \
         [X failed [p] failedReason [{why}] prev prioritized] [X failed [g] failedReason [{why}] prev waiting]"
    ));
}

#[test]
fn a_filter_cancels_jobs_of_every_state_whatever_a_step_does() {
    for room in [1, 2, 1000] {
        let mut queue = fuller();
        let mut cancelled = Vec::new();
        for state in STATES.iter().filter(|state| !["completed", "failed"].contains(state)) {
            cancelled.push(change(&mut queue, "cancel", state, &by_age(-1), room));
        }
        assert_eq!(cancelled.join("|"), "z 7 8 9 g h|3 x|e d|p|", "by {room}");
        let mut failed = find(&mut queue, "failed", &by_age(-1), 100).0;
        failed.sort();
        assert_eq!(failed.join(" "), "4 7 8 9 d e f g h p z");
    }
}

#[test]
fn all_that_runs_is_met_though_frames_dissolve_meanwhile() {
    let mut plan = Plan::new();
    for _ in 0..40 {
        plan = plan.frame(64);
    }
    let mut queue = TestQueue::with(plan);
    queue.take_all(|| Step::by("w").want(1000));
    let told = change(&mut queue, "cancel", "active", &by_age(-1), 250);
    assert_eq!(told.split(' ').collect::<std::collections::HashSet<_>>().len(), 40 * 64);
    assert_eq!(told.split(' ').count(), 40 * 64);
    assert_eq!(change(&mut queue, "cancel", "active", &by_age(-1), 250), "");
}

#[test]
fn what_runs_is_told_to_its_worker_and_does_not_start_again() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x"));
    queue.step(Step::by("w").want(3));
    let mut ear = queue.listen("w");
    queue.skip_events();
    assert_eq!(cancel(&mut queue, &["2", "x"]), "[2 2]");
    assert_eq!(ear.heard(), 1);
    assert_eq!(cancel(&mut queue, &["2"]), "[2]");
    assert_eq!(ear.heard(), 0);
    queue.key_is("cancels:w", "set");
    queue.events_are("");
    // of what it knows nothing is told again
    let mut known = Packer::default();
    known.array(1).str("4:2");
    assert_eq!(run!(queue, RENEW_LEASE, "w", 60_000, named(&[])), "[1 4:2 why 4:x why]");
    assert_eq!(run!(queue, RENEW_LEASE, "w", 0, known.0), "[1 4:x why]");
    // what comes back fails
    let step = Step::by("w")
        .done(1, 2, 0, 1)
        .fail(&at(1, 2, 1), &Fail::to("waiting"))
        .done_record("x", "1");
    assert_eq!(queue.step(step), "[[] [] -1 0 1]");
    let left = "2={am:1 as:1 df:The job was cancelled: why fr:boom po:1000} x={am:1 as:1 fo:1000 po:1000 rv:1}";
    queue.key_is("vitals", left);
}

#[test]
fn the_worker_that_took_a_job_manually_is_told_while_its_lease_lasts() {
    let mut queue = TestQueue::with(Plan::new().frame(1).record("x").record("y"));
    let mut ear = queue.listen("w");
    for number in 1..=3 {
        take(&mut queue, number, "t");
    }
    queue.end_lease("t#c.1.3");
    let locks = locks(&[("1", "t"), ("x", "t")]);
    assert_eq!(run!(queue, EXTEND_LOCKS, 3_600_000, locks), "[]");
    assert_eq!(cancel(&mut queue, &["y"]), "[2]");
    assert_eq!(ear.heard(), 0);
    assert_eq!(cancel(&mut queue, &["1", "x"]), "[2 2]");
    assert_eq!(ear.heard(), 1);
    queue.key_is("cancels:w", "set");
    assert_eq!(
        run!(queue, RENEW_LEASE, "w", 0, named(&[])),
        "[1 m1000:1 why m1000:x why]"
    );
}

#[test]
fn a_job_whose_worker_is_gone_fails_as_it_comes_back() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("w").want(1));
    queue.end_lease("w");
    assert_eq!(cancel(&mut queue, &["1"]), "[2]");
    queue.recover_stalled(1020, 1000, 1);
    queue.key_is("vitals", "1={as:1 df:The job was cancelled: why po:1000 st:1}");
}

#[test]
fn what_does_not_run_goes_where_that_is_wanted() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x"));
    queue.step(Step::by("w").want(2));
    queue.skip_events();
    assert_eq!(run_once!(queue, CANCEL_JOBS, 1010, "", 1, named(&["1", "x"])), "[2 1]");
    queue.key_is("jobs", "1=[7 {} a 1]");
    queue.events_are("");
}

#[test]
fn a_job_is_kept_as_its_options_say() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new()
        .root_with("a", r#"{"removeOnFail":true}"#)
        .root_with("b", r#"{"removeOnFail":{"count":1.5,"age":"x"}}"#);
    queue.add_flows(1000, &tree.root_with("c", r#"{"removeOnFail":1}"#));
    assert_eq!(cancel(&mut queue, &["a", "b", "c"]), "[1 1 1]");
    queue.key_is("failed", "c@1010");
    queue.key_is("jobs", r#"c=[1000 {"removeOnFail":1} a 1]"#);
}

#[test]
fn no_deadline_is_left() {
    let mut queue = TestQueue::with(Plan::new().expiring("a", 0, 9_000_000_000_000, "{}"));
    assert_eq!(cancel(&mut queue, &["a"]), "[1]");
    queue.key_is("vitals", "a={fo:1010 fr:The job was cancelled: why}");
}

#[test]
fn a_deduplication_id_is_free_again() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &by("d")));
    assert_eq!(cancel(&mut queue, &["x"]), "[1]");
    queue.key_is("de:d", "(none)");
    queue.add(1011, Plan::new().deduplicated("y", 0, &by("d")));
    assert_eq!(find(&mut queue, "waiting", &by_age(-1), 10).0, ["y"]);
}

#[test]
fn a_parent_is_told_as_of_any_child_that_failed() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new()
        .root("p")
        .child_with("p", "c", r#"{"failParentOnFailure":true}"#);
    queue.add_flows(1000, &tree);
    queue.skip_events();
    queue.command("DEL", "wake", &[]);
    assert_eq!(cancel(&mut queue, &["c"]), "[1]");
    queue.key_is("faults:p", "q:c");
    queue.key_is("front", "p");
    queue.key_is("wake", "set");
    queue.events_are(
        "[X failed [c] failedReason [The job was cancelled: why] prev waiting] [X waiting [p] prev waiting-children]",
    );
}

#[test]
fn children_are_named_with_their_parents() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new().root("p").child("p", "c").child("p", "d");
    queue.add_flows(1000, &tree);
    let keys = queue.probe.keys.clone();
    let mut jobs = Packer::default();
    jobs.array(9).str("p").str("").str("");
    for (parent, child) in [("p", "c"), ("q", "d")] {
        jobs.str(&keys.base)
            .str(parent)
            .str(&format!("{}:{child}", keys.qualified_name));
    }
    assert_eq!(run_once!(queue, CANCEL_JOBS, 1010, "why", 0, jobs.0), "[1 1 0]");
    queue.key_is("failed", "c@1010 p@1010");
}

#[test]
fn the_next_job_of_a_scheduler_stays() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &crate::given::scheduler::Upsert::of("s").every(500));
    assert_eq!(cancel(&mut queue, &["repeat:s:1000"]), "[-8]");
}
