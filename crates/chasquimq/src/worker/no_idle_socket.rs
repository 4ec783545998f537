//! This system has no sockets that an event loop of somebody else's could watch: see `idle_socket`.

use std::{convert::Infallible, time::Instant};

use redis::Value;

use super::{
    asked::Behind,
    fetch::Answer,
    flush::Flush,
    short_way::{SentStep, ShortWay},
    standing::Standing,
};
use crate::{error::Result, redis::connection::Connection};

/// There are none.
#[derive(Debug, Clone)]
pub struct IdleSocket(Infallible);

#[derive(Debug)]
#[expect(dead_code, reason = "it has no end where it has no beginning")]
pub(super) enum End {
    Stepped(Behind, Value),
    Taken(Behind, Box<Result<Answer>>),
    Lost(Behind),
    Recorded(Box<SentStep>, Option<Value>),
    Told,
}

impl IdleSocket {
    pub(super) async fn open(_connection: &Connection) -> Option<Self> {
        None
    }

    pub(super) fn is_usable(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn begin(
        &self,
        _commands: &[u8],
        _behind: Behind,
        _over: Instant,
        _standing: Standing,
        _short_way: Option<ShortWay>,
    ) {
        match self.0 {}
    }

    pub(super) fn over(&self) -> Instant {
        match self.0 {}
    }

    pub(super) fn hold_back(&self, _held_back: bool) {
        match self.0 {}
    }

    pub(super) async fn ended(&self) {
        match self.0 {}
    }

    pub(super) fn end(&self) -> Option<(End, Standing)> {
        match self.0 {}
    }

    pub(super) fn look(&self) -> Option<(End, Standing)> {
        match self.0 {}
    }

    pub(super) fn break_off(&self) -> (End, Standing) {
        match self.0 {}
    }

    pub(super) fn finish(&self, _flush: Flush) -> std::result::Result<(), Flush> {
        match self.0 {}
    }

    pub(super) fn close(&self) {
        match self.0 {}
    }
}
