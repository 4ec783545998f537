//! Any state but active -> gone.

use chasquimq::{redis::call::library::REMOVE_JOB, Deduplication};

use crate::given::{
    plan::Plan,
    queue::{run, run_once, Forbidden, TestQueue},
    scheduler::Upsert,
    step::{of, Fail, Step},
    tree::Tree,
};

#[test]
fn a_job_that_is_missing_counts_as_removed() {
    let mut queue = TestQueue::with(Plan::new().frame(1));
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(run_once!(queue, REMOVE_JOB, 1001, "2", 0), "1");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn a_waiting_job_of_a_frame_leaves_a_hole() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.skip_events();
    assert_eq!(run_once!(queue, REMOVE_JOB, 1001, "2", 0), "1");
    queue.keys_are(
        "holes: 1=101
         log: 1-3
         state: id=3 waiting=2 holes=1
         wake: set",
    );
    queue.events_are("[X removed [2] prev wait]");
    // again: there is no such job
    assert_eq!(run_once!(queue, REMOVE_JOB, 1001, "2", 0), "1");
    queue.events_are("");
}

#[test]
fn a_frame_leaves_the_line_with_the_last_of_its_jobs() {
    let mut queue = TestQueue::with(Plan::new().frame(1).frame(2).frame(3));
    run_once!(queue, UPDATE_JOB, 1001, "3", "progress", "1");
    for id in ["1", "2", "3"] {
        assert_eq!(run_once!(queue, REMOVE_JOB, 1001, id, 0), "1");
    }
    queue.keys_are(
        "log: 4-3
         state: id=6 waiting=3
         wake: set",
    );
    assert_eq!(
        queue.step(Step::by("w").want(0).surplus(3)),
        "[[] [4 3 <7 {} a 1 - 2 - 3>] -1 0 0]"
    );
}

#[test]
fn an_amended_waiting_job_goes_with_all_it_has() {
    let mut queue = TestQueue::with(Plan::new().frame(2));
    run_once!(queue, UPDATE_JOB, 1001, "2", "progress", "1");
    run_once!(queue, LOG_JOB; "2", "row", 0);
    run_once!(queue, REMOVE_JOB, 1002, "2", 0);
    queue.keys_are(
        "holes: 1=10
         log: 1-2
         state: id=2 waiting=1 holes=1
         wake: set",
    );
}

#[test]
fn a_reference_becomes_stale() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("").record("y"));
    for id in ["x", "2"] {
        assert_eq!(run_once!(queue, REMOVE_JOB, 1001, id, 0), "1");
    }
    queue.keys_are(
        "gone: 2=1 x=1
         jobs: y=[7 {} a 1]
         log: 3-r1(x 2 y)
         state: id=3 waiting=1 references=1 gone=2
         wake: set",
    );
    // the same id may come and go again
    queue.add(1002, Plan::new().record("x"));
    run_once!(queue, REMOVE_JOB, 1003, "x", 0);
    queue.key_is("gone", "2=1 x=2");
    assert_eq!(queue.step(Step::by("w").want(5)), "[[] [0 y <[7 {} a 1]> '' 1] -1 0 0]");
    queue.key_is("gone", "x=1");
}

#[test]
fn a_job_of_the_front_list_leaves_it() {
    let mut queue = TestQueue::with(Plan::new().front("x").front("y").frame(3));
    queue.step(Step::by("w").want(3));
    queue.step(Step::by("w").back(&of("x"), false));
    queue.key_is("front", "x 4 5");
    for id in ["x", "5"] {
        run_once!(queue, REMOVE_JOB, 1001, id, 0);
    }
    queue.key_is("front", "4");
    queue.key_is("gone", "(none)");
}

