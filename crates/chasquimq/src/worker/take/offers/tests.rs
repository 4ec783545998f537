//! What is offered is drawn or taken back, each job once.

use std::sync::Arc;

use super::*;
use crate::worker::take::batch::BatchJob;

const LOCK: Duration = Duration::from_secs(30);
const WINDOW: Duration = Duration::from_millis(50);
const GAP: Duration = Duration::from_millis(7);
const TERMS: Terms = Terms {
    window: WINDOW,
    gap: GAP,
    with_slots: true,
};

fn offers(concurrency: u32) -> Offers {
    Offers::new(&WorkerOptions {
        concurrency,
        lock_duration: LOCK,
        ..WorkerOptions::default()
    })
}

/// Hands a batch over, with which the worker holds `held` jobs. Gives its offer.
fn hand_over(offers: &Offers, base: u32, count: u32, held: u32) -> u32 {
    let job = |number: u32| BatchJob {
        number: u64::from(number),
        name_len: Some(0),
        data_len: 0,
        options: 0,
        timestamp: 0,
        extra: None,
        siblings: None,
    };
    let mut batch = Batch {
        base,
        jobs: (0..count).map(job).collect(),
        ..Batch::default()
    };
    offers.hand_over(&mut batch, held);
    batch.offer
}

fn draw(offers: &Offers, offer: u32, most: u32) -> u32 {
    (0..most).take_while(|_| offers.words().draw(offer)).count() as u32
}

fn taken(handles: impl IntoIterator<Item = u32>, is_silent: bool) -> TakenBack {
    TakenBack {
        handles: handles.into_iter().collect(),
        is_silent,
    }
}

#[test]
fn what_is_drawn_is_not_taken_back() {
    let offers = offers(2);
    let offer = hand_over(&offers, 10, 5, 5);
    assert!(offers.is_waiting());
    assert_eq!(draw(&offers, offer, 3), 3);
    assert_eq!(offers.take_back(false), taken(13..15, false));
    assert_eq!(draw(&offers, offer, 1), 0);
    assert!(!offers.is_waiting());
}

#[test]
fn jobs_with_a_slot_stay_unless_all_are_wanted() {
    let offers = offers(3);
    // one runs
    let first = hand_over(&offers, 0, 4, 5);
    hand_over(&offers, 4, 2, 7);
    assert_eq!(offers.take_back(false), taken(2..6, false));
    assert_eq!(offers.take_back(false), taken([], false));
    assert_eq!(offers.take_back(true), taken(0..2, true));
    assert_eq!(draw(&offers, first, 1), 0);
}

#[test]
fn more_slots_are_known_of_at_the_next_batch() {
    let offers = offers(1);
    hand_over(&offers, 0, 2, 2);
    offers.set_concurrency(4);
    hand_over(&offers, 2, 2, 4);
    assert_eq!(offers.take_back(false), taken([1], false));
}

#[test]
fn whoever_takes_back_and_whoever_draws_share_each_job_once() {
    let offers = Arc::new(offers(1));
    for _ in 0..200 {
        let offer = hand_over(&offers, 0, 100, 100);
        let drawing = offers.clone();
        let drawn = std::thread::spawn(move || draw(&drawing, offer, 100));
        let back = offers.take_back(true).handles;
        let drawn = drawn.join().expect("a thread that draws");
        assert_eq!(back, (drawn..100).collect::<Vec<_>>());
    }
}

#[test]
fn an_offer_whose_word_is_another_s_has_no_jobs() {
    let offers = offers(1);
    let first = hand_over(&offers, 0, 2, 2);
    for at in 1..Words::COUNT {
        hand_over(&offers, 2 * at, 2, 2);
    }
    assert!(offers.evicted().is_empty());
    let last = hand_over(&offers, 5000, 2, 2);
    assert_eq!(offers.evicted(), [0, 1]);
    assert_eq!((draw(&offers, first, 2), draw(&offers, last, 3)), (0, 2));
    assert!(offers.evicted().is_empty());
}

