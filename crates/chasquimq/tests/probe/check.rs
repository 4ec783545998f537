//! What must hold between the keys of a queue after every script call, whatever was done before.

use std::collections::{BTreeMap, BTreeSet};

use chasquimq::frame::Frame;

use super::{
    groups,
    snapshot::{Content, Snapshot, REFERENCE_SEQ},
    tree::Tree,
};

/// Checks a snapshot of the queue of this name; the error names everything that is wrong.
pub fn check(snapshot: &Snapshot, qualified_name: &str) -> Result<(), String> {
    let mut wrong = Wrong(Vec::new());
    let frames = log(snapshot, &mut wrong);
    holes(snapshot, &frames, &mut wrong);
    taken(snapshot, &frames, &mut wrong);
    gone(snapshot, &mut wrong);
    places(snapshot, &frames, &mut wrong);
    groups::groups(snapshot, &mut wrong);
    families(snapshot, &frames, qualified_name, &mut wrong);
    schedulers(snapshot, &mut wrong);
    large(snapshot, &mut wrong);
    wrong.unless_equal("apart", snapshot.state("apart"), snapshot.apart.len() as u64);
    settings(snapshot, &mut wrong);
    events(snapshot, &mut wrong);
    if wrong.0.is_empty() {
        Ok(())
    } else {
        Err(wrong.0.join("\n"))
    }
}

pub(super) struct Wrong(Vec<String>);

impl Wrong {
    pub(super) fn unless(&mut self, right: bool, say: impl FnOnce() -> String) {
        if !right {
            self.0.push(say());
        }
    }

    pub(super) fn unless_equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, stored: T, counted: T) {
        self.unless(stored == counted, || {
            format!("{what}: stored {stored:?}, counted {counted:?}")
        });
    }
}

/// Settings that limit starts are not overlooked.
fn settings(snapshot: &Snapshot, wrong: &mut Wrong) {
    if snapshot.state("unlimited") == 1 {
        let limits = ["paused", "concurrency", "max"].map(|name| snapshot.hash("meta").contains_key(name));
        wrong.unless(limits == [false; 3], || format!("unlimited, with {limits:?}"));
    }
}

/// First numbers of the frames, and how many jobs each has.
pub fn frames(snapshot: &Snapshot) -> BTreeMap<u64, u64> {
    log(snapshot, &mut Wrong(Vec::new()))
}

/// Entries lie in order and do not overlap. Gives the frames: first number -> number of jobs.
fn log(snapshot: &Snapshot, wrong: &mut Wrong) -> BTreeMap<u64, u64> {
    let mut frames = BTreeMap::new();
    let mut next_number = 1;
    for entry in &snapshot.log {
        let name = format!("entry {}-{}", entry.ms, entry.seq);
        match &entry.content {
            Content::Frame(blob) => {
                wrong.unless(entry.ms >= next_number, || format!("{name} overlaps the frame before"));
                wrong.unless((1..=64).contains(&entry.seq), || format!("{name}: number of jobs"));
                next_number = entry.ms + entry.seq;
                frames.insert(entry.ms, entry.seq);
                match jobs_in(blob) {
                    Ok(jobs) => wrong.unless_equal(&name, entry.seq, jobs),
                    Err(error) => wrong.0.push(format!("{name}: {error}")),
                }
                if let Some(header) = snapshot.header(entry.ms) {
                    let children = header.parents.iter().map(|(_, count)| u64::from(*count)).sum();
                    wrong.unless_equal(&format!("{name}: children"), entry.seq, children);
                }
            }
            Content::References(ids) => {
                wrong.unless(entry.ms + 1 >= next_number, || format!("{name} lies inside a frame"));
                let count = entry.seq.saturating_sub(REFERENCE_SEQ);
                wrong.unless((1..=snapshot.state("references")).contains(&count), || {
                    format!("{name}: sequence")
                });
                wrong.unless(!ids.is_empty(), || format!("{name} is empty"));
                wrong.unless((entry.ms, entry.seq) > snapshot.cursor(), || {
                    format!("{name} was read and is still there")
                });
            }
        }
        wrong.unless(entry.ms <= snapshot.state("id"), || {
            format!("{name} is above the last job number")
        });
    }
    frames
}

fn jobs_in(blob: &[u8]) -> chasquimq::Result<u64> {
    let mut frame = Frame::parse(blob)?;
    let mut jobs = 0;
    while frame.next_job()?.is_some() {
        jobs += 1;
    }
    Ok(jobs)
}

fn is_waiting(snapshot: &Snapshot, first: u64, n: u64) -> bool {
    (first, n) > snapshot.cursor()
}

