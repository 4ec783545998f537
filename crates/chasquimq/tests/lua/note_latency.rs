//! What workers have measured is added up by minutes, hours and days.

use chasquimq::{msgpack::Packer, redis::call::library::NOTE_LATENCY};
use redis::Value;

use crate::{
    given::{
        plan::Plan,
        queue::{run, run_once, TestQueue},
    },
    obliterate::obliterate,
};

const DAY: i64 = 1440;
/// An empty array.
const NONE: &[u8] = &[0x90];

type Told = (Vec<u64>, Vec<u64>, Vec<u64>, u64);

/// One job of a step each in line and until its end, and two runs of another.
fn measured(minute: i64, step: i64) -> Vec<u8> {
    let mut packed = Packer::default();
    pack_times(packed.array(2).int(minute), step);
    packed.0
}

fn pack_times(packed: &mut Packer, step: i64) {
    packed.array(3);
    for (sum, step, jobs) in [(10, step, 1), (20, step + 1, 2), (30, step, 1)] {
        packed.array(3).int(sum).int(step).int(jobs);
    }
}

fn note(queue: &mut TestQueue, number: u64, minutes: &[u8]) {
    assert_eq!(run!(queue, &NOTE_LATENCY, "w", 0, number, minutes, NONE), "0");
}

/// The same of groups, each in one minute and with one step.
fn note_groups(queue: &mut TestQueue, number: u64, groups: &[(&str, i64, i64)]) {
    let mut packed = Packer::default();
    packed.array(3 * groups.len());
    for (group, minute, step) in groups {
        pack_times(packed.str(group).int(*minute), *step);
    }
    assert_eq!(run!(queue, &NOTE_LATENCY, "w", 0, number, NONE, &packed.0[..]), "0");
}

/// A field, as `sum:step=jobs,...` each; those of one text have their steps in the order in which they came.
fn field(queue: &mut TestQueue, name: &str) -> String {
    let Value::BulkString(raw) = queue.command("HGET", "latency", &[name]) else {
        return "-".into();
    };
    let (waiting, running, completion, _): Told = rmp_serde::from_slice(&raw).expect("times");
    shown(waiting, running, completion)
}

fn field_of(queue: &mut TestQueue, group: &str, name: &str) -> String {
    let Value::BulkString(raw) = queue.command("HGET", &format!("group-latency:{group}"), &[name]) else {
        return "-".into();
    };
    let (waiting, running, completion): (Vec<u64>, Vec<u64>, Vec<u64>) = rmp_serde::from_slice(&raw).expect("times");
    shown(waiting, running, completion)
}

fn shown(waiting: Vec<u64>, running: Vec<u64>, completion: Vec<u64>) -> String {
    let shown = [waiting, running, completion].map(|of| {
        let steps: Vec<_> = of[1..]
            .chunks(2)
            .map(|pair| format!("{}={}", pair[0], pair[1]))
            .collect();
        format!("{}:{}", of[0], steps.join(","))
    });
    shown.join(" ")
}

fn fields(queue: &mut TestQueue) -> String {
    fields_in(queue, "latency")
}

fn fields_in(queue: &mut TestQueue, key: &str) -> String {
    let mut names: Vec<String> = redis::from_redis_value(queue.command("HKEYS", key, &[])).expect("names");
    names.sort();
    names.join(" ")
}

/// Groups that are known, by name, and those of which anything is kept.
fn groups(queue: &mut TestQueue) -> (Vec<String>, Vec<String>) {
    let mut known: Vec<_> =
        redis::from_redis_value(queue.command("ZRANGE", "groups-measured", &["0", "-1"])).expect("names");
    known.sort();
    let suffixes = queue.probe.suffixes();
    let kept = suffixes
        .iter()
        .filter_map(|key| key.strip_prefix("group-latency:").map(str::to_owned));
    (known, kept.collect())
}

