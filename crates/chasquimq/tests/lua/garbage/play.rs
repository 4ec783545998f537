//! Spoils the keys of a queue with random values, which can be repeated: a failure names its seed.

use std::collections::BTreeMap;

use chasquimq::{
    active::Active,
    lost::Lost,
    redis::call::library::{Script, FIND_LOST, LIST_ACTIVE, RECOVER_STALLED},
};
use redis::{Cmd, Value};

use crate::{
    given::queue::{pack_abandoned, TestQueue},
    model::random::Random,
};

const SEEDS: u64 = 300;

type Entry = (String, Vec<Vec<u8>>);

/// A queue whose keys are spoilt, time and again, and what scripts said to that.
pub(super) struct Play {
    pub(super) queue: TestQueue,
    dumps: BTreeMap<String, Vec<u8>>,
    pub(super) random: Random,
    raised: Vec<String>,
}

impl Play {
    /// The queue can be had again as it is now.
    pub(super) fn with(mut queue: TestQueue) -> Self {
        let dumps = queue.probe.suffixes().into_iter().map(|suffix| {
            let dump: Vec<u8> = redis::from_redis_value(queue.command("DUMP", &suffix, &[])).expect("a dump");
            (suffix, dump)
        });
        let dumps = dumps.collect();
        Self {
            queue,
            dumps,
            random: Random::seeded(0),
            raised: Vec::new(),
        }
    }

    /// Spoils what lies under one of these names, and lets `play` run scripts on it; again and again. None of them may raise.
    pub(super) fn seeds(mut self, names: &[&str], mut play: impl FnMut(&mut Self, &str)) {
        for seed in 0..SEEDS {
            self.restore();
            self.random = Random::seeded(seed);
            let suffix = *self.random.pick(names);
            let done = self.spoil(suffix);
            let what = format!("seed {seed}: {suffix} {}", done.chars().take(200).collect::<String>());
            play(&mut self, &what);
        }
        assert!(self.raised.is_empty(), "{}", self.raised.join("\n"));
    }

    fn send(&mut self, command: &Cmd) -> Value {
        command.query(&mut self.queue.probe.connection).expect("a command")
    }

    fn on_key(&self, name: &str, suffix: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(self.queue.probe.keys.key(suffix));
        command
    }

    fn restore(&mut self) {
        for suffix in self.queue.probe.suffixes() {
            self.send(&self.on_key("DEL", &suffix));
        }
        for (suffix, dump) in self.dumps.clone() {
            let mut restore = self.on_key("RESTORE", &suffix);
            restore.arg(0).arg(dump);
            self.send(&restore);
        }
    }

