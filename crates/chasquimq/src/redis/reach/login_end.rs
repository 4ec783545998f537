//! Logins that end.

use std::{
    future::Future,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// What part of the time that is left is waited for before a connection logs in anew.
const PART: f64 = 0.75;
/// How soon it is tried again where it fails, and no login is tried sooner.
const PAUSE: Duration = Duration::from_secs(1);
/// While a login is overdue, as its token is late, what waits in the server is asked for so long at most.
const BRIEF: Duration = Duration::from_millis(50);

/// For how long a connection is logged in.
#[derive(Debug, Default)]
pub(crate) struct Login {
    times: Mutex<Option<Times>>,
    // nothing waits in the server
    unblocked: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    ends: Instant,
    // when to log in anew
    due: Instant,
}

impl Times {
    fn until(ends: Instant) -> Self {
        let now = Instant::now();
        let left = ends.saturating_duration_since(now);
        let due = now + left.mul_f64(PART).max(PAUSE);
        Self { ends, due }
    }
}

impl Login {
    /// It counts for so long.
    pub fn note(&self, lasts: Option<Duration>) {
        let ends = lasts.and_then(|lasts| Instant::now().checked_add(lasts));
        *self.times.lock().unwrap_or_else(PoisonError::into_inner) = ends.map(Times::until);
    }

    /// Another one has failed: the last one counts.
    pub fn note_failure(&self) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        *times = times.map(|times| Times::until(times.ends));
    }

    /// In how long to log in anew; none where it does not end.
    pub fn due_in(&self) -> Option<Duration> {
        let times = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.map(|times| times.due.saturating_duration_since(Instant::now()))
    }

    /// Logs in, while nothing waits in the server: Redis 8 gives no answer to a login that it refuses behind what waited, and each later answer would be
    /// taken for the one before.
    pub async fn unblocked<T>(&self, log_in: impl Future<Output = T>) -> T {
        let _unblocked = self.unblocked.lock().await;
        log_in.await
    }

    /// Does what waits in the server for so long: less where the connection is to log in meanwhile.
    pub async fn blocking<T>(&self, time: Duration, wait: impl AsyncFnOnce(Duration) -> T) -> T {
        let _unblocked = self.unblocked.lock().await;
        let left = self.due_in().map_or(time, |due| due.max(BRIEF));
        wait(time.min(left)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_waits_in_the_server_ends_when_the_connection_is_to_log_in() {
        let (login, minute) = (Login::default(), Duration::from_secs(60));
        let wait = async || login.blocking(minute, async |time| time).await;
        assert_eq!(wait().await, minute);
        login.note(Some(Duration::from_secs(20)));
        let time = wait().await;
        assert!(
            time <= Duration::from_secs(15) && time > Duration::from_secs(10),
            "{time:?}"
        );
        login.note(Some(Duration::from_secs(120)));
        assert_eq!(wait().await, minute);
        // one that has ended is tried again, and does not hurry
        login.note(Some(Duration::ZERO));
        login.note_failure();
        let time = wait().await;
        assert!(time <= PAUSE && time >= BRIEF, "{time:?}");
        assert_eq!(login.blocking(Duration::ZERO, async |time| time).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_logs_in_once_nothing_waits_in_the_server() {
        let login = Login::default();
        let ends = std::sync::Mutex::new(Vec::new());
        let waits = login.blocking(PAUSE, async |time| {
            tokio::time::sleep(time).await;
            ends.lock().expect("ends").push("wait");
        });
        let logs_in = login.unblocked(async { ends.lock().expect("ends").push("login") });
        tokio::join!(biased; waits, logs_in);
        assert_eq!(*ends.lock().expect("ends"), ["wait", "login"]);
    }
}
