//! 2. waiting -> active. Reads what a step took, and remembers it until it ends.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use redis::Value;

use crate::{
    error::{Error, Result},
    job::{
        frame::{id_in, Frame, MAX_JOBS},
        msgpack::{Item, Reader},
        options::JobOptions,
        siblings::Brood,
        Body, Vitals,
    },
    redis::reply::Reply,
};

// enough for the distinct options of a busy program; a queue of one-off options must not fill the memory
const CACHED_OPTIONS: usize = 1024;

/// The claim of what has been checked otherwise (`lua/lib/frame.lua`).
const ANY_CLAIM: u64 = 0;

/// Records that a step takes at most.
const MOST_RECORDS: u64 = 1 << 24;

/// Jobs that became active together, in columns: handles count up from `base`.
#[derive(Debug, Default)]
pub struct Batch {
    /// Handle of the first job.
    pub base: u32,
    /// When they became active, epoch ms.
    pub processed_on: u64,
    /// The taking that made them active: no other of this worker has this number.
    pub claim: u64,
    /// Names and data (JSON texts) of all jobs, back to back.
    pub text: String,
    /// The jobs.
    pub jobs: Vec<BatchJob>,
    /// Their options.
    pub options: Vec<Arc<JobOptions>>,
    /// What else is known of jobs with a record.
    pub extras: Vec<Extra>,
    /// Whose children those in frames are.
    pub siblings: Vec<Siblings>,
}

/// One job of a batch.
#[derive(Debug)]
pub struct BatchJob {
    /// Its number, which is its id; 0: its extra names the id.
    pub number: u64,
    /// Bytes of its name in the text; `None`: named as the job before.
    pub name_len: Option<u32>,
    /// Bytes of its data in the text.
    pub data_len: u32,
    /// Index of its options.
    pub options: u32,
    /// Creation time, epoch ms.
    pub timestamp: u64,
    /// Index of its extra.
    pub extra: Option<u32>,
    /// Index of its siblings, of a child in a frame.
    pub siblings: Option<u32>,
}

/// Children of one parent in a frame.
#[derive(Debug)]
pub struct Siblings {
    /// What their ids begin with; their numbers follow ([`crate::job::frame::child_id`]).
    pub ids: Arc<str>,
    /// What is known of each of them.
    pub vitals: Vitals,
}

/// What is known of a job with a record.
#[derive(Debug)]
pub struct Extra {
    /// Its id.
    pub id: String,
    /// What happened to it so far; `attempts_started` counts this start, `priority` is the one it has.
    pub vitals: Vitals,
}

impl Extra {
    /// Whether the job failed before: then it has stack traces, which are not in the answer.
    pub(super) fn has_failed(&self) -> bool {
        self.vitals.failed_reason.is_some() || self.vitals.stacktrace.is_some()
    }

    /// Whether the answer does not hold all of the job.
    fn is_partial(&self) -> bool {
        self.has_failed() || self.vitals.large_data.is_some()
    }
}

/// What a worker holds under consecutive handles.
#[derive(Debug)]
pub(super) enum Held {
    Frame {
        first: u64,
        n: u32,
        // one bit a job that has not ended
        left: u64,
        blob: Arc<Vec<u8>>,
        options: Arc<JobOptions>,
        // what the ids of children begin with
        ids: Option<Arc<str>>,
        // under which these jobs are held: whatever ends them names it
        claim: u64,
    },
    Record {
        id: String,
        claim: u64,
        attempts_made: u32,
        attempts_started: u32,
        options: Arc<JobOptions>,
    },
}

impl Held {
    fn jobs(&self) -> u32 {
        match self {
            Held::Frame { n, .. } => *n,
            Held::Record { .. } => 1,
        }
    }
}

/// The answer to a step.
#[derive(Debug)]
pub(super) struct Answer {
    /// Outcomes that were refused.
    pub(super) rejected: Reply,
    /// What was taken, unless it was handed on already.
    pub(super) jobs: Option<Batch>,
    /// Number of jobs taken.
    pub(super) taken: i64,
    /// Whether the worker held nothing before.
    pub(super) was_idle: bool,
    /// What is wrong with jobs that were taken and cannot be read.
    pub(super) unreadable: Vec<Error>,
    /// When the next job is due, epoch ms; -1 = none is known of.
    pub(super) due_ms: i64,
    /// Whether the queue lets nobody take jobs now.
    pub(super) gated: bool,
    /// When what it took started: when it was carried out, epoch ms of the caller's clock.
    pub(super) now_ms: u64,
    /// The same, in microseconds of the server's clock.
    pub(super) server_us: i64,
    /// A rate limit lets this worker start nothing for so long; 0 = it does.
    pub(super) limited_ms: u64,
}

