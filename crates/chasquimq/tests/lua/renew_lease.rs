//! A worker lives; one whose lease was lost has it again. Which of its jobs are cancelled is told, too (`cancel_jobs.rs`).

use chasquimq::msgpack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

#[test]
fn the_lease_is_there_again() {
    let mut none = Packer::default();
    none.array(0);
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("w").want(1));
    let keys = queue.show();
    assert_eq!(run!(queue, RENEW_LEASE, "w", 60_000, &none.0), "[1]");
    queue.end_lease("w");
    assert_eq!(run!(queue, RENEW_LEASE, "w", 60_000, &none.0), "[0]");
    queue.keys_are(&keys);
    assert_eq!(run_once!(queue, MOVE_ACTIVE, 1010, "1", "w", 0), "0");
}
