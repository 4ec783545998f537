//! The short way of an idle worker's wait: it is written, with the step behind it, to a socket that somebody's event loop watches.
//! That event loop reads the answer, takes the jobs in and runs them at once; the worker's loop hears of it meanwhile. An addition and
//! its handler are two thread changes less apart.
//!
//! What the worker holds (nothing, but handles to give out) is the socket's while a step lies behind its wait. Whoever ends the wait does so
//! under the socket's lock, so one side gets its answer: the event loop that reads it, the worker's loop that breaks it off, or that
//! finds an answer which an event loop too busy to read has left there.

use std::{
    os::fd::RawFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use redis::Value;
use tokio::sync::Notify;

use super::{apart::has_stubs, batch::Batch, fetch::Answer, in_flight::InFlight};
use crate::{
    error::Result,
    redis::{connection::Connection, direct::DirectSocket},
};

/// A socket for waits, to be watched by an event loop that calls [`IdleSocket::ready`].
#[derive(Debug, Clone)]
pub struct IdleSocket {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    fd: RawFd,
    state: Mutex<State>,
    // the worker's loop may take the end of its wait
    ended: Notify,
}

#[derive(Debug)]
struct State {
    socket: DirectSocket,
    usable: bool,
    answers: Vec<Result<Value>>,
    // there while a wait is under way
    in_flight: Option<InFlight>,
    end: Option<(End, InFlight)>,
    // jobs are left to the worker's loop
    held_back: bool,
}

/// How a wait on a socket ended.
#[derive(Debug)]
pub(super) enum End {
    /// The step behind it was carried out: its reply.
    Stepped(Value),
    /// It was carried out, and what it took was taken in.
    Taken(Box<Result<Answer>>),
    /// Not known whether it was carried out.
    Lost,
}

impl IdleSocket {
    /// Opens one; `None` where there can be none.
    pub(super) async fn open(connection: &Connection) -> Option<Self> {
        let socket = connection.open_direct().await.ok()??;
        Some(Self {
            shared: Arc::new(Shared {
                fd: socket.fd(),
                state: Mutex::new(State {
                    socket,
                    usable: true,
                    answers: Vec::new(),
                    in_flight: None,
                    end: None,
                    held_back: false,
                }),
                ended: Notify::new(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the worker's side

    pub(super) fn is_usable(&self) -> bool {
        self.state().usable
    }

    /// Sends a wait and the step behind it.
    pub(super) fn begin(&self, commands: &[u8], in_flight: InFlight) {
        let mut state = self.state();
        state.in_flight = Some(in_flight);
        // a socket that does not take some hundred bytes at once is not one to wait on
        if !state.usable || !matches!(state.socket.send(commands), Ok(true)) {
            state.lose();
        }
    }

    /// Keeps jobs from running before something is told that the worker's loop is about to learn.
    pub(super) fn hold_back(&self, held_back: bool) {
        self.state().held_back = held_back;
    }

    /// Waits until [`IdleSocket::end`] may have something.
    pub(super) async fn ended(&self) {
        self.shared.ended.notified().await;
    }

    /// The end of the wait, if the event loop saw it.
    pub(super) fn end(&self) -> Option<(End, InFlight)> {
        self.state().end.take()
    }

    /// The end of the wait, if it is there to be seen.
    pub(super) fn look(&self) -> Option<(End, InFlight)> {
        let mut state = self.state();
        state.read();
        state.end.take()
    }

    /// Ends the wait under way.
    pub(super) fn break_off(&self) -> (End, InFlight) {
        let mut state = self.state();
        state.read();
        if state.end.is_none() {
            state.lose();
        }
        state.end.take().unwrap_or((End::Lost, InFlight::default()))
    }

    // ---- the event loop's side

    /// The descriptor to watch for reading.
    pub fn fd(&self) -> RawFd {
        self.shared.fd
    }

    /// To be called when the socket can be read; `run` is given jobs that are active now. False: watch it no more.
    pub fn ready(&self, run: impl FnOnce(Batch)) -> bool {
        let (jobs, usable) = {
            let mut state = self.state();
            state.read();
            (state.take_in(), state.usable)
        };
        if let Some(jobs) = jobs {
            run(jobs);
        }
        self.shared.ended.notify_one();
        usable
    }

    /// Makes the socket of no use any more.
    pub fn close(&self) {
        self.state().lose();
        self.shared.ended.notify_one();
    }
}

impl State {
    fn read(&mut self) {
        if !self.usable {
            return;
        }
        let alive = self.socket.receive(&mut self.answers).is_ok();
        if self.answers.len() >= 2 {
            if let Some(in_flight) = self.in_flight.take() {
                let end = match self.answers.swap_remove(1) {
                    Ok(reply) => End::Stepped(reply),
                    // not known to the server yet, or refused: the loop steps itself
                    Err(_) => End::Lost,
                };
                // what refuses may lead to a server that is no master any more
                if self.answers.drain(..).any(|wait| wait.is_err()) {
                    self.lose();
                }
                self.end = Some((end, in_flight));
            }
        }
        if !alive || (self.in_flight.is_none() && !self.answers.is_empty()) {
            self.lose();
        }
    }

    /// Takes jobs in that need nothing more before they run.
    fn take_in(&mut self) -> Option<Batch> {
        let (end, in_flight) = self.end.as_mut()?;
        let End::Stepped(reply) = end else { return None };
        if self.held_back || !Answer::has_jobs(reply) || has_stubs(reply) {
            return None;
        }
        let mut answer = Answer::read(std::mem::replace(reply, Value::Nil), in_flight);
        let jobs = answer.as_mut().ok().and_then(Answer::ready_jobs);
        *end = End::Taken(Box::new(answer));
        jobs
    }

    // the descriptor stays as long as somebody watches it
    fn lose(&mut self) {
        self.usable = false;
        self.socket.shutdown();
        if let Some(in_flight) = self.in_flight.take() {
            self.end = Some((End::Lost, in_flight));
        }
    }
}
