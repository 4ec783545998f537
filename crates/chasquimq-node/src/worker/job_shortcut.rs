//! The seam between the plain way of jobs, which is messages of the engine's, and a faster one.

use std::sync::Arc;

use chasquimq::worker::{IdleSocket, Message};
use napi::Env;

use super::messages::WorkerMessage;
use crate::sink::Sink;

/// A faster way for jobs than messages. All of it happens on JavaScript's thread, but for [`JobShortcut::sending`].
pub trait JobShortcut: Send + Sync {
    /// The way messages take; jobs take it as well while some are under way.
    fn use_sink(&self, sink: Sink<Message, WorkerMessage>);
    /// A message goes to JavaScript by the sink.
    fn sending(&self);
    /// It is there.
    fn received(&self);
    /// Watches a socket instead of the one before. False when that cannot be.
    fn watch(self: Arc<Self>, env: Env, socket: IdleSocket) -> bool;
    /// Ends went to the server by the socket that is watched: it is about to answer.
    fn recording(&self);
    /// Sends how jobs ended that an add had taken along, as the add was sent.
    fn carry(self: Arc<Self>, socket: IdleSocket, number: i64, command: &[u8]);
    /// Watches no more, and runs nothing more.
    fn close(&self);
}
