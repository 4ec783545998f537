//! Logins that end: a connection that is open logs in anew before.

use super::{ConnectionEvent, Session};
use crate::redis::{
    link::Link,
    reach::login::{in_time, log_in_anew},
};

impl Session {
    /// Sees to it, as long as the connection is open. What is refused is told; the server goes by the last login then.
    pub(super) fn keep_logged_in(&self, link: &Link) {
        if link.login().due_in().is_none() {
            return;
        }
        let (link, listener) = (link.downgrade(), self.listener.clone());
        tokio::spawn(async move {
            while let Some(due) = link.upgrade().and_then(|link| link.login().due_in()) {
                tokio::time::sleep(due).await;
                let Some(link) = link.upgrade() else { return };
                if let Err(error) = in_time(link.server(), log_in_anew(&link)).await {
                    link.login().note_failure();
                    listener(ConnectionEvent::Failed(error));
                }
            }
        });
    }
}
