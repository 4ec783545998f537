//! What an idle worker lends to whoever hears of work first. An event loop that reads what the server tells the worker takes a step at once, and runs what that
//! brings; the worker's loop hears of it meanwhile. An add of that event loop needs no word from the server: it takes the step along. What has completed by
//! then is recorded by the same way (`short_way`), and the worker's loop hears of nothing.
//!
//! Whoever goes on from what is lent does so under its lock, so one side does: the event loop that reads, or the worker's loop, which takes back what it has lent, or
//! finds news that an event loop too busy to read has left.

use std::{
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc, Mutex, MutexGuard, PoisonError,
    },
    time::{Duration, Instant},
};

use redis::Value;
use tokio::sync::Notify;

mod state;

pub(crate) use self::state::Hearing;
use self::state::State;
use super::{
    along::StepAlong,
    short_way::{End, ShortWay, Told},
};
#[cfg(unix)]
use crate::redis::wire::Watch;
use crate::{
    redis::wire::{Listener, Wire},
    worker::{record::report::Report, standing::Standing, take::offers::Offers},
};

/// An event loop that has started several jobs, and takes longer, is looked after by the worker's loop.
const LONG_TELLING: Duration = Duration::from_millis(5);

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// What a worker lends.
#[derive(Debug, Clone)]
pub struct Standby {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: u64,
    state: Mutex<State>,
    // there may be something for the worker's loop
    ended: Notify,
    // the server tells nothing more by the connection
    lost: Notify,
    // the server has something for the worker to look at
    asked: Notify,
}

