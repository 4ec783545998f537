//! Calls: what runs in the server and whose it is, how it is called, once where it must be, and how answers are read.

pub mod commands;
pub(crate) mod functions;
pub mod library;
pub(crate) mod numbered_calls;
pub mod reply;
pub(super) mod scripts;
