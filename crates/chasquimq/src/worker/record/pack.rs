//! 4. active -> completed | failed | delayed | waiting. Packs outcomes for the step script (`lua/step/finish.lua`).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    failed::{pack_claims, AttemptEnd, Failed},
    packed_outcomes::{Failure, FailureState, PackedOutcomes, Sent},
    place::Place,
    report::{Completed, Ended, Outcome, Report},
};
use crate::{
    id::random_unit,
    job::{keep::Keep, msgpack::Packer, options::JobOptions},
    retry::{self, Retry, Tries},
    worker::{
        options::Defaults,
        take::in_flight::{Group, InFlight},
    },
};

/// Packs reports, and lets go of the jobs in them.
pub(crate) fn pack(reports: Vec<Report>, now_ms: u64, in_flight: &mut InFlight, defaults: &Defaults) -> PackedOutcomes {
    let mut packing = Packing {
        in_flight,
        defaults,
        items: Packer::default(),
        count: 0,
        plain: None,
        failed: None,
        keeps: Vec::new(),
        changed: BTreeMap::new(),
        out: PackedOutcomes::default(),
    };
    packing.out.now_ms = reports.iter().map(|report| report.now_ms).max().unwrap_or(now_ms);
    for mut report in reports {
        packing.out.flushed = packing.out.flushed.max(Some(report.number));
        packing.changed = std::mem::take(&mut report.changed);
        report.sort();
        packing.completed(&report.completed, &report.text);
        for ended in report.others {
            packing.other(ended);
        }
        packing.close_failed();
    }
    packing.done()
}

struct Packing<'a> {
    in_flight: &'a mut InFlight,
    defaults: &'a Defaults,
    // operations so far, and how many they are
    items: Packer,
    count: usize,
    // the last of them, if it is one plain job that completed
    plain: Option<Plain>,
    // failed attempts that end alike
    failed: Option<Failed>,
    keeps: Vec<Keep>,
    // of the report that is being packed
    changed: BTreeMap<u32, Arc<JobOptions>>,
    out: PackedOutcomes,
}

/// One plain job that completed (`lua/step/fast_path.lua`): its claim, its place and its result.
struct Plain {
    claim: u64,
    place: Packer,
    results: Packer,
}

