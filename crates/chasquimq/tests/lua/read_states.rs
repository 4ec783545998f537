//! What tells whether anything has happened in queues; `read_states`.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

#[test]
fn it_changes_with_whatever_happens_and_only_then() {
    let mut queue = TestQueue::fresh();
    let mut last = run!(queue, READ_STATES);
    for plan in [
        Plan::new().frame(1),
        Plan::new().record("x"),
        Plan::new().prioritized("y", 3),
        Plan::new().delayed("z", 5000),
    ] {
        queue.add(1000, plan);
        let now = run!(queue, READ_STATES);
        assert_ne!(now, last);
        assert_eq!(run!(queue, READ_STATES), now);
        last = now;
    }
}
