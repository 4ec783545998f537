//! The way back to JavaScript: one function, called on its thread, let go when the object closes.

use std::sync::{Arc, Mutex};

use napi::{
    bindgen_prelude::{Function, JsValuesTupleIntoVec},
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
    Env, Result, Status,
};

type Back<T, A> = Arc<ThreadsafeFunction<T, (), A, Status, false>>;
type Slot<T, A> = Arc<Mutex<Option<Back<T, A>>>>;

/// Reaches JavaScript's thread.
pub trait OnJsThread: Send + Sync {
    /// Has it do something. False once it is closed.
    fn on_js_thread(&self, work: Box<dyn FnOnce(Env) + Send>) -> bool;
}

/// Calls a JavaScript function from any thread, until it is closed. Keeps Node alive meanwhile.
pub struct Sink<T: 'static, A: 'static + JsValuesTupleIntoVec> {
    back: Slot<T, A>,
}

impl<T: 'static, A: 'static + JsValuesTupleIntoVec> Clone for Sink<T, A> {
    fn clone(&self) -> Self {
        Self {
            back: self.back.clone(),
        }
    }
}

impl<T: Send + 'static, A: 'static + JsValuesTupleIntoVec> Sink<T, A> {
    /// `convert` runs on JavaScript's thread.
    pub fn new(function: &Function<'_, A, ()>, mut convert: impl FnMut(T) -> Result<A> + 'static) -> Result<Self> {
        let back = function
            .build_threadsafe_function::<T>()
            .build_callback(move |context| convert(context.value))?;
        Ok(Self {
            back: Arc::new(Mutex::new(Some(Arc::new(back)))),
        })
    }

    /// A sink that is closed already.
    pub fn none() -> Self {
        Self {
            back: Arc::new(Mutex::new(None)),
        }
    }

    /// Hands a message over; after the close it is dropped.
    pub fn send(&self, message: T) {
        self.reaches(message);
    }

    /// The same; whether it is handed over.
    pub fn reaches(&self, message: T) -> bool {
        let back = self.back.lock().ok().and_then(|back| back.clone());
        back.is_some_and(|back| back.call(message, ThreadsafeFunctionCallMode::NonBlocking) == Status::Ok)
    }

    /// Lets go of the function, so that Node may exit.
    pub fn close(&self) {
        if let Ok(mut back) = self.back.lock() {
            back.take();
        }
    }
}
