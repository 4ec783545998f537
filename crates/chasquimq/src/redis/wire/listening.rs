//! The side of those who listen to channels.

use std::sync::{atomic::Ordering, Arc};

use super::{Listener, Shared, State, Wire};

impl Wire {
    /// Has somebody hear what comes by a channel, once the server is asked to.
    pub(crate) fn add_listener(&self, channel: &str, listener: Arc<dyn Listener>) {
        self.state().news.add(channel, listener);
    }

    /// Nobody listens to this channel any more.
    pub(crate) fn leave_channel(&self, channel: &str) {
        if self.state().news.leave(channel) {
            let mut leave = redis::cmd("SUNSUBSCRIBE");
            leave.arg(channel);
            drop(self.give(leave.get_packed_command(), 1));
        }
    }

    /// The event loop that watches has something to read for one who listens.
    pub(crate) fn expect(&self) {
        self.shared.is_expected.store(true, Ordering::Release);
    }

    /// Reads what an event loop may be too busy to read.
    pub(crate) fn look(&self) {
        let mut state = self.state();
        let _ = self.shared.read(&mut state);
        state.act();
        state.wake();
    }
}

impl Shared {
    /// Looks whether the event loop reads what it has asked for those who listen.
    pub(super) fn see_event_loop(&self, state: &mut State) {
        let Some(watcher) = &mut state.watcher else { return };
        if !self.is_expected.swap(false, Ordering::AcqRel) {
            return;
        }
        watcher.is_late = state.news.waits(watcher.is_late);
        if watcher.is_late {
            self.is_expected.store(true, Ordering::Release);
            (watcher.wake)();
        }
    }
}
