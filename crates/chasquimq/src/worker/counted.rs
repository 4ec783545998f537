//! The two ends of a worker that no server is needed for, for `chasquimq-counts` alone: what a step's answer becomes, and what ends become.

use std::sync::Arc;

use redis::Value;

use super::{
    options::Defaults,
    record::{
        pack,
        report::{Completed, Ended, Outcome, Report},
    },
    take::{answer::Answer, in_flight::InFlight},
};
use crate::job::keep::Keep;

/// A worker's jobs, without its loop.
#[derive(Debug, Default)]
pub struct Desk {
    in_flight: InFlight,
}

impl Desk {
    /// Takes in the answer to a step. Gives the number of jobs in it; none, if it is none.
    pub fn take(&mut self, reply: Value) -> usize {
        let jobs = Answer::read(reply, &mut self.in_flight)
            .ok()
            .and_then(|answer| answer.jobs);
        jobs.map_or(0, |batch| batch.jobs.len())
    }

    /// Packs the ends of all jobs, which completed with small results. Gives the bytes of it.
    pub fn complete_all(&mut self) -> usize {
        let mut text = String::new();
        let handles = self.in_flight.handles();
        let completed = handles.into_iter().map(|handle| {
            let from = text.len() as u32;
            text.push_str("\"sent\"");
            Completed {
                handle,
                result: Some((from, text.len() as u32)),
            }
        });
        let completed = completed.collect();
        self.pack(Report {
            completed,
            text: Arc::new(text),
            ..Report::default()
        })
    }

    /// Packs the ends of all jobs, which failed. Gives the bytes of it.
    pub fn fail_all(&mut self) -> usize {
        let others = self.in_flight.handles().into_iter().map(|handle| Ended {
            handle,
            outcome: Outcome::Failed {
                reason: Some("it threw".into()),
                stacktrace: Some("[\"Error: it threw\\n    at handler (program.js:1:1)\"]".into()),
                unrecoverable: false,
                delay_ms: None,
            },
        });
        let others = others.collect();
        self.pack(Report {
            others,
            ..Report::default()
        })
    }

    fn pack(&mut self, report: Report) -> usize {
        let defaults = Defaults {
            remove_on_complete: Keep::ALL,
            remove_on_fail: Keep::ALL,
            max_started_attempts: None,
            metrics_minutes: 0,
        };
        let outcomes = pack::pack(vec![report], 0, &mut self.in_flight, &defaults);
        outcomes.blob.len() + outcomes.keeps.len()
    }
}
