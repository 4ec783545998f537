//! 2. waiting -> active. Reads what a step took, and remembers it until it ends.

use std::sync::Arc;

use redis::Value;

use super::{
    batch::{Batch, Extra},
    in_flight::{all_of, Group, InFlight},
    parts::{parts_of, Part},
};
use crate::{
    error::{Error, Result},
    job::{
        frame::{is_stub, Frame, MAX_JOBS},
        msgpack::{Item, Reader},
        options::JobOptions,
        Body, StateFields,
    },
    redis::reply::Reply,
};

/// In the place of the time at which the next job is due: nobody looked for one.
const OVER: i64 = -2;
/// Records that a step takes at most.
const MOST_RECORDS: u64 = 1 << 24;

/// Columns of records; one more tells that their stack traces follow.
const RECORD_COLUMNS: usize = 4;

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
    /// When the next job is due, epoch ms; -1 = none is known of; [`OVER`].
    pub(super) due_ms: i64,
    /// Whether work is left that somebody may start.
    pub(super) is_left: bool,
    /// Whether the queue lets nobody take jobs now.
    pub(super) gated: bool,
    /// When what it took started: when it was carried out, epoch ms of the caller's clock; 0 = there was nothing to take, and no clock was read.
    pub(super) now_ms: u64,
    /// The same, in microseconds of the server's clock.
    pub(super) server_us: i64,
    /// A rate limit lets this worker start nothing for so long; 0 = it does.
    pub(super) limited_ms: u64,
}

impl Answer {
    /// Reads a reply; what it took is held from now on.
    pub(super) fn read(reply: Value, in_flight: &mut InFlight) -> Result<Self> {
        let was_idle = in_flight.jobs() == 0;
        let mut reply = Reply::new("the answer to step", reply)?;
        let (rejected, taken) = (reply.array()?, reply.array()?);
        let (due_ms, gated, is_left) = (reply.int()?, reply.int()? == 1, reply.int()? == 1);
        let (now_ms, server_us, limited_ms) = (reply.int()? as u64, reply.int()?, reply.int()? as u64);
        let claim = reply.int()? as u64;
        let (jobs, unreadable) = take_in(taken, now_ms, claim, in_flight);
        Ok(Self {
            rejected,
            taken: jobs.as_ref().map_or(0, |batch| batch.jobs.len() as i64),
            jobs,
            was_idle,
            unreadable,
            due_ms,
            is_left,
            gated,
            now_ms,
            server_us,
            limited_ms,
        })
    }

    /// Whether the step was over before it was carried out (`lua/step/idle_wait`): nobody looked for jobs.
    pub(super) fn is_over(&self) -> bool {
        self.due_ms == OVER
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
        let jobs = parts_of(taken).try_fold(0_u32, |jobs, part| match part {
            // the last two columns, state fields and starts, are 0
            Part::Records {
                count,
                columns: [.., 0, 0],
            } => jobs.checked_add(count),
            Part::Frame { count, blob, .. } if !is_stub(blob) => jobs.checked_add(count),
            _ => None,
        })?;
        Some((jobs, *now_ms as u64))
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

/// Takes in what a step took, in the order of the waiting list. Jobs that cannot be read are to fail; it is said, too.
fn take_in(mut taken: Reply, processed_on: u64, claim: u64, in_flight: &mut InFlight) -> (Option<Batch>, Vec<Error>) {
    // a frame is three values; records tell how many they are
    let negative = taken.numbers().filter(|number| *number < 0);
    let records = negative
        .fold(0, |sum: i64, number| sum.saturating_add(number))
        .unsigned_abs();
    let most = (taken.len() as u32 / 3 + 1) * MAX_JOBS as u32 + records.min(MOST_RECORDS) as u32;
    let batch = Batch {
        base: in_flight.make_room(most),
        processed_on,
        claim,
        ..Batch::default()
    };
    let mut taking = Taking {
        in_flight,
        batch,
        unreadable: Vec::new(),
    };
    while !taken.is_empty() {
        let read = match taken.int() {
            Ok(count) if count < 0 => taken.bytes().and_then(|columns| taking.records(&columns, &mut taken)),
            Ok(first) => taking.frame(first as u64, &mut taken),
            Err(error) => Err(error),
        };
        taking.unreadable.extend(read.err());
    }
    let Taking { batch, unreadable, .. } = taking;
    ((!batch.jobs.is_empty()).then_some(batch), unreadable)
}

/// What is being taken in.
struct Taking<'a> {
    in_flight: &'a mut InFlight,
    batch: Batch,
    unreadable: Vec<Error>,
}

impl Taking<'_> {
    fn frame(&mut self, first: u64, taken: &mut Reply) -> Result<()> {
        let (n, blob) = (taken.int()?, taken.bytes()?);
        if !(1..=MAX_JOBS as i64).contains(&n) {
            return Err(Error::malformed("a frame", format_args!("{n} jobs")));
        }
        let n = n as u32;
        let head = Frame::parse(&blob).and_then(|frame| Ok((self.in_flight.options_of(frame.options)?, frame)));
        let (options, frame) = head.map_or_else(
            |error| (Arc::new(JobOptions::none("{}")), Err(error)),
            |(options, frame)| (options, Ok(frame)),
        );
        let header = frame.as_ref().ok().and_then(|frame| frame.header.as_ref());
        let ids: Option<Arc<str>> = header.map(|header| header.ids.into());
        let batch = &mut self.batch;
        let jobs = batch.jobs.len();
        let readable = frame.and_then(|frame| batch.push_frame(first, n, frame, &options));
        if let Err(error) = readable {
            // the jobs before the place where it cannot be read are what they are
            for number in first + (batch.jobs.len() - jobs) as u64..first + u64::from(n) {
                batch.push_unreadable(number, ids.as_deref(), &error);
            }
            self.unreadable.push(error);
        }
        self.in_flight.hold(Group::Frame {
            first,
            n,
            left: all_of(n),
            blob: Arc::new(blob),
            options,
            ids,
            claim: self.batch.claim,
        });
        Ok(())
    }

