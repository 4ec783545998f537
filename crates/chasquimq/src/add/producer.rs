//! Sends batches, each of which is added exactly once.

use redis::Value;

use super::batch::{AddBatch, Plan};
use crate::{
    clock::Moment,
    error::{Error, Result},
    keys::Keys,
    redis::{
        call::{
            commands::Commands,
            library::{Arg, Script, ADD, ADD_AND_STEP, ADD_FRAMES},
            numbered_calls::{Calls, Ticket, CONFIRM_WITHIN},
            reply::Reply,
        },
        connection::Connection,
    },
    worker::StepAlong,
};

// what was stored for a call that never came goes by itself
const STASH_MS: &str = "60000";
// how often what a call needs is stored again: a server that has taken another's place meanwhile has it not
const STASHES: usize = 5;
/// The server's code where they are gone, from `lua/transitions/add_frames.lua`.
const STASH_LOST: &str = "STASHLOST";

/// Ids of an added batch: job `i` has `first + i`, unless it is in `exceptions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Added {
    /// Number of the batch's first job.
    pub first: u64,
    /// Index and id of the jobs with an id of their own, in order.
    pub exceptions: Vec<(usize, String)>,
}

impl Added {
    /// Id of the batch's job `index`.
    pub fn id(&self, index: usize) -> String {
        match self.exceptions.binary_search_by_key(&index, |(at, _)| *at) {
            Ok(found) => self.exceptions[found].1.clone(),
            Err(_) => (self.first + index as u64).to_string(),
        }
    }
}

/// Adds batches to one queue. Many may be under way at once; each is added exactly once, whatever the connection does.
#[derive(Debug)]
pub struct Producer {
    connection: Connection,
    keys: Keys,
    calls: Calls,
}

impl Producer {
    /// A producer for the queue with these keys.
    pub fn new(connection: Connection, keys: Keys) -> Self {
        Self {
            connection,
            keys,
            calls: Calls::default(),
        }
    }

    /// Adds a batch, in order, in one atomic step.
    /// # Errors
    /// As [`Producer::send`].
    pub async fn add(&self, batch: AddBatch) -> Result<Added> {
        let call = self.begin(batch);
        let added = self.send(&call).await;
        self.end(&call, &added);
        added
    }

    /// Numbers a batch. From now on it may be sent any number of times, over any connection: it is added once.
    pub fn begin(&self, batch: AddBatch) -> Call {
        Call {
            ticket: self.calls.begin(),
            batch,
            begun: Moment::now(),
        }
    }

    /// Sends a call until it is answered.
    /// # Errors
    /// [`Error::Closed`] when closed meanwhile; [`Error::Unconfirmed`] when the server could not be asked for so long that a second
    /// try might add the jobs twice; [`Error::QueueFull`]; [`Error::Refused`] when the server refuses, for instance for lack of memory.
    pub async fn send(&self, call: &Call) -> Result<Added> {
        // it may have been sent before, by an event loop
        let reply = call.begun.within(CONFIRM_WITHIN, self.run(call)).await;
        let reply = reply.ok_or(Error::Unconfirmed(CONFIRM_WITHIN))??;
        read_added(reply, &self.keys.qualified_name)
    }

    async fn run(&self, call: &Call) -> Result<Value> {
        let args = self.args(call);
        let mut tries = 0;
        loop {
            for (name, frame) in self.stashed(call) {
                let mut set = redis::cmd("SET");
                set.arg(name).arg(frame).arg("PX").arg(STASH_MS);
                self.connection.send_write(&set).await?;
            }
            let base = &self.keys.base;
            let reply = call.script().run(&self.connection, base, &args).await;
            let reply = self.calls.recall(&self.connection, base, call.ticket, reply).await;
            tries += 1;
            let is_stash_lost = matches!(&reply, Err(Error::Refused(refusal)) if refusal.code() == STASH_LOST);
            if !is_stash_lost || call.stashes() == 0 || tries == STASHES {
                return reply;
            }
        }
    }

