//! Who holds jobs that are too few for a batch.

use crate::given::queue::{run, run_once, TestQueue};

fn gather(queue: &mut TestQueue, owner: &str, hold_ms: u64) -> String {
    run!(queue, GATHER, owner, hold_ms)
}

#[test]
fn one_worker_gathers_until_it_says_that_it_is_done() {
    let mut queue = TestQueue::fresh();
    assert_eq!(gather(&mut queue, "w", 60_000), "0");
    queue.keys_are("gatherer: set");
    assert_eq!(gather(&mut queue, "w", 60_000), "0");
    assert_eq!(gather(&mut queue, "v", 60_000), "-1");
    // who is not it has nothing to end
    assert_eq!(gather(&mut queue, "v", 0), "-1");
    assert_eq!(gather(&mut queue, "w", 0), "0");
    queue.keys_are("");
    assert_eq!(gather(&mut queue, "v", 60_000), "0");
    queue.keys_are("gatherer: set");
}

#[test]
fn it_lasts_for_its_time() {
    let mut queue = TestQueue::fresh();
    gather(&mut queue, "w", 60_000);
    gather(&mut queue, "w", 120_000);
    let left = match queue.command("PTTL", "gatherer", &[]) {
        redis::Value::Int(left) => left,
        other => panic!("no time: {other:?}"),
    };
    assert!((110_000..=120_000).contains(&left), "{left}");
}

#[test]
fn it_is_told_how_many_jobs_may_be_active() {
    let mut queue = TestQueue::fresh();
    run_once!(queue, SET_LIMIT; "concurrency", 3);
    assert_eq!(gather(&mut queue, "w", 60_000), "3");
    assert_eq!(gather(&mut queue, "w", 0), "3");
}

#[test]
fn nobody_gathers_while_the_queue_is_paused() {
    let mut queue = TestQueue::fresh();
    gather(&mut queue, "w", 60_000);
    run_once!(queue, PAUSE, 1000, 1);
    assert_eq!(gather(&mut queue, "v", 0), "-1");
    assert_eq!(gather(&mut queue, "w", 60_000), "-2");
    queue.key_is("gatherer", "(none)");
    assert_eq!(gather(&mut queue, "v", 60_000), "-2");
    queue.key_is("gatherer", "(none)");
}
