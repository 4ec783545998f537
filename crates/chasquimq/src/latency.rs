//! How long jobs took, on a logarithmic scale: each step of it is longer than the one before by the square root of two, so that a percentile is right
//! within that factor. In Redis: `lua/rules/latency.lua`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    error::{Error, Result},
    job::{
        group::Group,
        msgpack::{Packer, Reader},
    },
};

/// The minutes of the shortest span that is told of a group (`lua/rules/latency.lua`).
pub(crate) const GROUP_MINUTES: u64 = 5;
/// Most groups of which one call tells.
const GROUPS_A_CALL: usize = 50;
/// Groups of which a worker keeps what it has measured; as soon as there are so many, they are told.
const MOST_GROUPS: usize = 10_000;

/// The last step with an end, 2^29.5 ms, more than a week; behind it there is one for all that took longer.
const LAST_STEP: u8 = 59;

/// The end of a step, ms.
#[must_use]
pub fn step_end_ms(step: u8) -> f64 {
    (f64::from(step.min(LAST_STEP)) / 2.0).exp2()
}

fn step_of(ms: u64) -> u8 {
    // to f64 and back: 2^53 ms are 285,000 years
    let step = (2.0 * (ms.max(1) as f64).log2()).ceil();
    (step as u8).min(LAST_STEP + 1)
}

/// Times of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    /// All of them together, ms.
    pub sum_ms: u64,
    /// How many there are of each step that has any.
    pub steps: BTreeMap<u8, u64>,
}

impl Times {
    fn note(&mut self, ms: u64, jobs: u64) {
        self.sum_ms = self.sum_ms.saturating_add(ms.saturating_mul(jobs));
        *self.steps.entry(step_of(ms)).or_default() += jobs;
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.steps.values().fold(0, |all, jobs| all.saturating_add(*jobs))
    }

    /// So many of hundred took at most this long, ms, rounded up to the end of a step; `None`: there are none.
    #[must_use]
    pub fn percentile_ms(&self, percent: u64) -> Option<f64> {
        let rank = (u128::from(self.count()) * u128::from(percent)).div_ceil(100).max(1);
        let mut passed = 0;
        let found = self.steps.iter().find(|(_, jobs)| {
            passed += u128::from(**jobs);
            passed >= rank
        });
        found.map(|(step, _)| step_end_ms(*step))
    }

    /// How many took at most so long, ms, for each power of two of the scale.
    #[must_use]
    pub fn cumulative(&self) -> Vec<(f64, u64)> {
        let ends = (0..LAST_STEP).step_by(2);
        ends.map(|end| (step_end_ms(end), self.steps.range(..=end).map(|(_, jobs)| jobs).sum()))
            .collect()
    }

    fn add(&mut self, other: &Self) {
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
        for (step, jobs) in &other.steps {
            let known = self.steps.entry(*step).or_default();
            *known = known.saturating_add(*jobs);
        }
    }

    fn pack(&self, packer: &mut Packer) {
        packer.array(1 + 2 * self.steps.len()).int(self.sum_ms as i64);
        for (step, jobs) in &self.steps {
            packer.int(i64::from(*step)).int(*jobs as i64);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let len = reader.array()?;
        let mut times = Self {
            sum_ms: reader.float()? as u64,
            ..Self::default()
        };
        for _ in 0..len / 2 {
            let (step, jobs) = (reader.int()?, reader.float()? as u64);
            let step = u8::try_from(step).map_err(|_| Error::malformed("a time that jobs took", step))?;
            times.steps.insert(step, jobs);
        }
        Ok(times)
    }
}

/// What is known of some jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latency {
    /// From when they could start until they were taken, of each start of which that is known.
    pub waiting: Times,
    /// Of each run, from when it was taken until it completed or failed.
    pub running: Times,
    /// From when they could start until they had completed, or failed for good.
    pub completion: Times,
    /// Jobs that were added meanwhile.
    pub added: u64,
}

impl Latency {
    fn ended(&mut self, jobs: u64, began: Began, now_ms: u64, is_final: bool) {
        self.running.note(now_ms.saturating_sub(began.taken_ms), jobs);
        if let Some(ready_ms) = began.ready_ms {
            self.waiting.note(began.taken_ms.saturating_sub(ready_ms), jobs);
        }
        if is_final {
            self.completion.note(now_ms.saturating_sub(began.added_ms), jobs);
        }
    }

    /// But for jobs that were added, which the server counts.
    fn pack(&self, packer: &mut Packer) {
        packer.array(3);
        for times in [&self.waiting, &self.running, &self.completion] {
            times.pack(packer);
        }
    }

