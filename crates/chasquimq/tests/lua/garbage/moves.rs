//! BullMQ's keys hold what BullMQ does not write there, while jobs move. A step is refused as a whole, with an error that names the key, or
//! it is done; and each job is then in one of the two, and not in both.

use std::collections::BTreeSet;

use chasquimq::{redis::call::library::Script, Body};
use chasquimq_migrate::scripts::{ADOPT_DEDUP, ADOPT_JOBS, ADOPT_QUEUE, RETURN_JOBS, RETURN_QUEUE, SETTLE_ADOPTED};
use redis::{Cmd, RedisResult, Value};

use crate::{
    given::{plan::Plan, queue::TestQueue, step::Step},
    model::random::Random,
};

const SEEDS: u64 = 200;
const PLACES: [&str; 7] = [
    "waiting-children",
    "prioritized",
    "wait",
    "paused",
    "delayed",
    "failed",
    "completed",
];
const STATES: [&str; 6] = [
    "waiting",
    "prioritized",
    "delayed",
    "failed",
    "completed",
    "waiting-children",
];
const JOBS: [&str; 9] = ["1", "2", "p", "d", "c", "f", "repeat:s:9000", "parent", "child"];
/// Beside those of the jobs.
const KEYS: [&str; 24] = [
    "meta",
    "id",
    "wait",
    "paused",
    "prioritized",
    "delayed",
    "completed",
    "failed",
    "waiting-children",
    "repeat",
    "repeat:s",
    "limiter",
    "metrics:completed",
    "marker",
    "pc",
    "moved-parents",
    "c:logs",
    "parent:dependencies",
    "parent:processed",
    "parent:failed",
    "parent:unsuccessful",
    "de:x",
    "dn:x",
    "de:gone",
];
const FIELDS: [&str; 32] = [
    "name",
    "data",
    "opts",
    "timestamp",
    "delay",
    "priority",
    "processedOn",
    "finishedOn",
    "atm",
    "ats",
    "stc",
    "progress",
    "returnvalue",
    "failedReason",
    "stacktrace",
    "parentKey",
    "parent",
    "rjk",
    "deid",
    "pb",
    "defa",
    "jid",
    "every",
    "pattern",
    "limit",
    "offset",
    "ic",
    "version",
    "paused",
    "concurrency",
    "max",
    "duration",
];
const GARBAGE: [&str; 16] = [
    "",
    "garbage",
    "nan",
    "inf",
    "-1",
    "1e999",
    "{",
    "[[[",
    "9007199254740993000",
    "\0",
    r#"{"id":7}"#,
    r#"{"id":"parent","queueKey":"x"}"#,
    "null",
    "[]",
    "repeat:s",
    "meta",
];

/// BullMQ's jobs in every state.
fn theirs() -> TestQueue {
    let mut queue = TestQueue::fresh();
    let (source, parent) = (queue.source(), queue.their_parent("parent"));
    queue.at_source("HSET", "meta", &["version", "bullmq:6.7.0", "concurrency", "5"]);
    queue.at_source("SET", "id", &["20"]);
    queue.at_source("SET", "limiter", &["2", "PX", "60000"]);
    queue.at_source("HSET", "metrics:completed", &["count", "9"]);
    for id in ["1", "2"] {
        queue.their_job(id, &[]);
        queue.at_source("LPUSH", "wait", &[id]);
    }
    queue.their_job("p", &["priority", "4"]);
    queue.their_job(
        "d",
        &["deid", "x", "delay", "60000", "atm", "1", "stacktrace", "[\"no\"]"],
    );
    queue.their_job(
        "c",
        &["returnvalue", "{\"a\":1}", "finishedOn", "900", "progress", "42"],
    );
    queue.their_job("f", &["failedReason", "no", "finishedOn", "800", "stacktrace", "[]"]);
    queue.their_job("repeat:s:9000", &["rjk", "s"]);
    queue.their_job("parent", &[]);
    let key = format!("{source}parent");
    queue.their_job("child", &["parentKey", &key, "parent", &parent]);
    for (place, score, id) in [
        ("prioritized", "17179869185", "p"),
        ("delayed", "28672000", "d"),
        ("delayed", "36864000", "repeat:s:9000"),
        ("completed", "900", "c"),
        ("failed", "800", "f"),
        ("repeat", "9000", "s"),
        ("waiting-children", "1000", "parent"),
    ] {
        queue.at_source("ZADD", place, &[score, id]);
    }
    queue.at_source("LPUSH", "wait", &["child"]);
    queue.at_source("HSET", "repeat:s", &["name", "n", "every", "3000", "ic", "2"]);
    queue.at_source("RPUSH", "c:logs", &["row"]);
    queue.at_source("SADD", "parent:dependencies", &[&format!("{source}child")]);
    queue.at_source("HSET", "parent:processed", &[&format!("{source}done"), "1"]);
    queue.at_source("SET", "de:x", &["d"]);
    queue.at_source(
        "HSET",
        "dn:x",
        &["name", "n", "data", "1", "opts", "{}", "jid", "later"],
    );
    queue.at_source("SET", "de:gone", &["99", "PX", "60000"]);
    queue
}

