//! How an idle worker waits: on the queue's wake marker, with a connection of its own, because the wait blocks it.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::{keys::Keys, server::conn::Connection};

// the server answers a wait within its time; a connection that does not is dead
const GRACE: Duration = Duration::from_secs(1);

/// Waits for the marker each time it is asked to. Says true when it came, false when the time was over.
pub(super) async fn wait_for_marker(
    connection: Connection,
    keys: Keys,
    mut asked: mpsc::Receiver<Duration>,
    woken: mpsc::Sender<bool>,
) {
    let marker = keys.key("wake");
    while let Some(time) = asked.recv().await {
        let mut command = redis::cmd("BZPOPMIN");
        command.arg(&marker).arg(time.as_secs_f64());
        let came = match tokio::time::timeout(time + GRACE, connection.send_once(&command)).await {
            Ok(Ok(reply)) => reply != redis::Value::Nil,
            Ok(Err(_)) if connection.is_closed() => return,
            // the loop looks for itself; a short pause keeps a refusing server from being asked without end
            Ok(Err(_)) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                false
            }
            Err(_) => {
                connection.drop_connection();
                false
            }
        };
        if woken.send(came).await.is_err() {
            return;
        }
    }
}
