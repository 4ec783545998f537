//! Values that no script wrote, under every name of a queue: no script raises, since one that does leaves its work half done, and
//! the queue for ever where it is. The values are random, and can be repeated: a failure names its seed.

use std::collections::BTreeMap;

use chasquimq::server::script::{
    Script, ADD, AMEND_JOB, CHANGE_PRIORITY, CLEAN_JOBS, COUNT_JOBS, FIND_FAILED, JOB_STATE, LIST_JOBS, LOG_JOB,
    MOVE_DELAYED, PROMOTE_JOBS, READ_JOBS, REMOVE_JOB, RESCUE, RETRY_JOB, RETRY_JOBS, STEP,
};
use redis::{Cmd, Value};

use super::{
    model::{bulk::by_age, random::Random},
    read_jobs,
    read_jobs::by_ids,
};
use crate::given::{plan::Plan, queue::TestQueue, step::Step};

const SEEDS: u64 = 300;
/// What jobs are made of. A counter that is garbage (`state`) makes every script raise before it has written anything.
const NAMES: [&str; 15] = [
    "log", "jobs", "vitals", "traces", "active", "takes", "runs", "holes", "gone", "frames", "front", "delayed",
    "delays", "events", "failed",
];
const IDS: [&str; 14] = ["1", "2", "3", "4", "5", "8", "9", "x", "y", "z", "d", "e", "f", "p"];

type Entry = (String, Vec<Vec<u8>>);

struct Play {
    queue: TestQueue,
    dumps: BTreeMap<String, Vec<u8>>,
    random: Random,
    raised: Vec<String>,
}

impl Play {
    /// A queue with jobs in every state, as it can be had again.
    fn new() -> Self {
        let mut queue = read_jobs::full();
        queue.add(1011, Plan::new().prioritized("p", 3).frame(5).record("r"));
        queue.command("DEL", "lease:w", &[]);
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
        match suffix {
            "log" | "events" => self.spoil_stream(suffix),
            "front" => {
                let id = self.garbage(b"12");
                let mut push = self.on_key("LPUSH", suffix);
                self.send(push.arg(&id));
                format!("{id:?}")
            }
            "delays" => {
                let value = self.garbage(&[7; 24]);
                let mut set = self.on_key("SET", suffix);
                self.send(set.arg(&value));
                format!("{value:?}")
            }
            "delayed" | "failed" => {
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
    fn run(&mut self, script: &Script, what: &str, args: impl FnOnce(&mut Cmd)) {
        let mut call = self.queue.call(script);
        args(&mut call);
        self.try_call(script.name, what, &call);
    }

    fn try_call(&mut self, script: &str, what: &str, call: &Cmd) {
        if let Err(error) = call.query::<Value>(&mut self.queue.probe.connection) {
            self.raised.push(format!("{script} with {what}: {error}"));
        }
    }

    fn read_all(&mut self, what: &str) {
        for state in ["waiting", "active", "completed", "failed", "delayed", "prioritized"] {
            for ids_only in [0, 1] {
                self.run(&LIST_JOBS, what, |call| {
                    call.arg(by_ids(&[state])).arg(0).arg(-1).arg(1).arg(ids_only).arg("");
                });
            }
        }
        self.run(&READ_JOBS, what, |call| {
            call.arg(by_ids(&IDS));
        });
        for id in IDS {
            self.run(&JOB_STATE, what, |call| {
                call.arg(id);
            });
        }
        self.run(&COUNT_JOBS, what, |_| {});
        self.run(&FIND_FAILED, what, |call| {
            call.arg(by_age(9000)).arg(0).arg(0).arg(10);
        });
    }

    /// Lets workers take everything, gives some of it back, and takes it again.
    fn work(&mut self, what: &str) {
        for (owner, want, at) in [("a", 3, 4500), ("b", 100, 6000)] {
            let call = self.queue.step_call(&Step::by(owner).at(at).want(want).surplus(20));
            self.try_call(STEP.name, what, &call);
            self.queue.end_lease(owner);
            self.queue.command("DEL", "stalled", &[]);
            self.run(&RESCUE, what, |call| {
                call.arg(7000).arg(60_000).arg(1);
            });
        }
    }

    fn manage(&mut self, what: &str) {
        let id = *self.random.pick(&IDS);
        self.run(&LOG_JOB, what, |call| {
            call.arg(id).arg("row").arg(0);
        });
        for (field, value) in [("data", "5"), ("progress", "6")] {
            self.run(&AMEND_JOB, what, |call| {
                call.arg(7001).arg(id).arg(field).arg(value);
            });
        }
        self.run(&CHANGE_PRIORITY, what, |call| {
            call.arg(id).arg(2).arg(0);
        });
        self.run(&MOVE_DELAYED, what, |call| {
            call.arg(7001).arg("d").arg(9000);
        });
        self.run(&RETRY_JOB, what, |call| {
            call.arg(7001).arg(id).arg("failed").arg(0).arg(0).arg(0);
        });
        for state in ["failed", "completed"] {
            let number = self.queue.next_number();
            self.run(&RETRY_JOBS, what, |call| {
                call.arg(7002).arg("c").arg(number).arg(state);
                call.arg(by_age(9000)).arg(3).arg(0).arg(0);
            });
        }
        self.run(&PROMOTE_JOBS, what, |call| {
            call.arg(7003).arg(1);
        });
        let number = self.queue.next_number();
        self.run(&ADD, what, |call| {
            call.arg(7004).arg("c").arg(0).arg(number);
            Plan::new().frame(3).record("new").delayed("late", 9000).append_to(call);
        });
        self.run(&REMOVE_JOB, what, |call| {
            call.arg(7005).arg(self::other(id)).arg(0);
        });
        for state in ["wait", "active", "completed", "failed", "delayed", "prioritized"] {
            let number = self.queue.next_number();
            self.run(&CLEAN_JOBS, what, |call| {
                call.arg(7006).arg("k").arg(number).arg(state);
                call.arg(by_age(9000)).arg(2).arg("").arg(0);
            });
        }
    }
}

fn other(id: &str) -> &str {
    IDS.iter().find(|other| **other > id).unwrap_or(&"1")
}

#[test]
fn no_script_raises_for_a_value_that_it_did_not_write() {
    let mut play = Play::new();
    for seed in 0..SEEDS {
        play.restore();
        play.random = Random::seeded(seed);
        let suffix = *play.random.pick(&NAMES);
        let done = play.spoil(suffix);
        let what = format!("seed {seed}: {suffix} {}", done.chars().take(200).collect::<String>());
        let rounds = play.random.below(3);
        if rounds != 1 {
            play.read_all(&what);
        }
        if rounds == 0 {
            play.manage(&what);
        }
        play.work(&what);
        play.manage(&what);
        play.read_all(&what);
    }
    assert!(play.raised.is_empty(), "{}", play.raised.join("\n"));
}
