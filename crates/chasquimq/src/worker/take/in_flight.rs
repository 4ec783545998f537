//! What a worker holds: the jobs that it took and that have not ended, by the handles under which they were handed over.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::{
    error::Result,
    job::{self, frame::id_in, options::JobOptions},
    latency::{Began, Measured},
};

// enough for the distinct options of a busy program; a queue of one-off options must not fill the memory
const CACHED_OPTIONS: usize = 256;

/// The claim of what has been checked otherwise (`lua/jobs/frame.lua`).
const ANY_CLAIM: u64 = 0;

/// What a worker holds under consecutive handles.
#[derive(Debug)]
pub(crate) enum Group {
    Frame {
        first: u64,
        n: u32,
        // one bit a job that has not ended
        left: u64,
        blob: Arc<Vec<u8>>,
        options: Arc<JobOptions>,
        // what the ids of children begin with
        ids: Option<Arc<str>>,
        // under which these jobs are held: whatever ends them names it
        claim: u64,
        began: Began,
    },
    Record {
        id: String,
        claim: u64,
        attempts_made: u32,
        attempts_started: u32,
        options: Arc<JobOptions>,
        began: Began,
    },
}

impl Group {
    #[inline]
    fn jobs(&self) -> u32 {
        match self {
            Group::Frame { n, .. } => *n,
            Group::Record { .. } => 1,
        }
    }
}

/// Every job this worker holds, by handle.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    groups: BTreeMap<u32, Group>,
    next_handle: u32,
    jobs: u32,
    // of them, those that have a record
    records: u32,
    options: HashMap<String, Arc<JobOptions>>,
    /// How long they took, where that is measured.
    pub(crate) measured: Option<Arc<Measured>>,
}

impl InFlight {
    /// One record, under the handle 0, whoever holds it.
    pub(crate) fn of_record(id: String, attempts_made: u32, attempts_started: u32, options: JobOptions) -> Self {
        let held = Group::Record {
            id,
            claim: ANY_CLAIM,
            attempts_made,
            attempts_started,
            options: Arc::new(options),
            began: Began::default(),
        };
        Self {
            groups: BTreeMap::from([(0, held)]),
            jobs: 1,
            records: 1,
            ..Self::default()
        }
    }

    /// Runs ended that were taken together, where that is measured. `is_final`: the jobs are not tried again.
    #[inline]
    pub(crate) fn measure(
        &self,
        jobs: u32,
        began: Began,
        group: Option<&job::group::Group>,
        now_ms: u64,
        is_final: bool,
    ) {
        if let Some(measured) = &self.measured {
            measured.ended(jobs, began, group, now_ms, is_final);
        }
    }

    /// Number of jobs held.
    pub(crate) fn jobs(&self) -> u32 {
        self.jobs
    }

    /// Whether one of them has a record.
    pub(crate) fn has_records(&self) -> bool {
        self.records > 0
    }

    /// The group a handle belongs to, and the handle's offset in it.
    #[inline]
    pub(crate) fn find(&mut self, handle: u32) -> Option<(u32, &mut Group)> {
        let (base, held) = self.groups.range_mut(..=handle).next_back()?;
        let offset = handle - base;
        (offset < held.jobs()).then_some((offset, held))
    }

    /// Bytes of a job's name, options and data, about; none of a record, which has them already.
    pub(crate) fn bytes_known(&self, handle: u32) -> usize {
        match self.groups.range(..=handle).next_back() {
            Some((_, Group::Frame { n, blob, .. })) => blob.len() / (*n).max(1) as usize,
            _ => 0,
        }
    }

    /// Where the handles of a batch of up to `most` jobs start. Handles come round, and a job may be held for longer than that takes.
    fn free_handles(&self, most: u32) -> u32 {
        let mut base = self.next_handle;
        loop {
            let Some(end) = base.checked_add(most) else {
                base = 0;
                continue;
            };
            match self.groups.range(..end).next_back() {
                Some((group, held)) if group + held.jobs() > base => base = group + held.jobs(),
                _ => return base,
            }
        }
    }

