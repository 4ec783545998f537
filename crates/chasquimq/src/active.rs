//! Active jobs lie in no order: they are found a page at a time, and put in order here.

use redis::Value;

use crate::{
    error::Result,
    job::frame::id_in,
    redis::{
        call::{
            library::{Arg, LIST_ACTIVE},
            reply::Reply,
        },
        connection::Connection,
    },
};

/// A frame of which some jobs are active.
#[derive(Debug)]
pub(crate) struct ActiveFrame {
    pub first: u64,
    /// `1` stands for an active one; empty: all are, and nobody counted them.
    pub chars: Vec<u8>,
    pub started_ms: i64,
    pub claim: i64,
    ids: String,
}

impl ActiveFrame {
    /// Id of the job at this place.
    pub fn id(&self, at: usize) -> String {
        let ids = Some(self.ids.as_str()).filter(|ids| !ids.is_empty());
        id_in(ids, self.first.saturating_add(at as u64))
    }
}

/// An active job that has a record.
#[derive(Debug)]
pub(crate) struct ActiveRecord {
    pub id: String,
    pub started_ms: i64,
    pub claim: i64,
}

/// What a step over the active jobs finds (`lua/states/active.lua`).
#[derive(Debug)]
pub(crate) struct Page {
    /// Where the next step goes on; empty: there is none.
    pub cursor: String,
    pub frames: Vec<ActiveFrame>,
    pub records: Vec<ActiveRecord>,
    /// Where they are told: names of those who hold them, and how many jobs each of these runs at once (0: nobody knows).
    pub owners: Vec<(String, u32)>,
    /// The place among these, from 1 on, of who holds each frame, then each record.
    pub whose: Vec<usize>,
    /// In how many ms the next job expires, if one does.
    pub expires_ms: Option<i64>,
}

impl Page {
    /// # Errors
    /// [`crate::Error::Malformed`] if it is none.
    pub fn read(reply: Value) -> Result<Self> {
        let mut reply = Reply::new("a page of active jobs", reply)?;
        let cursor = reply.text()?;
        let (mut flat, mut frames) = (reply.array()?, Vec::new());
        while !flat.is_empty() {
            frames.push(ActiveFrame {
                first: flat.int()? as u64,
                chars: flat.bytes()?,
                started_ms: flat.int()?,
                claim: flat.int()?,
                ids: flat.text()?,
            });
        }
        let (mut flat, mut records) = (reply.array()?, Vec::new());
        while !flat.is_empty() {
            records.push(ActiveRecord {
                id: flat.text()?,
                started_ms: flat.int()?,
                claim: flat.int()?,
            });
        }
        let (mut owners, mut whose, mut expires_ms) = (Vec::new(), Vec::new(), None);
        if !reply.is_empty() {
            let (mut flat, mut places) = (reply.array()?, reply.array()?);
            while !flat.is_empty() {
                owners.push((flat.text()?, u32::try_from(flat.int()?).unwrap_or_default()));
            }
            while !places.is_empty() {
                whose.push(usize::try_from(places.int()?).unwrap_or_default());
            }
            if !reply.is_empty() {
                expires_ms = Some(reply.int()?);
            }
        }
        Ok(Self {
            cursor,
            frames,
            records,
            owners,
            whose,
            expires_ms,
        })
    }
}

/// Which active jobs are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// All.
    Anybody,
    /// Those whose worker has its lease.
    Holders,
    /// Those whose worker has none.
    Nobody,
}

/// Active jobs, as pages of them give them.
#[derive(Debug, Default)]
pub struct Active {
    // when it started, its number, its id
    jobs: Vec<(i64, u64, String)>,
}

impl Active {
    /// Reads what a step found. Gives where the next step goes on; empty: there is none.
    /// # Errors
    /// [`crate::Error::Malformed`] if it is no answer of `list_active`.
    pub fn take_in(&mut self, reply: Value) -> Result<String> {
        let page = Page::read(reply)?;
        for frame in page.frames {
            let active = (0..frame.chars.len()).filter(|at| frame.chars[*at] == b'1');
            self.jobs
                .extend(active.map(|at| (frame.started_ms, frame.first.saturating_add(at as u64), frame.id(at))));
        }
        let records = page.records.into_iter();
        self.jobs
            .extend(records.map(|record| (record.started_ms, number_of(&record.id), record.id)));
        Ok(page.cursor)
    }

    /// Their ids, in the order in which they became active; those of one moment by number.
    pub fn ids(mut self) -> Vec<String> {
        self.jobs.sort_unstable();
        // a job that leaves its frame between two steps is found twice
        let mut ids: Vec<String> = self.jobs.into_iter().map(|(_, _, id)| id).collect();
        ids.dedup();
        ids
    }

    pub(crate) async fn find(connection: &Connection, base: &str, whose: Whose) -> Result<Vec<String>> {
        let whose = match whose {
            Whose::Anybody => "all",
            Whose::Holders => "held",
            Whose::Nobody => "lost",
        };
        let (mut found, mut cursor) = (Self::default(), String::new());
        loop {
            let args = [Arg::from(whose), Arg::from(cursor.as_str())];
            cursor = found.take_in(LIST_ACTIVE.run(connection, base, &args).await?)?;
            if cursor.is_empty() {
                return Ok(found.ids());
            }
        }
    }
}

/// A number for sorting; other ids come last.
pub(crate) fn number_of(id: &str) -> u64 {
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| id.parse().ok()).flatten().unwrap_or(u64::MAX)
}

/// Those from rank `start` to `stop`, both included, negative from the end; ranks count from the head, or from the end.
pub fn in_range(mut ids: Vec<String>, start: i64, stop: i64, ascending: bool) -> Vec<String> {
    if !ascending {
        ids.reverse();
    }
    let count = ids.len() as i64;
    let from_head = |rank: i64| if rank < 0 { rank.saturating_add(count) } else { rank };
    let (from, to) = (from_head(start).max(0), from_head(stop).min(count - 1));
    if from > to {
        return Vec::new();
    }
    ids.drain(from as usize..=to as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_from_either_end() {
        let range = |start, stop, ascending| {
            let ids = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
            in_range(ids, start, stop, ascending).concat()
        };
        assert_eq!(range(0, -1, true), "abcd");
        assert_eq!(range(0, -1, false), "dcba");
        assert_eq!(range(1, 2, false), "cb");
        assert_eq!(range(-2, i64::MAX, true), "cd");
        assert_eq!(range(i64::MIN, 0, true), "a");
        assert_eq!(range(3, 1, true), "");
        assert_eq!(range(0, -5, true), "");
        assert!(in_range(Vec::new(), 0, -1, true).is_empty());
    }
}
