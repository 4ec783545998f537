//! What has ended and is not recorded.

use std::time::Instant;

use super::{
    packed_outcomes::{Failure, Rejected},
    report::Report,
};

pub(crate) struct Unrecorded {
    /// As they came.
    pub(crate) reports: Vec<Report>,
    /// When the first of them came.
    pub(crate) since: Option<Instant>,
    /// When the last of them ended: the loop may have been busy with a step since.
    pub(crate) ended_at: Instant,
    /// What is to be told of a report of which a part is recorded.
    pub(crate) of_part: (Vec<Rejected>, Vec<Failure>),
}

impl Default for Unrecorded {
    fn default() -> Self {
        Self {
            reports: Vec::new(),
            since: None,
            ended_at: Instant::now(),
            of_part: Default::default(),
        }
    }
}

impl Unrecorded {
    pub(crate) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Jobs of a report ended then.
    pub(crate) fn add(&mut self, report: Report, ended_at: Instant) {
        self.ended_at = ended_at;
        if self.is_empty() {
            self.since = Some(Instant::now());
        }
        self.reports.push(report);
    }

    /// Jobs that go back unstarted, behind those before them in the waiting list.
    pub(crate) fn add_returning(&mut self, returning: Report) {
        match self.reports.last_mut().filter(|last| last.is_returning()) {
            Some(last) => last.others.extend(returning.others),
            None => self.reports.push(returning),
        }
    }
}
