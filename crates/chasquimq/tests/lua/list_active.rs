//! Active jobs, a step at a time.

use chasquimq::active::in_range;

use crate::given::{
    plan::Plan,
    queue::{run, run_once, TestQueue},
    step::Step,
};

#[test]
fn those_of_frames_and_records_are_listed_by_whose_they_are() {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x").record("y").frame(2));
    queue.step(Step::by("w").want(3));
    queue.step(Step::by("v").at(1001).want(4));
    queue.step(Step::by("w").done(1, 3, 0, 1));
    let (of_w, of_v) = ("1 k11 1000 4 ''", "6 11 1001 6 ''");
    let all = format!("['' [{of_w} {of_v}] [x 1001 6 y 1001 6]]");
    assert_eq!(run!(queue, LIST_ACTIVE, "all", ""), all);
    assert_eq!(run!(queue, LIST_ACTIVE, "held", ""), all);
    assert_eq!(run!(queue, LIST_ACTIVE, "lost", ""), "['' [] []]");
    queue.end_lease("w");
    assert_eq!(run!(queue, LIST_ACTIVE, "all", ""), all);
    assert_eq!(run!(queue, LIST_ACTIVE, "lost", ""), format!("['' [{of_w}] []]"));
    assert_eq!(
        run!(queue, LIST_ACTIVE, "held", ""),
        format!("['' [{of_v}] [x 1001 6 y 1001 6]]")
    );
    // the records are the second part
    assert_eq!(run!(queue, LIST_ACTIVE, "held", "a0"), "['' [] [x 1001 6 y 1001 6]]");
}

#[test]
fn many_are_listed_in_steps_each_once_and_in_order() {
    let mut plan = Plan::new();
    for _ in 0..1_500 {
        plan = plan.record("").frame(2);
    }
    let mut queue = TestQueue::with(plan);
    queue.step(Step::by("w").want(1_000));
    queue.step(Step::by("w").at(1001).want(1_000));
    queue.step(Step::by("w").at(1001).want(1_000));
    // both, of a frame
    for id in ["2", "3"] {
        run_once!(queue, UPDATE_JOB, 1002, id, "progress", "1");
    }
    for whose in ["all", "held"] {
        let (ids, steps) = queue.list_active(whose);
        let numbers: Vec<String> = (1..=3_000).map(|number: u64| number.to_string()).collect();
        assert_eq!(ids, numbers);
        assert!(steps > 30, "{steps} steps");
    }
    assert_eq!(queue.list_active("lost").0.len(), 0);
    let (some, _) = queue.list(&["active"], 0, -1, true, false);
    assert_eq!(some.len(), 3_000);
    let newest = in_range(queue.list_active("all").0, 0, 1, false);
    assert_eq!(newest, ["3000", "2999"]);
}
