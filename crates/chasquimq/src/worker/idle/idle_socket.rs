//! Where an idle worker waits: its wait is written, with the step behind it, to a socket that somebody's event loop watches.
//! That event loop reads the answer, takes the jobs in and runs them at once; the worker's loop hears of it meanwhile. An addition and
//! its handler are two thread changes less apart. What has completed by then is recorded by the same way (`short_way`), and the worker's loop
//! hears of nothing.
//!
//! An add of the same event loop needs no wait to end: it takes a step of the worker along, over its own connection, and so does the record of how
//! that job ended. The wait stands meanwhile, and the step behind it is over (`lua/step/idle_wait`).
//!
//! What the worker knows is the socket's while a step lies behind its wait. Whoever ends the wait does so under the socket's lock, so one
//! side gets its answer: the event loop that reads it, the worker's loop that breaks it off, or that finds an answer which an event loop too
//! busy to read has left there.

use std::{
    os::fd::RawFd,
    sync::{
        atomic::{AtomicU32, Ordering},
        Arc, Mutex, MutexGuard, PoisonError,
    },
    time::{Duration, Instant},
};

use redis::Value;
use tokio::sync::Notify;

mod state;

use self::state::State;
use super::{
    along::StepAlong,
    short_way::{End, ShortWay, Told},
};
use crate::{
    redis::connection::Connection,
    worker::{record::report::Report, standing::Standing, step_request::Behind, take::offers::Offers},
};

/// Adds may come between waits that delayed jobs, or jobs from elsewhere, end.
const WAITS_FOR_ADDS: u32 = 8;
/// An event loop that has started several jobs, and takes longer, is looked after by the worker's loop.
const LONG_TELLING: Duration = Duration::from_millis(5);

/// A socket for waits, to be watched by an event loop that calls [`IdleSocket::ready`].
#[derive(Debug, Clone)]
pub struct IdleSocket {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    fd: RawFd,
    place: String,
    state: Mutex<State>,
    // the worker's loop may take the end of its wait
    ended: Arc<Notify>,
    // waits for which an add that came is a reason
    waits_for_adds: AtomicU32,
}