/// Puts something else under a key of BullMQ's. Gives what was done.
fn spoil(queue: &mut TestQueue, random: &mut Random) -> String {
    let at = random.below((KEYS.len() + JOBS.len()) as u64) as usize;
    let key = KEYS.get(at).unwrap_or_else(|| &JOBS[at - KEYS.len()]);
    let (field, value) = (*random.pick(&FIELDS), *random.pick(&GARBAGE));
    let Value::SimpleString(kind) = queue.at_source("TYPE", key, &[]) else {
        panic!("a type")
    };
    let way = random.below(4);
    if way == 0 || (way == 1 && kind == "none") {
        queue.at_source("DEL", key, &[]);
        return format!("{key} is gone");
    }
    if way == 1 {
        queue.at_source("DEL", key, &[]);
    }
    let other = ["string", "list", "set", "hash", "zset"][random.below(5) as usize];
    let kind = if way == 1 || kind == "none" {
        other
    } else {
        kind.as_str()
    };
    match kind {
        "list" => queue.at_source("RPUSH", key, &[value]),
        "set" => queue.at_source("SADD", key, &[value]),
        "hash" => queue.at_source("HSET", key, &[field, value]),
        "zset" => queue.at_source("ZADD", key, &[*random.pick(&["-inf", "inf", "0.5"]), value]),
        _ => queue.at_source("SET", key, &[value]),
    };
    format!("{key} holds the {kind} {field} {value:?}")
}

/// A queue that moves, and what was wrong with that.
struct Moves {
    queue: TestQueue,
    what: String,
    wrong: Vec<String>,
}

impl Moves {
    fn call(&mut self, script: &Script, args: impl FnOnce(&mut Cmd)) -> Option<Value> {
        let mut call = self.queue.call(script);
        args(&mut call);
        let before = self.queue.all_keys();
        let reply: RedisResult<Value> = call.query(&mut self.queue.probe.connection);
        let error = match reply {
            Ok(value) => return Some(value),
            Err(error) => error.to_string(),
        };
        if !error.contains("Key ") {
            self.wrong.push(format!("{} with {}: {error}", script.name, self.what));
        }
        if self.queue.all_keys() != before {
            self.wrong
                .push(format!("{} with {}: half done", script.name, self.what));
        }
        None
    }

    /// Steps of three jobs, until there are no more.
    fn steps(&mut self, script: &Script, place: &str) {
        let (source, sources, mut skip) = (self.queue.source(), self.queue.sources(), 0_u64);
        for _ in 0..20 {
            let number = self.queue.next_number();
            let reply = self.call(script, |call| {
                call.arg(5000).arg("c").arg(0).arg(number).arg(&source).arg(place);
                call.arg(skip).arg(3).arg(&sources);
                if script.name == ADOPT_JOBS.name {
                    call.arg(0);
                }
            });
            let Some(reply) = reply else { return };
            let step: (u64, u64, u64, Vec<Vec<u8>>, u64) = redis::from_redis_value(reply).expect("a step");
            if step.0 == 0 {
                return;
            }
            skip += step.4;
        }
    }

    fn adopt(&mut self) {
        let (source, sources) = (self.queue.source(), self.queue.sources());
        self.call(&ADOPT_QUEUE, |call| {
            call.arg(&source).arg(10);
        });
        for place in PLACES {
            self.steps(&ADOPT_JOBS, place);
        }
        self.call(&SETTLE_ADOPTED, |call| {
            call.arg(5000).arg(&source).arg("0").arg(&sources);
        });
        let mut ids = chasquimq::msgpack::Packer::default();
        ids.array(2).str("gone").str("x");
        self.call(&ADOPT_DEDUP, |call| {
            call.arg(&source).arg(ids.0);
        });
    }

    fn give_back(&mut self) {
        let source = self.queue.source();
        self.call(&RETURN_QUEUE, |call| {
            call.arg(&source).arg(10);
        });
        for state in STATES {
            self.steps(&RETURN_JOBS, state);
        }
    }

    fn is_theirs(&mut self, id: &str) -> bool {
        self.queue.at_source("TYPE", id, &[]) == Value::SimpleString("hash".to_owned())
    }

    /// What each of these jobs says of itself to BullMQ.
    fn their_data(&mut self, id: &str) -> String {
        let data = self.queue.at_source("HGET", id, &["data"]);
        redis::from_redis_value::<Option<String>>(data)
            .expect("a text")
            .unwrap_or_else(|| "{}".to_owned())
    }

    fn own_ids(&mut self) -> Vec<String> {
        STATES.iter().flat_map(|state| self.queue.ids(state)).collect()
    }

