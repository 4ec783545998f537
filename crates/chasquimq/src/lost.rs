//! Active jobs that nobody runs go back to the head of the waiting list: found in steps, put in order here, and brought back in parcels, so that the
//! server works on each for a few milliseconds however many there are.
//!
//! A worker takes jobs in advance, and starts each without a call. When it is gone, nobody knows which of them it had started; but these are the oldest,
//! and no more than it has slots (`lua/transitions/recover_stalled.lua`).

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use redis::Value;

use crate::{
    active::{number_of, ActiveFrame, ActiveRecord, Page},
    error::Result,
    id::unique_id,
    job::{frame::MAX_JOBS, msgpack::Packer},
    keys::Keys,
    redis::{
        call::{
            library::{args, COUNT_FRAMES, FAIL_EXPIRED, FIND_LOST, RECOVER_STALLED},
            numbered_calls::Calls,
            reply::Reply,
        },
        connection::Connection,
    },
};

/// Jobs that one call brings back, about.
const PARCEL: usize = 256;
/// Frames that one call counts.
const FRAMES_COUNTED: usize = 16;

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
    // who held it
    owner: usize,
    // how many jobs it stands for; none: a frame that nobody has counted
    jobs: Option<u32>,
    // of these, from the first, that were started perhaps
    started: u32,
}

/// The jobs of a scan, as `find_lost` gives them.
#[derive(Debug, Default)]
pub struct Lost {
    items: Vec<Item>,
    // how many jobs each owner ran at once, at most; 0: nobody knows
    slots: Vec<u32>,
    owners: HashMap<String, usize>,
    sorted: bool,
    // jobs that nobody has started in time
    expired: bool,
    // when the next one will not have been
    expires: Option<Instant>,
}

impl Lost {
    /// Reads what a step found, but for what `is_held` under a claim. Gives where the next step goes on; empty: there is none.
    /// # Errors
    /// [`crate::Error::Malformed`] if it is no answer of `find_lost`.
    pub fn take_in(&mut self, reply: Value, is_held: &(dyn Fn(&str, i64) -> bool + Sync)) -> Result<String> {
        let page = Page::read(reply)?;
        if let Some(left_ms) = page.expires_ms {
            self.expired = left_ms <= 0;
            self.expires = Instant::now().checked_add(Duration::from_millis(left_ms.max(0) as u64));
        }
        let owners: Vec<usize> = page
            .owners
            .into_iter()
            .map(|(name, slots)| self.owner(name, slots))
            .collect();
        // what is not told is nobody's
        let nobody = self.owner(String::new(), 0);
        let mut whose = page.whose.into_iter().map(|place| {
            place
                .checked_sub(1)
                .and_then(|at| owners.get(at))
                .copied()
                .unwrap_or(nobody)
        });
        for frame in page.frames {
            self.add_frame(&frame, whose.next().unwrap_or(nobody), is_held);
        }
        for ActiveRecord { id, started_ms, claim } in page.records {
            let owner = whose.next().unwrap_or(nobody);
            if !is_held(&id, claim) {
                self.items.push(Item {
                    started_ms,
                    number: number_of(&id),
                    id,
                    first: 0,
                    offset: 0,
                    claim,
                    owner,
                    jobs: Some(1),
                    started: 0,
                });
            }
        }
        self.sorted = false;
        Ok(page.cursor)
    }

    /// Whether there are jobs that nobody has started in time.
    pub fn has_expired(&self) -> bool {
        self.expired
    }

    fn owner(&mut self, name: String, slots: u32) -> usize {
        let at = *self.owners.entry(name).or_insert(self.slots.len());
        if at == self.slots.len() {
            self.slots.push(slots);
        }
        at
    }

    fn add_frame(&mut self, frame: &ActiveFrame, owner: usize, is_held: &(dyn Fn(&str, i64) -> bool + Sync)) {
        let (chars, claim) = (&frame.chars, frame.claim);
        let item = |offset: i64, jobs: Option<u32>| Item {
            started_ms: frame.started_ms,
            number: frame.first.saturating_add(offset.max(0) as u64),
            id: String::new(),
            first: frame.first as i64,
            offset,
            claim,
            owner,
            jobs,
            started: 0,
        };
        let is_lost = |at: &usize| chars[*at] == b'1' && !is_held(&frame.id(*at), claim);
        let lost: Vec<usize> = (0..chars.len()).filter(is_lost).collect();
        if lost.len() == chars.len() {
            let jobs = (!lost.is_empty()).then_some(lost.len() as u32);
            self.items.push(item(-1, jobs));
        } else {
            self.items.extend(lost.into_iter().map(|at| item(at as i64, Some(1))));
        }
    }

