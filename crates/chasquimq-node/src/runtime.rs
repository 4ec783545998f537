//! The engine's thread. One for the whole process, there while any object is open.

use std::{
    future::{poll_fn, Future},
    panic::{catch_unwind, AssertUnwindSafe},
    pin::{pin, Pin},
    sync::{Arc, Mutex, Weak},
    task::Poll,
};

use chasquimq::Error;
use futures_util::stream::{FuturesUnordered, StreamExt};
use napi::{
    bindgen_prelude::{Object, ToNapiValue},
    Env, JsDeferred, Result,
};
use tokio::sync::{
    mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender},
    oneshot,
};

use crate::error::{js_error, panic_error};

static CURRENT: Mutex<Weak<Runtime>> = Mutex::new(Weak::new());

/// A tokio runtime that ends with its last user.
pub struct Runtime {
    tokio: Option<tokio::runtime::Runtime>,
    line: Line,
}

/// Work for the engine, which tells by itself what came of it.
pub type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Settles a promise, from any thread.
pub type Deferred<T> = JsDeferred<T, Box<dyn FnOnce(Env) -> Result<T> + Send>>;

/// Leads to the engine's thread, and does not keep it running.
#[derive(Clone)]
pub struct Line(UnboundedSender<Call>);

impl Line {
    /// Calls begin in the order in which they are given, so that their commands leave in it. Gives back a call for an engine that ended.
    pub fn give(&self, call: Call) -> Option<Call> {
        self.0.send(call).err().map(|unsent| unsent.0)
    }

    /// Resolves when all calls given so far have begun.
    pub async fn have_begun(&self) {
        let (begun, wait) = oneshot::channel::<()>();
        drop(self.give(Box::pin(async move { drop(begun) })));
        let _ = wait.await;
    }
}

impl Runtime {
    /// The process's runtime; started if nobody uses one.
    pub fn shared() -> Result<Arc<Self>> {
        let mut current = CURRENT.lock().map_err(|_| panic_error())?;
        if let Some(runtime) = current.upgrade() {
            return Ok(runtime);
        }
        let tokio = tokio::runtime::Builder::new_multi_thread()
            // Redis, JavaScript and this thread share what are often two cores
            .worker_threads(1)
            .thread_name("chasquimq")
            .enable_all()
            .build()
            .map_err(|error| napi::Error::from_reason(format!("the engine's thread does not start: {error}")))?;
        let (calls, given) = unbounded_channel();
        // a task that has done much is kept from what it waits for, and what it begins would be overtaken
        tokio.spawn(tokio::task::unconstrained(run_in_order(given)));
        let runtime = Arc::new(Self {
            tokio: Some(tokio),
            line: Line(calls),
        });
        *current = Arc::downgrade(&runtime);
        Ok(runtime)
    }

    /// Where the engine's tasks run.
    pub fn handle(&self) -> tokio::runtime::Handle {
        match &self.tokio {
            Some(tokio) => tokio.handle().clone(),
            None => unreachable!("the runtime is taken out only when it is dropped"),
        }
    }

    /// Leads to the engine's thread.
    pub fn line(&self) -> Line {
        self.line.clone()
    }

    /// Runs an engine call and gives JavaScript a promise of its result. A panic rejects it.
    pub fn promise<'env, T, F>(self: &Arc<Self>, env: &'env Env, work: F) -> Result<Object<'env>>
    where
        F: Future<Output = chasquimq::Result<T>> + Send + 'static,
        T: ToNapiValue + Send + 'static,
    {
        let (call, promise) = self.call(env, work)?;
        // taken by a task that ends with this runtime
        drop(self.line.give(call));
        Ok(promise)
    }

    /// The same for a caller that gives it to the [`Line`].
    pub fn call<'env, T, F>(self: &Arc<Self>, env: &'env Env, work: F) -> Result<(Call, Object<'env>)>
    where
        F: Future<Output = chasquimq::Result<T>> + Send + 'static,
        T: ToNapiValue + Send + 'static,
    {
        let (deferred, promise) = env.create_deferred()?;
        Ok((self.settle(deferred, work), promise))
    }

    /// A call that settles a promise which is there already.
    pub fn settle<T, F>(self: &Arc<Self>, deferred: Deferred<T>, work: F) -> Call
    where
        F: Future<Output = chasquimq::Result<T>> + Send + 'static,
        T: ToNapiValue + Send + 'static,
    {
        // the runtime stays until the promise is settled
        let runtime = self.clone();
        Box::pin(async move {
            let done = in_turn(unless_it_panics(work)).await;
            deferred.resolve(Box::new(move |env| match done {
                Some(Ok(value)) => Ok(value),
                Some(Err(error)) => Err(js_error(&env, &error)),
                None => Err(panic_error()),
            }));
            drop(runtime);
        })
    }
}

