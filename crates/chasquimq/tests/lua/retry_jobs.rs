//! failed | completed -> waiting, many at once

use crate::given::{
    queue::{run, run_once},
    step::finished,
};

#[test]
fn failed_jobs_wait_again_in_the_order_in_which_they_ended() {
    let mut queue = finished();
    assert_eq!(run!(queue, RETRY_JOBS, 1020, "c", "b", 1, "failed", 1010, 10), "[2 1]");
    queue.key_is("log", "1-4 5-r2(4 x)");
    queue.key_is("failed", "(none)");
    queue.key_is("vitals", "4={am:2 as:1 pb:bob tr:''} x={am:2 as:1 pb:bob tr:''}");
    queue.key_is("traces", "4=[\"trace\"] x=[\"trace\"]");
    queue.key_is("state", "cursor=5-r1 id=5 waiting=2 completed=3 references=2");
    queue.key_is("wake", "set");
    queue.events_are("[X waiting [4 x] prev failed]");
    assert_eq!(run!(queue, RETRY_JOBS, 1020, "c", "b", 2, "failed", 1010, 10), "[0 1]");
}

#[test]
fn a_step_that_is_sent_again_moves_nothing() {
    let mut queue = finished();
    assert_eq!(run!(queue, RETRY_JOBS, 1020, "c", "b", 1, "failed", 1010, 1), "[1 0]");
    assert_eq!(run!(queue, RETRY_JOBS, 1020, "c", "b", 1, "failed", 1010, 1), "[1 0]");
    queue.key_is("failed", "x@1010");
}

#[test]
fn a_part_of_a_run_is_given_records() {
    let mut queue = finished();
    assert_eq!(
        run!(queue, RETRY_JOBS, 1020, "c", "b", 1, "completed", 1010, 2),
        "[2 0]"
    );
    queue.key_is("completed", "3@1010");
    queue.key_is("runs", "3=[1 1 4 1000 bob <[30]>]");
    queue.key_is("frames", "1=1");
    queue.key_is("log", "1-4 5-r2(1 2)");
    queue.key_is("jobs", "1=[7 {} a 1] 2=[7 {} a 2] 4=[7 {} a 4] x=[7 {} a 1]");
    queue.key_is("state", "cursor=5-r1 id=5 waiting=2 completed=1 references=2");
    queue.events_are("[X waiting [1 2] prev completed]");
}

#[test]
fn runs_and_records_move_in_order() {
    let mut queue = finished();
    run_once!(queue, UPDATE_JOB, 1011, "2", "progress", "5");
    run!(queue, RETRY_JOBS, 1020, "c", "b", 1, "completed", 1010, 10);
    queue.key_is("log", "5-r2(1 2 3)");
    queue.key_is("completed", "(none)");
    let failed = "4={am:2 as:1 fo:1010 fr:boom pb:bob po:1000} x={am:2 as:1 fo:1010 fr:boom pb:bob po:1000}";
    queue.key_is(
        "vitals",
        &format!("1={{am:1 as:1 pb:bob}} 2={{am:1 as:1 p:5 pb:bob}} 3={{am:1 as:1 pb:bob}} {failed}"),
    );
}

#[test]
fn what_ended_later_stays() {
    let mut queue = finished();
    let keys = queue.show();
    assert_eq!(run!(queue, RETRY_JOBS, 1020, "c", "b", 1, "failed", 1009, 10), "[0 1]");
    queue.keys_are(&keys);
    queue.events_are("");
}