    fn sort(&mut self) {
        if !self.sorted {
            // a step may find again what one before it found
            self.items.sort_unstable();
            self.items.dedup();
            self.sorted = true;
            self.tell_started();
        }
    }

    /// Notes what was started perhaps: of each owner the oldest, as many as it has slots. A frame that nobody has counted may have one job, or all;
    /// rather too many jobs count than too few.
    fn tell_started(&mut self) {
        let mut free = self.slots.clone();
        for item in &mut self.items {
            let (slots, free) = (self.slots[item.owner], &mut free[item.owner]);
            let most = item.jobs.unwrap_or(MAX_JOBS as u32);
            item.started = if slots == 0 { most } else { most.min(*free) };
            *free = free.saturating_sub(item.jobs.unwrap_or(1));
        }
    }

    /// First numbers of frames that have to be counted before it is known what was started, packed. None: it is.
    pub fn uncounted(&mut self) -> Option<Vec<u8>> {
        self.sort();
        let firsts: Vec<i64> = self.next_uncounted().map(|item| item.first).collect();
        let mut packed = Packer::default();
        packed.array(firsts.len());
        for first in &firsts {
            packed.int(*first);
        }
        (!firsts.is_empty()).then_some(packed.0)
    }

    fn next_uncounted(&mut self) -> impl Iterator<Item = &mut Item> {
        let slots = &self.slots;
        let is_uncounted = |item: &&mut Item| item.jobs.is_none() && item.started > 0 && slots[item.owner] > 0;
        self.items.iter_mut().filter(is_uncounted).take(FRAMES_COUNTED)
    }

    /// Reads how many jobs these frames have.
    /// # Errors
    /// [`crate::Error::Malformed`] if it is no answer of `count_frames`.
    pub fn counted(&mut self, reply: Value) -> Result<()> {
        let mut reply = Reply::new("the answer to count_frames", reply)?;
        for item in self.next_uncounted() {
            item.jobs = Some(u32::try_from(reply.int()?).unwrap_or_default());
        }
        self.tell_started();
        Ok(())
    }

    /// Packs those that come last, and tells how many these are and whether there are no others. None: nothing is left.
    pub fn parcel(&mut self) -> Option<(Vec<u8>, usize, bool)> {
        self.sort();
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
                "" => packed.array(4).int(item.first).int(item.offset).int(item.claim),
                id => packed.array(3).str(id).int(item.claim),
            };
            packed.int(i64::from(item.started));
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
    /// How jobs are kept that fail as they have expired, packed, if their options do not say.
    pub keep: &'a [u8],
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

    /// When the next job expires, if one does.
    pub fn expires(&self) -> Option<Instant> {
        self.lost.expires
    }

    /// Whether it brought anything back.
    pub fn has_found(&self) -> bool {
        self.has_found
    }

    /// Takes a step, on which the server works for a few milliseconds. Gives ids of jobs that it brought back and that stalled, in the order of the
    /// waiting list, before those that came back earlier; none: the search is over.
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
        if self.lost.expired {
            let args = args![search.keep];
            let reply = self.calls.run(connection, &keys.base, &FAIL_EXPIRED, now_ms, &args);
            self.lost.expired = reply.await? == Value::Int(1);
            return Ok(Some(Vec::new()));
        }
        if let Some(firsts) = self.lost.uncounted() {
            let counts = COUNT_FRAMES
                .run(connection, &keys.base, &args![firsts.as_slice()])
                .await?;
            self.lost.counted(counts)?;
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
        self.has_found |= reply.int()? > 0;
        let stalled = reply.array()?.texts()?;
        self.lost.done(count, left);
        Ok(Some(stalled))
    }
}

impl Search<'_> {
    /// Brings all of them back. Gives the ids of those that stalled in the order of the waiting list, with what broke the search off.
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