impl Answer {
    /// Reads a reply; what it took is held from now on.
    pub(super) fn read(reply: Value, holdings: &mut Holdings) -> Result<Self> {
        let was_idle = holdings.jobs() == 0;
        let mut reply = Reply::new("the answer to step", reply)?;
        let (rejected, taken) = (reply.array()?, reply.array()?);
        let (due_ms, gated, _waiting) = (reply.int()?, reply.int()? == 1, reply.int()?);
        let (now_ms, server_us, limited_ms) = (reply.int()? as u64, reply.int()?, reply.int()? as u64);
        let claim = reply.int()? as u64;
        let (jobs, unreadable) = holdings.take_in(taken, now_ms, claim);
        Ok(Self {
            rejected,
            taken: jobs.as_ref().map_or(0, |batch| batch.jobs.len() as i64),
            jobs,
            was_idle,
            unreadable,
            due_ms,
            gated,
            now_ms,
            server_us,
            limited_ms,
        })
    }

    /// How many jobs a reply brings, and its time, if that is all there is to it: nothing was refused, no limit is met, and no job failed
    /// before, of which more would have to be read.
    pub(super) fn plainly_brings(reply: &Value) -> Option<(u32, u64)> {
        let Value::Array(values) = reply else { return None };
        let [Value::Array(rejected), Value::Array(taken), _, Value::Int(0), _, Value::Int(now_ms), _, Value::Int(0), ..] =
            values.as_slice()
        else {
            return None;
        };
        if !rejected.is_empty() {
            return None;
        }
        let (mut jobs, mut rest) = (0, taken.as_slice());
        loop {
            (jobs, rest) = match rest {
                [] => return Some((jobs, *now_ms as u64)),
                // the last two columns, vitals and starts, are 0
                [Value::Int(count), Value::BulkString(columns), rest @ ..]
                    if *count < 0 && columns.ends_with(&[0, 0]) =>
                {
                    (jobs + count.unsigned_abs() as u32, rest)
                }
                [Value::Int(_), Value::Int(count), Value::BulkString(_), rest @ ..] => (jobs + *count as u32, rest),
                _ => return None,
            };
        }
    }

    /// Whether a reply brings jobs.
    #[cfg(unix)]
    pub(super) fn has_jobs(reply: &Value) -> bool {
        let taken = match reply {
            Value::Array(values) => values.get(1),
            _ => None,
        };
        matches!(taken, Some(Value::Array(taken)) if !taken.is_empty())
    }

    /// The jobs, if nothing more has to be read about them.
    #[cfg(unix)]
    pub(super) fn ready_jobs(&mut self) -> Option<Batch> {
        self.jobs.take_if(|batch| !batch.extras.iter().any(Extra::is_partial))
    }
}

/// Every job this worker holds, by handle.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    groups: BTreeMap<u32, Held>,
    next_handle: u32,
    jobs: u32,
    options: HashMap<String, Arc<JobOptions>>,
}

impl Holdings {
    /// One record, under the handle 0, whoever holds it.
    pub(super) fn of_record(id: String, attempts_made: u32, attempts_started: u32, options: JobOptions) -> Self {
        let held = Held::Record {
            id,
            claim: ANY_CLAIM,
            attempts_made,
            attempts_started,
            options: Arc::new(options),
        };
        Self {
            groups: BTreeMap::from([(0, held)]),
            jobs: 1,
            ..Self::default()
        }
    }

    /// Number of jobs held.
    pub(super) fn jobs(&self) -> u32 {
        self.jobs
    }

    /// The group a handle belongs to, and the handle's offset in it.
    pub(super) fn find(&mut self, handle: u32) -> Option<(u32, &mut Held)> {
        let (base, held) = self.groups.range_mut(..=handle).next_back()?;
        let offset = handle - base;
        (offset < held.jobs()).then_some((offset, held))
    }

    /// Where the handles of a batch of up to `most` jobs start. Handles come round, and a job may be held for longer than that takes.
    fn free_handles(&self, most: u32) -> u32 {
        let mut base = self.next_handle;
        loop {
            let Some(end) = base.checked_add(most) else {
                base = 0;
                continue;
            };
            match self.groups.range(..end).next_back() {
                Some((group, held)) if group + held.jobs() > base => base = group + held.jobs(),
                _ => return base,
            }
        }
    }

