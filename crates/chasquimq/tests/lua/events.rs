//! Every group of the event log, as a reader hears it.

use chasquimq::Event;

use crate::given::{
    plan::Plan,
    queue::{run_once, TestQueue},
    step::{at, of, Fail, Step},
};

/// Events as text: name, then the fields but `jobId`, which comes first.
fn shown(events: &[Event]) -> Vec<String> {
    let show = |event: &Event| {
        let fields = event.fields.iter().map(|(field, value)| match field.as_str() {
            "jobId" => value.clone(),
            _ => format!("{field}={value}"),
        });
        format!("{} {}", event.name, fields.collect::<Vec<_>>().join(" "))
            .trim_end()
            .to_owned()
    };
    events.iter().map(show).collect()
}

#[test]
fn additions_are_told_one_by_one() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new()
        .frame(2)
        .named_frame(&["b", "c"])
        .record("x")
        .delayed("d", 5000)
        .record("x");
    queue.add(1000, plan);
    assert_eq!(
        shown(&queue.told()),
        [
            "added 1 name=a",
            "waiting 1",
            "added 2 name=a",
            "waiting 2",
            "added 3 name=b",
            "waiting 3",
            "added 4 name=c",
            "waiting 4",
            "added x name=a",
            "waiting x",
            "added d name=a",
            "delayed d delay=5000",
            "duplicated x",
        ]
    );
}

#[test]
fn a_step_tells_what_ended_and_what_started() {
    let mut queue = TestQueue::with(Plan::new().frame(3).record("x").record("y").frame(1).delayed("d", 1500));
    queue.skip_events();
    queue.step(Step::by("w").want(5));
    assert_eq!(
        shown(&queue.told()),
        [
            "active 1 prev=waiting",
            "active 2 prev=waiting",
            "active 3 prev=waiting",
            "active x prev=waiting",
            "active y prev=waiting",
        ]
    );
    let failed = Fail {
        exhausted: true,
        attempts_made: 3,
        ..Fail::to("failed")
    };
    let step = Step::by("w")
        .at(1600)
        .done_with(1, 3, 0, &["\"r\"", ""])
        .fail(&at(1, 3, 2), &failed);
    queue.step(step.done_record("x", "7").fail(&of("y"), &Fail::to("waiting")).want(2));
    assert_eq!(
        shown(&queue.told()),
        [
            "waiting d prev=delayed",
            "completed 1 returnvalue=\"r\" prev=active",
            "completed 2 returnvalue=null prev=active",
            "failed 3 failedReason=boom prev=active",
            "retries-exhausted 3 attemptsMade=3",
            "completed x returnvalue=7 prev=active",
            "waiting y prev=active",
            "active 6 prev=waiting",
            "active d prev=waiting",
        ]
    );
}

#[test]
fn what_is_done_by_id_is_told() {
    let mut queue = TestQueue::with(Plan::new().frame(2).delayed("d", 5000));
    queue.told();
    run_once!(queue, UPDATE_JOB, 1001, "1", "progress", "{\"a\":1}");
    run_once!(queue, MOVE_DELAYED, 1002, "d", 0);
    run_once!(queue, REMOVE_JOB, 1003, "2", 0);
    run_once!(queue, PAUSE, 1004, 1);
    run_once!(queue, PAUSE, 1005, 0);
    assert_eq!(
        shown(&queue.told()),
        [
            "progress 1 data={\"a\":1}",
            "waiting d prev=delayed",
            "removed 2 prev=wait",
            "paused",
            "resumed",
        ]
    );
}

#[test]
fn places_count_up_without_a_gap_within_an_entry() {
    let mut queue = TestQueue::told_before(1);
    for now_ms in [1000, 1000, 999, 1001] {
        queue.add(now_ms, Plan::new().frame(2).record(""));
    }
    let ids: Vec<String> = queue.told().into_iter().map(|event| event.id).collect();
    let expected: Vec<String> = (1..=18)
        .map(|seq| format!("1000-{seq}"))
        .chain((1..=6).map(|seq| format!("1001-{seq}")))
        .collect();
    assert_eq!(ids, expected);
}
