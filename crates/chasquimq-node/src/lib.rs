//! The Node.js addon of ChasquiMQ: converts and calls, decides nothing.

mod adds;
mod convert;
mod error;
mod events;
#[cfg(unix)]
mod lane;
mod queue;
mod runtime;
mod sink;
mod worker;
