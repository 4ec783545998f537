//! Where an idle worker waits: its wait is written, with the step behind it, to a socket that somebody's event loop watches.
//! That event loop reads the answer, takes the jobs in and runs them at once; the worker's loop hears of it meanwhile. An addition and
//! its handler are two thread changes less apart. What has completed by then is recorded by the same way (`short_way`), and the worker's loop
//! hears of nothing.
//!
//! What the worker knows is the socket's while a step lies behind its wait. Whoever ends the wait does so under the socket's lock, so one
//! side gets its answer: the event loop that reads it, the worker's loop that breaks it off, or that finds an answer which an event loop too
//! busy to read has left there.

use std::{
    os::fd::RawFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use redis::Value;
use tokio::sync::Notify;

use super::{
    apart::has_stubs,
    asked::{Behind, GRACE},
    fetch::Answer,
    flush::Flush,
    short_way::{SentStep, ShortWay, Told},
    standing::Standing,
};
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
    under_way: Option<UnderWay>,
    end: Option<End>,
    // the worker's, while something is under way or has ended
    standing: Standing,
    short_way: Option<ShortWay>,
    // when an answer should be there
    over: Instant,
    // jobs are left to the worker's loop
    held_back: bool,
}

/// What was sent and is not answered.
#[derive(Debug)]
enum UnderWay {
    Wait(Behind),
    Record(Box<SentStep>),
}

/// How what was under way on a socket ended.
#[derive(Debug)]
pub(super) enum End {
    /// The step behind a wait was carried out: its reply.
    Stepped(Behind, Value),
    /// It was carried out, and what it took was taken in.
    Taken(Behind, Box<Result<Answer>>),
    /// Not known whether it was carried out.
    Lost(Behind),
    /// A step that records ends: its reply, unless that is lost.
    Recorded(Box<SentStep>, Option<Value>),
    /// Such a step was told of; what follows is for the loop.
    Told,
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
                    under_way: None,
                    end: None,
                    standing: Standing::default(),
                    short_way: None,
                    over: Instant::now(),
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

    /// Sends a wait and the step behind it. `short_way`: how to go on without the worker's loop, where that can be.
    pub(super) fn begin(
        &self,
        commands: &[u8],
        behind: Behind,
        over: Instant,
        standing: Standing,
        short_way: Option<ShortWay>,
    ) {
        let mut state = self.state();
        state.standing = standing;
        state.short_way = short_way;
        state.send(commands, UnderWay::Wait(behind), over);
    }

    /// When the answer to what is under way should be there.
    pub(super) fn over(&self) -> Instant {
        self.state().over
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
    pub(super) fn end(&self) -> Option<(End, Standing)> {
        self.state().take_end()
    }

    /// The end of the wait, if it is there to be seen.
    pub(super) fn look(&self) -> Option<(End, Standing)> {
        let mut state = self.state();
        state.read();
        state.take_end()
    }

    /// Ends the wait under way.
    pub(super) fn break_off(&self) -> (End, Standing) {
        let mut state = self.state();
        state.read();
        if state.end.is_none() {
            state.lose();
        }
        let end = state.end.take().unwrap_or(End::Told);
        (end, state.give_back())
    }

    // ---- the event loop's side

    /// The descriptor to watch for reading.
    pub fn fd(&self) -> RawFd {
        self.shared.fd
    }

    /// To be called when the socket can be read; `tell` is given jobs that are active now, or what is recorded. False: watch it no more.
    pub fn ready(&self, tell: impl FnOnce(Told)) -> bool {
        let told = {
            let mut state = self.state();
            state.read();
            state.go_on()
        };
        if let Some(told) = told {
            // what runs now may have ended when this is over
            tell(told);
        }
        let (has_ended, usable) = {
            let state = self.state();
            (state.end.is_some(), state.usable)
        };
        if has_ended || !usable {
            self.shared.ended.notify_one();
        }
        usable
    }

    /// Records how jobs ended that [`IdleSocket::ready`] gave. Gives it back where that is for the worker's loop.
    pub(super) fn finish(&self, flush: Flush) -> std::result::Result<(), Flush> {
        let mut state = self.state();
        state.finish(flush)?;
        if state.end.is_some() {
            self.shared.ended.notify_one();
        }
        Ok(())
    }

    /// Makes the socket of no use any more.
    pub fn close(&self) {
        self.state().lose();
        self.shared.ended.notify_one();
    }
}

impl State {
    fn send(&mut self, commands: &[u8], under_way: UnderWay, over: Instant) {
        (self.under_way, self.over) = (Some(under_way), over);
        // a socket that does not take some hundred bytes at once is not one to wait on
        if !self.usable || !matches!(self.socket.send(commands), Ok(true)) {
            self.lose();
        }
    }

