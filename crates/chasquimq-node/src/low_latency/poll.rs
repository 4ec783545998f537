//! Sockets watched by libuv, which runs JavaScript's thread: what they bring needs no other thread.

use std::{
    ffi::{c_int, c_void},
    os::fd::RawFd,
    ptr,
    rc::Rc,
};

use napi::{sys, Env};

use crate::low_latency::uv::{Handle, Kind, Uv};

// uv_poll_event bits: part of libuv's stable ABI
const UV_READABLE: c_int = 1;
const UV_WRITABLE: c_int = 2;

/// What to watch a socket for, or what it is ready for.
#[derive(Debug, Clone, Copy)]
pub struct Events {
    /// Reading.
    pub read: bool,
    /// Writing.
    pub write: bool,
}

/// Owner of a watched socket.
pub trait Watched {
    /// The socket; open as long as this value.
    fn fd(&self) -> RawFd;
    /// The socket is ready, or broken. On JavaScript's thread, inside a handle scope.
    fn ready(&self, env: Env, watch: &Watch, events: Events);
}

/// A socket in the care of this thread's event loop, until it is closed. All of it happens on that thread.
#[derive(Clone)]
pub struct Watch {
    handle: Rc<Handle<Rc<dyn Watched>>>,
}

impl Watch {
    /// Whether this runtime can watch sockets.
    pub fn is_possible(env: Env) -> bool {
        Uv::of(env).is_some()
    }

    /// Watches a socket for reading. `None` when the event loop cannot take it.
    pub fn open(env: Env, watched: Rc<dyn Watched>) -> Option<Self> {
        let fd = watched.fd();
        // SAFETY: the descriptor is open as long as its owner, which the handle keeps
        let init = |uv: &Uv, uv_loop, raw| unsafe { (uv.poll_init)(uv_loop, raw, fd) };
        let watch = Self {
            handle: Handle::open(env, Kind::Poll, watched, init)?,
        };
        if !watch.start(UV_READABLE) {
            watch.close();
            return None;
        }
        Some(watch)
    }

    /// Changes what the socket is watched for.
    pub fn watch(&self, events: Events) {
        let mut bits = 0;
        if events.read {
            bits |= UV_READABLE;
        }
        if events.write {
            bits |= UV_WRITABLE;
        }
        self.start(bits);
    }

    fn start(&self, bits: c_int) -> bool {
        // SAFETY: it is a poll handle
        unsafe { self.handle.with(|uv, raw| (uv.poll_start)(raw, bits, ready)) }
    }

    /// Watches no more. Once is enough.
    pub fn close(&self) {
        self.handle.close();
    }
}

unsafe extern "C" fn ready(raw: *mut c_void, status: c_int, events: c_int) {
    // SAFETY: libuv calls this on its thread with a handle of `Watch::open`, which stays while JavaScript runs, inside a handle scope
    unsafe {
        let Some(handle) = Handle::<Rc<dyn Watched>>::of(raw) else {
            return;
        };
        let watch = Watch { handle };
        // a socket that failed says why when it is read
        let events = Events {
            read: status != 0 || events & UV_READABLE != 0,
            write: status == 0 && events & UV_WRITABLE != 0,
        };
        let env = watch.handle.env();
        let mut scope = ptr::null_mut();
        sys::napi_open_handle_scope(env, &mut scope);
        watch.handle.owner().ready(Env::from_raw(env), &watch, events);
        sys::napi_close_handle_scope(env, scope);
    }
}

/// Calls a JavaScript function from outside JavaScript, so that promises it settles run their reactions.
/// # Safety
/// On the environment's thread, inside a handle scope; all values belong to it.
pub unsafe fn call_back(env: sys::napi_env, function: sys::napi_value, arguments: &[sys::napi_value]) {
    // SAFETY: the caller's promise
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
