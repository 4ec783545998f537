//! The task that waits by a connection of its own, which the wait blocks (`idle_wait`).

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Value};
use tokio::sync::{mpsc, Notify};

use super::woken::Woken;
use crate::{
    error::Result,
    redis::{
        call::library::{args, WAKE_NEXT},
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
    pub(crate) step: Option<Cmd>,
}

/// Waits as it is asked, until nobody can ask any more.
pub(crate) async fn wait_when_asked(
    connection: Connection,
    mut request: mpsc::Receiver<Ask>,
    woken: mpsc::Sender<Woken>,
    cancel: Arc<Notify>,
) {
    while let Some(ask) = request.recv().await {
        let behind = ask.step.is_some();
        let result = tokio::select! {
            result = tokio::time::timeout(ask.time + GRACE, wait_once(&connection, ask)) => result,
            () = cancel.notified() => {
                connection.discard_connection();
                Ok(lost(behind))
            }
        };
        if connection.is_closed() {
            return;
        }
        let result = result.unwrap_or_else(|_| {
            connection.drop_connection();
            lost(behind)
        });
        if woken.send(result).await.is_err() {
            return;
        }
    }
}

/// What is known of a wait without an answer; `behind`: a step was sent with it.
fn lost(behind: bool) -> Woken {
    match behind {
        true => Woken::Lost,
        false => Woken::Marker(false),
    }
}

async fn wait_once(connection: &Connection, ask: Ask) -> Woken {
    let mut pipeline = redis::pipe();
    pipeline.add_command(marker_wait(&ask.marker, ask.time));
    let behind = ask.step.is_some();
    if let Some(step) = ask.step {
        pipeline.add_command(step);
    }
    let answers = match connection.send_pipeline_once(&pipeline, 1 + usize::from(behind)).await {
        Ok(answers) => answers,
        Err(_) => {
            tokio::time::sleep(REFUSED_PAUSE).await;
            return lost(behind);
        }
    };
    let mut answers = answers.into_iter().map(Value::extract_error);
    let came = match answers.next() {
        Some(Ok(reply)) => reply != Value::Nil,
        // a wait that is refused is over at once; what refuses may lead to a server that is no master any more
        _ => {
            connection.discard_connection();
            tokio::time::sleep(REFUSED_PAUSE).await;
            false
        }
    };
    match answers.next() {
        None if behind => Woken::Lost,
        None => Woken::Marker(came),
        Some(Ok(reply)) => Woken::Stepped(reply),
        // not known to the server yet, or refused: the loop steps itself
        Some(Err(_)) => Woken::Lost,
    }
}

/// Wakes another worker by a marker that this one heard and has no use for.
pub(crate) async fn wake_next(connection: &Connection, base: &str, marker: &str) -> Result<()> {
    WAKE_NEXT.run(connection, base, &args![marker]).await.map(drop)
}

/// The command that waits for a marker.
pub(crate) fn marker_wait(marker: &str, time: Duration) -> Cmd {
    let mut wait = redis::cmd("BZPOPMIN");
    // 0 would be for ever
    wait.arg(marker).arg(time.as_secs_f64().max(0.001));
    wait
}