    /// Jobs of a group ended, one behind the other. Gives the group when they were the last of it.
    pub(super) fn release(&mut self, handle: u32, jobs: u32) -> Option<Held> {
        self.jobs = self.jobs.saturating_sub(jobs);
        let (base, held) = self.groups.range_mut(..=handle).next_back()?;
        let base = *base;
        let over = match held {
            Held::Frame { left, .. } => {
                *left &= !(all_of(jobs) << (handle - base));
                *left == 0
            }
            Held::Record { .. } => true,
        };
        if over {
            self.groups.remove(&base)
        } else {
            None
        }
    }

    /// A job that was released has not ended after all. `group`: what its release, or that of the last job of its group, gave.
    pub(super) fn hold_again(&mut self, handle: u32, offset: u32, group: Option<Held>) {
        let base = handle - offset;
        if let Some(group) = group {
            self.groups.insert(base, group);
        }
        match self.groups.get_mut(&base) {
            Some(Held::Frame { left, .. }) => *left |= 1 << offset,
            Some(Held::Record { .. }) => {}
            None => return,
        }
        self.jobs += 1;
    }

    /// Handles of every job held.
    pub(super) fn handles(&self) -> Vec<u32> {
        let mut handles = Vec::with_capacity(self.jobs as usize);
        for (base, held) in &self.groups {
            let left = match held {
                Held::Frame { left, .. } => *left,
                Held::Record { .. } => 1,
            };
            handles.extend((0..64).filter(|bit| left >> bit & 1 == 1).map(|bit| base + bit));
        }
        handles
    }

    /// Id and claim of every job held.
    pub(super) fn ids(&self) -> Vec<(String, u64)> {
        let mut ids = Vec::with_capacity(self.jobs as usize);
        for held in self.groups.values() {
            match held {
                Held::Frame {
                    first,
                    left,
                    ids: front,
                    claim,
                    ..
                } => {
                    let offsets = (0..64).filter(|bit| left >> bit & 1 == 1);
                    ids.extend(offsets.map(|bit| (id_in(front.as_deref(), first + bit), *claim)));
                }
                Held::Record { id, claim, .. } => ids.push((id.clone(), *claim)),
            }
        }
        ids
    }

    /// Takes in what a step took, in the order of the line. Jobs that cannot be read are to fail; it is said, too.
    pub(super) fn take_in(&mut self, mut taken: Reply, processed_on: u64, claim: u64) -> (Option<Batch>, Vec<Error>) {
        // a frame is three values; records tell how many they are
        let negative = taken.numbers().filter(|number| *number < 0);
        let records = negative
            .fold(0, |sum: i64, number| sum.saturating_add(number))
            .unsigned_abs();
        let most = (taken.len() as u32 / 3 + 1) * MAX_JOBS as u32 + records.min(MOST_RECORDS) as u32;
        self.next_handle = self.free_handles(most);
        let mut batch = Batch {
            base: self.next_handle,
            processed_on,
            claim,
            ..Batch::default()
        };
        let mut unreadable = Vec::new();
        while !taken.is_empty() {
            let read = match taken.int() {
                Ok(count) if count < 0 => taken
                    .bytes()
                    .and_then(|columns| self.take_records(&columns, &mut batch, &mut unreadable)),
                Ok(first) => self.take_frame(first as u64, &mut taken, &mut batch, &mut unreadable),
                Err(error) => Err(error),
            };
            unreadable.extend(read.err());
        }
        self.jobs += batch.jobs.len() as u32;
        ((!batch.jobs.is_empty()).then_some(batch), unreadable)
    }

    fn take_frame(
        &mut self,
        first: u64,
        taken: &mut Reply,
        batch: &mut Batch,
        unreadable: &mut Vec<Error>,
    ) -> Result<()> {
        let (n, blob) = (taken.int()?, taken.bytes()?);
        if !(1..=MAX_JOBS as i64).contains(&n) {
            return Err(Error::malformed("a frame", format_args!("{n} jobs")));
        }
        let n = n as u32;
        let head = Frame::parse(&blob).and_then(|frame| Ok((self.options_of(frame.options)?, frame)));
        let (options, frame) = head.map_or_else(
            |error| (Arc::new(JobOptions::none("{}")), Err(error)),
            |(options, frame)| (options, Ok(frame)),
        );
        let brood = frame.as_ref().ok().and_then(|frame| frame.brood.as_ref());
        let ids: Option<Arc<str>> = brood.map(|brood| brood.ids.into());
        let jobs = batch.jobs.len();
        let readable = frame.and_then(|frame| batch.push_frame(first, n, frame, &options));
        if let Err(error) = readable {
            // the jobs before the place where it cannot be read are what they are
            for number in first + (batch.jobs.len() - jobs) as u64..first + u64::from(n) {
                batch.push_unreadable(number, ids.as_deref(), &error);
            }
            unreadable.push(error);
        }
        let held = Held::Frame {
            first,
            n,
            left: all_of(n),
            blob: Arc::new(blob),
            options,
            ids,
            claim: batch.claim,
        };
        self.groups.insert(self.next_handle, held);
        self.next_handle += n;
        Ok(())
    }

