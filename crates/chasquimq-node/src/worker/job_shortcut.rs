//! The seam between the plain way of jobs, which is messages of the engine's, and a faster one.

use std::sync::Arc;

use chasquimq::worker::{Message, Standby};
use napi::Env;

use super::messages::WorkerMessage;
use crate::sink::Sink;

/// What a worker tells JavaScript's thread.
pub enum ToJs {
    /// What the engine tells.
    Tell(Box<Message>),
    /// Work that only this thread may do.
    Run(Box<dyn FnOnce(Env) + Send>),
}

/// A faster way for jobs than messages. All of it happens on JavaScript's thread, but for [`JobShortcut::sending`].
pub trait JobShortcut: Send + Sync {
    /// The way messages take; jobs take it as well while some are under way.
    fn use_sink(&self, sink: Sink<ToJs, WorkerMessage>);
    /// A message goes to JavaScript by the sink.
    fn sending(&self);
    /// It is there.
    fn received(&self);
    /// Watches what the worker hears by, instead of what that was before.
    fn watch(self: Arc<Self>, env: Env, standby: Standby);
    /// Sends how jobs ended whose start went this way, as that was sent.
    fn carry(self: Arc<Self>, number: i64, command: &[u8]);
    /// Watches no more, and runs nothing more.
    fn close(&self);
}
