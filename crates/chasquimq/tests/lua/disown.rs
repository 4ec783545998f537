//! active -> front of waiting, for jobs that a living worker does not hold any more

use chasquimq::{pack::Packer, unique_id};

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::Step,
};

/// `w` holds the frame 1..4, the record x and 6; `other` holds 7.
fn queue() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(4).record("x").frame(1).frame(1));
    queue.step(Step::by("w").named("bob").want(6));
    queue.step(Step::by("other").want(1));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

/// As taken by the first step, whose number is 2.
fn held(ids: &[&str]) -> Vec<u8> {
    held_since(4, ids)
}

fn held_since(claim: i64, ids: &[&str]) -> Vec<u8> {
    let mut packed = Packer::default();
    packed.array(2 * ids.len());
    for id in ids {
        packed.str(id).int(claim);
    }
    packed.0
}

#[test]
fn what_is_held_stays() {
    let mut queue = queue();
    let keys = queue.show();
    let client = unique_id();
    let all = held(&["1", "2", "3", "4", "x", "6"]);
    assert_eq!(run!(queue, DISOWN, 1010, &client, 0, 1, "w", 1, all), "[]");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn what_is_not_heads_the_line() {
    let mut queue = queue();
    let some = held(&["2", "4"]);
    let reply = run!(queue, DISOWN, 1010, unique_id(), 0, 1, "w", 1, some);
    assert_eq!(reply, "[1 3 6 x]");
    queue.keys_are(
        "front: 1 3 6 x
         jobs: 1=[7 {} a 1] 3=[7 {} a 3] 6=[7 {} a 1] x=[7 {} a 1]
         lease:other: set
         lease:w: set
         log: 1-4 7-1
         state: cursor=7-1 id=7 waiting=4 active=3 references=1
         takes: 1=[1000 0101 w bob] 7=[1000 '' other '']
         vitals: 1={as:1 pb:bob po:1000 st:1} 3={as:1 pb:bob po:1000 st:1} 6={as:1 pb:bob po:1000 st:1} x={as:1 pb:bob po:1000 st:1}
         wake: set",
    );
    // the others end as ever
    let reply = queue.step(Step::by("w").at(1020).done(1, 4, 1, 1).done(1, 4, 3, 1));
    assert_eq!(reply, "[[] [] -1 0 4]");
    let reply = queue.step(Step::by("w").at(1030).done(1, 4, 0, 1));
    assert_eq!(reply, "[[[1 0 -2 0]] [] -1 0 4]");
}

#[test]
fn a_copy_that_comes_late_takes_nothing_away() {
    let mut queue = queue();
    let client = unique_id();
    let mut call = queue.call(&chasquimq::server::script::DISOWN);
    call.arg(1010).arg(&client).arg(0).arg(1).arg("w").arg(1).arg(held(&[]));
    assert_eq!(queue.carry_out(&call), "[1 2 3 4 6 x]");
    queue.step(Step::by("w").at(1020).number(9).want(2));
    let keys = queue.show();
    assert_eq!(queue.carry_out(&call), "[1 2 3 4 6 x]");
    queue.keys_are(&keys);
    // it counts a stall
    assert_eq!(
        run!(queue, DISOWN, 1030, &client, 0, 2, "w", 1, held_since(18, &["2"])),
        "[1]"
    );
    let failure = "job stalled more than allowable limit";
    queue.key_is(
        "vitals",
        &format!(
            "1={{as:2 df:{failure} pb:bob po:1020 st:2}} 2={{as:1 pb:bob po:1000 st:1}} 3={{as:1 pb:bob po:1000 st:1}} 4={{as:1 pb:bob po:1000 st:1}} \
             6={{as:1 pb:bob po:1000 st:1}} x={{as:1 pb:bob po:1000 st:1}}"
        ),
    );
}
