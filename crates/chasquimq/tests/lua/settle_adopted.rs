//! Parents that were moved hear of children that BullMQ's workers ended.

use chasquimq_migrate::scripts::{ADOPT_JOBS, SETTLE_ADOPTED};
use redis::Value;

use crate::given::queue::{show_reply, TestQueue};

fn settle(queue: &mut TestQueue) -> String {
    let (source, sources) = (queue.source(), queue.sources());
    let mut call = queue.call(&SETTLE_ADOPTED);
    call.arg(5000).arg(source).arg("0").arg(sources);
    show_reply(&queue.carry_out_unchecked(&call))
}

/// A parent that was moved, with two children that are BullMQ's still: not all keys are ours.
fn parent() -> TestQueue {
    let mut queue = TestQueue::fresh();
    let (source, sources) = (queue.source(), queue.sources());
    queue.their_job("p", &[]);
    queue.at_source("ZADD", "waiting-children", &["1000", "p"]);
    queue.at_source(
        "SADD",
        "p:dependencies",
        &[&format!("{source}a"), &format!("{source}b")],
    );
    let number = queue.next_number();
    let mut call = queue.call(&ADOPT_JOBS);
    call.arg(5000)
        .arg("c")
        .arg(0)
        .arg(number)
        .arg(source)
        .arg("waiting-children");
    call.arg(0).arg(9).arg(sources).arg(0);
    assert_eq!(show_reply(&queue.carry_out_unchecked(&call)), "[1 1 0 [] 0]");
    queue
}

#[test]
fn a_parent_starts_when_the_last_child_has_ended() {
    let mut queue = parent();
    let source = queue.source();
    let (a, b) = (format!("{source}a"), format!("{source}b"));
    queue.at_source("SREM", "p:dependencies", &[&a]);
    queue.at_source("HSET", "p:processed", &[&a, "7"]);
    assert_eq!(settle(&mut queue), "[0 1 1]");
    assert_eq!(settle(&mut queue), "[0 0 1]");
    assert_eq!(
        queue.command("HGET", "processed:p", &[&a]),
        Value::BulkString(b"7".to_vec())
    );
    assert_eq!(queue.ids("waiting-children"), ["p"]);
    // one that was removed leaves no word
    queue.at_source("SREM", "p:dependencies", &[&b]);
    assert_eq!(settle(&mut queue), "[0 1 0]");
    assert_eq!(queue.ids("waiting"), ["p"]);
    assert!(queue.left_at_source().is_empty());
}

#[test]
fn a_child_whose_failure_fails_its_parent_does() {
    let mut queue = parent();
    let source = queue.source();
    let (a, b) = (format!("{source}a"), format!("{source}b"));
    queue.at_source("SREM", "p:dependencies", &[&a]);
    queue.at_source("ZADD", "p:unsuccessful", &["4000", &a]);
    assert_eq!(settle(&mut queue), "[0 1 1]");
    assert_eq!(queue.ids("waiting"), ["p"]);
    assert_eq!(
        queue.command("SMEMBERS", "children:p", &[]),
        Value::Array(vec![Value::BulkString(b.into_bytes())])
    );
    queue.left_at_source();
}
