//! Every key of a queue at one moment, taken apart. Layouts: the heads of the modules in `lua/`.

use std::collections::BTreeMap;

use chasquimq::{
    frame::{child_id, is_stub, Frame},
    job::parent_header::ParentHeader,
    redis::call::library::KEYS,
};
use redis::Value;

use super::{groups::STATUSES, tree::Tree};

/// References lie above this sequence part (`lua/states/waiting_list.lua`).
pub const REFERENCE_SEQ: u64 = 1 << 40;

/// Places among jobs of one priority count up from here (`lua/states/prioritized.lua`).
pub const FIRST_PLACE: i64 = 1 << 24;

/// Fields of the state string, in order (`lua/queue/state.lua`).
pub const STATE_FIELDS: [&str; 18] = [
    "id",
    "cursor_ms",
    "cursor_seq",
    "waiting",
    "active",
    "completed",
    "references",
    "event_ms",
    "event_seq",
    "event_fresh",
    "holes",
    "gone",
    "max_events",
    "place",
    "flows",
    "max_length",
    "unlimited",
    "apart",
];

/// The keys of this type that are not one of many, but for those of `metrics` and markers, which are not taken apart.
fn keys_of_type(wanted: &str) -> Vec<&'static str> {
    let is_plain = |name: &str| !name.contains(['<', ':']) && !matches!(name, "wake" | "open");
    let keys = KEYS.iter().filter(|(name, kind)| *kind == wanted && is_plain(name));
    keys.map(|(name, _)| *name).collect()
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub ms: u64,
    pub seq: u64,
    pub content: Content,
}

#[derive(Debug, Clone)]
pub enum Content {
    Frame(Vec<u8>),
    References(Vec<String>),
}

#[derive(Debug, Clone)]
pub struct Run {
    pub count: u64,
    pub first: u64,
    pub n: u64,
    /// `None`: all undefined.
    pub results: Option<Vec<String>>,
    /// What the ids of children begin with.
    pub ids: Option<String>,
}

type Hash = BTreeMap<String, Vec<u8>>;

#[derive(Debug)]
pub struct Snapshot {
    pub state: Vec<f64>,
    pub hashes: BTreeMap<&'static str, Hash>,
    /// Members in their order, with their scores.
    pub sets: BTreeMap<&'static str, Vec<(String, f64)>>,
    /// Frames that lie apart are whole here.
    pub log: Vec<Entry>,
    /// First numbers of those.
    pub apart: Vec<u64>,
    pub front: Vec<String>,
    /// Id and packed groups of each entry.
    pub events: Vec<((u64, u64), Vec<u8>)>,
    /// Ids of jobs with a log.
    pub logged: Vec<String>,
    /// Children of each parent.
    pub families: BTreeMap<String, Family>,
    /// Jobs that wait in each group.
    pub in_groups: BTreeMap<String, Vec<(String, f64)>>,
    pub wake: bool,
}

/// A parent's children, by key.
#[derive(Debug, Default)]
pub struct Family {
    pub pending: Vec<String>,
    pub processed: Hash,
    pub ignored: Hash,
    pub faults: Vec<(String, f64)>,
    pub ranges: Vec<String>,
    pub returned: Hash,
}

impl Family {
    fn of(connection: &mut redis::Connection, base: &str, id: &str) -> Self {
        let key = |name: &str| format!("{base}{name}:{id}");
        let parts: (Vec<String>, Value, Value, Value, Vec<String>, Value) = redis::pipe()
            .atomic()
            .cmd("SMEMBERS")
            .arg(key("children"))
            .cmd("HGETALL")
            .arg(key("processed"))
            .cmd("HGETALL")
            .arg(key("ignored"))
            .cmd("ZRANGE")
            .arg(key("faults"))
            .arg(0)
            .arg(-1)
            .arg("WITHSCORES")
            .cmd("SMEMBERS")
            .arg(key("spans"))
            .cmd("HGETALL")
            .arg(key("returned"))
            .query(connection)
            .expect("a family");
        let (mut pending, processed, ignored, faults, mut ranges, returned) = parts;
        pending.sort();
        ranges.sort();
        Self {
            ranges,
            returned: parse_hash(returned),
            pending,
            processed: parse_hash(processed),
            ignored: parse_hash(ignored),
            faults: parse_set(faults),
        }
    }

