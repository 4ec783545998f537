//! How much of what ended goes into one step. Nobody else is served while a script runs, so a step carries what the server works off in a
//! few milliseconds, however many jobs end at once and however large their results and data are. The rest goes into the next steps.

use super::report::{Completed, Ended, Outcome, Report, MAX_RESULT};

/// What one step may cost, in about microseconds of the server's.
const BUDGET: usize = 5_000;
/// What ends cost, without their bytes: jobs of frames, and any where some have records.
const COMPLETED: usize = 3;
const COMPLETED_RECORD: usize = 9;
const APART: usize = 20;
const FAILED: usize = 20;
const OTHER: usize = 12;
/// Bytes for a microsecond: of results that lie apart, of texts that scripts pack, and of what is known of jobs that are given records.
const BYTES_APART: usize = 200;
const BYTES_PACKED: usize = 80;
const BYTES_KNOWN: usize = 400;

/// What is known of the jobs that a worker holds.
pub(crate) struct Held<'a> {
    /// Bytes that have to be written, by a job's handle, where an end gives it a record.
    pub(crate) bytes: &'a dyn Fn(u32) -> usize,
    pub(crate) has_records: bool,
}

type Known<'a> = &'a Held<'a>;

impl Held<'_> {
    fn of_record(&self, handle: u32) -> usize {
        (self.bytes)(handle) / BYTES_KNOWN
    }

    fn completed(&self) -> usize {
        match self.has_records {
            true => COMPLETED_RECORD,
            false => COMPLETED,
        }
    }
}

/// Takes off what goes into the next step: whole reports, or a part of the first. A part is told by true: its report is recorded when the
/// last part is.
pub(crate) fn cut(reports: &mut Vec<Report>, known: Known<'_>) -> (Vec<Report>, bool) {
    let mut left = BUDGET;
    let mut whole = 0;
    for report in reports.iter() {
        let cost = report.cost_at_most(known);
        if cost > left {
            break;
        }
        left -= cost;
        whole += 1;
    }
    if whole > 0 || reports.is_empty() {
        return (reports.drain(..whole).collect(), false);
    }
    let part = reports[0].split(BUDGET, known);
    if reports[0].is_empty() {
        // it costs less than it might have
        let number = reports.remove(0).number;
        return (vec![Report { number, ..part }], false);
    }
    (vec![part], true)
}

impl Report {
    fn is_empty(&self) -> bool {
        self.completed.is_empty() && self.others.is_empty()
    }

    /// More than it costs, perhaps, found without a look at each job that completed.
    fn cost_at_most(&self, known: Known<'_>) -> usize {
        let results = self.text.len() / BYTES_PACKED;
        let alone: usize = match self.text.len() > MAX_RESULT || !self.changed.is_empty() {
            true => self.alone().map(|job| APART + known.of_record(job.handle)).sum(),
            false => 0,
        };
        let others: usize = self.others.iter().map(|other| other.cost(known)).sum();
        self.completed.len() * known.completed() + results + alone + others
    }

    /// Jobs that are given a record as they complete.
    fn alone(&self) -> impl Iterator<Item = &Completed> {
        self.completed.iter().filter(|job| self.is_alone(job))
    }

    fn is_alone(&self, job: &Completed) -> bool {
        job.is_large() || self.changed.contains_key(&job.handle)
    }

    /// Takes off the first ends that together cost no more than `budget`, or one; of jobs that all go back the last ones.
    fn split(&mut self, budget: usize, known: Known<'_>) -> Report {
        if self.is_returning() {
            // each part goes to the head of the waiting list: the last of them first
            let part = affordable(self.others.iter().rev().map(|other| other.cost(known)), budget);
            return Report {
                now_ms: self.now_ms,
                others: self.others.split_off(self.others.len() - part),
                ..Report::default()
            };
        }
        self.sort();
        let cost_of = |job| self.cost_of(job, known);
        let completed = affordable(self.completed.iter().map(cost_of), budget);
        let rest = budget.saturating_sub(self.completed[..completed].iter().map(cost_of).sum());
        let others = match completed == self.completed.len() && (completed == 0 || rest > 0) {
            true => affordable(self.others.iter().map(|other| other.cost(known)), rest),
            false => 0,
        };
        Report {
            number: 0,
            now_ms: self.now_ms,
            completed: self.completed.drain(..completed).collect(),
            text: self.text.clone(),
            others: self.others.drain(..others).collect(),
            changed: self.changed.clone(),
        }
    }

    fn cost_of(&self, job: &Completed, known: Known<'_>) -> usize {
        match self.is_alone(job) {
            true => APART + job.bytes() / BYTES_APART + known.of_record(job.handle),
            false => known.completed() + job.bytes() / BYTES_PACKED,
        }
    }
}

impl Ended {
    fn cost(&self, known: Known<'_>) -> usize {
        let end = match &self.outcome {
            Outcome::Failed { reason, stacktrace, .. } => {
                let bytes = [reason, stacktrace].into_iter().flatten().map(|text| text.len());
                FAILED + bytes.sum::<usize>() / BYTES_PACKED
            }
            _ => OTHER,
        };
        end + known.of_record(self.handle)
    }
}

