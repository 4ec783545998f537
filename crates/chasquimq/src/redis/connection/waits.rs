//! What waits in the server, or hears what it tells.

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Value};

use super::Connection;
use crate::{
    error::Result,
    redis::wire::{Listener, Wire},
};

impl Connection {
    /// Sends once what waits in the server for so long, or less. `command` is asked for it by the time.
    /// # Errors
    /// As [`Connection::send_once`].
    pub(crate) async fn wait_once(&self, time: Duration, command: impl Fn(Duration) -> Cmd) -> Result<Value> {
        self.once(Some(&command(time)), async |link| {
            let wait = async |time| link.ask_master(&command(time)).await;
            link.login().blocking(time, wait).await
        })
        .await
    }

    /// Has somebody hear what comes by a channel, until the connection that this gives ends.
    /// # Errors
    /// As [`Connection::send_once`]; [`Error::Refused`] where the server tells nothing by channels, or not to this user.
    pub(crate) async fn listen(&self, channel: &str, listener: Arc<dyn Listener>) -> Result<Wire> {
        self.once(None, async |link| {
            let listening = link.listen(channel, listener).await;
            if listening.is_err() {
                link.wire().leave_channel(channel);
            }
            listening.map(|()| link.wire().clone())
        })
        .await
    }
}