#[test]
fn an_active_job_stays() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x"));
    queue.step(Step::by("w").want(3));
    let keys = queue.show();
    queue.skip_events();
    for id in ["1", "x"] {
        assert_eq!(run_once!(queue, REMOVE_JOB, 1001, id, 0), "0");
    }
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn an_active_job_of_a_dead_worker_goes() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x"));
    queue.step(Step::by("w").want(3));
    queue.end_lease("w");
    queue.skip_events();
    for id in ["1", "x"] {
        assert_eq!(run_once!(queue, REMOVE_JOB, 1001, id, 0), "1");
    }
    queue.keys_are(
        "log: 1-2
         state: cursor=3-r1 id=3 active=1 references=1
         takes: 1=[1000 01 w '']
         wake: set",
    );
    queue.events_are("[X removed [1] prev active] | [X removed [x] prev active]");
}

#[test]
fn the_place_of_an_active_job_that_goes_is_for_one_that_waits() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y"));
    queue.step(Step::by("w").want(1));
    queue.end_lease("w");
    queue.command("DEL", "wake", &[]);
    assert_eq!(run_once!(queue, REMOVE_JOB, 1001, "x", 0), "1");
    queue.key_is("wake", "set");
}

#[test]
fn a_completed_job_leaves_its_run() {
    for (id, runs, completed) in [
        ("1", "2=[3 1 4 1000 '' <[20 30 40]>]", "2@1010"),
        (
            "2",
            "1=[1 1 4 1000 '' <[10]>] 3=[2 1 4 1000 '' <[30 40]>]",
            "1@1010 3@1010",
        ),
        ("4", "1=[3 1 4 1000 '' <[10 20 30]>]", "1@1010"),
    ] {
        let mut queue = TestQueue::with(Plan::new().frame(4));
        queue.step(Step::by("w").want(4));
        queue.step(Step::by("w").at(1010).done_with(1, 4, 0, &["10", "20", "30", "40"]));
        queue.skip_events();
        assert_eq!(run_once!(queue, REMOVE_JOB, 1020, id, 0), "1");
        queue.keys_are(&format!(
            "completed: {completed}
             frames: 1=3
             lease:w: set
             log: 1-4
             runs: {runs}
             state: cursor=1-4 id=4 completed=3
             wake: set"
        ));
        queue.events_are(&format!("[X removed [{id}] prev completed]"));
    }
}

#[test]
fn a_completed_job_leaves_the_run_of_a_frame_still_held() {
    let mut queue = TestQueue::with(Plan::new().frame(3));
    queue.step(Step::by("w").want(3));
    queue.step(Step::by("w").at(1010).done(1, 3, 0, 2));
    run_once!(queue, REMOVE_JOB, 1020, "1", 0);
    queue.key_is("takes", "1=[1000 0k1 w '']");
    queue.key_is("runs", "2=[1 1 3 1000 '' '']");
}

#[test]
fn records_leave_the_set_they_are_in() {
    let mut queue = TestQueue::with(Plan::new().record("x").record("y").delayed("d", 5000));
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").done_record("x", "1").fail(&of("y"), &Fail::to("failed")));
    queue.skip_events();
    for id in ["x", "y", "d"] {
        assert_eq!(run_once!(queue, REMOVE_JOB, 1020, id, 0), "1");
    }
    queue.keys_are(
        "lease:w: set
         state: cursor=2-r1 id=3 references=1
         wake: set",
    );
    queue.events_are("[X removed [x] prev completed] | [X removed [y] prev failed] | [X removed [d] prev delayed]");
}

#[test]
fn a_deduplication_id_is_free_when_its_owner_is_removed() {
    for ttl_ms in [0, 60_000] {
        let dedup = Deduplication {
            ttl_ms,
            ..Deduplication::of("d")
        };
        let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &dedup));
        run_once!(queue, REMOVE_JOB, 1001, "x", 0);
        queue.key_is("de:d", "(none)");
    }
}

#[test]
fn a_deduplication_id_of_another_job_stays() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &Deduplication::of("d")));
    run_once!(queue, REMOVE_DEDUP_KEY; "d", "");
    queue.add(1000, Plan::new().deduplicated("y", 0, &Deduplication::of("d")));
    run_once!(queue, REMOVE_JOB, 1001, "x", 0);
    queue.key_is("de:d", "y");
}

