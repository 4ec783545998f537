//! The side of an event loop that watches a connection: it reads what it is answered itself.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use super::{Answer, Listener, Shared, Waiting, Watcher, Wire};
use crate::redis::call::commands::Commands;

/// A connection as an event loop sees it, until it watches no more.
#[derive(Debug)]
pub struct Watched {
    wire: Wire,
    number: u32,
}

/// Which connection it is, of those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireId(usize);

/// An event loop that asks to watch a connection.
#[derive(Debug)]
pub enum Watch {
    /// It does.
    Begins(Watched),
    /// One does already: whoever shares the connection shares this.
    Goes(WireId),
}

impl Wire {
    /// Which one it is.
    pub(crate) fn id(&self) -> WireId {
        WireId(std::sync::Arc::as_ptr(&self.shared) as usize)
    }

    /// From now on this event loop reads; none while another one does. `wake` tells it of answers that the engine has read, on the engine's thread.
    pub(crate) fn watched(&self, wake: impl Fn() + Send + 'static) -> Option<Watched> {
        let mut state = self.state();
        if state.watcher.is_some() {
            return None;
        }
        state.watchers = state.watchers.wrapping_add(1);
        let number = state.watchers;
        let wake = Box::new(wake);
        state.watcher = Some(Watcher {
            number,
            wake,
            is_late: false,
        });
        state.answers.clear();
        self.shared.called.notify_one();
        Some(Watched {
            wire: self.clone(),
            number,
        })
    }

    /// The same, without keeping it open.
    pub(crate) fn downgrade(&self) -> WeakWire {
        WeakWire(std::sync::Arc::downgrade(&self.shared))
    }
}

impl Watched {
    /// Which connection it is, as long as this value is there.
    pub fn id(&self) -> WireId {
        self.wire.id()
    }

    /// The descriptor to watch for reading, as long as this value is there.
    pub fn fd(&self) -> RawFd {
        self.wire.state().transport.socket().as_raw_fd()
    }

    /// Server, database and user: connections of the same see and may do the same.
    pub fn place(&self) -> &str {
        &self.wire.shared.place
    }

    /// As [`Wire::cut`].
    pub fn cut(&self) {
        self.wire.cut();
    }

    /// Sends commands that are answered by so many replies. True when the system has taken all of it.
    /// # Errors
    /// When the connection is broken.
    pub fn send(&self, commands: &Commands<'_>, replies: usize) -> io::Result<bool> {
        let mut state = self.wire.state();
        if state.is_over {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if state.waiting.is_empty() {
            state.since = Instant::now();
        }
        let waiting = (0..replies).map(|_| Waiting::EventLoop(self.number));
        state.waiting.extend(waiting);
        let is_sent = state.transport.send(commands)?;
        if !is_sent {
            self.wire.shared.called.notify_one();
        }
        Ok(is_sent)
    }

    /// Those who have heard something since this was asked.
    pub fn heard(&self) -> Vec<Arc<dyn Listener>> {
        std::mem::take(&mut self.wire.state().news.heard)
    }

    /// Reads what is there, and gives every whole reply.
    /// # Errors
    /// When the connection is broken or closed by the server, or brings what is no reply.
    pub fn receive(&self, answers: &mut Vec<Answer>) -> io::Result<()> {
        let mut state = self.wire.state();
        if let Some(watcher) = &mut state.watcher {
            watcher.is_late = false;
        }
        let read = self.wire.shared.read(&mut state);
        answers.append(&mut state.answers);
        read
    }
}

// the engine reads again
impl Drop for Watched {
    fn drop(&mut self) {
        let mut state = self.wire.state();
        if state.watcher.take_if(|watcher| watcher.number == self.number).is_some() {
            state.answers.clear();
            state.act();
            self.wire.shared.called.notify_one();
        }
    }
}

/// A connection that somebody else keeps open.
pub(crate) struct WeakWire(Weak<Shared>);

impl WeakWire {
    /// For how long something has had no answer; none once it is closed.
    pub fn silent_for(&self) -> Option<Duration> {
        let shared = self.0.upgrade()?;
        let state = shared.state();
        match (state.is_over, state.waiting.is_empty()) {
            (true, _) => None,
            (_, true) => Some(Duration::ZERO),
            _ => Some(state.since.elapsed()),
        }
    }

    /// As [`Wire::cut`].
    pub fn cut(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.end(&mut shared.state());
        }
    }
}
