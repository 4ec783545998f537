//! How an idle worker waits, and what it does without its loop.
//!
//! The server tells a worker of work by a channel (`ear`). Meanwhile what the worker knows is lent (`standby`) to its event loop, which takes a step as soon as there is news,
//! or along with an add (`along`), and records what that brought (`short_way`). `idle_wait` is the worker's loop's end of all that, `woken` how a wait ends. Where the
//! server tells nothing by channels, the worker waits by a connection of its own (`wait_task`). `quiet` says how often it looks all the same.

pub(super) mod along;
mod ear;
pub(super) mod idle_wait;
mod quiet;
pub(super) mod short_way;
pub(super) mod standby;
pub(super) mod wait_task;
pub(super) mod woken;
