//! What a frame of children begins with (`lua/jobs/frame.lua`).

use super::{
    msgpack::{Item, Packer, Reader},
    parent::{Parent, Policy},
};
use crate::error::Result;

/// What a frame of children begins with: what its jobs are called, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentHeader<'a> {
    /// What their ids begin with; their numbers follow ([`super::frame::child_id`]).
    pub ids: &'a str,
    /// What the keys of their parents' queue start with.
    pub base: &'a str,
    /// What their failure does to their parents.
    pub policy: Policy,
    /// Ids of the parents, and how many children each of them has here, in order.
    pub parents: Vec<(&'a str, u32)>,
}

impl<'a> ParentHeader<'a> {
    /// Writes it in front of a frame.
    pub fn pack(&self, frame: &[u8]) -> Vec<u8> {
        let mut packer = Packer::with_capacity(128 + 40 * self.parents.len() + frame.len());
        packer.array(5).str(self.ids).str(self.base).str(self.policy.letter());
        packer.column(self.parents.iter().map(|(id, _)| *id), false);
        packer.ints(self.parents.iter().map(|(_, count)| i64::from(*count)));
        packer.0.extend_from_slice(frame);
        packer.0
    }

    /// The parents, and how many children each has here.
    pub(crate) fn into_parents(self) -> impl Iterator<Item = (Parent, u32)> + use<'a> {
        let Self {
            base, policy, parents, ..
        } = self;
        parents.into_iter().map(move |(id, children)| {
            let parent = Parent {
                base: base.to_owned(),
                id: id.to_owned(),
                policy,
                range: None,
                range_len: None,
            };
            (parent, children)
        })
    }

    /// Reads that of a frame of children; `None` and nothing is read when its jobs have no parents.
    pub(super) fn read(frame: &mut Reader<'a>) -> Result<Option<Self>> {
        let mut ahead = *frame;
        let Item::Array(_) = ahead.item()? else {
            return Ok(None);
        };
        let (ids, base, policy) = (ahead.str()?, ahead.str()?, Policy::of(ahead.str()?));
        let ids_of_parents = (0..ahead.array()?).map(|_| ahead.str()).collect::<Result<Vec<_>>>()?;
        ahead.array()?;
        let parents = ids_of_parents
            .into_iter()
            .map(|id| Ok((id, ahead.int()? as u32)))
            .collect::<Result<_>>()?;
        *frame = ahead;
        Ok(Some(Self {
            ids,
            base,
            policy,
            parents,
        }))
    }
}
