//! This system has no sockets that an event loop of somebody else's could watch: see `idle_socket`.

use std::{convert::Infallible, sync::Arc, time::Instant};

use super::{
    offers::Offers,
    report::Report,
    short_way::{End, ShortWay},
    standing::Standing,
    step_request::Behind,
};
use crate::redis::connection::Connection;

/// There are none.
#[derive(Debug, Clone)]
pub struct IdleSocket(Infallible);

impl IdleSocket {
    pub(super) async fn open(_connection: &Connection, _offers: Arc<Offers>) -> Option<Self> {
        None
    }

    pub(super) fn is_usable(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn begin(
        &self,
        _commands: Vec<u8>,
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

    pub(super) fn end(&self) -> Option<(End, Option<Standing>)> {
        match self.0 {}
    }

    pub(super) fn look(&self) -> Option<(End, Option<Standing>)> {
        match self.0 {}
    }

    pub(super) fn break_off(&self, _stays: bool) -> (Vec<End>, Option<Standing>) {
        match self.0 {}
    }

    pub(super) fn is_waiting(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn told_by(&self, _none: Instant) -> Instant {
        match self.0 {}
    }

    pub(super) fn had_adds(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn has_no_step(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn begin_alone(&self, _command: Vec<u8>, _over: Instant) {
        match self.0 {}
    }

    pub(super) fn lend(&self, _standing: Standing, _short_way: ShortWay, _step: Option<(Behind, Vec<u8>)>) {
        match self.0 {}
    }

    pub(super) fn finish(&self, _report: Report) -> Result<Option<(i64, Vec<u8>)>, Report> {
        match self.0 {}
    }

    pub(super) fn close(&self) {
        match self.0 {}
    }
}
