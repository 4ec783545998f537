//! How an idle worker waits: the server knows that it does, and tells it of work (`ear`), or it waits on the marker of the queue's by a connection of its own
//! (`wait_task`), where it hears nothing by channels.
//!
//! What the worker knows is lent meanwhile, where an event loop goes on from that (`standby`).
//!
//! Who was told may be gone, and not look gone to the server: then nobody hears of the job it was told of. And a producer may not be allowed to tell,
//! or know only the marker. So a wait ends after a while, and the worker looks by itself, if anything has happened (`quiet`).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::{mpsc, Notify};

use super::{
    ear,
    quiet::Quiet,
    short_way::{End, ShortWay},
    standby::{Hearing, Standby},
    wait_task::{wait_when_asked, Ask},
    woken::{read_end, Ends, Woken},
};
use crate::{keys::Keys, redis::connection::Connection, worker::standing::Standing};

// how soon is looked again for what a lost wait may have been told
const LOST_LOOK: Duration = Duration::from_millis(250);
// looks that find a marker before what tells this worker of work is not trusted any more
const MOST_MISSED: u32 = 2;
// somebody leaves markers who tells nobody: they are waited for
const MARKED: Duration = Duration::from_secs(600);

/// What is being waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pending {
    Nothing,
    /// Work.
    Work,
    /// That limits are lifted.
    Lift,
    /// Work, while what the worker knows is lent: jobs may be taken without its loop.
    Lent,
}

impl Pending {
    /// Whether somebody else than the loop may take jobs.
    pub(crate) fn takes_jobs(self) -> bool {
        self == Self::Lent
    }
}

/// The loop's end of all that waits.
pub(crate) struct Waiter {
    ask: mpsc::Sender<Ask>,
    woken: mpsc::Receiver<bool>,
    cancel: Arc<Notify>,
    standby: Standby,
    pub(crate) pending: Pending,
    // the pending wait blocks a connection
    is_blocked: bool,
    /// What ended last was not read by the event loop that watches.
    pub(crate) is_unread: bool,
    // when the pending wait ends, and how long such a one takes
    ends: Instant,
    time: Duration,
    quiet: Quiet,
    // when to look whether an event loop has left something unread, and how often
    look: Instant,
    every: Duration,
    // a wait that was lost may be told news until then
    lost_until: Option<Instant>,
    // markers are waited for until then
    marked_until: Option<Instant>,
    // looks in a row that found a marker, though the worker waited
    missed: u32,
}

// nothing takes jobs for a worker that is gone
impl Drop for Waiter {
    fn drop(&mut self) {
        self.standby.take_back();
    }
}

impl Waiter {
    /// Starts the tasks that wait; they end with their connections, or with this value.
    pub(crate) fn start(blocked: Connection, news: Connection, keys: &Keys, id: &str, standby: Standby) -> Self {
        let (ask, request) = mpsc::channel(1);
        let (wake, woken) = mpsc::channel(1);
        let cancel = Arc::new(Notify::new());
        tokio::spawn(wait_when_asked(blocked, request, wake, cancel.clone()));
        tokio::spawn(ear::listen(news, keys.clone(), id.to_owned(), standby.clone()));
        Self {
            ask,
            woken,
            cancel,
            standby,
            pending: Pending::Nothing,
            is_blocked: false,
            is_unread: false,
            ends: Instant::now(),
            time: Duration::ZERO,
            quiet: Quiet::default(),
            look: Instant::now(),
            every: LOST_LOOK,
            lost_until: None,
            marked_until: None,
            missed: 0,
        }
    }

    /// What it lends.
    pub(crate) fn standby(&self) -> Standby {
        self.standby.clone()
    }

    /// Whether it hears by channels.
    pub(crate) fn hears(&self) -> bool {
        matches!(self.standby.hearing(), Hearing::By(_))
    }

    /// Whether it waits by a connection of its own.
    pub(crate) fn blocks(&self) -> bool {
        let is_marked = self.marked_until.is_some_and(|until| Instant::now() < until);
        is_marked || matches!(self.standby.hearing(), Hearing::Refused)
    }

    /// It was told of work.
    pub(crate) fn is_told(&mut self) {
        self.missed = 0;
        self.quiet.is_over();
    }

    /// There was a marker, and this worker, which had waited, was not told of work. That may be under way; once more, and it does not come.
    pub(crate) fn has_missed(&mut self) {
        self.missed += 1;
        if self.missed == MOST_MISSED {
            self.standby.distrust();
            self.is_passed_over();
        }
    }

    /// Somebody leaves markers who tells nobody.
    pub(crate) fn is_passed_over(&mut self) {
        self.missed = 0;
        self.marked_until = Some(Instant::now() + MARKED);
    }

    /// Waits to be told. Call it only when nothing is pending.
    pub(crate) fn wait(&mut self, pending: Pending, time: Duration, lease: Option<Duration>) {
        let now = Instant::now();
        (self.pending, self.time) = (pending, time);
        self.ends = match pending {
            Pending::Lift => now + time,
            _ => self.quiet.next_look(time),
        };
        self.every = lease.unwrap_or(time).min(time);
        self.look = now + self.every;
    }

    /// Waits for a marker by a connection of its own. Call it only when nothing is pending.
    pub(crate) fn block(&mut self, pending: Pending, marker: String, time: Duration) {
        let now = Instant::now();
        let time = match self.lost_until {
            Some(until) if now < until => time.min(LOST_LOOK),
            _ => time,
        };
        self.ends = now + time;
        if self.ask.try_send(Ask { marker, time }).is_ok() {
            (self.pending, self.is_blocked) = (pending, true);
        }
    }

