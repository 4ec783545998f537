//! This system has no sockets that an event loop of somebody else's could watch: see `idle_socket`.

use std::convert::Infallible;

use redis::Value;

use super::{fetch::Answer, in_flight::InFlight};
use crate::{error::Result, redis::connection::Connection};

/// There are none.
#[derive(Debug, Clone)]
pub struct IdleSocket(Infallible);

#[derive(Debug)]
#[expect(dead_code, reason = "it has no end where it has no beginning")]
pub(super) enum End {
    Stepped(Value),
    Taken(Result<Answer>),
    Lost,
}

impl IdleSocket {
    pub(super) async fn open(_connection: &Connection) -> Option<Self> {
        None
    }

    pub(super) fn is_usable(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn begin(&self, _commands: &[u8], _holdings: InFlight) {
        match self.0 {}
    }

    pub(super) fn hold_back(&self, _held_back: bool) {
        match self.0 {}
    }

    pub(super) async fn ended(&self) {
        match self.0 {}
    }

    pub(super) fn end(&self) -> Option<(End, InFlight)> {
        match self.0 {}
    }

    pub(super) fn look(&self) -> Option<(End, InFlight)> {
        match self.0 {}
    }

    pub(super) fn break_off(&self) -> (End, InFlight) {
        match self.0 {}
    }

    pub(super) fn close(&self) {
        match self.0 {}
    }
}