    /// Jobs of a group ended, one behind the other. Gives the group when they were the last of it.
    #[inline]
    pub(crate) fn release(&mut self, handle: u32, jobs: u32) -> Option<Group> {
        self.jobs = self.jobs.saturating_sub(jobs);
        let (base, held) = self.groups.range_mut(..=handle).next_back()?;
        let base = *base;
        let over = match held {
            Group::Frame { left, .. } => {
                *left &= !(all_of(jobs) << (handle - base));
                *left == 0
            }
            Group::Record { .. } => {
                self.records -= 1;
                true
            }
        };
        if over {
            self.groups.remove(&base)
        } else {
            None
        }
    }

    /// The same of jobs that completed, whose times are measured where that is asked for.
    #[inline]
    pub(crate) fn complete(&mut self, handle: u32, jobs: u32, now_ms: u64) -> Option<Group> {
        if let Some((_, held)) = self
            .measured
            .as_ref()
            .and_then(|_| self.groups.range(..=handle).next_back())
        {
            let (began, group) = match held {
                // a job with a group has a record
                Group::Frame { began, .. } => (began, None),
                Group::Record { began, options, .. } => (began, options.group.as_ref()),
            };
            self.measure(jobs, *began, group, now_ms, true);
        }
        self.release(handle, jobs)
    }

    /// A job that was released has not ended after all. `group`: what its release, or that of the last job of its group, gave.
    pub(crate) fn hold_again(&mut self, handle: u32, offset: u32, group: Option<Group>) {
        let base = handle - offset;
        if let Some(group) = group {
            self.records += u32::from(matches!(group, Group::Record { .. }));
            self.groups.insert(base, group);
        }
        match self.groups.get_mut(&base) {
            Some(Group::Frame { left, .. }) => *left |= 1 << offset,
            Some(Group::Record { .. }) => {}
            None => return,
        }
        self.jobs += 1;
    }

    /// Handles of every job held.
    pub(crate) fn handles(&self) -> Vec<u32> {
        let mut handles = Vec::with_capacity(self.jobs as usize);
        for (base, held) in &self.groups {
            let left = match held {
                Group::Frame { left, .. } => *left,
                Group::Record { .. } => 1,
            };
            handles.extend((0..64).filter(|bit| left >> bit & 1 == 1).map(|bit| base + bit));
        }
        handles
    }

    /// Id and claim of every job held.
    pub(crate) fn ids(&self) -> Vec<(String, u64)> {
        let mut ids = Vec::with_capacity(self.jobs as usize);
        for held in self.groups.values() {
            match held {
                Group::Frame {
                    first,
                    left,
                    ids: front,
                    claim,
                    ..
                } => {
                    let offsets = (0..64).filter(|bit| left >> bit & 1 == 1);
                    ids.extend(offsets.map(|bit| (id_in(front.as_deref(), first + bit), *claim)));
                }
                Group::Record { id, claim, .. } => ids.push((id.clone(), *claim)),
            }
        }
        ids
    }

    /// Makes sure that up to `most` jobs can be held one behind the other. Gives the handle of the first.
    #[inline]
    pub(crate) fn make_room(&mut self, most: u32) -> u32 {
        self.next_handle = self.free_handles(most);
        self.next_handle
    }

    /// Holds jobs under the next handles.
    #[inline]
    pub(crate) fn hold(&mut self, held: Group) {
        let jobs = held.jobs();
        self.records += u32::from(matches!(held, Group::Record { .. }));
        self.groups.insert(self.next_handle, held);
        self.next_handle += jobs;
        self.jobs += jobs;
    }

    /// Holds no more what came last, from this handle on.
    pub(crate) fn let_go(&mut self, base: u32) {
        let last: Vec<u32> = self.groups.range(base..self.next_handle).map(|(at, _)| *at).collect();
        for held in last.iter().filter_map(|at| self.groups.remove(at)) {
            self.jobs -= held.jobs();
            self.records -= u32::from(matches!(held, Group::Record { .. }));
        }
        self.next_handle = base;
    }

