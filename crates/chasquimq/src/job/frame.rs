//! Frames: 1 to 64 plain jobs in one stream entry. Layout in `lua/jobs/frame.lua`.

use super::{
    msgpack::{Item, Packer, Reader},
    parent_header::ParentHeader,
    record::record_body,
};
use crate::error::Result;

/// Jobs in a frame at most. A whole frame is fetched, finished and kept by a handful of Redis commands.
pub const MAX_JOBS: usize = 64;
/// Bytes of names and data in a frame at most, unless one job alone is larger; and of data of a record that do not lie apart
/// (`lua/jobs/large.lua`).
pub const MAX_BYTES: usize = 256 * 1024;
/// Bytes of a frame that lies apart from the log, at least: fewer cost less where they are.
pub(crate) const APART_BYTES: usize = 16 * 1024;
/// Options of such a frame, at most.
pub(crate) const STUB_OPTIONS: usize = 1024;
/// Data of a job in such a frame, at most: with more, what Lua does where the job is given a record takes too long.
pub(crate) const MAX_APART_BYTES: usize = 2 * 1024 * 1024;

/// A frame being filled.
#[derive(Debug)]
pub struct FrameBuilder {
    packer: Packer,
    jobs: usize,
    bytes: usize,
    names: Vec<String>,
    same_name: bool,
}

impl FrameBuilder {
    /// An empty frame of jobs created at `timestamp` (epoch ms) with these options (JSON text).
    pub fn new(timestamp: u64, options: &str) -> Self {
        let mut packer = Packer::with_capacity(1024);
        packer.int(timestamp as i64).str(options);
        Self {
            packer,
            jobs: 0,
            bytes: 0,
            names: Vec::new(),
            same_name: true,
        }
    }

    /// True when the job must go in another frame.
    #[inline]
    pub fn is_full_for(&self, name: &str, data: &str) -> bool {
        self.jobs == MAX_JOBS || (self.jobs > 0 && self.bytes + name.len() + data.len() > MAX_BYTES)
    }

    /// Adds a job.
    #[inline]
    pub fn push(&mut self, name: &str, data: &str) {
        if self.jobs > 0 && self.last_name() == name {
            self.packer.nil();
            if !self.same_name {
                self.names.push(name.to_owned());
            }
        } else {
            if self.jobs > 0 && self.same_name {
                self.same_name = false;
                let only = self.last_name().to_owned();
                self.names.resize(self.jobs, only);
            }
            self.packer.str(name);
            self.names.push(name.to_owned());
        }
        self.packer.str(data);
        self.jobs += 1;
        self.bytes += name.len() + data.len();
    }

    #[inline]
    fn last_name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// Number of jobs so far.
    pub fn jobs(&self) -> usize {
        self.jobs
    }

    /// The stream entry's value.
    pub fn finish(self) -> (Vec<u8>, Vec<String>) {
        (self.packer.0, self.names)
    }
}

/// The frame of one job.
pub fn single_frame(timestamp: u64, options: &str, name: &str, data: &str) -> Vec<u8> {
    let mut packer = Packer::with_capacity(options.len() + name.len() + data.len() + 24);
    packer.int(timestamp as i64).str(options).str(name).str(data);
    packer.0
}

/// What stands in the log for a frame that is long enough to lie apart (`lua/jobs/frame.lua`).
pub fn stub_of(blob: &[u8]) -> Option<Vec<u8>> {
    if blob.len() < APART_BYTES {
        return None;
    }
    let frame = Frame::parse(blob).ok()?;
    if frame.header.is_some() || frame.options.len() > STUB_OPTIONS {
        return None;
    }
    let mut stub = Packer::with_capacity(frame.options.len() + 24);
    stub.int(frame.timestamp as i64)
        .str(frame.options)
        .int(blob.len() as i64);
    Some(stub.0)
}

/// Whether this stands for a frame that lies apart.
pub fn is_stub(blob: &[u8]) -> bool {
    stub_bytes(blob).is_some()
}

