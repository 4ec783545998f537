//! What is known of a queue as a whole becomes BullMQ's again.

use chasquimq_migrate::scripts::RETURN_QUEUE;
use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

#[test]
fn bullmq_has_the_settings_as_they_are_and_numbers_above_ours() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.command("HSET", "meta", &["max", "3", "duration", "1000"]);
    queue.command("SET", "limiter", &["2", "PX", "60000"]);
    queue.at_source(
        "HSET",
        "meta",
        &["paused", "1", "max", "9", "chasquimq", "1", "version", "bullmq:6.7.0"],
    );
    queue.at_source("SET", "id", &["2"]);
    let source = queue.source();
    assert_eq!(
        run!(queue, &RETURN_QUEUE, source.as_str(), 0),
        "[3 max 3 duration 1000]"
    );
    assert_eq!(queue.at_source("GET", "id", &[]), Value::BulkString(b"3".to_vec()));
    assert_eq!(queue.at_source("GET", "limiter", &[]), Value::BulkString(b"2".to_vec()));
    assert_eq!(queue.at_source("HLEN", "meta", &[]), Value::Int(4));
    assert_eq!(
        queue.at_source("HGET", "meta", &["max"]),
        Value::BulkString(b"3".to_vec())
    );
    // whoever comes again finds them as they are by then
    queue.at_source("HSET", "meta", &["paused", "1", "max", "9"]);
    assert_eq!(run!(queue, &RETURN_QUEUE, source.as_str(), 0), "[3]");
    assert_eq!(
        queue.at_source("HMGET", "meta", &["paused", "max", "duration"]),
        Value::Array(["1", "9", "1000"].map(|text| Value::BulkString(text.into())).to_vec())
    );
    queue.left_at_source();
}

#[test]
fn settings_of_a_queue_that_was_never_moved_here_stay_where_we_have_none() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.command("HSET", "meta", &["concurrency", "3"]);
    queue.at_source("HSET", "meta", &["paused", "1", "concurrency", "9"]);
    let source = queue.source();
    assert_eq!(run!(queue, &RETURN_QUEUE, source, 0), "[1 concurrency 3]");
    assert_eq!(
        queue.at_source("HGET", "meta", &["paused"]),
        Value::BulkString(b"1".to_vec())
    );
    queue.left_at_source();
}

#[test]
fn numbers_stay_free_for_jobs_that_are_still_added_here() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    let source = queue.source();
    queue.at_source("SET", "id", &["5"]);
    assert_eq!(run!(queue, &RETURN_QUEUE, source.as_str(), 100), "[105]");
    // ours begin above BullMQ's, too
    assert_eq!(queue.add(1000, Plan::new().frame(1)), "[6 []]");
    // again, while there are enough
    assert_eq!(run!(queue, &RETURN_QUEUE, source.as_str(), 100), "[105]");
    queue.at_source("SET", "id", &["40"]);
    assert_eq!(run!(queue, &RETURN_QUEUE, source.as_str(), 100), "[140]");
    assert_eq!(queue.add(1000, Plan::new().frame(1)), "[41 []]");
    queue.left_at_source();
}
