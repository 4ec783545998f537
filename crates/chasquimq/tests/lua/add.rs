//! new -> waiting | prioritized | delayed

use chasquimq::Deduplication;

use crate::{
    given::{
        plan::Plan,
        queue::{run, run_once, Forbidden, TestQueue},
        step::Step,
        tree::Tree,
    },
    probe::snapshot::STATE_FIELDS,
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
    queue.events_are("[B [x] 1 [a] waiting] [B 2 1 a waiting] [A 3 2 a] [B [y] 1 [a] waiting] [B [z] 1 [a] waiting]");
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
    queue.events_are("[B [b] 1 [a] delayed [2000]] [B [a] 1 [a] delayed [2000]] [B 3 1 a delayed [1500]]");
    queue.add(1000, Plan::new().delayed("c", 2000));
    queue.key_is("delayed", "3@1500+0 b@2000+0 a@2000+1 c@2000+2");
}

#[test]
fn jobs_with_a_priority_are_ranked_by_it_then_by_arrival() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new().run(&[3, 1, 3]).frame(2).prioritized("x", 1).run(&[-1]);
    assert_eq!(queue.add(1000, plan), "[1 [5 x]]");
    queue.keys_are(
        "jobs: 1=[7 {} a 1 3] 2=[7 {} a 1 1] 3=[7 {} a 1 3] 7=[7 {} a 1 -1] x=[7 {} a 1 1]
         log: 4-2
         prioritized: 7@-1+5 2@1+2 x@1+4 1@3+1 3@3+3
         state: id=7 waiting=2
         wake: set",
    );
    queue.events_are("[B 1 3 a waiting] [A 4 2 a] [B [x] 1 [a] waiting] [B 7 1 a waiting]");
    queue.add(1000, Plan::new().run(&[1]));
    queue.key_is("prioritized", "7@-1+5 2@1+2 x@1+4 8@1+6 1@3+1 3@3+3");
}

#[test]
fn places_begin_again_before_they_reach_the_next_priority() {
    let mut queue = TestQueue::with(Plan::new().run(&[1, 2]));
    let field = STATE_FIELDS.iter().position(|name| *name == "place").expect("field");
    let last_but_one = f64::from(u32::MAX - 2).to_le_bytes();
    let mut set = redis::cmd("SETRANGE");
    set.arg(queue.probe.keys.key("state")).arg(8 * field).arg(&last_but_one);
    set.exec(&mut queue.probe.connection).expect("set");
    queue.add(1000, Plan::new().run(&[1, 1]));
    queue.add(1000, Plan::new().prioritized("x", 1));
    queue.key_is("prioritized", "1@1+1 x@1+1 3@1+4278190078 4@1+4278190079 2@2+2");
}

#[test]
fn a_job_with_a_priority_wakes_a_worker() {
    let mut queue = TestQueue::with(Plan::new().run(&[3]));
    queue.key_is("wake", "set");
}

#[test]
fn jobs_of_a_batch_go_to_the_front_one_after_the_other() {
    let mut queue = TestQueue::with(Plan::new().front("a").frame(1).front("b"));
    queue.key_is("front", "b a");
    queue.add(1000, Plan::new().front("c"));
    queue.key_is("front", "c b a");
    queue.key_is("state", "id=4 waiting=4");
}

#[test]
fn order_within_a_millisecond_outlasts_its_numbers() {
    let mut queue = TestQueue::with(Plan::new().delayed("first", 2000));
    // order numbers start again beyond 3000
    let many = (0..3001).fold(Plan::new(), |plan, _| plan.delayed("", 5000));
    queue.add(1000, many);
    queue.add(
        1000,
        Plan::new()
            .delayed("second", 2000)
            .delayed("third", 2000)
            .delayed("b", 9000),
    );
    queue.add(1000, Plan::new().delayed("fourth", 2000).delayed("a", 9000));
    let delayed: Vec<String> = redis::from_redis_value(queue.command("ZRANGE", "delayed", &["0", "3"])).expect("ids");
    assert_eq!(delayed, ["first", "second", "third", "fourth"]);
    let last: Vec<String> = redis::from_redis_value(queue.command("ZRANGE", "delayed", &["-2", "-1"])).expect("ids");
    assert_eq!(last, ["b", "a"]);
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
    queue.events_are("[B [y] 1 [a] waiting] [X duplicated [x y]]");
}

