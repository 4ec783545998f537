//! active -> waiting-children, by the one who holds the job

use crate::given::{
    plan::Plan,
    queue::{run, TestQueue},
    step::{of, Fail, Step},
    tree::Tree,
};

/// A job `1` of a frame that `w` holds, with a child `a` that waits.
fn holding(options: &str) -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    queue.step(Step::by("w").named("bob").want(1));
    let keys = queue.probe.keys.clone();
    queue.add_flows(1000, &Tree::new().child_of_with(&keys, "1", "a", options));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}

#[test]
fn a_worker_is_woken_only_where_a_job_waits() {
    for (is_taken, wake) in [(false, "set"), (true, "(none)")] {
        let mut queue = holding("{}");
        if is_taken {
            queue.step(Step::by("v").want(1));
        }
        let client = chasquimq::unique_id();
        assert_eq!(
            run!(queue, MOVE_TO_WAITING_CHILDREN, 1010, client, 0, 1, "1", "w", ""),
            "0"
        );
        queue.key_is("wake", wake);
    }
}

#[test]
fn a_job_waits_for_its_children() {
    let mut queue = holding("{}");
    assert_eq!(
        run!(
            queue,
            MOVE_TO_WAITING_CHILDREN,
            1010,
            chasquimq::unique_id(),
            0,
            1,
            "1",
            "w",
            ""
        ),
        "0"
    );
    queue.keys_are(
        "children:1: q:a
         jobs: 1=[7 {} a 1] a=[1000 {} a 1]
         lease:w: set
         log: 2-r1(a)
         parents: 1
         state: cursor=1-1 id=2 waiting=1 references=1
         vitals: 1={as:1 ch:1 pb:bob po:1000} a={pa:[{q}: 1 '']}
         waiting-children: 1@1010
         wake: set",
    );
    queue.events_are("[X waiting-children [1] prev active]");
    queue.step(Step::by("w").want(1));
    // it starts again with its child's value, and counts its starts
    let reply = queue.step(Step::by("w").done_record("a", "7").want(1));
    assert_eq!(reply, "[[] [0 1 <[7 {} a 1]> <{as:1 ch:1 pb:bob po:1000}> 2] -1 0 0]");
    queue.key_is("processed:1", "q:a=7");
}

#[test]
fn a_job_without_pending_children_stays() {
    let mut queue = holding("{}");
    let elsewhere = format!("{}:b", queue.probe.keys.qualified_name);
    assert_eq!(
        run!(
            queue,
            MOVE_TO_WAITING_CHILDREN,
            1010,
            chasquimq::unique_id(),
            0,
            1,
            "1",
            "w",
            elsewhere
        ),
        "1"
    );
    queue.step(Step::by("v").want(1));
    queue.step(Step::by("v").done_record("a", "7"));
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(
        run!(
            queue,
            MOVE_TO_WAITING_CHILDREN,
            1010,
            chasquimq::unique_id(),
            0,
            1,
            "1",
            "w",
            ""
        ),
        "1"
    );
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_job_may_wait_for_one_child() {
    let mut queue = holding("{}");
    let child = format!("{}:a", queue.probe.keys.qualified_name);
    assert_eq!(
        run!(
            queue,
            MOVE_TO_WAITING_CHILDREN,
            1010,
            chasquimq::unique_id(),
            0,
            1,
            "1",
            "w",
            child
        ),
        "0"
    );
}

#[test]
fn only_the_holder_parks_a_job() {
    let mut queue = holding("{}");
    for (id, token, code) in [("1", "v", "-6"), ("9", "w", "-1")] {
        assert_eq!(
            run!(
                queue,
                MOVE_TO_WAITING_CHILDREN,
                1010,
                chasquimq::unique_id(),
                0,
                1,
                id,
                token,
                ""
            ),
            code
        );
    }
    queue.end_lease("w");
    assert_eq!(
        run!(
            queue,
            MOVE_TO_WAITING_CHILDREN,
            1010,
            chasquimq::unique_id(),
            0,
            1,
            "1",
            "w",
            ""
        ),
        "-2"
    );
    assert_eq!(
        run!(
            queue,
            MOVE_TO_WAITING_CHILDREN,
            1010,
            chasquimq::unique_id(),
            0,
            1,
            "1",
            "0",
            ""
        ),
        "0"
    );
    assert_eq!(
        run!(
            queue,
            MOVE_TO_WAITING_CHILDREN,
            1010,
            chasquimq::unique_id(),
            0,
            1,
            "1",
            "0",
            ""
        ),
        "-3"
    );
}

#[test]
fn a_job_with_a_failed_child_is_not_parked() {
    let mut queue = holding(r#"{"failParentOnFailure":true}"#);
    queue.step(Step::by("v").want(1));
    queue.step(Step::by("v").fail(&of("a"), &Fail::to("failed")));
    assert_eq!(
        run!(
            queue,
            MOVE_TO_WAITING_CHILDREN,
            1010,
            chasquimq::unique_id(),
            0,
            1,
            "1",
            "w",
            ""
        ),
        "-9"
    );
}

#[test]
fn a_call_sent_again_is_answered_from_memory() {
    let mut queue = holding("{}");
    for _ in 0..2 {
        assert_eq!(
            run!(queue, MOVE_TO_WAITING_CHILDREN, 1010, "c", 0, 7, "1", "w", ""),
            "0"
        );
    }
    queue.events_are("[X waiting-children [1] prev active]");
}