    /// Whether it has no child, and has had none.
    pub fn is_empty(&self) -> bool {
        self.all_pending().is_empty()
            && self.all_processed().is_empty()
            && self.ignored.is_empty()
            && self.faults.is_empty()
    }

    /// Keys of all children that are waited for.
    pub fn all_pending(&self) -> Vec<String> {
        let ranges = self.ranges.iter().flat_map(|range| keys_in_range(range));
        self.pending.iter().cloned().chain(ranges).collect()
    }

    /// Keys of all children that completed.
    pub fn all_processed(&self) -> Vec<String> {
        let ranges = self.returned.keys().flat_map(|range| keys_in_range(range));
        self.processed.keys().cloned().chain(ranges).collect()
    }
}

/// Keys of the children of a sibling range (`lua/jobs/sibling_ranges.lua`).
pub fn keys_in_range(range: &str) -> Vec<String> {
    let parts = range.split_once(' ').and_then(|(numbers, front)| {
        let (first, count) = numbers.split_once('+')?;
        Some((first.parse().ok()?, count.parse().ok()?, front))
    });
    let (first, count, front): (u64, u64, &str) = parts.expect("a range");
    (first..first + count).map(|number| child_id(front, number)).collect()
}

/// Reads the frames that lie apart. Gives the first numbers of those.
fn make_whole(connection: &mut redis::Connection, base: &str, log: &mut [Entry]) -> Vec<u64> {
    let mut apart = Vec::new();
    for entry in log {
        if let Content::Frame(blob) = &mut entry.content {
            if is_stub(blob) {
                let key = format!("{base}apart:{}", entry.ms);
                let frame: Option<Vec<u8>> = redis::cmd("GET").arg(key).query(connection).expect("an answer");
                // one that is gone since the log was read, while a worker goes on
                *blob = frame.unwrap_or_default();
                apart.push(entry.ms);
            }
        }
    }
    apart
}

impl Snapshot {
    /// Reads all keys in one transaction.
    pub fn of(connection: &mut redis::Connection, base: &str) -> Self {
        let key = |suffix: &str| format!("{base}{suffix}");
        let mut pipe = redis::pipe();
        pipe.atomic();
        pipe.cmd("GET").arg(key("state"));
        pipe.cmd("XRANGE").arg(key("log")).arg("-").arg("+");
        pipe.cmd("XRANGE").arg(key("events")).arg("-").arg("+");
        pipe.cmd("LRANGE").arg(key("front")).arg(0).arg(-1);
        pipe.cmd("EXISTS").arg(key("wake"));
        pipe.cmd("SMEMBERS").arg(key("logged"));
        pipe.cmd("SMEMBERS").arg(key("parents"));
        let (hashes, sets) = (keys_of_type("hash"), keys_of_type("zset"));
        for hash in &hashes {
            pipe.cmd("HGETALL").arg(key(hash));
        }
        for set in &sets {
            pipe.cmd("ZRANGE").arg(key(set)).arg(0).arg(-1).arg("WITHSCORES");
        }
        let replies: Vec<Value> = pipe.query(connection).expect("snapshot");
        let mut replies = replies.into_iter();
        let mut next = || replies.next().expect("reply");
        let state = parse_state(next());
        let mut log: Vec<Entry> = entries(next())
            .into_iter()
            .map(|((ms, seq), field, value)| Entry {
                ms,
                seq,
                content: match field.as_str() {
                    "f" => Content::Frame(value),
                    "r" => Content::References(Tree::one(&value).items().iter().map(Tree::string).collect()),
                    other => panic!("log field {other}"),
                },
            })
            .collect();
        let apart = make_whole(connection, base, &mut log);
        let mut snapshot = Self {
            state,
            log,
            apart,
            events: entries(next()).into_iter().map(|(id, _, value)| (id, value)).collect(),
            front: ids(next()),
            wake: next() == Value::Int(1),
            logged: ids(next()),
            families: ids(next())
                .into_iter()
                .map(|id| (id.clone(), Family::of(connection, base, &id)))
                .collect(),
            hashes: hashes.iter().map(|hash| (*hash, parse_hash(next()))).collect(),
            sets: sets.iter().map(|set| (*set, parse_set(next()))).collect(),
            in_groups: BTreeMap::new(),
        };
        snapshot.read_groups(connection, base);
        snapshot
    }

