//! The Node.js addon of ChasquiMQ: converts and calls, decides nothing.
//!
//! Reading order: `queue` and `worker`, the plain way of adds and jobs; `low_latency`, the fast one, behind a seam of two traits.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]
#![cfg_attr(
    not(all(unix, feature = "low-latency")),
    allow(dead_code, reason = "only a shortcut uses it")
)]

mod connection;
mod error;
mod events;
#[cfg_attr(not(all(unix, feature = "low-latency")), path = "plain.rs")]
mod low_latency;
mod queue;
mod runtime;
mod sink;
mod text;
mod worker;
