//! libuv, which runs JavaScript's thread, as far as this addon uses it.

use std::{
    cell::Cell,
    ffi::{c_int, c_void, CStr},
    ptr,
    rc::Rc,
    sync::OnceLock,
};

use napi::{
    bindgen_prelude::{JsObjectValue, Object},
    sys, Env,
};

/// A callback of a poll handle: the handle, a status, events.
pub type OnPoll = unsafe extern "C" fn(*mut c_void, c_int, c_int);
/// A callback that is given its handle.
pub type OnHandle = unsafe extern "C" fn(*mut c_void);

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// libuv's functions, as the Node that loaded this addon has them.
        #[derive(Clone, Copy)]
        pub struct Uv {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Uv {
            fn look_up() -> Option<Self> {
                // SAFETY: the names are libuv's public functions, whose signatures its 1.x ABI fixes
                unsafe {
                    Some(Self {
                        $($name: std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(symbol($symbol)?),)*
                    })
                }
            }
        }
    };
}

functions! {
    handle_size = c"uv_handle_size": fn(c_int) -> usize;
    close = c"uv_close": fn(*mut c_void, OnHandle);
    set_data = c"uv_handle_set_data": fn(*mut c_void, *mut c_void);
    get_data = c"uv_handle_get_data": fn(*mut c_void) -> *mut c_void;
    poll_init = c"uv_poll_init": fn(*mut c_void, *mut c_void, c_int) -> c_int;
    poll_start = c"uv_poll_start": fn(*mut c_void, c_int, OnPoll) -> c_int;
    prepare_init = c"uv_prepare_init": fn(*mut c_void, *mut c_void) -> c_int;
    prepare_start = c"uv_prepare_start": fn(*mut c_void, OnHandle) -> c_int;
    prepare_stop = c"uv_prepare_stop": fn(*mut c_void) -> c_int;
    backend_fd = c"uv_backend_fd": fn(*const c_void) -> c_int;
    backend_timeout = c"uv_backend_timeout": fn(*const c_void) -> c_int;
}

impl Uv {
    /// `None` in a runtime that is not Node: another one may export names of libuv's that end the process when they are called.
    pub fn of(env: Env) -> Option<Self> {
        *FOUND.get_or_init(|| {
            is_node(env)
                .ok()
                .filter(|is_node| *is_node)
                .and_then(|_| Self::look_up())
        })
    }

    /// As [`Uv::of`], once that was asked.
    pub fn known() -> Option<Self> {
        FOUND.get().copied().flatten()
    }
}

static FOUND: OnceLock<Option<Uv>> = OnceLock::new();

/// Whether this is Node, or what embeds it, by its own word.
fn is_node(env: Env) -> napi::Result<bool> {
    let process: Object<'_> = env.get_global()?.get_named_property_unchecked("process")?;
    let versions: Object<'_> = process.get_named_property_unchecked("versions")?;
    let has_others = versions.has_named_property("bun")? || versions.has_named_property("deno")?;
    Ok(versions.has_named_property("uv")? && !has_others)
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a NUL; looking a name up changes nothing
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Kinds of handles (`uv_handle_type`): part of libuv's stable ABI.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Waits for a descriptor.
    Poll = 8,
    /// Is called before the loop waits.
    Prepare = 9,
}

/// A handle on this thread's loop, with what it belongs to, until it is closed. All of it happens on that thread.
pub struct Handle<T> {
    uv: Uv,
    env: sys::napi_env,
    uv_loop: *mut c_void,
    raw: *mut c_void,
    layout: std::alloc::Layout,
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
    closing: Cell<bool>,
    owner: T,
}