    fn read_groups(&mut self, connection: &mut redis::Connection, base: &str) {
        for (group, _) in STATUSES.iter().flat_map(|status| self.sets[status].iter()) {
            let key = format!("{base}group:{group}");
            let jobs = redis::cmd("ZRANGE")
                .arg(key)
                .arg(0)
                .arg(-1)
                .arg("WITHSCORES")
                .query(connection);
            self.in_groups.insert(group.clone(), parse_set(jobs.expect("a group")));
        }
    }

    pub fn state(&self, field: &str) -> u64 {
        let at = STATE_FIELDS.iter().position(|known| *known == field).expect("field");
        self.state[at] as u64
    }

    pub fn cursor(&self) -> (u64, u64) {
        (self.state("cursor_ms"), self.state("cursor_seq"))
    }

    pub fn hash(&self, name: &str) -> &Hash {
        &self.hashes[name]
    }

    pub fn set(&self, name: &str) -> &[(String, f64)] {
        &self.sets[name]
    }

    /// What each held frame says of its jobs; an empty text: all are active.
    pub fn takes(&self) -> BTreeMap<u64, String> {
        numbered(self.hash("takes"), |raw| {
            let tree = Tree::one(raw);
            assert!(matches!(tree.items().len(), 5 | 6), "a take: {}", tree.show());
            tree.items()[1].string()
        })
    }

    pub fn runs(&self) -> BTreeMap<u64, Run> {
        let run = |raw: &Vec<u8>| {
            let tree = Tree::one(raw);
            let items = tree.items();
            assert!(matches!(items.len(), 6 | 7), "a run: {}", tree.show());
            let results = items[5].bytes();
            Run {
                count: items[0].number(),
                first: items[1].number(),
                n: items[2].number(),
                results: (!results.is_empty()).then(|| Tree::one(results).items().iter().map(Tree::string).collect()),
                ids: items.get(6).map(Tree::string),
            }
        };
        numbered(self.hash("runs"), run)
    }

    pub fn holes(&self) -> BTreeMap<u64, String> {
        numbered(self.hash("holes"), |raw| text(raw))
    }

    /// Numbers in a hash of counts.
    pub fn counts(&self, hash: &str) -> BTreeMap<String, u64> {
        let parse = |raw: &Vec<u8>| text(raw).trim_end().parse().expect("count");
        self.hash(hash)
            .iter()
            .map(|(field, raw)| (field.clone(), parse(raw)))
            .collect()
    }

    /// Ids that wait, in order: the front list, then the log behind the cursor.
    pub fn line(&self) -> Vec<String> {
        let mut line = self.front.clone();
        let mut gone = self.counts("gone");
        let holes = self.holes();
        for entry in self.log.iter().filter(|entry| (entry.ms, entry.seq) > self.cursor()) {
            match &entry.content {
                Content::Frame(_) => {
                    let holes = holes.get(&entry.ms);
                    let is_there = |offset: &u64| holes.is_none_or(|holes| holes.as_bytes()[*offset as usize] != b'0');
                    line.extend(
                        (0..entry.seq)
                            .filter(is_there)
                            .map(|offset| self.id_in(entry.ms, entry.ms + offset)),
                    );
                }
                Content::References(ids) => {
                    for id in ids {
                        match gone.get_mut(id) {
                            Some(stale) if *stale > 0 => *stale -= 1,
                            _ => line.push(id.clone()),
                        }
                    }
                }
            }
        }
        line
    }

    /// Ids that are held, in no order.
    pub fn active(&self) -> Vec<String> {
        let mut active: Vec<String> = self.hash("active").keys().cloned().collect();
        for (first, take) in self.takes() {
            let chars = if take.is_empty() {
                "1".repeat(self.jobs_of_frame(first))
            } else {
                take
            };
            let is_active = |(char, number): (u8, u64)| (char == b'1').then(|| self.id_in(first, number));
            active.extend(chars.bytes().zip(first..).filter_map(is_active));
        }
        active
    }