impl Packing<'_> {
    fn done(self) -> PackedOutcomes {
        let plain = self.packed_plain();
        let mut blob = Packer::with_capacity(self.items.0.len() + 5);
        blob.array(self.count);
        blob.0.extend_from_slice(&self.items.0);
        let mut keeps = Packer::default();
        keeps.array(self.keeps.len());
        for keep in &self.keeps {
            pack_keep(&mut keeps, keep, self.defaults.metrics_minutes);
        }
        PackedOutcomes {
            blob: blob.0,
            keeps: keeps.0,
            plain,
            ..self.out
        }
    }

    /// What there is to say, if it is one plain job that completed.
    fn packed_plain(&self) -> Option<Vec<u8>> {
        let plain = self.plain.as_ref().filter(|_| self.count == 1)?;
        let [keep] = self.keeps.as_slice() else { return None };
        let metrics_minutes = self.defaults.metrics_minutes;
        let mut packed = Packer::default();
        packed.int(plain.claim as i64);
        if keep.age < 0.0 && metrics_minutes == 0 {
            packed.int(keep.count);
        } else {
            pack_keep(&mut packed, keep, metrics_minutes);
        }
        packed.0.extend_from_slice(&plain.place.0);
        packed.0.extend_from_slice(&plain.results.0);
        Some(packed.0)
    }

    /// Index of a retention rule, from 1 as Lua counts.
    fn keep(&mut self, keep: Keep) -> i64 {
        let index = self.keeps.iter().position(|known| *known == keep).unwrap_or_else(|| {
            self.keeps.push(keep);
            self.keeps.len() - 1
        });
        index as i64 + 1
    }

    fn completed(&mut self, completed: &[Completed], text: &str) {
        self.out.jobs += completed.len() as u64;
        let mut rest = completed;
        while let Some(job) = rest.first() {
            let count = if goes_alone(job, &self.changed) {
                self.completed_alone(job, text);
                1
            } else {
                self.completed_together(rest, text)
            };
            rest = &rest[count..];
        }
    }

    /// Jobs of a frame that completed one behind the other become one operation. Gives their number.
    #[inline]
    fn completed_together(&mut self, completed: &[Completed], text: &str) -> usize {
        let handle = completed[0].handle;
        let Some((offset, held)) = self.in_flight.find(handle) else {
            return 1;
        };
        let Group::Frame {
            first,
            n,
            options,
            ids,
            claim,
            ..
        } = held
        else {
            return self.completed_records(completed, text);
        };
        let (first, n, ids, claim) = (*first, *n, ids.clone(), *claim);
        let keep = options.remove_on_complete.unwrap_or(self.defaults.remove_on_complete);
        let keep = self.keep(keep);
        let count = completed
            .iter()
            .take((n - offset) as usize)
            .enumerate()
            .take_while(|(i, job)| job.handle == handle + *i as u32 && !goes_alone(job, &self.changed))
            .count();
        self.items
            .array(if ids.is_some() { 9 } else { 8 })
            .str("c")
            .int(first as i64)
            .int(i64::from(n))
            .int(i64::from(offset))
            .int(claim as i64)
            .int(count as i64)
            .int(keep);
        pack_results(&mut self.items, &completed[..count], text);
        if let Some(ids) = &ids {
            self.items.str(ids);
        }
        self.count += 1;
        if n == 1 && ids.is_none() {
            let mut place = Packer::default();
            place.int(first as i64);
            self.note_plain(claim, place, &completed[0], text);
        }
        self.out.sent.push(Sent::Frame {
            first,
            offset,
            count: count as u32,
            handle,
            ids,
            claim,
            group: self.in_flight.complete(handle, count as u32, self.out.now_ms),
        });
        count
    }

    /// Records that completed one behind the other, under one retention rule, become one operation. Gives their number.
    fn completed_records(&mut self, completed: &[Completed], text: &str) -> usize {
        let mut ids = Packer::default();
        let mut claims = Vec::new();
        let mut rule = None;
        for job in completed {
            let Some((_, Group::Record { id, claim, options, .. })) = self.in_flight.find(job.handle) else {
                break;
            };
            let keep = options.remove_on_complete.unwrap_or(self.defaults.remove_on_complete);
            if *rule.get_or_insert(keep) != keep || goes_alone(job, &self.changed) {
                break;
            }
            ids.str(id);
            claims.push(*claim);
            self.out.sent.push(Sent::Record {
                id: id.clone(),
                claim: *claim,
                handle: job.handle,
                group: self.in_flight.complete(job.handle, 1, self.out.now_ms),
            });
        }
        let count = claims.len();
        let keep = self.keep(rule.unwrap_or(self.defaults.remove_on_complete));
        self.items.array(8).str("r").int(0).int(0).int(0);
        pack_claims(&mut self.items, claims.iter().copied());
        self.items.array(count);
        self.items.0.extend_from_slice(&ids.0);
        self.items.int(keep);
        pack_results(&mut self.items, &completed[..count], text);
        self.count += 1;
        if let [claim] = claims[..] {
            self.note_plain(claim, ids, &completed[0], text);
        }
        count
    }

    fn note_plain(&mut self, claim: u64, place: Packer, job: &Completed, text: &str) {
        let mut results = Packer::default();
        pack_results(&mut results, std::slice::from_ref(job), text);
        self.plain = Some(Plain { claim, place, results });
    }

    fn completed_alone(&mut self, job: &Completed, text: &str) {
        let Some((offset, group)) = self.in_flight.find(job.handle) else {
            return;
        };
        let mut place = place_of(job.handle, offset, group, &self.changed);
        let group = self.in_flight.complete(job.handle, 1, self.out.now_ms);
        self.out.sent.push(place.sent(job.handle, group));
        let keep = place
            .options
            .remove_on_complete
            .unwrap_or(self.defaults.remove_on_complete);
        if keep.count == 0 {
            // of what is not kept there is no record
            place.blob = None;
        }
        let keep = self.keep(keep);
        self.items.array(9).str("l");
        place.pack(&mut self.items, &mut self.out.large);
        self.out.large.push(job.result_in(text).into());
        self.items.int(keep).int(self.out.large.len() as i64);
        self.count += 1;
    }

    fn other(&mut self, ended: Ended) {
        let Ended { handle, outcome } = ended;
        let Some((offset, group)) = self.in_flight.find(handle) else {
            return;
        };
        let place = place_of(handle, offset, group, &self.changed);
        // a job that ended before it in this step may be held again
        let group = self.in_flight.release(handle, 1);
        self.out.sent.push(place.sent(handle, group));
        if let Outcome::Failed {
            reason,
            stacktrace,
            unrecoverable,
            delay_ms,
        } = outcome
        {
            self.out.jobs += 1;
            let retry = self.retry(&place, unrecoverable, delay_ms);
            let is_final = retry == Retry::Never;
            let group = place.options.group.as_ref();
            self.in_flight.measure(1, place.began, group, self.out.now_ms, is_final);
            return self.failed(handle, place, retry, reason, stacktrace);
        }
        self.close_failed();
        self.count += 1;
        if let Outcome::Moved = outcome {
            self.items.array(7).str("m");
            return place.pack(&mut self.items, &mut self.out.large);
        }
        if let Outcome::Returned = outcome {
            self.out.returned.push(handle);
        }
        let limited = matches!(outcome, Outcome::RateLimited);
        self.items.array(8).str("b");
        place.pack(&mut self.items, &mut self.out.large);
        self.items.int(i64::from(limited));
        if limited {
            self.out.limited.push(handle);
        }
    }

    fn retry(&self, place: &Place, unrecoverable: bool, delay_ms: Option<f64>) -> Retry {
        let tries = Tries {
            made: place.attempts_made + 1,
            started: place.attempts_started,
            most_starts: self.defaults.max_started_attempts.unwrap_or(0),
        };
        retry::decide(&place.options, tries, unrecoverable, delay_ms, random_unit())
    }

    /// Notes a failed attempt with those that end alike.
    fn failed(
        &mut self,
        handle: u32,
        place: Place,
        retry: Retry,
        reason: Option<Arc<str>>,
        stacktrace: Option<Arc<str>>,
    ) {
        let attempts_made = place.attempts_made + 1;
        let (to, due_ms, state) = match retry {
            Retry::Never => ("failed", 0, FailureState::Failed),
            Retry::After(ms) => ("delayed", self.out.now_ms + ms, FailureState::Delayed(ms)),
            Retry::Now if place.options.lifo => ("front", 0, FailureState::Waiting),
            Retry::Now => ("waiting", 0, FailureState::Waiting),
        };
        self.out.failures.push(Failure {
            handle,
            state,
            attempts_made,
        });
        let end = AttemptEnd {
            first: place.first,
            frame_claim: if place.first > 0 { place.claim } else { 0 },
            to,
            keep: self.keep(place.options.remove_on_fail.unwrap_or(self.defaults.remove_on_fail)),
            due_ms,
            attempts_made,
            exhausted: attempts_made >= place.options.attempts,
            reason,
        };
        if self.failed.as_ref().is_some_and(|failed| failed.end != end) {
            self.close_failed();
        }
        let failed = self.failed.get_or_insert_with(|| Failed::new(end));
        failed.push(place, stacktrace);
    }

    fn close_failed(&mut self) {
        if let Some(failed) = self.failed.take() {
            let is_measured = self.in_flight.measured.is_some();
            failed.pack(&mut self.items, &mut self.out.large, is_measured);
            self.count += 1;
        }
    }
}

