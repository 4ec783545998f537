//! The engine's turns at a socket.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{io::Interest, sync::Notify};

use crate::redis::socket::{Socket, Watch};

/// How often is looked after who reads in the engine's place.
const LOOK: Duration = Duration::from_millis(20);

/// What is read and written by turns.
pub(super) trait Driven {
    /// What to wait for; nothing while others do all there is. Gives none when it is over.
    fn wants(&self) -> Option<Option<Interest>>;
    /// The socket is ready: does all that can be done.
    fn turn(&self);
    /// Whether to look after who reads in the engine's place.
    fn looks(&self) -> bool;
    /// Does what that one is too busy to do.
    fn look(&self);
    /// The socket is of no use.
    fn give_up(&self);
}

/// Takes turns as long as it is there. `called`: it may want something else by now.
pub(super) async fn drive(driven: Weak<impl Driven>, socket: Arc<Socket>, called: Arc<Notify>) {
    let mut watch = None;
    loop {
        let is_called = called.notified();
        let Some(wants) = driven.upgrade().and_then(|driven| driven.wants()) else {
            return;
        };
        let Some(interest) = wants else {
            watch = None;
            rest(&driven, is_called).await;
            continue;
        };
        if watch.is_none() {
            watch = Watch::begin(&socket).ok();
        }
        let Some(watch) = &watch else {
            // the system watches no more sockets
            return driven.upgrade().iter().for_each(|driven| driven.give_up());
        };
        let turn = || driven.upgrade().iter().for_each(|driven| driven.turn());
        tokio::select! {
            biased;
            ready = watch.when(interest, turn) => if ready.is_err() {
                return driven.upgrade().iter().for_each(|driven| driven.give_up());
            },
            () = is_called => {}
        }
    }
}

/// There is nothing to do until somebody calls.
async fn rest(driven: &Weak<impl Driven>, is_called: impl Future<Output = ()>) {
    let mut is_called = pin!(is_called);
    while driven.upgrade().is_some_and(|driven| driven.looks()) {
        if tokio::time::timeout(LOOK, is_called.as_mut()).await.is_ok() {
            return;
        }
        driven.upgrade().iter().for_each(|driven| driven.look());
    }
    is_called.await;
}
