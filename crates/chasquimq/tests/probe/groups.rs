//! What must hold between the keys of a queue's groups (`lua/states/groups.lua`).

use std::collections::{BTreeMap, BTreeSet};

use super::{check::Wrong, snapshot::Snapshot, tree::Tree};

/// The sets of which each group with jobs is in one.
pub const STATUSES: [&str; 4] = ["groups", "groups-limited", "groups-maxed", "groups-paused"];

/// The group in a record's body.
fn group_of(body: &[u8]) -> Option<String> {
    match Tree::one(body) {
        Tree::Array(items) if items.len() == 6 => Some(items[5].string()),
        _ => None,
    }
}

/// Groups are in one set each, and have the jobs that are in them; active jobs are counted.
pub(super) fn groups(snapshot: &Snapshot, wrong: &mut Wrong) {
    let mut sets: BTreeMap<&String, Vec<&str>> = BTreeMap::new();
    for status in STATUSES {
        for (group, _) in snapshot.set(status) {
            sets.entry(group).or_default().push(status);
        }
    }
    for (group, statuses) in &sets {
        wrong.unless(statuses.len() == 1, || format!("group {group} is in {statuses:?}"));
    }
    let mut grouped = BTreeSet::new();
    for (group, jobs) in &snapshot.in_groups {
        wrong.unless(!jobs.is_empty(), || format!("group {group} has no jobs"));
        for (id, _) in jobs {
            wrong.unless(grouped.insert(id.clone()), || format!("job {id} is in several groups"));
            let of_body = snapshot.hash("jobs").get(id).and_then(|body| group_of(body));
            wrong.unless_equal(&format!("group of {id}"), Some(group.clone()), of_body);
        }
    }
    let listed: BTreeSet<String> = snapshot.set("grouped").iter().map(|(id, _)| id.clone()).collect();
    wrong.unless_equal("grouped", listed, grouped);
    let mut active: BTreeMap<String, u64> = BTreeMap::new();
    for raw in snapshot.hash("active").values() {
        if let Some(group) = Tree::one(raw).items().get(6) {
            *active.entry(group.string()).or_default() += 1;
        }
    }
    wrong.unless_equal("group-active", snapshot.counts("group-active"), active);
}
