//! Keeps what a queue is asked in the order of the calls. Adds may take a shortcut; all else goes by the engine, where calls begin in the
//! order in which they are given. What is given behind adds on the shortcut waits here until they are answered. The end of a job follows calls
//! that its handler gave and did not await, whatever their queue, unless they are kept from beginning for long ([`Followers`]).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::runtime::{Call, Line};

/// How long followers wait for calls that do not begin: those of a queue that is out of reach, or of a thread that is busy, hold up no worker.
const PATIENCE: Duration = Duration::from_millis(100);

/// The calls of one queue.
pub struct Order {
    server: Arc<str>,
    line: Line,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // calls by the engine that have no answer, those that wait included
    by_engine: u64,
    // adds that later calls wait for: how many were given, and answered. They are answered in their order.
    ahead: u64,
    answered: u64,
    // each behind that many of them
    waiting: VecDeque<(u64, Call, Place)>,
}

impl Order {
    /// `line` leads to the engine.
    pub fn new(server: &str, line: Line) -> Self {
        Self {
            server: server.into(),
            line,
            state: Mutex::default(),
        }
    }

    /// Where the engine's calls begin.
    pub fn line(&self) -> &Line {
        &self.line
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether the engine has calls without an answer, which an add on the shortcut would overtake.
    pub fn is_engine_busy(&self) -> bool {
        self.state().by_engine > 0
    }

    /// An add goes to where later calls do not follow it: they wait for [`Order::answered`].
    pub fn begin_ahead(&self) {
        self.state().ahead += 1;
    }

    /// So many of these adds were answered, or never will be.
    pub fn answered(&self, count: u64) {
        self.end(0, count);
    }

    /// Has the engine begin a call, behind all that was given before.
    /// The caller holds a [`Turn`] for it; `is_ahead` when later calls wait for that one.
    pub fn give(&self, call: Call, is_ahead: bool) {
        let place = Place::take(&self.server);
        let unsent = {
            let mut state = self.state();
            let behind = state.ahead;
            state.ahead += u64::from(is_ahead);
            if behind == state.answered && state.waiting.is_empty() {
                // under the lock, as nothing must come between
                self.line.give(place.until_begun(call))
            } else {
                state.waiting.push_back((behind, call, place));
                None
            }
        };
        // it may hold turns, whose end takes the lock
        drop(unsent);
    }

    fn end(&self, by_engine: u64, ahead: u64) {
        let mut unsent = Vec::new();
        let mut state = self.state();
        state.by_engine -= by_engine;
        state.answered += ahead;
        while state
            .waiting
            .front()
            .is_some_and(|(behind, ..)| *behind <= state.answered)
        {
            if let Some((_, call, place)) = state.waiting.pop_front() {
                unsent.extend(self.line.give(place.until_begun(call)));
            }
        }
        drop(state);
        drop(unsent);
    }
}

/// A call by the engine, until it is answered or dropped.
pub struct Turn {
    order: Arc<Order>,
    is_ahead: bool,
}

impl Turn {
    /// `is_ahead` when later calls wait for its end.
    pub fn begin(order: Arc<Order>, is_ahead: bool) -> Self {
        order.state().by_engine += 1;
        Self { order, is_ahead }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.order.end(1, u64::from(self.is_ahead));
    }
}

/// Calls of the process that have not begun, and what follows them.
static WAITS: Mutex<Waits> = Mutex::new(Waits {
    last: 0,
    places: BTreeMap::new(),
    followers: Vec::new(),
});

struct Waits {
    last: u64,
    // of calls, by their server
    places: BTreeMap<Arc<str>, BTreeSet<u64>>,
    // as they came
    followers: Vec<Follower>,
}

/// What follows the calls of a server up to a place.
struct Follower {
    behind: u64,
    server: Arc<str>,
    line: Line,
    call: Call,
}

impl Waits {
    /// Gives what follows no call any more. Gives back what an engine that ended does not take.
    fn go_on(&mut self) -> Vec<Call> {
        let places = &self.places;
        let must_wait = |follower: &mut Follower| {
            let first = places.get(&follower.server).and_then(BTreeSet::first);
            first.is_some_and(|first| *first <= follower.behind)
        };
        let ready = self.followers.extract_if(.., |follower| !must_wait(follower));
        ready.filter_map(|follower| follower.line.give(follower.call)).collect()
    }

    /// Nobody follows some calls of a server any more, whose places `leave` takes out.
    fn leave(&mut self, server: &Arc<str>, leave: impl FnOnce(&mut BTreeSet<u64>)) -> Vec<Call> {
        if let Some(places) = self.places.get_mut(server) {
            leave(places);
            if places.is_empty() {
                self.places.remove(server);
            }
        }
        self.go_on()
    }
}

/// The place of a call that has not begun, among all of the process to its server.
struct Place(u64, Arc<str>);

impl Place {
    fn take(server: &Arc<str>) -> Self {
        let mut waits = lock(&WAITS);
        waits.last += 1;
        let place = waits.last;
        waits.places.entry(server.clone()).or_default().insert(place);
        Self(place, server.clone())
    }

    /// The same call, which frees its place once it has begun.
    fn until_begun(self, mut call: Call) -> Call {
        let mut place = Some(self);
        Box::pin(poll_fn(move |context| {
            let polled = call.as_mut().poll(context);
            drop(place.take());
            polled
        }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let unsent = lock(&WAITS).leave(&self.1, |places| {
            places.remove(&self.0);
        });
        drop(unsent);
    }
}

/// Work of one object that follows the calls to its server which have not begun as it comes, and keeps its own order.
pub struct Followers {
    server: Arc<str>,
    line: Line,
    work: Arc<Mutex<VecDeque<Work>>>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Followers {
    /// `line` leads to the engine.
    pub fn new(server: &str, line: Line) -> Self {
        Self {
            server: server.into(),
            line,
            work: Arc::default(),
        }
    }

    /// Whether work that comes now may have to wait.
    pub fn may_wait(&self) -> bool {
        lock(&WAITS).places.contains_key(&self.server) || !lock(&self.work).is_empty()
    }

    /// Does something short on the engine's thread, behind the calls that have not begun and what followed before.
    pub fn follow(&self, work: impl FnOnce() + Send + 'static) {
        lock(&self.work).push_back(Box::new(work));
        let all = self.work.clone();
        let call: Call = Box::pin(async move {
            // what has begun before leaves first: as this begins, and by the time at which it is a task that goes on
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            // done under the lock: what comes meanwhile must not overtake it
            let mut all = lock(&all);
            if let Some(work) = all.pop_front() {
                work();
            }
        });
        let mut waits = lock(&WAITS);
        let behind = waits.last;
        let follower = Follower {
            behind,
            server: self.server.clone(),
            line: self.line.clone(),
            call,
        };
        waits.followers.push(follower);
        let unsent = waits.go_on();
        let is_own = |other: &Follower| other.behind == behind && other.server == self.server;
        let has_to_wait = waits.followers.iter().any(is_own);
        drop(waits);
        drop(unsent);
        if has_to_wait {
            self.give_up_in_time(behind);
        }
    }

    /// Follows no call up to a place any more once it has waited for long.
    fn give_up_in_time(&self, behind: u64) {
        let server = self.server.clone();
        let give_up = async move {
            tokio::time::sleep(PATIENCE).await;
            let unsent = lock(&WAITS).leave(&server, |places| *places = places.split_off(&(behind + 1)));
            drop(unsent);
        };
        drop(self.line.give(Box::pin(give_up)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
