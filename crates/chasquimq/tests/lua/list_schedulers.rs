//! Schedulers by their ids.

use redis::Value;

use crate::{
    given::{queue::TestQueue, scheduler::Upsert},
    read_jobs::by_ids,
};

fn list(queue: &mut TestQueue, ids: &[&str]) -> Vec<(String, String)> {
    let mut call = queue.call(&chasquimq::redis::call::library::LIST_SCHEDULERS);
    call.arg(by_ids(ids));
    let values: Vec<Value> = redis::from_redis_value(queue.carry_out_value(&call)).expect("an answer");
    let text = |value: &Value| redis::from_redis_value(value.clone()).expect("a text");
    values
        .chunks_exact(3)
        .map(|found| (text(&found[0]), text(&found[1])))
        .collect()
}

#[test]
fn those_that_exist_are_given_in_the_order_of_the_ids() {
    let mut queue = TestQueue::fresh();
    for (id, next_ms) in [("b", 1200), ("a", 1300), ("c", 1100)] {
        queue.upsert(1000, &Upsert::of(id).next(next_ms));
    }
    let found = [("c", "1100"), ("a", "1300")].map(|(id, slot)| (id.to_owned(), slot.to_owned()));
    assert_eq!(list(&mut queue, &["c", "x", "a"]), found);
    assert_eq!(list(&mut queue, &["", "x"]), []);
    assert_eq!(list(&mut queue, &[]), []);
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
    let ids: Vec<String> = (0..3000).map(|n| format!("x{n}")).collect();
    let found = list(&mut queue, &ids.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(found.len(), 3000);
    assert_eq!(found[2999], ("x2999".to_owned(), "4999".to_owned()));
}
