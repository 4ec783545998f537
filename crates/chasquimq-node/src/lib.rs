//! The Node.js addon of ChasquiMQ: converts and calls, decides nothing.

mod convert;
mod error;
mod events;
mod queue;
mod runtime;
mod sink;
mod worker;