pub(crate) fn pack_keep(packed: &mut Packer, keep: &Keep, metrics_minutes: u32) {
    packed
        .array(if metrics_minutes > 0 { 4 } else { 3 })
        .int(keep.count)
        .float(keep.age)
        .int(i64::from(keep.limit));
    if metrics_minutes > 0 {
        packed.int(i64::from(metrics_minutes));
    }
}

fn pack_results(packed: &mut Packer, jobs: &[Completed], text: &str) {
    if jobs.iter().all(|job| job.result.is_none()) {
        packed.str("");
        return;
    }
    let mut results = Packer::default();
    results.array(jobs.len());
    for job in jobs {
        results.str(job.result_in(text));
    }
    packed.bytes(&results.0);
}

/// Whether a job's result travels, and is stored, by itself. `changed`: options that handlers have changed.
#[inline]
fn goes_alone(job: &Completed, changed: &BTreeMap<u32, Arc<JobOptions>>) -> bool {
    job.is_large() || (!changed.is_empty() && changed.contains_key(&job.handle))
}

/// Where a job is that ends by itself, with the options that count.
#[inline]
fn place_of(handle: u32, offset: u32, group: &Group, changed: &BTreeMap<u32, Arc<JobOptions>>) -> Place {
    let mut place = Place::of(offset, group);
    if let Some(options) = changed.get(&handle) {
        place.options = options.clone();
    }
    place
}
