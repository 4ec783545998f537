//! This system has no sockets that an event loop of somebody else's could watch: see `idle_socket`.

use std::{convert::Infallible, sync::Arc, time::Instant};

use super::short_way::{End, ShortWay};
use crate::{
    redis::connection::Connection,
    worker::{record::report::Report, standing::Standing, step_request::Behind, take::offers::Offers},
};

/// There are none.
#[derive(Debug, Clone)]
pub struct IdleSocket(Infallible);

impl IdleSocket {
    pub(crate) async fn open(_connection: &Connection, _offers: Arc<Offers>) -> Option<Self> {
        None
    }

    pub(crate) fn is_usable(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn begin(
        &self,
        _commands: Vec<u8>,
        _behind: Behind,
        _over: Instant,
        _standing: Standing,
        _short_way: Option<ShortWay>,
    ) {
        match self.0 {}
    }

    pub(crate) fn over(&self) -> Instant {
        match self.0 {}
    }

    pub(crate) fn hold_back(&self, _held_back: bool) {
        match self.0 {}
    }

    pub(crate) async fn ended(&self) {
        match self.0 {}
    }

    pub(crate) fn end(&self) -> Option<(End, Option<Standing>)> {
        match self.0 {}
    }

    pub(crate) fn look(&self) -> Option<(End, Option<Standing>)> {
        match self.0 {}
    }

    pub(crate) fn break_off(&self, _stays: bool) -> (Vec<End>, Option<Standing>) {
        match self.0 {}
    }

    pub(crate) fn is_waiting(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn told_by(&self, _none: Instant) -> Instant {
        match self.0 {}
    }

    pub(crate) fn had_adds(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn has_no_step(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn begin_alone(&self, _command: Vec<u8>, _over: Instant) {
        match self.0 {}
    }

    pub(crate) fn lend(&self, _standing: Standing, _short_way: ShortWay, _step: Option<(Behind, Vec<u8>)>) {
        match self.0 {}
    }

    pub(crate) fn finish(&self, _report: Report) -> Result<Option<(i64, Vec<u8>)>, Report> {
        match self.0 {}
    }

    pub(crate) fn close(&self) {
        match self.0 {}
    }
}
