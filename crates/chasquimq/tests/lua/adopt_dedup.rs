//! Deduplication ids of jobs that are gone.

use chasquimq::msgpack::Packer;
use chasquimq_migrate::scripts::ADOPT_DEDUP;
use redis::Value;

use crate::given::queue::{run, TestQueue};

#[test]
fn an_id_without_a_job_is_ours_for_the_time_that_is_left() {
    let mut queue = TestQueue::fresh();
    queue.their_job("2", &[]);
    queue.at_source("SET", "de:gone", &["1", "PX", "60000"]);
    queue.at_source("SET", "de:has-job", &["2", "PX", "60000"]);
    queue.at_source("SET", "de:stale", &["3"]);
    let source = queue.source();
    let mut ids = Packer::default();
    ids.array(4).str("gone").str("has-job").str("stale").str("unknown");
    assert_eq!(run!(queue, &ADOPT_DEDUP, source, ids.0), "1");
    assert_eq!(queue.command("GET", "de:gone", &[]), Value::BulkString(b"1".to_vec()));
    assert!(matches!(
        queue.command("PTTL", "de:gone", &[]),
        Value::Int(50_000..=60_000)
    ));
    assert_eq!(queue.left_at_source(), ["2", "de:has-job", "de:stale"]);
}
