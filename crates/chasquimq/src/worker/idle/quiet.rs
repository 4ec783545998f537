//! How often an idle worker looks whether it has missed something: the longer nothing has happened in its queue, the less often, and with all others of its
//! thread, which asks the server in one call for all of them. A queue in which nothing has happened has no jobs that nobody runs, either.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::redis::{
    connection::Connection,
    gathered::{AtTime, Stored},
};

/// How often a worker looks at a queue in which nothing happens, if its own time is no longer.
const SELDOM: Duration = Duration::from_secs(15);
/// Looks are at multiples of this, as far as a worker looks no more often.
const BEAT: Duration = Duration::from_secs(5);
/// Counted from here.
static FIRST_BEAT: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What the last looks found.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    asked: Option<oneshot::Receiver<Option<Seen>>>,
    seen: Option<Seen>,
    // what the queue was like before the last scan for jobs that nobody runs, or has started in time, and when the next job is one of these
    scanned: Option<Stored>,
    expires: Option<Instant>,
    // how often in a row nothing had happened
    still: u32,
}

#[derive(Debug)]
struct Seen {
    stored: Stored,
    // of the server's clock
    seconds: i64,
    at: Instant,
    // how often another server has taken the place of the last
    servers: u64,
}

impl Quiet {
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Asks what the queue is like now.
    pub fn ask(&mut self, connection: &Connection, base: &str) {
        let (tell, asked) = oneshot::channel();
        self.asked = Some(asked);
        let (connection, base) = (connection.clone(), base.to_owned());
        tokio::spawn(async move {
            let at = Instant::now();
            let state = connection.stored_state(&base).await.ok();
            let servers = connection.servers();
            let seen = state.map(|AtTime { stored, seconds }| Seen {
                stored,
                seconds,
                at,
                servers,
            });
            // who asked may have gone
            let _ = tell.send(seen);
        });
    }

    /// Waits for the answer. Gives whether nothing has happened since the last one, and nothing waits, or should: `due_ms`: when the next job is due, epoch ms,
    /// as far as its worker knows, who looks then by its own clock; below 0: it knows of none.
    pub async fn answer(&mut self, due_ms: i64) -> bool {
        let Some(asked) = &mut self.asked else { return false };
        let seen = asked.await.unwrap_or(None);
        self.asked = None;
        self.see(seen, due_ms)
    }

    fn see(&mut self, seen: Option<Seen>, due_ms: i64) -> bool {
        let is_still = match (&self.seen, &seen) {
            (Some(last), Some(seen)) => {
                let is_past = due_ms >= 0 && due_ms / 1000 < seen.seconds;
                let is_same = last.stored == seen.stored && last.servers == seen.servers;
                is_same && !seen.stored.has_waiting() && !is_past
            }
            _ => false,
        };
        self.still = if is_still { self.still + 1 } else { 0 };
        self.seen = seen;
        is_still
    }

    /// Something has happened.
    pub fn is_over(&mut self) {
        self.still = 0;
    }

    /// When the next look is, of a worker that would look after so long.
    pub fn next_look(&self, time: Duration) -> Instant {
        self.look_after(time, Instant::now())
    }

    fn look_after(&self, time: Duration, now: Instant) -> Instant {
        let longest = time.max(SELDOM);
        let time = (time * 2_u32.saturating_pow(self.still.min(16))).min(longest);
        let beat = match time {
            _ if self.still == 0 || time < BEAT => return now + time,
            _ if time < SELDOM => BEAT,
            _ => SELDOM,
        };
        let since = *FIRST_BEAT;
        let soonest = now.saturating_duration_since(since) + time - beat;
        let beats = soonest.as_micros() / beat.as_micros() + 1;
        since + beat * u32::try_from(beats).unwrap_or(u32::MAX)
    }

    /// Whether a scan would find what the last one left, which is nothing: jobs that became active since the last look, so long ago at most, are nobody's
    /// loss yet.
    pub fn spares_scan(&self, most: Duration) -> bool {
        let Some(seen) = &self.seen else { return false };
        let is_same = self.scanned.as_ref() == Some(&seen.stored);
        let has_expired = self.expires.is_some_and(|at| at <= Instant::now());
        is_same && !seen.stored.has_active() && !has_expired && seen.at.elapsed() <= most
    }

