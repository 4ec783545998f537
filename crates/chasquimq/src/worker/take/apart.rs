//! Frames that lie apart (`lua/jobs/frame.lua`): a step brings stubs, and the frames themselves are read by a plain command.

use redis::Value;

use super::parts::{parts_of, Part};
use crate::{
    error::Result,
    job::{
        apart::{self, ApartFrame},
        frame::stub_bytes,
    },
    keys::Keys,
    redis::connection::Connection,
};

/// The frames for which a step brings stubs, and where these stand among what it took.
fn stubs_in(taken: &[Value]) -> (Vec<ApartFrame>, Vec<usize>) {
    let (mut frames, mut places) = (Vec::new(), Vec::new());
    for part in parts_of(taken) {
        if let Part::Frame { first, blob, place, .. } = part {
            if let Some(bytes) = stub_bytes(blob) {
                frames.push(ApartFrame { first, bytes });
                places.push(place);
            }
        }
    }
    (frames, places)
}

/// Whether a step brings stubs of frames.
pub(crate) fn has_stubs(reply: &Value) -> bool {
    match reply {
        Value::Array(values) => matches!(values.get(1), Some(Value::Array(taken)) if !stubs_in(taken).0.is_empty()),
        _ => false,
    }
}

/// Puts frames in the places of their stubs. One that is not there, or is no text, cannot be read: its jobs are to fail.
/// # Errors
/// As [`Connection::send`].
pub(crate) async fn read_frames(connection: &Connection, keys: &Keys, reply: &mut Value) -> Result<()> {
    let Value::Array(values) = reply else { return Ok(()) };
    let Some(Value::Array(taken)) = values.get_mut(1) else {
        return Ok(());
    };
    let (frames, places) = stubs_in(taken);
    for (place, frame) in places
        .into_iter()
        .zip(apart::read_frames(connection, keys, &frames).await?)
    {
        if let Some(frame) = frame {
            taken[place] = Value::BulkString(frame);
        }
    }
    Ok(())
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
        let records = |bodies: usize| vec![Value::BulkString(stub.clone()); 1 + bodies];
        let records = |bodies: usize| [vec![Value::Int(-2)], records(bodies)].concat();
        let taken = [
            frame(1, &stub),
            records(0),
            frame(9, &long),
            records(2),
            frame(10, &stub),
        ]
        .concat();
        let bytes = long.len() as u64;
        let frames = [1, 10].map(|first| ApartFrame { first, bytes });
        assert_eq!(stubs_in(&taken), (frames.to_vec(), vec![2, 14]));
        let reply = |taken| Value::Array(vec![Value::Array(Vec::new()), Value::Array(taken)]);
        assert!(has_stubs(&reply(taken)));
        assert!(!has_stubs(&reply(frame(9, &long))));
    }
}
