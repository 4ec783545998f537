//! 4. active -> completed | failed | delayed | waiting. Packs outcomes for the step script (`lua/lib/finish.lua`).

use std::{collections::BTreeMap, sync::Arc};

use super::fetch::{Held, Holdings};
use crate::{
    error::{Error, Result},
    id::random_unit,
    job::{
        frame::{bodies_in_frame, body_in_frame, id_in},
        keep::Keep,
        msgpack::Packer,
        options::JobOptions,
    },
    redis::{library::Arg, reply::Reply},
    retry::{self, Retry},
};

/// Bytes of a result that goes through scripts with others; Lua copies it several times on its way. A larger one lies apart, with a record of
/// its job's own (`lua/lib/large.lua`).
const MAX_RESULT: usize = 4 * 1024;

/// Outcomes reported together.
#[derive(Debug, Default)]
pub struct Flush {
    /// Counts up from 1.
    pub number: u32,
    /// The caller's clock, epoch ms.
    pub now_ms: u64,
    /// Jobs that completed.
    pub completed: Vec<Completed>,
    /// Their results, JSON texts, back to back.
    pub text: Arc<String>,
    /// Jobs that ended any other way.
    pub others: Vec<Outcome>,
    /// Options that handlers have changed, by handle: those with which their jobs end.
    pub changed: BTreeMap<u32, Arc<JobOptions>>,
}

impl Flush {
    /// Jobs of a frame that completed one behind the other stand so afterwards.
    pub(super) fn sort(&mut self) {
        if !self.completed.is_sorted_by_key(|job| job.handle) {
            self.completed.sort_unstable_by_key(|job| job.handle);
        }
    }

    /// Hands jobs back unstarted.
    pub(super) fn returning(handles: impl IntoIterator<Item = u32>, now_ms: u64) -> Self {
        let returned = |handle| Outcome {
            handle,
            ending: Ending::Returned,
        };
        Self {
            now_ms,
            others: handles.into_iter().map(returned).collect(),
            ..Self::default()
        }
    }
}

/// A job that completed.
#[derive(Debug, Clone, Copy)]
pub struct Completed {
    /// Its handle.
    pub handle: u32,
    /// Where its result lies in the flush's text; `None`: undefined.
    pub result: Option<(u32, u32)>,
}

impl Completed {
    /// Whether its result lies apart (`lua/lib/large.lua`).
    pub(super) fn is_large(&self) -> bool {
        self.bytes() > MAX_RESULT
    }

    /// Of its result.
    pub(super) fn bytes(&self) -> usize {
        self.result.map_or(0, |(from, to)| to.saturating_sub(from) as usize)
    }
}

/// A job that ended another way.
#[derive(Debug)]
pub struct Outcome {
    /// Its handle.
    pub handle: u32,
    /// How it ended.
    pub ending: Ending,
}

/// How a job ended, if it did not complete.
#[derive(Debug)]
pub enum Ending {
    /// It threw.
    Failed {
        /// Message of the error.
        reason: Option<Arc<str>>,
        /// All its stack traces so far, JSON array of texts.
        stacktrace: Option<Arc<str>>,
        /// No further tries.
        unrecoverable: bool,
        /// Pause before the next try, ms, by a strategy of the user's; -1 = no further tries.
        delay_ms: Option<f64>,
    },
    /// The handler moved it itself.
    Moved,
    /// It never started: back to the head of the line.
    Returned,
    /// It started and met a rate limit: back to the head of the line.
    RateLimited,
}

/// An outcome that was refused.
#[derive(Debug)]
pub struct Rejected {
    /// The job's handle.
    pub handle: u32,
    /// Why.
    pub error: Error,
}

impl Rejected {
    /// A parent that must not complete is held on to: its try is to fail.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.error, Error::PendingChildren { .. } | Error::FailedChildren { .. })
    }
}