    fn read(&mut self) {
        if !self.usable {
            return;
        }
        let alive = self.socket.receive(&mut self.answers).is_ok();
        let awaited = match self.under_way {
            Some(UnderWay::Wait(_)) => 2,
            Some(UnderWay::Record(_)) => 1,
            None => usize::MAX,
        };
        if self.answers.len() >= awaited {
            let reply = self.answers.swap_remove(awaited - 1).ok();
            let is_refused = reply.is_none() || self.answers.drain(..).any(|wait| wait.is_err());
            self.end = self.under_way.take().map(|sent| match (sent, reply) {
                (UnderWay::Wait(behind), Some(reply)) => End::Stepped(behind, reply),
                // not known to the server yet, or refused: the loop steps itself
                (UnderWay::Wait(behind), None) => End::Lost(behind),
                (UnderWay::Record(step), reply) => End::Recorded(step, reply),
            });
            // what refuses may lead to a server that is no master any more
            if is_refused {
                self.lose();
            }
        }
        if !alive || (self.under_way.is_none() && !self.answers.is_empty()) {
            self.lose();
        }
    }

    /// Does what follows an end without the worker's loop, where nothing more is needed. Gives what is to be told.
    fn go_on(&mut self) -> Option<Told> {
        if self.held_back {
            return None;
        }
        match self.end.take()? {
            End::Stepped(behind, reply) if Answer::has_jobs(&reply) && !has_stubs(&reply) => {
                let mut answer = Answer::read(reply, &mut self.standing.in_flight);
                let jobs = answer.as_mut().ok().and_then(Answer::ready_jobs);
                self.standing.pace.delivered_to_idle();
                self.end = Some(End::Taken(behind, Box::new(answer)));
                jobs.map(Told::Jobs)
            }
            End::Recorded(step, Some(reply)) => self.recorded(step, reply),
            end => {
                self.end = Some(end);
                None
            }
        }
    }

    fn recorded(&mut self, step: Box<SentStep>, mut reply: Value) -> Option<Told> {
        let told = self
            .short_way
            .as_ref()
            .and_then(|way| way.recorded(&mut self.standing, &step, &mut reply));
        if told.is_none() {
            self.end = Some(End::Recorded(step, Some(reply)));
            return None;
        }
        let wait = self.short_way.as_ref().filter(|_| self.usable);
        match wait.and_then(|way| Some((way.time, way.wait(&mut self.standing)?))) {
            Some((time, (behind, commands))) => {
                self.send(&commands, UnderWay::Wait(behind), Instant::now() + time + GRACE);
            }
            None => self.end = Some(End::Told),
        }
        told
    }

    fn finish(&mut self, flush: Flush) -> std::result::Result<(), Flush> {
        let (Some(End::Taken(behind, answer)), Some(way), true, false) =
            (&self.end, &self.short_way, self.usable, self.held_back)
        else {
            return Err(flush);
        };
        let Ok(answer) = &**answer else { return Err(flush) };
        let (step, commands) = way.record(&mut self.standing, answer, behind.want, flush)?;
        self.end = None;
        self.send(&commands, UnderWay::Record(Box::new(step)), Instant::now() + GRACE);
        Ok(())
    }

    fn take_end(&mut self) -> Option<(End, Standing)> {
        let end = self.end.take()?;
        Some((end, self.give_back()))
    }

    fn give_back(&mut self) -> Standing {
        self.short_way = None;
        std::mem::take(&mut self.standing)
    }

    // the descriptor stays as long as somebody watches it
    fn lose(&mut self) {
        self.usable = false;
        self.socket.shutdown();
        match self.under_way.take() {
            Some(UnderWay::Wait(behind)) => self.end = Some(End::Lost(behind)),
            Some(UnderWay::Record(step)) => self.end = Some(End::Recorded(step, None)),
            None => {}
        }
    }
}