    /// Takes in what is stored of a span of time.
    /// # Errors
    /// [`Error::Malformed`]
    pub(crate) fn add_stored(&mut self, raw: &[u8]) -> Result<()> {
        let mut reader = Reader::new(raw);
        let values = reader.array()?;
        if !(3..=4).contains(&values) {
            return Err(Error::malformed("times that jobs took", "another number of them"));
        }
        for times in [&mut self.waiting, &mut self.running, &mut self.completion] {
            times.add(&Times::read(&mut reader)?);
        }
        if values == 4 {
            self.added = self.added.saturating_add(reader.float()? as u64);
        }
        Ok(())
    }
}

/// Of a job that is held: what the times are counted from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Began {
    /// When it was added, and its delay was over, epoch ms.
    pub(crate) added_ms: u64,
    /// From when on this start could be; `None`: nobody knows.
    pub(crate) ready_ms: Option<u64>,
    /// When it was taken, epoch ms.
    pub(crate) taken_ms: u64,
}

/// What a worker has measured and not told yet.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    of_groups: bool,
    untold: Mutex<Untold>,
}

/// By minutes since the epoch; of groups by the first minute of a span.
#[derive(Debug, Default)]
struct Untold {
    minutes: BTreeMap<u64, Latency>,
    groups: BTreeMap<u64, HashMap<String, Latency>>,
}

impl Measured {
    /// `of_groups`: of each group by itself, too.
    pub(crate) fn new(of_groups: bool) -> Self {
        Self {
            of_groups,
            ..Self::default()
        }
    }

    fn untold(&self) -> MutexGuard<'_, Untold> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs ended that were taken together. `is_final`: the jobs are not tried again.
    pub(crate) fn ended(&self, jobs: u32, began: Began, group: Option<&Group>, now_ms: u64, is_final: bool) {
        let (jobs, minute, mut untold) = (u64::from(jobs), now_ms / 60_000, self.untold());
        let of = untold.minutes.entry(minute).or_default();
        of.ended(jobs, began, now_ms, is_final);
        let Some(Group { id, .. }) = group.filter(|_| self.of_groups) else {
            return;
        };
        let groups = untold.groups.entry(minute - minute % GROUP_MINUTES).or_default();
        let of = match groups.get_mut(id) {
            Some(of) => of,
            None => groups.entry(id.clone()).or_default(),
        };
        of.ended(jobs, began, now_ms, is_final);
    }

    /// Whether it is to be told before its time.
    pub(crate) fn is_full(&self) -> bool {
        self.of_groups && self.untold().groups.values().map(HashMap::len).sum::<usize>() >= MOST_GROUPS
    }

    /// What there is, a call each, as `lua/transitions/note_latency.lua` reads them: of minutes, and of groups. It is told from now on.
    pub(crate) fn take_packed(&self) -> Vec<[Packer; 2]> {
        let Untold { minutes, groups } = std::mem::take(&mut *self.untold());
        if minutes.is_empty() {
            return Vec::new();
        }
        let mut packed = Packer::default();
        packed.array(2 * minutes.len());
        for (minute, of) in &minutes {
            of.pack(packed.int(*minute as i64));
        }
        let all = groups
            .iter()
            .flat_map(|(minute, groups)| groups.iter().map(move |(id, of)| (id, minute, of)));
        let all: Vec<_> = all.collect();
        let (first, others) = all.split_at(all.len().min(GROUPS_A_CALL));
        let mut calls = vec![[packed, pack_groups(first)]];
        calls.extend(
            others
                .chunks(GROUPS_A_CALL)
                .map(|some| [Packer::of_texts([].into_iter()), pack_groups(some)]),
        );
        calls
    }
}

