//! A job that waits in a frame, by two plain reads: they cost the server a third of what a function does.

use std::sync::atomic::{AtomicU32, Ordering};

use redis::Value;

use crate::{
    error::Result,
    job::{frame::MAX_JOBS, read_waiting, Job},
    keys::Keys,
    redis::{call::reply::Reply, connection::Connection},
};

/// After plain reads that did not do, so many look-ups ask the function at once.
const WITHOUT_READS: u32 = 15;
/// Bytes of a frame that is large to be brought for one of its jobs.
const LARGE: usize = 16 * 1024;
/// In the log, above all frames that begin with a number (`lua/states/waiting_list.lua`).
const ABOVE_FRAMES: u64 = (1 << 40) - 1;
/// Digits of the numbers that are ids (`lua/jobs/find.lua`).
const MOST_DIGITS: usize = 15;

/// Looks for jobs by plain reads, where these find them.
#[derive(Debug, Default)]
pub(super) struct WaitingJobs {
    // look-ups that ask the function at once
    without_reads: AtomicU32,
}

impl WaitingJobs {
    /// The job, if it waits in a frame of plain jobs, and nobody touched a waiting frame. `None`: the function knows.
    pub(super) async fn find(&self, connection: &Connection, keys: &Keys, id: &str) -> Option<Job> {
        let number = self.number_to_read(id)?;
        let read = connection.read_pipeline_once(&reads(keys, number), READS).await.ok()?;
        self.found(id, number, read)
    }

    /// The number of a job that plain reads may find. `None`: the function is to be asked at once.
    pub(super) fn number_to_read(&self, id: &str) -> Option<u64> {
        let number = number_of(id)?;
        // two look-ups at once may count as one
        let left = self.without_reads.load(Ordering::Relaxed);
        self.without_reads.store(left.saturating_sub(1), Ordering::Relaxed);
        (left == 0).then_some(number)
    }

    /// The job of this number, as [`reads`] were answered.
    pub(super) fn found(&self, id: &str, number: u64, read: Vec<Value>) -> Option<Job> {
        let frame = Found::of(read).filter(|found| found.holds_waiting(number));
        let job = frame
            .as_ref()
            .and_then(|frame| read_waiting(id, &frame.blob, (number - frame.first) as usize));
        if job.is_none() || frame.is_some_and(|frame| frame.blob.len() > LARGE) {
            self.without_reads.store(WITHOUT_READS, Ordering::Relaxed);
        }
        job
    }
}

/// How many [`reads`] there are.
pub(super) const READS: usize = 2;

/// Plain reads that find the job of this number, where it waits in a frame.
///
/// It waited when the state was read: a frame that had its number by then, is still in the log, and lay behind the cursor was whole
/// then, and an entry of the log never changes. So the order of the reads matters.
pub(super) fn reads(keys: &Keys, number: u64) -> redis::Pipeline {
    let mut reads = redis::pipe();
    reads.cmd("GET").arg(keys.key("state"));
    let newest = format!("{number}-{ABOVE_FRAMES}");
    reads.cmd("XREVRANGE").arg(keys.key("log")).arg(newest).arg("-");
    reads.arg("COUNT").arg(1);
    reads
}

/// The number that an id is.
fn number_of(id: &str) -> Option<u64> {
    let is_number = id.len() <= MOST_DIGITS && !id.starts_with('0') && id.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| id.parse().ok()).flatten()
}

/// What the plain reads found.
struct Found {
    state: Vec<u8>,
    first: u64,
    jobs: u64,
    blob: Vec<u8>,
}

impl Found {
    fn of(read: Vec<Value>) -> Option<Self> {
        let [Value::BulkString(state), entries] = <[Value; 2]>::try_from(read).ok()? else {
            return None;
        };
        let (first, jobs, blob) = frame_in(entries).ok()??;
        Some(Self {
            state,
            first,
            jobs,
            blob,
        })
    }

