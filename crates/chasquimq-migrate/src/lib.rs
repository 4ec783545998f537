//! Moving a queue of BullMQ's, on the same server or in the same cluster, into ours of the same name. What BullMQ's keys of a queue start
//! with is its source (`lua/migrate/bull.lua`). The caller makes the steps: settings first, then parents that wait for children, then the rest,
//! place by place.
//!
//! A step is one call, which the server carries out as a whole or not at all: in a cluster both queues lie in one slot
//! ([`chasquimq::Keys::new`]). So each job is in exactly one of the two at any moment, whoever is killed:
//!
//! - before the server has the call: all of its jobs are where they were;
//! - while the server works: nobody sees the keys in between, and a server that ends there has done nothing;
//! - behind it, though nobody reads the reply: they are on the other side. A caller that lives on sends the call again, under its number, and
//!   is told what was done (`lua/queue/memo.lua` of the engine);
//! - between two calls: some are on one side, some on the other, and the next run goes on. A parent whose children are on the side that it
//!   left stays in that side's `moved-parents`, until it was told of all of them.
//!
//! Steps are scripts: who moves queues may call `EVAL`.

#![forbid(unsafe_code)]

mod names;
pub mod scripts;
mod source;
mod survey;

use chasquimq::{
    msgpack::Packer,
    queue::search::{escaped, scan},
    redis::call::{
        library::{Arg, Script},
        reply::Reply,
    },
    Error, Queue, Result,
};

use self::scripts::{ADOPT_DEDUP, ADOPT_JOBS, ADOPT_QUEUE, RETURN_JOBS, RETURN_QUEUE, SETTLE_ADOPTED};
pub use self::{source::SourceJob, survey::Survey};

/// Jobs that one step moves at most: it holds the server for some milliseconds.
const MOST_A_STEP: u64 = 250;
/// Keys that one step looks at for deduplication ids.
const KEYS_A_STEP: usize = 2_000;

/// What the first step of a move took over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Nobody has taken over the settings of this queue before.
    pub is_first: bool,
    /// Settings and their values.
    pub taken: Vec<(String, String)>,
}

impl Settings {
    fn read(mut reply: Reply, is_first: bool) -> Result<Self> {
        // above which new jobs get their numbers
        reply.int()?;
        let mut taken = Vec::new();
        while !reply.is_empty() {
            taken.push((reply.text()?, reply.text()?));
        }
        Ok(Self { is_first, taken })
    }
}

/// What a step did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Jobs that it looked at; 0: there are no more.
    pub looked: u64,
    /// Those that were moved, or would be.
    pub moved: u64,
    /// Job schedulers that went with them.
    pub schedulers: u64,
    /// Ids of those that stay, and why.
    pub stays: Vec<(String, String)>,
    /// By how much further the next step has to look to pass over them.
    pub kept: u64,
}

/// What became known of children of parents that were moved before them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// Where the next step goes on; `0`: all were looked at.
    pub cursor: String,
    /// Children that are still BullMQ's.
    pub open: u64,
}

/// The move of one queue.
#[derive(Debug, Clone, Copy)]
pub struct Migration<'a> {
    queue: &'a Queue,
}

impl<'a> Migration<'a> {
    /// Of this queue of ours, and that of BullMQ's of its name.
    pub fn of(queue: &'a Queue) -> Self {
        Self { queue }
    }

    /// What BullMQ's keys of the queue of this name start with.
    pub fn source(&self) -> String {
        format!("{}:", self.queue.keys().qualified_name)
    }

    /// Whether a step can reach both queues: in a cluster, where BullMQ's lies in one slot. Anywhere else BullMQ cannot have run a job.
    /// # Errors
    /// [`Error::Invalid`] where the queue's name brings no hash tag.
    pub fn require_one_slot(&self) -> Result<()> {
        if self.queue.connection().is_of_cluster() && !self.queue.keys().is_tagged() {
            return Err(Error::Invalid(format!(
                "BullMQ's keys of {} are in different slots of the cluster, where BullMQ itself can neither add nor run a job: give the \
                 name and the prefix as BullMQ's programs have them, of which one has a hash tag, such as {{bull}}",
                self.queue.keys().qualified_name
            )));
        }
        Ok(())
    }

    /// Takes over what BullMQ knows of the queue as a whole, once. The first time `gap` numbers stay free for jobs that BullMQ's producers
    /// still add.
    pub async fn adopt_queue(&self, gap: u64) -> Result<Settings> {
        self.require_one_slot()?;
        let source = self.source();
        let mut reply = self
            .queue
            .ask(&ADOPT_QUEUE, &[source.as_str().into(), gap.into()])
            .await?;
        let is_first = reply.int()? == 1;
        Settings::read(reply, is_first)
    }

