//! The parts of a step's reply that tell what it took (`lua/step/fetched.lua`).

use redis::Value;

use crate::job::frame::MAX_JOBS;

/// Jobs of a frame.
const MOST: i64 = MAX_JOBS as i64;

/// One of what a step took, as its reply has it.
pub(crate) enum Part<'a> {
    /// A frame of `count` jobs; `place`: that of its contents in the reply.
    Frame {
        first: i64,
        count: u32,
        blob: &'a [u8],
        place: usize,
    },
    /// Records, in columns.
    Records { count: u32, columns: &'a [u8] },
    /// What is neither, and ends the walk: nobody knows which jobs these are.
    Odd,
}

/// What a step took, part by part.
pub(crate) fn parts_of(taken: &[Value]) -> impl Iterator<Item = Part<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || match taken.get(at..)? {
        [] => None,
        [Value::Int(count @ ..0), Value::BulkString(columns), rest @ ..] if is_told_by(*count, columns) => {
            // the bodies of long ones follow, and stack traces
            let behind = rest.iter().take_while(|value| matches!(value, Value::BulkString(_)));
            at += 2 + behind.count();
            let count = count.unsigned_abs() as u32;
            Some(Part::Records { count, columns })
        }
        [Value::Int(first @ 0..), Value::Int(count @ 1..=MOST), Value::BulkString(blob), ..] => {
            let place = at + 2;
            at += 3;
            let (first, count) = (*first, *count as u32);
            Some(Part::Frame {
                first,
                count,
                blob,
                place,
            })
        }
        _ => {
            at = taken.len();
            Some(Part::Odd)
        }
    })
}

/// Whether columns may tell of so many records: each has an id, of a byte at least.
fn is_told_by(count: i64, columns: &[u8]) -> bool {
    count.unsigned_abs() <= columns.len() as u64 && columns.len() <= u32::MAX as usize
}
