//! 1. new -> waiting | prioritized | delayed. Batches of jobs, each added exactly once.

use std::{
    sync::{
        atomic::{AtomicU64, Ordering},
        Mutex,
    },
    time::Duration,
};

use redis::Value;

use crate::{
    error::{Error, Result},
    id::unique_id,
    job::{
        frame::{prioritized_body, record_body, single_frame, FrameBuilder, MAX_BYTES},
        msgpack::Packer,
        options::{self, Deduplication, JobOptions},
    },
    keys::Keys,
    redis::{
        connection::Connection,
        library::{Arg, Script, ADD, ADD_FRAMES},
        reply::Reply,
    },
};

// the scripts remember a call for an hour (lua/lib/memo.lua): a call that could not be confirmed for so long must not be sent again
const CONFIRM_WITHIN: Duration = Duration::from_secs(50 * 60);

const FORGET_AFTER: Duration = Duration::from_secs(60);

/// A job to add.
#[derive(Debug, Clone, Copy)]
pub struct NewJob<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its data, JSON text.
    pub data: &'a str,
    /// Its options.
    pub options: &'a JobOptions,
}

impl NewJob<'_> {
    /// Whether its data lie apart (`lua/lib/large.lua`). What yields to another job, or takes its place, is moved as a whole.
    fn is_large(&self) -> bool {
        self.data.len() > MAX_BYTES && self.options.deduplication.is_none()
    }
}

/// Ids of an added batch: job `i` has `first + i`, unless it is in `exceptions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Added {
    /// Number of the batch's first job.
    pub first: u64,
    /// Index and id of the jobs with an id of their own.
    pub exceptions: Vec<(usize, String)>,
}

impl Added {
    /// Id of the batch's job `index`.
    pub fn id(&self, index: usize) -> String {
        match self.exceptions.iter().find(|(at, _)| *at == index) {
            Some((_, id)) => id.clone(),
            None => (self.first + index as u64).to_string(),
        }
    }
}

/// A batch as the add script takes it, ready to be sent.
#[derive(Debug)]
pub struct Batch {
    now_ms: u64,
    plan: Plan,
    blobs: Vec<Vec<u8>>,
}

/// What a batch holds.
#[derive(Debug)]
enum Plan {
    /// Frames, most batches: the number and the packed names of each one's jobs.
    Frames(Vec<(usize, Vec<u8>)>),
    /// Anything else, packed.
    Items(Vec<u8>),
}

impl Batch {
    /// Packs one job, as [`Batch::pack`] does.
    pub fn one(now_ms: u64, job: NewJob<'_>) -> Self {
        if !job.options.is_plain() || job.is_large() {
            return Self::pack(now_ms, std::iter::once(job));
        }
        let mut names = Packer::with_capacity(job.name.len() + 5);
        names.str(job.name);
        Self {
            now_ms,
            plan: Plan::Frames(vec![(1, names.0)]),
            blobs: vec![single_frame(
                job.options.timestamp.unwrap_or(now_ms),
                &job.options.text,
                job.name,
                job.data,
            )],
        }
    }

    /// Packs jobs: plain ones with the same options in frames, those with only a priority in runs, the others one by one. `now_ms` is the caller's clock.
    pub fn pack<'a>(now_ms: u64, jobs: impl Iterator<Item = NewJob<'a>>) -> Self {
        let mut packing = Packing::default();
        for job in jobs {
            packing.push(now_ms, job);
        }
        packing.close_frame();
        packing.close_records();
        let plan = if packing.frames.len() == packing.count {
            Plan::Frames(packing.frames)
        } else {
            let mut plan = Packer::with_capacity(packing.items.0.len() + 5);
            plan.array(packing.count);
            plan.0.extend_from_slice(&packing.items.0);
            Plan::Items(plan.0)
        };
        Self {
            now_ms,
            plan,
            blobs: packing.blobs,
        }
    }
}

#[derive(Default)]
struct Packing<'a> {
    items: Packer,
    count: usize,
    blobs: Vec<Vec<u8>>,
    frame: Option<(FrameBuilder, &'a JobOptions)>,
    records: Option<Records<'a>>,
    // number of jobs and packed names of each frame
    frames: Vec<(usize, Vec<u8>)>,
}

