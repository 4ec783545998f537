//! How much to take. A worker asks for what it can start now; it asks for more only while its own recent handlers are so short that the
//! surplus starts within a few milliseconds.
//!
//! While few jobs wait, and another worker for them (`lua/transitions/step.lua`), a worker gets one job, whatever slots it has, and twice as many each
//! time that whoever runs jobs is heard after it started those before: a handler that blocks its event loop keeps no job that others could start. Where
//! nobody waits, it fills its slots, and looks for what is due one soon after the other without asking again.

use std::time::{Duration, Instant};

/// Handlers seen before any surplus is taken: small programs see exactly what their slots hold.
const SEEN_BEFORE_SURPLUS: u64 = 50;
/// Surplus has to start within this, or while a step is on its way to a server that is further away.
const WINDOW_MS: f64 = 5.0;
/// A way that is counted, at most.
const LONGEST_WAY_MS: f64 = 500.0;
/// Jobs are counted over so much time at least in which there were some: outcomes that were held up by an answer come close upon each other.
const SAMPLE_MS: f64 = 2.0;
/// Jobs that take so much longer than others did are long: what is taken in advance would wait behind one. No surplus is taken until as many as at first
/// were not.
const LONG_MS: f64 = 10.0;
/// Surplus at most, jobs.
const MOST: f64 = 2048.0;

/// How long every worker is thought to be busy, once they were found to be, or there were jobs for all.
const ALL_BUSY: Duration = Duration::from_millis(20);

/// How long what ended may wait for more to end. A step costs the server about as much as ten jobs in it do.
pub(crate) const SHARE: Duration = Duration::from_millis(8);
const SHARE_MS: f64 = SHARE.as_millis() as f64;
/// So many ends share a step cheaply enough: nobody waits for more of them.
pub const ENDS_A_STEP: usize = 16;
/// Ends that are worth waiting for.
const LEAST_EXPECTED: f64 = 1.0;
/// Jobs a ms beyond which as many end during a step's own way as share one cheaply.
const FAST: f64 = 10.0;

/// Watches how fast jobs end.
#[derive(Debug)]
pub(crate) struct Pace {
    seen: u64,
    per_ms: f64,
    since: Instant,
    // ended since the last sample, in so much time
    jobs: u64,
    busy: Duration,
    // how long a step takes there and back, when nothing holds it up
    way_ms: f64,
    // jobs to take at once where another worker may be idle
    reach: u32,
    // when none was, as far as is known
    all_busy: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            seen: 0,
            per_ms: 0.0,
            since: Instant::now(),
            jobs: 0,
            busy: Duration::ZERO,
            way_ms: 0.0,
            reach: 1,
            all_busy: None,
        }
    }
}

impl Pace {
    /// A step was answered after this time. The shortest ways count: what is longer was held up.
    pub(crate) fn stepped(&mut self, way: Duration) {
        let ms = way.as_secs_f64() * 1000.0;
        self.way_ms = match self.way_ms {
            known if known > 0.0 && known < ms => known * 0.95 + ms * 0.05,
            _ => ms,
        };
    }

    /// Jobs were handed over to somebody who had none.
    pub(crate) fn delivered_to_idle(&mut self) {
        self.since = Instant::now();
    }

    /// Jobs ended, the last of them `at` this time: the answer to a step may have come since, and the server be far away. The worker has so many slots.
    pub(crate) fn ended(&mut self, jobs: u64, at: Instant, slots: u32) {
        if jobs == 0 {
            return;
        }
        let took = at.saturating_duration_since(self.since);
        self.busy += took;
        self.since = self.since.max(at);
        self.jobs += jobs;
        let is_first = self.seen == 0;
        self.seen = match self.has_long(jobs.max(slots.into()), took) {
            // those that are seen from now on are
            true if !is_first => 1,
            _ => self.seen + jobs,
        };
        let busy_ms = self.busy.as_secs_f64() * 1000.0;
        if busy_ms < SAMPLE_MS && !is_first {
            return;
        }
        let sample = self.jobs as f64 / busy_ms.max(0.01);
        // handlers that become longer are noticed at once: what is taken in advance waits behind them
        self.per_ms = if is_first || sample < self.per_ms {
            sample
        } else {
            self.per_ms * 0.8 + sample * 0.2
        };
        self.jobs = 0;
        self.busy = Duration::ZERO;
    }

    /// Whether one of so many jobs, between which so much time has passed, is longer than those before: all slots may have begun together.
    fn has_long(&self, jobs: u64, took: Duration) -> bool {
        let expected_ms = jobs as f64 / self.per_ms.max(f64::MIN_POSITIVE);
        took.as_secs_f64() * 1000.0 >= LONG_MS + expected_ms
    }

