//! 2. waiting -> active. Reads the answer to a step.

use redis::Value;

use super::{
    batch::{Batch, Extra},
    in_flight::InFlight,
    parts::{parts_of, Part},
    taken::take_in,
};
use crate::{
    error::{Error, Result},
    job::frame::is_stub,
    redis::call::reply::Reply,
    worker::record::packed_outcomes::Refusal,
};

/// What a step tells of what is left.
const LEFT: i64 = 1;
/// It tells that the worker waits.
const WAITS: i64 = 2;

/// The answer to a step.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Outcomes that were refused.
    pub(crate) rejected: Vec<Refusal>,
    /// What was taken, unless it was handed on already.
    pub(crate) jobs: Option<Batch>,
    /// Number of jobs taken.
    pub(crate) taken: i64,
    /// Whether the worker held nothing before.
    pub(crate) was_idle: bool,
    /// What is wrong with jobs that were taken and cannot be read.
    pub(crate) unreadable: Vec<Error>,
    /// When the next job is due, epoch ms; -1 = none is known of.
    pub(crate) due_ms: i64,
    /// Whether work is left that somebody may start.
    pub(crate) is_left: bool,
    /// Whether none is, and the worker is told of what comes.
    pub(crate) waits: bool,
    /// Whether the queue lets nobody take jobs now.
    pub(crate) gated: bool,
    /// When what it took started: when it was carried out, epoch ms of the caller's clock; 0 = there was nothing to take, and no clock was read.
    pub(crate) now_ms: u64,
    /// The same, in microseconds of the server's clock.
    pub(crate) server_us: i64,
    /// A rate limit lets this worker start nothing for so long; 0 = it does.
    pub(crate) limited_ms: u64,
}

impl Answer {
    /// Reads a reply; what it took is held from now on.
    /// # Errors
    /// [`Error::Malformed`] when it is none, or does not tell which jobs it took: then none of them is held.
    pub(crate) fn read(reply: Value, in_flight: &mut InFlight) -> Result<Self> {
        let was_idle = in_flight.jobs() == 0;
        let mut reply = Reply::new("the answer to step", reply)?;
        let (rejected, taken) = (Refusal::read_all(reply.array()?)?, reply.array()?);
        let (due_ms, gated, left) = (reply.int()?, reply.int()? == 1, reply.int()?);
        let (now_ms, server_us, limited_ms) = (reply.int()?.max(0) as u64, reply.int()?, reply.int()?.max(0) as u64);
        let claim = reply.int()? as u64;
        let (jobs, unreadable) = take_in(taken, now_ms, claim, in_flight)?;
        Ok(Self {
            rejected,
            taken: jobs.as_ref().map_or(0, |batch| batch.jobs.len() as i64),
            jobs,
            was_idle,
            unreadable,
            due_ms,
            is_left: left == LEFT,
            waits: left == WAITS,
            gated,
            now_ms,
            server_us,
            limited_ms,
        })
    }

