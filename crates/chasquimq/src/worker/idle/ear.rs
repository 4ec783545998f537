//! Has the server tell a worker of work, by a channel of the worker's own, over a connection that the workers of a thread share.

use std::{sync::Arc, time::Duration};

use super::{standby::Standby, wait_task::REFUSED_PAUSE};
use crate::{error::Error, keys::Keys, redis::connection::Connection};

/// A user who may not use channels, and a server that has none, are asked again after so long.
const ASKED_AGAIN: Duration = Duration::from_secs(60);

const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The worker's channel (`lua/states/waiting_workers.lua`).
fn channel_of(keys: &Keys, id: &str) -> String {
    keys.key(&format!("worker:{id}"))
}

/// Listens until the connection is closed.
pub(super) async fn listen(connection: Connection, keys: Keys, id: String, standby: Standby) {
    let channel = channel_of(&keys, &id);
    loop {
        match connection.listen(&channel, Arc::new(standby.clone())).await {
            Ok(wire) => {
                standby.begins_to_hear(&wire);
                tokio::select! {
                    () = wire.ended() => {}
                    () = standby.lost() => {}
                    _ = connection.rest(FOR_EVER) => {}
                }
                standby.hears_no_more();
                if connection.is_closed() {
                    return wire.leave_channel(&channel);
                }
            }
            Err(Error::Closed) => return,
            Err(Error::Refused(_)) => {
                standby.is_refused();
                if connection.rest(ASKED_AGAIN).await.is_err() {
                    return;
                }
            }
            Err(_) => {
                if connection.rest(REFUSED_PAUSE).await.is_err() {
                    return;
                }
            }
        }
    }
}