/// The bytes of the frame that lies apart for which this stands, if it does: they come where a frame has a name.
pub(crate) fn stub_bytes(blob: &[u8]) -> Option<u64> {
    let mut values = Reader::new(blob);
    let mut next = || values.item().ok();
    match [next(), next(), next()] {
        [Some(Item::Number(_)), Some(Item::Bytes(_)), Some(Item::Number(bytes))] => Some(bytes as u64),
        _ => None,
    }
}

/// The id of the child of this number: a UUID, if `ids` is the front of one.
pub fn child_id(ids: &str, number: u64) -> String {
    format!("{ids}{number:012x}")
}

/// The id of the job of this number in a frame; `ids`: what those of children begin with.
pub(crate) fn id_in(ids: Option<&str>, number: u64) -> String {
    ids.map_or_else(|| number.to_string(), |ids| child_id(ids, number))
}

/// Head of a stored frame, and its jobs.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Of a frame of children.
    pub header: Option<ParentHeader<'a>>,
    /// Creation time of its jobs, epoch ms.
    pub timestamp: u64,
    /// Options of its jobs, JSON text.
    pub options: &'a str,
    jobs: Reader<'a>,
    name: &'a str,
}

impl<'a> Frame<'a> {
    /// Reads a frame's head.
    /// # Errors
    /// [`crate::Error::Malformed`] when this is no frame.
    pub fn parse(blob: &'a [u8]) -> Result<Self> {
        let mut jobs = Reader::new(blob);
        let header = ParentHeader::read(&mut jobs)?;
        let timestamp = jobs.int()? as u64;
        let options = jobs.str()?;
        Ok(Self {
            header,
            timestamp,
            options,
            jobs,
            name: "",
        })
    }

    /// The next job's name (`None`: as the job before) and data; `None` after the last.
    /// # Errors
    /// [`crate::Error::Malformed`] when the frame is truncated.
    pub fn next_job(&mut self) -> Result<Option<(Option<&'a str>, &'a str)>> {
        if self.jobs.is_empty() {
            return Ok(None);
        }
        let name = self.jobs.opt_str()?;
        if let Some(name) = name {
            self.name = name;
        }
        Ok(Some((name, self.jobs.str()?)))
    }

    /// The name of the job that was read last.
    pub fn name(&self) -> &'a str {
        self.name
    }
}

/// The body of one job of a frame; see [`bodies_in_frame`].
pub fn body_in_frame(blob: &[u8], offset: usize) -> Vec<u8> {
    bodies_in_frame(blob, &[offset]).remove(0)
}

/// The bodies of some jobs of a frame, in the order asked for. Offsets that count up cost one pass over the frame. The body of a job that
/// cannot be read cannot be read either; the first such body holds what is left of the frame.
pub fn bodies_in_frame(blob: &[u8], offsets: &[usize]) -> Vec<Vec<u8>> {
    let mut walk = Walk::start(blob);
    let mut bodies = Vec::with_capacity(offsets.len());
    for &offset in offsets {
        if offset < walk.next {
            walk = Walk::start(blob);
        }
        bodies.push(walk.body_of(offset));
    }
    bodies
}

/// A pass over a frame, up to where it cannot be read.
struct Walk<'a> {
    frame: Option<Frame<'a>>,
    // the next job
    next: usize,
    rest: &'a [u8],
}

impl<'a> Walk<'a> {
    fn start(blob: &'a [u8]) -> Self {
        Self {
            frame: Frame::parse(blob).ok(),
            next: 0,
            rest: blob,
        }
    }

