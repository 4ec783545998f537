//! An open connection: commands leave in the order in which they are given, from whatever thread, and are answered in that order.
//!
//! Whoever gives a command writes it to the socket. Answers are read by the engine, and where somebody's event loop watches the socket (`watched`), by that, too:
//! what it asked is answered without a change of threads, which costs more than the server does. Both read by the same code, of which
//! `transport` alone knows whether there is TLS.

mod driver;
pub(crate) mod framing;
mod listening;
mod news;
pub(crate) mod resp;
pub(crate) mod transport;
#[cfg(unix)]
mod watched;
mod why;

use std::{
    collections::VecDeque,
    future::Future,
    io,
    sync::{atomic::AtomicBool, Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

pub use redis::Value;
use redis::{RedisError, RedisResult};
use tokio::{
    io::Interest,
    sync::{oneshot, watch, Notify},
};

pub(super) use self::why::{refusal, refused};
use self::{
    framing::{foreign_in, Foreign, Framing},
    news::{Came, News},
    resp::parse,
    transport::{shrink, Transport, LONG},
    why::{reset, Why},
};
use super::call::commands::Commands;
use crate::error::{Error, Result};

pub use self::news::Listener;
#[cfg(unix)]
pub use self::watched::{Watch, Watched, WireId};

/// What a command is answered.
pub type Answer = Result<Value>;

/// An open connection, which many share. It closes with the last of them.
#[derive(Clone)]
pub struct Wire {
    shared: Arc<Shared>,
}

struct Shared {
    // server, database and user
    place: String,
    state: Mutex<State>,
    // there is something for the engine to do
    called: Arc<Notify>,
    over: watch::Sender<bool>,
    // the event loop that watches has something to read for those who listen, by whatever connection
    is_expected: AtomicBool,
}

struct State {
    transport: Transport,
    inbox: Vec<u8>,
    // how far of a large reply has come
    framing: Framing,
    framed: usize,
    // whom the next replies are for
    waiting: VecDeque<Waiting>,
    // replies for the engine in all
    by_engine: usize,
    // the event loop that watches, and what it was answered, which it did not take yet
    watcher: Option<Watcher>,
    watchers: u32,
    answers: Vec<Answer>,
    news: News,
    // when the first of those that wait came to be that
    since: Instant,
    is_first: bool,
    why: Option<Why>,
    is_over: bool,
}

/// Who waits for replies.
enum Waiting {
    /// Somebody of the engine, for so many, of which these are there.
    Engine(usize, Vec<Answer>, oneshot::Sender<Vec<Answer>>),
    /// The event loop of this number, for one.
    EventLoop(u32),
}

/// An event loop that watches.
struct Watcher {
    number: u32,
    // there are answers for it, which it did not read itself
    wake: Box<dyn Fn() + Send>,
    // it was asked to read, and did not since
    is_late: bool,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Wire").field(&self.shared.place).finish()
    }
}

impl Wire {
    /// Over a connection whose hands are shaken. On a tokio runtime, whose task reads until an event loop does.
    pub(super) fn over(transport: Transport, place: String) -> Self {
        let socket = transport.socket().clone();
        let called = Arc::<Notify>::default();
        let shared = Arc::new(Shared {
            place,
            state: Mutex::new(State {
                transport,
                inbox: Vec::new(),
                framing: Framing::default(),
                framed: 0,
                waiting: VecDeque::new(),
                by_engine: 0,
                watcher: None,
                watchers: 0,
                answers: Vec::new(),
                news: News::default(),
                since: Instant::now(),
                is_first: true,
                why: None,
                is_over: false,
            }),
            called: called.clone(),
            over: watch::Sender::new(false),
            is_expected: AtomicBool::new(false),
        });
        tokio::spawn(driver::drive(Arc::downgrade(&shared), socket, called));
        Self { shared }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// Server, database and user.
    pub(crate) fn place(&self) -> &str {
        &self.shared.place
    }

    /// Closes it: nobody gets an answer any more. The descriptor stays.
    pub fn cut(&self) {
        self.shared.end(&mut self.state());
    }

    /// Whether it is closed, or broken as far as is known.
    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    // ---- the engine's side

    /// Sends commands, and gives their answers; an error when it broke, with the reason where the server has told one.
    pub(super) async fn ask(&self, commands: Vec<u8>, replies: usize) -> RedisResult<Vec<Answer>> {
        let answers = self.give(commands, replies);
        answers.await.map_err(|_| self.why().unwrap_or_else(reset))
    }

    /// Sends commands, whose answers come later.
    pub(super) fn give(&self, commands: Vec<u8>, replies: usize) -> oneshot::Receiver<Vec<Answer>> {
        let (taker, answers) = oneshot::channel();
        self.shared.give(&commands.into(), replies, taker);
        answers
    }

    fn why(&self) -> Option<RedisError> {
        self.state().why.as_ref().map(Why::error)
    }

    /// What came that no server of Redis sends, if it is for that that it broke.
    pub(super) fn fault(&self) -> Option<RedisError> {
        let is_foreign = matches!(self.state().why, Some(Why::Foreign(_)));
        self.why().filter(|_| is_foreign)
    }

    /// Ends with the connection, which it does not keep open.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut over = self.shared.over.subscribe();
        async move {
            let _ = over.wait_for(|over| *over).await;
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes commands of the engine's. Those that are given while others are under way leave together, as soon as their tasks have run.
    fn give(&self, commands: &Commands<'_>, replies: usize, taker: oneshot::Sender<Vec<Answer>>) {
        let mut state = self.state();
        if state.is_over {
            return;
        }
        let is_alone = state.waiting.is_empty() && !state.transport.is_full();
        let answers = Vec::with_capacity(replies);
        state.waiting.push_back(Waiting::Engine(replies, answers, taker));
        state.by_engine += 1;
        match is_alone {
            // one that fails is found as its answer is read
            true => drop(state.transport.send(commands)),
            false => commands.pieces().for_each(|piece| state.transport.put(piece)),
        }
        self.called.notify_one();
    }

    /// Reads what is there, and answers.
    fn read(&self, state: &mut State) -> io::Result<()> {
        if state.is_over {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let came = state.transport.read(&mut state.inbox);
        let answered = state.answer();
        if let Some(foreign) = answered.as_ref().err().and_then(foreign_in) {
            state.why.get_or_insert_with(|| Why::Foreign(foreign.clone()));
        }
        let read = answered.and(came);
        if read.is_err() {
            self.end(state);
        }
        read
    }

    fn end(&self, state: &mut State) {
        if std::mem::replace(&mut state.is_over, true) {
            return;
        }
        state.transport.socket().shutdown();
        // each is told by that
        state.waiting.clear();
        state.by_engine = 0;
        state.news.end();
        self.over.send_replace(true);
        self.called.notify_one();
    }
}

impl driver::Driven for Shared {
    /// Nothing where an event loop reads, and no answer is the engine's.
    fn wants(&self) -> Option<Option<Interest>> {
        let mut state = self.state();
        // what tasks have given meanwhile
        let _ = state.transport.flush();
        if state.is_over {
            return None;
        }
        let reads = state.by_engine > 0 || state.watcher.is_none();
        Some(match (reads, state.transport.is_full()) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        })
    }

    fn turn(&self) {
        let mut state = self.state();
        let _ = state.transport.flush();
        if state.by_engine > 0 || state.watcher.is_none() {
            // whoever waits is told of a failure
            let _ = self.read(&mut state);
            state.act();
            state.wake();
        }
    }

    fn looks(&self) -> bool {
        self.state().news.has_listeners()
    }

    fn look(&self) {
        let mut state = self.state();
        // what was read at the last look, and is nobody's business yet
        state.news.heard.drain(..).for_each(|listener| listener.act(true));
        self.see_event_loop(&mut state);
        let _ = self.read(&mut state);
        state.wake();
    }

    fn give_up(&self) {
        self.end(&mut self.state());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.state().transport.socket().shutdown();
        // who takes the engine's turns finds nothing, and ends
        self.called.notify_one();
    }
}

impl State {
    /// Has the event loop take what was read for it.
    fn wake(&self) {
        if let Some(watcher) = self
            .watcher
            .as_ref()
            .filter(|_| !self.answers.is_empty() || !self.news.heard.is_empty() || self.is_over)
        {
            (watcher.wake)();
        }
    }

    /// Has those who heard act, where no event loop does.
    fn act(&mut self) {
        if self.watcher.is_none() {
            self.news.heard.drain(..).for_each(|listener| listener.act(false));
        }
    }

    /// Gives each whole reply to whom it is for.
    fn answer(&mut self) -> io::Result<()> {
        let mut from = 0;
        while let Some((answer, len)) = self.next_reply(from)? {
            from += len;
            self.take(answer)?;
        }
        if from > 0 {
            self.since = Instant::now();
        }
        self.inbox.drain(..from);
        shrink(&mut self.inbox);
        Ok(())
    }

    /// The reply at this place of the inbox, and its length.
    fn next_reply(&mut self, from: usize) -> std::result::Result<Option<(Answer, usize)>, Foreign> {
        let came = &self.inbox[from..];
        // a large reply comes in many pieces, and is parsed once
        if came.len() > LONG {
            let Some(end) = self.framing.end(&came[self.framed..])? else {
                self.framed = came.len();
                return Ok(None);
            };
            let end = std::mem::take(&mut self.framed) + end;
            return parse(&came[..end]);
        }
        parse(came)
    }

    fn take(&mut self, mut answer: Answer) -> std::result::Result<(), Foreign> {
        if let Ok(Value::Push { kind, data }) = &answer {
            match self.news.take(kind, data) {
                Came::News => return Ok(()),
                Came::Answer => answer = Ok(Value::Okay),
            }
        }
        if std::mem::take(&mut self.is_first) {
            if let Err(Error::Refused(refused)) = &answer {
                let words: &str = refused;
                self.why = Why::of_first(words);
            }
        }
        match self.waiting.front_mut() {
            Some(Waiting::Engine(replies, answers, _)) => {
                answers.push(answer);
                if answers.len() < *replies {
                    return Ok(());
                }
                self.by_engine -= 1;
                if let Some(Waiting::Engine(_, answers, taker)) = self.waiting.pop_front() {
                    // who waits no more needs none
                    let _ = taker.send(answers);
                }
            }
            Some(Waiting::EventLoop(number)) => {
                let number = *number;
                self.waiting.pop_front();
                // one that watches no more has asked elsewhere
                if self.watcher.as_ref().is_some_and(|watcher| watcher.number == number) {
                    self.answers.push(answer);
                }
            }
            // it hangs up behind such words
            None if self.why.is_some() => {}
            None => return Err(Foreign::new("a reply that nobody has asked for")),
        }
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests;
