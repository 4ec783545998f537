//! What parents know of their children.

use chasquimq::msgpack::Packer;

use super::read_jobs::by_ids;
use crate::given::queue::{run, show_reply, TestQueue};

pub fn pages(pages: &[(&str, i64, i64)]) -> Vec<u8> {
    let mut packed = Packer::default();
    packed.array(3 * pages.len());
    for (kind, cursor, count) in pages {
        packed.str(kind).int(*cursor).int(*count);
    }
    packed.0
}

pub const WHOLE: [(&str, i64, i64); 4] = [
    ("processed", 0, 0),
    ("children", 0, 0),
    ("ignored", 0, 0),
    ("faults", 0, 0),
];

fn family() -> TestQueue {
    let mut queue = TestQueue::fresh();
    queue.command("SADD", "children:p", &["bull:q:a"]);
    queue.command("HSET", "processed:p", &["bull:q:b", "1"]);
    queue.command("HSET", "ignored:p", &["bull:q:c", "bad"]);
    queue.command("ZADD", "faults:p", &["7", "bull:q:d", "8", "bull:q:e", "9", "bull:q:f"]);
    queue
}

pub fn read(queue: &mut TestQueue, ids: &[&str], wanted: &[(&str, i64, i64)]) -> String {
    let mut call = queue.call(&chasquimq::redis::call::library::READ_DEPENDENCIES);
    call.arg(by_ids(ids)).arg(pages(wanted));
    show_reply(&queue.carry_out_unchecked(&call))
}

#[test]
fn a_small_kind_comes_whole() {
    let mut queue = family();
    assert_eq!(read(&mut queue, &["p"], &[("processed", 0, 1)]), "[0 [bull:q:b 1]]");
}

#[test]
fn a_job_without_children_has_none_of_any_kind() {
    let mut queue = TestQueue::fresh();
    assert_eq!(
        run!(queue, READ_DEPENDENCIES, by_ids(&["p"]), pages(&WHOLE)),
        "[0 [] 0 [] 0 [] 0 []]"
    );
    queue.keys_are("");
}

#[test]
fn each_kind_is_given_whole() {
    let mut queue = family();
    assert_eq!(
        read(&mut queue, &["p"], &WHOLE),
        "[0 [bull:q:b 1] 0 [bull:q:a] 0 [bull:q:c bad] 0 [bull:q:d bull:q:e bull:q:f]]"
    );
}

#[test]
fn failed_children_are_paged_by_rank() {
    let mut queue = family();
    assert_eq!(read(&mut queue, &["p"], &[("faults", 0, 2)]), "[2 [bull:q:d bull:q:e]]");
    assert_eq!(read(&mut queue, &["p"], &[("faults", 2, 4)]), "[6 [bull:q:f]]");
    assert_eq!(read(&mut queue, &["p"], &[("faults", 9, 4)]), "[13 []]");
}

#[test]
fn only_numbers_are_given_when_they_are_asked_for() {
    let mut queue = family();
    let numbers = read(&mut queue, &["p", "nobody"], &[("faults", 0, -1), ("children", 0, -1)]);
    assert_eq!(numbers, "[3 [] 1 [] 0 [] 0 []]");
}

#[test]
fn a_large_kind_is_paged_by_a_scan() {
    let mut queue = TestQueue::fresh();
    let keys: Vec<String> = (0..2000).map(|i| format!("bull:q:{i}")).collect();
    queue.command(
        "SADD",
        "children:p",
        &keys.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let (mut cursor, mut seen, mut calls) = (0, std::collections::BTreeSet::new(), 0);
    loop {
        let mut call = queue.call(&chasquimq::redis::call::library::READ_DEPENDENCIES);
        call.arg(by_ids(&["p"])).arg(pages(&[("children", cursor, 100)]));
        let (next, page): (i64, Vec<String>) =
            redis::from_redis_value(queue.carry_out_unchecked(&call)).expect("a page");
        seen.extend(page);
        calls += 1;
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(seen.len(), 2000);
    assert!(calls > 5);
}

#[test]
fn all_of_very_many_come_a_thousand_a_call() {
    let mut queue = TestQueue::fresh();
    let keys: Vec<String> = (0..2500).map(|i| format!("bull:q:{i}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    queue.command("SADD", "children:p", &keys);
    let failed: Vec<String> = keys
        .iter()
        .flat_map(|key| ["7".to_owned(), format!("{key}f")])
        .collect();
    let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
    queue.command("ZADD", "faults:p", &failed);
    let pairs: Vec<&str> = keys.iter().flat_map(|key| [*key, "1"]).collect();
    queue.command("HSET", "processed:p", &pairs);
    for n in 0..30 {
        queue.command("SADD", "spans:p", &[&format!("{}+64 bull:q:u-", 1 + 64 * n)]);
    }
    for (kind, width, count) in [
        ("children", 1, 2500 + 30 * 64),
        ("faults", 1, 2500),
        ("processed", 2, 2500),
    ] {
        let (mut cursor, mut seen, mut calls) = (0, std::collections::BTreeSet::new(), 0);
        while calls == 0 || cursor != 0 {
            let mut call = queue.call(&chasquimq::redis::call::library::READ_DEPENDENCIES);
            call.arg(by_ids(&["p"])).arg(pages(&[(kind, cursor, 0)]));
            let (next, page): (i64, Vec<String>) =
                redis::from_redis_value(queue.carry_out_unchecked(&call)).expect("a page");
            assert!(page.len() / width <= 1100, "{kind}: {} at once", page.len());
            seen.extend(page.into_iter().step_by(width));
            calls += 1;
            cursor = next;
        }
        assert_eq!(seen.len(), count, "{kind}");
    }
}
