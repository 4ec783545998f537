//! How an idle worker waits: on the queue's wake marker, with a connection of its own, because the wait blocks it.
//!
//! A worker that holds no job sends its next step right behind the wait, in one pipeline: the server carries it out the moment the
//! marker comes, and the jobs arrive without another round trip. Such a step is numbered like any other, so when the wait is broken
//! off or its answer is lost, the loop sends the same step again and learns what became of it.

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Value};
use tokio::sync::{mpsc, Notify};

use crate::{keys::Keys, server::conn::Connection};

// the server answers a wait within its time; a connection that does not is dead
const GRACE: Duration = Duration::from_secs(1);
// a server that refuses is not asked without end
const REFUSED_PAUSE: Duration = Duration::from_millis(100);

/// What the waiter is asked.
struct Ask {
    time: Duration,
    step: Option<Cmd>,
}

/// How a wait ended.
#[derive(Debug)]
pub(super) enum Woken {
    /// The marker came (true), or the time was over.
    Marker(bool),
    /// The step behind the wait was carried out.
    Stepped(Value),
    /// It is not known whether the step behind the wait was carried out.
    Lost,
}

/// What is being waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Pending {
    Nothing,
    Marker,
    /// The marker, with the step of this number behind it.
    Step(i64),
}

/// The loop's end of the waiting task.
pub(super) struct Waiter {
    ask: mpsc::Sender<Ask>,
    woken: mpsc::Receiver<Woken>,
    cancel: Arc<Notify>,
    pub(super) pending: Pending,
}

impl Waiter {
    /// Starts the waiting task; it ends with its connection, or with this value.
    pub(super) fn start(connection: Connection, keys: &Keys) -> Self {
        let (ask, asked) = mpsc::channel(1);
        let (wake, woken) = mpsc::channel(1);
        let cancel = Arc::new(Notify::new());
        tokio::spawn(wait_when_asked(
            connection,
            keys.key("wake"),
            asked,
            wake,
            cancel.clone(),
        ));
        Self {
            ask,
            woken,
            cancel,
            pending: Pending::Nothing,
        }
    }

    /// Starts to wait. Call it only when nothing is pending.
    pub(super) fn wait(&mut self, time: Duration, step: Option<(i64, Cmd)>) {
        let pending = step
            .as_ref()
            .map_or(Pending::Marker, |(number, _)| Pending::Step(*number));
        let step = step.map(|(_, command)| command);
        if self.ask.try_send(Ask { time, step }).is_ok() {
            self.pending = pending;
        }
    }

    /// The end of the wait under way, and the number of the step behind it (0 = none).
    pub(super) async fn woken(&mut self) -> (Woken, i64) {
        let woken = self.woken.recv().await.unwrap_or(Woken::Marker(false));
        let number = match self.pending {
            Pending::Step(number) => number,
            _ => 0,
        };
        self.pending = Pending::Nothing;
        (woken, number)
    }

    /// Breaks the wait off.
    pub(super) async fn break_off(&mut self) -> (Woken, i64) {
        self.cancel.notify_one();
        self.woken().await
    }
}

async fn wait_when_asked(
    connection: Connection,
    marker: String,
    mut asked: mpsc::Receiver<Ask>,
    woken: mpsc::Sender<Woken>,
    cancel: Arc<Notify>,
) {
    while let Some(ask) = asked.recv().await {
        let behind = ask.step.is_some();
        let result = tokio::select! {
            result = tokio::time::timeout(ask.time + GRACE, wait_once(&connection, &marker, ask)) => result,
            () = cancel.notified() => {
                connection.discard_connection();
                Ok(if behind { Woken::Lost } else { Woken::Marker(false) })
            }
        };
        if connection.is_closed() {
            return;
        }
        let result = result.unwrap_or_else(|_| {
            connection.drop_connection();
            if behind {
                Woken::Lost
            } else {
                Woken::Marker(false)
            }
        });
        if woken.send(result).await.is_err() {
            return;
        }
    }
}

async fn wait_once(connection: &Connection, marker: &str, ask: Ask) -> Woken {
    let mut wait = redis::cmd("BZPOPMIN");
    // 0 would be for ever
    wait.arg(marker).arg(ask.time.as_secs_f64().max(0.001));
    let mut pipeline = redis::pipe();
    pipeline.add_command(wait);
    let behind = ask.step.is_some();
    if let Some(step) = ask.step {
        pipeline.add_command(step);
    }
    let answers = match connection.send_pipeline_once(&pipeline, 1 + usize::from(behind)).await {
        Ok(answers) => answers,
        Err(_) => {
            tokio::time::sleep(REFUSED_PAUSE).await;
            return if behind { Woken::Lost } else { Woken::Marker(false) };
        }
    };
    let mut answers = answers.into_iter().map(Value::extract_error);
    let came = matches!(answers.next(), Some(Ok(reply)) if reply != Value::Nil);
    match answers.next() {
        None if behind => Woken::Lost,
        None => Woken::Marker(came),
        Some(Ok(reply)) => Woken::Stepped(reply),
        // not known to the server yet, or refused: the loop steps itself
        Some(Err(_)) => Woken::Lost,
    }
}
