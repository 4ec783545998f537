//! Entries of the event log as the server gives them, and how many of them to ask for.

use super::unpack::{unpack_entry, Event};
use crate::{
    error::{Error, Result},
    redis::call::reply::Reply,
};

/// Bytes of a read, and of what is handed over at once, unless a single entry, or event, has more.
pub(super) const BYTES_AT_ONCE: usize = 8 << 20;
/// Most entries of a read; the first reads fewer, as nobody knows how large they are.
const ENTRIES_A_READ: usize = 256;
const FIRST_ENTRIES: usize = 8;

/// An entry, with its events packed.
pub(super) struct Entry {
    pub id: (u64, u64),
    groups: Vec<u8>,
    // its other fields' values
    large: Vec<String>,
}

impl Entry {
    /// Takes the next entry of a reply.
    /// # Errors
    /// [`Error::Malformed`].
    pub fn take(entries: &mut Reply) -> Result<Self> {
        let mut entry = entries.array()?;
        let id = parse_id(&entry.text()?)?;
        let mut fields = entry.array()?;
        fields.text()?;
        let groups = fields.bytes()?;
        let mut large = Vec::with_capacity(fields.len() / 2);
        while fields.len() > 1 {
            fields.text()?;
            large.push(fields.text()?);
        }
        Ok(Self { id, groups, large })
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.groups.len() + self.large.iter().map(String::len).sum::<usize>()
    }

    /// Adds its events behind `after`. What another program wrote there is no event, and must not keep those around it.
    pub fn unpack(self, after: (u64, u64), events: &mut Vec<Event>) {
        let _ = unpack_entry(self.id, after, &self.groups, self.large, events);
    }
}

/// Entries that a read asks for: as many as fit, by the size of those that came.
pub(super) struct PageSize(pub usize);

impl PageSize {
    /// That of the first read.
    pub fn first() -> Self {
        Self(FIRST_ENTRIES)
    }

    /// So many entries of so many bytes came.
    pub fn learn(&mut self, came: usize, bytes: usize) {
        let fitting = (BYTES_AT_ONCE * came).checked_div(bytes).unwrap_or(ENTRIES_A_READ);
        self.0 = fitting.clamp(1, ENTRIES_A_READ.min(2 * self.0));
    }
}

/// The parts of an entry's id.
/// # Errors
/// [`Error::Invalid`].
pub(super) fn parse_id(id: &str) -> Result<(u64, u64)> {
    let (ms, seq) = id.split_once('-').unwrap_or((id, "0"));
    match (ms.parse(), seq.parse()) {
        (Ok(ms), Ok(seq)) => Ok((ms, seq)),
        _ => Err(Error::Invalid(format!(
            "Invalid stream ID specified as stream command argument: {id}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_position_that_is_none_is_refused() {
        assert!(parse_id("yesterday").is_err());
        assert_eq!(parse_id("7").expect("id"), (7, 0));
    }
}