impl Standby {
    pub(crate) fn new(offers: Arc<Offers>) -> Self {
        Self {
            shared: Arc::new(Shared {
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                state: Mutex::new(State::new(offers)),
                ended: Notify::new(),
                lost: Notify::new(),
                asked: Notify::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- the ear's side

    pub(super) fn begins_to_hear(&self, wire: &Wire) {
        self.state().hears(Hearing::By(wire.clone()));
        self.shared.ended.notify_one();
    }

    pub(super) fn hears_no_more(&self) {
        self.state().hears(Hearing::Nothing);
        self.shared.ended.notify_one();
    }

    pub(super) fn is_refused(&self) {
        self.state().hears(Hearing::Refused);
        self.shared.ended.notify_one();
    }

    /// Ends when the server tells nothing more.
    pub(super) async fn lost(&self) {
        self.shared.lost.notified().await;
    }

    // ---- the worker's side

    /// Whether an event loop goes on from what is lent.
    pub(crate) fn is_watched(&self) -> bool {
        self.state().is_watched()
    }

    /// What it hears by.
    pub(crate) fn hearing(&self) -> Hearing {
        self.state().hearing.clone()
    }

    /// Gives what the worker knows to whoever hears of work first.
    pub(crate) fn lend(&self, standing: Standing, short_way: ShortWay) {
        self.state().lend(standing, short_way);
    }

    /// Whether the server tells of work, as far as is known to what is lent.
    pub(crate) fn waits(&self) -> bool {
        self.state().waits()
    }

    /// When the next job is due, as far as is known to what is lent: as `Due::known_ms` says it.
    pub(crate) fn due_ms(&self) -> i64 {
        self.state().due_ms()
    }

    /// Until when the event loop is left to start jobs; `none` where it is not.
    pub(crate) fn told_by(&self, none: Instant) -> Instant {
        let told_by = self.state().told_by;
        told_by.filter(|by| Instant::now() < *by).unwrap_or(none)
    }

    /// Keeps jobs from running before something is told that the worker's loop is about to learn.
    pub(crate) fn hold_back(&self, held_back: bool) {
        self.state().held_back = held_back;
    }

    /// Waits until [`Standby::end`] may have something.
    pub(crate) async fn ended(&self) {
        self.shared.ended.notified().await;
    }

    /// Waits until the server asks the worker to look.
    pub(crate) async fn asked(&self) {
        self.shared.asked.notified().await;
    }

    /// What ended; with what the worker knows, unless its loop knows that.
    pub(crate) fn end(&self) -> Option<(End, Option<Standing>)> {
        self.state().take_end()
    }

    /// Whether an event loop was too busy to read that. It is said once.
    pub(crate) fn take_unread(&self) -> bool {
        std::mem::take(&mut self.state().is_unread)
    }

    /// The same, if it is there to be seen though no event loop has read it.
    pub(crate) fn look(&self) -> Option<(End, Option<Standing>)> {
        if let Hearing::By(wire) = self.hearing() {
            wire.look();
        }
        let mut state = self.state();
        state.lose_old_along();
        state.take_end()
    }

    /// Takes back what is lent, with all that ended.
    pub(crate) fn take_back(&self) -> (Vec<End>, Option<Standing>) {
        self.state().take_back()
    }

    /// Has the worker hear by another connection.
    pub(crate) fn distrust(&self) {
        if let Hearing::By(wire) = self.hearing() {
            wire.cut();
        }
    }

    // ---- the event loop's side

    /// Which one it is: as [`Listener::id`].
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Asks for the connection that it hears by; `None` where there is none. `wake` as of [`crate::redis::wire::Wire`].
    #[cfg(unix)]
    pub fn watch(&self, wake: impl Fn() + Send + 'static) -> Option<Watch> {
        let Hearing::By(wire) = self.hearing() else { return None };
        Some(match wire.watched(wake) {
            Some(watched) => Watch::Begins(watched),
            None => Watch::Goes(wire.id()),
        })
    }

    /// An event loop watches that connection now, or does no more.
    pub fn watched(&self, is_watched: bool) {
        self.state().is_watched = is_watched;
        self.shared.ended.notify_one();
    }

    /// Server, database and user of that connection: see [`crate::redis::wire::Watched::place`].
    pub fn is_at(&self, place: &str) -> bool {
        matches!(&self.state().hearing, Hearing::By(wire) if wire.place() == place)
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

    /// A step that is to go along with an add, if the worker waits and its loop has nothing to do with it. Its end is told to [`Standby::stepped`]
    /// or [`Standby::lose`].
    pub fn step_along(&self) -> Option<StepAlong> {
        self.state().step_along()
    }

    /// The step of a worker that has heard of work, as a command. Otherwise that is for the worker's loop.
    pub fn step_on_news(&self) -> Option<(i64, Vec<u8>)> {
        let step = self.state().step_on_news();
        if step.is_none() {
            self.shared.ended.notify_one();
        }
        step
    }

    /// What was sent along is answered; `reply` is that of the worker's part, if it was carried out. `tell` is given jobs that are active now, or what is recorded.
    pub fn stepped(&self, number: i64, reply: Option<Value>, tell: impl FnOnce(Told)) {
        let told = self.state().stepped(number, reply);
        if let Some(told) = told {
            // what runs now may have ended when this is over
            self.tell(told, tell);
        }
        self.tell_loop();
    }

    /// It is not known whether what was sent along was carried out.
    pub fn lose(&self, number: i64) {
        self.state().lose_along(number);
        self.tell_loop();
    }

    /// Records how jobs ended that were told: by the command that it gives, with the number of its step, which is to go along.
    /// Gives them back where that is for the worker's loop.
    pub(crate) fn finish(&self, report: Report) -> Result<(i64, Vec<u8>), Report> {
        self.state().finish(report)
    }

    /// The worker's loop hears when something is for it.
    fn tell_loop(&self) {
        if self.state().is_for_loop() {
            self.shared.ended.notify_one();
        }
    }
}

impl Listener for Standby {
    fn id(&self) -> u64 {
        self.shared.id
    }

    fn hear(&self) {
        self.state().is_told = true;
    }

    fn ask(&self) {
        self.shared.asked.notify_one();
    }

    fn act(&self, is_unread: bool) {
        self.state().is_unread |= is_unread;
        self.shared.ended.notify_one();
    }

    fn waits(&self, is_stuck: bool) -> bool {
        let mut state = self.state();
        if is_stuck && state.lose_any_along() {
            self.shared.ended.notify_one();
        }
        state.waits_for_answer()
    }

    fn lose(&self) {
        self.shared.lost.notify_one();
    }
}