#[test]
fn a_batch_sent_again_is_added_once() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new().frame(3).record("x").delayed("y", 2000).run(&[1]);
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
        let mut call = queue.call(&chasquimq::redis::call::library::ADD);
        call.arg(1000).arg(client).arg(slot).arg(1);
        Plan::new().frame(1).append_to(&mut call);
        queue.carry_out(&call);
    }
    queue.key_is("state", "id=3 waiting=3");
    assert_eq!(run!(queue, COUNT_JOBS), "[3 0 0 0 0 0 0]");
}

#[test]
fn events_of_an_earlier_time_follow_the_last_one() {
    let mut queue = TestQueue::told_before(1);
    for now_ms in [1000, 900, 1000, 1001] {
        queue.add(now_ms, Plan::new().frame(2));
    }
    let ids: Vec<(u64, u64)> = queue.probe.snapshot().events.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [(1000, 4), (1000, 8), (1000, 12), (1001, 4)]);
}

#[test]
fn the_servers_clock_gives_events_their_place_where_that_of_the_caller_may_be_far_from_it() {
    let place = |queue: &mut TestQueue, now_ms: u64| {
        queue.add(now_ms, Plan::new().frame(1));
        queue.probe.snapshot().events.iter().last().expect("an event").0 .0
    };
    // of a queue without data
    let mut queue = TestQueue::fresh();
    let first = place(&mut queue, 1000);
    assert!(first > 1_700_000_000_000);
    // within a minute the caller's counts
    assert_eq!(place(&mut queue, first + 60_000), first + 60_000);
    assert_eq!(place(&mut queue, first + 120_001), first + 60_000);
    let mut queue = TestQueue::told_before(1000);
    assert_eq!(place(&mut queue, 61_000), 61_000);
    assert!(place(&mut queue, 121_001) >= first);
}

pub fn by(id: &str) -> Deduplication {
    Deduplication::of(id)
}

#[test]
fn a_job_yields_to_the_owner_of_its_deduplication_id() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new()
        .deduplicated("", 0, &by("d"))
        .deduplicated("", 0, &by("d"))
        .frame(1)
        .deduplicated("x", 0, &by("d"));
    assert_eq!(queue.add(1000, plan), "[1 [1 1 3 1]]");
    queue.keys_are(
        "de:d: 1
         jobs: 1=[7 {} a 1]
         log: 1-r1(1) 3-1
         state: id=4 waiting=2 references=1
         vitals: 1={di:d}
         wake: set",
    );
    queue.events_are(
        "[B [1] 1 a waiting] [X deduplicated [1] deduplicationId d deduplicatedJobId 2] [A 3 1 a] \
         [X deduplicated [1] deduplicationId d deduplicatedJobId x]",
    );
}

#[test]
fn a_deduplicated_batch_sent_again_is_answered_from_memory() {
    let mut queue = TestQueue::fresh();
    let plan = Plan::new().deduplicated("", 0, &by("d")).deduplicated("", 0, &by("d"));
    let reply = queue.add_numbered(1000, 9, &plan);
    queue.skip_events();
    assert_eq!(queue.add_numbered(1000, 9, &plan), reply);
    queue.events_are("");
}

#[test]
fn an_owner_with_a_time_is_owner_as_long() {
    let mut queue = TestQueue::fresh();
    let short = Deduplication {
        ttl_ms: 60_000,
        ..by("d")
    };
    queue.add(1000, Plan::new().deduplicated("x", 0, &short));
    queue.key_is("de:d", "x...");
    let longer = Deduplication {
        ttl_ms: 120_000,
        extend: true,
        ..by("d")
    };
    queue.add(1000, Plan::new().deduplicated("y", 0, &longer));
    let left = queue.command("PTTL", "de:d", &[]);
    assert!(matches!(left, redis::Value::Int(left) if left > 60_000), "{left:?}");
}

