//! What BullMQ knows of a queue as a whole becomes ours.

use chasquimq_migrate::scripts::ADOPT_QUEUE;
use redis::Value;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

fn adopt(queue: &mut TestQueue, gap: u64) -> String {
    let source = queue.source();
    run!(queue, &ADOPT_QUEUE, source, gap)
}

#[test]
fn new_jobs_get_numbers_above_all_that_were_given() {
    let mut queue = TestQueue::fresh();
    queue.at_source("SET", "id", &["41"]);
    assert_eq!(adopt(&mut queue, 0), "[1 41]");
    queue.at_source("SET", "id", &["43"]);
    assert_eq!(adopt(&mut queue, 100), "[0 43]");
    assert_eq!(queue.add(1000, Plan::new().frame(1)), "[44 []]");
    queue.left_at_source();
}

#[test]
fn numbers_for_jobs_that_are_still_to_come_stay_free() {
    let mut queue = TestQueue::fresh();
    queue.at_source("SET", "id", &["41"]);
    assert_eq!(adopt(&mut queue, 100), "[1 141]");
    queue.left_at_source();
}

#[test]
fn settings_are_taken_over_once_and_where_there_are_none() {
    let mut queue = TestQueue::fresh();
    queue.command("HSET", "meta", &["concurrency", "2"]);
    queue.at_source(
        "HSET",
        "meta",
        &["concurrency", "5", "paused", "1", "max", "3", "duration", "1000"],
    );
    queue.at_source("SET", "limiter", &["2", "PX", "60000"]);
    queue.at_source("HSET", "metrics:completed", &["count", "9"]);
    assert_eq!(adopt(&mut queue, 0), "[1 0 paused 1 max 3 duration 1000]");
    assert_eq!(queue.command("GET", "limiter", &[]), Value::BulkString(b"2".to_vec()));
    assert_eq!(
        queue.command("HGET", "metrics:completed", &["count"]),
        Value::BulkString(b"9".to_vec())
    );
    queue.command("HDEL", "meta", &["paused"]);
    assert_eq!(adopt(&mut queue, 0), "[0 0]");
    assert_eq!(queue.command("HEXISTS", "meta", &["paused"]), Value::Int(0));
    assert_eq!(queue.left_at_source(), ["limiter", "meta"]);
}

#[test]
fn settings_that_were_given_back_are_taken_anew() {
    let mut queue = TestQueue::fresh();
    queue.command("HSET", "meta", &["concurrency", "1", "paused", "1", "version", "ours"]);
    queue.at_source("HSET", "meta", &["chasquimq", "0", "concurrency", "50"]);
    assert_eq!(adopt(&mut queue, 0), "[1 0 concurrency 50]");
    queue.key_is("meta", "concurrency=50 version=ours");
    queue.left_at_source();
}
