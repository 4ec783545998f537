//! The fast way of what waits for nothing else: adds, and jobs for idle workers, go over sockets that JavaScript's own event loop (libuv)
//! polls. It saves two thread changes each, which cost more than Redis does. Nearly all `unsafe` of the addon lies here.
//!
//! The plain way is complete without it: `AddShortcut` and `JobShortcut` are all that it knows of this. Without the feature
//! `low-latency`, and on systems without Unix sockets, `plain.rs` stands in its place.

mod adds;
mod along;
mod callbacks;
mod idle_wait;
mod js_cell;
mod lane;
mod look;
mod poll;
mod spin;
mod uv;

use std::sync::Arc;

use napi::{bindgen_prelude::Function, Env, Result};

use crate::{
    queue::{
        adds::AddShortcut,
        messages::{OneAdded, QueueMessage},
    },
    worker::{
        job_shortcut::JobShortcut,
        messages::{OneJob, WorkerMessage},
    },
};

/// The fast way for adds, where there is one.
pub fn for_adds(
    on_message: &Function<'_, QueueMessage, ()>,
    on_added: &Function<'_, OneAdded, ()>,
) -> Result<Option<Box<dyn AddShortcut>>> {
    Ok(Some(Box::new(adds::FastAdds::new(on_message, on_added)?)))
}

/// The fast way for jobs, where there is one. `queue` is as users see it.
pub fn for_jobs(
    env: Env,
    queue: String,
    on_message: &Function<'_, WorkerMessage, ()>,
    on_job: &Function<'_, OneJob, ()>,
) -> Result<Option<Arc<dyn JobShortcut>>> {
    if !poll::PollHandle::is_possible(env) {
        return Ok(None);
    }
    Ok(Some(idle_wait::IdleWait::new(queue, on_message, on_job)?))
}
