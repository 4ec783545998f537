//! What ended since the last report, in the engine's form, and the events to be told once it is recorded.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chasquimq::worker::{Completed, Ended, Failure, Outcome as HowEnded, Rejected, Report};
use serde::Deserialize;

use crate::{
    event::WorkerEvent,
    job::Delivered,
    outcome::{JobError, Outcome},
};

/// A report being filled.
#[derive(Debug)]
pub(crate) struct Draft {
    report: Report,
    told: Told,
    is_told: bool,
}

/// Jobs whose end is told as an event; those that failed by handle.
#[derive(Debug, Default)]
pub(crate) struct Told {
    completed: Vec<Delivered>,
    failed: HashMap<u32, (String, String)>,
}

impl Draft {
    /// An empty report. `is_told`: somebody hears the events.
    pub(crate) fn new(is_told: bool) -> Self {
        Self {
            report: Report::default(),
            told: Told::default(),
            is_told,
        }
    }

    /// True when nothing ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.report.completed.is_empty() && self.report.others.is_empty()
    }

    /// The report, ready to be sent, and what to tell when it is recorded. Leaves an empty report.
    pub(crate) fn take(&mut self, number: u64, now_ms: u64) -> (Report, Told) {
        let Self { report, told, .. } = std::mem::replace(self, Self::new(self.is_told));
        let report = Report {
            number,
            now_ms,
            ..report
        };
        (report, told)
    }

    /// Notes how a job ended.
    pub(crate) fn end(&mut self, job: &Delivered, outcome: Outcome) {
        match outcome {
            Ok(result) => self.completed(job, &result),
            Err(JobError::Failed {
                reason,
                trace,
                retry_after,
            }) => self.failed(job, reason, trace, retry_after, false),
            Err(JobError::Unrecoverable { reason, trace }) => self.failed(job, reason, trace, None, true),
            Err(JobError::Delayed { .. }) => self.other(job, HowEnded::Moved),
            Err(JobError::RateLimited { .. }) => self.other(job, HowEnded::RateLimited),
        }
    }

    fn completed(&mut self, job: &Delivered, result: &str) {
        let report = &mut self.report;
        // what has no result needs no room for it
        let result = (result != "null").then(|| {
            let from = report.text.len() as u32;
            Arc::make_mut(&mut report.text).push_str(result);
            (from, report.text.len() as u32)
        });
        report.completed.push(Completed {
            handle: job.handle,
            result,
        });
        self.told.completed.push(job.clone());
    }

    fn failed(
        &mut self,
        job: &Delivered,
        reason: String,
        trace: String,
        retry_after: Option<Duration>,
        unrecoverable: bool,
    ) {
        if self.is_told {
            self.told.failed.insert(job.handle, (job.id(), reason.clone()));
        }
        let outcome = HowEnded::Failed {
            reason: Some(reason.into()),
            stacktrace: add_trace(job, trace).map(Into::into),
            unrecoverable,
            delay_ms: retry_after.map(|pause| pause.as_millis() as f64),
        };
        self.other(job, outcome);
    }

    fn other(&mut self, job: &Delivered, outcome: HowEnded) {
        let handle = job.handle;
        self.report.others.push(Ended { handle, outcome });
    }
}

impl Told {
    /// Takes off the parents that must not complete, and why: the worker holds them still, and their tries are to fail.
    pub(crate) fn take_held(&mut self, rejected: &[Rejected]) -> Vec<(Delivered, String)> {
        let held = rejected.iter().filter(|refusal| refusal.is_held());
        let found = held.filter_map(|Rejected { handle, error }| {
            let at = self.completed.iter().position(|job| job.handle == *handle)?;
            Some((self.completed.remove(at), error.to_string()))
        });
        found.collect()
    }