    /// Moves the next jobs of one of BullMQ's lists or sets (`wait`, `paused`, `prioritized`, `delayed`, `waiting-children`, `completed`,
    /// `failed`), behind those that the caller knows to stay. `sources`: of all queues that are moved. `tries`: moves nothing.
    pub async fn adopt_jobs(
        &self,
        now_ms: u64,
        place: &str,
        skip: u64,
        sources: &[String],
        tries: bool,
    ) -> Result<Moved> {
        let (source, packed) = (self.source(), pack(sources));
        let step = [
            source.as_str().into(),
            place.into(),
            skip.into(),
            MOST_A_STEP.into(),
            (&packed).into(),
            tries.into(),
        ];
        self.move_jobs(&ADOPT_JOBS, now_ms, &step).await
    }

    /// Takes over the deduplication ids of jobs that are gone, among some of the server's keys. `cursor`: `0` at first. Answers where the
    /// next step goes on, `0` when all keys were looked at; `None` where the user may not `SCAN`.
    pub async fn adopt_dedup(&self, cursor: &str) -> Result<Option<String>> {
        let start = format!("{}de:", self.source());
        let pattern = format!("{}*", escaped(&start));
        let (next, keys) = match scan(self.queue.connection(), cursor, &pattern, KEYS_A_STEP).await {
            Err(Error::Refused(message)) if message.code() == "NOPERM" => return Ok(None),
            scanned => scanned?,
        };
        let ids: Vec<String> = keys
            .iter()
            .filter_map(|key| Some(key.strip_prefix(&start)?.to_owned()))
            .collect();
        if !ids.is_empty() {
            let (source, packed) = (self.source(), pack(&ids));
            self.queue
                .run(&ADOPT_DEDUP, &[source.as_str().into(), (&packed).into()])
                .await?;
        }
        Ok(Some(next))
    }

    /// Gives BullMQ the settings of the queue as they are now. At least half of `gap` numbers stay free for jobs that our producers still
    /// add.
    pub async fn return_queue(&self, gap: u64) -> Result<Settings> {
        self.require_one_slot()?;
        let source = self.source();
        let reply = self
            .queue
            .ask(&RETURN_QUEUE, &[source.as_str().into(), gap.into()])
            .await?;
        Settings::read(reply, true)
    }

    /// Moves the next jobs of a state of ours (`waiting`, `prioritized`, `delayed`, `waiting-children`, `completed`, `failed`) to BullMQ,
    /// behind those that the caller knows to stay. `sources`: of all queues that go back.
    pub async fn return_jobs(&self, now_ms: u64, state: &str, skip: u64, sources: &[String]) -> Result<Moved> {
        let (source, packed) = (self.source(), pack(sources));
        let step = [
            source.as_str().into(),
            state.into(),
            skip.into(),
            MOST_A_STEP.into(),
            (&packed).into(),
        ];
        self.move_jobs(&RETURN_JOBS, now_ms, &step).await
    }

    async fn move_jobs(&self, script: &Script, now_ms: u64, step: &[Arg<'_>]) -> Result<Moved> {
        let value = self.queue.run_once(script, now_ms, step).await?;
        let mut reply = Reply::new(script.name, value)?;
        let (looked, moved, schedulers) = (reply.int()? as u64, reply.int()? as u64, reply.int()? as u64);
        let mut stays = reply.array()?;
        let mut kept = Vec::with_capacity(stays.len() / 2);
        while !stays.is_empty() {
            kept.push((stays.text()?, stays.text()?));
        }
        Ok(Moved {
            looked,
            moved,
            schedulers,
            stays: kept,
            kept: reply.int()? as u64,
        })
    }

    /// Tells parents that were moved what became of the children that BullMQ's workers ended since. `cursor`: `0` at first.
    pub async fn settle_adopted(&self, now_ms: u64, cursor: &str, sources: &[String]) -> Result<Settled> {
        let (source, packed) = (self.source(), pack(sources));
        let step = [now_ms.into(), source.as_str().into(), cursor.into(), (&packed).into()];
        let mut reply = self.queue.ask(&SETTLE_ADOPTED, &step).await?;
        let (cursor, _told, open) = (reply.text()?, reply.int()?, reply.int()? as u64);
        Ok(Settled { cursor, open })
    }
}

fn pack(texts: &[String]) -> Packer {
    let mut packed = Packer::default();
    packed.column(texts.iter().map(String::as_str), false);
    packed
}