    fn take_records(&mut self, columns: &[u8], batch: &mut Batch, unreadable: &mut Vec<Error>) -> Result<()> {
        let mut columns = Reader::new(columns);
        columns.array()?;
        let (ids, bodies) = (texts(&mut columns)?, texts(&mut columns)?);
        let (vitals, starts) = (texts(&mut columns)?, numbers(&mut columns)?);
        for (at, (id, body)) in ids.iter().zip(&bodies).enumerate() {
            let vitals = vitals.get(at).copied().unwrap_or_default();
            let started = starts.get(at).copied().unwrap_or(1);
            unreadable.extend(self.take_record(id, body, vitals, started, batch).err());
        }
        Ok(())
    }

    /// Takes in a record, or what is to be told of one that cannot be read.
    fn take_record(
        &mut self,
        id: &[u8],
        body: &[u8],
        vitals: &[u8],
        attempts_started: u32,
        batch: &mut Batch,
    ) -> Result<()> {
        let id = String::from_utf8_lossy(id).into_owned();
        let mut readable = Ok(());
        let mut vitals = Vitals::parse(vitals).unwrap_or_else(|error| {
            let vitals = Vitals::of_unreadable(&error);
            readable = Err(error);
            vitals
        });
        let read = Body::parse(body).and_then(|body| Ok((self.options_of(&body.options)?, body)));
        let (options, body) = read.unwrap_or_else(|error| {
            vitals.deferred_failure.get_or_insert_with(|| error.reason_to_fail());
            readable = Err(error);
            (Arc::new(JobOptions::none("{}")), Body::unreadable())
        });
        vitals.attempts_started = attempts_started;
        batch.text.push_str(&body.name);
        batch.text.push_str(&body.data);
        if vitals.priority.is_none() && options.priority != 0 {
            vitals.priority = Some(options.priority);
        }
        let number = number_of(&id);
        let is_plain = number > 0 && vitals == Vitals::first_start();
        let job = BatchJob {
            number,
            name_len: Some(body.name.len() as u32),
            data_len: body.data.len() as u32,
            options: batch.options_index(&options),
            timestamp: body.timestamp,
            extra: (!is_plain).then_some(batch.extras.len() as u32),
            siblings: None,
        };
        batch.jobs.push(job);
        let held = Held::Record {
            id: id.clone(),
            claim: batch.claim,
            attempts_made: vitals.attempts_made,
            attempts_started,
            options,
        };
        if !is_plain {
            batch.extras.push(Extra { id, vitals });
        }
        self.groups.insert(self.next_handle, held);
        self.next_handle += 1;
        readable
    }

    fn options_of(&mut self, text: &str) -> Result<Arc<JobOptions>> {
        if let Some(options) = self.options.get(text) {
            return Ok(options.clone());
        }
        let options = Arc::new(JobOptions::of_stored(text)?);
        if self.options.len() >= CACHED_OPTIONS {
            self.options.clear();
        }
        self.options.insert(text.to_owned(), options.clone());
        Ok(options)
    }
}

/// A column of texts; none where there is a number instead.
fn texts<'a>(columns: &mut Reader<'a>) -> Result<Vec<&'a [u8]>> {
    match columns.item()? {
        Item::Array(len) => (0..len).map(|_| columns.bytes()).collect(),
        Item::Number(_) => Ok(Vec::new()),
        other => Err(Error::malformed("a column", format_args!("{other:?}"))),
    }
}

/// A column of numbers; none where there is one for all.
fn numbers(columns: &mut Reader<'_>) -> Result<Vec<u32>> {
    match columns.item()? {
        Item::Array(len) => (0..len).map(|_| Ok(columns.int()? as u32)).collect(),
        Item::Number(_) => Ok(Vec::new()),
        other => Err(Error::malformed("a column", format_args!("{other:?}"))),
    }
}