    /// The events, now that it is known what became of the jobs.
    pub(crate) fn events(mut self, rejected: Vec<Rejected>, failures: Vec<Failure>) -> Vec<WorkerEvent> {
        let mut events = Vec::with_capacity(self.completed.len() + self.failed.len());
        for Rejected { handle, error } in rejected {
            let completed = self.completed.iter().position(|job| job.handle == handle);
            let id = match completed {
                Some(at) => Some(self.completed.remove(at).id()),
                None => self.failed.remove(&handle).map(|(id, _)| id),
            };
            events.extend(id.map(|id| WorkerEvent::Rejected { id, error }));
        }
        let completed = self.completed.iter().map(Delivered::id);
        events.extend(completed.map(|id| WorkerEvent::Completed { id }));
        for failure in failures {
            let failed = self.failed.remove(&failure.handle);
            events.extend(failed.map(|(id, reason)| WorkerEvent::Failed {
                id,
                reason,
                state: failure.state,
                attempts_made: failure.attempts_made,
            }));
        }
        events
    }
}

/// A job's stack traces with one more, oldest first, as many as its options allow. JSON array of texts.
fn add_trace(job: &Delivered, trace: String) -> Option<String> {
    let known = job.fields().and_then(|fields| fields.stacktrace.as_deref());
    let mut traces: Vec<String> = known
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    traces.push(trace);
    if let Some(limit) = stack_trace_limit(&job.options().text) {
        traces.drain(..traces.len().saturating_sub(limit));
    }
    serde_json::to_string(&traces).ok()
}

fn stack_trace_limit(options: &str) -> Option<usize> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Limited {
        stack_trace_limit: Option<f64>,
    }
    let limited: Limited = serde_json::from_str(options).ok()?;
    limited.stack_trace_limit.map(|limit| limit.max(0.0) as usize)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chasquimq::{
        worker::{Batch, BatchJob, Extra, FailureState},
        Error, JobOptions, StateFields,
    };

    use super::*;

    fn job(options: &str, stacktrace: Option<&str>) -> Delivered {
        let extra = Extra {
            id: "1".into(),
            fields: StateFields {
                stacktrace: stacktrace.map(str::to_owned),
                ..StateFields::default()
            },
            ready_ms: None,
        };
        let job = BatchJob {
            number: 0,
            name_len: Some(0),
            data_len: 0,
            options: 0,
            timestamp: 0,
            extra: Some(0),
            siblings: None,
        };
        let batch = Batch {
            jobs: vec![job],
            options: vec![Arc::new(JobOptions::none(options))],
            extras: vec![extra],
            ..Batch::default()
        };
        Delivered::each(batch).next().expect("a job")
    }

    #[test]
    fn traces_are_kept_oldest_first_up_to_the_limit() {
        let traces = |options, known| add_trace(&job(options, known), "new".into()).expect("traces");
        assert_eq!(traces("{}", None), r#"["new"]"#);
        assert_eq!(traces("{}", Some(r#"["a","b"]"#)), r#"["a","b","new"]"#);
        assert_eq!(
            traces(r#"{"stackTraceLimit":2}"#, Some(r#"["a","b"]"#)),
            r#"["b","new"]"#
        );
        assert_eq!(traces(r#"{"stackTraceLimit":0}"#, Some(r#"["a"]"#)), "[]");
    }

    #[test]
    fn what_was_refused_is_told_as_refused_and_nothing_else() {
        let completed = |handle| {
            let mut job = job("{}", None);
            job.handle = handle;
            job
        };
        let told = Told {
            completed: vec![completed(1), completed(2)],
            failed: HashMap::from([(3, ("c".into(), "no".into())), (4, ("d".into(), "no".into()))]),
        };
        let rejected = [1, 3].map(|handle| Rejected {
            handle,
            error: Error::Closed,
        });
        let failures = [3, 4].map(|handle| Failure {
            handle,
            state: FailureState::Failed,
            attempts_made: 1,
        });
        let events: Vec<String> = told
            .events(rejected.into(), failures.into())
            .iter()
            .map(|event| match event {
                WorkerEvent::Rejected { id, .. } => format!("{id} rejected"),
                WorkerEvent::Completed { id } => format!("{id} completed"),
                WorkerEvent::Failed { id, .. } => format!("{id} failed"),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(events, ["1 rejected", "c rejected", "1 completed", "d failed"]);
    }
}
