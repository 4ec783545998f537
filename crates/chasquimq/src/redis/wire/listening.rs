//! The side of those who listen to channels.

use std::sync::{atomic::Ordering, Arc};

use super::{Listener, Wire};

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
