//! Times: whose they are, and how long.

use std::{
    future::{poll_fn, Future},
    ops::{Add, Sub},
    pin::pin,
    task::Poll,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Longest delay, and latest time, in ms: the greatest number to which JavaScript and Lua count without a gap, 285,000 years.
///
/// What is longer, infinite say, is taken for it, and never overflows: a job that was to wait for ever must not start at once.
/// The scores of delayed jobs (`lua/states/delayed.lua`) are 4096 times as large, and doubles, too. Past the year 2039 they have
/// fewer bits left for the order within one millisecond, and the time itself stays exact.
pub const LONGEST_MS: u64 = (1 << 53) - 1;

/// A number of milliseconds, or a time, as JavaScript has it: below 0 and NaN are 0.
pub fn millis(ms: f64) -> u64 {
    (ms as u64).min(LONGEST_MS)
}

/// When a job is due, epoch ms.
pub(crate) fn due_ms(timestamp: u64, delay_ms: u64) -> u64 {
    timestamp.min(LONGEST_MS) + delay_ms.min(LONGEST_MS)
}

/// Readings that are further apart than this, which is longer than calls take, are not of one clock.
pub const FOREIGN_AFTER_MS: u64 = 250;

/// This machine's clock, epoch ms.
pub fn system_now_ms() -> u64 {
    system_now_us() as u64 / 1000
}

/// This machine's clock, in microseconds since the epoch.
pub fn system_now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}

/// True when a caller's clock, read just now, is not this machine's: a fake clock in a test, for instance.
pub fn is_foreign(caller_now_ms: u64) -> bool {
    system_now_ms().abs_diff(caller_now_ms) > FOREIGN_AFTER_MS
}

/// A moment from which time is counted by two clocks, of which the later one counts: the first stands still while the machine sleeps, the second may be
/// set back. Servers go on meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    at: Instant,
    of_day: SystemTime,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self {
            at: Instant::now(),
            of_day: SystemTime::now(),
        }
    }

    /// Time since an earlier one.
    pub(crate) fn since(&self, earlier: &Self) -> Duration {
        let of_day = self.of_day.duration_since(earlier.of_day).unwrap_or_default();
        self.at.saturating_duration_since(earlier.at).max(of_day)
    }

    /// Time that has passed.
    pub(crate) fn elapsed(&self) -> Duration {
        Self::now().since(self)
    }

    /// What comes of work, unless so much time has passed since this moment. It goes no step further then, also where a machine has slept meanwhile.
    pub(crate) async fn within<T>(self, time: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut rest = pin!(tokio::time::sleep(time.saturating_sub(self.elapsed())));
        poll_fn(|context| {
            if self.elapsed() >= time {
                return Poll::Ready(None);
            }
            match work.as_mut().poll(context) {
                Poll::Ready(done) => Poll::Ready(Some(done)),
                Poll::Pending => rest.as_mut().poll(context).map(|()| None),
            }
        })
        .await
    }
}

/// Of a moment that is not long ago.
impl From<Instant> for Moment {
    fn from(at: Instant) -> Self {
        let now = Self::now();
        match at.checked_duration_since(now.at) {
            Some(ahead) => Self {
                at,
                of_day: now.of_day + ahead,
            },
            None => now - (now.at - at),
        }
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self {
            at: self.at + time,
            of_day: self.of_day + time,
        }
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, time: Duration) -> Self {
        Self {
            at: self.at - time,
            of_day: self.of_day - time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Of a machine that has slept for an hour since, and of one whose clock was set back by an hour.
    fn moments() -> [Moment; 2] {
        let now = Moment::now();
        let slept = Moment {
            of_day: now.of_day - HOUR,
            ..now
        };
        let set_back = Moment {
            at: now.at - HOUR / 2,
            of_day: now.of_day + HOUR,
        };
        [slept, set_back]
    }

    #[test]
    fn time_goes_on_while_a_machine_sleeps_and_when_its_clock_is_set_back() {
        let [slept, set_back] = moments();
        assert!(slept.elapsed() >= HOUR);
        assert!(set_back.elapsed() >= HOUR / 2);
        assert!(Moment::now().elapsed() < HOUR / 4);
        let ago = Moment::from(Instant::now() - HOUR / 2).elapsed();
        assert!(ago >= HOUR / 2 && ago < HOUR);
        assert!(Moment::from(Instant::now() + HOUR).elapsed().is_zero());
    }

    #[tokio::test]
    async fn work_goes_no_step_further_after_its_time() {
        let [slept, _] = moments();
        let work = async { panic!("it goes on") };
        assert_eq!(slept.within::<()>(HOUR / 2, work).await, None);
        assert_eq!(Moment::now().within(HOUR, async { 5 }).await, Some(5));
        let never = std::future::pending::<()>();
        assert_eq!(Moment::now().within(Duration::from_millis(1), never).await, None);
    }
}
