//! Tells an event of the user's own.

use chasquimq::msgpack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

fn paid(amount: &str) -> Vec<u8> {
    let mut event = Packer::default();
    event.array(4).str("E").str("paid").str("amount").str(amount);
    event.0
}

#[test]
fn an_event_stands_between_those_of_jobs() {
    let mut queue = TestQueue::told_before(1);
    queue.add(1000, Plan::new().frame(1));
    queue.skip_events();
    let keys = queue.show();
    assert_eq!(run!(queue, PUBLISH_EVENT, 1010, "p", 1, 1, paid("12"), 1000), "0");
    queue.keys_are(&keys);
    let told = queue.told();
    assert_eq!((told[0].id.as_str(), told[0].name.as_str()), ("1010-1", "paid"));
    assert_eq!(told[0].fields, [("amount".to_owned(), "12".to_owned())]);
}

#[test]
fn an_event_sent_again_is_told_once() {
    let mut queue = TestQueue::fresh();
    for _ in 0..2 {
        assert_eq!(run!(queue, PUBLISH_EVENT, 1010, "p", 1, 1, paid("12"), 1000), "0");
    }
    queue.events_are("[E paid amount 12]");
}

#[test]
fn the_cap_of_the_queue_stays() {
    let mut queue = TestQueue::fresh();
    run!(queue, CONFIGURE, "v", 500);
    for number in 1..=40 {
        run!(queue, PUBLISH_EVENT, 1010, "p", 1, number, paid("12"), 8);
    }
    let keys = queue.show();
    run!(queue, CONFIGURE, "v", 500);
    queue.keys_are(&keys);
}