    fn frame(&self, first: u64) -> Option<&Entry> {
        let is_frame = |entry: &&Entry| entry.ms == first && entry.seq < REFERENCE_SEQ;
        self.log.iter().find(is_frame)
    }

    fn jobs_of_frame(&self, first: u64) -> usize {
        self.frame(first).map_or(0, |frame| frame.seq as usize)
    }

    /// What a frame of children begins with.
    pub fn header(&self, first: u64) -> Option<ParentHeader<'_>> {
        match &self.frame(first)?.content {
            Content::Frame(blob) => Frame::parse(blob).ok()?.header,
            Content::References(_) => None,
        }
    }

    /// The id of the job of this number in a frame.
    pub fn id_in(&self, first: u64, number: u64) -> String {
        match self.header(first) {
            Some(header) => child_id(header.ids, number),
            None => number.to_string(),
        }
    }

    /// Children that a frame speaks for: id, and base of the parent's queue and its id.
    pub fn framed_children(&self) -> BTreeMap<String, (String, String)> {
        let mut children = BTreeMap::new();
        for entry in self.log.iter().filter(|entry| entry.seq < REFERENCE_SEQ) {
            let Some(header) = self.header(entry.ms) else { continue };
            let parents = header
                .parents
                .iter()
                .flat_map(|(id, count)| std::iter::repeat_n(*id, *count as usize));
            for (number, parent) in (entry.ms..).zip(parents) {
                children.insert(
                    child_id(header.ids, number),
                    (header.base.to_owned(), parent.to_owned()),
                );
            }
        }
        children
    }

    /// Ids that completed and are kept, in their order; several jobs a run.
    pub fn completed(&self) -> Vec<String> {
        let runs = self.runs();
        let mut ids = Vec::new();
        for (member, _) in self.set("completed") {
            match member
                .parse()
                .ok()
                .and_then(|number: u64| Some((number, runs.get(&number)?)))
            {
                Some((number, run)) => {
                    ids.extend((number..number + run.count).map(|number| self.id_in(run.first, number)));
                }
                None => ids.push(member.clone()),
            }
        }
        ids
    }
}

fn numbered<T>(hash: &Hash, parse: impl Fn(&Vec<u8>) -> T) -> BTreeMap<u64, T> {
    hash.iter()
        .map(|(field, raw)| (field.parse().expect("number"), parse(raw)))
        .collect()
}

fn parse_state(value: Value) -> Vec<f64> {
    let Value::BulkString(bytes) = value else {
        return vec![0.0; STATE_FIELDS.len()];
    };
    assert_eq!(bytes.len(), 8 * STATE_FIELDS.len(), "length of the state");
    bytes
        .chunks_exact(8)
        .map(|chunk| f64::from_le_bytes(chunk.try_into().expect("eight bytes")))
        .collect()
}

fn list(value: Value) -> Vec<Vec<u8>> {
    redis::from_redis_value(value).expect("list")
}

fn ids(value: Value) -> Vec<String> {
    list(value).iter().map(|id| text(id)).collect()
}

fn parse_hash(value: Value) -> Hash {
    let mut fields = list(value).into_iter();
    let mut hash = Hash::new();
    while let (Some(field), Some(value)) = (fields.next(), fields.next()) {
        hash.insert(text(&field), value);
    }
    hash
}

fn parse_set(value: Value) -> Vec<(String, f64)> {
    list(value)
        .chunks_exact(2)
        .map(|pair| (text(&pair[0]), text(&pair[1]).parse().expect("score")))
        .collect()
}

fn entries(value: Value) -> Vec<((u64, u64), String, Vec<u8>)> {
    let entries: Vec<(String, Vec<Vec<u8>>)> = redis::from_redis_value(value).expect("stream");
    entries
        .into_iter()
        .map(|(id, mut fields)| {
            let (ms, seq) = id.split_once('-').expect("entry id");
            // behind an entry's one field lie large values, if any
            assert!(
                fields.len() >= 2 && fields.chunks(2).skip(1).all(|field| field[0] == b"v"),
                "fields of an entry"
            );
            let value = fields.remove(1);
            (
                (ms.parse().expect("ms"), seq.parse().expect("seq")),
                text(&fields[0]),
                value,
            )
        })
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}
