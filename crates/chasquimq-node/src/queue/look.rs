//! A look at one job by its id. It may go the fast way of the adds, where the queue is asked nothing else meanwhile.

use std::sync::Arc;

use chasquimq::{Job, Queue};
use napi::{bindgen_prelude::Object, Env, Result};

use super::{
    job::NativeJob,
    order::{Ordered, Turn},
};
use crate::runtime::{Call, Deferred, Runtime};

/// A look, and the promise of what it finds.
pub struct LookCall {
    id: String,
    queue: Arc<Queue>,
    ordered: Arc<dyn Ordered>,
    // keeps a close waiting
    hold: Box<dyn Send>,
    found: Deferred<Option<NativeJob>>,
    runtime: Arc<Runtime>,
}

impl LookCall {
    /// The look, and the promise. `hold` is let go before that is settled.
    pub fn new<'env>(
        env: &'env Env,
        id: String,
        queue: Arc<Queue>,
        ordered: Arc<dyn Ordered>,
        hold: Box<dyn Send>,
        runtime: Arc<Runtime>,
    ) -> Result<(Self, Object<'env>)> {
        let (found, promise) = env.create_deferred()?;
        let call = Self {
            id,
            queue,
            ordered,
            hold,
            found,
            runtime,
        };
        Ok((call, promise))
    }

    /// The job's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Has the engine look, behind what the queue was asked before.
    pub fn by_engine(self) {
        let ordered = self.ordered.clone();
        let turn = Turn::begin(ordered.clone(), false);
        ordered.order().give(self.into_call(false, turn), false);
    }

    /// It goes ahead of later calls, which wait until it is settled.
    pub fn begin_ahead(&self) {
        self.ordered.order().begin_ahead();
    }

    /// What went ahead has found this.
    pub fn settle(self, job: Option<Job>) {
        self.ordered.order().answered(1);
        drop(self.hold);
        self.found.resolve(Box::new(move |_| Ok(job.map(NativeJob::from))));
    }

    /// What went ahead has found nothing out: the engine looks again, still ahead of later calls.
    pub fn again(self) {
        let ordered = self.ordered.clone();
        let turn = Turn::begin(ordered.clone(), true);
        drop(ordered.order().line().give(self.into_call(true, turn)));
    }

    /// `again`: plain reads did not do.
    fn into_call(self, again: bool, turn: Turn) -> Call {
        let Self { id, queue, hold, .. } = self;
        self.runtime.settle(self.found, async move {
            let _held = (turn, hold);
            let found = if again {
                queue.read_job(&id).await
            } else {
                queue.job(&id).await
            };
            Ok(found?.map(NativeJob::from))
        })
    }
}
