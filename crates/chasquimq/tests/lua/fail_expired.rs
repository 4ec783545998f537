//! waiting | prioritized | delayed | waiting-children -> failed, for jobs that were to start by now; and what becomes of one that a worker would start

use chasquimq::{msgpack::Packer, Deduplication};

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::{of, Step},
    tree::Tree,
};

/// Times (epoch ms) that every server takes for past, or to come.
pub const PAST: i64 = 5;
const FUTURE: i64 = 9_000_000_000_000;
/// The first of them as options say it: it is more than a time to wait.
const PAST_OPTION: &str = r#""expireAfter":100000000001"#;

/// A rule of so many jobs.
pub fn keep(count: i64) -> Vec<u8> {
    let mut keep = Packer::default();
    keep.array(3).int(count).int(-1).int(1000);
    keep.0
}

impl TestQueue {
    fn fail_expired(&mut self) -> String {
        run_once!(self, FAIL_EXPIRED, 1020, keep(-1))
    }
}

#[test]
fn what_waits_or_is_delayed_fails_where_it_is() {
    let mut queue = TestQueue::with(
        Plan::new()
            .expiring("w", 0, PAST, "{}")
            .expiring("d", 5000, PAST, r#"{"attempts":3}"#)
            .expiring("later", 0, FUTURE, "{}")
            .record("x"),
    );
    queue.skip_events();
    assert_eq!(queue.fail_expired(), "0");
    queue.keys_are(&format!(
        r#"expiring: set
           failed: d@1020 w@1020
           gone: w=1
           jobs: d=[7 {{"attempts":3}} a 1] later=[7 {{}} a 1] w=[7 {{}} a 1] x=[7 {{}} a 1]
           log: 4-r1(w later x)
           state: id=4 waiting=2 references=1 gone=1
           vitals: d={{fo:1020 fr:job expired before it started}} later={{ex:{FUTURE}}} w={{fo:1020 fr:job expired before it started}}
           wake: set"#
    ));
    let told: Vec<String> = queue
        .told()
        .iter()
        .map(|event| format!("{} {}", event.name, event.fields[0].1))
        .collect();
    assert_eq!(told, ["failed d", "failed w"]);
}

#[test]
fn a_worker_takes_what_came_too_late_only_to_fail() {
    let mut queue = TestQueue::with(Plan::new().expiring("a", 0, PAST, "{}").expiring("b", 0, FUTURE, "{}"));
    assert_eq!(
        queue.step(Step::by("w").want(2)),
        "[[] [0 a <[7 {} a 1]> <{df:job expired before it started ex:5}> 1 0 b <[7 {} a 1]> <{ex:9000000000000}> 1] -1 0 0]"
    );
    queue.key_is("expiring", "(none)");
    // taken again after its answer was lost, it fails still; and nobody looks for one that has started
    queue.end_lease("w");
    queue.recover_stalled(1030, 60_000, 1);
    assert_eq!(queue.fail_expired(), "0");
    let reply = queue.step(Step::by("v").want(1));
    assert!(reply.contains("df:job expired before it started"), "{reply}");
}

#[test]
fn a_time_to_wait_counts_from_the_add_by_the_clock_of_the_server() {
    let mut queue = TestQueue::with(Plan::new().expiring("", 0, -60_000, "{}").expiring("", 0, -1, "{}"));
    let due: Vec<f64> = ["1", "2"]
        .map(|id| redis::from_redis_value(queue.command("ZSCORE", "expiring", &[id])).expect("a time"))
        .into();
    assert_eq!(due[0] - due[1], 59_999.0);
}

#[test]
fn a_rule_of_the_job_goes_before_that_of_the_worker() {
    for (options, rule, left) in [
        ("{}", keep(0), "(none)"),
        (r#"{"removeOnFail":true}"#, keep(-1), "(none)"),
        (r#"{"removeOnFail":{"count":1}}"#, keep(0), "2@1020"),
        (r#"{"removeOnFail":"1"}"#, keep(0), "2@1020"),
        (r#"{"removeOnFail":false}"#, keep(0), "1@1020 2@1020"),
        (r#"{"removeOnFail":{"age":5}}"#, keep(0), "1@1020 2@1020"),
    ] {
        let mut queue = TestQueue::with(
            Plan::new()
                .expiring("", 0, PAST, options)
                .expiring("", 0, PAST, options),
        );
        run_once!(queue, FAIL_EXPIRED, 1020, rule);
        queue.key_is("failed", left);
        queue.key_is("expiring", "(none)");
    }
}

#[test]
fn a_parent_hears_of_a_child_that_expired_and_expires_itself() {
    // one behind the other, by their places in the millisecond
    const FAILED: &str = "c@1020 expired@1020.0009765625";
    let options = |more: &str| format!("{{{PAST_OPTION}{more}}}");
    let mut queue = TestQueue::fresh();
    let tree = Tree::new()
        .root("failed")
        .child_with("failed", "c", &options(r#","failParentOnFailure":true"#))
        .root_with("expired", &options(""))
        .child("expired", "x");
    queue.add_flows(1000, &tree);
    assert_eq!(queue.fail_expired(), "0");
    queue.key_is("failed", FAILED);
    queue.key_is("waiting-children", "(none)");
    let reply = queue.step(Step::by("w").want(2));
    assert!(reply.contains(":c failed"), "{reply}");
    // nobody waits for what is left of the second
    queue.step(Step::by("w").done_record("x", ""));
    queue.key_is("failed", FAILED);
}

#[test]
fn a_parent_and_its_child_expire_together() {
    let mut queue = TestQueue::fresh();
    let tree = Tree::new().root_with("p", &format!("{{{PAST_OPTION}}}")).child_with(
        "p",
        "c",
        &format!(r#"{{{PAST_OPTION},"failParentOnFailure":true}}"#),
    );
    queue.add_flows(1000, &tree);
    queue.skip_events();
    assert_eq!(queue.fail_expired(), "0");
    let told: Vec<String> = queue.told().iter().map(|event| event.name.to_string()).collect();
    assert_eq!(told, ["failed", "failed"]);
    for key in ["waiting-children", "front", "active"] {
        queue.key_is(key, "(none)");
    }
    assert_eq!(queue.command("ZCARD", "failed", &[]), redis::Value::Int(2));
}

#[test]
fn a_job_of_a_group_leaves_its_group() {
    let mut queue = TestQueue::fresh();
    queue.add_flows(
        1000,
        &Tree::new().root_with("g", &format!(r#"{{{PAST_OPTION},"group":{{"id":"a"}}}}"#)),
    );
    queue.key_is("groups", "set");
    queue.fail_expired();
    queue.key_is("groups", "(none)");
    queue.key_is("failed", "g@1020");
}

#[test]
fn a_call_that_is_sent_again_fails_nothing_more() {
    let mut queue = TestQueue::with(Plan::new().expiring("a", 0, PAST, "{}"));
    assert_eq!(run!(queue, FAIL_EXPIRED, 1020, "t", "t", 7, keep(-1)), "0");
    queue.add(1000, Plan::new().expiring("b", 0, PAST, "{}"));
    assert_eq!(run!(queue, FAIL_EXPIRED, 1020, "t", "t", 7, keep(-1)), "0");
    queue.key_is("failed", "a@1020");
}

#[test]
fn of_many_a_call_fails_a_hundred() {
    let mut plan = Plan::new();
    for _ in 0..150 {
        plan = plan.expiring("", 0, PAST, "{}");
    }
    let mut queue = TestQueue::with(plan);
    assert!(queue.find_lost(60_000, "", &[]).has_expired());
    assert_eq!([queue.fail_expired(), queue.fail_expired()], ["1", "0"]);
    assert_eq!(queue.fail_expired(), "0");
    assert_eq!(queue.command("ZCARD", "failed", &[]), redis::Value::Int(150));
}

#[test]
fn what_comes_back_unstarted_is_looked_for_again_and_what_is_tried_again_is_not() {
    let mut queue = TestQueue::with(Plan::new().expiring("a", 0, FUTURE, "{}").expiring("b", 0, PAST, "{}"));
    queue.step(Step::by("w").want(1));
    queue.step(Step::by("w").back(&of("a"), false));
    queue.key_is("expiring", "set");
    queue.key_is("vitals", &format!("a={{as:0 ex:{FUTURE}}} b={{ex:5}}"));
    queue.fail_expired();
    run_once!(queue, RETRY_JOB, 1030, "b", "failed", 0, 1, 1);
    queue.key_is("vitals", &format!("a={{as:0 ex:{FUTURE}}} b={{tr:''}}"));
}

#[test]
fn a_job_that_is_removed_is_not_looked_for() {
    let mut queue = TestQueue::with(Plan::new().expiring("a", 0, FUTURE, "{}"));
    run_once!(queue, REMOVE_JOB, 1010, "a", 0);
    queue.key_is("expiring", "(none)");
}

#[test]
fn what_was_given_back_may_come_too_late() {
    let mut queue = TestQueue::with(Plan::new().record("a"));
    let fields = [0x82, 0xa2, b'a', b's', 0, 0xa2, b'e', b'x', PAST as u8];
    let mut set = redis::cmd("HSET");
    set.arg(queue.probe.keys.key("vitals")).arg("a").arg(&fields[..]);
    set.exec(&mut queue.probe.connection).expect("set");
    let reply = queue.step(Step::by("w").want(1));
    assert!(
        reply.contains("{as:0 df:job expired before it started ex:5}"),
        "{reply}"
    );
}

#[test]
fn a_deduplication_id_is_free_once_its_job_has_started() {
    let until_started = Deduplication {
        until_started: true,
        ..Deduplication::of("d")
    };
    let dedup = |id| Plan::new().deduplicated(id, 0, &until_started);
    let mut queue = TestQueue::with(dedup("a"));
    assert_eq!(queue.add(1000, dedup("b")), "[2 [0 a]]");
    queue.key_is("de:d", "a");
    queue.step(Step::by("w").want(1));
    queue.key_is("de:d", "(none)");
    assert_eq!(queue.add(1000, dedup("c")), "[3 [0 c]]");
    // the one that has ended leaves the id of the other
    queue.step(Step::by("w").done_record("a", ""));
    queue.key_is("de:d", "c");
}