#[test]
fn a_minute_counts_for_its_hour_its_day_and_all() {
    let mut queue = TestQueue::fresh();
    note(&mut queue, 1, &measured(DAY + 61, 4));
    assert_eq!(fields(&mut queue), "all d1 h25 id m1501");
    for name in ["all", "d1", "h25", "m1501"] {
        assert_eq!(field(&mut queue, name), "10:4=1 20:5=2 30:4=1");
    }
    note(&mut queue, 2, &measured(DAY + 62, 5));
    assert_eq!(field(&mut queue, "m1502"), "10:5=1 20:6=2 30:5=1");
    for name in ["all", "d1", "h25"] {
        assert_eq!(field(&mut queue, name), "20:4=1,5=1 40:5=2,6=2 60:4=1,5=1");
    }
    note(&mut queue, 3, &measured(DAY + 62, 5));
    assert_eq!(field(&mut queue, "m1502"), "20:5=2 40:6=4 60:5=2");
}

#[test]
fn a_call_that_is_sent_again_counts_once() {
    let mut queue = TestQueue::fresh();
    for _ in 0..2 {
        note(&mut queue, 1, &measured(DAY, 4));
    }
    assert_eq!(field(&mut queue, "all"), "10:4=1 20:5=2 30:4=1");
}

#[test]
fn old_ones_go_when_an_hour_begins_and_all_with_the_last_day() {
    let mut queue = TestQueue::fresh();
    note(&mut queue, 1, &measured(0, 4));
    note(&mut queue, 2, &measured(59, 4));
    note(&mut queue, 3, &measured(180, 4));
    assert_eq!(fields(&mut queue), "all d0 h0 h3 id m0 m180 m59");
    note(&mut queue, 4, &measured(241, 4));
    assert_eq!(fields(&mut queue), "all d0 h0 h3 h4 id m180 m241");
    note(&mut queue, 5, &measured(93 * DAY, 4));
    assert_eq!(fields(&mut queue), "all d93 h2232 id m133920");
    assert!(field(&mut queue, "all").starts_with("50:4=5"));
    let Value::Int(left) = queue.command("PTTL", "latency", &[]) else {
        panic!("no time");
    };
    assert!(left > 91 * 86_400_000, "{left}");
}

#[test]
fn jobs_that_were_added_count_since_the_last_note() {
    let added = |queue: &mut TestQueue, name: &str| {
        let raw: Vec<u8> = redis::from_redis_value(queue.command("HGET", "latency", &[name])).expect("a field");
        rmp_serde::from_slice::<Told>(&raw).expect("times").3
    };
    let mut queue = TestQueue::with(Plan::new().frame(3));
    note(&mut queue, 1, &measured(DAY, 4));
    assert_eq!(added(&mut queue, "all"), 0);
    queue.add(1000, Plan::new().frame(5).record("x"));
    for _ in 0..2 {
        note(&mut queue, 2, &measured(DAY + 1, 4));
    }
    let fields = ["m1440", "m1441", "h24", "all"].map(|name| added(&mut queue, name));
    assert_eq!(fields, [0, 6, 6, 6]);
    queue.command("HSET", "latency", &["id", "garbage"]);
    note(&mut queue, 3, &measured(DAY + 1, 4));
    assert_eq!(added(&mut queue, "all"), 6);
}

#[test]
fn what_cannot_be_read_begins_anew() {
    for garbage in ["", "garbage", "\u{91}", "\u{93}\u{1}\u{2}\u{3}"] {
        let mut queue = TestQueue::fresh();
        queue.command("HSET", "latency", &["all", garbage, "m1440", garbage]);
        note(&mut queue, 1, &measured(DAY, 4));
        assert_eq!(field(&mut queue, "all"), "10:4=1 20:5=2 30:4=1");
        assert_eq!(field(&mut queue, "m1440"), "10:4=1 20:5=2 30:4=1");
    }
}

#[test]
fn a_hash_of_every_minute_hour_and_day_is_added_to_in_no_time() {
    let mut queue = TestQueue::fresh();
    let mut number = 0;
    for minute in (0..92 * DAY).step_by(720).chain(92 * DAY - 180..92 * DAY) {
        number += 1;
        note(&mut queue, number, &measured(minute, minute % 59));
    }
    let Value::Int(many) = queue.command("HLEN", "latency", &[]) else {
        panic!("no number");
    };
    assert!(many < 180 + 61 + 192 + 94 + 2, "{many}");
}

