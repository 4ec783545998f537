//! Jobs by state and rank, in steps that block the server for a few milliseconds.

use std::collections::HashSet;

use crate::{
    error::Result,
    job::{large, msgpack::Packer, read_job, Job},
    queue::Queue,
    redis::{
        library::{args, LIST_JOBS},
        reply::Reply,
    },
};

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
    /// Jobs by state and rank, state by state, each once. A step for 1,000 jobs; besides, for ranks far from both ends of the waiting
    /// line, a step for 1,000 entries (64 plain jobs each) on the way from the nearer end, and the same for completed jobs.
    /// # Errors
    /// [`crate::Error::Malformed`] when what is stored is not a job.
    pub async fn jobs(&self, range: &JobRange) -> Result<Vec<Job>> {
        let mut seen = HashSet::new();
        let mut jobs = self.list(range, false, read_job).await?;
        jobs.retain(|job| seen.insert(job.id.clone()));
        large::complete_all(self.connection(), self.keys(), jobs).await
    }

    /// As [`Queue::jobs`], only their ids.
    pub async fn job_ids(&self, range: &JobRange) -> Result<Vec<String>> {
        let mut seen = HashSet::new();
        let mut ids = self.list(range, true, |reply| reply.text().map(Some)).await?;
        ids.retain(|id| seen.insert(id.clone()));
        Ok(ids)
    }

    async fn list<T>(
        &self,
        range: &JobRange,
        ids_only: bool,
        read: impl Fn(&mut Reply) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let mut types = Packer::default();
        types.array(range.types.len());
        for state in &range.types {
            types.str(state);
        }
        let mut found: Vec<(bool, Vec<T>)> = range.types.iter().map(|_| (false, Vec::new())).collect();
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