    /// Whether what the worker knows may be lent.
    pub(crate) fn may_lend(&self) -> bool {
        self.pending == Pending::Work && !self.is_blocked && self.standby.is_watched()
    }

    /// Lends it.
    pub(crate) fn lend(&mut self, standing: &mut Standing, short_way: ShortWay) {
        self.pending = Pending::Lent;
        self.standby.lend(std::mem::take(standing), short_way);
    }

    /// Asks whether anything has happened, while it waits on. Call it only when it hears.
    pub(crate) fn ask(&mut self, connection: &Connection, base: &str) {
        self.ends = Instant::now() + self.time;
        if !self.quiet.is_asked() {
            self.quiet.ask(connection, base);
        }
    }

    /// Whether a scan for jobs that nobody runs would find nothing, as far as those jobs are that have been active for this long.
    pub(crate) fn spares_scan(&self, active: Duration) -> bool {
        self.quiet.spares_scan(active)
    }

    /// Such a scan begins.
    pub(crate) fn scans(&mut self) {
        self.quiet.scans();
    }

    /// It is over, and the next job is not started in time then.
    pub(crate) fn has_scanned(&mut self, expires: Option<Instant>) {
        self.quiet.has_scanned(expires);
    }

    /// Whether the server tells it of work, while that is waited for.
    pub(crate) fn waits_to_be_told(&self, standing: &Standing) -> bool {
        let waits = match self.pending {
            Pending::Lent => self.standby.waits(),
            _ => standing.waits(),
        };
        self.hears() && waits
    }

    /// Ends the wait: nothing came.
    pub(crate) fn end_in_vain(&mut self, standing: &mut Standing) -> Ends {
        self.is_unread = false;
        let (mut ends, known) = self.standby.take_back();
        ends.push(End::Marker(false));
        self.over(ends, known, standing)
    }

    /// Keeps jobs behind what the loop is about to learn, and tells before it gives jobs.
    pub(crate) fn hold_back(&self, held_back: bool) {
        self.standby.hold_back(held_back);
    }

    /// Has the worker hear by another connection: what came by this one cannot be read.
    pub(crate) fn distrust(&self) {
        self.standby.distrust();
    }

    /// Steps go to this place: the worker hears by a connection to the same.
    pub(crate) fn follow(&self, place: &str) {
        if !self.standby.is_at(place) {
            self.standby.distrust();
        }
    }

    /// What ended, of a wait or otherwise. It may be asked for again when this was not waited for.
    pub(crate) async fn woken(&mut self, standing: &mut Standing) -> Ends {
        loop {
            let waits = self.pending != Pending::Nothing && !self.is_blocked;
            let looks = waits || standing.waits();
            if let Some((end, known)) = self.standby.end() {
                self.is_unread = self.standby.take_unread();
                return self.over(vec![end], known, standing);
            }
            let look = self
                .standby
                .told_by(if waits { self.look.min(self.ends) } else { self.look });
            let due_ms = match self.pending {
                Pending::Lent => self.standby.due_ms(),
                _ => standing.due.known_ms(),
            };
            tokio::select! {
                biased;
                came = self.woken.recv(), if self.is_blocked => {
                    self.is_unread = false;
                    return self.unblocked(came.unwrap_or(false));
                }
                () = self.standby.ended() => {}
                is_still = self.quiet.answer(due_ms), if waits && self.quiet.is_asked() => match is_still {
                    true => self.ends = self.quiet.next_look(self.time),
                    false => return self.end_in_vain(standing),
                },
                () = tokio::time::sleep_until(look.into()), if looks => {
                    let now = Instant::now();
                    self.look = now + self.every;
                    if let Some((end, known)) = self.standby.look() {
                        self.is_unread = true;
                        return self.over(vec![end], known, standing);
                    }
                    if waits && now >= self.ends {
                        return vec![(Woken::LookDue, None)];
                    }
                }
            }
        }
    }

    /// What ended of the wait under way, if it did by now, or within that time. An event loop may be too busy to read it.
    pub(crate) async fn own_end(&mut self, within: Duration, standing: &mut Standing) -> Option<Ends> {
        if self.is_blocked {
            return tokio::time::timeout(within, self.woken(standing)).await.ok();
        }
        let (end, known) = self.standby.look()?;
        Some(self.over(vec![end], known, standing))
    }

    /// Breaks the wait off: what is known is the loop's again.
    pub(crate) async fn break_off(&mut self, standing: &mut Standing) -> Ends {
        if self.is_blocked {
            self.cancel.notify_one();
            let came = self.woken.recv().await.unwrap_or(false);
            return self.unblocked(came);
        }
        let (ends, known) = self.standby.take_back();
        self.over(ends, known, standing)
    }

    /// What was lent is the loop's again.
    fn over(&mut self, ends: Vec<End>, known: Option<Standing>, standing: &mut Standing) -> Ends {
        if let Some(known) = known {
            *standing = known;
        }
        let pending = if self.is_blocked {
            self.pending
        } else {
            std::mem::replace(&mut self.pending, Pending::Nothing)
        };
        let ended = |(woken, elsewhere)| match woken {
            Woken::Marker(came) if pending == Pending::Lift => (Woken::Lift(came), elsewhere),
            woken => (woken, elsewhere),
        };
        ends.into_iter().map(|end| ended(read_end(end, standing))).collect()
    }

    /// The wait that blocks a connection ended.
    fn unblocked(&mut self, came: bool) -> Ends {
        if !came && Instant::now() < self.ends {
            // one that nobody answered stands among the server's blocked clients until it ends there, or the server notices
            self.lost_until = self.lost_until.max(Some(self.ends));
        }
        self.is_blocked = false;
        let woken = match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Lift => Woken::Lift(came),
            _ => Woken::Marker(came),
        };
        vec![(woken, None)]
    }
}