/// The number that a generated id is; 0 for any other id.
fn number_of(id: &str) -> u64 {
    if id.starts_with('0') || id.len() > 15 || !id.bytes().all(|byte| byte.is_ascii_digit()) {
        return 0;
    }
    id.parse().unwrap_or(0)
}

/// The lowest `jobs` bits. A frame has 64 jobs at most.
fn all_of(jobs: u32) -> u64 {
    u64::MAX >> (64 - jobs.clamp(1, 64))
}

impl Batch {
    /// Puts in the data that jobs, by the index of their extras, had none of so far.
    pub(super) fn put_data(&mut self, data: &HashMap<u32, String>) {
        let more: usize = data.values().map(String::len).sum();
        let mut text = String::with_capacity(self.text.len() + more);
        let mut rest = self.text.as_str();
        for job in &mut self.jobs {
            let (own, next) = rest.split_at((job.name_len.unwrap_or(0) + job.data_len) as usize);
            text.push_str(own);
            rest = next;
            if let Some(data) = job.extra.and_then(|extra| data.get(&extra)) {
                text.push_str(data);
                job.data_len += data.len() as u32;
            }
        }
        self.text = text;
    }

    fn push_frame(&mut self, first: u64, n: u32, mut frame: Frame<'_>, options: &Arc<JobOptions>) -> Result<()> {
        let options = self.options_index(options);
        let brood = frame.brood.take();
        let ids: Option<Arc<str>> = brood.as_ref().map(|brood| brood.ids.into());
        let mut families = brood.into_iter().flat_map(Brood::into_parents);
        let mut left = 0;
        for number in first..first + u64::from(n) {
            let Some((name, data)) = frame.next_job()? else {
                return Err(Error::malformed("a frame", "too few jobs"));
            };
            if let Some(ids) = ids.as_ref().filter(|_| left == 0) {
                let Some((parent, children @ 1..)) = families.next() else {
                    return Err(Error::malformed("a frame", "a child without a parent"));
                };
                left = children;
                let vitals = Vitals {
                    parent: Some(parent),
                    ..Vitals::first_start()
                };
                self.siblings.push(Siblings {
                    ids: ids.clone(),
                    vitals,
                });
            }
            left = left.saturating_sub(1);
            if let Some(name) = name {
                self.text.push_str(name);
            }
            self.text.push_str(data);
            self.jobs.push(BatchJob {
                number,
                name_len: name.map(|name| name.len() as u32),
                data_len: data.len() as u32,
                options,
                timestamp: frame.timestamp,
                extra: None,
                siblings: ids.is_some().then(|| self.siblings.len() as u32 - 1),
            });
        }
        Ok(())
    }

    /// A job of a frame that cannot be read: it is to fail.
    fn push_unreadable(&mut self, number: u64, ids: Option<&str>, error: &Error) {
        let Body { data, timestamp, .. } = Body::unreadable();
        self.text.push_str(&data);
        let options = self.options_index(&Arc::new(JobOptions::none("{}")));
        self.jobs.push(BatchJob {
            // the extra names a child
            number: if ids.is_some() { 0 } else { number },
            name_len: Some(0),
            data_len: data.len() as u32,
            options,
            timestamp,
            extra: Some(self.extras.len() as u32),
            siblings: None,
        });
        self.extras.push(Extra {
            id: id_in(ids, number),
            vitals: Vitals {
                attempts_started: 1,
                ..Vitals::of_unreadable(error)
            },
        });
    }