/// How many of these cost no more than `budget` together; one, if there is any.
fn affordable(costs: impl Iterator<Item = usize>, budget: usize) -> usize {
    let mut sum = 0;
    let mut count = 0;
    for cost in costs {
        sum += cost;
        if sum > budget && count > 0 {
            break;
        }
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use super::*;

    fn failed(handle: u32, bytes: usize) -> Ended {
        let outcome = Outcome::Failed {
            reason: Some("e".repeat(bytes).into()),
            stacktrace: None,
            unrecoverable: false,
            delay_ms: None,
        };
        Ended { handle, outcome }
    }

    /// `count` jobs completed with results of so many bytes each.
    fn report(number: u64, count: u32, bytes: u32) -> Report {
        let completed = |handle| Completed {
            handle,
            result: Some((handle * bytes, (handle + 1) * bytes)),
        };
        Report {
            number,
            now_ms: 7,
            completed: (0..count).map(completed).collect(),
            text: Arc::new("r".repeat((count * bytes) as usize)),
            others: Vec::new(),
            changed: BTreeMap::new(),
        }
    }

    struct Step {
        completed: Vec<u32>,
        others: Vec<u32>,
        reports: Vec<u64>,
        is_part: bool,
    }

    fn steps(reports: Vec<Report>) -> Vec<Step> {
        steps_of(reports, &frames_of(&|_| 0))
    }

    fn frames_of<'a>(bytes: &'a dyn Fn(u32) -> usize) -> Held<'a> {
        Held {
            bytes,
            has_records: false,
        }
    }

    fn steps_of(mut reports: Vec<Report>, known: Known<'_>) -> Vec<Step> {
        let mut steps = Vec::new();
        while !reports.is_empty() {
            let (cut, is_part) = cut(&mut reports, known);
            steps.push(Step {
                completed: cut
                    .iter()
                    .flat_map(|report| &report.completed)
                    .map(|job| job.handle)
                    .collect(),
                others: cut
                    .iter()
                    .flat_map(|report| &report.others)
                    .map(|other| other.handle)
                    .collect(),
                reports: cut.iter().map(|report| report.number).collect(),
                is_part,
            });
        }
        steps
    }

    #[test]
    fn what_is_little_goes_together() {
        let steps = steps(vec![report(1, 50, 10), report(2, 60, 0)]);
        assert_eq!(steps.len(), 1);
        assert_eq!(
            (steps[0].completed.len(), &steps[0].reports, steps[0].is_part),
            (110, &vec![1, 2], false)
        );
    }

    #[test]
    fn a_large_report_goes_in_parts_each_end_once() {
        for (count, bytes) in [(300, 250_000), (1000, 100_000), (16_660, 0), (5_000, 3_000)] {
            let steps = steps(vec![report(1, count, bytes), report(2, 3, 0)]);
            let (second, first) = steps.split_last().expect("steps");
            let handles: Vec<u32> = first.iter().flat_map(|step| step.completed.clone()).collect();
            assert_eq!(handles, (0..count).collect::<Vec<_>>(), "{count} of {bytes} bytes");
            assert!(first.len() > 5, "{count} of {bytes} bytes: {} steps", first.len());
            let (last, parts) = first.split_last().expect("parts");
            assert!(parts.iter().all(|step| step.is_part));
            assert_eq!((&last.reports, last.is_part), (&vec![1], false));
            assert_eq!((&second.reports, second.is_part), (&vec![2], false));
        }
    }

    #[test]
    fn the_last_that_are_returned_go_first() {
        let steps = steps(vec![Report::returning(0..1_200, 7), report(1, 3, 0)]);
        let mut list = Vec::new();
        for step in &steps {
            // to the head of the waiting list
            list.splice(0..0, step.others.iter().copied());
        }
        assert!(list.into_iter().eq(0..1_200) && steps.len() > 2);
        assert_eq!(steps.last().map(|step| step.completed.len()), Some(3));
    }

    #[test]
    fn failures_of_one_tick_go_in_parts() {
        let failures = |count: u32, bytes| Report {
            others: (0..count).map(|handle| failed(handle, bytes)).collect(),
            ..report(3, 10, 0)
        };
        for (count, bytes, most) in [(20_000, 5, 250), (30, 600_000, 1)] {
            let steps = steps(vec![failures(count, bytes)]);
            let handles: Vec<u32> = steps.iter().flat_map(|step| step.others.clone()).collect();
            assert_eq!(handles, (0..count).collect::<Vec<_>>());
            assert!(steps.iter().all(|step| step.others.len() <= most));
            assert_eq!(steps[0].completed.len(), 10, "what completed goes first");
        }
    }

    #[test]
    fn records_that_end_together_cost_more() {
        let held = Held {
            bytes: &|_| 0,
            has_records: true,
        };
        assert_eq!(steps(vec![report(1, 1_500, 0)]).len(), 1);
        assert_eq!(steps_of(vec![report(1, 1_500, 0)], &held).len(), 3);
    }

    #[test]
    fn what_is_known_of_jobs_counts_where_they_are_given_records() {
        let failures = |count| Report {
            others: (0..count).map(|handle| failed(handle, 5)).collect(),
            ..report(1, 0, 0)
        };
        let of = |report, bytes: usize| steps_of(vec![report], &frames_of(&move |_| bytes)).len();
        assert_eq!(of(failures(20), 900_000), 10);
        assert_eq!(of(failures(20), 1_000), 1);
        // a result that lies apart gives a job a record, others do not
        assert_eq!(of(report(1, 20, 5_000), 900_000), 10);
        assert_eq!(of(report(1, 20, 50), 900_000), 1);
    }
}
