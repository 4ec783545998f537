//! Sockets that libuv polls on JavaScript's thread: what they bring needs no other thread.

use std::{
    ffi::{c_int, c_void},
    os::fd::RawFd,
    ptr,
    rc::Rc,
};

use napi::{sys, Env};

use super::uv::{Handle, Kind, Uv};

// a uv_poll_event bit: part of libuv's stable ABI
const UV_READABLE: c_int = 1;

/// Owner of a polled socket.
pub trait Polled {
    /// The socket; open as long as this value.
    fn fd(&self) -> RawFd;
    /// The socket is ready, or broken. On JavaScript's thread, inside a handle scope.
    fn ready(&self, env: Env, poll: &PollHandle);
}

/// Whether there is something to read at once.
pub fn is_readable(fd: RawFd) -> bool {
    let mut ready = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor, and no waiting
    unsafe { libc::poll(&mut ready, 1, 0) != 0 }
}

/// A socket that this thread's event loop polls, until it is closed. All of it happens on that thread.
#[derive(Clone)]
pub struct PollHandle {
    handle: Rc<Handle<Rc<dyn Polled>>>,
}

impl PollHandle {
    /// Whether this runtime can poll sockets.
    pub fn is_possible(env: Env) -> bool {
        Uv::of(env).is_some()
    }

    /// Polls a socket for reading. `None` when the event loop cannot take it.
    pub fn open(env: Env, polled: Rc<dyn Polled>) -> Option<Self> {
        let fd = polled.fd();
        // SAFETY: the descriptor is open as long as its owner, which the handle keeps
        let init = |uv: &Uv, uv_loop, raw| unsafe { (uv.poll_init)(uv_loop, raw, fd) };
        let poll = Self {
            handle: Handle::open(env, Kind::Poll, polled, init)?,
        };
        if !poll.start() {
            poll.close();
            return None;
        }
        Some(poll)
    }

    fn start(&self) -> bool {
        // SAFETY: it is a poll handle
        unsafe { self.handle.with(|uv, raw| (uv.poll_start)(raw, UV_READABLE, ready)) }
    }

    /// Polls no more. Once is enough.
    pub fn close(&self) {
        self.handle.close();
    }
}

unsafe extern "C" fn ready(raw: *mut c_void, status: c_int, _events: c_int) {
    // SAFETY: libuv calls this on its thread with a handle of `PollHandle::open`, which stays while JavaScript runs, inside a handle scope
    unsafe {
        let Some(handle) = Handle::<Rc<dyn Polled>>::of(raw) else {
            return;
        };
        let poll = PollHandle { handle };
        // a socket that failed says why when it is read, perhaps only behind what came before: libuv itself polls it no more
        if status != 0 {
            poll.start();
        }
        let env = poll.handle.env();
        let mut scope = ptr::null_mut();
        sys::napi_open_handle_scope(env, &mut scope);
        poll.handle.owner().ready(Env::from_raw(env), &poll);
        sys::napi_close_handle_scope(env, scope);
    }
}