/// What became of a failed try.
#[derive(Debug)]
pub struct Failure {
    /// The job's handle.
    pub handle: u32,
    /// Where the job went.
    pub state: FailureState,
    /// Tries that ended.
    pub attempts_made: u32,
}

/// Where a failed try leaves the job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FailureState {
    /// Failed for good.
    Failed,
    /// Tried again after so many milliseconds.
    Delayed(u64),
    /// Tried again at once.
    Waiting,
}

/// Outcomes as the step script takes them.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    pub(super) blob: Vec<u8>,
    pub(super) keeps: Vec<u8>,
    pub(super) now_ms: u64,
    pub(super) flushed: Option<u32>,
    // of a flush that is recorded by later steps
    pub(super) is_part: bool,
    pub(super) failures: Vec<Failure>,
    pub(super) jobs: u64,
    // jobs that met a rate limit
    pub(super) limited: Vec<u32>,
    large_results: Vec<Box<str>>,
    sent: Vec<Sent>,
}

/// Which handles an operation speaks for, to name the refused ones.
#[derive(Debug)]
enum Sent {
    Frame {
        first: u64,
        offset: u32,
        count: u32,
        handle: u32,
        // what the ids of children begin with
        ids: Option<Arc<str>>,
        claim: u64,
        // the frame, when these were the last jobs held of it
        group: Option<Held>,
    },
    Record {
        id: String,
        claim: u64,
        handle: u32,
        group: Option<Held>,
    },
}

pub(super) struct Defaults {
    pub(super) remove_on_complete: Keep,
    pub(super) remove_on_fail: Keep,
    pub(super) max_started_attempts: Option<u32>,
    pub(super) metrics_minutes: u32,
}

impl Outcomes {
    /// Packs flushes, and lets go of the jobs in them.
    pub(super) fn pack(flushes: Vec<Flush>, now_ms: u64, holdings: &mut Holdings, defaults: &Defaults) -> Result<Self> {
        let mut packing = Packing {
            items: Packer::default(),
            failed: None,
            count: 0,
            keeps: Vec::new(),
            changed: BTreeMap::new(),
            metrics_minutes: defaults.metrics_minutes,
            out: Outcomes::default(),
        };
        packing.out.now_ms = flushes.iter().map(|flush| flush.now_ms).max().unwrap_or(now_ms);
        for mut flush in flushes {
            packing.out.flushed = packing.out.flushed.max(Some(flush.number));
            packing.changed = std::mem::take(&mut flush.changed);
            flush.sort();
            packing.completed(&flush.completed, &flush.text, holdings, defaults);
            for outcome in flush.others {
                packing.other(outcome, holdings, defaults)?;
            }
            packing.close_failed()?;
        }
        Ok(packing.done())
    }

    /// Nothing to record.
    pub(super) fn none(now_ms: u64) -> Self {
        let mut empty = Packer::default();
        empty.array(0);
        Self {
            blob: empty.0.clone(),
            keeps: empty.0,
            now_ms,
            ..Self::default()
        }
    }

