//! What tells whether anything has happened in queues; `read_states`.

use chasquimq::msgpack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

/// Without the server's clock.
fn stored(queue: &mut TestQueue) -> String {
    let mut none = Packer::default();
    none.array(0);
    let reply = run!(queue, READ_STATES, none.0);
    let (_, stored) = reply.split_once(' ').expect("a time");
    stored.to_owned()
}

#[test]
fn it_changes_with_whatever_happens_and_only_then() {
    let mut queue = TestQueue::fresh();
    let mut last = stored(&mut queue);
    for plan in [
        Plan::new().frame(1),
        Plan::new().record("x"),
        Plan::new().prioritized("y", 3),
        Plan::new().delayed("z", 5000),
    ] {
        queue.add(1000, plan);
        let now = stored(&mut queue);
        assert_ne!(now, last);
        assert_eq!(stored(&mut queue), now);
        last = now;
    }
}