#[test]
fn an_owner_that_does_not_exist_is_none_unless_it_has_a_time() {
    let mut queue = TestQueue::fresh();
    queue.command("SET", "de:d", &["lost"]);
    queue.command("SET", "de:e", &["gone", "PX", "60000"]);
    let plan = Plan::new()
        .deduplicated("x", 0, &by("d"))
        .deduplicated("y", 0, &by("e"));
    assert_eq!(queue.add(1000, plan), "[1 [0 x 1 gone]]");
    queue.key_is("de:d", "x");
    queue.key_is("jobs", "x=[7 {} a 1]");
}

#[test]
fn a_delayed_owner_is_replaced() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 2000, &by("d")));
    run_once!(queue, LOG_JOB; "x", "row", 0);
    queue.skip_events();
    let replace = Deduplication {
        replace: true,
        ..by("d")
    };
    // once more in the same batch: the second gives way to the third
    let plan = Plan::new()
        .deduplicated("y", 3000, &replace)
        .deduplicated("z", 4000, &replace);
    assert_eq!(queue.add(1000, plan), "[2 [0 y 1 z]]");
    queue.keys_are(
        "de:d: z
         delayed: z@4000+0
         jobs: z=[7 {} a 1]
         state: id=3
         vitals: z={di:d}
         wake: set",
    );
    queue.events_are(
        "[X removed [x] prev delayed] [X deduplicated [y] deduplicationId d deduplicatedJobId x] [B [y] 1 a delayed [3000]] \
         [X removed [y] prev delayed] [X deduplicated [z] deduplicationId d deduplicatedJobId y] [B [z] 1 a delayed [4000]]",
    );
}

#[test]
fn the_time_of_a_replaced_owner_goes_on() {
    let mut queue = TestQueue::with(Plan::new().deduplicated(
        "x",
        2000,
        &Deduplication {
            ttl_ms: 60_000,
            ..by("d")
        },
    ));
    queue.add(
        1000,
        Plan::new().deduplicated(
            "y",
            2000,
            &Deduplication {
                replace: true,
                ttl_ms: 90_000,
                ..by("d")
            },
        ),
    );
    queue.key_is("de:d", "y...");
    let replace = Deduplication {
        replace: true,
        extend: true,
        ..by("d")
    };
    queue.add(1000, Plan::new().deduplicated("z", 2000, &replace));
    queue.key_is("de:d", "z");
}

#[test]
fn a_delayed_owner_is_rescheduled() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 2000, &by("d")));
    queue.skip_events();
    queue.command("DEL", "wake", &[]);
    let reschedule = Deduplication {
        reschedule: true,
        ..by("d")
    };
    assert_eq!(
        queue.add(1000, Plan::new().deduplicated("y", 1500, &reschedule)),
        "[2 [0 x]]"
    );
    queue.keys_are(
        "de:d: x
         delayed: x@1500+1
         jobs: x=[7 {} a 1]
         state: id=2
         vitals: x={d:1493 di:d}
         wake: set",
    );
    queue.events_are("[X deduplicated [x] deduplicationId d deduplicatedJobId y] [X delayed [x] delay [1500]]");
}

#[test]
fn the_latest_add_stays_with_its_active_owner() {
    let mut queue = TestQueue::with(Plan::new().deduplicated("x", 0, &by("d")));
    queue.step(Step::by("w").want(1));
    queue.skip_events();
    let keep = Deduplication {
        keep_last_if_active: true,
        ..by("d")
    };
    let plan = Plan::new().deduplicated("y", 0, &keep).deduplicated("", 2000, &keep);
    assert_eq!(queue.add(1000, plan), "[2 [0 x 1 x]]");
    queue.key_is("de:d", "x");
    queue.key_is("jobs", "x=[7 {} a 1]");
    queue.key_is("delayed", "(none)");
    queue.events_are(
        "[X deduplicated [x] deduplicationId d deduplicatedJobId y] [X deduplicated [x] deduplicationId d deduplicatedJobId 3]",
    );
}

