//! The task that waits for a marker by a connection of its own, which the wait blocks (`idle_wait`).

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Value};
use tokio::sync::{mpsc, Notify};

use crate::{
    error::Result,
    redis::{
        call::{
            library::{args, WAKE_NEXT},
            reply::int,
        },
        connection::Connection,
    },
    worker::step_request::GRACE,
};

// a server that refuses is not asked without end
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// What the task is asked.
pub(crate) struct Ask {
    pub(crate) marker: String,
    pub(crate) time: Duration,
}

/// Waits as it is asked, until nobody can ask any more. Tells whether the marker came.
pub(crate) async fn wait_when_asked(
    connection: Connection,
    mut request: mpsc::Receiver<Ask>,
    woken: mpsc::Sender<bool>,
    cancel: Arc<Notify>,
) {
    while let Some(ask) = request.recv().await {
        let came = tokio::select! {
            came = tokio::time::timeout(ask.time + GRACE, wait_once(&connection, &ask)) => came,
            () = cancel.notified() => {
                connection.discard_connection();
                Ok(false)
            }
        };
        if connection.is_closed() {
            return;
        }
        let came = came.unwrap_or_else(|_| {
            connection.drop_connection();
            false
        });
        if woken.send(came).await.is_err() {
            return;
        }
    }
}

async fn wait_once(connection: &Connection, ask: &Ask) -> bool {
    match connection
        .wait_once(ask.time, |time| marker_wait(&ask.marker, time))
        .await
    {
        Ok(reply) => reply != Value::Nil,
        // a wait that is refused is over at once; what refuses may lead to a server that is no master any more
        Err(_) => {
            connection.discard_connection();
            tokio::time::sleep(REFUSED_PAUSE).await;
            false
        }
    }
}

/// Wakes another worker than this one, which heard of work and has no use for it. Gives whether one was told; else there is a marker for the next one.
pub(crate) async fn wake_next(connection: &Connection, base: &str, marker: &str, id: &str) -> Result<bool> {
    let told = WAKE_NEXT.run(connection, base, &args![marker, id]).await?;
    Ok(int(WAKE_NEXT.name, &told)? == 1)
}

/// The command that waits for a marker.
pub(crate) fn marker_wait(marker: &str, time: Duration) -> Cmd {
    let mut wait = redis::cmd("BZPOPMIN");
    // 0 would be for ever
    wait.arg(marker).arg(time.as_secs_f64().max(0.001));
    wait
}