impl<T> Handle<T> {
    /// `init` makes the handle: libuv's functions, the loop, the handle. `None` when the loop cannot take it.
    pub fn open(
        env: Env,
        kind: Kind,
        owner: T,
        init: impl FnOnce(&Uv, *mut c_void, *mut c_void) -> c_int,
    ) -> Option<Rc<Self>> {
        let uv = Uv::of(env)?;
        let mut uv_loop = ptr::null_mut();
        // SAFETY: `env` is this thread's live environment; the handle's memory is as large as libuv says and is freed in `closed`,
        // after libuv has let go of it; the handle's own count of this value keeps it, and with it its owner, until then
        unsafe {
            if sys::napi_get_uv_event_loop(env.raw(), &mut uv_loop) != sys::Status::napi_ok {
                return None;
            }
            let layout = std::alloc::Layout::from_size_align((uv.handle_size)(kind as c_int), 16).ok()?;
            let raw = std::alloc::alloc_zeroed(layout).cast::<c_void>();
            if raw.is_null() {
                return None;
            }
            if init(&uv, uv_loop.cast(), raw) != 0 {
                std::alloc::dealloc(raw.cast(), layout);
                return None;
            }
            let handle = Rc::new(Self {
                uv,
                env: env.raw(),
                uv_loop: uv_loop.cast(),
                raw,
                layout,
                cleanup: Cell::new(ptr::null_mut()),
                closing: Cell::new(false),
                owner,
            });
            let data = Rc::into_raw(handle.clone()).cast_mut().cast::<c_void>();
            (uv.set_data)(raw, data);
            // an environment that ends closes its handles before its loop may end
            let mut cleanup = ptr::null_mut();
            sys::napi_add_async_cleanup_hook(env.raw(), Some(clean_up::<T>), data, &mut cleanup);
            handle.cleanup.set(cleanup);
            Some(handle)
        }
    }

    /// The handle that a callback was given; `None` when it closes.
    /// # Safety
    /// In a callback of libuv's, with the handle of a `Handle<T>`.
    pub unsafe fn of(raw: *mut c_void) -> Option<Rc<Self>> {
        // SAFETY: the handle's data is its count of this value, given back in `closed` only; the caller gets a count of its own
        unsafe {
            let data = (Uv::known()?.get_data)(raw).cast::<Self>().cast_const();
            Rc::increment_strong_count(data);
            let handle = Rc::from_raw(data);
            (!handle.closing.get()).then_some(handle)
        }
    }

    /// Calls one of libuv's functions with the handle, unless it closes.
    /// # Safety
    /// The function suits the handle's kind.
    pub unsafe fn with(&self, call: impl FnOnce(&Uv, *mut c_void) -> c_int) -> bool {
        !self.closing.get() && call(&self.uv, self.raw) == 0
    }

    /// What it belongs to.
    pub fn owner(&self) -> &T {
        &self.owner
    }

    /// The environment it was opened in.
    pub fn env(&self) -> sys::napi_env {
        self.env
    }

    /// Its loop.
    pub fn uv_loop(&self) -> *const c_void {
        self.uv_loop
    }

    /// Is called back no more. Once is enough.
    pub fn close(&self) {
        if !self.closing.replace(true) {
            // SAFETY: the handle is initialised, and closed once
            unsafe { (self.uv.close)(self.raw, closed::<T>) };
        }
    }
}

unsafe extern "C" fn closed<T>(raw: *mut c_void) {
    // SAFETY: libuv calls this once, when it uses the handle no more
    unsafe {
        let Some(uv) = Uv::known() else { return };
        let handle = Rc::from_raw((uv.get_data)(raw).cast::<Handle<T>>().cast_const());
        let cleanup = handle.cleanup.replace(ptr::null_mut());
        if !cleanup.is_null() {
            sys::napi_remove_async_cleanup_hook(cleanup);
        }
        std::alloc::dealloc(raw.cast(), handle.layout);
    }
}

unsafe extern "C" fn clean_up<T>(_hook: sys::napi_async_cleanup_hook_handle, data: *mut c_void) {
    // SAFETY: the hook is removed in `closed`, so the handle is alive here
    unsafe { (*data.cast::<Handle<T>>()).close() };
}
