//! Jobs by state and rank, in steps that block the server for a few milliseconds.

use std::collections::HashSet;

use super::Queue;
use crate::{
    active::{in_range, Active, Whose},
    error::Result,
    job::{
        msgpack::Packer,
        read_job,
        whole::{complete_all, read_all},
        Job,
    },
    redis::call::{
        library::{args, LIST_JOBS},
        reply::Reply,
    },
};

const ACTIVE: &str = "active";

/// Jobs of some states, by rank.
#[derive(Debug, Clone)]
pub struct JobRange {
    /// States, in BullMQ's words.
    pub types: Vec<String>,
    /// First rank, from 0; negative from the end.
    pub start: i64,
    /// Last rank, included; negative from the end.
    pub stop: i64,
    /// Rank from the head.
    pub ascending: bool,
}

impl Queue {
    /// Jobs by state and rank, state by state, each once. A step for 1,000 jobs; besides, for ranks far from both ends of the completed
    /// jobs, a step for 1,000 entries (64 plain jobs each) on the way from the nearer end. The same for waiting jobs, but not where plain
    /// jobs wait that were added without others among them: there a rank is found at once. Active jobs are put in order by a step
    /// for 500 of all that are active, and read by another for 500.
    /// # Errors
    /// [`crate::Error::Malformed`] when what is stored is not a job.
    pub async fn jobs(&self, range: &JobRange) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for types in parts(range) {
            let part = if types[0] == ACTIVE {
                let ids = self.active_ids(range).await?;
                let mut active = read_all(self.connection(), self.keys(), &ids).await?;
                // what has ended meanwhile belongs elsewhere
                active.retain(|job| job.state == ACTIVE);
                active
            } else {
                let listed = self.list(types, range, false, read_job).await?;
                complete_all(self.connection(), self.keys(), listed).await?
            };
            jobs.extend(part);
        }
        let mut seen = HashSet::new();
        jobs.retain(|job| seen.insert(job.id.clone()));
        Ok(jobs)
    }

    /// As [`Queue::jobs`], only their ids.
    pub async fn job_ids(&self, range: &JobRange) -> Result<Vec<String>> {
        let (mut seen, mut ids) = (HashSet::new(), Vec::new());
        for types in parts(range) {
            ids.extend(if types[0] == ACTIVE {
                self.active_ids(range).await?
            } else {
                self.list(types, range, true, |reply| reply.text().map(Some)).await?
            });
        }
        ids.retain(|id| seen.insert(id.clone()));
        Ok(ids)
    }

    async fn active_ids(&self, range: &JobRange) -> Result<Vec<String>> {
        let ids = Active::find(self.connection(), &self.keys().base, Whose::Anybody).await?;
        Ok(in_range(ids, range.start, range.stop, range.ascending))
    }

    async fn list<T>(
        &self,
        states: &[String],
        range: &JobRange,
        ids_only: bool,
        read: impl Fn(&mut Reply) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let types = Packer::of_texts(states.iter().map(String::as_str));
        let mut found: Vec<(bool, Vec<T>)> = states.iter().map(|_| (false, Vec::new())).collect();
        let mut cursor = Vec::new();
        loop {
            let args = args![
                &types,
                range.start,
                range.stop,
                range.ascending,
                ids_only,
                cursor.as_slice()
            ];
            let mut reply = self.ask(&LIST_JOBS, &args).await?;
            cursor = reply.bytes()?;
            let (mut parts, mut jobs) = (reply.array()?, reply.array()?);
            while !parts.is_empty() {
                let (index, turned, count) = (parts.int()?, parts.int()? == 1, parts.int()?);
                let Some(part) = found.get_mut(index as usize - 1) else {
                    break;
                };
                part.0 = turned;
                for _ in 0..count {
                    part.1.extend(read(&mut jobs)?);
                }
            }
            if cursor.is_empty() {
                break;
            }
        }
        let in_order = found.into_iter().flat_map(|(turned, mut part)| {
            if turned {
                part.reverse();
            }
            part
        });
        Ok(in_order.collect())
    }
}

/// The states of a range in their order: active ones apart from those that are listed together.
fn parts(range: &JobRange) -> impl Iterator<Item = &[String]> {
    range.types.chunk_by(|one, other| (one == ACTIVE) == (other == ACTIVE))
}