/// Holes belong to waiting frames and say which of their jobs are records or gone.
fn holes(snapshot: &Snapshot, frames: &BTreeMap<u64, u64>, wrong: &mut Wrong) {
    let holes = snapshot.holes();
    wrong.unless_equal("holes", snapshot.state("holes"), holes.len() as u64);
    for (first, chars) in &holes {
        let n = frames.get(first).copied().unwrap_or(0);
        wrong.unless(n > 0 && is_waiting(snapshot, *first, n), || {
            format!("holes of {first}, which is no waiting frame")
        });
        wrong.unless_equal(&format!("length of the holes of {first}"), chars.len() as u64, n);
        wrong.unless(chars.contains(['0', 'r']), || {
            format!("holes of {first} without a hole")
        });
    }
    for (first, n) in frames.iter().filter(|(first, n)| is_waiting(snapshot, **first, **n)) {
        for offset in 0..*n {
            let char = holes.get(first).map_or(b'1', |chars| chars.as_bytes()[offset as usize]);
            let id = snapshot.id_in(*first, first + offset);
            let has_record = snapshot.hash("jobs").contains_key(&id);
            // one that left the frame may have come back elsewhere
            wrong.unless(char == b'0' || has_record == (char == b'r'), || {
                format!(
                    "job {} has a record: {has_record}, its frame says {}",
                    first + offset,
                    char as char
                )
            });
        }
    }
}

/// Every frame that left the waiting list is held by a worker, or kept for its runs; takes, runs and numbers of kept jobs agree.
fn taken(snapshot: &Snapshot, frames: &BTreeMap<u64, u64>, wrong: &mut Wrong) {
    let takes = snapshot.takes();
    let mut kept: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let completed: BTreeSet<&String> = snapshot.set("completed").iter().map(|(member, _)| member).collect();
    for (start, run) in snapshot.runs() {
        let name = format!("run {start}+{} of {}-{}", run.count, run.first, run.n);
        wrong.unless(frames.get(&run.first) == Some(&run.n), || {
            format!("{name}: there is no such frame")
        });
        wrong.unless(
            run.count > 0 && start >= run.first && start + run.count <= run.first + run.n,
            || format!("{name} is not inside its frame"),
        );
        wrong.unless(completed.contains(&start.to_string()), || {
            format!("{name} is not in the completed set")
        });
        let ids = snapshot.header(run.first).map(|header| header.ids.to_owned());
        wrong.unless_equal(&format!("{name}: ids"), run.ids.clone(), ids);
        if let Some(results) = &run.results {
            wrong.unless_equal(&format!("{name}: results"), results.len() as u64, run.count);
        }
        for number in start..start + run.count {
            let is_new = kept.entry(run.first).or_default().insert(number);
            wrong.unless(is_new, || format!("{name}: {number} is in another run too"));
        }
    }
    let counts = snapshot.counts("frames");
    for first in takes.keys().map(u64::to_string).chain(counts.keys().cloned()) {
        let exists = first.parse().is_ok_and(|first: u64| frames.contains_key(&first));
        wrong.unless(exists, || format!("take or kept number of {first}, which is no frame"));
    }
    for (first, n) in frames.iter().filter(|(first, n)| !is_waiting(snapshot, **first, **n)) {
        let kept = kept.remove(first).unwrap_or_default();
        let count = counts.get(&first.to_string());
        match takes.get(first) {
            Some(take) => {
                wrong.unless(count.is_none(), || {
                    format!("frame {first} is held and has a kept number")
                });
                let chars = if take.is_empty() {
                    "1".repeat(*n as usize)
                } else {
                    take.clone()
                };
                wrong.unless_equal(&format!("length of take {first}"), chars.len() as u64, *n);
                wrong.unless(chars.contains('1'), || format!("take {first} holds no job: {chars}"));
                let marked: BTreeSet<u64> = chars
                    .bytes()
                    .zip(*first..)
                    .filter_map(|(char, number)| (char == b'k').then_some(number))
                    .collect();
                wrong.unless_equal(&format!("kept jobs of take {first}"), marked, kept);
            }
            None => {
                wrong.unless(!kept.is_empty(), || format!("frame {first} is not needed any more"));
                let stored = count.copied().unwrap_or(*n);
                wrong.unless_equal(&format!("kept jobs of frame {first}"), stored, kept.len() as u64);
                wrong.unless(count != Some(n), || {
                    format!("frame {first} has a kept number though all are kept")
                });
            }
        }
    }
    for first in takes
        .keys()
        .filter(|first| frames.get(first).is_some_and(|n| is_waiting(snapshot, **first, *n)))
    {
        wrong.0.push(format!("take {first} is of a waiting frame"));
    }
    for first in kept.keys() {
        wrong.0.push(format!("runs of {first}, which waits"));
    }
}