    /// Frames that lie apart, and the names under which they are stored until the call settles them.
    fn stashed<'a>(&self, call: &'a Call) -> impl Iterator<Item = (String, &'a [u8])> {
        let name = self.keys.key(&format!("stash:{}", self.calls.name_of(call.ticket)));
        let frames = call.batch.apart.iter().enumerate();
        frames.map(move |(at, (_, frame))| (format!("{name}:{}", at + 1), frame.as_slice()))
    }

    /// The call as commands for an event loop that sends them itself: [`Call::stashes`] that are answered first, and itself. Any error it is
    /// answered with leads back to [`Producer::send`].
    pub fn commands<'a>(&self, call: &'a Call) -> Commands<'a> {
        let command = call
            .script()
            .packed(&self.connection, &self.keys.base, &self.args(call));
        if call.stashes() == 0 {
            return command.into();
        }
        let mut commands = Commands::default();
        for (name, frame) in self.stashed(call) {
            commands.push_set(&name, frame, STASH_MS);
        }
        commands.push(&command);
        commands
    }

    /// The same with a step of a worker that waits, which it takes along; the answers to both come as one ([`split_answer`]). Only for a call that
    /// [`Call::starts_at_once`], and where the server knows functions ([`Producer::takes_steps`]).
    pub fn command_with_step(&self, call: &Call, step: &StepAlong) -> Vec<u8> {
        let mut args = Vec::with_capacity(9);
        args.extend([
            Arg::from(step.request.as_slice()),
            Arg::from(matches!(call.batch.plan, Plan::Items(_))),
        ]);
        args.extend(self.args(call));
        ADD_AND_STEP.packed(&self.connection, &self.keys.base, &args)
    }

    /// Whether calls may take steps along: as a script, such a call would be one that the server has never seen.
    pub fn takes_steps(&self) -> bool {
        !self.connection.needs_scripts()
    }

    /// Lets the call's slot be used again, if it was carried out, or never can be.
    pub fn end(&self, call: &Call, added: &Result<Added>) {
        if matches!(added, Ok(_) | Err(Error::QueueFull { .. } | Error::GroupFull { .. })) {
            self.calls.end(call.ticket);
        }
    }

    fn args<'a>(&'a self, call: &'a Call) -> Vec<Arg<'a>> {
        let batch = &call.batch;
        let mut args = self.calls.args(batch.now_ms, call.ticket, 1 + 3 * batch.blobs.len());
        match &batch.plan {
            Plan::Frames(frames) => {
                let first = args.len();
                for ((jobs, names), blob) in frames.iter().zip(&batch.blobs) {
                    args.push(Arg::Int(*jobs as i64));
                    args.push(Arg::from(names.as_slice()));
                    args.push(Arg::from(blob.as_slice()));
                }
                // which of them lie apart
                for (place, _) in &batch.apart {
                    args[first + 3 * place] = Arg::Int(-(frames[*place].0 as i64));
                }
            }
            Plan::Items(items) => {
                args.push(Arg::from(items.as_slice()));
                args.extend(batch.blobs.iter().map(|blob| Arg::from(blob.as_slice())));
            }
        }
        args
    }

    /// Lets the server forget this producer's calls in a minute instead of an hour. Call it when none is under way: a copy of one may
    /// still be, on a connection that broke, and must find its answer.
    pub async fn forget(&self) {
        self.calls.forget(&self.connection, &self.keys).await;
    }
}

/// A numbered batch.
#[derive(Debug)]
pub struct Call {
    ticket: Ticket,
    batch: AddBatch,
    begun: Moment,
}

impl Call {
    /// Frames that are stored by commands of their own before the call.
    pub fn stashes(&self) -> usize {
        self.batch.apart.len()
    }

    /// Whether it adds one job, which may start at once and has nothing apart.
    pub fn starts_at_once(&self) -> bool {
        self.batch.starts_at_once && self.batch.apart.is_empty()
    }

    fn script(&self) -> &'static Script {
        match self.batch.plan {
            Plan::Frames(_) => &ADD_FRAMES,
            Plan::Items(_) => &ADD,
        }
    }
}

/// The answer to a call, and to the step that it took along, if that was carried out.
pub fn split_answer(reply: Value) -> (Value, Option<Value>) {
    match reply {
        Value::Array(values) => {
            let mut values = values.into_iter();
            let added = values.next().unwrap_or(Value::Nil);
            (added, values.next())
        }
        other => (other, None),
    }
}

/// Reads the answer to a call about this queue, as users see it.
/// # Errors
/// [`Error::QueueFull`]; [`Error::GroupFull`]; [`Error::Malformed`] when it is none.
pub fn read_added(reply: Value, queue: &str) -> Result<Added> {
    let mut reply = Reply::new("the answer to add", reply)?;
    let first = match reply.int()? {
        -12 => return Err(read_full(&mut reply, queue)?),
        -13 => return Err(read_group_full(&mut reply)?),
        first => first as u64,
    };
    let mut flat = reply.array()?;
    let mut exceptions = Vec::with_capacity(flat.len() / 2);
    while !flat.is_empty() {
        exceptions.push((flat.int()? as usize, flat.text()?));
    }
    Ok(Added { first, exceptions })
}

/// What an answer says behind its -12 (`lua/rules/length.lua`).
pub(crate) fn read_full(reply: &mut Reply, queue: &str) -> Result<Error> {
    Ok(Error::QueueFull {
        queue: queue.to_owned(),
        jobs: reply.int()? as u64,
        length: reply.int()? as u64,
        max_length: reply.int()? as u64,
    })
}

/// What an answer says behind its -13 (`lua/rules/group_size.lua`).
pub(crate) fn read_group_full(reply: &mut Reply) -> Result<Error> {
    Ok(Error::GroupFull {
        group: reply.text()?,
        size: reply.int()? as u64,
        max_size: reply.int()? as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{add::NewJob, job::options::JobOptions, redis::reach::options::ConnectOptions};

    #[tokio::test]
    async fn a_call_that_was_under_way_elsewhere_for_too_long_is_not_sent_again() {
        let connection = Connection::new(ConnectOptions::default(), |_| {});
        let producer = Producer::new(connection, Keys::new("bull", "q"));
        let job = NewJob {
            name: "job",
            data: "1",
            options: &JobOptions::none("{}"),
        };
        let mut call = producer.begin(AddBatch::one(1000, job));
        call.begun = call.begun - CONFIRM_WITHIN;
        assert!(matches!(
            producer.send(&call).await,
            Err(Error::Unconfirmed(CONFIRM_WITHIN))
        ));
    }
}