    /// How many jobs a reply brings, and its time, if that is all there is to it: nothing was refused, no limit is met, and no job failed
    /// before, of which more would have to be read.
    pub(crate) fn plainly_brings(reply: &Value) -> Option<(u32, u64)> {
        let Value::Array(values) = reply else { return None };
        let [Value::Array(rejected), Value::Array(taken), Value::Int(_), Value::Int(0), Value::Int(_), Value::Int(now_ms @ 0..), Value::Int(_), Value::Int(0), Value::Int(_), ..] =
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
    pub(crate) fn has_jobs(reply: &Value) -> bool {
        let taken = match reply {
            Value::Array(values) => values.get(1),
            _ => None,
        };
        matches!(taken, Some(Value::Array(taken)) if !taken.is_empty())
    }

    /// The jobs, if nothing more has to be read about them.
    pub(crate) fn ready_jobs(&mut self) -> Option<Batch> {
        self.jobs.take_if(|batch| !batch.extras.iter().any(Extra::is_partial))
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;
    use crate::{
        garbage::{changes, frame, value, Chance},
        job::{msgpack::Packer, record::record_body},
    };

    #[test]
    fn an_answer_of_any_shape_is_read_or_refused() {
        let mut chance = Chance::of_run(7);
        for _ in 0..5 * changes() {
            let (rejected, taken) = (Value::Array(Vec::new()), value(&mut chance, 0));
            let numbers = [-1, 0, 0, 5, 5, 0, 2].map(Value::Int);
            let reply = Value::Array([rejected, taken].into_iter().chain(numbers).collect());
            let mut in_flight = InFlight::default();
            let brought = Answer::plainly_brings(&reply);
            let read = Answer::read(reply, &mut in_flight);
            if read.is_err() {
                assert_eq!((in_flight.jobs(), in_flight.handles().len()), (0, 0));
            }
            if let Ok(answer) = read {
                assert!(brought.is_none_or(|(jobs, _)| jobs == in_flight.jobs()));
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

    /// Records as `lua/step/fetched.lua` gives them, and frames.
    fn taken(chance: &mut Chance) -> (Vec<Value>, u32) {
        let (mut taken, mut jobs) = (Vec::new(), 0);
        for part in 0..chance.below(4) {
            if chance.below(2) == 0 {
                let names: Vec<String> = (0..=chance.below(5)).map(|job| format!("{part}-{job}")).collect();
                let bodies: Vec<_> = names.iter().map(|name| record_body(7, "{}", name, "1")).collect();
                let mut columns = Packer::default();
                columns
                    .array(4)
                    .column(names.iter().map(String::as_str), false)
                    .array(bodies.len());
                for body in &bodies {
                    columns.bytes(body);
                }
                columns.int(0).int(0);
                taken.extend([Value::Int(-(names.len() as i64)), Value::BulkString(columns.0)]);
                jobs += names.len() as u32;
            } else {
                let (blob, framed) = frame(chance);
                let first = Value::Int(1 + 100 * part as i64);
                taken.extend([first, Value::Int(framed.len() as i64), Value::BulkString(blob)]);
                jobs += framed.len() as u32;
            }
        }
        (taken, jobs)
    }

    #[test]
    fn what_a_step_took_is_held_whole_or_not_at_all() {
        let mut chance = Chance::of_run(8);
        for _ in 0..changes() {
            let (mut taken, jobs) = taken(&mut chance);
            let numbers = [-1, 0, 9, 1005, 99, 0, 2].map(Value::Int);
            let answer = |taken: &[Value]| {
                let arrays = [Value::Array(Vec::new()), Value::Array(taken.to_vec())];
                Value::Array(arrays.into_iter().chain(numbers.clone()).collect())
            };
            let mut in_flight = InFlight::default();
            assert_eq!(Answer::plainly_brings(&answer(&taken)), Some((jobs, 1005)));
            let read = Answer::read(answer(&taken), &mut in_flight).expect("an answer");
            assert_eq!((read.taken, in_flight.jobs()), (i64::from(jobs), jobs));
            assert!(read.unreadable.is_empty());
            if taken.is_empty() {
                continue;
            }
            // one value is another
            let at = chance.below(taken.len());
            taken[at] = match &taken[at] {
                Value::BulkString(bytes) if chance.below(2) == 0 => Value::BulkString(chance.change(bytes)),
                _ => value(&mut chance, 3),
            };
            let held = in_flight.jobs();
            match Answer::read(answer(&taken), &mut in_flight) {
                Ok(read) => {
                    assert_eq!(in_flight.jobs(), held + read.taken as u32);
                    // those that cannot be read are to fail, and it is said
                    let batch = read.jobs.unwrap_or_default();
                    let failing = |extra: &Extra| extra.fields.deferred_failure.is_some();
                    assert!(!batch.extras.iter().any(failing) || !read.unreadable.is_empty());
                }
                Err(_) => assert_eq!(in_flight.jobs(), held),
            }
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
