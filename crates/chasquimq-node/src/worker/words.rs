//! Memory of the engine's that JavaScript reads and writes, by atomic operations on both sides.

use std::{
    ffi::c_void,
    mem::size_of_val,
    ptr,
    sync::{atomic::AtomicU32, Arc},
};

use napi::{
    bindgen_prelude::{FromNapiValue, Object},
    sys, Env, Error, Result, Status,
};

type Words = Arc<[AtomicU32]>;

/// An `Int32Array` over these words, which keeps them.
pub fn shared_words(env: &Env, words: Words) -> Result<Object<'_>> {
    let (raw, bytes, count) = (env.raw(), size_of_val(&*words), words.len());
    let data = words.as_ptr().cast_mut().cast::<c_void>();
    let kept = Box::into_raw(Box::new(words));
    let (mut buffer, mut array) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the words outlive the buffer, whose finalizer lets go of them; on JavaScript's thread, as `Env` is
    unsafe {
        let status = sys::napi_create_external_arraybuffer(raw, data, bytes, Some(let_go), kept.cast(), &mut buffer);
        if status != sys::Status::napi_ok {
            drop(Box::from_raw(kept));
            let message = "this runtime shares no memory with native code, which workers need";
            return Err(Error::new(Status::GenericFailure, message));
        }
        let kind = sys::TypedarrayType::int32_array;
        let status = sys::napi_create_typedarray(raw, kind, count, buffer, 0, &mut array);
        if status != sys::Status::napi_ok {
            return Err(Error::new(Status::from(status), "no Int32Array could be made"));
        }
        Object::from_napi_value(raw, array)
    }
}

unsafe extern "C" fn let_go(_: sys::napi_env, _: *mut c_void, kept: *mut c_void) {
    // SAFETY: what `shared_words` has boxed; called once
    drop(unsafe { Box::from_raw(kept.cast::<Words>()) });
}