    /// A scan begins.
    pub fn scans(&mut self) {
        self.scanned = self.seen.as_ref().map(|seen| seen.stored.clone());
    }

    /// It is over. `expires`: when the next job is not started in time.
    pub fn has_scanned(&mut self, expires: Option<Instant>) {
        self.expires = expires;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A queue in which so many jobs wait, and so many are active, after so many jobs were added.
    fn seen(added: f64, waiting: f64, active: f64) -> Option<Seen> {
        let state = [added, 0., 0., waiting, active].map(f64::to_le_bytes).concat();
        Some(Seen {
            stored: Stored::new(state, Vec::new()),
            seconds: 1000,
            at: Instant::now(),
            servers: 1,
        })
    }

    #[test]
    fn a_queue_is_still_while_it_stays_as_it_was_and_nothing_waits() {
        let mut quiet = Quiet::default();
        assert!(!quiet.see(seen(1., 0., 0.), -1));
        assert!(quiet.see(seen(1., 0., 0.), -1));
        assert!(!quiet.see(seen(2., 0., 0.), -1));
        assert!(!quiet.see(seen(3., 1., 0.), -1));
        assert!(!quiet.see(seen(3., 1., 0.), -1));
        assert!(!quiet.see(seen(3., 0., 1.), -1));
        assert!(quiet.see(seen(3., 0., 1.), -1));
        // another server may lack what this one had
        let elsewhere = seen(3., 0., 1.).map(|seen| Seen { servers: 2, ..seen });
        assert!(!quiet.see(elsewhere, -1));
        // it could not be asked
        assert!(!quiet.see(None, -1));
        assert!(!quiet.see(seen(3., 0., 1.), -1));
        assert!(quiet.see(seen(3., 0., 1.), 1_000_999));
        // a clock was set, or stood still
        assert!(!quiet.see(seen(3., 0., 1.), 999_999));
    }

    #[test]
    fn looks_become_rarer_and_are_those_of_all_at_once() {
        let mut quiet = Quiet::default();
        let looks = |quiet: &mut Quiet, time: u64, count: usize| -> Vec<Duration> {
            let mut now = *FIRST_BEAT + seconds(100) + Duration::from_millis(300);
            let mut next = || {
                now = quiet.look_after(seconds(time), now);
                quiet.still += 1;
                now - *FIRST_BEAT
            };
            (0..count).map(|_| next()).collect()
        };
        let first = Duration::from_millis(105_300);
        assert_eq!(
            looks(&mut quiet, 5, 5),
            [first, seconds(115), seconds(120), seconds(135), seconds(150)]
        );
        quiet.is_over();
        assert_eq!(looks(&mut quiet, 5, 1), [first]);
        quiet.is_over();
        assert_eq!(
            looks(&mut quiet, 60, 3),
            [Duration::from_millis(160_300), seconds(210), seconds(270)]
        );
        quiet.is_over();
        let brief = looks(&mut quiet, 1, 6).into_iter().map(|at| at.as_secs());
        assert_eq!(brief.collect::<Vec<_>>(), [101, 103, 107, 115, 120, 135]);
    }

    #[test]
    fn a_scan_is_spared_where_the_last_one_left_nothing_and_nothing_has_happened() {
        let mut quiet = Quiet::default();
        assert!(!quiet.spares_scan(seconds(60)));
        quiet.see(seen(1., 0., 0.), -1);
        assert!(!quiet.spares_scan(seconds(60)));
        quiet.scans();
        assert!(quiet.spares_scan(seconds(60)));
        assert!(!quiet.spares_scan(Duration::ZERO));
        quiet.has_scanned(Some(Instant::now() + seconds(60)));
        assert!(quiet.spares_scan(seconds(60)));
        quiet.has_scanned(Some(Instant::now()));
        assert!(!quiet.spares_scan(seconds(60)));
        quiet.see(seen(2., 0., 0.), -1);
        assert!(!quiet.spares_scan(seconds(60)));
        // somebody holds a job, and may be gone
        quiet.see(seen(2., 0., 1.), -1);
        quiet.scans();
        assert!(!quiet.spares_scan(seconds(60)));
    }
}