/// Stale references are in the log, and only there.
fn gone(snapshot: &Snapshot, wrong: &mut Wrong) {
    let gone = snapshot.counts("gone");
    wrong.unless_equal("gone", snapshot.state("gone"), gone.values().sum());
    for (id, count) in &gone {
        let references = snapshot.log.iter().filter_map(|entry| match &entry.content {
            Content::References(ids) => Some(ids.iter().filter(|other| *other == id).count() as u64),
            Content::Frame(_) => None,
        });
        let references: u64 = references.sum();
        wrong.unless(*count > 0 && *count <= references, || {
            format!("gone {id}: {count}, references {references}")
        });
    }
}

/// Every job is in one place, either plain in a frame or with a record; the counters agree with the places.
fn places(snapshot: &Snapshot, frames: &BTreeMap<u64, u64>, wrong: &mut Wrong) {
    let (line, active, completed) = (snapshot.line(), snapshot.active(), snapshot.completed());
    wrong.unless_equal("waiting", snapshot.state("waiting"), line.len() as u64);
    wrong.unless_equal("active", snapshot.state("active"), active.len() as u64);
    wrong.unless_equal("completed", snapshot.state("completed"), completed.len() as u64);

    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut put = |ids: Vec<String>, place: &'static str| {
        for id in ids {
            places.entry(id).or_default().push(place);
        }
    };
    put(line, "waiting");
    put(active, "active");
    put(completed, "completed");
    for set in ["failed", "delayed", "prioritized", "grouped", "waiting-children"] {
        put(snapshot.set(set).iter().map(|(id, _)| id.clone()).collect(), set);
    }
    let plain = plain_jobs(snapshot, frames);
    for (id, places) in &places {
        wrong.unless(places.len() == 1, || {
            format!("job {id} is in several places: {places:?}")
        });
        let has_record = snapshot.hash("jobs").contains_key(id);
        wrong.unless(has_record != plain.contains(id), || {
            format!("job {id} ({}): has a record: {has_record}", places[0])
        });
    }
    for id in snapshot.hash("jobs").keys() {
        wrong.unless(places.contains_key(id), || format!("record {id} is nowhere"));
    }
    for hash in ["vitals", "traces"] {
        for id in snapshot.hash(hash).keys() {
            let has_record = snapshot.hash("jobs").contains_key(id);
            wrong.unless(has_record, || format!("{hash} of {id}, which has no record"));
        }
    }
    for id in &snapshot.logged {
        wrong.unless(snapshot.hash("jobs").contains_key(id), || {
            format!("a log of {id}, which has no record")
        });
    }
}

/// Ids of the jobs that a frame, its take or its runs speak for.
pub fn plain_jobs(snapshot: &Snapshot, frames: &BTreeMap<u64, u64>) -> BTreeSet<String> {
    let mut plain = BTreeSet::new();
    let (holes, takes) = (snapshot.holes(), snapshot.takes());
    for (first, n) in frames {
        let whole = "1".repeat(*n as usize);
        let chars = match takes.get(first) {
            _ if is_waiting(snapshot, *first, *n) => holes.get(first).unwrap_or(&whole),
            Some(take) if take.is_empty() => &whole,
            Some(take) => take,
            None => continue,
        };
        let is_plain = |(char, number): (u8, u64)| (char == b'1').then(|| snapshot.id_in(*first, number));
        plain.extend(chars.bytes().zip(*first..).filter_map(is_plain));
    }
    for (start, run) in snapshot.runs() {
        plain.extend((start..start + run.count).map(|number| snapshot.id_in(run.first, number)));
    }
    plain
}