#[test]
fn words_come_round() {
    let offers = offers(1);
    for _ in 0..Words::COUNT * 300 {
        let offer = hand_over(&offers, 0, 3, 3);
        assert_eq!(draw(&offers, offer, 4), 3);
        assert!(!offers.words().draw(offer.wrapping_sub(Words::COUNT)));
    }
}

#[test]
fn what_is_late_is_looked_after_and_surplus_goes_back_in_the_end() {
    let offers = offers(1);
    assert_eq!(offers.next_look(TERMS), None);
    let offer = hand_over(&offers, 0, 3, 3);
    let now = Instant::now();
    let look = offers.next_look(TERMS).expect("a time");
    assert!(look <= now + GAP + SURPLUS_PATIENCE);
    assert_eq!(offers.late(TERMS, look - Duration::from_micros(1)), None);
    assert_eq!(offers.late(TERMS, look), Some(Late::IfAnyIdle));
    // not again at once
    assert_eq!(offers.next_look(TERMS), Some(look + LOOK));
    assert_eq!(draw(&offers, offer, 1), 1);
    assert_eq!(offers.late(TERMS, now + WINDOW + LONGEST), Some(Late::Surplus));
    assert_eq!(offers.take_back(false), taken([1, 2], false));
    assert_eq!(offers.next_look(TERMS), None);
}

#[test]
fn surplus_is_late_when_none_of_it_follows_and_when_it_takes_long_in_all() {
    let offers = offers(1);
    let offer = hand_over(&offers, 0, 9, 9);
    let handed_over = Instant::now();
    assert_eq!(draw(&offers, offer, 1), 1);
    let drawn = handed_over + SURPLUS_PATIENCE;
    assert_eq!(offers.late(TERMS, drawn), None);
    assert_eq!(offers.late(TERMS, drawn + GAP), None);
    // one that follows is seen
    assert_eq!(draw(&offers, offer, 1), 1);
    assert_eq!(offers.late(TERMS, drawn + GAP + SURPLUS_PATIENCE), None);
    let none_follows = drawn + 2 * (GAP + SURPLUS_PATIENCE);
    assert!(none_follows < handed_over + WINDOW);
    assert_eq!(offers.late(TERMS, none_follows), Some(Late::IfAnyIdle));
    let short = Terms {
        window: Duration::ZERO,
        ..TERMS
    };
    assert!(offers.next_look(short).expect("a time") <= none_follows + LOOK);
}

#[test]
fn all_is_given_up_where_nobody_draws_and_surplus_where_it_is_late() {
    let offers = offers(2);
    let offer = hand_over(&offers, 0, 5, 5);
    assert_eq!(draw(&offers, offer, 1), 1);
    let late = offers.next_look(TERMS).expect("a time");
    assert_eq!(offers.give_up(TERMS, late, 5), taken(1..5, true));
    let offer = hand_over(&offers, 7, 5, 5);
    assert_eq!(draw(&offers, offer, 2), 2);
    assert_eq!(offers.give_up(TERMS, late, 5), taken(9..12, false));
}

#[test]
fn an_event_loop_that_is_late_without_a_job_that_runs_is_given_more_time() {
    let offers = offers(2);
    let patience = || {
        hand_over(&offers, 0, 1, 1);
        let late = offers.next_look(TERMS).expect("a time");
        let patience = late - offers.state().since;
        (late, patience)
    };
    let (late, at_first) = patience();
    assert_eq!(at_first, PATIENCE);
    // another one runs
    assert_eq!(offers.give_up(TERMS, late, 2), taken([0], true));
    let (late, still) = patience();
    assert_eq!(still, PATIENCE);
    assert_eq!(offers.give_up(TERMS, late, 1), taken([0], true));
    let (late, more) = patience();
    assert_eq!(more, 2 * PATIENCE);
    assert_eq!(offers.give_up(TERMS, late, 1), taken([0], true));
    // all is drawn in time
    let offer = hand_over(&offers, 0, 1, 1);
    assert_eq!(draw(&offers, offer, 1), 1);
    let (_, less) = patience();
    assert!(less < 4 * PATIENCE);
}

