//! Finished jobs a minute, for workers that ask for it.

use crate::given::{
    plan::Plan,
    queue::TestQueue,
    step::{at, of, Fail, Step},
};

const MINUTE: u64 = 60_000;

fn metrics_are(queue: &mut TestQueue, state: &str, meta: &str, data: &str) {
    let found: Vec<Option<String>> =
        redis::from_redis_value(queue.command("HMGET", &format!("metrics:{state}"), &["count", "prevTS", "prevCount"]))
            .expect("fields");
    let found: Vec<String> = found.into_iter().map(|field| field.unwrap_or("-".to_owned())).collect();
    assert_eq!(found.join(" "), meta);
    let points: Vec<String> =
        redis::from_redis_value(queue.command("LRANGE", &format!("metrics:{state}:data"), &["0", "-1"]))
            .expect("points");
    assert_eq!(points.join(" "), data);
}

/// Three jobs of a frame complete, of which one is a record by now, and one fails.
fn end_four(queue: &mut TestQueue, number: u64, now_ms: u64, minutes: i64) {
    let first = 1 + 5 * number;
    queue.add(now_ms, Plan::new().frame(4).record(""));
    queue.step(Step::by("w").at(now_ms).want(5));
    let step = Step::by("w").at(now_ms).metrics(minutes).done(first, 4, 0, 2);
    let step = step.done_record(&(first + 4).to_string(), "");
    queue.step(
        step.fail(&at(first, 4, 2), &Fail::to("failed"))
            .fail(&at(first, 4, 3), &Fail::to("waiting")),
    );
    queue.step(Step::by("w").at(now_ms).want(1));
    queue.step(Step::by("w").at(now_ms).let_go(&of(&(first + 3).to_string())));
}

#[test]
fn nothing_is_counted_unless_it_is_asked_for() {
    let mut queue = TestQueue::fresh();
    end_four(&mut queue, 0, 1000, 0);
    metrics_are(&mut queue, "completed", "- - -", "");
}

#[test]
fn a_new_minute_tells_what_ended_before() {
    let mut queue = TestQueue::fresh();
    end_four(&mut queue, 0, 10 * MINUTE, 3);
    metrics_are(&mut queue, "completed", "3 600000 0", "");
    metrics_are(&mut queue, "failed", "1 600000 0", "");
    end_four(&mut queue, 1, 10 * MINUTE + 59_999, 3);
    metrics_are(&mut queue, "completed", "6 600000 0", "");
    end_four(&mut queue, 2, 11 * MINUTE, 3);
    metrics_are(&mut queue, "completed", "9 660000 6", "6");
    metrics_are(&mut queue, "failed", "3 660000 2", "2");
    end_four(&mut queue, 3, 13 * MINUTE, 3);
    metrics_are(&mut queue, "completed", "12 780000 9", "0 3 6");
    end_four(&mut queue, 4, 1000 * MINUTE, 3);
    metrics_are(&mut queue, "completed", "15 60000000 12", "0 0 3");
}

#[test]
fn jobs_that_are_removed_at_once_count() {
    let mut queue = TestQueue::fresh();
    queue.add(1000, Plan::new().frame(4).record("x"));
    queue.step(Step::by("w").want(5));
    let step = Step::by("w").keep(0, -1.0, 1000).metrics(3);
    queue.step(
        step.done(1, 4, 0, 3)
            .done_record("x", "")
            .fail(&at(1, 4, 3), &Fail::to("failed")),
    );
    metrics_are(&mut queue, "completed", "4 1000 0", "");
    metrics_are(&mut queue, "failed", "1 1000 0", "");
}
