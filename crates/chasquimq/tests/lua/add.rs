//! new -> waiting | delayed

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
};

#[test]
fn a_frame_takes_consecutive_numbers() {
    let mut queue = TestQueue::fresh();
    assert_eq!(
        queue.add(1000, Plan::new().frame(3).named_frame(&["b", "b", "c"])),
        "[1 []]"
    );
    queue.keys_are(
        "log: 1-3 4-3
         state: id=6 waiting=6
         wake: set",
    );
    queue.events_are("[A 1 3 a] [A 4 3 [b b c]]");
    assert_eq!(queue.add(1001, Plan::new().frame(1)), "[7 []]");
}

#[test]
fn records_of_a_batch_share_a_reference() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new().record("x").record("").frame(2).record("y").front("z");
    assert_eq!(queue.add(1000, plan), "[1 [0 x 4 y 5 z]]");
    queue.keys_are(
        "front: z
         jobs: 2=[7 {} a 1] x=[7 {} a 1] y=[7 {} a 1] z=[7 {} a 1]
         log: 2-r1(x 2) 3-2 5-r2(y)
         state: id=6 waiting=6 references=2
         wake: set",
    );
    queue.events_are("[B [x 2] [a a] waiting] [A 3 2 a] [B [y z] [a a] waiting]");
}

#[test]
fn delayed_jobs_keep_their_order_within_a_millisecond() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new().delayed("b", 2000).delayed("a", 2000).delayed("", 1500);
    assert_eq!(queue.add(1000, plan), "[1 [0 b 1 a]]");
    queue.keys_are(
        "delayed: 3@1500+0 b@2000+0 a@2000+1
         jobs: 3=[7 {} a 1] a=[7 {} a 1] b=[7 {} a 1]
         state: id=3
         wake: set",
    );
    queue.events_are("[B [b a 3] [a a a] delayed [2000 2000 1500]]");
    queue.add(1000, Plan::new().delayed("c", 2000));
    queue.key_is("delayed", "3@1500+0 b@2000+0 a@2000+1 c@2000+2");
}

#[test]
fn only_a_job_that_is_due_sooner_wakes_a_worker() {
    let mut queue = TestQueue::with(Plan::new().delayed("a", 2000));
    queue.command("DEL", "wake", &[]);
    queue.add(1000, Plan::new().delayed("b", 2000));
    queue.key_is("wake", "(none)");
    queue.add(1000, Plan::new().delayed("c", 1999));
    queue.key_is("wake", "set");
}

#[test]
fn a_repeated_id_adds_nothing() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    queue.skip_events();
    assert_eq!(
        queue.add(1000, Plan::new().record("y").record("x").record("y")),
        "[2 [0 y 1 x 2 y]]"
    );
    queue.keys_are(
        "jobs: x=[7 {} a 1] y=[7 {} a 1]
         log: 1-r1(x) 2-r2(y)
         state: id=4 waiting=2 references=2
         wake: set",
    );
    queue.events_are("[B [y] [a] waiting] [X duplicated [x y]]");
}

#[test]
fn a_batch_sent_again_is_added_once() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new().frame(3).record("x").delayed("y", 2000);
    let reply = queue.add_numbered(1000, 9, &plan);
    assert_eq!(reply, "[1 [3 x 4 y]]");
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(queue.add_numbered(1005, 9, &plan), reply);
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_late_copy_of_an_older_batch_is_not_added() {
    let mut queue = TestQueue::fresh();
    queue.add_numbered(1000, 8, &Plan::new().frame(3));
    queue.add_numbered(1000, 9, &Plan::new().frame(2));
    let keys = queue.show();
    queue.add_numbered(1000, 8, &Plan::new().frame(3));
    queue.keys_are(&keys);
}

#[test]
fn slots_and_clients_are_remembered_apart() {
    let mut queue = TestQueue::fresh();
    for (client, slot) in [("c", 0), ("c", 1), ("d", 0)] {
        let mut call = queue.call(&chasquimq::server::script::ADD);
        call.arg(1000).arg(client).arg(slot).arg(1);
        Plan::new().frame(1).append_to(&mut call);
        queue.carry_out(&call);
    }
    queue.key_is("state", "id=3 waiting=3");
    assert_eq!(run!(queue, COUNT_JOBS), "[3 0 0 0 0 0 0]");
}

#[test]
fn events_of_an_earlier_time_follow_the_last_one() {
    let mut queue = TestQueue::fresh();
    for now_ms in [1000, 900, 1000, 1001] {
        queue.add(now_ms, Plan::new().frame(2));
    }
    let ids: Vec<(u64, u64)> = queue.probe.snapshot().events.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [(1000, 4), (1000, 8), (1000, 12), (1001, 4)]);
}
