//! Frames that lie apart (`lua/jobs/frame.lua`): a step brings stubs, and the frames themselves are read by a plain command.

use redis::Value;

use crate::{error::Result, job::frame::stub_bytes, keys::Keys, redis::connection::Connection};

/// What one read brings at most, unless one frame alone has more: nobody else is served meanwhile.
const MAX_READ: u64 = 4 * 1024 * 1024;

/// A stub that a step brings: the first number of its frame, the bytes of that, and where it stands among what the step took.
#[derive(Debug, PartialEq)]
struct Stub {
    first: i64,
    bytes: u64,
    at: usize,
}

fn stubs_in(taken: &[Value]) -> Vec<Stub> {
    let (mut stubs, mut at) = (Vec::new(), 0);
    while let Some(Value::Int(first)) = taken.get(at) {
        if *first < 0 {
            // records
            at += 2;
            continue;
        }
        if let Some(Value::BulkString(blob)) = taken.get(at + 2) {
            stubs.extend(stub_bytes(blob).map(|bytes| Stub {
                first: *first,
                bytes,
                at: at + 2,
            }));
        }
        at += 3;
    }
    stubs
}

/// Whether a step brings stubs of frames.
pub(super) fn has_stubs(reply: &Value) -> bool {
    match reply {
        Value::Array(values) => matches!(values.get(1), Some(Value::Array(taken)) if !stubs_in(taken).is_empty()),
        _ => false,
    }
}

/// Puts frames in the places of their stubs. One that is not there, or is no text, cannot be read: its jobs are to fail.
/// # Errors
/// As [`Connection::send`].
pub(super) async fn read_frames(connection: &Connection, keys: &Keys, reply: &mut Value) -> Result<()> {
    let Value::Array(values) = reply else { return Ok(()) };
    let Some(Value::Array(taken)) = values.get_mut(1) else {
        return Ok(());
    };
    let stubs = stubs_in(taken);
    let mut rest = stubs.as_slice();
    while !rest.is_empty() {
        let (read, others) = rest.split_at(read_at_once(rest));
        rest = others;
        let mut command = redis::cmd("MGET");
        for stub in read {
            command.arg(keys.key(&format!("apart:{}", stub.first)));
        }
        if let Value::Array(frames) = connection.send(&command).await? {
            for (stub, frame) in read.iter().zip(frames) {
                if let Value::BulkString(_) = frame {
                    taken[stub.at] = frame;
                }
            }
        }
    }
    Ok(())
}

/// How many of these one read brings.
fn read_at_once(stubs: &[Stub]) -> usize {
    let mut bytes = 0;
    let fits = |stub: &&Stub| {
        bytes += stub.bytes;
        bytes <= MAX_READ
    };
    stubs.iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::frame::{single_frame, stub_of};

    #[test]
    fn stubs_stand_among_frames_and_records() {
        let long = single_frame(7, "{}", "a", &"x".repeat(20_000));
        let stub = stub_of(&long).expect("a stub");
        let frame = |first, blob: &[u8]| vec![Value::Int(first), Value::Int(1), Value::BulkString(blob.to_vec())];
        let records = vec![Value::Int(-2), Value::BulkString(stub.clone())];
        let taken = [frame(1, &stub), records, frame(9, &long), frame(10, &stub)].concat();
        let stub_at = |first, at| Stub {
            first,
            bytes: long.len() as u64,
            at,
        };
        assert_eq!(stubs_in(&taken), [stub_at(1, 2), stub_at(10, 10)]);
        let reply = |taken| Value::Array(vec![Value::Array(Vec::new()), Value::Array(taken)]);
        assert!(has_stubs(&reply(taken)));
        assert!(!has_stubs(&reply(frame(9, &long))));
    }

    #[test]
    fn one_read_brings_a_few_megabytes_or_one_frame() {
        let of = |sizes: &[u64]| {
            let stubs: Vec<Stub> = sizes
                .iter()
                .map(|mebibytes| Stub {
                    first: 1,
                    bytes: mebibytes << 20,
                    at: 2,
                })
                .collect();
            read_at_once(&stubs)
        };
        assert_eq!([of(&[1, 1, 2, 1]), of(&[9, 1]), of(&[1, 9]), of(&[1])], [3, 1, 1, 1]);
    }
}
