//! The engine's thread. One for the whole process, there while any object is open.

use std::{
    future::Future,
    sync::{Arc, Mutex, Weak},
};

use napi::{bindgen_prelude::Object, Env, JsValue, Result};

use crate::error::{js_error, panic_error};

static CURRENT: Mutex<Weak<Runtime>> = Mutex::new(Weak::new());

/// A tokio runtime that ends with its last user.
pub struct Runtime {
    tokio: Option<tokio::runtime::Runtime>,
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
        let runtime = Arc::new(Self { tokio: Some(tokio) });
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

    /// Runs an engine call and gives JavaScript a promise of its result. A panic rejects it.
    pub fn promise<'env, T, C, F>(self: &Arc<Self>, env: &'env Env, work: F, convert: C) -> Result<Object<'env>>
    where
        F: Future<Output = chasquimq::Result<T>> + Send + 'static,
        T: Send + 'static,
        C: FnOnce(T) -> Output + Send + 'static,
    {
        let (deferred, promise) = env.create_deferred::<Output, Resolver>()?;
        // the runtime stays until the promise is settled
        let runtime = self.clone();
        self.handle().spawn(async move {
            let done = tokio::spawn(work).await;
            deferred.resolve(Box::new(move |env| match done {
                Ok(Ok(value)) => Ok(convert(value)),
                Ok(Err(error)) => Err(js_error(&env, &error)),
                Err(_) => Err(panic_error()),
            }));
            drop(runtime);
        });
        Ok(promise)
    }
}

type Resolver = Box<dyn FnOnce(Env) -> Result<Output> + Send>;

/// What promises give.
pub enum Output {
    Nothing,
    Null,
    Number(f64),
    Flag(bool),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<f64>),
    Job(Option<Box<crate::queue::NativeJob>>),
    Jobs(Vec<crate::queue::NativeJob>),
    Finished(i32, String),
    Logs(crate::queue::NativeLogs),
    Metrics(crate::queue::NativeMetrics),
    Clients(Vec<Fields>),
    Fields(Fields),
    Children(Vec<crate::queue::children::NativeChildren>),
    ChildRange(Box<crate::queue::children::NativeChildRange>),
    Tree(Vec<crate::queue::children::NativeTreeNode>),
    Stepped(Box<crate::queue::manual::NativeHandStepped>),
    AddedFlows(crate::queue::flows::NativeAddedFlows),
    Schedulers(Vec<crate::queue::schedulers::NativeScheduler>),
}

impl napi::bindgen_prelude::ToNapiValue for Output {
    unsafe fn to_napi_value(env: napi::sys::napi_env, value: Self) -> Result<napi::sys::napi_value> {
        use napi::bindgen_prelude::ToNapiValue;
        // SAFETY: each arm hands on the environment that this call was given, on its thread
        unsafe {
            match value {
                Output::Nothing => <() as ToNapiValue>::to_napi_value(env, ()),
                Output::Null => napi::bindgen_prelude::Null::to_napi_value(env, napi::bindgen_prelude::Null),
                Output::Number(number) => f64::to_napi_value(env, number),
                Output::Flag(flag) => bool::to_napi_value(env, flag),
                Output::Text(text) => String::to_napi_value(env, text),
                Output::Texts(texts) => <Vec<String>>::to_napi_value(env, texts),
                Output::Numbers(numbers) => <Vec<f64>>::to_napi_value(env, numbers),
                Output::Job(job) => match job {
                    Some(job) => crate::queue::NativeJob::to_napi_value(env, *job),
                    None => napi::bindgen_prelude::Null::to_napi_value(env, napi::bindgen_prelude::Null),
                },
                Output::Jobs(jobs) => <Vec<crate::queue::NativeJob>>::to_napi_value(env, jobs),
                Output::Finished(status, text) => <(i32, String)>::to_napi_value(env, (status, text)),
                Output::Logs(logs) => crate::queue::NativeLogs::to_napi_value(env, logs),
                Output::Metrics(metrics) => crate::queue::NativeMetrics::to_napi_value(env, metrics),
                Output::Clients(clients) => <Vec<Fields>>::to_napi_value(env, clients),
                Output::Fields(fields) => Fields::to_napi_value(env, fields),
                Output::Children(pages) => <Vec<crate::queue::children::NativeChildren>>::to_napi_value(env, pages),
                Output::ChildRange(range) => crate::queue::children::NativeChildRange::to_napi_value(env, *range),
                Output::Tree(nodes) => <Vec<crate::queue::children::NativeTreeNode>>::to_napi_value(env, nodes),
                Output::AddedFlows(added) => crate::queue::flows::NativeAddedFlows::to_napi_value(env, added),
                Output::Schedulers(found) => {
                    <Vec<crate::queue::schedulers::NativeScheduler>>::to_napi_value(env, found)
                }
                Output::Stepped(stepped) => crate::queue::manual::NativeHandStepped::to_napi_value(env, *stepped),
            }
        }
    }
}

/// Names and values that become an object, in this order.
pub struct Fields(pub Vec<(String, String)>);

impl napi::bindgen_prelude::ToNapiValue for Fields {
    unsafe fn to_napi_value(env: napi::sys::napi_env, value: Self) -> Result<napi::sys::napi_value> {
        let mut object = Object::new(&Env::from_raw(env))?;
        for (name, value) in value.0 {
            object.set(name, value)?;
        }
        Ok(object.raw())
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(tokio) = self.tokio.take() {
            // may run on the runtime's own thread, which cannot wait for itself
            tokio.shutdown_background();
        }
    }
}
