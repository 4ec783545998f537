//! Logins that end: a connection that is open logs in anew before.

use std::time::{Duration, Instant};

use super::{ConnectionEvent, Session};
use crate::redis::{
    link::Link,
    reach::login::{in_time, log_in_anew},
};

/// What part of the time that is left is waited for before that. What a command holds up takes a part of the rest.
const PART: f64 = 0.75;
/// How soon it is tried again where it fails, and no login is tried sooner.
const PAUSE: Duration = Duration::from_secs(1);

impl Session {
    /// Sees to it, as long as the connection is open. What is refused is told; the server goes by the last login then.
    pub(super) fn keep_logged_in(&self, link: &Link) {
        if link.login_ends().is_none() {
            return;
        }
        let (link, listener) = (link.downgrade(), self.listener.clone());
        tokio::spawn(async move {
            while let Some(ends) = link.upgrade().and_then(|link| link.login_ends()) {
                let left = ends.saturating_duration_since(Instant::now());
                tokio::time::sleep(left.mul_f64(PART).max(PAUSE)).await;
                let Some(link) = link.upgrade() else { return };
                if let Err(error) = in_time(link.server(), log_in_anew(&link)).await {
                    listener(ConnectionEvent::Failed(error));
                }
            }
        });
    }
}
