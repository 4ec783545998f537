//! The Node.js addon of ChasquiMQ: converts and calls, decides nothing.

mod connection;
mod error;
mod events;
#[cfg(unix)]
mod low_latency;
mod queue;
mod runtime;
mod sink;
mod worker;