impl<'a> Packing<'a> {
    fn push(&mut self, now_ms: u64, job: NewJob<'a>) {
        let (timestamp, options) = (job.options.timestamp.unwrap_or(now_ms), job.options);
        let is_large = job.is_large();
        if options.is_plain() && !is_large {
            self.plain(timestamp, job);
            return;
        }
        self.close_frame();
        let data = if is_large { "" } else { job.data };
        self.blobs.push(if options.priority == 0 {
            record_body(timestamp, &options.text, job.name, data)
        } else {
            prioritized_body(timestamp, &options.text, job.name, data, options.priority)
        });
        if is_large {
            self.blobs.push(job.data.into());
        }
        let due_ms = options::due_ms(timestamp, options.delay_ms);
        if let Some(dedup) = &options.deduplication {
            self.close_records();
            self.deduplicated(&job, dedup, if options.delay_ms > 0 { due_ms } else { 0 });
            return;
        }
        let kind = Kind::of(options, is_large);
        if self.records.as_ref().is_some_and(|records| records.kind != kind) {
            self.close_records();
        }
        self.records.get_or_insert_with(|| Records::new(kind)).push(job, due_ms);
    }

    fn plain(&mut self, timestamp: u64, job: NewJob<'a>) {
        self.close_records();
        let fits = self.frame.as_ref().is_some_and(|(frame, options)| {
            (std::ptr::eq(*options, job.options) || *options == job.options) && !frame.is_full_for(job.name, job.data)
        });
        if !fits {
            self.close_frame();
        }
        let (frame, _) = self
            .frame
            .get_or_insert_with(|| (FrameBuilder::new(timestamp, &job.options.text), job.options));
        frame.push(job.name, job.data);
    }

    fn deduplicated(&mut self, job: &NewJob<'_>, dedup: &Deduplication, due_ms: u64) {
        self.items.array(7).int(-1);
        self.items
            .str(job.options.job_id.as_deref().unwrap_or(""))
            .str(job.name);
        self.items.int(due_ms as i64).int(i64::from(job.options.lifo));
        dedup.pack(&mut self.items);
        self.items.int(job.options.priority);
        self.count += 1;
    }

    fn close_frame(&mut self) {
        let Some((frame, _)) = self.frame.take() else { return };
        let jobs = frame.jobs();
        let (blob, names) = frame.finish();
        let mut packed = Packer::default();
        packed.column(names.iter().map(String::as_str), names.len() == 1);
        self.items.array(2).int(jobs as i64);
        self.items.0.extend_from_slice(&packed.0);
        self.frames.push((jobs, packed.0));
        self.blobs.push(blob);
        self.count += 1;
    }

    fn close_records(&mut self) {
        if let Some(records) = self.records.take() {
            records.pack(&mut self.items);
            self.count += 1;
        }
    }
}

/// Records of one kind follow each other in the plan as columns.
#[derive(Debug, PartialEq)]
struct Kind {
    named: bool,
    delayed: bool,
    front: bool,
    prioritized: bool,
    large: bool,
}

impl Kind {
    fn of(options: &JobOptions, large: bool) -> Self {
        Self {
            named: options.job_id.is_some(),
            delayed: options.delay_ms > 0,
            front: options.delay_ms == 0 && options.lifo,
            prioritized: options.priority != 0,
            large,
        }
    }
}

struct Records<'a> {
    kind: Kind,
    names: Vec<&'a str>,
    ids: Vec<&'a str>,
    dues: Packer,
    priorities: Packer,
}

impl<'a> Records<'a> {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            names: Vec::new(),
            ids: Vec::new(),
            dues: Packer::default(),
            priorities: Packer::default(),
        }
    }

    fn push(&mut self, job: NewJob<'a>, due_ms: u64) {
        self.names.push(job.name);
        if self.kind.named {
            self.ids.push(job.options.job_id.as_deref().unwrap_or(""));
        }
        self.dues.int(due_ms as i64);
        self.priorities.int(job.options.priority);
    }

    fn pack(self, items: &mut Packer) {
        let jobs = self.names.len();
        items.array(if self.kind.large { 8 } else { 7 }).int(0).int(jobs as i64);
        items.column(self.ids.iter().copied(), self.ids.is_empty());
        let same_name = self.names.iter().all(|name| *name == self.names[0]);
        items.column(self.names.iter().copied(), same_name);
        numbers(items, self.kind.delayed.then_some(&self.dues), jobs);
        items.int(i64::from(self.kind.front));
        numbers(items, self.kind.prioritized.then_some(&self.priorities), jobs);
        if self.kind.large {
            items.int(1);
        }
    }
}

