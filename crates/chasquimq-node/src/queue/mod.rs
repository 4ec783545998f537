//! `NativeQueue`: a queue's adds and its commands.

pub mod adds;
mod by_id;
mod children;
mod commands;
mod find;
mod flows;
mod groups;
pub mod job;
mod latency;
mod libraries;
mod lists;
pub mod look;
mod manual;
pub mod messages;
mod migrate;
pub mod order;
mod schedulers;
mod whole;

use std::{future::Future, sync::Arc};

use chasquimq::{Keys, Queue};
use napi::{
    bindgen_prelude::{Function, Object, ToNapiValue, Uint32Array},
    Env, Result,
};
use napi_derive::napi;

use self::{
    adds::{Adds, ToJs},
    messages::{OneAdded, QueueMessage},
    order::Turn,
};
use crate::{
    connection::NativeConnection,
    low_latency,
    runtime::{Held, Runtime},
    text::{LongText, Text},
};

/// What a queue is made from.
#[napi(object, object_to_js = false)]
pub struct NativeQueueOptions {
    /// Queue name.
    pub name: String,
    /// Key prefix.
    pub prefix: String,
    /// Server.
    pub connection: NativeConnection,
    /// Accept any server version.
    pub skip_version_check: Option<bool>,
}

/// One queue. See `src/connection/commands.ts`.
#[napi]
pub struct NativeQueue {
    adds: Arc<Adds>,
    runtime: Held,
}

#[napi]
impl NativeQueue {
    /// Makes a queue; nothing is connected yet. `host` is a queue whose connection it goes by, which closes behind it.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        options: NativeQueueOptions,
        #[napi(ts_arg_type = "(message: QueueMessage) => void")] on_message: Function<'_, QueueMessage, ()>,
        #[napi(ts_arg_type = "(request: number, first: number) => void")] on_added: Function<'_, OneAdded, ()>,
        host: Option<&NativeQueue>,
    ) -> Result<Self> {
        let runtime = Runtime::shared()?;
        // a guest has no socket of its own
        let shortcut = match host {
            None => low_latency::for_adds(&on_message, &on_added)?,
            Some(_) => None,
        };
        let server = options.connection.server();
        let keys = Keys::new(&options.prefix, &options.name);
        let adds = Adds::new(&env, &on_message, shortcut, &runtime, &server, |sink| match host {
            None => {
                let access = options.connection.to_access(options.skip_version_check);
                Queue::new(access, keys, move |event| sink.send(ToJs::Connection(event)))
            }
            Some(host) => Queue::beside(host.adds.queue(), keys),
        })?;
        Ok(Self {
            adds,
            runtime: Held::new(runtime),
        })
    }

    /// A promise of what the engine answers. It takes effect behind what the queue was asked before, and a close waits for it.
    fn call<'env, T, F>(&self, env: &'env Env, work: impl FnOnce(Arc<Queue>) -> F) -> Result<Object<'env>>
    where
        F: Future<Output = chasquimq::Result<T>> + Send + 'static,
        T: ToNapiValue + Send + 'static,
    {
        let work = work(self.adds.queue().clone());
        let held = (Turn::begin(self.adds.order().clone(), false), self.adds.hold());
        let (call, promise) = self.runtime.get()?.call(env, async move {
            // ends before the promise does
            let _held = held;
            work.await
        })?;
        self.adds.order().give(call, false);
        Ok(promise)
    }

    /// Resolves when connected.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn ready<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let queue = self.adds.queue().clone();
        self.runtime.get()?.promise(env, async move { queue.ready().await })
    }

    /// Waits for adds under way, then closes.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let adds = self.adds.clone();
        self.runtime.close(env, async move { adds.finish().await })
    }

    /// How many calls have no answer yet, for which `close` waits.
    #[napi]
    pub fn unanswered(&self) -> f64 {
        self.adds.unanswered() as f64
    }

    /// Answers to adds that `close` has overtaken.
    #[napi]
    pub fn untold(&self) -> QueueMessage {
        self.adds.untold()
    }

    /// Closes at once.
    #[napi]
    pub fn disconnect(&self) {
        self.adds.stop();
        self.runtime.let_go();
    }

    /// Adds one job, without options unless they are given; answered by `onAdded`, or by a message.
    #[napi]
    pub fn add_one(
        &self,
        request: f64,
        now: f64,
        #[napi(ts_arg_type = "string")] name: Text,
        #[napi(ts_arg_type = "string")] data: Text,
        opts: Option<String>,
    ) -> Result<()> {
        self.runtime.get()?;
        let (Text(name), Text(data)) = (&name, &data);
        self.adds.add_one(request, now as u64, name, data, opts.as_deref());
        Ok(())
    }

    /// Adds jobs in one atomic batch; answered by a message with the same request number.
    #[napi]
    pub fn add(
        &self,
        request: f64,
        now: f64,
        #[napi(ts_arg_type = "string | Array<string>")] text: LongText,
        layout: Uint32Array,
        opts: Vec<String>,
    ) -> Result<()> {
        self.runtime.get()?;
        self.adds.add(request, now as u64, &text, &layout, &opts);
        Ok(())
    }
}

// a thread may end while calls are under way, which hold on to the queue
impl Drop for NativeQueue {
    fn drop(&mut self) {
        self.adds.stop();
    }
}
