//! The short way for adds: the command is written to its socket on JavaScript's own thread, and libuv, which runs that thread,
//! watches the socket for the answer. Measured one add at a time, the two thread changes it saves cost more than Redis itself.
//! A lane that breaks hands everything it was not answered to the engine's connection, which sends it again.

use std::{
    collections::VecDeque,
    ffi::{c_int, c_void},
    ptr,
    rc::Rc,
};

use chasquimq::{
    producer::{read_added, Call},
    server::direct::DirectSocket,
    Added,
};
use napi::{sys, Env};

/// libuv's functions, as the Node that loaded this addon has them.
#[derive(Clone, Copy)]
struct Uv {
    handle_size: unsafe extern "C" fn(c_int) -> usize,
    poll_init: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int,
    poll_start: unsafe extern "C" fn(*mut c_void, c_int, unsafe extern "C" fn(*mut c_void, c_int, c_int)) -> c_int,
    close: unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void)),
    set_data: unsafe extern "C" fn(*mut c_void, *mut c_void),
    get_data: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
}

// uv_handle_type of a poll handle, and uv_poll_event bits: part of libuv's stable ABI
const UV_POLL: c_int = 8;
const UV_READABLE: c_int = 1;
const UV_WRITABLE: c_int = 2;

impl Uv {
    /// `None` in a runtime that speaks Node-API without libuv.
    fn load() -> Option<Self> {
        static FOUND: std::sync::OnceLock<Option<Uv>> = std::sync::OnceLock::new();
        *FOUND.get_or_init(Self::look_up)
    }

    fn look_up() -> Option<Self> {
        // SAFETY: the names are libuv's public functions, whose signatures its 1.x ABI fixes
        unsafe {
            Some(Self {
                handle_size: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> usize>(symbol(
                    c"uv_handle_size",
                )?),
                poll_init: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int,
                >(symbol(c"uv_poll_init")?),
                poll_start: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, c_int, unsafe extern "C" fn(*mut c_void, c_int, c_int)) -> c_int,
                >(symbol(c"uv_poll_start")?),
                close: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void)),
                >(symbol(c"uv_close")?),
                set_data: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, *mut c_void)>(symbol(
                    c"uv_handle_set_data",
                )?),
                get_data: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> *mut c_void>(symbol(
                    c"uv_handle_get_data",
                )?),
            })
        }
    }
}