    /// A number of the state (`lua/queue/state.lua`); one of an older release has fewer, and the rest is 0.
    fn number(&self, place: usize) -> f64 {
        let bytes = self.state.get(8 * place..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0.0, |bytes| f64::from_le_bytes(*bytes))
    }

    /// Whether the job of this number lies in the frame, which waits as it was added.
    fn holds_waiting(&self, number: u64) -> bool {
        let (last, holes) = (self.number(0), self.number(10));
        let cursor = (self.number(1), self.number(2));
        let (first, jobs) = (self.first as f64, self.jobs as f64);
        let is_behind_cursor = first > cursor.0 || (first == cursor.0 && jobs > cursor.1);
        let is_in_frame = (self.first..self.first + self.jobs).contains(&number);
        is_behind_cursor && holes == 0.0 && number as f64 <= last && is_in_frame
    }
}

/// First number, number of jobs and contents of the one entry, if it is a frame.
fn frame_in(entries: Value) -> Result<Option<(u64, u64, Vec<u8>)>> {
    const WHAT: &str = "an entry of the log";
    let mut entries = Reply::new(WHAT, entries)?;
    if entries.is_empty() {
        return Ok(None);
    }
    let mut entry = entries.array()?;
    let (id, mut fields) = (entry.text()?, entry.array()?);
    let numbers = id
        .split_once('-')
        .and_then(|(first, jobs)| Some((first.parse::<u64>().ok()?, jobs.parse::<u64>().ok()?)));
    let is_frame = fields.text()? == "f";
    match numbers {
        Some((first, jobs)) if is_frame && (1..=MAX_JOBS as u64).contains(&jobs) => {
            Ok(Some((first, jobs, fields.bytes()?)))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::frame::single_frame;

    fn state(numbers: &[f64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn found(numbers: &[f64]) -> Found {
        Found {
            state: state(numbers),
            first: 5,
            jobs: 3,
            blob: Vec::new(),
        }
    }

    #[test]
    fn ids_that_are_numbers_are_looked_for() {
        assert_eq!(number_of("12"), Some(12));
        for id in ["", "0", "012", "+1", "1e3", "x", "1234567890123456"] {
            assert_eq!(number_of(id), None, "{id}");
        }
    }

    #[test]
    fn a_job_waits_in_a_frame_behind_the_cursor_that_nobody_touched() {
        let waits = |numbers: &[f64], number| found(numbers).holds_waiting(number);
        assert!(waits(&[7.0, 4.0, 1.0], 5) && waits(&[9.0, 0.0, 0.0], 7));
        assert!(!waits(&[9.0, 0.0, 0.0], 8), "behind the frame");
        assert!(!waits(&[6.0, 4.0, 1.0], 7), "added since the state was read");
        assert!(
            !waits(&[7.0, 5.0, 3.0], 6) && !waits(&[7.0, 6.0, 1.0], 6),
            "left the waiting list"
        );
        assert!(waits(&[7.0, 5.0, 2.0], 6));
        let holes = [7.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        assert!(!waits(&holes, 6), "touched");
    }

    #[test]
    fn only_a_frame_is_read() {
        let blob = single_frame(7, "{}", "a", "1");
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let entry = |id: &str, field: &str| {
            let fields = Value::Array(vec![text(field), Value::BulkString(blob.clone())]);
            let entries = Value::Array(vec![Value::Array(vec![text(id), fields])]);
            Found::of(vec![Value::BulkString(state(&[1.0])), entries])
        };
        let found = entry("1-1", "f").expect("a frame");
        assert_eq!((found.first, found.jobs, &found.blob), (1, 1, &blob));
        assert_eq!(read_waiting("1", &found.blob, 0).expect("a job").body.data, "1");
        for (id, field) in [("1-1", "r"), ("1-65", "f"), ("1-1099511627777", "r"), ("x", "f")] {
            assert!(entry(id, field).is_none(), "{id} {field}");
        }
        let nothing = Found::of(vec![Value::Nil, Value::Array(Vec::new())]);
        assert!(nothing.is_none() && read_waiting("1", b"x", 0).is_none());
    }
}
