//! The parts of a step's reply that tell what it took (`lua/step/fetched.lua`).

use redis::Value;

/// One of what a step took, as its reply has it.
pub(super) enum Part<'a> {
    /// A frame of `count` jobs; `place`: that of its contents in the reply.
    Frame {
        first: i64,
        count: u32,
        blob: &'a [u8],
        place: usize,
    },
    /// Records, in columns.
    Records { count: u32, columns: &'a [u8] },
    /// What is neither, and ends the walk.
    Odd,
}

/// What a step took, part by part.
pub(super) fn parts_of(taken: &[Value]) -> impl Iterator<Item = Part<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || match taken.get(at..)? {
        [] => None,
        [Value::Int(count), Value::BulkString(columns), rest @ ..] if *count < 0 => {
            // the bodies of long ones follow, and stack traces
            let behind = rest.iter().take_while(|value| matches!(value, Value::BulkString(_)));
            at += 2 + behind.count();
            let count = count.unsigned_abs() as u32;
            Some(Part::Records { count, columns })
        }
        [Value::Int(first), Value::Int(count), Value::BulkString(blob), ..] => {
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
