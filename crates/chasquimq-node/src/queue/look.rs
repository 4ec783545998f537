//! A look at one job by its id. It may go the fast way of the adds, where the queue is asked nothing else meanwhile.

use std::sync::Arc;

use super::{
    job::NativeJob,
    order::{Order, Turn},
};
use crate::runtime::{Call, Deferred, Runtime};
use chasquimq::{Job, Queue};

/// A look, and the promise of what it finds.
pub struct LookCall {
    /// The job's id.
    pub id: String,
    /// The queue.
    pub queue: Arc<Queue>,
    /// The order of its calls.
    pub order: Arc<Order>,
    /// Keeps a close waiting; let go before the promise is settled.
    pub hold: Box<dyn Send>,
    /// The promise.
    pub found: Deferred<Option<NativeJob>>,
    /// What settles it.
    pub runtime: Arc<Runtime>,
}

impl LookCall {
    /// Has the engine look, behind what the queue was asked before.
    pub fn by_engine(self) {
        let order = self.order.clone();
        let turn = Turn::begin(order.clone(), false);
        order.give(self.into_call(false, turn), false);
    }

    /// What went ahead has found this.
    pub fn settle(self, job: Option<Job>) {
        self.order.answered(1);
        drop(self.hold);
        self.found.resolve(Box::new(move |_| Ok(job.map(NativeJob::from))));
    }

    /// What went ahead has found nothing out: the engine looks again, still ahead of later calls.
    pub fn again(self) {
        let order = self.order.clone();
        let turn = Turn::begin(order.clone(), true);
        drop(order.line().give(self.into_call(true, turn)));
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