    fn options_index(&mut self, options: &Arc<JobOptions>) -> u32 {
        // jobs of one kind follow each other
        if let Some(last) = self.options.last() {
            if Arc::ptr_eq(last, options) {
                return self.options.len() as u32 - 1;
            }
        }
        self.options.push(options.clone());
        self.options.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::{garbage::Chance, job::frame::FrameBuilder};

    /// Takes in a frame of `jobs` jobs. Gives the batch's first handle.
    fn take(holdings: &mut Holdings, jobs: u32) -> u32 {
        let mut frame = FrameBuilder::new(7, "{}");
        for _ in 0..jobs {
            frame.push("a", "1");
        }
        let values = vec![
            Value::Int(1),
            Value::Int(i64::from(jobs)),
            Value::BulkString(frame.finish().0),
        ];
        let reply = Reply::new("a test", Value::Array(values)).expect("reply");
        holdings.take_in(reply, 7, 2).0.expect("a batch").base
    }

    /// A value as a reply may hold it.
    fn value(chance: &mut Chance, depth: usize) -> Value {
        match chance.below(if depth < 4 { 8 } else { 5 }) {
            0 => Value::Nil,
            1 => Value::Int([0, 1, 64, -1, -3, i64::MAX, i64::MIN, 7][chance.below(8)]),
            2 => Value::BulkString(chance.change(b"\x94\x91\xa11\x91\xa7\x94\x07\xa2{}\xa1a\xa11\x00\x00")),
            3 => Value::BulkString(chance.change(b"\x07\xa2{}\xa1a\xa11\xc0\xa12")),
            4 => Value::SimpleString("OK".into()),
            _ => Value::Array((0..chance.below(9)).map(|_| value(chance, depth + 1)).collect()),
        }
    }

    #[test]
    fn an_answer_of_any_shape_is_read_or_refused() {
        let mut chance = Chance(7);
        for _ in 0..20_000 {
            let (rejected, taken) = (Value::Array(Vec::new()), value(&mut chance, 0));
            let numbers = [-1, 0, 0, 5, 5, 0, 2].map(Value::Int);
            let reply = Value::Array([rejected, taken].into_iter().chain(numbers).collect());
            let mut holdings = Holdings::default();
            if let Ok(answer) = Answer::read(reply, &mut holdings) {
                let batch = answer.jobs.unwrap_or_default();
                let text: u32 = batch
                    .jobs
                    .iter()
                    .map(|job| job.name_len.unwrap_or(0) + job.data_len)
                    .sum();
                assert_eq!(
                    (batch.jobs.len(), text),
                    (holdings.jobs() as usize, batch.text.len() as u32)
                );
                assert_eq!(holdings.handles().len(), batch.jobs.len());
            }
            let _ = Answer::read(value(&mut chance, 0), &mut Holdings::default());
        }
    }

    #[test]
    fn handles_come_round_and_pass_over_jobs_still_held() {
        let mut holdings = Holdings::default();
        assert_eq!([take(&mut holdings, 10), take(&mut holdings, 5)], [0, 10]);
        holdings.release(0, 10);
        holdings.next_handle = u32::MAX - 20;
        // the frame of 64 would end beyond the last handle, and the jobs from 10 on are still held
        assert_eq!(take(&mut holdings, 64), 15);
        assert_eq!(holdings.handles().len(), 69);
        assert_eq!(holdings.find(12).map(|(offset, _)| offset), Some(2));
        assert_eq!(holdings.find(78).map(|(offset, _)| offset), Some(63));
    }

    #[test]
    fn an_answer_tells_what_it_brings_before_it_is_read() {
        let columns = |end: &[u8]| Value::BulkString([b"columns", end].concat());
        let answer = |rejected: Vec<Value>, taken: Vec<Value>, gated, limited_ms| {
            let (rejected, taken) = (Value::Array(rejected), Value::Array(taken));
            let numbers = [-1, gated, 9, 1005, 99, limited_ms, 2].map(Value::Int);
            Answer::plainly_brings(&Value::Array([vec![rejected, taken], numbers.to_vec()].concat()))
        };
        let frame = || vec![Value::Int(1), Value::Int(3), columns(&[])];
        let records = |end| vec![Value::Int(-2), columns(end)];
        assert_eq!(answer(vec![], vec![], 0, 0), Some((0, 1005)));
        let both = [frame(), records(&[0, 0]), frame()].concat();
        assert_eq!(answer(vec![], both, 0, 0), Some((8, 1005)));
        // records that have been tried before
        assert_eq!(answer(vec![], records(&[0xa0, 0]), 0, 0), None);
        assert_eq!(answer(vec![], records(&[0xa0, 0x91, 2]), 0, 0), None);
        // refused, gated, limited
        assert_eq!(answer(vec![Value::Int(1)], frame(), 0, 0), None);
        assert_eq!(answer(vec![], frame(), 1, 0), None);
        assert_eq!(answer(vec![], frame(), 0, 5), None);
    }

    #[test]
    fn a_job_that_did_not_end_is_held_again() {
        let mut holdings = Holdings::default();
        take(&mut holdings, 3);
        assert!(holdings.release(1, 1).is_none());
        holdings.hold_again(1, 1, None);
        assert_eq!(holdings.handles(), [0, 1, 2]);
        let frame = holdings.release(0, 3);
        assert!(frame.is_some() && holdings.handles().is_empty());
        holdings.hold_again(2, 2, frame);
        assert_eq!((holdings.handles(), holdings.jobs()), (vec![2], 1));
    }
}