    fn body_of(&mut self, offset: usize) -> Vec<u8> {
        while let Some(frame) = &mut self.frame {
            self.rest = frame.jobs.rest();
            let Ok(Some((_, data))) = frame.next_job() else {
                break;
            };
            self.next += 1;
            if self.next == offset + 1 {
                return record_body(frame.timestamp, frame.options, frame.name(), data);
            }
        }
        self.frame = None;
        let mut unreadable = Packer::default();
        unreadable.array(1).bytes(std::mem::take(&mut self.rest));
        unreadable.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{parent::Policy, record::Body};

    #[test]
    fn a_frame_gives_back_its_jobs() {
        let mut builder = FrameBuilder::new(7, "{}");
        for (name, data) in [("a", "1"), ("a", "2"), ("b", "3"), ("b", "4")] {
            builder.push(name, data);
        }
        let (blob, names) = builder.finish();
        assert_eq!(names, ["a", "a", "b", "b"]);
        let mut frame = Frame::parse(&blob).expect("frame");
        assert_eq!((frame.timestamp, frame.options), (7, "{}"));
        let mut jobs = Vec::new();
        while let Some((_, data)) = frame.next_job().expect("job") {
            jobs.push((frame.name(), data));
        }
        assert_eq!(jobs, [("a", "1"), ("a", "2"), ("b", "3"), ("b", "4")]);
        assert_eq!(body_in_frame(&blob, 2), record_body(7, "{}", "b", "3"));
        assert!(Body::parse(&body_in_frame(&blob, 4)).is_err());
    }

    #[test]
    fn of_a_truncated_frame_the_jobs_before_the_end_are_there() {
        let mut builder = FrameBuilder::new(7, "{}");
        for data in ["1", "2", "\"three\""] {
            builder.push("a", data);
        }
        let blob = builder.finish().0;
        let bodies = bodies_in_frame(&blob[..blob.len() - 2], &[0, 1, 2, 3, 0]);
        assert_eq!(bodies[1], record_body(7, "{}", "a", "2"));
        assert_eq!(bodies[4], record_body(7, "{}", "a", "1"));
        // an array of one text, which is what is left of the frame: nil for the name, and the data without its end
        assert_eq!(bodies[2], b"\x91\xa7\xc0\xa7\"thre");
        assert_eq!(bodies[3], b"\x91\xa0");
        assert!(bodies[2..4].iter().all(|body| Body::parse(body).is_err()));
    }

    #[test]
    fn a_frame_of_children_says_whose_they_are() {
        let mut builder = FrameBuilder::new(7, "{}");
        for data in ["1", "2", "3"] {
            builder.push("a", data);
        }
        let header = ParentHeader {
            ids: "0c1f7a0e-5b0c-4d7e-9a53-",
            base: "{q}:",
            policy: Policy::Fail,
            parents: vec![("r", 2), ("s", 1)],
        };
        let blob = header.pack(&builder.finish().0);
        let mut frame = Frame::parse(&blob).expect("frame");
        assert_eq!(frame.header, Some(header));
        assert_eq!((frame.timestamp, frame.options), (7, "{}"));
        assert_eq!(frame.next_job().expect("job"), Some((Some("a"), "1")));
        assert_eq!(
            child_id("0c1f7a0e-5b0c-4d7e-9a53-", 30),
            "0c1f7a0e-5b0c-4d7e-9a53-00000000001e"
        );
    }

    #[test]
    fn jobs_of_one_name_share_it() {
        let mut builder = FrameBuilder::new(7, "{}");
        builder.push("a", "1");
        builder.push("a", "2");
        assert_eq!(builder.finish().1, ["a"]);
    }

    #[test]
    fn a_long_frame_has_a_stub() {
        let frame = |options: &str, bytes| single_frame(7, options, "a", &"x".repeat(bytes));
        let long = frame("{}", APART_BYTES);
        let stub = stub_of(&long).expect("a stub");
        assert!(is_stub(&stub) && !is_stub(&long));
        let head = Frame::parse(&stub).expect("a head");
        assert_eq!((head.timestamp, head.options), (7, "{}"));
        assert!(stub_of(&frame("{}", 100)).is_none());
        assert!(stub_of(&frame(&"o".repeat(2000), APART_BYTES)).is_none());
        let header = ParentHeader {
            ids: "",
            base: "{q}:",
            policy: Policy::Fail,
            parents: Vec::new(),
        };
        assert!(stub_of(&header.pack(&long)).is_none());
    }

    #[test]
    fn a_frame_is_full_by_jobs_or_bytes() {
        let mut builder = FrameBuilder::new(7, "{}");
        let large = "x".repeat(MAX_BYTES + 1);
        assert!(!builder.is_full_for("a", &large));
        builder.push("a", &large);
        assert!(builder.is_full_for("a", "1"));
    }
}