    /// Something else in the place of a value.
    fn garbage(&mut self, value: &[u8]) -> Vec<u8> {
        let mut bytes = value.to_vec();
        match self.random.below(7) {
            0 => bytes.truncate(self.random.below(value.len() as u64) as usize),
            1 => bytes = Vec::new(),
            2 => bytes = b"garbage".to_vec(),
            // an array, and a text, of lengths that are not there
            3 => bytes = vec![0xdd, 0xff, 0xff, 0xff, 0xff, 1],
            4 => bytes = vec![0xdb, 0x7f, 0xff, 0xff, 0xff, b'x'],
            5 => bytes = vec![0x91; 20_000],
            _ => {
                for _ in 0..=self.random.below(3) {
                    let at = self.random.below(bytes.len() as u64) as usize;
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = self.random.below(256) as u8;
                    }
                }
            }
        }
        bytes
    }

    fn hash(&mut self, suffix: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let all = self.on_key("HGETALL", suffix);
        let values: Vec<Vec<u8>> = redis::from_redis_value(self.send(&all)).expect("a hash");
        values
            .chunks_exact(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect()
    }

    fn entries(&mut self, suffix: &str) -> Vec<Entry> {
        let mut range = self.on_key("XRANGE", suffix);
        range.arg("-").arg("+");
        redis::from_redis_value(self.send(&range)).expect("a stream")
    }

    /// Spoils what lies under a name. Gives what was done.
    fn spoil(&mut self, suffix: &str) -> String {
        match suffix.split(':').next().unwrap_or_default() {
            "log" | "events" => self.spoil_stream(suffix),
            "parents" | "children" | "spans" | "group-holds" => self.spoil_set(suffix),
            "front" => {
                let id = self.garbage(b"12");
                let mut push = self.on_key("LPUSH", suffix);
                self.send(push.arg(&id));
                format!("{id:?}")
            }
            "delays" | "turns" | "group-starts" => {
                let value = self.garbage(&[7; 24]);
                let mut set = self.on_key("SET", suffix);
                self.send(set.arg(&value));
                format!("{value:?}")
            }
            "key-limit" => {
                let known = self.send(&self.on_key("GET", suffix));
                let known: Vec<u8> = redis::from_redis_value(known).expect("a state");
                let mut value = self.garbage(&known);
                if self.random.once_in(2) {
                    let odd: f64 = *self.random.pick(&[f64::NAN, f64::INFINITY, 1e300, -1e300, 9e12, 0.5]);
                    let at = 8 * self.random.below(known.len() as u64 / 8) as usize;
                    value = [&known[..at], &odd.to_le_bytes(), &known[at + 8..]].concat();
                }
                let mut set = self.on_key("SET", suffix);
                self.send(set.arg(&value));
                format!("{value:?}")
            }
            "key-line" => {
                let (score, id) = (*self.random.pick(&["5", "9e12", "1e300", "inf"]), self.garbage(b"12"));
                let mut add = self.on_key("ZADD", suffix);
                self.send(add.arg(score).arg(&id));
                format!("{id:?}@{score}")
            }
            "delayed" | "failed" | "expiring" | "waiting-children" | "faults" | "grouped" | "groups"
            | "groups-limited" | "groups-maxed" | "groups-paused" | "group" => {
                let (score, id) = (self.random.below(8_000_000), self.garbage(b"12"));
                let mut add = self.on_key("ZADD", suffix);
                self.send(add.arg(score).arg(&id));
                format!("{id:?}@{score}")
            }
            _ => {
                let fields = self.hash(suffix);
                let known = fields.get(self.random.below(fields.len() as u64) as usize).cloned();
                let (field, value) = known.unwrap_or_else(|| (b"x".to_vec(), b"\x81\xa2am\x01".to_vec()));
                let value = self.garbage(&value);
                let mut set = self.on_key("HSET", suffix);
                self.send(set.arg(&field).arg(&value));
                format!("{} = {value:?}", String::from_utf8_lossy(&field))
            }
        }
    }

    fn spoil_set(&mut self, suffix: &str) -> String {
        let members: Vec<Vec<u8>> =
            redis::from_redis_value(self.send(&self.on_key("SMEMBERS", suffix))).expect("a set");
        let known = members.get(self.random.below(1 + members.len() as u64) as usize);
        let value = self.garbage(known.map_or(b"12".as_slice(), Vec::as_slice));
        if let Some(known) = known {
            self.send(self.on_key("SREM", suffix).arg(known));
        }
        self.send(self.on_key("SADD", suffix).arg(&value));
        format!("{:?} = {value:?}", known.map(|known| String::from_utf8_lossy(known)))
    }

    fn spoil_stream(&mut self, suffix: &str) -> String {
        let mut entries = self.entries(suffix);
        let at = self.random.below(entries.len() as u64) as usize;
        let done = match self.random.below(3) {
            0 => {
                entries.push((format!("{}-7", 1_u64 << 41), vec![b"who".to_vec(), b"knows".to_vec()]));
                "a stray entry at the end".to_owned()
            }
            1 if suffix == "log" => {
                let id = format!("{}-3", entries[at].0.split('-').next().unwrap_or("0"));
                entries.insert(at, (id, vec![b"who".to_vec(), b"knows".to_vec()]));
                format!("a stray entry before {at}")
            }
            _ => {
                entries[at].1[1] = self.garbage(&entries[at].1[1].clone());
                format!("entry {} = {:?}", entries[at].0, entries[at].1[1])
            }
        };
        self.send(&self.on_key("DEL", suffix));
        for (id, fields) in entries {
            let mut add = self.on_key("XADD", suffix);
            add.arg(id).arg(fields);
            // of two entries with one id, the first one
            let _: redis::RedisResult<Value> = add.query(&mut self.queue.probe.connection);
        }
        done
    }

    /// Runs a script, which must not raise.
    pub(super) fn run(&mut self, script: &Script, what: &str, args: impl FnOnce(&mut Cmd)) {
        let mut call = self.queue.call(script);
        args(&mut call);
        self.try_call(script.name, what, &call);
    }

    /// The same of one that is carried out once; `now_ms` where it is told it.
    pub(super) fn run_once(&mut self, script: &Script, now_ms: Option<u64>, what: &str, args: impl FnOnce(&mut Cmd)) {
        let mut call = self.queue.numbered_call(script, now_ms);
        args(&mut call);
        self.try_call(script.name, what, &call);
    }

    pub(super) fn try_call(&mut self, script: &str, what: &str, call: &Cmd) -> Value {
        let reply = call.query(&mut self.queue.probe.connection);
        reply.unwrap_or_else(|error| {
            self.raised.push(format!("{script} with {what}: {error}"));
            Value::Nil
        })
    }

    /// What a `clean_jobs` of active jobs is told, after a first look at them.
    pub(super) fn abandoned(&mut self, what: &str) -> Vec<u8> {
        let mut call = self.queue.call(&LIST_ACTIVE);
        call.arg("lost").arg("");
        let (page, mut active) = (self.try_call(LIST_ACTIVE.name, what, &call), Active::default());
        // what raised is noted
        let _ = active.take_in(page);
        pack_abandoned(&active.ids())
    }

    /// A worker is gone, and its jobs are looked for.
    pub(super) fn lose(&mut self, owner: &str, what: &str, now_ms: u64) {
        self.queue.end_lease(owner);
        self.queue.command("DEL", "stalled", &[]);
        self.recover_stalled(what, now_ms);
    }

    /// Looks for jobs whose worker is gone, and brings back what is found first.
    fn recover_stalled(&mut self, what: &str, now_ms: u64) {
        let mut call = self.queue.call(&FIND_LOST);
        call.arg(0).arg("").arg("").arg("");
        let found = self.try_call(FIND_LOST.name, what, &call);
        let mut lost = Lost::default();
        // what raised is noted
        if lost.take_in(found, &|_, _| false).is_err() {
            return;
        }
        if let Some((items, _, is_last)) = lost.parcel() {
            self.run_once(&RECOVER_STALLED, Some(now_ms), what, |call| {
                call.arg(1).arg("").arg(items).arg(u8::from(is_last));
            });
        }
    }
}