    /// What stands behind a step's other arguments: the results that numbers in the blob are about, from 1 on.
    pub(super) fn large_results(&self) -> impl Iterator<Item = Arg<'_>> {
        self.large_results.iter().map(|result| Arg::from(&**result))
    }

    /// Reads the refusals of a step's reply.
    pub(super) fn rejected(&mut self, mut reply: Reply, holdings: &mut Holdings) -> Result<Vec<Rejected>> {
        let mut rejected = Vec::new();
        while !reply.is_empty() {
            let mut refusal = reply.array()?;
            let first = refusal.int()? as u64;
            let place = refusal.text()?;
            let (code, refused) = (refusal.int()?, refusal.int()? as u64);
            let found = self.sent.iter().find_map(|sent| match sent {
                Sent::Frame {
                    first: at,
                    offset,
                    count,
                    handle,
                    ids,
                    claim,
                    ..
                } if *at == first && *claim == refused => {
                    let wanted: u32 = place.parse().ok()?;
                    let is_one = wanted >= *offset && wanted < offset + count;
                    is_one.then(|| {
                        (
                            handle + wanted - offset,
                            id_in(ids.as_deref(), first + u64::from(wanted)),
                        )
                    })
                }
                Sent::Record { id, handle, claim, .. } if first == 0 && *id == place && *claim == refused => {
                    Some((*handle, id.clone()))
                }
                _ => None,
            });
            if let Some((handle, id)) = found {
                let error = Error::from_code(code, &id, "active", self.command_of(handle));
                let refusal = Rejected { handle, error };
                if refusal.is_held() {
                    self.hold_again(first, handle, holdings);
                }
                rejected.push(refusal);
            }
        }
        Ok(rejected)
    }

    fn hold_again(&mut self, frame: u64, job: u32, holdings: &mut Holdings) {
        for sent in &mut self.sent {
            match sent {
                Sent::Frame {
                    first,
                    offset,
                    handle,
                    group: Some(_),
                    ..
                } if *first == frame => {
                    // whichever of its jobs ended last
                    let base = *handle - *offset;
                    let group = sent.take_group();
                    return holdings.hold_again(job, job - base, group);
                }
                Sent::Record { handle, .. } if frame == 0 && *handle == job => {
                    let group = sent.take_group();
                    return holdings.hold_again(job, 0, group);
                }
                _ => {}
            }
        }
        if let Some((offset, _)) = holdings.find(job) {
            holdings.hold_again(job, offset, None);
        }
    }

    /// What BullMQ calls the move that was refused.
    fn command_of(&self, handle: u32) -> &'static str {
        match self.limited.contains(&handle) {
            true => "moveJobFromActiveToWait",
            false => "moveToFinished",
        }
    }
}

impl Sent {
    fn take_group(&mut self) -> Option<Held> {
        match self {
            Sent::Frame { group, .. } | Sent::Record { group, .. } => group.take(),
        }
    }
}

struct Packing {
    items: Packer,
    // failed tries that end alike
    failed: Option<Failed>,
    count: usize,
    keeps: Vec<Keep>,
    // of the flush that is being packed
    changed: BTreeMap<u32, Arc<JobOptions>>,
    metrics_minutes: u32,
    out: Outcomes,
}

impl Packing {
    fn done(self) -> Outcomes {
        let mut blob = Packer::with_capacity(self.items.0.len() + 5);
        blob.array(self.count);
        blob.0.extend_from_slice(&self.items.0);
        let mut keeps = Packer::default();
        keeps.array(self.keeps.len());
        for keep in &self.keeps {
            keeps
                .array(if self.metrics_minutes > 0 { 4 } else { 3 })
                .int(keep.count)
                .float(keep.age)
                .int(i64::from(keep.limit));
            if self.metrics_minutes > 0 {
                keeps.int(i64::from(self.metrics_minutes));
            }
        }
        Outcomes {
            blob: blob.0,
            keeps: keeps.0,
            ..self.out
        }
    }

    /// Index of a retention rule, from 1 as Lua counts.
    fn keep(&mut self, keep: Keep) -> i64 {
        let index = self.keeps.iter().position(|known| *known == keep).unwrap_or_else(|| {
            self.keeps.push(keep);
            self.keeps.len() - 1
        });
        index as i64 + 1
    }