#[test]
fn many_jobs_with_slots_have_their_time_in_all() {
    let offers = offers(50);
    let offer = hand_over(&offers, 0, 50, 50);
    let handed_over = Instant::now();
    let step = PATIENCE * 3 / 4;
    for at in 1..=5 {
        assert_eq!(draw(&offers, offer, 1), 1);
        assert_eq!(offers.late(TERMS, handed_over + at * step), None);
    }
    assert_eq!(draw(&offers, offer, 1), 1);
    assert_eq!(offers.late(TERMS, handed_over + 6 * step), Some(Late::IfAnyIdle));
}

#[test]
fn jobs_with_slots_are_not_late_where_nobody_else_could_start_them() {
    let offers = offers(2);
    let terms = Terms {
        with_slots: false,
        ..TERMS
    };
    let offer = hand_over(&offers, 0, 2, 2);
    assert_eq!(offers.next_look(terms), None);
    hand_over(&offers, 2, 1, 3);
    let late = Instant::now() + LOCK;
    assert!(offers.next_look(terms).is_some());
    assert_eq!(offers.give_up(terms, late, 3), taken([2], false));
    assert_eq!(draw(&offers, offer, 3), 2);
}

#[test]
fn nothing_is_late_while_it_is_held() {
    let offers = offers(1);
    hand_over(&offers, 0, 1, 1);
    let late = Instant::now() + PATIENCE;
    offers.hold(true);
    assert_eq!(offers.late(TERMS, late), None);
    // it is looked again
    assert!(offers.next_look(TERMS).is_some());
    offers.hold(false);
    assert!(offers.next_look(TERMS).expect("a time") > Instant::now());
    assert!(offers.late(TERMS, late + LOOK).is_some());
}

#[test]
fn jobs_start_only_while_the_lease_lasts() {
    let offers = offers(1);
    let now = Moment::now();
    assert!(offers.may_start());
    assert!(offers.lease(now..=now).is_empty());
    hand_over(&offers, 0, 3, 3);
    assert!(offers.may_start());
    // a step that was sent too long ago
    assert!(offers.lease(now - LOCK..=now).is_empty());
    assert!(!offers.may_start());
    // it may have lapsed
    assert_eq!(offers.lease(now..=Moment::now()), [0, 1, 2]);
    assert!(offers.may_start());
}

#[test]
fn jobs_that_are_held_know_their_lease_from_the_next_one() {
    let offers = offers(1);
    let now = Moment::now();
    let _ = offers.lease(now..=now);
    let first = offers.lease_number();
    assert!(first.is_some());
    assert!(offers.lease(now..=Moment::now()).is_empty());
    assert_eq!(offers.lease_number(), first);
    // this process has stood still, and the next step had a lease again
    let _ = offers.lease(now + 2 * LOCK..=now + 2 * LOCK);
    assert_ne!(offers.lease_number(), first);
    let second = offers.lease_number();
    offers.lapsed();
    assert_ne!(offers.lease_number(), second);
}

#[test]
fn jobs_that_are_held_do_not_start_while_the_lease_may_be_over() {
    let offers = offers(1);
    let now = Moment::now();
    let _ = offers.lease(now - LOCK..=now);
    assert_eq!(offers.lease_number(), None);
}

#[test]
fn a_lease_may_be_renewed_a_little_before_it_is_told() {
    let offers = offers(1);
    let now = Moment::now();
    assert!(offers.lease(now - LOCK.mul_f64(0.96)..=now).is_empty());
    assert!(!offers.may_start());
}

#[test]
fn a_lease_that_is_over_is_not_prolonged() {
    let offers = offers(1);
    let now = Moment::now();
    offers.prolong(now);
    let offer = hand_over(&offers, 0, 3, 3);
    assert_eq!(draw(&offers, offer, 1), 1);
    offers.prolong(now + LOCK / 2);
    offers.prolong(now + 2 * LOCK);
    assert_eq!(offers.lease(now..=now + 2 * LOCK), [1, 2]);
    // nothing is left that could have lapsed
    offers.prolong(now + 4 * LOCK);
    hand_over(&offers, 3, 2, 4);
    assert!(offers.lease(now..=now + 4 * LOCK).is_empty());
}