    /// Every one of these jobs is in one of the two.
    fn compare(&mut self, ids: &[(String, String)]) {
        let here = self.own_ids();
        let set: BTreeSet<&String> = here.iter().collect();
        if set.len() != here.len() {
            self.wrong.push(format!("{}: twice in {here:?}", self.what));
        }
        for (id, data) in ids {
            let is_here = here.contains(id);
            if is_here == self.is_theirs(id) {
                self.wrong.push(format!("{}: {id} is in both, or in none", self.what));
            }
            let raw = self.queue.command("HGET", "jobs", &[id.as_str()]);
            let raw: Option<Vec<u8>> = redis::from_redis_value(raw).expect("a body");
            let own = raw.map(|raw| Body::parse(&raw).expect("a body").data);
            if is_here && own.is_some_and(|own| own != *data) {
                self.wrong.push(format!("{}: {id} has other data", self.what));
            }
        }
    }
}

fn known(moves: &mut Moves, ids: &[&str]) -> Vec<(String, String)> {
    let mut known = Vec::new();
    for id in ids {
        if moves.is_theirs(id) {
            known.push(((*id).to_owned(), moves.their_data(id)));
        }
    }
    known
}

#[test]
fn no_job_of_bullmqs_is_lost_by_what_bullmq_did_not_write() {
    let mut wrong = Vec::new();
    for seed in 0..SEEDS {
        let mut random = Random::seeded(seed);
        let mut moves = Moves {
            queue: theirs(),
            what: String::new(),
            wrong: Vec::new(),
        };
        for _ in 0..=random.below(2) {
            let done = spoil(&mut moves.queue, &mut random);
            moves.what = format!("{} seed {seed}: {done}", moves.what);
        }
        let ids = known(&mut moves, &JOBS);
        moves.adopt();
        moves.compare(&ids);
        moves.give_back();
        moves.compare(&ids);
        wrong.append(&mut moves.wrong);
        moves.queue.left_at_source();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_job_of_ours_is_lost_on_its_way_back() {
    let mut wrong = Vec::new();
    for seed in 0..SEEDS / 2 {
        let mut random = Random::seeded(seed);
        let mut queue = TestQueue::with(Plan::new().frame(3).record("a").front("b").frame(2));
        queue.add(1001, Plan::new().delayed("d", 7000).prioritized("p", 4));
        queue.step(Step::by("w").at(2000).want(3));
        queue.step(Step::by("w").at(3000).done_record("b", "1"));
        queue.command("DEL", "lease:w", &[]);
        let mut moves = Moves {
            queue,
            what: String::new(),
            wrong: Vec::new(),
        };
        let before = moves.own_ids();
        let done = spoil(&mut moves.queue, &mut random);
        moves.what = format!("seed {seed}: {done}");
        moves.give_back();
        let here = moves.own_ids();
        for id in before {
            // a key of theirs that is no job's may have its name
            if here.contains(&id) == moves.is_theirs(&id) && !done.starts_with(&format!("{id} holds")) {
                moves.wrong.push(format!("{}: {id} is in both, or in none", moves.what));
            }
        }
        wrong.append(&mut moves.wrong);
        moves.queue.left_at_source();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn malformed_input_is_refused() {
    let mut queue = theirs();
    let (source, sources) = (queue.source(), queue.sources());
    let not_texts = vec![0x92, 1, 2];
    for (place, sources, says) in [
        ("active", sources.clone(), "no jobs are moved from active"),
        ("meta", sources, "no jobs are moved from meta"),
        ("wait", b"\xddgarbage".to_vec(), "an array of texts"),
        ("wait", not_texts, "an array of texts"),
    ] {
        for script in [&ADOPT_JOBS, &RETURN_JOBS] {
            let number = queue.next_number();
            let mut call = queue.call(script);
            call.arg(5000).arg("c").arg(0).arg(number).arg(&source).arg(place);
            call.arg(0).arg(3).arg(&sources).arg(0);
            let refusal = queue.refusal(&call);
            let is_clear =
                refusal.contains(says) || (script.name == RETURN_JOBS.name && refusal.contains("no jobs are moved"));
            assert!(is_clear, "{}: {refusal}", script.name);
        }
    }
    queue.left_at_source();
}

#[test]
fn keys_of_ours_that_hold_something_else_are_named() {
    for suffix in ["completed", "vitals", "logged", "scheduler", "traces"] {
        let mut queue = theirs();
        queue.add(1000, Plan::new().frame(1));
        queue.command("SET", suffix, &["what"]);
        let (source, sources, number) = (queue.source(), queue.sources(), queue.next_number());
        let mut call = queue.call(&ADOPT_JOBS);
        call.arg(5000).arg("c").arg(0).arg(number).arg(source).arg("wait");
        call.arg(0).arg(3).arg(sources).arg(0);
        let refusal = queue.refusal(&call);
        assert!(refusal.contains(&format!("{suffix} holds a string")), "{refusal}");
        queue.left_at_source();
    }
}
