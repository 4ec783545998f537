//! Calls of JavaScript from its own event loop: a message, or for what comes most and alone, plain values, which cost a fraction of one.

use std::ptr;

use napi::{
    bindgen_prelude::{Function, FunctionRef, JsValue, JsValuesTupleIntoVec, ToNapiValue},
    sys, Env, Result,
};

/// The functions that messages, and plain values, go to. They hold on to all that they know, their queue or worker included.
pub struct Callbacks<M: JsValuesTupleIntoVec, O: JsValuesTupleIntoVec> {
    on_message: FunctionRef<M, ()>,
    on_one: FunctionRef<O, ()>,
}

impl<M: JsValuesTupleIntoVec + ToNapiValue, O: JsValuesTupleIntoVec> Callbacks<M, O> {
    /// References to functions.
    pub fn new(on_message: &Function<'_, M, ()>, on_one: &Function<'_, O, ()>) -> Result<Self> {
        Ok(Self {
            on_message: on_message.create_ref()?,
            on_one: on_one.create_ref()?,
        })
    }

    /// The functions themselves, for as long as the handle scope.
    pub fn borrow(&self, env: Env) -> Option<Borrowed> {
        Some(Borrowed {
            env: env.raw(),
            on_message: self.on_message.borrow_back(&env).ok()?.raw(),
            on_one: self.on_one.borrow_back(&env).ok()?.raw(),
        })
    }
}

/// The functions of [`Callbacks`], while nothing else is borrowed: they may close what calls them.
pub struct Borrowed {
    env: sys::napi_env,
    on_message: sys::napi_value,
    on_one: sys::napi_value,
}

impl Borrowed {
    /// Sends a message.
    /// # Safety
    /// On the environment's thread, in the handle scope of [`Callbacks::borrow`].
    pub unsafe fn message(&self, message: impl ToNapiValue) {
        // SAFETY: the caller's promise
        unsafe {
            if let Ok(message) = ToNapiValue::to_napi_value(self.env, message) {
                call_back(self.env, self.on_message, &[message]);
            }
        }
    }

    /// Sends plain values.
    /// # Safety
    /// As [`Borrowed::message`]; the values were made in this environment.
    pub unsafe fn one<const N: usize>(&self, values: Result<[sys::napi_value; N]>) {
        if let Ok(values) = values {
            // SAFETY: the caller's promise
            unsafe { call_back(self.env, self.on_one, &values) };
        }
    }
}

/// Calls a function from outside JavaScript, so that promises it settles run their reactions.
unsafe fn call_back(env: sys::napi_env, function: sys::napi_value, arguments: &[sys::napi_value]) {
    // SAFETY: as in `Borrowed`
    unsafe {
        let mut global = ptr::null_mut();
        let mut result = ptr::null_mut();
        sys::napi_get_global(env, &mut global);
        let (count, arguments) = (arguments.len(), arguments.as_ptr());
        let status = sys::napi_make_callback(env, ptr::null_mut(), global, function, count, arguments, &mut result);
        if status == sys::Status::napi_pending_exception {
            let mut error = ptr::null_mut();
            sys::napi_get_and_clear_last_exception(env, &mut error);
            sys::napi_fatal_exception(env, error);
        }
    }
}
