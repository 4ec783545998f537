//! How an idle worker waits: on a marker of the queue's, with a connection of its own, because the wait blocks it.
//!
//! A worker that holds no job sends its next step right behind the wait, in one pipeline: the server carries it out the moment the
//! marker comes, and the jobs arrive without another round trip. Such a step is numbered like any other, so when the wait is broken
//! off or its answer is lost, the loop sends the same step again and learns what became of it. Where there is a [`IdleSocket`], such waits
//! take it; so does a wait that begins while jobs are held, if the worker is likely to be idle before it ends. Its step follows then.
//!
//! The server may give the marker to a connection that is gone and does not look gone to it yet: then nobody hears of the job it told
//! of. So while a wait of ours that was lost may still stand among the server's blocked clients, the waits that follow it are short.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redis::Cmd;
use tokio::sync::{mpsc, Notify};

use super::{
    idle_socket::IdleSocket,
    short_way::{End, ShortWay},
    wait_task::{marker_wait, wait_when_asked, Ask},
    woken::{read_end, Ends, Woken},
};
use crate::{
    keys::Keys,
    redis::connection::Connection,
    worker::{
        standing::Standing,
        step_request::{Behind, GRACE},
    },
};

// a socket that cannot be opened, or breaks, is not asked for without end
const SOCKET_PAUSE: Duration = Duration::from_secs(1);
// how soon is looked again for what a lost wait may have been told
const LOST_LOOK: Duration = Duration::from_millis(250);
// jobs that are held may block the event loop that watches the socket: what comes there is somebody else's then
const BESIDE_LOOK: Duration = Duration::from_millis(10);

/// What is being waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pending {
    Nothing,
    /// The marker.
    Marker,
    /// That of limits that are lifted.
    Lift,
    /// The marker, with a step behind it.
    Step(Behind),
    /// The same by a socket, when that step is over: an add took another along.
    Alone,
    /// The marker, by a socket, while jobs are held or something is due soon: an add may take a step along.
    Lent,
}

impl Pending {
    /// Whether something else than the loop may take jobs.
    pub(crate) fn takes_jobs(self) -> bool {
        matches!(self, Self::Step(_) | Self::Lent)
    }
}

/// The loop's end of the waiting task, and of the socket.
pub(crate) struct Waiter {
    ask: mpsc::Sender<Ask>,
    woken: mpsc::Receiver<Woken>,
    cancel: Arc<Notify>,
    marker: String,
    pub(crate) pending: Pending,
    socket: Option<IdleSocket>,
    socket_asked: Option<Instant>,
    // the pending wait is the socket's
    by_socket: Option<Watch>,
    /// The wait that ended last was not read by the event loop that watches the socket.
    pub(crate) is_unread: bool,
    /// The worker came to be idle since the last wait beside jobs began.
    pub(crate) has_idled: bool,
    // when the server ends the pending wait
    ends: Instant,
    // a wait that was lost may be told news until then
    lost_until: Option<Instant>,
}

/// When to look after a wait that an event loop watches.
struct Watch {
    look: Instant,
    every: Duration,
}

// a step behind a socket's wait takes no jobs for a worker that is gone
impl Drop for Waiter {
    fn drop(&mut self) {
        self.use_socket(None);
    }
}

impl Waiter {
    /// Starts the waiting task; it ends with its connection, or with this value.
    pub(crate) fn start(connection: Connection, keys: &Keys) -> Self {
        let (ask, request) = mpsc::channel(1);
        let (wake, woken) = mpsc::channel(1);
        let cancel = Arc::new(Notify::new());
        let marker = keys.key("wake");
        tokio::spawn(wait_when_asked(connection, request, wake, cancel.clone()));
        Self {
            ask,
            woken,
            cancel,
            marker,
            pending: Pending::Nothing,
            socket: None,
            socket_asked: None,
            by_socket: None,
            is_unread: false,
            has_idled: true,
            ends: Instant::now(),
            lost_until: None,
        }
    }

    /// Whether a socket is worth asking for now. It is said once in a while.
    pub(crate) fn wants_socket(&mut self) -> bool {
        let usable = self.socket.as_ref().is_some_and(IdleSocket::is_usable);
        if usable || self.socket_asked.is_some_and(|at| at.elapsed() < SOCKET_PAUSE) {
            return false;
        }
        self.socket_asked = Some(Instant::now());
        true
    }

    /// Takes a socket, which is watched by now. Call it only when none is being waited on.
    pub(crate) fn use_socket(&mut self, socket: Option<IdleSocket>) {
        if let Some(old) = std::mem::replace(&mut self.socket, socket) {
            old.close();
        }
    }