/// `r` waits for `a`, which waits for `b`, and for `c`.
fn family() -> TestQueue {
    let mut queue = TestQueue::fresh();
    queue.add_flows(
        1000,
        &Tree::new().root("r").child("r", "a").child("a", "b").child("r", "c"),
    );
    queue.skip_events();
    queue
}

#[test]
fn a_parent_takes_its_children_along() {
    let mut queue = family();
    queue.step(Step::by("w").want(2));
    queue.step(Step::by("w").done_record("c", "7").fail(&of("b"), &Fail::to("failed")));
    queue.skip_events();
    assert_eq!(run_once!(queue, REMOVE_JOB, 1010, "r", 1), "1");
    queue.keys_are(
        "lease:w: set
         state: cursor=4-r1 id=4 references=1
         wake: set",
    );
    queue.events_are(
        "[X waiting [r a] prev waiting-children] [X removed [b] prev failed] [X removed [a] prev wait] \
         [X removed [c] prev completed] [X removed [r] prev wait]",
    );
}

#[test]
fn a_parent_may_go_alone() {
    let mut queue = family();
    assert_eq!(run_once!(queue, REMOVE_JOB, 1010, "r", 0), "1");
    queue.key_is("children:r", "(none)");
    queue.key_is("children:a", "q:b");
    queue.key_is("parents", "a");
    queue.events_are("[X removed [r] prev waiting-children]");
}

#[test]
fn nothing_goes_while_a_pending_one_is_held() {
    let mut queue = family();
    queue.step(Step::by("w").want(1));
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(run_once!(queue, REMOVE_JOB, 1010, "r", 1), "0");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn the_last_child_that_goes_starts_its_parent() {
    let mut queue = family();
    run_once!(queue, REMOVE_JOB, 1010, "c", 1);
    queue.key_is("children:r", "q:a");
    queue.skip_events();
    queue.command("DEL", "wake", &[]);
    run_once!(queue, REMOVE_JOB, 1010, "b", 1);
    queue.key_is("front", "a");
    queue.key_is("wake", "set");
    queue.events_are("[X waiting [a] prev waiting-children] [X removed [b] prev wait]");
}

#[test]
fn the_latest_iteration_of_a_scheduler_stays() {
    let mut queue = TestQueue::fresh();
    queue.upsert(1000, &Upsert::of("s").next(1500));
    let keys = queue.show();
    assert_eq!(run_once!(queue, REMOVE_JOB, 1001, "repeat:s:1500", 0), "-8");
    queue.keys_are(&keys);
    queue.follow(1510, &[("s", 1500, 2000)]);
    assert_eq!(run_once!(queue, REMOVE_JOB, 1511, "repeat:s:1500", 0), "1");
}

#[test]
fn a_call_sent_again_leaves_a_job_that_came_since() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    let remove = |queue: &mut TestQueue| run!(queue, REMOVE_JOB, 1001, "c", "b", 1, "x", 0);
    assert_eq!(remove(&mut queue), "1");
    queue.add(1002, Plan::new().record("x"));
    let keys = queue.show();
    queue.skip_events();
    assert_eq!(remove(&mut queue), "1");
    queue.keys_are(&keys);
    queue.events_are("");
}

#[test]
fn of_very_many_plain_children_none_is_looked_at() {
    let mut queue = TestQueue::fresh();
    let tree = (0..120).fold(Tree::new().root("r"), |tree, _| tree.child("r", ""));
    queue.add_flows(1000, &tree);
    let mut call = queue.numbered_call(&REMOVE_JOB, Some(1010));
    call.arg("r").arg(1);
    // what finds a job of a frame
    let mut forbidden = Forbidden::command("xrevrange");
    let answer: i64 = call.query(&mut forbidden.connection).expect("too many");
    assert_eq!(answer, 2);
}