/// Runs all calls in one task: they begin in the order in which they are given, and those whose answers come together end in the order of these.
/// Of tasks of their own, the one that was woken last would run first.
async fn run_in_order(mut given: UnboundedReceiver<Call>) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            call = given.recv() => match call {
                // a call that panics must not take the others with it
                Some(call) => under_way.push(unless_it_panics(call)),
                None => break,
            },
            Some(_) = under_way.next() => {}
        }
    }
    while under_way.next().await.is_some() {}
}

/// The same work; what is done as soon as it begins is behind those that were woken before, and before those that are woken later: JavaScript's thread may
/// have read their answers, and its own, meanwhile.
async fn in_turn<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    let (mut has_begun, mut done) = (false, None);
    poll_fn(|context| {
        if let Some(done) = done.take() {
            return Poll::Ready(done);
        }
        match work.as_mut().poll(context) {
            Poll::Ready(output) if !has_begun => done = Some(output),
            polled => {
                has_begun = true;
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// `None` for work that panics.
async fn unless_it_panics<F: Future>(work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(polled) => polled.map(Some),
            Err(_) => Poll::Ready(None),
        },
    )
    .await
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(tokio) = self.tokio.take() {
            // may run on the runtime's own thread, which cannot wait for itself
            tokio.shutdown_background();
        }
    }
}

/// The runtime, as an object holds it until it closes.
pub struct Held(Mutex<Option<Arc<Runtime>>>);

impl Held {
    /// Keeps the runtime running.
    pub fn new(runtime: Arc<Runtime>) -> Self {
        Self(Mutex::new(Some(runtime)))
    }

    /// The runtime; an error once it was let go.
    pub fn get(&self) -> Result<Arc<Runtime>> {
        let runtime = self.0.lock().ok().and_then(|runtime| runtime.clone());
        runtime.ok_or_else(|| napi::Error::from_reason(Error::Closed.to_string()))
    }

    /// Lets the runtime go when `work` is done, of which JavaScript gets a promise. Once it was let go, `work` runs all the same.
    pub fn close<'env>(&self, env: &'env Env, work: impl Future<Output = ()> + Send + 'static) -> Result<Object<'env>> {
        let runtime = Runtime::shared()?;
        let held = self.let_go();
        runtime.promise(env, async move {
            work.await;
            drop(held);
            Ok(())
        })
    }

    /// Lets the runtime go now.
    pub fn let_go(&self) -> Option<Arc<Runtime>> {
        self.0.lock().ok().and_then(|mut runtime| runtime.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_that_is_answered_as_it_begins_ends_behind_those_that_were_answered_before() {
        let (calls, given) = unbounded_channel();
        let (answer, answered) = oneshot::channel::<()>();
        let ends = Arc::new(Mutex::new(Vec::new()));
        let end = |which| {
            let ends = ends.clone();
            move || ends.lock().expect("ends").push(which)
        };
        let (first, second, third) = (end("first"), end("second"), end("third"));
        let all: [Call; 3] = [
            Box::pin(async move {
                in_turn(async { answered.await.expect("an answer") }).await;
                first();
            }),
            Box::pin(async move {
                in_turn(async { answer.send(()).expect("who waits") }).await;
                second();
            }),
            Box::pin(async move {
                let mut is_answered = false;
                let answered = poll_fn(|context| {
                    if std::mem::replace(&mut is_answered, true) {
                        return Poll::Ready(());
                    }
                    context.waker().wake_by_ref();
                    Poll::Pending
                });
                in_turn(answered).await;
                third();
            }),
        ];
        for call in all {
            assert!(calls.send(call).is_ok());
        }
        drop(calls);
        run_in_order(given).await;
        assert_eq!(*ends.lock().expect("ends"), ["first", "second", "third"]);
    }
}
