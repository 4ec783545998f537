//! Sockets watched by libuv, which runs JavaScript's thread: what they bring needs no other thread.

use std::{
    cell::Cell,
    ffi::{c_int, c_void},
    os::fd::RawFd,
    ptr,
    rc::Rc,
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
    state: Rc<State>,
}

struct State {
    uv: Uv,
    env: sys::napi_env,
    handle: *mut c_void,
    layout: std::alloc::Layout,
    watched: Rc<dyn Watched>,
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
    closing: Cell<bool>,
}

impl Watch {
    /// Whether this runtime can watch sockets.
    pub fn is_possible() -> bool {
        Uv::load().is_some()
    }

    /// Watches a socket for reading. `None` when the event loop cannot take it.
    pub fn open(env: Env, watched: Rc<dyn Watched>) -> Option<Self> {
        let uv = Uv::load()?;
        let mut uv_loop = ptr::null_mut();
        // SAFETY: `env` is this thread's live environment; the handle's memory is as large as libuv says and is freed in `closed`,
        // after libuv has let go of it; the handle's own count of the state keeps it, and with it the socket, until then
        unsafe {
            if sys::napi_get_uv_event_loop(env.raw(), &mut uv_loop) != sys::Status::napi_ok {
                return None;
            }
            let layout = std::alloc::Layout::from_size_align((uv.handle_size)(UV_POLL), 16).ok()?;
            let handle = std::alloc::alloc_zeroed(layout).cast::<c_void>();
            if handle.is_null() {
                return None;
            }
            if (uv.poll_init)(uv_loop.cast(), handle, watched.fd()) != 0 {
                std::alloc::dealloc(handle.cast(), layout);
                return None;
            }
            let state = Rc::new(State {
                uv,
                env: env.raw(),
                handle,
                layout,
                watched,
                cleanup: Cell::new(ptr::null_mut()),
                closing: Cell::new(false),
            });
            let data = Rc::into_raw(state.clone()).cast_mut().cast::<c_void>();
            (uv.set_data)(handle, data);
            // an environment that ends closes its handles before its loop may end
            let mut cleanup = ptr::null_mut();
            sys::napi_add_async_cleanup_hook(env.raw(), Some(clean_up), data, &mut cleanup);
            state.cleanup.set(cleanup);
            let watch = Self { state };
            if (uv.poll_start)(handle, UV_READABLE, ready) != 0 {
                watch.close();
                return None;
            }
            Some(watch)
        }
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
        if !self.state.closing.get() {
            // SAFETY: the handle is initialised, and is not freed before it closes
            unsafe { (self.state.uv.poll_start)(self.state.handle, bits, ready) };
        }
    }

    /// Watches no more. Once is enough.
    pub fn close(&self) {
        self.state.close();
    }
}

impl State {
    fn close(&self) {
        if !self.closing.replace(true) {
            // SAFETY: the handle is initialised, and closed once
            unsafe { (self.uv.close)(self.handle, closed) };
        }
    }
}

unsafe extern "C" fn ready(handle: *mut c_void, status: c_int, events: c_int) {
    // SAFETY: libuv calls this on its thread with a handle whose data is the handle's count of the state, given back in `closed` only;
    // a count of its own keeps the state while JavaScript runs, inside a handle scope
    unsafe {
        let Some(uv) = Uv::load() else { return };
        let data = (uv.get_data)(handle).cast::<State>().cast_const();
        Rc::increment_strong_count(data);
        let watch = Watch {
            state: Rc::from_raw(data),
        };
        let state = &watch.state;
        if state.closing.get() {
            return;
        }
        // a socket that failed says why when it is read
        let events = Events {
            read: status != 0 || events & UV_READABLE != 0,
            write: status == 0 && events & UV_WRITABLE != 0,
        };
        let mut scope = ptr::null_mut();
        sys::napi_open_handle_scope(state.env, &mut scope);
        state.watched.ready(Env::from_raw(state.env), &watch, events);
        sys::napi_close_handle_scope(state.env, scope);
    }
}

unsafe extern "C" fn closed(handle: *mut c_void) {
    // SAFETY: libuv calls this once, when it uses the handle no more
    unsafe {
        let Some(uv) = Uv::load() else { return };
        let state = Rc::from_raw((uv.get_data)(handle).cast::<State>().cast_const());
        let cleanup = state.cleanup.replace(ptr::null_mut());
        if !cleanup.is_null() {
            sys::napi_remove_async_cleanup_hook(cleanup);
        }
        std::alloc::dealloc(handle.cast(), state.layout);
    }
}

unsafe extern "C" fn clean_up(_hook: sys::napi_async_cleanup_hook_handle, data: *mut c_void) {
    // SAFETY: the hook is removed in `closed`, so the state is alive here
    unsafe { (*data.cast::<State>()).close() };
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
