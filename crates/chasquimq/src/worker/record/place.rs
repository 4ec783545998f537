//! Where an outcome's job is.

use std::sync::Arc;

use super::packed_outcomes::Sent;
use crate::{
    job::{
        frame::{body_in_frame, id_in, APART_BYTES},
        msgpack::Packer,
        options::JobOptions,
        record::{record_body, Body},
    },
    latency::Began,
    worker::take::in_flight::Group,
};

/// Where an outcome's job is, and what decides what becomes of it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) first: u64,
    pub(crate) n: u32,
    pub(crate) offset: u32,
    pub(crate) id: String,
    pub(crate) claim: u64,
    // what the ids of children in its frame begin with
    ids: Option<Arc<str>>,
    // of the frame it lies in
    pub(crate) blob: Option<Arc<Vec<u8>>>,
    pub(crate) attempts_made: u32,
    pub(crate) attempts_started: u32,
    pub(crate) options: Arc<JobOptions>,
    pub(crate) began: Began,
}

impl Place {
    #[inline]
    pub(crate) fn of(offset: u32, held: &Group) -> Self {
        match held {
            Group::Frame {
                first,
                n,
                blob,
                options,
                ids,
                claim,
                began,
                ..
            } => Self {
                first: *first,
                n: *n,
                offset,
                claim: *claim,
                id: id_in(ids.as_deref(), *first + u64::from(offset)),
                ids: ids.clone(),
                blob: Some(blob.clone()),
                attempts_made: 0,
                attempts_started: 1,
                options: options.clone(),
                began: *began,
            },
            Group::Record {
                id,
                claim,
                attempts_made,
                attempts_started,
                options,
                began,
            } => Self {
                first: 0,
                n: 0,
                offset: 0,
                claim: *claim,
                id: id.clone(),
                ids: None,
                blob: None,
                attempts_made: *attempts_made,
                attempts_started: *attempts_started,
                options: options.clone(),
                began: *began,
            },
        }
    }

    /// For the step script; `large`: what stands behind its other arguments.
    #[inline]
    pub(crate) fn pack(&self, items: &mut Packer, large: &mut Vec<Box<str>>) {
        items
            .int(self.first as i64)
            .int(i64::from(self.n))
            .int(i64::from(self.offset))
            .int(self.claim as i64)
            .str(&self.id);
        match &self.blob {
            Some(blob) => pack_body(items, &body_in_frame(blob, self.offset as usize), large),
            None => {
                items.str("");
            }
        }
    }

    #[inline]
    pub(crate) fn sent(&self, handle: u32, group: Option<Group>) -> Sent {
        match self.first {
            0 => Sent::Record {
                id: self.id.clone(),
                claim: self.claim,
                handle,
                group,
            },
            first => Sent::Frame {
                first,
                offset: self.offset,
                count: 1,
                handle,
                ids: self.ids.clone(),
                claim: self.claim,
                group,
            },
        }
    }
}

/// The body of a job of a frame, for its record. Where its data are long, they go apart (`lua/jobs/large.lua`).
#[inline]
pub(crate) fn pack_body(items: &mut Packer, body: &[u8], large: &mut Vec<Box<str>>) {
    if body.len() < APART_BYTES {
        items.bytes(body);
        return;
    }
    match Body::parse(body) {
        Ok(Body {
            timestamp,
            options,
            name,
            data,
        }) => {
            large.push(data.into());
            let without = record_body(timestamp, &options, &name, "");
            items.array(2).bytes(&without).int(large.len() as i64);
        }
        Err(_) => {
            items.bytes(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_data_of_a_job_of_a_frame_go_apart() {
        for (bytes, is_apart) in [(10, false), (APART_BYTES, true)] {
            let (data, mut large) = ("d".repeat(bytes), vec!["\"a result\"".into()]);
            let body = record_body(7, "{}", "a", &data);
            let mut packed = Packer::default();
            pack_body(&mut packed, &body, &mut large);
            let mut expected = Packer::default();
            if is_apart {
                expected.array(2).bytes(&record_body(7, "{}", "a", "")).int(2);
                assert_eq!(&*large[1], data);
            } else {
                expected.bytes(&body);
                assert_eq!(large.len(), 1);
            }
            assert_eq!(packed.0, expected.0);
        }
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_is() {
        let (body, mut large) = (vec![0x91; APART_BYTES], Vec::new());
        let mut packed = Packer::default();
        pack_body(&mut packed, &body, &mut large);
        let mut expected = Packer::default();
        expected.bytes(&body);
        assert_eq!((packed.0, large.len()), (expected.0, 0));
    }
}
