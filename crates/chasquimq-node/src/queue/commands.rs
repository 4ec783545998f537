//! How commands of a queue become methods for JavaScript.

/// Each is a method of `NativeQueue`, which gives a promise of what the block answers; its form is a function's, with the engine's queue first.
/// `NativeQueue::call` says when it takes effect.
macro_rules! commands {
    ($($(#[$($about:tt)*])* async fn $name:ident($queue:ident $(, $($argument:tt)*)?) -> $answer:ty $work:block)*) => {
        #[napi_derive::napi]
        impl NativeQueue {
            $(
                $(#[$($about)*])*
                #[allow(clippy::too_many_arguments, reason = "one argument each of BullMQ's call; the macro's copy has fewer")]
                #[napi]
                pub fn $name<'env>(
                    &self,
                    env: &'env napi::Env,
                    $($($argument)*)?
                ) -> napi::Result<napi::bindgen_prelude::PromiseRaw<'env, $answer>> {
                    let promise = self.call::<$answer, _>(env, async move |$queue| $work)?;
                    let promise = napi::JsValue::raw(&promise);
                    Ok(napi::bindgen_prelude::PromiseRaw::new(env.raw(), promise))
                }
            )*
        }
    };
}

pub(super) use commands;
