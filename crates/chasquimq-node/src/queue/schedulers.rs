//! Commands about job schedulers.

use chasquimq::{millis, CatchUp, Following, Overlap, Resumed, Resumption, Rules, Scheduler, Upsert, Upserted};
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
    /// Most ms by which its jobs are due later than their times.
    pub jitter: Option<f64>,
    /// `next` is the time behind this one, epoch ms; nothing: behind now.
    pub after: Option<f64>,
    /// What the scheduler was told before goes on where it is told the same again.
    pub keeps: bool,
}

/// By what rules a scheduler runs.
#[napi(object)]
pub struct NativeSchedulerRules {
    /// `skip` or `queue`.
    pub overlap: Option<String>,
    /// `none`, `latest` or `all`.
    pub catch_up: Option<String>,
    /// Whether the one that was taken was missed, where its scheduler does not know.
    pub missed: bool,
    /// Most ms by which its jobs are due later than their times.
    pub jitter: f64,
    /// Token of who holds the one that was taken.
    pub token: String,
}

/// Where a scheduler goes on.
#[napi(object)]
pub struct NativeResumption {
    /// The scheduler.
    pub id: String,
    /// What it held.
    pub held: String,
    /// Time of the next iteration, epoch ms; 0 = the scheduler knows. Nothing: there is none.
    pub next: Option<f64>,
    /// Options of the next iteration, JSON text, without what depends on its time.
    pub opts: String,
    /// Most ms by which its jobs are due later than their times.
    pub jitter: f64,
}

/// What follows an iteration that was taken.
#[napi(object)]
pub struct NativeFollowing {
    /// Id of the one that was taken.
    pub id: String,
    /// The scheduler.
    pub scheduler: String,
    /// Time for which the one that was taken was made, epoch ms.
    pub slot: f64,
    /// Time of the next; 0 = the scheduler knows. Nothing: there is none.
    pub next: Option<f64>,
    /// The first time behind that of the one that was taken, where `next` passes it over because it is past.
    pub first: Option<f64>,
    /// The scheduler's rules, if it has any.
    pub rules: Option<NativeSchedulerRules>,
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
    /// Of one that is paused, the options of the iteration that is to come, JSON text; empty = none is.
    pub held: Option<String>,
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
            held: scheduler.held,
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
            jitter_ms: upsert.jitter.map_or(0, millis),
            after_ms: upsert.after.map_or(0, millis),
            keeps: upsert.keeps,
        }
    }
}

impl From<NativeSchedulerRules> for Rules {
    fn from(rules: NativeSchedulerRules) -> Self {
        Self {
            overlap: match rules.overlap.as_deref() {
                Some("skip") => Overlap::Skip,
                Some("queue") => Overlap::Queue,
                _ => Overlap::Allow,
            },
            catch_up: match rules.catch_up.as_deref() {
                Some("none") => CatchUp::None,
                Some("latest") => CatchUp::Latest,
                Some("all") => CatchUp::All,
                _ => CatchUp::First,
            },
            missed: rules.missed,
            jitter_ms: millis(rules.jitter),
            token: rules.token,
        }
    }
}

impl From<NativeResumption> for Resumption {
    fn from(resumption: NativeResumption) -> Self {
        Self {
            id: resumption.id,
            held: resumption.held,
            next_ms: resumption.next.map(millis),
            options: resumption.opts,
            jitter_ms: millis(resumption.jitter),
        }
    }
}

impl From<NativeFollowing> for Following {
    fn from(following: NativeFollowing) -> Self {
        Self {
            id: following.id,
            scheduler: following.scheduler,
            slot: following.slot as u64,
            next_ms: following.next.map(millis),
            first_ms: following.first.map(millis),
            rules: following.rules.map(Rules::from),
            options: following.opts,
        }
    }
}

fn to_schedulers(found: impl IntoIterator<Item = Scheduler>) -> Vec<NativeScheduler> {
    found.into_iter().map(NativeScheduler::from).collect()
}

commands! {
    /// Makes or changes a scheduler; gives the time of its next iteration, and how far off it is in ms; nothing for one that is paused. -1: the
    /// latest iteration was just taken; `next` is to be the time behind it.
    async fn upsert_scheduler(queue, upsert: NativeUpsert, now: f64) -> Vec<f64> {
        Ok(match queue.upsert_scheduler(now as u64, &upsert.into()).await? {
            Upserted::Made(slot, delay) => vec![slot as f64, delay as f64],
            Upserted::Paused => Vec::new(),
            Upserted::AskBehind => vec![-1.0],
        })
    }

    /// Makes what follows iterations that were taken; gives the time of each, 0 for nothing, -1 where the taken one is not to run.
    async fn next_iterations(queue, taken: Vec<NativeFollowing>, now: f64) -> Vec<f64> {
        let taken: Vec<Following> = taken.into_iter().map(Following::from).collect();
        let slots = queue.next_iterations(now as u64, &taken).await?;
        Ok(slots.into_iter().map(|slot| slot.map_or(-1.0, |slot| slot as f64)).collect())
    }

    /// Pauses a scheduler; false when there is none.
    async fn pause_scheduler(queue, id: String, now: f64) -> bool { queue.pause_scheduler(now as u64, &id).await }

    /// Lets a scheduler go on; false when there is none, nothing when it holds another iteration by now.
    async fn resume_scheduler(queue, resumption: NativeResumption, now: f64) -> Option<bool> {
        Ok(match queue.resume_scheduler(now as u64, &resumption.into()).await? {
            Resumed::GoesOn => Some(true),
            Resumed::Missing => Some(false),
            Resumed::Changed => None,
        })
    }

    /// Adds a job of a scheduler now; gives its id, or nothing when there is no such scheduler.
    async fn run_scheduler(queue, id: String, opts: String, now: f64) -> Option<String> {
        queue.run_scheduler(now as u64, &id, &opts).await
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