    /// Jobs of a frame that completed one behind the other become one operation.
    fn completed(&mut self, completed: &[Completed], text: &str, holdings: &mut Holdings, defaults: &Defaults) {
        self.out.jobs += completed.len() as u64;
        let mut at = 0;
        while at < completed.len() {
            let handle = completed[at].handle;
            if self.goes_alone(&completed[at]) {
                self.completed_alone(&completed[at], text, holdings, defaults);
                at += 1;
                continue;
            }
            let Some((offset, held)) = holdings.find(handle) else {
                at += 1;
                continue;
            };
            match held {
                Held::Frame {
                    first,
                    n,
                    options,
                    ids,
                    claim,
                    ..
                } => {
                    let most = (*n - offset) as usize;
                    let run = completed[at..]
                        .iter()
                        .take(most)
                        .enumerate()
                        .take_while(|(i, job)| job.handle == handle + *i as u32 && !self.goes_alone(job))
                        .count();
                    let (first, n, ids, claim) = (*first, *n, ids.clone(), *claim);
                    let keep = options.remove_on_complete.unwrap_or(defaults.remove_on_complete);
                    let keep = self.keep(keep);
                    self.items
                        .array(if ids.is_some() { 9 } else { 8 })
                        .str("c")
                        .int(first as i64)
                        .int(i64::from(n))
                        .int(i64::from(offset));
                    self.items.int(claim as i64).int(run as i64).int(keep);
                    self.results(&completed[at..at + run], text);
                    if let Some(ids) = &ids {
                        self.items.str(ids);
                    }
                    self.count += 1;
                    self.out.sent.push(Sent::Frame {
                        first,
                        offset,
                        count: run as u32,
                        handle,
                        ids,
                        claim,
                        group: holdings.release(handle, run as u32),
                    });
                    at += run;
                }
                Held::Record { .. } => at += self.completed_records(&completed[at..], text, holdings, defaults),
            }
        }
    }

    /// Records that completed one behind the other, under one retention rule, become one operation. Gives their number.
    fn completed_records(
        &mut self,
        completed: &[Completed],
        text: &str,
        holdings: &mut Holdings,
        defaults: &Defaults,
    ) -> usize {
        let mut ids = Packer::default();
        let mut claims = Vec::new();
        let mut rule = None;
        let mut count = 0;
        for job in completed {
            let Some((_, Held::Record { id, claim, options, .. })) = holdings.find(job.handle) else {
                break;
            };
            let keep = options.remove_on_complete.unwrap_or(defaults.remove_on_complete);
            if *rule.get_or_insert(keep) != keep || self.goes_alone(job) {
                break;
            }
            ids.str(id);
            claims.push(*claim);
            self.out.sent.push(Sent::Record {
                id: id.clone(),
                claim: *claim,
                handle: job.handle,
                group: holdings.release(job.handle, 1),
            });
            count += 1;
        }
        let keep = self.keep(rule.unwrap_or(defaults.remove_on_complete));
        self.items.array(8).str("r").int(0).int(0).int(0);
        self.claims(claims.iter());
        self.items.array(count);
        self.items.0.extend_from_slice(&ids.0);
        self.items.int(keep);
        self.results(&completed[..count], text);
        self.count += 1;
        count
    }

    /// Whether a job's result travels, and is stored, by itself.
    fn goes_alone(&self, job: &Completed) -> bool {
        job.is_large() || (!self.changed.is_empty() && self.changed.contains_key(&job.handle))
    }

    fn completed_alone(&mut self, job: &Completed, text: &str, holdings: &mut Holdings, defaults: &Defaults) {
        let Some((offset, held)) = holdings.find(job.handle) else {
            return;
        };
        let place = self.place_of(job.handle, offset, held);
        let keep = place.options.remove_on_complete.unwrap_or(defaults.remove_on_complete);
        let keep = self.keep(keep);
        self.out
            .sent
            .push(place.sent(job.handle, holdings.release(job.handle, 1)));
        self.items.array(9).str("l");
        self.place(&place);
        self.out.large_results.push(result_text(job, text).into());
        self.items.int(keep).int(self.out.large_results.len() as i64);
        self.count += 1;
    }

