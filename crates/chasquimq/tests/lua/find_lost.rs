//! active jobs whose worker is gone, or that a worker does not hold, found a step at a time

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::{at, Step},
};

/// `dead` holds the frame 1..4, of which 2 has completed, and the record x; `alive` holds 6.
fn queue() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(4).record("x").frame(1));
    queue.step(Step::by("dead").want(5));
    queue.step(Step::by("alive").want(1));
    queue.step(Step::by("dead").at(1010).done(1, 4, 1, 1));
    queue
}

#[test]
fn whoever_has_no_lease_is_gone() {
    let mut queue = queue();
    assert_eq!(run!(queue, FIND_LOST, 0, "s", "", ""), "['' [] [] [] []]");
    queue.end_lease("dead");
    assert_eq!(
        run!(queue, FIND_LOST, 0, "s", "", ""),
        "['' [1 1k11 1000 4 ''] [x 1000 4] [dead 0] [1 1]]"
    );
}

#[test]
fn of_a_worker_everything_is_told_and_how_many_jobs_a_frame_has() {
    let mut queue = queue();
    let all_of_dead = "['' [1 1k11 1000 4 ''] [x 1000 4] [dead 0] [1 1]]";
    assert_eq!(run!(queue, FIND_LOST, 0, "s", "dead", ""), all_of_dead);
    assert_eq!(
        run!(queue, FIND_LOST, 0, "s", "alive", ""),
        "['' [6 1 1000 6 ''] [] [alive 0] [1]]"
    );
    queue.end_lease("alive");
    // nobody asks which of them
    assert_eq!(
        run!(queue, FIND_LOST, 0, "s", "", ""),
        "['' [6 '' 1000 6 ''] [] [alive 0] [1]]"
    );
}

/// The slots of a worker `w` that is gone.
fn slots(queue: &mut TestQueue) -> String {
    queue.end_lease("w");
    let found = run!(queue, FIND_LOST, 0, "s", "", "");
    found
        .split_once("[w ")
        .expect("an owner")
        .1
        .split(']')
        .next()
        .expect("slots")
        .to_owned()
}

#[test]
fn how_many_slots_a_worker_had_is_known_whatever_way_its_last_step_went() {
    let known = |step: Step| {
        let mut queue = TestQueue::with(Plan::new().frame(1).frame(1).frame(1).record("x"));
        // nothing limits it, as is known from now on
        queue.step(Step::by("v").want(0));
        queue.step(step);
        slots(&mut queue)
    };
    let step = || Step::by("w").slots(7);
    // one job, few, and any
    assert_eq!(known(step().want(1)), "7");
    assert_eq!(known(step().want(2)), "7");
    assert_eq!(known(step().want(2).limiter(9, 1000)), "7");
    assert_eq!(known(step().want(1).when_it_comes(0)), "7");
    // of a release that does not tell them, which remembers what it took in their place
    assert_eq!(known(Step::by("w").want(3)), "0");
}

#[test]
fn what_is_no_memo_of_a_step_tells_no_slots() {
    for memo in ["", "short", "\u{7f}is a text that another program has written there"] {
        let mut queue = TestQueue::with(Plan::new().frame(1));
        queue.step(Step::by("w").slots(9).want(1));
        queue.command("SET", "memo:w:s", &[memo]);
        assert_eq!(slots(&mut queue), "0");
    }
}

#[test]
fn one_scan_an_interval_is_begun() {
    let mut queue = queue();
    queue.end_lease("dead");
    let lost = "['' [1 1k11 1000 4 ''] [x 1000 4] [dead 0] [1 1]]";
    assert_eq!(run!(queue, FIND_LOST, 60_000, "s", "", ""), lost);
    assert_eq!(run!(queue, FIND_LOST, 60_000, "o", "", ""), "['' [] [] [] []]");
    // it goes on, whatever the mark says
    assert_eq!(run!(queue, FIND_LOST, 0, "s", "", "t0"), lost);
    assert_eq!(
        run!(queue, FIND_LOST, 0, "s", "", "a0"),
        "['' [] [x 1000 4] [dead 0] [1]]"
    );
}

#[test]
fn many_are_found_in_steps() {
    let mut plan = Plan::new();
    for _ in 0..3_000 {
        plan = plan.record("");
    }
    let mut queue = TestQueue::with(plan);
    queue.take_all(|| Step::by("w").want(3_000));
    queue.end_lease("w");
    let reply = run!(queue, FIND_LOST, 0, "s", "", "");
    assert!(reply.starts_with("[a") && reply.len() < 40_000, "{}", reply.len());
    let mut lost = queue.find_lost(0, "", &[]);
    let mut count = 0;
    while let Some((_, some, _)) = lost.parcel() {
        count += some;
        lost.done(some, 0);
    }
    assert_eq!(count, 3_000);
}

#[test]
fn what_is_held_is_not_lost_and_of_another_claim_is() {
    let mut queue = queue();
    let nothing = queue
        .find_lost(0, "dead", &[("1", 4), ("3", 4), ("4", 4), ("x", 4)])
        .parcel();
    assert_eq!(nothing, None);
    let mut one = queue.find_lost(0, "dead", &[("1", 4), ("3", 2), ("4", 4), ("x", 4)]);
    assert_eq!(
        one.parcel().map(|(_, count, is_last)| (count, is_last)),
        Some((1, true))
    );
    queue.step(Step::by("dead").at(1020).back(&at(1, 4, 0), false));
}

#[test]
fn a_scan_whose_answer_was_lost_is_begun_again() {
    let mut queue = queue();
    queue.end_lease("dead");
    let lost = "['' [1 1k11 1000 4 ''] [x 1000 4] [dead 0] [1 1]]";
    for _ in 0..2 {
        assert_eq!(run!(queue, FIND_LOST, 60_000, "s", "", ""), lost);
    }
    assert_eq!(run!(queue, FIND_LOST, 60_000, "o", "", ""), "['' [] [] [] []]");
}