#[test]
fn a_refused_batch_changes_nothing() {
    let plan = || {
        let plan = Plan::new().frame(2).record("x").delayed("y", 2000).front("z");
        plan.deduplicated("d", 0, &by("d")).frame(1)
    };
    for command in ["set", "xadd", "zadd", "hset", "lpush"] {
        let mut queue = TestQueue::with(Plan::new().frame(1));
        let keys = queue.show();
        let mut call = queue.call(&chasquimq::redis::call::library::ADD);
        call.arg(1000).arg("c").arg(0).arg(50);
        plan().append_to(&mut call);
        let refused = call
            .exec(&mut Forbidden::command(command).connection)
            .expect_err(command);
        assert_eq!(refused.code(), Some("NOPERM"));
        assert!(refused.to_string().contains(&format!("'{command}'")), "{refused}");
        queue.keys_are(&keys);
        assert_eq!(queue.add(1000, plan()), "[2 [2 x 3 y 4 z 5 d]]");
    }
}

#[test]
fn a_batch_is_refused_for_what_it_needs_alone() {
    for (plan, is_refused) in [
        (Plan::new().delayed("y", 2000), false),
        (Plan::new().record("y").prioritized("p", 1), false),
        (Plan::new().delayed("y", 2000).front("z"), true),
    ] {
        let queue = TestQueue::with(Plan::new().frame(1));
        let mut call = queue.call(&chasquimq::redis::call::library::ADD);
        call.arg(1000).arg("c").arg(0).arg(50);
        plan.append_to(&mut call);
        let done = call.exec(&mut Forbidden::command("lpush").connection);
        assert_eq!(done.is_err(), is_refused, "{done:?}");
    }
}

#[test]
fn a_key_of_another_type_refuses_the_whole_of_it() {
    for suffix in ["front", "jobs", "delayed", "prioritized", "wake"] {
        let mut queue = TestQueue::with(Plan::new().frame(1));
        queue.command("DEL", suffix, &[]);
        queue.command("SET", suffix, &["foreign"]);
        let state: Vec<u8> = redis::from_redis_value(queue.command("GET", "state", &[])).expect("a state");
        let number = queue.next_number();
        let mut call = queue.call(&chasquimq::redis::call::library::ADD);
        call.arg(1000).arg("c").arg(0).arg(number);
        let plan = Plan::new()
            .frame(2)
            .record("x")
            .front("y")
            .delayed("d", 5000)
            .prioritized("p", 1);
        plan.append_to(&mut call);
        let refused = call.query::<redis::Value>(&mut queue.probe.connection);
        let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
        let key = queue.probe.keys.key(suffix);
        assert!(
            told.contains("WRONGTYPE") && told.contains(&format!("Key {key} holds a string")),
            "{told}"
        );
        let after: Vec<u8> = redis::from_redis_value(queue.command("GET", "state", &[])).expect("a state");
        assert_eq!(state, after, "{suffix}");
        // once the key is free the same call is carried out
        queue.command("DEL", suffix, &[]);
        call.query::<redis::Value>(&mut queue.probe.connection).expect("an add");
    }
}

#[test]
fn all_that_waits_counts_for_the_maximum_length() {
    let mut queue = TestQueue::with(Plan::new().frame(2).record("x").delayed("d", 5000).prioritized("p", 3));
    queue.add_flows(1000, &Tree::new().root("r").child("r", "c"));
    run_once!(queue, SET_LIMIT; "length", 9, "");
    queue.skip_events();
    let keys = queue.show();
    let plan = || Plan::new().frame(1).record("y").delayed("", 9000);
    assert_eq!(queue.add(1000, plan()), "[-12 3 7 9]");
    queue.keys_are(&keys);
    queue.events_are("");
    // active jobs wait no more
    queue.step(Step::by("w").want(1));
    assert_eq!(queue.add(1000, plan()), "[8 [1 y]]");
    assert_eq!(queue.add(1000, Plan::new().record("z")), "[-12 1 9 9]");
}