    /// The claims of jobs that end together: one number, where they share it.
    fn claims<'a>(&mut self, claims: impl ExactSizeIterator<Item = &'a u64> + Clone) {
        let mut others = claims.clone();
        let first = others.next().copied().unwrap_or_default();
        if others.all(|claim| *claim == first) {
            self.items.int(first as i64);
            return;
        }
        self.items.array(claims.len());
        for claim in claims {
            self.items.int(*claim as i64);
        }
    }

    fn results(&mut self, jobs: &[Completed], text: &str) {
        if jobs.iter().all(|job| job.result.is_none()) {
            self.items.str("");
            return;
        }
        let mut results = Packer::default();
        results.array(jobs.len());
        for job in jobs {
            results.str(result_text(job, text));
        }
        self.items.bytes(&results.0);
    }

    fn other(&mut self, outcome: Outcome, holdings: &mut Holdings, defaults: &Defaults) -> Result<()> {
        let Outcome { handle, ending } = outcome;
        let Some((offset, held)) = holdings.find(handle) else {
            return Ok(());
        };
        let place = self.place_of(handle, offset, held);
        holdings.release(handle, 1);
        self.out.sent.push(place.sent(handle, None));
        if !matches!(ending, Ending::Failed { .. }) {
            self.close_failed()?;
            self.count += 1;
        }
        match ending {
            Ending::Moved => {
                self.items.array(7).str("m");
                self.place(&place);
            }
            Ending::Returned | Ending::RateLimited => {
                self.items.array(8).str("b");
                self.place(&place);
                let limited = matches!(ending, Ending::RateLimited);
                self.items.int(i64::from(limited));
                if limited {
                    self.out.limited.push(handle);
                }
            }
            Ending::Failed {
                reason,
                stacktrace,
                unrecoverable,
                delay_ms,
            } => {
                self.out.jobs += 1;
                let retry = self.retry(&place, unrecoverable, delay_ms, defaults);
                self.failed(handle, place, retry, reason, stacktrace, defaults)?;
            }
        }
        Ok(())
    }

    fn place_of(&self, handle: u32, offset: u32, held: &Held) -> Place {
        let mut place = Place::of(offset, held);
        if let Some(options) = self.changed.get(&handle) {
            place.options = options.clone();
        }
        place
    }

    fn place(&mut self, place: &Place) {
        self.items
            .int(place.first as i64)
            .int(i64::from(place.n))
            .int(i64::from(place.offset))
            .int(place.claim as i64);
        self.items.str(&place.id);
        match &place.blob {
            Some(blob) => self.items.bytes(&body_in_frame(blob, place.offset as usize)),
            None => self.items.str(""),
        };
    }

    fn retry(&self, place: &Place, unrecoverable: bool, delay_ms: Option<f64>, defaults: &Defaults) -> Retry {
        let worn_out = defaults
            .max_started_attempts
            .is_some_and(|most| most > 0 && place.attempts_started >= most);
        let attempts_made = place.attempts_made + 1;
        retry::decide(
            &place.options,
            attempts_made,
            unrecoverable || worn_out,
            delay_ms,
            random_unit(),
        )
    }

    /// Notes a failed try with those that end alike.
    fn failed(
        &mut self,
        handle: u32,
        place: Place,
        retry: Retry,
        reason: Option<Arc<str>>,
        stacktrace: Option<Arc<str>>,
        defaults: &Defaults,
    ) -> Result<()> {
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
        let end = End {
            first: place.first,
            frame_claim: if place.first > 0 { place.claim } else { 0 },
            to,
            keep: self.keep(place.options.remove_on_fail.unwrap_or(defaults.remove_on_fail)),
            due_ms,
            attempts_made,
            exhausted: attempts_made >= place.options.attempts,
            reason: reason.unwrap_or_else(|| Arc::from("")),
        };
        if self.failed.as_ref().is_some_and(|failed| failed.end != end) {
            self.close_failed()?;
        }
        let failed = self.failed.get_or_insert_with(|| Failed {
            end,
            places: Vec::new(),
            traces: Vec::new(),
        });
        failed.places.push(place);
        failed.traces.push(stacktrace.unwrap_or_else(|| Arc::from("")));
        Ok(())
    }

    fn close_failed(&mut self) -> Result<()> {
        let Some(Failed { end, places, traces }) = self.failed.take() else {
            return Ok(());
        };
        self.items.array(14).str("f").int(end.first as i64);
        self.items.int(i64::from(places[0].n));
        if end.first > 0 {
            self.items.array(places.len());
            for place in &places {
                self.items.int(i64::from(place.offset));
            }
        } else {
            self.items.int(0);
        }
        self.claims(places.iter().map(|place| &place.claim));
        let items = &mut self.items;
        items.column(places.iter().map(|place| place.id.as_str()), false);
        match &places[0].blob {
            Some(blob) => {
                let offsets: Vec<usize> = places.iter().map(|place| place.offset as usize).collect();
                items.array(offsets.len());
                for body in bodies_in_frame(blob, &offsets) {
                    items.bytes(&body);
                }
            }
            None => {
                items.str("");
            }
        }
        items.str(end.to).int(end.keep).int(end.due_ms as i64);
        items
            .int(i64::from(end.attempts_made))
            .int(i64::from(end.exhausted))
            .str(&end.reason);
        let is_same = traces.iter().all(|trace| *trace == traces[0]);
        items.column(traces.iter().map(|trace| &**trace), is_same);
        self.count += 1;
        Ok(())
    }
}

