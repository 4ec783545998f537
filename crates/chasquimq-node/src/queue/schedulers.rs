//! Commands about job schedulers.

use chasquimq::{millis, Following, Scheduler, Upsert};
use napi_derive::napi;

use super::{commands::commands, NativeQueue};

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

impl From<NativeUpsert> for Upsert {
    fn from(upsert: NativeUpsert) -> Self {
        Self {
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
        }
    }
}

impl From<NativeFollowing> for Following {
    fn from(following: NativeFollowing) -> Self {
        Self {
            scheduler: following.scheduler,
            slot: following.slot as u64,
            next_ms: millis(following.next),
            options: following.opts,
        }
    }
}

fn to_schedulers(found: impl IntoIterator<Item = Scheduler>) -> Vec<NativeScheduler> {
    found.into_iter().map(NativeScheduler::from).collect()
}

commands! {
    /// Makes or changes a scheduler; gives the time of its next iteration, and how far off it is in ms.
    async fn upsert_scheduler(queue, upsert: NativeUpsert, now: f64) -> Vec<f64> {
        let (slot, delay) = queue.upsert_scheduler(now as u64, &upsert.into()).await?;
        Ok(vec![slot as f64, delay as f64])
    }

    /// Makes what follows iterations that were taken; gives the time of each, 0 for nothing.
    async fn next_iterations(queue, taken: Vec<NativeFollowing>, now: f64) -> Vec<f64> {
        let taken: Vec<Following> = taken.into_iter().map(Following::from).collect();
        let slots = queue.next_iterations(now as u64, &taken).await?;
        Ok(slots.into_iter().map(|slot| slot as f64).collect())
    }

    /// Removes a scheduler; false when there is none.
    async fn remove_scheduler(queue, id: String, now: f64) -> bool { queue.remove_scheduler(now as u64, &id).await }

    /// One scheduler, or none.
    async fn get_scheduler(queue, id: String) -> Vec<NativeScheduler> { Ok(to_schedulers(queue.scheduler(&id).await?)) }

    /// Schedulers by the time of their latest iteration.
    async fn get_schedulers(queue, start: f64, end: f64, asc: bool) -> Vec<NativeScheduler> {
        Ok(to_schedulers(queue.schedulers(start as i64, end as i64, asc).await?))
    }

    /// Number of schedulers.
    async fn count_schedulers(queue) -> f64 { Ok(queue.count_schedulers().await? as f64) }
}
