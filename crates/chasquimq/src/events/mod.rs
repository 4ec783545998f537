//! The event log: reads its batched entries (`lua/queue/events.lua`) and takes them apart into BullMQ's events.

mod ending;
mod entries;
mod reader;
pub(crate) mod unpack;

pub(crate) use ending::find_ending;
pub use reader::{EventMessage, EventReader};
pub use unpack::{Event, EventTexts};