    /// Has waits go another way: what came by this one cannot be read.
    pub(crate) fn distrust_socket(&self) {
        if let Some(socket) = &self.socket {
            socket.close();
        }
    }

    /// Waits for the marker. Call it only when nothing is pending.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.wait_for(self.marker.clone(), time, Pending::Marker);
    }

    /// The same while jobs are held: by the socket, where there is one, so that an add may take a step along, and a step can follow once none is held
    /// ([`Waiter::lend`]). A worker that always holds some, and whose jobs come from elsewhere, waits by the connection: its markers need not pass
    /// through the event loop.
    pub(crate) fn wait_beside_jobs(&mut self, time: Duration) {
        let socket = self.socket.clone().filter(IdleSocket::is_usable);
        let is_worth_it = |socket: &IdleSocket| socket.had_adds() | std::mem::take(&mut self.has_idled);
        let Some(socket) = socket.filter(is_worth_it) else {
            return self.wait(time);
        };
        let time = self.begin(time);
        let over = self.watch(time, Some(BESIDE_LOOK));
        socket.begin_alone(marker_wait(&self.marker, time).get_packed_command(), over);
        self.pending = Pending::Marker;
    }

    /// Waits for the marker of limits that are lifted. Call it only when nothing is pending.
    pub(crate) fn wait_for_lift(&mut self, marker: String, time: Duration) {
        self.wait_for(marker, time, Pending::Lift);
    }

    fn wait_for(&mut self, marker: String, time: Duration, pending: Pending) {
        let time = self.begin(time);
        let step = None;
        if self.ask.try_send(Ask { marker, time, step }).is_ok() {
            self.pending = pending;
        }
    }

    /// Waits for the marker, with a step behind. Call it only when nothing is pending and nothing is held; what the worker knows afterwards
    /// is known when the wait is over. `lease`: jobs that were taken must be known of within this.
    pub(crate) fn wait_and_step(
        &mut self,
        behind: Behind,
        step: Cmd,
        lease: Option<Duration>,
        standing: &mut Standing,
        mut short_way: ShortWay,
    ) {
        let time = self.begin(short_way.time);
        match self.socket.clone().filter(IdleSocket::is_usable) {
            Some(socket) => {
                let over = self.watch(time, lease);
                short_way.wait = marker_wait(&self.marker, time).get_packed_command();
                let mut commands = short_way.wait.clone();
                step.write_packed_command(&mut commands);
                // a wait that was shortened is the loop's to repeat
                let is_whole = time == short_way.time;
                let standing = std::mem::take(standing);
                socket.begin(commands, behind, over, standing, is_whole.then_some(short_way));
                self.pending = Pending::Step(behind);
            }
            None => {
                let (marker, step) = (self.marker.clone(), Some(step));
                if self.ask.try_send(Ask { marker, time, step }).is_ok() {
                    self.pending = Pending::Step(behind);
                }
            }
        }
    }

    /// Whether the wait under way is the socket's and has no step behind it that does anything.
    pub(crate) fn may_lend(&self) -> bool {
        match self.pending {
            // one that was shortened is the loop's to repeat
            Pending::Marker => self.by_socket.is_some() && self.lost_until.is_none_or(|until| until <= Instant::now()),
            Pending::Alone => true,
            Pending::Nothing | Pending::Lift | Pending::Step(_) | Pending::Lent => false,
        }
    }

    /// Lends such a wait what is known: an add may take a step along. `step` is sent behind a wait that began without one, where nothing is held.
    pub(crate) fn lend(&mut self, step: Option<(Behind, Cmd)>, standing: &mut Standing, mut short_way: ShortWay) {
        if let Some(socket) = &self.socket {
            self.pending = match (&step, short_way.looks_at, standing.in_flight.jobs()) {
                (Some((behind, _)), ..) => Pending::Step(*behind),
                (None, None, 0) => Pending::Step(Behind::default()),
                (None, ..) => Pending::Lent,
            };
            short_way.wait = marker_wait(&self.marker, short_way.time).get_packed_command();
            let step = step.map(|(behind, step)| (behind, step.get_packed_command()));
            socket.lend(std::mem::take(standing), short_way, step);
        }
    }

    /// Keeps jobs behind what the loop is about to learn, and tells before it gives jobs.
    pub(crate) fn hold_back(&self, held_back: bool) {
        if let Some(socket) = &self.socket {
            socket.hold_back(held_back);
        }
    }

    /// What ended of the wait under way, and the step behind it.
    pub(crate) async fn woken(&mut self, standing: &mut Standing) -> Ends {
        match (&self.socket, &mut self.by_socket) {
            (Some(socket), Some(watch)) => {
                let (ended, is_unread) = watch.end(socket).await;
                self.is_unread = is_unread;
                self.over_by_socket(ended, standing)
            }
            _ => {
                self.is_unread = false;
                let woken = self.woken.recv().await.unwrap_or(Woken::Marker(false));
                let woken = match self.noted(woken) {
                    Woken::Marker(came) if self.pending == Pending::Lift => Woken::Lift(came),
                    woken => woken,
                };
                vec![(woken, self.over())]
            }
        }
    }

    /// What ended of the wait under way, if it did by now, or within that time. An event loop may be too busy to read it.
    pub(crate) async fn own_end(&mut self, within: Duration, standing: &mut Standing) -> Option<Ends> {
        let Some(socket) = self.socket.clone().filter(|_| self.by_socket.is_some()) else {
            return tokio::time::timeout(within, self.woken(standing)).await.ok();
        };
        tokio::time::sleep(within).await;
        let (end, known) = socket.look()?;
        Some(self.over_by_socket((vec![end], known), standing))
    }

    /// Ends a wait by the socket, whatever follows it: nobody reads what comes.
    pub(crate) fn leave_socket(&mut self, standing: &mut Standing) -> Ends {
        match self.socket.clone().filter(|_| self.by_socket.is_some()) {
            Some(socket) => self.over_by_socket(socket.break_off(false), standing),
            None => Ends::new(),
        }
    }

    /// Breaks the wait off: what is known is the loop's again. Of a socket's, only the step behind it if that is over.
    pub(crate) async fn break_off(&mut self, standing: &mut Standing) -> Ends {
        if let (Some(socket), Some(_)) = (&self.socket, &self.by_socket) {
            let ended = socket.break_off(self.pending != Pending::Alone);
            return self.over_by_socket(ended, standing);
        }
        self.cancel.notify_one();
        self.woken(standing).await
    }

    /// A socket's wait ended, or what an add took along; what the worker knows is its loop's again.
    fn over_by_socket(&mut self, (ends, known): (Vec<End>, Option<Standing>), standing: &mut Standing) -> Ends {
        if let Some(known) = known {
            *standing = known;
        }
        match self.socket.as_ref().filter(|socket| socket.is_waiting()) {
            Some(socket) if socket.has_no_step() => self.pending = Pending::Marker,
            Some(_) => self.pending = Pending::Alone,
            None => drop(self.over()),
        }
        if let Some(socket) = &self.socket {
            self.ends = socket.over() - GRACE;
        }
        ends.into_iter()
            .map(|end| {
                let (woken, behind) = read_end(end, standing);
                (self.noted(woken), behind)
            })
            .collect()
    }

    /// A wait of so long is the socket's; gives when its answer should be there.
    fn watch(&mut self, time: Duration, lease: Option<Duration>) -> Instant {
        let now = Instant::now();
        let every = lease.unwrap_or(time).min(time) + GRACE / 100;
        self.by_socket = Some(Watch {
            look: now + every,
            every,
        });
        now + time + GRACE
    }

    /// A wait begins; gives how long it is to last.
    fn begin(&mut self, time: Duration) -> Duration {
        let now = Instant::now();
        let time = match self.lost_until {
            Some(until) if now < until => time.min(LOST_LOOK),
            _ => time,
        };
        self.ends = now + time;
        time
    }

    /// A wait that nobody answered stands among the server's blocked clients until it ends there, or the server notices.
    fn noted(&mut self, woken: Woken) -> Woken {
        if matches!(woken, Woken::Lost | Woken::Marker(false)) && Instant::now() < self.ends {
            self.lost_until = self.lost_until.max(Some(self.ends));
        }
        woken
    }

    fn over(&mut self) -> Option<Behind> {
        self.by_socket = None;
        match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Step(behind) => Some(behind),
            _ => None,
        }
    }
}

impl Watch {
    /// What ended by a socket, and whether the event loop had not read it. It may be asked for again when this was not waited for.
    async fn end(&mut self, socket: &IdleSocket) -> ((Vec<End>, Option<Standing>), bool) {
        loop {
            if let Some((end, known)) = socket.end() {
                return ((vec![end], known), false);
            }
            tokio::select! {
                () = socket.ended() => {}
                () = tokio::time::sleep_until(self.look.min(socket.over()).min(socket.told_by(self.look)).into()) => {
                    let now = Instant::now();
                    self.look = now + self.every;
                    // an event loop may be too busy to read, and a server may be gone without a word
                    if now >= socket.over() {
                        return (socket.break_off(false), false);
                    }
                    if let Some((end, known)) = socket.look() {
                        return ((vec![end], known), true);
                    }
                }
            }
        }
    }
}
