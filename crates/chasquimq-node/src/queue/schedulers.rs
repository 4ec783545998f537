//! Commands about job schedulers.

use chasquimq::{options::millis, Following, Scheduler, Upsert};
use napi::{bindgen_prelude::Object, Env, Result};
use napi_derive::napi;

use crate::{queue::NativeQueue, runtime::Output};

/// A scheduler, as it is to be. JSON texts where BullMQ has values.
#[napi(object)]
pub struct NativeUpsert {
    /// Its id.
    pub id: String,
    /// Name of its jobs.
    pub name: String,
    /// Their data, JSON text.
    pub data: String,
    /// Their options as given, JSON text.
    pub template: String,
    /// When it runs, JSON text.
    pub repeat: String,
    /// Options of the next iteration, JSON text, without what depends on its time.
    pub opts: String,
    /// Runs each so many ms; 0 = at `next`.
    pub every: f64,
    /// Time of the next iteration, epoch ms.
    pub next: f64,
    /// By how much its times are off multiples of `every`.
    pub offset: Option<f64>,
    /// Not before, epoch ms; 0 = no matter.
    pub start: f64,
}

/// What follows an iteration that was taken.
#[napi(object)]
pub struct NativeFollowing {
    /// The scheduler.
    pub scheduler: String,
    /// Time for which the one that was taken was made, epoch ms.
    pub slot: f64,
    /// Time of the next; 0 = the scheduler knows.
    pub next: f64,
    /// Options of the next, JSON text, without what depends on its time.
    pub opts: String,
}

/// A stored scheduler. JSON texts where BullMQ has values.
#[napi(object)]
pub struct NativeScheduler {
    /// Its id.
    pub id: String,
    /// Time of its latest iteration, epoch ms.
    pub next: f64,
    /// Iterations so far.
    pub count: f64,
    /// Name of its jobs.
    pub name: String,
    /// Their data, JSON text.
    pub data: String,
    /// Their options, JSON text.
    pub template: String,
    /// When it runs, JSON text.
    pub repeat: String,
    /// By how much its times are off.
    pub offset: f64,
}

impl From<Scheduler> for NativeScheduler {
    fn from(scheduler: Scheduler) -> Self {
        Self {
            id: scheduler.id,
            next: scheduler.next_ms as f64,
            count: scheduler.count as f64,
            name: scheduler.name,
            data: scheduler.data,
            template: scheduler.template,
            repeat: scheduler.repeat,
            offset: scheduler.offset_ms as f64,
        }
    }
}

#[napi]
impl NativeQueue {
    /// Makes or changes a scheduler; gives the time of its next iteration, and how far off it is in ms.
    #[napi(ts_return_type = "Promise<Array<number>>")]
    pub fn upsert_scheduler<'env>(&self, env: &'env Env, upsert: NativeUpsert, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let upsert = Upsert {
            id: upsert.id,
            name: upsert.name,
            data: upsert.data,
            template: upsert.template,
            repeat: upsert.repeat,
            options: upsert.opts,
            every_ms: millis(upsert.every),
            next_ms: millis(upsert.next),
            offset_ms: upsert.offset.map(millis),
            start_ms: millis(upsert.start),
        };
        let work = async move { queue.upsert_scheduler(now as u64, &upsert).await };
        self.runtime()?.promise(env, work, |(slot, delay)| {
            Output::Numbers(vec![slot as f64, delay as f64])
        })
    }

    /// Makes what follows iterations that were taken; gives the time of each, 0 for nothing.
    #[napi(ts_return_type = "Promise<Array<number>>")]
    pub fn next_iterations<'env>(&self, env: &'env Env, taken: Vec<NativeFollowing>, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let taken: Vec<Following> = taken
            .into_iter()
            .map(|following| Following {
                scheduler: following.scheduler,
                slot: following.slot as u64,
                next_ms: millis(following.next),
                options: following.opts,
            })
            .collect();
        let work = async move { queue.next_iterations(now as u64, &taken).await };
        self.runtime()?.promise(env, work, |slots| {
            Output::Numbers(slots.into_iter().map(|slot| slot as f64).collect())
        })
    }

    /// Removes a scheduler; false when there is none.
    #[napi(ts_return_type = "Promise<boolean>")]
    pub fn remove_scheduler<'env>(&self, env: &'env Env, id: String, now: f64) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.remove_scheduler(now as u64, &id).await };
        self.runtime()?.promise(env, work, Output::Flag)
    }

    /// One scheduler, or none.
    #[napi(ts_return_type = "Promise<Array<NativeScheduler>>")]
    pub fn get_scheduler<'env>(&self, env: &'env Env, id: String) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.scheduler(&id).await };
        self.runtime()?.promise(env, work, |found| {
            Output::Schedulers(found.into_iter().map(NativeScheduler::from).collect())
        })
    }

    /// Schedulers by the time of their latest iteration.
    #[napi(ts_return_type = "Promise<Array<NativeScheduler>>")]
    pub fn get_schedulers<'env>(&self, env: &'env Env, start: f64, end: f64, asc: bool) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.schedulers(start as i64, end as i64, asc).await };
        self.runtime()?.promise(env, work, |found| {
            Output::Schedulers(found.into_iter().map(NativeScheduler::from).collect())
        })
    }

    /// Number of schedulers.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn count_schedulers<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let queue = self.queue.clone();
        let work = async move { queue.count_schedulers().await };
        self.runtime()?.promise(env, work, |count| Output::Number(count as f64))
    }
}
