//! The Node.js addon of ChasquiMQ: converts and calls, decides nothing.

mod adds;
mod convert;
mod dependencies;
mod error;
mod events;
mod flows;
mod hand;
#[cfg(unix)]
mod js_cell;
#[cfg(unix)]
mod lane;
mod queue;
mod runtime;
mod schedulers;
mod sink;
#[cfg(unix)]
mod spin;
#[cfg(unix)]
mod uv;
#[cfg(unix)]
mod waits;
#[cfg(unix)]
mod watch;
mod worker;
