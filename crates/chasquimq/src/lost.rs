//! Active jobs that nobody runs go back to the head of the waiting list: found in steps, put in order here, and brought back in parcels, so that the
//! server works on each for a few milliseconds however many there are.

use redis::Value;

use crate::{
    active::{number_of, ActiveRecord, Page},
    error::Result,
    id::unique_id,
    job::{frame::MAX_JOBS, msgpack::Packer},
    keys::Keys,
    redis::{
        connection::Connection,
        exactly_once::Calls,
        library::{args, FIND_LOST, RECOVER_STALLED},
        reply::Reply,
    },
};

/// Jobs that one call brings back, about.
const PARCEL: usize = 256;

/// What is lost.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    started_ms: i64,
    // its number; what has none comes last
    number: u64,
    // of a record; empty: the job of a frame, or all of it
    id: String,
    first: i64,
    offset: i64,
    claim: i64,
}

/// The jobs of a scan, as `find_lost` gives them.
#[derive(Debug, Default)]
pub struct Lost {
    items: Vec<Item>,
    sorted: bool,
}

impl Lost {
    /// Reads what a step found, but for what `is_held` under a claim. Gives where the next step goes on; empty: there is none.
    /// # Errors
    /// [`crate::Error::Malformed`] if it is no answer of `find_lost`.
    pub fn take_in(&mut self, reply: Value, is_held: &(dyn Fn(&str, i64) -> bool + Sync)) -> Result<String> {
        let page = Page::read(reply)?;
        for frame in page.frames {
            let (chars, claim) = (&frame.chars, frame.claim);
            let item = |offset: i64| Item {
                started_ms: frame.started_ms,
                number: frame.first.saturating_add(offset.max(0) as u64),
                id: String::new(),
                first: frame.first as i64,
                offset,
                claim,
            };
            let is_lost = |at: &usize| chars[*at] == b'1' && !is_held(&frame.id(*at), claim);
            let lost: Vec<usize> = (0..chars.len()).filter(is_lost).collect();
            if lost.len() == chars.len() {
                self.items.push(item(-1));
            } else {
                self.items.extend(lost.into_iter().map(|at| item(at as i64)));
            }
        }
        for ActiveRecord { id, started_ms, claim } in page.records {
            if !is_held(&id, claim) {
                self.items.push(Item {
                    started_ms,
                    number: number_of(&id),
                    id,
                    first: 0,
                    offset: 0,
                    claim,
                });
            }
        }
        self.sorted = false;
        Ok(page.cursor)
    }

    /// Packs those that come last, and tells how many these are and whether there are no others. None: nothing is left.
    pub fn parcel(&mut self) -> Option<(Vec<u8>, usize, bool)> {
        if !self.sorted {
            // a step may find again what one before it found
            self.items.sort_unstable();
            self.items.dedup();
            self.sorted = true;
        }
        let mut jobs = 0;
        let fits = |item: &&Item| {
            jobs += if item.offset < 0 { MAX_JOBS } else { 1 };
            jobs <= PARCEL
        };
        let count = self.items.iter().rev().take_while(fits).count();
        let items = &self.items[self.items.len() - count..];
        let mut packed = Packer::default();
        packed.array(count);
        for item in items {
            match item.id.as_str() {
                "" => packed.array(3).int(item.first).int(item.offset).int(item.claim),
                id => packed.array(2).str(id).int(item.claim),
            };
        }
        (count > 0).then_some((packed.0, count, count == self.items.len()))
    }

    /// Notes that the last parcel of so many was carried out, but for those `left`.
    pub fn done(&mut self, count: usize, left: usize) {
        self.items.truncate(self.items.len() - count + left.min(count));
    }
}

/// Which jobs are lost.
pub(crate) struct Search<'a> {
    /// There is one scan an interval for the whole queue; 0: whenever it is asked for.
    pub interval_ms: i64,
    /// Those of this worker; empty: of all whose lease ran out.
    pub owner: &'a str,
    /// Those of a worker that it holds are not.
    pub is_held: &'a (dyn Fn(&str, i64) -> bool + Sync),
    pub max_stalled: u32,
}

/// How far a search has come.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    calls: Calls,
    // its first step is known by this when it is sent again
    name: String,
    lost: Lost,
    has_found: bool,
    // where the next step of finding goes on; none: all is found
    cursor: Option<String>,
}

impl Scan {
    pub fn new() -> Self {
        Self {
            name: unique_id(),
            cursor: Some(String::new()),
            ..Self::default()
        }
    }

    /// Whether it brought anything back.
    pub fn has_found(&self) -> bool {
        self.has_found
    }

    /// Takes a step, on which the server works for a few milliseconds. Gives ids of jobs that it brought back, in the order of the waiting list, before
    /// those that came back earlier; none: the search is over.
    pub async fn step(
        &mut self,
        search: &Search<'_>,
        connection: &Connection,
        keys: &Keys,
        now_ms: u64,
    ) -> Result<Option<Vec<String>>> {
        if let Some(cursor) = self.cursor.take() {
            let interval_ms = if cursor.is_empty() { search.interval_ms } else { 0 };
            let args = args![interval_ms, self.name.as_str(), search.owner, cursor.as_str()];
            let found = FIND_LOST.run(connection, &keys.base, &args).await?;
            let cursor = self.lost.take_in(found, search.is_held)?;
            self.cursor = Some(cursor).filter(|cursor| !cursor.is_empty());
            return Ok(Some(Vec::new()));
        }
        let Some((items, count, is_last)) = self.lost.parcel() else {
            self.calls.forget(connection, keys).await;
            return Ok(None);
        };
        let args = args![i64::from(search.max_stalled), search.owner, items.as_slice(), is_last];
        let reply = self.calls.run(connection, &keys.base, &RECOVER_STALLED, now_ms, &args);
        let mut reply = Reply::new("the answer to recover_stalled", reply.await?)?;
        let left = reply.int()?.unsigned_abs() as usize;
        let ids = reply.array()?.texts()?;
        self.lost.done(count, left);
        self.has_found |= !ids.is_empty();
        Ok(Some(ids))
    }
}

impl Search<'_> {
    /// Brings all of them back. Gives their ids in the order of the waiting list, with what broke the search off.
    pub async fn bring_back(&self, connection: &Connection, keys: &Keys, now_ms: u64) -> (Vec<String>, Result<()>) {
        let (mut scan, mut parcels) = (Scan::new(), Vec::new());
        let done = loop {
            match scan.step(self, connection, keys, now_ms).await {
                Ok(Some(ids)) => parcels.push(ids),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        parcels.reverse();
        (parcels.concat(), done)
    }
}