    /// Surplus was taken back: start again with none.
    pub(crate) fn forget(&mut self) {
        *self = Self {
            since: self.since,
            way_ms: self.way_ms,
            reach: self.reach,
            all_busy: self.all_busy,
            ..Self::default()
        };
    }

    /// The worker comes to wait, until something is due, if that is known.
    pub(crate) fn rests(&mut self, due: Option<Instant>) {
        let knows_more = |busy: Instant| due.is_some_and(|due| due < busy + ALL_BUSY);
        if !self.all_busy.is_some_and(knows_more) {
            self.reach = 1;
        }
    }

    /// Nobody starts what it has.
    pub(crate) fn is_silent(&mut self) {
        (self.reach, self.all_busy) = (1, None);
    }

    /// A step took more than it would have of few jobs while another worker was idle.
    pub(crate) fn found_all_busy(&mut self, at: Instant) {
        (self.reach, self.all_busy) = (u32::MAX, Some(at));
    }

    /// Whoever runs jobs has started what was taken, and is heard.
    pub(crate) fn is_heard(&mut self) {
        self.reach = self.reach.saturating_mul(2);
    }

    /// Jobs to take at once where another worker may be idle.
    pub(crate) fn reach(&self) -> u32 {
        self.reach
    }

    /// Jobs to take in advance, with `held` jobs out and `concurrency` slots.
    pub(crate) fn ahead(&self, held: u32, concurrency: u32) -> u32 {
        if self.seen < SEEN_BEFORE_SURPLUS {
            return 0;
        }
        let most = f64::from(concurrency) + self.surplus();
        (most as u32).saturating_sub(held.max(concurrency))
    }

    /// While ends wait for others, no slot is idle: twice as much as ends in that time, but no more than that is good for.
    fn surplus(&self) -> f64 {
        let shared = if self.is_worth_sharing() {
            2.0 * self.expected()
        } else {
            0.0
        };
        (self.per_ms * self.way_ms.clamp(WINDOW_MS, LONGEST_WAY_MS))
            .max(shared.min(2.0 * ENDS_A_STEP as f64))
            .min(MOST)
    }

    /// Ends in the time for which those that ended may wait.
    fn expected(&self) -> f64 {
        self.per_ms * SHARE_MS
    }

    /// Whether more may be expected to end soon that could share a step with these.
    pub(crate) fn shares(&self, ended: usize) -> bool {
        ended < ENDS_A_STEP && self.seen >= SEEN_BEFORE_SURPLUS && self.is_worth_sharing()
    }

    fn is_worth_sharing(&self) -> bool {
        self.expected() >= LEAST_EXPECTED && self.per_ms < FAST
    }

    /// Within this a job of the surplus starts again, by the pace of late: jobs that started together may end together.
    pub(crate) fn gap(&self, concurrency: u32) -> Duration {
        let handler_ms = f64::from(concurrency) / self.per_ms.max(f64::MIN_POSITIVE);
        Duration::from_secs_f64(handler_ms.min(MOST) / 1000.0).min(self.window())
    }

