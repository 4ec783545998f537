//! Active jobs whose worker has its lease, by steps.

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::Step,
};

#[test]
fn those_of_frames_and_records_are_listed_while_their_worker_lives() {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x").record("y"));
    queue.step(Step::by("w").want(3));
    queue.step(Step::by("v").want(1));
    queue.step(Step::by("w").done(1, 3, 0, 1));
    assert_eq!(run!(queue, LIST_HELD, "takes", 0), "[active 0 [2 3]]");
    assert_eq!(run!(queue, LIST_HELD, "active", 0), "['' 0 [x]]");
    queue.end_lease("w");
    assert_eq!(run!(queue, LIST_HELD, "takes", 0), "[active 0 []]");
    queue.end_lease("v");
    assert_eq!(run!(queue, LIST_HELD, "active", 0), "['' 0 []]");
}