impl IdleSocket {
    /// By the connection for waits; `None` where that is closed, or another one goes by it.
    pub(crate) async fn open(connection: &Connection, offers: Arc<Offers>) -> Option<Self> {
        let ended = Arc::<Notify>::default();
        let tells = ended.clone();
        let wire = connection.watch_for_waits(move || tells.notify_one()).await.ok()??;
        Some(Self {
            shared: Arc::new(Shared {
                fd: wire.fd(),
                place: wire.place().to_owned(),
                state: Mutex::new(State::new(wire, offers)),
                ended,
                waits_for_adds: AtomicU32::new(0),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the worker's side

    pub(crate) fn is_usable(&self) -> bool {
        self.state().usable
    }

    /// Sends a wait and the step behind it. `short_way`: how to go on without the worker's loop, where that can be.
    pub(crate) fn begin(
        &self,
        commands: Vec<u8>,
        behind: Behind,
        over: Instant,
        standing: Standing,
        short_way: Option<ShortWay>,
    ) {
        let mut state = self.state();
        state.lend(standing, short_way);
        state.begin(commands, Some(behind), over);
    }

    /// Sends a wait for a worker that holds jobs.
    pub(crate) fn begin_alone(&self, command: Vec<u8>, over: Instant) {
        self.state().begin(command, None, over);
    }

    /// Gives what the worker knows to a wait that stands. A step is sent behind one that has none.
    pub(crate) fn lend(&self, standing: Standing, short_way: ShortWay, step: Option<(Behind, Vec<u8>)>) {
        let mut state = self.state();
        state.lend(standing, Some(short_way));
        if let Some((behind, step)) = step {
            state.add_step(step, behind);
        }
    }

    /// Whether a wait is under way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state().is_waiting()
    }

    /// Whether nothing was sent behind that.
    pub(crate) fn has_no_step(&self) -> bool {
        self.state().has_no_step()
    }

    /// When the answer to what is under way should be there.
    pub(crate) fn over(&self) -> Instant {
        self.state().over
    }

    /// Until when the event loop is left to start jobs; `none` where it is not.
    pub(crate) fn told_by(&self, none: Instant) -> Instant {
        let told_by = self.state().told_by;
        told_by.filter(|by| Instant::now() < *by).unwrap_or(none)
    }

    /// Whether an add that may take a step along came before one of the last [`WAITS_FOR_ADDS`] waits. To be asked for each wait.
    pub(crate) fn had_adds(&self) -> bool {
        let waits = &self.shared.waits_for_adds;
        let left = waits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.is_ok()
    }

    /// Keeps jobs from running before something is told that the worker's loop is about to learn.
    pub(crate) fn hold_back(&self, held_back: bool) {
        self.state().held_back = held_back;
    }

    /// Waits until [`IdleSocket::end`] may have something.
    pub(crate) async fn ended(&self) {
        self.shared.ended.notified().await;
    }

    /// What ended, if the event loop saw it; with what the worker knows, unless its loop knows that.
    pub(crate) fn end(&self) -> Option<(End, Option<Standing>)> {
        self.state().take_end()
    }

    /// What ended, if it is there to be seen.
    pub(crate) fn look(&self) -> Option<(End, Option<Standing>)> {
        let mut state = self.state();
        state.read();
        state.lose_old_along();
        state.take_end()
    }

    /// Ends what is under way; a wait whose step is over may `stay`.
    pub(crate) fn break_off(&self, stays: bool) -> (Vec<End>, Option<Standing>) {
        self.state().break_off(stays)
    }

    // ---- the event loop's side

    /// The descriptor to watch for reading.
    pub fn fd(&self) -> RawFd {
        self.shared.fd
    }

    /// As [`crate::redis::wire::Watched::place`].
    pub fn place(&self) -> &str {
        &self.shared.place
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
            self.tell(told, tell);
        }
        self.tell_loop()
    }

    /// Of several jobs the first one may block the event loop: the worker's loop hears of them meanwhile, if it takes long.
    fn tell(&self, told: Told, tell: impl FnOnce(Told)) {
        let are_several = matches!(&told, Told::Jobs(batch) if batch.jobs.len() > 1);
        if are_several {
            self.state().told_by = Some(Instant::now() + LONG_TELLING);
            self.shared.ended.notify_one();
        }
        tell(told);
        if are_several {
            self.state().told_by = None;
        }
    }

    /// Whether an add could take a step along, as far as is known without reading.
    pub fn is_idle(&self) -> bool {
        self.state().is_idle()
    }

    /// An add comes that takes a step along, if it can: it is worth waiting by this socket.
    pub fn add_comes(&self) {
        self.shared.waits_for_adds.store(WAITS_FOR_ADDS, Ordering::Relaxed);
    }

    /// A step that an add is to take along, if the worker waits and its loop has nothing to do with it. Its end is told to [`IdleSocket::stepped`]
    /// or [`IdleSocket::lost`].
    pub fn step_along(&self) -> Option<StepAlong> {
        self.state().step_along()
    }

    /// What was sent along is answered; `reply` is that of the worker's part, if it was carried out. `tell` as [`IdleSocket::ready`].
    pub fn stepped(&self, number: i64, reply: Option<Value>, tell: impl FnOnce(Told)) {
        let told = self.state().stepped(number, reply);
        if let Some(told) = told {
            self.tell(told, tell);
        }
        self.tell_loop();
    }

    /// It is not known whether what was sent along was carried out.
    pub fn lost(&self, number: i64) {
        self.state().lose_along(number);
        self.tell_loop();
    }

    /// Records how jobs ended that were told: by this socket, or by the command that it gives, with the number of its step, which is to go along.
    /// Gives them back where that is for the worker's loop.
    pub(crate) fn finish(&self, report: Report) -> Result<Option<(i64, Vec<u8>)>, Report> {
        let along = self.state().finish(report)?;
        self.tell_loop();
        Ok(along)
    }

    /// Whether the socket is to be watched further. The worker's loop hears when something is for it.
    fn tell_loop(&self) -> bool {
        let (has_ended, usable) = {
            let state = self.state();
            (state.end.is_some(), state.usable)
        };
        if has_ended || !usable {
            self.shared.ended.notify_one();
        }
        usable
    }

    /// Makes the socket of no use any more.
    pub fn close(&self) {
        self.state().lose();
        self.shared.ended.notify_one();
    }
}
