//! Keys as BullMQ writes them, of the queue of a test's name. Its own tests, with BullMQ itself, are in `__test__/migrate`.

use std::collections::BTreeMap;

use chasquimq::msgpack::Packer;
use redis::{Cmd, Value};

use super::queue::{show_reply, TestQueue};

impl TestQueue {
    /// What BullMQ's keys of this queue start with.
    pub fn source(&self) -> String {
        format!("{}:", self.probe.keys.qualified_name)
    }

    /// The sources of all queues that are moved: this one.
    pub fn sources(&self) -> Vec<u8> {
        let mut packed = Packer::default();
        packed.array(1).str(&self.source());
        packed.0
    }

    /// A command on one of BullMQ's keys.
    pub fn at_source(&mut self, name: &str, suffix: &str, args: &[&str]) -> Value {
        let key = format!("{}{suffix}", self.source());
        let mut command = redis::cmd(name);
        command.arg(key).arg(args);
        command.query(&mut self.probe.connection).expect("command")
    }

    /// A job's hash: name `n`, data `{}`, no options, added at 1000, and these fields.
    pub fn their_job(&mut self, id: &str, fields: &[&str]) {
        let known = ["name", "n", "data", "{}", "opts", "{}", "timestamp", "1000"];
        self.at_source("HSET", id, &[&known[..], fields].concat());
    }

    /// What a child of a job of this queue tells of it.
    pub fn their_parent(&self, id: &str) -> String {
        format!(r#"{{"id":"{id}","queueKey":"{}"}}"#, self.probe.keys.qualified_name)
    }

    /// What the server says to a call that it refuses, which must have changed nothing.
    pub fn refusal(&mut self, call: &Cmd) -> String {
        let before = self.all_keys();
        let reply: redis::RedisResult<Value> = call.query(&mut self.probe.connection);
        let refusal = reply.expect_err("a refusal").to_string();
        assert!(self.all_keys() == before, "{refusal}: and yet keys have changed");
        refusal
    }

    /// All keys of both, and what they hold.
    pub fn all_keys(&mut self) -> BTreeMap<String, Vec<u8>> {
        let mut keys = redis::cmd("KEYS");
        keys.arg(format!("*{}*", self.probe.keys.qualified_name));
        let keys: Vec<String> = keys.query(&mut self.probe.connection).expect("keys");
        let mut dumps = redis::pipe();
        for key in &keys {
            dumps.cmd("DUMP").arg(key);
        }
        let dumps: Vec<Vec<u8>> = dumps.query(&mut self.probe.connection).expect("dumps");
        keys.into_iter().zip(dumps).collect()
    }

    /// Ids of our jobs in a state, in the order of the queue.
    pub fn ids(&mut self, state: &str) -> Vec<String> {
        let (jobs, _) = self.list(&[state], 0, -1, true, true);
        jobs.into_iter().map(|job| show_reply(&job[0])).collect()
    }

    /// BullMQ's keys that are left, without what they start with. Deletes them.
    pub fn left_at_source(&mut self) -> Vec<String> {
        let source = self.source();
        let mut keys: Vec<String> = redis::cmd("KEYS")
            .arg(format!("{source}*"))
            .query(&mut self.probe.connection)
            .expect("keys");
        keys.sort();
        for key in &keys {
            redis::cmd("UNLINK")
                .arg(key)
                .exec(&mut self.probe.connection)
                .expect("unlink");
        }
        keys.into_iter().map(|key| key[source.len()..].to_owned()).collect()
    }
}