fn symbol(name: &std::ffi::CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a NUL; looking a name up changes nothing
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

type Answers = Vec<(u32, Call, Added)>;

/// Whoever owns a lane: told on JavaScript's thread, and free to use or close the lane meanwhile.
pub trait LaneOwner {
    /// Calls were answered.
    fn answered(&self, env: Env, answers: Answers);
    /// The lane is of no use any more, and these calls were not answered.
    fn broken(&self, calls: Vec<(u32, Call)>);
}

/// An open lane. All of it happens on JavaScript's thread.
pub struct Lane {
    state: *mut State,
}

struct State {
    uv: Uv,
    env: sys::napi_env,
    handle: *mut c_void,
    layout: std::alloc::Layout,
    socket: DirectSocket,
    waiting: VecDeque<(u32, Call)>,
    owner: Rc<dyn LaneOwner>,
    cleanup: sys::napi_async_cleanup_hook_handle,
    closing: bool,
}

impl Lane {
    /// Puts a socket in the care of this thread's event loop. `None` when the loop cannot take it.
    pub fn open(env: Env, socket: DirectSocket, owner: Rc<dyn LaneOwner>) -> Option<Self> {
        let uv = Uv::load()?;
        let mut uv_loop = ptr::null_mut();
        // SAFETY: `env` is this thread's live environment; the handle's memory is as large as libuv says and is freed in `closed`,
        // after libuv has let go of it; the state lives until then too
        unsafe {
            if sys::napi_get_uv_event_loop(env.raw(), &mut uv_loop) != sys::Status::napi_ok {
                return None;
            }
            let layout = std::alloc::Layout::from_size_align((uv.handle_size)(UV_POLL), 16).ok()?;
            let handle = std::alloc::alloc_zeroed(layout).cast::<c_void>();
            if handle.is_null() {
                return None;
            }
            if (uv.poll_init)(uv_loop.cast(), handle, socket.fd()) != 0 {
                std::alloc::dealloc(handle.cast(), layout);
                return None;
            }
            let state = Box::into_raw(Box::new(State {
                uv,
                env: env.raw(),
                handle,
                layout,
                socket,
                waiting: VecDeque::new(),
                owner,
                cleanup: ptr::null_mut(),
                closing: false,
            }));
            (uv.set_data)(handle, state.cast());
            // an environment that ends closes its handles before its loop may end
            sys::napi_add_async_cleanup_hook(env.raw(), Some(clean_up), state.cast(), &mut (*state).cleanup);
            let lane = Self { state };
            if (uv.poll_start)(handle, UV_READABLE, ready) != 0 {
                lane.close();
                return None;
            }
            Some(lane)
        }
    }

    /// Sends a call.
    /// # Errors
    /// Every call that was not answered, this one included, when the connection is broken.
    pub fn send(&self, request: u32, call: Call, command: &[u8]) -> Result<(), Vec<(u32, Call)>> {
        // SAFETY: the state lives while this lane does; only this thread touches it, and nobody above holds it while JavaScript runs
        let state = unsafe { &mut *self.state };
        state.waiting.push_back((request, call));
        match state.socket.send(command) {
            Ok(true) => Ok(()),
            Ok(false) => {
                state.watch(UV_READABLE | UV_WRITABLE);
                Ok(())
            }
            Err(_) => Err(state.waiting.drain(..).collect()),
        }
    }

    /// Closes the socket and gives back what was not answered. The memory goes when libuv has let go of the handle.
    pub fn close(self) -> Vec<(u32, Call)> {
        // SAFETY: as in `send`; `closed` runs once, because `closing` is set once
        unsafe {
            let calls = (*self.state).waiting.drain(..).collect();
            start_close(self.state);
            calls
        }
    }
}

impl State {
    fn watch(&self, events: c_int) {
        // SAFETY: the handle is initialised and not closing
        unsafe { (self.uv.poll_start)(self.handle, events, ready) };
    }

    /// Sends what is left and reads what came. False when the lane is of no use any more.
    fn turn(&mut self, events: c_int, answers: &mut Answers) -> bool {
        if events & UV_WRITABLE != 0 {
            match self.socket.flush() {
                Ok(true) => self.watch(UV_READABLE),
                Ok(false) => {}
                Err(_) => return false,
            }
        }
        if events & UV_READABLE == 0 {
            return true;
        }
        let mut replies = Vec::new();
        let alive = self.socket.receive(&mut replies).is_ok();
        for reply in replies {
            let Some((request, call)) = self.waiting.pop_front() else {
                return false;
            };
            match reply.and_then(read_added) {
                Ok(added) => answers.push((request, call, added)),
                // the engine's connection knows what to do about it
                Err(_) => {
                    self.waiting.push_front((request, call));
                    return false;
                }
            }
        }
        alive
    }
}

unsafe extern "C" fn ready(handle: *mut c_void, status: c_int, events: c_int) {
    // SAFETY: libuv calls this on its thread with a handle whose data is the state, which outlives this call: it is freed by libuv's
    // close callback only. No reference to it is held while JavaScript runs. JavaScript runs inside a handle scope.
    unsafe {
        let Some(uv) = Uv::load() else { return };
        let state = (uv.get_data)(handle).cast::<State>();
        if state.is_null() || (*state).closing {
            return;
        }
        let mut answers = Vec::new();
        let alive = status == 0 && (*state).turn(events, &mut answers);
        let owner = (*state).owner.clone();
        let env = (*state).env;
        let unanswered: Vec<_> = if alive {
            Vec::new()
        } else {
            (*state).waiting.drain(..).collect()
        };
        let mut scope = ptr::null_mut();
        sys::napi_open_handle_scope(env, &mut scope);
        if !alive {
            owner.broken(unanswered);
        }
        if !answers.is_empty() {
            owner.answered(Env::from_raw(env), answers);
        }
        sys::napi_close_handle_scope(env, scope);
    }
}

/// # Safety
/// `state` must be alive; only on the thread of its loop.
unsafe fn start_close(state: *mut State) {
    // SAFETY: the caller's promise
    unsafe {
        if !(*state).closing {
            (*state).closing = true;
            ((*state).uv.close)((*state).handle, closed);
        }
    }
}

unsafe extern "C" fn closed(handle: *mut c_void) {
    // SAFETY: libuv calls this once, when it uses the handle no more
    unsafe {
        let Some(uv) = Uv::load() else { return };
        let state = Box::from_raw((uv.get_data)(handle).cast::<State>());
        if !state.cleanup.is_null() {
            sys::napi_remove_async_cleanup_hook(state.cleanup);
        }
        std::alloc::dealloc(handle.cast(), state.layout);
    }
}

unsafe extern "C" fn clean_up(_hook: sys::napi_async_cleanup_hook_handle, state: *mut c_void) {
    // SAFETY: the hook is removed in `closed`, so the state is alive here
    unsafe { start_close(state.cast()) };
}

/// Calls a JavaScript function from outside JavaScript, so that promises it settles run their reactions.
/// # Safety
/// On the environment's thread, inside a handle scope; both values belong to it.
pub unsafe fn call_back(env: sys::napi_env, function: sys::napi_value, argument: sys::napi_value) {
    // SAFETY: the caller's promise
    unsafe {
        let mut global = ptr::null_mut();
        let mut result = ptr::null_mut();
        sys::napi_get_global(env, &mut global);
        let status = sys::napi_make_callback(env, ptr::null_mut(), global, function, 1, &argument, &mut result);
        if status == sys::Status::napi_pending_exception {
            let mut error = ptr::null_mut();
            sys::napi_get_and_clear_last_exception(env, &mut error);
            sys::napi_fatal_exception(env, error);
        }
    }
}