    fn records(&mut self, columns: &[u8], taken: &mut Reply) -> Result<()> {
        let mut columns = Reader::new(columns);
        let has_traces = columns.array()? > RECORD_COLUMNS;
        let (ids, mut bodies) = (texts(&mut columns)?, texts(&mut columns)?);
        let mut follow = |are_there: bool| -> Result<Vec<Vec<u8>>> {
            let ids = if are_there { ids.as_slice() } else { &[] };
            ids.iter().map(|_| taken.bytes()).collect()
        };
        // long ones
        let behind = follow(bodies.is_empty())?;
        bodies.extend(behind.iter().map(Vec::as_slice));
        let traces = follow(has_traces)?;
        let (fields, starts) = (texts(&mut columns)?, numbers(&mut columns)?);
        for (at, (id, body)) in ids.iter().zip(&bodies).enumerate() {
            let fields = fields.get(at).copied().unwrap_or_default();
            let past = Past {
                started: starts.get(at).copied().unwrap_or(1),
                traces: traces.get(at).filter(|traces| !traces.is_empty()),
            };
            let read = self.record(id, body, fields, past);
            self.unreadable.extend(read.err());
        }
        Ok(())
    }

    /// Takes in a record, or what is to be told of one that cannot be read.
    fn record(&mut self, id: &[u8], body: &[u8], fields: &[u8], past: Past<'_>) -> Result<()> {
        let id = String::from_utf8_lossy(id).into_owned();
        let mut readable = Ok(());
        let mut fields = StateFields::parse(fields).unwrap_or_else(|error| {
            let fields = StateFields::of_unreadable(&error);
            readable = Err(error);
            fields
        });
        let read = Body::parse(body).and_then(|body| Ok((self.in_flight.options_of(&body.options)?, body)));
        let (options, body) = read.unwrap_or_else(|error| {
            fields.deferred_failure.get_or_insert_with(|| error.reason_to_fail());
            readable = Err(error);
            (Arc::new(JobOptions::none("{}")), Body::unreadable())
        });
        let attempts_started = past.started;
        fields.attempts_started = attempts_started;
        if let Some(traces) = past.traces {
            fields.stacktrace = Some(String::from_utf8_lossy(traces).into_owned());
        }
        if fields.priority.is_none() && options.priority != 0 {
            fields.priority = Some(options.priority);
        }
        let number = number_of(&id);
        let is_plain = number > 0 && fields == StateFields::first_start();
        let (claim, attempts_made) = (self.batch.claim, fields.attempts_made);
        let extra = (!is_plain).then(|| Extra { id: id.clone(), fields });
        self.batch.push_record(number, &body, &options, extra);
        self.in_flight.hold(Group::Record {
            id,
            claim,
            attempts_made,
            attempts_started,
            options,
        });
        readable
    }
}

/// What a step tells of a record beside its state fields.
struct Past<'a> {
    started: u32,
    /// Its stack traces, if they came along.
    traces: Option<&'a Vec<u8>>,
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

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::garbage::Chance;

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
            let mut in_flight = InFlight::default();
            if let Ok(answer) = Answer::read(reply, &mut in_flight) {
                let batch = answer.jobs.unwrap_or_default();
                let text: u32 = batch
                    .jobs
                    .iter()
                    .map(|job| job.name_len.unwrap_or(0) + job.data_len)
                    .sum();
                assert_eq!(
                    (batch.jobs.len(), text),
                    (in_flight.jobs() as usize, batch.text.len() as u32)
                );
                assert_eq!(in_flight.handles().len(), batch.jobs.len());
            }
            let _ = Answer::read(value(&mut chance, 0), &mut InFlight::default());
        }
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
        let long = [records(&[0, 0, 0]), vec![columns(&[]), columns(&[])], frame()].concat();
        assert_eq!(answer(vec![], long, 0, 0), Some((5, 1005)));
        // records that have been tried before
        assert_eq!(answer(vec![], records(&[0xa0, 0]), 0, 0), None);
        assert_eq!(answer(vec![], records(&[0xa0, 0x91, 2]), 0, 0), None);
        // refused, gated, limited
        assert_eq!(answer(vec![Value::Int(1)], frame(), 0, 0), None);
        assert_eq!(answer(vec![], frame(), 1, 0), None);
        assert_eq!(answer(vec![], frame(), 0, 5), None);
    }
}
