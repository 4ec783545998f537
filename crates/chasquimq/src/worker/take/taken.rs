//! What a step took, as the worker holds it until it ends.

use std::sync::Arc;

use super::{
    batch::{Batch, Extra},
    in_flight::{all_of, Group, InFlight},
    parts::{parts_of, Part},
};
use crate::{
    error::{Error, Result},
    job::{
        frame::Frame,
        msgpack::{Item, Reader},
        options::JobOptions,
        Body, StateFields,
    },
    latency::Began,
    redis::call::reply::Reply,
};

/// Jobs that a step takes at most.
const MOST_TAKEN: u64 = 1 << 24;

/// Columns of records; one more tells that their stack traces follow.
const RECORD_COLUMNS: usize = 4;

/// Takes in what a step took, in the order of the waiting list. Jobs that cannot be read are to fail; it is said, too.
/// # Errors
/// [`Error::Malformed`] when it is not told which jobs these are. None of them is held then.
pub(crate) fn take_in(
    mut taken: Reply,
    processed_on: u64,
    claim: u64,
    in_flight: &mut InFlight,
) -> Result<(Option<Batch>, Vec<Error>)> {
    if taken.is_empty() {
        return Ok((None, Vec::new()));
    }
    let base = in_flight.make_room(count_of(&taken)?);
    let batch = Batch {
        base,
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
        if let Err(error) = taking.part(&mut taken) {
            taking.in_flight.let_go(base);
            return Err(error);
        }
    }
    let Taking { batch, unreadable, .. } = taking;
    Ok(((!batch.jobs.is_empty()).then_some(batch), unreadable))
}

/// How many jobs they are.
fn count_of(taken: &Reply) -> Result<u32> {
    let mut jobs = 0;
    for part in parts_of(taken.rest()) {
        jobs += match part {
            Part::Frame { count, .. } | Part::Records { count, .. } => u64::from(count),
            Part::Odd => return Err(Error::malformed("what a step took", "neither a frame nor records")),
        };
        if jobs > MOST_TAKEN {
            return Err(Error::malformed("what a step took", format_args!("{jobs} jobs")));
        }
    }
    Ok(jobs as u32)
}

/// What is being taken in.
struct Taking<'a> {
    in_flight: &'a mut InFlight,
    batch: Batch,
    unreadable: Vec<Error>,
}

impl Taking<'_> {
    /// Takes in a frame or records. The parts were counted.
    fn part(&mut self, taken: &mut Reply) -> Result<()> {
        match taken.int()? {
            count @ ..0 => {
                let columns = taken.bytes()?;
                self.records(count.unsigned_abs() as usize, &columns, taken)
            }
            first => self.frame(first as u64, taken),
        }
    }

    fn frame(&mut self, first: u64, taken: &mut Reply) -> Result<()> {
        let (n, blob) = (taken.int()? as u32, taken.bytes()?);
        let head = Frame::parse(&blob).and_then(|frame| Ok((self.in_flight.options_of(frame.options)?, frame)));
        let (options, frame) = head.map_or_else(
            |error| (Arc::new(JobOptions::none("{}")), Err(error)),
            |(options, frame)| (options, Ok(frame)),
        );
        let header = frame.as_ref().ok().and_then(|frame| frame.header.as_ref());
        let ids: Option<Arc<str>> = header.map(|header| header.ids.into());
        let added_ms = frame.as_ref().ok().map(|frame| frame.timestamp);
        let began = Began {
            added_ms: added_ms.unwrap_or(0),
            ready_ms: added_ms,
            taken_ms: self.batch.processed_on,
        };
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
            began,
        });
        Ok(())
    }

    fn records(&mut self, count: usize, columns: &[u8], taken: &mut Reply) -> Result<()> {
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
        let are_told = |values: usize| values == 0 || values == count;
        if (ids.len(), bodies.len()) != (count, count) || !are_told(fields.len()) || !are_told(starts.len()) {
            return Err(Error::malformed("records", "columns of different lengths"));
        }
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
        let added_ms = body.timestamp.saturating_add(options.delay_ms);
        let began = Began {
            added_ms,
            ready_ms: ready_ms(added_ms, &fields).filter(|_| readable.is_ok()),
            taken_ms: self.batch.processed_on,
        };
        let (claim, attempts_made) = (self.batch.claim, fields.attempts_made);
        let extra = (!is_plain).then(|| Extra {
            id: id.clone(),
            fields,
            ready_ms: began.ready_ms.filter(|_| self.in_flight.measured.is_some()),
        });
        self.batch.push_record(number, &body, &options, extra);
        self.in_flight.hold(Group::Record {
            id,
            claim,
            attempts_made,
            attempts_started,
            options,
            began,
        });
        readable
    }
}

/// From when on a record could be started: at first since it was added, unless it had children or another delay than its own; then since it failed, unless it has
/// started in the meantime.
fn ready_ms(added_ms: u64, fields: &StateFields) -> Option<u64> {
    match fields.attempts_started {
        1 => (fields.delay_ms.is_none() && fields.children.is_none()).then_some(added_ms),
        _ => fields.waits_since.filter(|since| Some(*since) >= fields.processed_on),
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
