//! BullMQ's jobs become ours, in their place.

use chasquimq_migrate::scripts::ADOPT_JOBS;
use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{show_reply, TestQueue},
    step::Step,
};

/// Moves up to `most` jobs of a place, behind `skip`.
fn adopt(queue: &mut TestQueue, place: &str, skip: u64, most: u64, tries: bool) -> String {
    let number = queue.next_number();
    show_reply(&adopt_numbered(queue, place, skip, most, tries, number))
}

fn adopt_numbered(queue: &mut TestQueue, place: &str, skip: u64, most: u64, tries: bool, number: u64) -> Value {
    let (source, sources) = (queue.source(), queue.sources());
    let mut call = queue.call(&ADOPT_JOBS);
    call.arg(5000).arg("c").arg(0).arg(number).arg(source).arg(place);
    call.arg(skip).arg(most).arg(sources).arg(u8::from(tries));
    queue.carry_out_value(&call)
}

#[test]
fn waiting_jobs_come_in_the_order_in_which_they_would_have_run() {
    let mut queue = TestQueue::fresh();
    for id in ["1", "2", "3"] {
        queue.their_job(id, &[]);
        queue.at_source("LPUSH", "wait", &[id]);
    }
    assert_eq!(adopt(&mut queue, "wait", 0, 2, false), "[2 2 0 [] 0]");
    assert_eq!(adopt(&mut queue, "wait", 0, 2, false), "[1 1 0 [] 0]");
    assert_eq!(adopt(&mut queue, "wait", 0, 2, false), "[0 0 0 [] 0]");
    assert_eq!(queue.ids("waiting"), ["1", "2", "3"]);
    assert!(queue.left_at_source().is_empty());
}

#[test]
fn a_step_that_is_sent_again_moves_nothing_more() {
    let mut queue = TestQueue::fresh();
    for id in ["1", "2"] {
        queue.their_job(id, &[]);
        queue.at_source("LPUSH", "wait", &[id]);
    }
    let first = adopt_numbered(&mut queue, "wait", 0, 1, false, 7);
    assert_eq!(adopt_numbered(&mut queue, "wait", 0, 1, false, 7), first);
    assert_eq!(queue.ids("waiting"), ["1"]);
    assert_eq!(queue.left_at_source(), ["2", "wait"]);
}

#[test]
fn jobs_lie_in_their_sets_with_their_scores() {
    let mut queue = TestQueue::fresh();
    for (id, place, score) in [
        ("d", "delayed", 7000 * 4096 + 3_u64),
        ("p", "prioritized", 4 * (1_u64 << 32) + 1),
        ("c", "completed", 900),
        ("f", "failed", 800),
    ] {
        queue.their_job(
            id,
            &["priority", if id == "p" { "4" } else { "0" }, "failedReason", "no"],
        );
        queue.at_source("ZADD", place, &[&score.to_string(), id]);
        assert_eq!(adopt(&mut queue, place, 0, 9, false), "[1 1 0 [] 0]");
    }
    for (id, state) in [
        ("d", "delayed"),
        ("p", "prioritized"),
        ("c", "completed"),
        ("f", "failed"),
    ] {
        assert_eq!(queue.ids(state), [id]);
    }
    assert_eq!(
        queue.command("ZSCORE", "failed", &["f"]),
        Value::BulkString(b"800".to_vec())
    );
    assert!(queue.left_at_source().is_empty());
}

#[test]
fn what_cannot_come_stays_and_is_told_with_its_reason() {
    let mut queue = TestQueue::with(Plan::new().record("taken"));
    let source = queue.source();
    queue.their_job("parent", &[]);
    let parent = queue.their_parent("parent");
    queue.their_job("child", &["parentKey", &format!("{source}parent"), "parent", &parent]);
    queue.at_source("SADD", "parent:dependencies", &[&format!("{source}child")]);
    queue.their_job("taken", &[]);
    queue.their_job("last", &[]);
    queue.at_source("RPUSH", "wait", &["last", "missing", "0:77", "taken", "child"]);
    assert_eq!(
        adopt(&mut queue, "wait", 0, 9, false),
        "[5 1 0 [child parent taken exists 0:77 marker missing missing] 4]"
    );
    assert_eq!(adopt(&mut queue, "wait", 4, 9, false), "[0 0 0 [] 0]");
    assert_eq!(
        queue.left_at_source(),
        ["child", "parent", "parent:dependencies", "taken", "wait"]
    );
}

#[test]
fn trying_changes_nothing() {
    let mut queue = TestQueue::fresh();
    queue.their_job("1", &[]);
    queue.at_source("LPUSH", "wait", &["1"]);
    assert_eq!(adopt(&mut queue, "wait", 0, 9, true), "[1 1 0 [] 0]");
    assert_eq!(adopt(&mut queue, "wait", 1, 9, true), "[0 0 0 [] 0]");
    assert_eq!(queue.left_at_source(), ["1", "wait"]);
}

#[test]
fn what_is_to_be_added_when_an_owner_has_ended_goes_with_it() {
    let mut queue = TestQueue::fresh();
    queue.their_job("owner", &["deid", "d"]);
    queue.at_source("LPUSH", "wait", &["owner"]);
    queue.at_source("SET", "de:d", &["owner"]);
    let opts = r#"{"delay":500,"de":{"id":"d","keepLastIfActive":true}}"#;
    let fields = ["name", "later", "data", "7", "opts", opts, "jid", "next"];
    queue.at_source("HSET", "dn:d", &fields);
    assert_eq!(adopt(&mut queue, "wait", 0, 9, false), "[1 1 0 [] 0]");
    assert!(queue.left_at_source().is_empty());
    queue.step(Step::by("w").at(6000).want(1));
    queue.step(Step::by("w").at(6001).done_record("owner", "1"));
    assert_eq!(queue.ids("delayed"), ["next"]);
    assert_eq!(queue.command("GET", "de:d", &[]), Value::BulkString(b"next".to_vec()));
}

#[test]
fn an_owner_whose_next_job_has_a_parent_stays() {
    let mut queue = TestQueue::fresh();
    queue.their_job("owner", &["deid", "d"]);
    queue.at_source("LPUSH", "wait", &["owner"]);
    queue.at_source("SET", "de:d", &["owner"]);
    let fields = [
        "name",
        "later",
        "data",
        "7",
        "opts",
        "{}",
        "jid",
        "next",
        "pk",
        "some:parent",
    ];
    queue.at_source("HSET", "dn:d", &fields);
    assert_eq!(adopt(&mut queue, "wait", 0, 9, false), "[1 0 0 [owner next] 1]");
    assert_eq!(queue.left_at_source(), ["de:d", "dn:d", "owner", "wait"]);
}
