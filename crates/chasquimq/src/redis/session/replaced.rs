//! Servers that hang while others have taken their place.

use std::{future::Future, pin::pin, time::Duration};

use tokio::time::Instant;

use super::Session;
#[cfg(unix)]
use crate::redis::{link::Link, reach::options::ConnectOptions};

/// A server that takes longer to reply may have been replaced.
const PATIENCE: Duration = Duration::from_secs(1);

impl Session {
    /// Runs `talk` with a server. `None` when the server hangs and another has replaced it.
    pub(crate) async fn unless_replaced<T>(&self, server: &ConnectOptions, talk: impl Future<Output = T>) -> Option<T> {
        if self.options.discovery.is_none() {
            return Some(talk.await);
        }
        let mut talk = pin!(talk);
        loop {
            let replaced = async {
                tokio::time::sleep(PATIENCE).await;
                self.is_replaced(server).await
            };
            tokio::select! {
                biased;
                done = &mut talk => return Some(done),
                is_replaced = replaced => if is_replaced {
                    return None;
                },
            }
        }
    }

    /// Breaks off a connection to a server that hangs, once another has replaced it: an event loop that watches does not notice.
    #[cfg(unix)]
    pub(crate) fn cut_once_replaced(&self, link: &Link) {
        if self.options.discovery.is_none() {
            return;
        }
        let (own, server, wire) = (self.own.clone(), link.server().clone(), link.wire().downgrade());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PATIENCE).await;
                let (Some(session), Some(silent)) = (own.upgrade(), wire.silent_for()) else {
                    return;
                };
                if silent >= PATIENCE && session.is_replaced(&server).await {
                    return wire.cut();
                }
            }
        });
    }

    async fn is_replaced(&self, server: &ConnectOptions) -> bool {
        // one of those that wait asks, however many they are
        let mut looked = self.looked.lock().await;
        if looked.as_ref().is_none_or(|(at, _)| at.elapsed() >= PATIENCE / 2) {
            let at = Instant::now();
            *looked = Some((at, self.finder.find(&self.options).await.ok()));
        }
        match &*looked {
            Some((_, Some(found))) => (&found.host, found.port) != (&server.host, server.port),
            // no replacement is known
            _ => false,
        }
    }
}
