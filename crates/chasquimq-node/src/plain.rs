//! Stands for `low_latency` where that is not built: there is no fast way, and everything goes the plain one.

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

/// None.
pub fn for_adds(
    _: &Function<'_, QueueMessage, ()>,
    _: &Function<'_, OneAdded, ()>,
) -> Result<Option<Box<dyn AddShortcut>>> {
    Ok(None)
}

/// None.
pub fn for_jobs(
    _: Env,
    _: String,
    _: &Function<'_, WorkerMessage, ()>,
    _: &Function<'_, OneJob, ()>,
) -> Result<Option<Arc<dyn JobShortcut>>> {
    Ok(None)
}