/// Plans of a single record.
const SINGLES: [fn() -> Plan; 10] = [
    || Plan::new().record("x"),
    || Plan::new().delayed("x", 2000),
    || Plan::new().delayed("", 2000),
    || Plan::new().prioritized("x", 3),
    || Plan::new().run(&[3]),
    || Plan::new().delayed_prioritized("x", 2000, 3),
    || Plan::new().deduplicated("", 0, &by("d")),
    || Plan::new().deduplicated("x", 2000, &by("d")),
    || Plan::new().deduplicated_prioritized("x", 0, &by("d"), 3),
    || Plan::new().front("x"),
];

#[test]
fn a_single_record_is_added_as_any_jobs() {
    // the first job of its queue, and not
    let grounds: [fn() -> Plan; 2] = [
        || Plan::new().frame(1),
        || Plan::new().frame(1).delayed("later", 9000).prioritized("p", 1),
    ];
    for (plan, ground) in SINGLES.iter().flat_map(|plan| grounds.map(|ground| (plan, ground))) {
        let [single, among_others] = [true, false].map(|is_single| {
            let mut queue = TestQueue::with(ground());
            queue.skip_events();
            let reply = match is_single {
                true => queue.add(1001, plan()),
                false => queue.add(1001, plan().behind_no_jobs()),
            };
            (reply, queue.show(), queue.events())
        });
        assert_eq!(single, among_others);
    }
}

#[test]
fn a_single_record_is_refused_as_a_whole() {
    for plan in SINGLES {
        for command in ["set", "xadd", "zadd", "hset"] {
            let mut queue = TestQueue::with(Plan::new().frame(1));
            let keys = queue.show();
            let mut call = queue.call(&chasquimq::redis::call::library::ADD);
            call.arg(1000).arg("c").arg(0).arg(50);
            plan().append_to(&mut call);
            let refused = call.exec(&mut Forbidden::command(command).connection);
            assert_eq!(refused.expect_err(command).code(), Some("NOPERM"));
            queue.keys_are(&keys);
        }
    }
}

#[test]
fn a_single_record_leaves_nothing_where_a_key_is_not_the_queues() {
    for (plan, suffix) in [
        (Plan::new().record("x"), "jobs"),
        (Plan::new().delayed("", 2000), "jobs"),
        (Plan::new().record("x"), "wake"),
        (Plan::new().delayed("x", 2000), "delayed"),
        (Plan::new().prioritized("x", 3), "prioritized"),
        (Plan::new().deduplicated("x", 2000, &by("d")), "delayed"),
    ] {
        let mut queue = TestQueue::with(Plan::new().frame(1));
        queue.command("DEL", suffix, &[]);
        queue.command("SET", suffix, &["foreign"]);
        let mut call = queue.call(&chasquimq::redis::call::library::ADD);
        call.arg(1000).arg("c").arg(0).arg(50);
        plan.append_to(&mut call);
        let refused = call.query::<redis::Value>(&mut queue.probe.connection);
        let told = refused.expect_err(suffix).to_string();
        let key = queue.probe.keys.key(suffix);
        assert!(
            told.contains("WRONGTYPE") && told.contains(&format!("Key {key} holds a string")),
            "{told}"
        );
        for left in ["jobs", "vitals", "de:d"].into_iter().filter(|left| *left != suffix) {
            assert_eq!(
                queue.command("EXISTS", left, &[]),
                redis::Value::Int(0),
                "{suffix}: {left}"
            );
        }
        queue.command("DEL", suffix, &[]);
        call.query::<redis::Value>(&mut queue.probe.connection).expect("an add");
    }
}

#[test]
fn a_single_record_that_exists_is_told_as_a_duplicate() {
    let mut queue = TestQueue::with(Plan::new().record("x"));
    for plan in [
        Plan::new().record("x"),
        Plan::new().delayed("x", 2000),
        Plan::new().prioritized("x", 3),
    ] {
        queue.skip_events();
        queue.add(1001, plan);
        queue.events_are("[X duplicated [x]]");
    }
}
