//! Schedulers by slot, or by id.

use redis::Value;

use crate::given::{queue::TestQueue, scheduler::Upsert};

fn list(queue: &mut TestQueue, id: &str, by_id: u8, start: i64, stop: i64, ascending: u8) -> Vec<(String, String)> {
    let mut call = queue.call(&chasquimq::server::script::LIST_SCHEDULERS);
    call.arg(id).arg(by_id).arg(start).arg(stop).arg(ascending);
    let values: Vec<Value> = redis::from_redis_value(queue.carry_out_value(&call)).expect("an answer");
    let text = |value: &Value| redis::from_redis_value(value.clone()).expect("a text");
    values
        .chunks_exact(3)
        .map(|found| (text(&found[0]), text(&found[1])))
        .collect()
}

#[test]
fn they_are_given_in_the_order_of_their_slots() {
    let mut queue = TestQueue::fresh();
    for (id, next_ms) in [("b", 1200), ("a", 1300), ("c", 1100)] {
        queue.upsert(1000, &Upsert::of(id).next(next_ms));
    }
    let ids = |found: Vec<(String, String)>| found.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(ids(list(&mut queue, "", 0, 0, -1, 1)), ["c", "b", "a"]);
    assert_eq!(ids(list(&mut queue, "", 0, 0, 1, 0)), ["a", "b"]);
    assert_eq!(ids(list(&mut queue, "", 0, 5, 9, 0)), [""; 0]);
    assert_eq!(list(&mut queue, "b", 1, 0, 0, 0), [("b".to_owned(), "1200".to_owned())]);
    assert_eq!(list(&mut queue, "", 1, 0, 0, 0), []);
}

#[test]
fn there_may_be_many() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1500));
    let stored = queue.command("HGET", "scheduler", &["s"]);
    let Value::BulkString(stored) = stored else {
        panic!("{stored:?}")
    };
    let (scheduler, schedulers) = (queue.probe.keys.key("scheduler"), queue.probe.keys.key("schedulers"));
    let mut pipe = redis::pipe();
    for n in 0..3000 {
        pipe.cmd("HSET").arg(&scheduler).arg(format!("x{n}")).arg(&stored);
        pipe.cmd("ZADD").arg(&schedulers).arg(2000 + n).arg(format!("x{n}"));
    }
    let _: Vec<Value> = pipe.query(&mut queue.probe.connection).expect("schedulers");
    let found = list(&mut queue, "", 0, 0, -1, 1);
    assert_eq!(found.len(), 3001);
    assert_eq!(found[3000], ("x2999".to_owned(), "4999".to_owned()));
}