/// A column of packed numbers, or 0.
fn numbers(items: &mut Packer, column: Option<&Packer>, jobs: usize) {
    match column {
        Some(column) => items.array(jobs).0.extend_from_slice(&column.0),
        None => {
            items.int(0);
        }
    }
}

/// Adds batches to one queue. Many may be under way at once; each is added exactly once, whatever the connection does.
#[derive(Debug)]
pub struct Producer {
    connection: Connection,
    keys: Keys,
    client: String,
    number: AtomicU64,
    // a slot is used by one call at a time, so the server has to remember only its last answer
    free_slots: Mutex<Vec<u32>>,
    slots: AtomicU64,
}

impl Producer {
    /// A producer for the queue with these keys.
    pub fn new(connection: Connection, keys: Keys) -> Self {
        Self {
            connection,
            keys,
            client: unique_id(),
            number: AtomicU64::new(1),
            free_slots: Mutex::default(),
            slots: AtomicU64::new(0),
        }
    }

    /// Adds a batch, in order, in one atomic step.
    /// # Errors
    /// As [`Producer::send`].
    pub async fn add(&self, batch: Batch) -> Result<Added> {
        let call = self.begin(batch);
        let added = self.send(&call).await;
        self.end(&call, &added);
        added
    }

    /// Numbers a batch. From now on it may be sent any number of times, over any connection: it is added once.
    pub fn begin(&self, batch: Batch) -> Call {
        let free = self.free_slots.lock().ok().and_then(|mut slots| slots.pop());
        Call {
            slot: free.unwrap_or_else(|| self.slots.fetch_add(1, Ordering::Relaxed) as u32),
            number: self.number.fetch_add(1, Ordering::Relaxed),
            batch,
        }
    }

    /// Sends a call until it is answered.
    /// # Errors
    /// [`Error::Closed`] when closed meanwhile; [`Error::Unconfirmed`] when the server could not be asked for so long that a second
    /// try might add the jobs twice; [`Error::QueueFull`]; [`Error::Server`] when the server refuses, for instance for lack of memory.
    pub async fn send(&self, call: &Call) -> Result<Added> {
        let args = self.args(call);
        let reply = tokio::time::timeout(
            CONFIRM_WITHIN,
            call.script().run(&self.connection, &self.keys.base, &args),
        )
        .await;
        let reply = reply.map_err(|_| Error::Unconfirmed(CONFIRM_WITHIN))??;
        read_added(reply, &self.keys.qualified_name)
    }

    /// The call as one command for a connection of the caller's own. Any error it is answered with leads back to [`Producer::send`].
    pub fn command(&self, call: &Call) -> Vec<u8> {
        call.script()
            .packed(&self.connection, &self.keys.base, &self.args(call))
    }

    /// Lets the call's slot be used again, if its answer is certain.
    pub fn end(&self, call: &Call, added: &Result<Added>) {
        if matches!(added, Ok(_) | Err(Error::QueueFull { .. } | Error::Server(_))) {
            if let Ok(mut slots) = self.free_slots.lock() {
                slots.push(call.slot);
            }
        }
    }

