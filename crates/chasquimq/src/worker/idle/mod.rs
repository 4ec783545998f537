//! How an idle worker waits, and what it does without its loop.
//!
//! `idle_wait` waits, by a connection of its own (`wait_task`) or by a socket that somebody's event loop watches (`idle_socket`); `woken` is how that ends.
//! `short_way` records what a wait brought, `along` is what adds of that event loop do for the worker.

pub(super) mod along;
#[cfg_attr(not(unix), path = "no_idle_socket.rs")]
pub(super) mod idle_socket;
pub(super) mod idle_wait;
pub(super) mod short_way;
pub(super) mod wait_task;
pub(super) mod woken;
