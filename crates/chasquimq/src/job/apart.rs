//! Frames that lie apart (`lua/jobs/frame.lua`), which are read by a plain command.

use redis::Value;

use super::msgpack::Reader;
use crate::{
    error::{Error, Result},
    keys::Keys,
    redis::{call::reply::Reply, connection::Connection},
};

/// What one read brings at most, unless one job or frame alone has more: nobody else is served meanwhile.
pub(super) const MAX_READ: u64 = 4 * 1024 * 1024;

/// A frame that lies apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ApartFrame {
    /// Number of its first job.
    pub(crate) first: i64,
    pub(crate) bytes: u64,
}

/// Where a job lies of which only that was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ApartPlace {
    pub(crate) frame: ApartFrame,
    pub(crate) offset: usize,
}

impl ApartPlace {
    /// Reads what scripts give instead of such a job's body; `None` when it is a body.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut values = Reader::new(body);
        if values.array().ok()? != 3 {
            return None;
        }
        let mut next = || values.int().ok();
        let (first, offset, bytes) = (next()?, next()?, next()?);
        Some(Self {
            frame: ApartFrame {
                first,
                bytes: bytes.try_into().ok()?,
            },
            offset: offset.try_into().ok()?,
        })
    }
}

/// These frames; `None` for one that is not there.
/// # Errors
/// As [`Connection::send`].
pub(crate) async fn read_frames(
    connection: &Connection,
    keys: &Keys,
    frames: &[ApartFrame],
) -> Result<Vec<Option<Vec<u8>>>> {
    let (mut read, mut rest) = (Vec::with_capacity(frames.len()), frames);
    while !rest.is_empty() {
        let (some, others) = rest.split_at(read_at_once(rest));
        rest = others;
        let mut command = redis::cmd("MGET");
        for frame in some {
            command.arg(keys.key(&format!("apart:{}", frame.first)));
        }
        read.extend(read_values(connection.send(&command).await?, some.len())?);
    }
    Ok(read)
}

/// The values of so many keys; `None` for one that is not there.
fn read_values(reply: Value, keys: usize) -> Result<Vec<Option<Vec<u8>>>> {
    let mut values = Reply::new("frames", reply)?;
    if values.len() != keys {
        return Err(Error::malformed("frames", format_args!("{} of {keys}", values.len())));
    }
    (0..keys).map(|_| values.opt_bytes()).collect()
}

/// How many of these one read brings.
fn read_at_once(frames: &[ApartFrame]) -> usize {
    let mut bytes = 0;
    let fits = |frame: &&ApartFrame| {
        bytes += frame.bytes;
        bytes <= MAX_READ
    };
    frames.iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{msgpack::Packer, record::record_body};

    #[test]
    fn one_read_brings_a_few_megabytes_or_one_frame() {
        let of = |sizes: &[u64]| {
            let frame = |mebibytes: &u64| ApartFrame {
                first: 1,
                bytes: mebibytes << 20,
            };
            read_at_once(&sizes.iter().map(frame).collect::<Vec<_>>())
        };
        assert_eq!([of(&[1, 1, 2, 1]), of(&[9, 1]), of(&[1, 9]), of(&[1])], [3, 1, 1, 1]);
    }

    #[test]
    fn a_place_stands_for_a_body() {
        let mut place = Packer::default();
        place.array(3).int(7).int(2).int(20_000);
        let expected = ApartPlace {
            frame: ApartFrame {
                first: 7,
                bytes: 20_000,
            },
            offset: 2,
        };
        assert_eq!(ApartPlace::parse(&place.0), Some(expected));
        let mut short = Packer::default();
        short.array(3).int(7).str("{}").str("mail");
        for other in [record_body(7, "{}", "a", "1"), short.0, Vec::new(), vec![0x93, 7]] {
            assert_eq!(ApartPlace::parse(&other), None);
        }
    }
}
