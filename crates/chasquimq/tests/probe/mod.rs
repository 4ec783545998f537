//! A queue on the test server, seen from below: its keys, and what must hold between them.

pub mod check;
mod groups;
pub mod snapshot;
pub mod tree;

use chasquimq::{unique_id, ConnectOptions, Keys};
use snapshot::Snapshot;

/// Where the test server is.
pub fn server_url() -> String {
    std::env::var("REDIS_URL").expect("REDIS_URL must name the Redis server to test on, such as redis://127.0.0.1:6379")
}

/// The test server, as the engine connects to it.
pub fn connect_options() -> ConnectOptions {
    ConnectOptions::try_from(&server_url()).expect("REDIS_URL")
}

/// A queue of a test's own. Its keys are deleted at the end.
pub struct Probe {
    pub connection: redis::Connection,
    pub keys: Keys,
}

impl Probe {
    pub fn fresh() -> Self {
        Self::of(Keys::new("chasqui-test", &unique_id()))
    }

    pub fn of(keys: Keys) -> Self {
        let connection = redis::Client::open(server_url())
            .and_then(|client| client.get_connection())
            .expect("a connection to REDIS_URL");
        Self { connection, keys }
    }

    pub fn snapshot(&mut self) -> Snapshot {
        Snapshot::of(&mut self.connection, &self.keys.base)
    }

    /// The snapshot, when all in it agrees.
    pub fn checked(&mut self) -> Snapshot {
        let snapshot = self.snapshot();
        if let Err(wrong) = check::check(&snapshot, &self.keys.qualified_name) {
            panic!("keys disagree:\n{wrong}");
        }
        snapshot
    }

    /// Names of the keys that exist, without what they all start with.
    pub fn suffixes(&mut self) -> Vec<String> {
        let base = self.keys.base.clone();
        let mut scan = redis::cmd("SCAN");
        scan.cursor_arg(0)
            .arg("MATCH")
            .arg(format!("{base}*"))
            .arg("COUNT")
            .arg(1000);
        let found = scan.iter::<String>(&mut self.connection).expect("scan");
        let mut suffixes: Vec<String> = found.map(|key| key.expect("key")[base.len()..].to_owned()).collect();
        suffixes.sort();
        suffixes.dedup();
        suffixes
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        for suffix in self.suffixes() {
            // what is left behind harms nobody: the next test uses another name
            let _ = redis::cmd("UNLINK")
                .arg(self.keys.key(&suffix))
                .exec(&mut self.connection);
        }
    }
}