fn pack_groups(groups: &[(&String, &u64, &Latency)]) -> Packer {
    let mut packed = Packer::default();
    packed.array(3 * groups.len());
    for (id, minute, of) in groups {
        of.pack(packed.str(id).int(**minute as i64));
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::garbage::{changes, Chance};

    #[test]
    fn a_percentile_is_right_within_the_square_root_of_two() {
        let mut chance = Chance::of_run(21);
        for _ in 0..changes() / 20 {
            let mut all: Vec<u64> = (0..=chance.below(300)).map(|_| 1 << chance.below(29)).collect();
            all.iter_mut().for_each(|ms| *ms += chance.below(*ms as usize) as u64);
            let mut times = Times::default();
            all.iter().for_each(|ms| times.note(*ms, 1));
            all.sort_unstable();
            for percent in [1, 50, 95, 99, 100] {
                let exact = all[(all.len() * percent as usize).div_ceil(100) - 1] as f64;
                let told = times.percentile_ms(percent).expect("some jobs");
                assert!(exact <= told && told < exact * 1.415, "{percent}: {exact} {told}");
            }
            assert_eq!((times.count(), times.sum_ms), (all.len() as u64, all.iter().sum()));
        }
    }

    #[test]
    fn the_scale_has_two_ends() {
        let mut times = Times::default();
        assert_eq!((times.percentile_ms(50), times.count()), (None, 0));
        times.note(0, 1);
        assert_eq!(times.percentile_ms(99), Some(1.0));
        times.note(u64::MAX, 1);
        assert_eq!(times.percentile_ms(99), Some(step_end_ms(LAST_STEP)));
        assert!(step_end_ms(LAST_STEP) > 7.0 * 86_400_000.0);
        assert_eq!(times.steps, BTreeMap::from([(0, 1), (LAST_STEP + 1, 1)]));
    }

    fn times_in(reader: &mut Reader<'_>) -> Latency {
        let before = reader.rest();
        reader.skip().expect("times");
        let mut of = Latency::default();
        of.add_stored(&before[..before.len() - reader.rest().len()])
            .expect("times");
        of
    }

    #[test]
    fn what_is_measured_is_told_once_by_minutes() {
        let measured = Measured::default();
        let began = Began {
            added_ms: 59_000,
            ready_ms: Some(59_000),
            taken_ms: 59_004,
        };
        let group = Group::of("a");
        measured.ended(2, began, Some(&group), 59_010, true);
        let other = Began {
            ready_ms: None,
            ..began
        };
        measured.ended(1, other, None, 60_004, false);
        let [[minutes, groups]] = &measured.take_packed()[..] else {
            panic!("one call");
        };
        assert!(measured.take_packed().is_empty());
        assert_eq!(groups.0, [0x90]);
        let mut reader = Reader::new(&minutes.0);
        assert_eq!(reader.array().expect("minutes"), 4);
        let mut minute = || (reader.int().expect("a minute"), times_in(&mut reader));
        let times = |sum_ms, step, jobs| Times {
            sum_ms,
            steps: BTreeMap::from([(step, jobs)]),
        };
        let first = Latency {
            waiting: times(8, 4, 2),
            running: times(12, 6, 2),
            completion: times(20, 7, 2),
            added: 0,
        };
        assert_eq!(minute(), (0, first));
        let second = Latency {
            running: times(1000, 20, 1),
            ..Latency::default()
        };
        assert_eq!(minute(), (1, second));
    }

    #[test]
    fn groups_are_told_by_five_minutes_fifty_a_call() {
        let measured = Measured::new(true);
        let of = |group: usize| Group::of(group.to_string());
        for group in (0..250).chain(0..1) {
            measured.ended(1, Began::default(), Some(&of(group)), 11 * 60_000, true);
        }
        measured.ended(1, Began::default(), Some(&of(0)), 9 * 60_000, true);
        let mut told = Vec::new();
        let calls = measured.take_packed();
        for (at, [minutes, groups]) in calls.iter().enumerate() {
            let mut reader = Reader::new(&minutes.0);
            assert_eq!(reader.array().expect("minutes"), if at == 0 { 4 } else { 0 });
            let mut reader = Reader::new(&groups.0);
            for _ in 0..reader.array().expect("groups") / 3 {
                let group: usize = String::from_utf8_lossy(reader.bytes().expect("a group"))
                    .parse()
                    .expect("a number");
                let minute = reader.int().expect("a minute");
                told.push((minute, group, times_in(&mut reader).completion.count()));
            }
        }
        told.sort_unstable();
        let expected = (0..250).map(|group| (10, group, if group == 0 { 2 } else { 1 }));
        assert_eq!(
            (calls.len(), told),
            (6, [(5, 0, 1)].into_iter().chain(expected).collect())
        );
    }

    #[test]
    fn ten_thousand_groups_are_full() {
        let measured = Measured::new(true);
        for group in 0..MOST_GROUPS {
            assert!(!measured.is_full());
            let group = Group::of(group.to_string());
            measured.ended(1, Began::default(), Some(&group), 60_000, true);
        }
        assert!(measured.is_full());
        assert_eq!(measured.take_packed().len(), MOST_GROUPS / GROUPS_A_CALL);
        assert!(!measured.is_full());
    }

    #[test]
    fn what_is_stored_is_read_or_refused() {
        let mut chance = Chance::of_run(22);
        for _ in 0..changes() {
            let bytes = chance.change(&[0x93, 0x93, 9, 6, 1, 0x91, 0, 0x93, 9, 6, 1]);
            let _ = Latency::default().add_stored(&bytes);
        }
    }
}