    /// Within this surplus starts, by the pace of late.
    pub(crate) fn window(&self) -> Duration {
        let shared_ms = if self.is_worth_sharing() { 2.0 * SHARE_MS } else { 0.0 };
        let ms = self.way_ms.clamp(WINDOW_MS, LONGEST_WAY_MS).max(shared_ms);
        Duration::from_secs_f64(ms / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_worker_takes_nothing_in_advance() {
        let mut pace = Pace::default();
        assert_eq!(pace.ahead(0, 10), 0);
        pace.ended(49, Instant::now(), 10);
        assert_eq!(pace.ahead(4, 10), 0);
    }

    #[test]
    fn a_worker_reaches_farther_each_time_that_it_is_heard() {
        let mut pace = Pace::default();
        assert_eq!(pace.reach(), 1);
        pace.is_heard();
        pace.is_heard();
        assert_eq!(pace.reach(), 4);
        pace.forget();
        assert_eq!(pace.reach(), 4);
        pace.rests(None);
        assert_eq!(pace.reach(), 1);
    }

    #[test]
    fn a_worker_that_found_all_busy_fills_its_slots_with_what_is_due_soon() {
        let mut pace = Pace::default();
        let now = Instant::now();
        for (due, reach) in [(ALL_BUSY / 2, u32::MAX), (2 * ALL_BUSY, 1)] {
            pace.found_all_busy(now);
            pace.rests(Some(now + due));
            assert_eq!(pace.reach(), reach);
        }
        pace.found_all_busy(now);
        pace.is_silent();
        assert_eq!(pace.reach(), 1);
        pace.found_all_busy(now);
        pace.rests(None);
        assert_eq!(pace.reach(), 1);
    }

    #[test]
    fn short_handlers_earn_a_surplus_and_lose_it() {
        let mut pace = Pace {
            seen: 100,
            per_ms: 100.0,
            since: Instant::now(),
            ..Pace::default()
        };
        assert_eq!(pace.ahead(0, 10), 500);
        assert_eq!(pace.ahead(300, 10), 210);
        pace.forget();
        assert_eq!(pace.ahead(0, 10), 0);
    }

    #[test]
    fn a_server_that_is_far_away_earns_a_surplus_for_the_way() {
        let mut pace = Pace {
            seen: 100,
            per_ms: 1.0,
            ..Pace::default()
        };
        let surplus = |pace: &Pace| pace.ahead(0, 10);
        let near = surplus(&pace);
        pace.stepped(Duration::from_millis(2));
        assert_eq!(surplus(&pace), near);
        let mut far = Pace::default();
        (far.seen, far.per_ms) = (100, 1.0);
        far.stepped(Duration::from_millis(100));
        assert_eq!(surplus(&far), 100);
        // what held up one step is soon forgotten
        pace.stepped(Duration::from_millis(100));
        pace.stepped(Duration::from_millis(2));
        assert_eq!(surplus(&pace), near);
        far.stepped(Duration::from_secs(60));
        assert_eq!(surplus(&far), 500);
        far.forget();
        assert_eq!(surplus(&far), 0);
    }

    #[test]
    fn a_pace_that_changes_is_noticed_however_short_the_batches_are() {
        let mut pace = Pace::default();
        // a first job that was slow
        pace.since -= Duration::from_millis(1000);
        pace.ended(60, Instant::now(), 10);
        assert_eq!(pace.ahead(0, 10), 0);
        for _ in 0..100 {
            pace.delivered_to_idle();
            pace.since -= Duration::from_millis(1);
            pace.ended(100, Instant::now(), 10);
        }
        let surplus = pace.ahead(0, 10);
        assert!(surplus > 300, "{surplus}");
    }

    #[test]
    fn ends_wait_for_others_that_are_expected() {
        let mut pace = Pace {
            seen: 100,
            per_ms: 1.0,
            since: Instant::now(),
            ..Pace::default()
        };
        assert!(pace.shares(1));
        assert!(!pace.shares(ENDS_A_STEP));
        for rare_or_fast in [0.1, 100.0] {
            pace.per_ms = rare_or_fast;
            assert!(!pace.shares(1));
        }
        pace.forget();
        assert!(!pace.shares(1));
    }

    #[test]
    fn one_long_handler_among_short_ones_earns_none_for_a_while() {
        let begun = Instant::now();
        let mut at = begun;
        let mut ended = |pace: &mut Pace, jobs: u64, ms: u64, slots| {
            at += Duration::from_millis(ms);
            pace.ended(jobs, at, slots);
        };
        let mut pace = Pace {
            since: begun,
            ..Pace::default()
        };
        for _ in 0..60 {
            ended(&mut pace, 1, 1, 1);
        }
        assert!(pace.ahead(0, 1) > 0);
        ended(&mut pace, 1, 100, 1);
        for _ in 0..SEEN_BEFORE_SURPLUS - 1 {
            assert_eq!(pace.ahead(0, 1), 0);
            ended(&mut pace, 1, 1, 1);
        }
        assert!(pace.ahead(0, 1) > 0);

        // slots that begin together end together, and not all of them are told at once
        let mut pace = Pace {
            since: begun,
            ..Pace::default()
        };
        for _ in 0..10 {
            ended(&mut pace, 4, 20, 20);
            ended(&mut pace, 16, 0, 20);
        }
        assert!(pace.ahead(0, 20) > 0);
    }

    #[test]
    fn long_handlers_earn_none() {
        let pace = Pace {
            seen: 100,
            per_ms: 0.09,
            since: Instant::now(),
            ..Pace::default()
        };
        assert_eq!(pace.ahead(0, 10), 0);
    }

    #[test]
    fn the_way_to_a_server_that_is_far_away_is_no_time_of_the_handlers() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        for _ in 0..100 {
            // a hundred jobs end within 1 ms, while a step is under way for 10 ms
            pace.since = now;
            pace.ended(100, now + Duration::from_millis(1), 10);
            now += Duration::from_millis(10);
        }
        let surplus = pace.ahead(0, 10);
        assert!(surplus > 300, "{surplus}");
    }
}
