//! What a server tells without being asked: by channels, each of which one listens to. For it a connection speaks RESP3, so that answers come between.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use redis::{PushKind, Value};

/// Who listens to a channel. Called under the connection's lock: it asks nothing of the connection.
pub trait Listener: Send + Sync + std::fmt::Debug {
    /// Which one it is, for an event loop that watches.
    fn id(&self) -> u64;
    /// There is news. Whoever has read it goes on with that, or says so ([`Listener::act`]).
    fn hear(&self);
    /// It is asked to look, which it does by itself: the message has a text.
    fn ask(&self);
    /// Nobody else goes on with what was heard: `is_unread`: who watches is too busy.
    fn act(&self, is_unread: bool);
    /// Whether something that an event loop has sent for it is not answered. Where that `is_stuck`, nobody reads the answer, and it is told so.
    fn waits(&self, is_stuck: bool) -> bool;
    /// The server tells nothing more by this connection.
    fn lose(&self);
}

/// Those who listen, by the channel.
#[derive(Default)]
pub(super) struct News {
    listeners: HashMap<Vec<u8>, Arc<dyn Listener>>,
    // they were asked not to be told any more
    leaving: HashSet<Vec<u8>>,
    // those who heard, for whoever reads
    pub(super) heard: Vec<Arc<dyn Listener>>,
}

/// What becomes of news.
pub(super) enum Came {
    /// It is for who listens.
    News,
    /// It answers whoever asked to listen, or not to.
    Answer,
}

impl News {
    /// Somebody listens to a channel.
    pub fn add(&mut self, channel: &str, listener: Arc<dyn Listener>) {
        self.listeners.insert(channel.as_bytes().to_vec(), listener);
    }

    /// Nobody listens any more. Whether somebody did.
    pub fn leave(&mut self, channel: &str) -> bool {
        let channel = channel.as_bytes();
        let did = self.listeners.remove(channel).is_some();
        if did {
            self.leaving.insert(channel.to_vec());
        }
        did
    }

    /// Whether news may come.
    pub fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Whether an event loop has something to read for anybody. Where it `is_stuck`, each is told so.
    pub fn waits(&self, is_stuck: bool) -> bool {
        let mut waits = false;
        for listener in self.listeners.values() {
            waits |= listener.waits(is_stuck);
        }
        waits
    }

    /// Takes what came in.
    pub fn take(&mut self, kind: &PushKind, data: &[Value]) -> Came {
        let Some(Value::BulkString(channel)) = data.first() else {
            return Came::News;
        };
        match kind {
            PushKind::SSubscribe => return Came::Answer,
            PushKind::SUnsubscribe if self.leaving.remove(channel) => return Came::Answer,
            // the slot is another server's
            PushKind::SUnsubscribe => {
                if let Some(listener) = self.listeners.remove(channel) {
                    listener.lose();
                }
            }
            PushKind::SMessage => {
                if let Some(listener) = self.listeners.get(channel) {
                    if matches!(data.get(1), Some(Value::BulkString(text)) if !text.is_empty()) {
                        listener.ask();
                    } else {
                        listener.hear();
                        self.heard.push(listener.clone());
                    }
                }
            }
            _ => {}
        }
        Came::News
    }

    /// It is over.
    pub fn end(&mut self) {
        self.heard.clear();
        self.leaving.clear();
        for (_, listener) in self.listeners.drain() {
            listener.lose();
        }
    }
}
