//! Gives the leases behind tokens longer to live.

use chasquimq::msgpack::Packer;

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::Step,
};

pub fn locks(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut packed = Packer::default();
    packed.array(pairs.len() * 2);
    for (id, token) in pairs {
        packed.str(id).str(token);
    }
    packed.0
}

/// `w` holds the frame 1..3 and the record x.
fn active() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x").frame(1));
    queue.step(Step::by("w").want(4));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

fn life(queue: &mut TestQueue, owner: &str) -> u64 {
    let life = queue.command("PTTL", &format!("lease:{owner}"), &[]);
    redis::from_redis_value(life).expect("milliseconds")
}

#[test]
fn the_lease_behind_a_token_lasts_from_now() {
    let mut queue = active();
    let keys = queue.show();
    assert_eq!(
        run!(queue, EXTEND_LOCKS, 3_600_000, locks(&[("1", "w"), ("x", "w:4.3")])),
        "[]"
    );
    assert!(life(&mut queue, "w") > 3_500_000);
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn jobs_that_a_token_does_not_hold_are_told() {
    let mut queue = active();
    let asked = locks(&[("1", "v"), ("5", "w"), ("9", "w"), ("x", "0"), ("2", "w")]);
    assert_eq!(run!(queue, EXTEND_LOCKS, 3_600_000, asked), "[1 5 9 x]");
    queue.end_lease("w");
    assert_eq!(run!(queue, EXTEND_LOCKS, 3_600_000, locks(&[("1", "w")])), "[1]");
    queue.events_are("");
}

#[test]
fn a_step_renews_a_lease_unless_one_did_so_a_moment_ago() {
    let mut queue = active();
    // what the worker's own renewal leaves there, or nothing
    queue.command("SET", "lease:w", &["1", "PX", "20000"]);
    queue.step(Step::by("w").want(0));
    assert!(life(&mut queue, "w") > 50_000);
    queue.end_lease("w");
    queue.step(Step::by("w").want(0));
    assert!(life(&mut queue, "w") > 50_000);
    // until a second that is still to come
    queue.command("SET", "lease:w", &["9000000000", "PX", "20000"]);
    queue.step(Step::by("w").want(0));
    assert!(life(&mut queue, "w") <= 20_000);
}

#[test]
fn a_step_renews_a_lease_that_was_extended() {
    let mut queue = active();
    queue.command("SET", "lease:w", &["9000000000", "PX", "20000"]);
    assert_eq!(run!(queue, EXTEND_LOCKS, 10_000, locks(&[("1", "w")])), "[]");
    assert!(life(&mut queue, "w") <= 10_000);
    queue.step(Step::by("w").want(0));
    assert!(life(&mut queue, "w") > 50_000);
}