    /// The options that a text says, which jobs share.
    #[inline]
    pub(crate) fn options_of(&mut self, text: &str) -> Result<Arc<JobOptions>> {
        if let Some(options) = self.options.get(text) {
            return Ok(options.clone());
        }
        let options = Arc::new(JobOptions::of_stored(text)?);
        if options.are_of_one_job() {
            return Ok(options);
        }
        if self.options.len() >= CACHED_OPTIONS {
            self.options.clear();
        }
        self.options.insert(text.to_owned(), options.clone());
        Ok(options)
    }
}

/// The lowest `jobs` bits. A frame has 64 jobs at most.
#[inline]
pub(crate) fn all_of(jobs: u32) -> u64 {
    u64::MAX >> (64 - jobs.clamp(1, 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds a frame of `jobs` jobs. Gives the first handle.
    fn hold(in_flight: &mut InFlight, jobs: u32) -> u32 {
        let base = in_flight.make_room(64);
        in_flight.hold(Group::Frame {
            first: 1,
            n: jobs,
            left: all_of(jobs),
            blob: Arc::default(),
            options: Arc::new(JobOptions::none("{}")),
            ids: None,
            claim: 2,
            began: Began::default(),
        });
        base
    }

    #[test]
    fn handles_come_round_and_pass_over_jobs_still_held() {
        let mut in_flight = InFlight::default();
        assert_eq!([hold(&mut in_flight, 10), hold(&mut in_flight, 5)], [0, 10]);
        in_flight.release(0, 10);
        in_flight.next_handle = u32::MAX - 20;
        // the frame of 64 would end beyond the last handle, and the jobs from 10 on are still held
        assert_eq!(hold(&mut in_flight, 64), 15);
        assert_eq!(in_flight.handles().len(), 69);
        assert_eq!(in_flight.find(12).map(|(offset, _)| offset), Some(2));
        assert_eq!(in_flight.find(78).map(|(offset, _)| offset), Some(63));
    }

    #[test]
    fn a_job_that_did_not_end_is_held_again() {
        let mut in_flight = InFlight::default();
        hold(&mut in_flight, 3);
        assert!(in_flight.release(1, 1).is_none());
        in_flight.hold_again(1, 1, None);
        assert_eq!(in_flight.handles(), [0, 1, 2]);
        let frame = in_flight.release(0, 3);
        assert!(frame.is_some() && in_flight.handles().is_empty());
        in_flight.hold_again(2, 2, frame);
        assert_eq!((in_flight.handles(), in_flight.jobs()), (vec![2], 1));
    }

    #[test]
    fn what_came_last_is_let_go_and_nothing_else() {
        let mut in_flight = InFlight::default();
        hold(&mut in_flight, 3);
        in_flight.next_handle = u32::MAX - 20;
        in_flight.groups.insert(1000, in_flight_record());
        (in_flight.jobs, in_flight.records) = (4, 1);
        let base = hold(&mut in_flight, 5);
        in_flight.hold(in_flight_record());
        assert_eq!((base, in_flight.jobs()), (3, 10));
        in_flight.let_go(base);
        assert_eq!((in_flight.handles(), in_flight.jobs()), (vec![0, 1, 2, 1000], 4));
        assert!(in_flight.has_records());
        assert_eq!(hold(&mut in_flight, 1), base);
    }

    fn in_flight_record() -> Group {
        let mut held = InFlight::of_record("x".into(), 0, 0, JobOptions::none("{}"));
        held.release(0, 1).expect("a record")
    }

    #[test]
    fn records_are_known_as_long_as_they_are_held() {
        let mut in_flight = InFlight::of_record("x".into(), 0, 0, JobOptions::none("{}"));
        assert!(in_flight.has_records());
        let record = in_flight.release(0, 1);
        assert!(record.is_some() && !in_flight.has_records());
        in_flight.hold_again(0, 0, record);
        assert!(in_flight.has_records() && in_flight.release(0, 1).is_some());
        hold(&mut in_flight, 3);
        assert!(!in_flight.has_records());
    }
}