#[test]
fn groups_are_told_apart_by_five_minutes_hours_and_days() {
    let mut queue = TestQueue::fresh();
    note_groups(&mut queue, 1, &[("a", DAY + 60, 4), ("b", DAY + 60, 6)]);
    for _ in 0..2 {
        note_groups(&mut queue, 2, &[("a", DAY + 65, 5)]);
    }
    // what groups tell counts for no queue
    assert_eq!(fields(&mut queue), "");
    assert_eq!(fields_in(&mut queue, "group-latency:a"), "d1 f300 f301 h25");
    assert_eq!(field_of(&mut queue, "a", "f300"), "10:4=1 20:5=2 30:4=1");
    assert_eq!(field_of(&mut queue, "a", "f301"), "10:5=1 20:6=2 30:5=1");
    for name in ["h25", "d1"] {
        assert_eq!(field_of(&mut queue, "a", name), "20:4=1,5=1 40:5=2,6=2 60:4=1,5=1");
        assert_eq!(field_of(&mut queue, "b", name), "10:6=1 20:7=2 30:6=1");
    }
    for (key, days) in [("group-latency:a", 16), ("groups-measured", 17)] {
        let Value::Int(left) = queue.command("PTTL", key, &[]) else {
            panic!("no time");
        };
        assert!((days - 1..=days).contains(&(left / 86_400_000)), "{left}");
    }
}

#[test]
fn old_times_of_groups_and_groups_whose_key_has_expired_go() {
    let mut queue = TestQueue::fresh();
    note_groups(&mut queue, 1, &[("a", 0, 4), ("b", 0, 4), ("c", DAY, 4)]);
    note_groups(&mut queue, 2, &[("a", 240, 4)]);
    assert_eq!(fields_in(&mut queue, "group-latency:a"), "d0 f48 h0 h4");
    note_groups(&mut queue, 3, &[("a", 17 * DAY, 4)]);
    assert_eq!(fields_in(&mut queue, "group-latency:a"), "d17 f4896 h408");
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(groups(&mut queue).0, all(&["a", "c"]));
    note_groups(&mut queue, 4, &[("a", 18 * DAY, 4)]);
    assert_eq!(groups(&mut queue).0, all(&["a"]));
}

#[test]
fn what_is_known_of_a_group_goes_with_it_and_with_the_queue() {
    let mut queue = TestQueue::with(Plan::new().grouped("x", "w", 0));
    let names: Vec<String> = (0..7).map(|group| group.to_string()).collect();
    let told: Vec<_> = names.iter().map(|name| (name.as_str(), DAY, 4)).collect();
    note_groups(&mut queue, 1, &told);
    assert_eq!(groups(&mut queue), (names.clone(), names.clone()));
    run_once!(queue, SET_GROUP, 1000, "0", "forget", "", "");
    assert_eq!(groups(&mut queue), (names[1..].to_vec(), names[1..].to_vec()));
    run_once!(queue, PAUSE, 1000, 1);
    let mut steps = 0;
    while obliterate(&mut queue, 2, 0) != Value::Int(0) {
        steps += 1;
        assert_eq!(groups(&mut queue).0.len(), 6_usize.saturating_sub(2 * steps));
        assert_eq!(groups(&mut queue).1, groups(&mut queue).0);
    }
    assert!((4..9).contains(&steps), "{steps}");
}

#[test]
fn what_cannot_be_read_of_a_group_begins_anew() {
    for garbage in ["", "garbage", "\u{91}", "\u{93}\u{1}\u{2}\u{3}"] {
        let mut queue = TestQueue::fresh();
        queue.command("HSET", "group-latency:a", &["h24", garbage, "f288", garbage]);
        note_groups(&mut queue, 1, &[("a", DAY, 4)]);
        for name in ["f288", "h24", "d1"] {
            assert_eq!(field_of(&mut queue, "a", name), "10:4=1 20:5=2 30:4=1");
        }
    }
}
