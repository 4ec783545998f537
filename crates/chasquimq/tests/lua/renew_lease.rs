//! A worker whose lease was lost.

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

#[test]
fn the_lease_is_there_again() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("w").want(1));
    let keys = queue.show();
    queue.end_lease("w");
    assert_eq!(run!(queue, RENEW_LEASE, "w", 60_000), "0");
    queue.keys_are(&keys);
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "1", "w", 0), "0");
}