/// How failed tries of one operation end: those of one frame (first > 0), or of records, that share all of this.
#[derive(Debug, PartialEq)]
struct End {
    first: u64,
    // of a frame's jobs
    frame_claim: u64,
    to: &'static str,
    keep: i64,
    due_ms: u64,
    attempts_made: u32,
    exhausted: bool,
    reason: Arc<str>,
}

#[derive(Debug)]
struct Failed {
    end: End,
    places: Vec<Place>,
    traces: Vec<Arc<str>>,
}
/// Where an outcome's job is, and what decides what becomes of it.
#[derive(Debug)]
struct Place {
    first: u64,
    n: u32,
    offset: u32,
    id: String,
    claim: u64,
    // what the ids of children in its frame begin with
    ids: Option<Arc<str>>,
    // of the frame it lies in
    blob: Option<Arc<Vec<u8>>>,
    attempts_made: u32,
    attempts_started: u32,
    options: Arc<JobOptions>,
}

impl Place {
    fn of(offset: u32, held: &Held) -> Self {
        match held {
            Held::Frame {
                first,
                n,
                blob,
                options,
                ids,
                claim,
                ..
            } => Self {
                first: *first,
                n: *n,
                offset,
                claim: *claim,
                id: id_in(ids.as_deref(), *first + u64::from(offset)),
                ids: ids.clone(),
                blob: Some(blob.clone()),
                attempts_made: 0,
                attempts_started: 1,
                options: options.clone(),
            },
            Held::Record {
                id,
                claim,
                attempts_made,
                attempts_started,
                options,
            } => Self {
                first: 0,
                n: 0,
                offset: 0,
                claim: *claim,
                id: id.clone(),
                ids: None,
                blob: None,
                attempts_made: *attempts_made,
                attempts_started: *attempts_started,
                options: options.clone(),
            },
        }
    }

    fn sent(&self, handle: u32, group: Option<Held>) -> Sent {
        match self.first {
            0 => Sent::Record {
                id: self.id.clone(),
                claim: self.claim,
                handle,
                group,
            },
            first => Sent::Frame {
                first,
                offset: self.offset,
                count: 1,
                handle,
                ids: self.ids.clone(),
                claim: self.claim,
                group,
            },
        }
    }
}

fn result_text<'a>(job: &Completed, text: &'a str) -> &'a str {
    job.result
        .and_then(|(from, to)| text.get(from as usize..to as usize))
        .unwrap_or("")
}
