//! Calls that the server carries out once, however often they are sent: it remembers what it answered to the last call in each slot of a
//! client (`lua/queue/memo.lua`).

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use redis::Value;

use super::library::{args, Arg, Script, RECALL};
use crate::{
    clock::Moment,
    error::{Error, Result},
    id::unique_id,
    keys::Keys,
    redis::connection::Connection,
};

/// The scripts remember a call for an hour (`lua/queue/memo.lua`): one that could not be confirmed for so long must not be sent again.
pub(crate) const CONFIRM_WITHIN: Duration = Duration::from_secs(50 * 60);

/// How long the server remembers a call (`lua/queue/memo.lua`).
pub(crate) const REMEMBERED_MS: i64 = 3_600_000;
/// How long the server remembers calls of a client that makes no more: a copy of one may still be under way on a connection that broke.
pub(crate) const FORGET_AFTER_MS: u64 = 60_000;
/// Of more slots than this the server forgets by itself: most of them were given up, as their calls were refused.
const MOST_FORGOTTEN: u32 = 1024;
/// How long a close waits for a server to take note of that.
const FORGET_WITHIN: Duration = Duration::from_secs(2);

/// What the server knows a call by. A slot is used for one call at a time, and each call there has a higher number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    slot: u32,
    number: u64,
}

/// The calls of one client, many of which may be under way.
#[derive(Debug)]
pub(crate) struct Calls {
    client: String,
    // the last call in each free slot, and how many slots there are
    slots: Mutex<(Vec<Ticket>, u32)>,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            client: unique_id(),
            slots: Mutex::default(),
        }
    }
}

impl Calls {
    /// Numbers a call.
    pub(crate) fn begin(&self) -> Ticket {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let Ticket { slot, number } = slots.0.pop().unwrap_or_else(|| {
            slots.1 += 1;
            Ticket {
                slot: slots.1 - 1,
                number: 0,
            }
        });
        Ticket {
            slot,
            number: number + 1,
        }
    }

    /// A name that no other call of any client has.
    pub(crate) fn name_of(&self, ticket: Ticket) -> String {
        format!("{}:{}:{}", self.client, ticket.slot, ticket.number)
    }

    /// Lets a call's slot be used again. Not for one whose answer was lost for good: it may still come.
    pub(crate) fn end(&self, ticket: Ticket) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.0.push(ticket);
    }

    /// What a call's arguments begin with: the caller's clock, if it is wanted, and the ticket. `room` is for those that follow.
    pub(crate) fn args(&self, now_ms: impl Into<Option<u64>>, ticket: Ticket, room: usize) -> Vec<Arg<'_>> {
        let mut args = Vec::with_capacity(4 + room);
        args.extend(now_ms.into().map(Arg::from));
        args.push(Arg::from(self.client.as_str()));
        args.extend([Arg::Int(i64::from(ticket.slot)), Arg::Int(ticket.number as i64)]);
        args
    }

    /// Numbers a call and sends it until it is answered. `now_ms` for a script that wants it.
    pub(crate) async fn run(
        &self,
        connection: &Connection,
        base: &str,
        script: &Script,
        now_ms: impl Into<Option<u64>>,
        args: &[Arg<'_>],
    ) -> Result<Value> {
        let ticket = self.begin();
        let mut all = self.args(now_ms, ticket, args.len());
        all.extend_from_slice(args);
        let work = script.run(connection, base, &all);
        let reply = Moment::now().within(CONFIRM_WITHIN, work).await;
        let reply = reply.unwrap_or(Err(Error::Unconfirmed(CONFIRM_WITHIN)));
        let reply = self.recall(connection, base, ticket, reply).await;
        // one that may still come keeps its slot: a copy of it was sent before, perhaps, and has no answer
        if reply.is_ok() {
            self.end(ticket);
        }
        reply
    }

    /// What a call was answered: one that is refused may have been carried out before, and its reply was lost. The server has filled up since, say, has
    /// lost its replicas or cannot write to its disk.
    pub(crate) async fn recall(
        &self,
        connection: &Connection,
        base: &str,
        ticket: Ticket,
        reply: Result<Value>,
    ) -> Result<Value> {
        if !matches!(&reply, Err(Error::Refused(_))) {
            return reply;
        }
        let call = args![self.client.as_str(), i64::from(ticket.slot), ticket.number];
        match RECALL.run(connection, base, &call).await {
            Ok(known) if known != Value::Nil => Ok(known),
            _ => reply,
        }
    }

    /// Lets the server forget in a minute instead of an hour. Call it when no call is under way.
    pub(crate) async fn forget(&self, connection: &Connection, keys: &Keys) {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner).1;
        let slots = slots.min(MOST_FORGOTTEN);
        if slots == 0 || !connection.is_connected() {
            return;
        }
        let mut pipeline = redis::pipe();
        for slot in 0..slots {
            let memo = keys.memo(&self.client, slot);
            pipeline.cmd("PEXPIRE").arg(memo).arg(FORGET_AFTER_MS);
        }
        // the server forgets by itself in an hour
        let _ = tokio::time::timeout(FORGET_WITHIN, connection.send_pipeline_once(&pipeline, slots as usize)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::{call::library::PUBLISH_EVENT, reach::options::ConnectOptions};

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_call_that_nobody_confirms_is_rejected_in_time_and_keeps_its_slot() {
        let options = ConnectOptions {
            path: Some("/there/is/no/redis.sock".into()),
            ..ConnectOptions::default()
        };
        let (connection, calls) = (Connection::new(options, |_| {}), Calls::default());
        let began = tokio::time::Instant::now();
        let call = calls.run(&connection, "bull:q:", &PUBLISH_EVENT, 1000, &[]);
        // the test's clock is paused
        let answer = tokio::time::timeout(2 * CONFIRM_WITHIN, call).await;
        assert!(
            matches!(answer, Ok(Err(Error::Unconfirmed(CONFIRM_WITHIN)))),
            "{answer:?}"
        );
        assert_eq!(began.elapsed(), CONFIRM_WITHIN);
        // it may still come
        let next = calls.begin();
        assert_eq!((next.slot, next.number), (1, 1));
    }
}