    fn args<'a>(&'a self, call: &'a Call) -> Vec<Arg<'a>> {
        let batch = &call.batch;
        let mut args: Vec<Arg<'_>> = Vec::with_capacity(5 + 3 * batch.blobs.len());
        args.push(Arg::Int(batch.now_ms as i64));
        args.push(Arg::from(self.client.as_str()));
        args.push(Arg::Int(i64::from(call.slot)));
        args.push(Arg::Int(call.number as i64));
        match &batch.plan {
            Plan::Frames(frames) => {
                for ((jobs, names), blob) in frames.iter().zip(&batch.blobs) {
                    args.push(Arg::Int(*jobs as i64));
                    args.push(Arg::from(names.as_slice()));
                    args.push(Arg::from(blob.as_slice()));
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
        let slots = self.slots.load(Ordering::Relaxed);
        if slots == 0 || !self.connection.is_connected() {
            return;
        }
        let mut pipeline = redis::pipe();
        for slot in 0..slots {
            let key = self.keys.key(&format!("memo:{}:{slot}", self.client));
            pipeline.cmd("PEXPIRE").arg(key).arg(FORGET_AFTER.as_millis() as u64);
        }
        // the server forgets by itself in an hour
        let _ = self.connection.send_pipeline_once(&pipeline, slots as usize).await;
    }
}

/// A numbered batch.
#[derive(Debug)]
pub struct Call {
    slot: u32,
    number: u64,
    batch: Batch,
}

impl Call {
    fn script(&self) -> &'static Script {
        match self.batch.plan {
            Plan::Frames(_) => &ADD_FRAMES,
            Plan::Items(_) => &ADD,
        }
    }
}

/// Reads the answer to a call about this queue, as users see it.
/// # Errors
/// [`Error::QueueFull`]; [`Error::Malformed`] when it is none.
pub fn read_added(reply: Value, queue: &str) -> Result<Added> {
    let mut reply = Reply::new("the answer to add", reply)?;
    let first = match reply.int()? {
        -12 => return Err(read_full(&mut reply, queue)?),
        first => first as u64,
    };
    let mut flat = reply.array()?;
    let mut exceptions = Vec::with_capacity(flat.len() / 2);
    while !flat.is_empty() {
        exceptions.push((flat.int()? as usize, flat.text()?));
    }
    Ok(Added { first, exceptions })
}

/// What an answer says behind its -12 (`lua/lib/length.lua`).
pub(crate) fn read_full(reply: &mut Reply, queue: &str) -> Result<Error> {
    Ok(Error::QueueFull {
        queue: queue.to_owned(),
        jobs: reply.int()? as u64,
        length: reply.int()? as u64,
        max_length: reply.int()? as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_is_packed_as_a_batch_of_one() {
        for text in [
            "{}",
            r#"{"attempts":3,"timestamp":5}"#,
            r#"{"delay":5}"#,
            r#"{"jobId":"x"}"#,
        ] {
            let options = JobOptions::parse(text).expect("options");
            let data = "\"ñ\"".repeat(100);
            let job = NewJob {
                name: "a",
                data: &data,
                options: &options,
            };
            let [one, batch] = [Batch::one(7, job), Batch::pack(7, std::iter::once(job))];
            assert_eq!(format!("{one:?}"), format!("{batch:?}"));
        }
    }

    #[test]
    fn plain_jobs_share_frames_and_others_do_not() {
        let plain = JobOptions::parse("{}").expect("options");
        let delayed = JobOptions::parse(r#"{"delay":5}"#).expect("options");
        let job = |options| NewJob {
            name: "a",
            data: "1",
            options,
        };
        let jobs = (0..130).map(|i| job(if i == 100 { &delayed } else { &plain }));
        // 64, 36, the delayed one, 29
        assert_eq!(Batch::pack(7, jobs).blobs.len(), 4);
    }

    #[test]
    fn records_of_one_kind_are_one_item_of_the_plan() {
        let options: Vec<JobOptions> = [
            r#"{"priority":3}"#,
            r#"{"priority":1,"attempts":2}"#,
            "{}",
            r#"{"priority":1}"#,
            r#"{"priority":1,"jobId":"x"}"#,
        ]
        .iter()
        .map(|text| JobOptions::parse(text).expect("options"))
        .collect();
        let jobs = options.iter().map(|options| NewJob {
            name: "a",
            data: "1",
            options,
        });
        let batch = Batch::pack(7, jobs);
        let Plan::Items(plan) = batch.plan else {
            panic!("records are no frame")
        };
        // a run of two, a frame, a run of one, a record of its own
        assert_eq!(plan[..12], [0x94, 0x97, 0, 2, 0xa0, 0xa1, b'a', 0, 0, 0x92, 3, 1]);
        assert_eq!(batch.blobs.len(), 5);
    }
}