/// Parents have records that say so; what they wait for knows them, and none is parked for nothing.
fn families(snapshot: &Snapshot, frames: &BTreeMap<u64, u64>, qualified_name: &str, wrong: &mut Wrong) {
    let plain = plain_jobs(snapshot, frames);
    let fields = |id: &str| {
        let raw = snapshot.hash("vitals").get(id);
        raw.map(|raw| Tree::one(raw))
    };
    for (id, raw) in snapshot.hash("vitals") {
        let is_parent = Tree::one(raw).field("ch").is_some();
        wrong.unless(is_parent == snapshot.families.contains_key(id), || {
            format!("{id} is a parent: {is_parent} by its state fields")
        });
    }
    let framed = snapshot.framed_children();
    for (id, family) in &snapshot.families {
        wrong.unless(snapshot.hash("jobs").contains_key(id), || {
            format!("parent {id} has no record")
        });
        let mut seen = BTreeSet::new();
        let (pending, processed) = (family.all_pending(), family.all_processed());
        let kinds = pending.iter().chain(&processed).chain(family.ignored.keys());
        for key in kinds.chain(family.faults.iter().map(|(key, _)| key)) {
            wrong.unless(seen.insert(key), || format!("{key} is a child of {id} in two ways"));
        }
        for key in &pending {
            let child = key.strip_prefix(qualified_name).and_then(|rest| rest.strip_prefix(':'));
            let Some(child) = child else { continue };
            let has_record = snapshot.hash("jobs").contains_key(child);
            wrong.unless(has_record || plain.contains(child), || {
                format!("{id} waits for {child}, which does not exist")
            });
            let parent = match has_record {
                true => fields(child).and_then(|fields| fields.field("pa").map(|pa| pa.items()[1].string())),
                false => framed.get(child).map(|(_, parent)| parent.clone()),
            };
            wrong.unless(parent.as_ref() == Some(id), || {
                format!("{id} waits for {child}, whose parent is {parent:?}")
            });
        }
    }
    for (id, _) in snapshot.set("waiting-children") {
        // one that has never had a child was refused all of them: other parents have them
        let waits = snapshot
            .families
            .get(id)
            .is_none_or(|family| family.is_empty() || !family.all_pending().is_empty());
        wrong.unless(waits, || format!("{id} is parked, and waits for nothing"));
    }
}

/// A scheduler has a slot and is stored, or neither.
fn schedulers(snapshot: &Snapshot, wrong: &mut Wrong) {
    let slots: BTreeMap<&String, u64> = snapshot
        .set("schedulers")
        .iter()
        .map(|(id, slot)| (id, *slot as u64))
        .collect();
    let stored: BTreeSet<&String> = snapshot.hash("scheduler").keys().collect();
    wrong.unless_equal("schedulers", stored, slots.keys().copied().collect());
    for (id, raw) in snapshot.hash("scheduler") {
        let fields = raw.get(8..).map(Tree::one);
        let is_whole = fields
            .as_ref()
            .is_some_and(|fields| matches!(fields.items().len(), 6..=8));
        wrong.unless(is_whole, || format!("scheduler {id}: {fields:?}"));
    }
}

/// What lies apart is that of which the state fields say so.
fn large(snapshot: &Snapshot, wrong: &mut Wrong) {
    let stored: BTreeMap<String, u64> = snapshot
        .hash("large")
        .iter()
        .map(|(field, value)| (field.clone(), value.len() as u64))
        .collect();
    let mut told = BTreeMap::new();
    for (id, raw) in snapshot.hash("vitals") {
        for (kind, bytes) in [("d", "ld"), ("r", "lr")] {
            if let Some(bytes) = Tree::one(raw).field(bytes) {
                told.insert(format!("{kind}{id}"), bytes.number());
            }
        }
    }
    wrong.unless_equal("large", stored, told);
}

/// Ids of entries increase by the number of events in them; the state knows the last one.
fn events(snapshot: &Snapshot, wrong: &mut Wrong) {
    let mut before = None;
    for (id, groups) in &snapshot.events {
        let count: u64 = match Tree::all(groups) {
            Ok(groups) => groups.iter().map(events_in).sum(),
            Err(error) => {
                wrong.0.push(format!("event entry {id:?}: {error}"));
                continue;
            }
        };
        // the first event of an entry comes right after the last of the entry before; what was before the first may be trimmed
        let fits = match before {
            Some((ms, seq)) if id.0 == ms => id.1 == seq + count,
            Some((ms, _)) => id.0 > ms && id.1 == count,
            None => id.1 >= count,
        };
        wrong.unless(fits, || {
            format!("event entry {id:?} of {count} events comes after {before:?}")
        });
        before = Some(*id);
    }
    if let Some(last) = before {
        wrong.unless_equal(
            "last event",
            (snapshot.state("event_ms"), snapshot.state("event_seq")),
            last,
        );
    }
}

/// Number of events in a group (`lua/queue/events.lua`).
fn events_in(group: &Tree) -> u64 {
    let items = group.items();
    match items[0].string().as_str() {
        "A" => 2 * items[2].number(),
        "a" | "C" => items[2].number(),
        "B" => 2 * items[2].number(),
        "X" => items[2].items().len() as u64,
        "E" | "L" => 1,
        other => panic!("event group {other}"),
    }
}
