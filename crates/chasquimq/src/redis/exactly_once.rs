//! Calls of scripts that are carried out once, however often they are sent (`lua/lib/memo.lua`).

use std::sync::{Mutex, PoisonError};

use redis::Value;

use super::{
    connection::Connection,
    library::{Arg, Script},
};
use crate::{error::Result, id::unique_id};

/// Memos for calls that are under way at the same time. A lane is used for one call at a time.
#[derive(Debug)]
pub(crate) struct Lanes {
    client: String,
    // the lanes nobody uses, each with the number of its last call; and how many lanes there are
    free: Mutex<(Vec<(u32, u64)>, u32)>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            client: unique_id(),
            free: Mutex::default(),
        }
    }
}

impl Lanes {
    /// Runs a script whose arguments begin with the caller's clock (epoch ms), and the client, lane and number of the call.
    /// # Errors
    /// As [`Connection::send`].
    pub(crate) async fn run(
        &self,
        connection: &Connection,
        base: &str,
        script: &Script,
        now_ms: u64,
        args: &[Arg<'_>],
    ) -> Result<Value> {
        let (lane, last) = self.take();
        let number = last + 1;
        let mut all = Vec::with_capacity(4 + args.len());
        all.extend([Arg::Int(now_ms as i64), Arg::from(self.client.as_str())]);
        all.extend([Arg::Int(i64::from(lane)), Arg::Int(number as i64)]);
        all.extend_from_slice(args);
        let reply = script.run(connection, base, &all).await;
        // a call whose answer was lost for good may still come: its lane is left to it
        if !matches!(&reply, Err(error) if error.is_connection()) {
            self.give_back(lane, number);
        }
        reply
    }

    /// A free lane, and the number of its last call.
    fn take(&self) -> (u32, u64) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.0.pop().unwrap_or_else(|| {
            free.1 += 1;
            (free.1, 0)
        })
    }

    /// The call of this number was answered.
    fn give_back(&self, lane: u32, number: u64) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.0.push((lane, number));
    }
}
