//! Where an outcome's job is.

use std::sync::Arc;

use super::{in_flight::Group, outcomes::Sent};
use crate::job::{
    frame::{body_in_frame, id_in},
    msgpack::Packer,
    options::JobOptions,
};

/// Where an outcome's job is, and what decides what becomes of it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) first: u64,
    pub(super) n: u32,
    pub(super) offset: u32,
    pub(super) id: String,
    pub(super) claim: u64,
    // what the ids of children in its frame begin with
    ids: Option<Arc<str>>,
    // of the frame it lies in
    pub(super) blob: Option<Arc<Vec<u8>>>,
    pub(super) attempts_made: u32,
    pub(super) attempts_started: u32,
    pub(super) options: Arc<JobOptions>,
}

impl Place {
    #[inline]
    pub(super) fn of(offset: u32, held: &Group) -> Self {
        match held {
            Group::Frame {
                first,
                n,
                blob,
                options,
                ids,
                claim,
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
            },
            Group::Record {
                id,
                claim,
                attempts_made,
                attempts_started,
                options,
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
            },
        }
    }

    /// For the step script.
    #[inline]
    pub(super) fn pack(&self, items: &mut Packer) {
        items
            .int(self.first as i64)
            .int(i64::from(self.n))
            .int(i64::from(self.offset))
            .int(self.claim as i64)
            .str(&self.id);
        match &self.blob {
            Some(blob) => items.bytes(&body_in_frame(blob, self.offset as usize)),
            None => items.str(""),
        };
    }

    #[inline]
    pub(super) fn sent(&self, handle: u32, group: Option<Group>) -> Sent {
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
