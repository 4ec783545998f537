//! Moving BullMQ's queue of the same name into this one.

use chasquimq_migrate::{Migration, Moved, Settings, Settled, SourceJob, Survey};
use napi_derive::napi;

use super::{
    commands::commands,
    job::{to_jobs, NativeJob},
    NativeQueue,
};

/// What BullMQ has of a queue.
#[napi(object)]
pub struct NativeSurvey {
    /// There is such a queue.
    pub exists: bool,
    /// What wrote its settings.
    pub version: String,
    /// BullMQ's lists and sets of jobs.
    pub places: Vec<String>,
    /// Jobs in each of them.
    pub counts: Vec<f64>,
    /// Job schedulers.
    pub schedulers: f64,
}

/// What was taken over of a queue as a whole.
#[napi(object)]
pub struct NativeAdoptedQueue {
    /// It is the first time.
    pub is_first: bool,
    /// Settings and their values in turn.
    pub settings: Vec<String>,
}

/// What a step of a move did.
#[napi(object)]
pub struct NativeMoved {
    /// Jobs looked at; 0: there are no more.
    pub looked: f64,
    /// Of them, those that were moved.
    pub moved: f64,
    /// Job schedulers that went with them.
    pub schedulers: f64,
    /// Ids of those that stay, each with the reason behind it.
    pub stays: Vec<String>,
    /// By how much further the next step has to look to pass over them.
    pub kept: f64,
}

/// What became known of the children of parents that were moved.
#[napi(object)]
pub struct NativeSettled {
    /// Where to go on; `0`: all were looked at.
    pub cursor: String,
    /// Children that have not moved, nor ended.
    pub open: f64,
}

/// A job as BullMQ stores it.
#[napi(object)]
pub struct NativeSourceJob {
    /// Its id.
    pub id: String,
    /// Its fields and their values in turn.
    pub fields: Vec<String>,
    /// The rows of its log.
    pub logs: Vec<String>,
    /// It is in the list or set that was asked for.
    pub is_in_place: bool,
}

impl From<SourceJob> for NativeSourceJob {
    fn from(job: SourceJob) -> Self {
        Self {
            id: job.id,
            fields: job.fields,
            logs: job.logs,
            is_in_place: job.is_in_place,
        }
    }
}

impl From<Survey> for NativeSurvey {
    fn from(survey: Survey) -> Self {
        let (places, counts) = survey
            .places
            .into_iter()
            .map(|(place, jobs)| (place, jobs as f64))
            .unzip();
        Self {
            exists: survey.exists,
            version: survey.version,
            places,
            counts,
            schedulers: survey.schedulers as f64,
        }
    }
}

impl From<Settings> for NativeAdoptedQueue {
    fn from(settings: Settings) -> Self {
        Self {
            is_first: settings.is_first,
            settings: in_turn(settings.taken),
        }
    }
}

impl From<Moved> for NativeMoved {
    fn from(moved: Moved) -> Self {
        Self {
            looked: moved.looked as f64,
            moved: moved.moved as f64,
            schedulers: moved.schedulers as f64,
            stays: in_turn(moved.stays),
            kept: moved.kept as f64,
        }
    }
}

impl From<Settled> for NativeSettled {
    fn from(settled: Settled) -> Self {
        Self {
            cursor: settled.cursor,
            open: settled.open as f64,
        }
    }
}

fn in_turn(pairs: Vec<(String, String)>) -> Vec<String> {
    pairs.into_iter().flat_map(|(one, other)| [one, other]).collect()
}

commands! {
    /// Looks at what BullMQ has of this queue.
    async fn survey_source(queue) -> NativeSurvey { Ok(Migration::of(&queue).survey_source().await?.into()) }

    /// The next ids of one of BullMQ's lists or sets.
    async fn source_ids(queue, place: String, skip: f64) -> Vec<String> {
        Migration::of(&queue).source_ids(&place, skip as u64).await
    }

    /// Jobs of BullMQ's by their ids, as far as they are there.
    async fn source_jobs(queue, ids: Vec<String>, place: String) -> Vec<NativeSourceJob> {
        let jobs = Migration::of(&queue).source_jobs(&ids, &place).await?;
        Ok(jobs.into_iter().map(NativeSourceJob::from).collect())
    }

    /// Our jobs by their ids, as far as they are there.
    async fn jobs_by_id(queue, ids: Vec<String>) -> Vec<NativeJob> { Ok(to_jobs(queue.jobs_by_id(&ids).await?)) }

    /// Names of BullMQ's queues with this one's prefix.
    async fn source_names(queue) -> Vec<String> { Migration::of(&queue).source_names().await }

    /// Takes over what BullMQ knows of the queue as a whole.
    async fn adopt_queue(queue, gap: f64) -> NativeAdoptedQueue {
        Ok(Migration::of(&queue).adopt_queue(gap as u64).await?.into())
    }

    /// Moves the next jobs of one of BullMQ's lists or sets.
    async fn adopt_jobs(queue, place: String, skip: f64, sources: Vec<String>, tries: bool, now: f64) -> NativeMoved {
        Ok(Migration::of(&queue).adopt_jobs(now as u64, &place, skip as u64, &sources, tries).await?.into())
    }

    /// Takes over deduplication ids without jobs among some keys; answers where to go on, or null where the user may not `SCAN`.
    async fn adopt_dedup(queue, cursor: String) -> Option<String> { Migration::of(&queue).adopt_dedup(&cursor).await }

    /// Gives BullMQ the settings of the queue.
    async fn return_queue(queue, gap: f64) -> NativeAdoptedQueue {
        Ok(Migration::of(&queue).return_queue(gap as u64).await?.into())
    }

    /// Moves the next jobs of a state to BullMQ.
    async fn return_jobs(queue, state: String, skip: f64, sources: Vec<String>, now: f64) -> NativeMoved {
        Ok(Migration::of(&queue).return_jobs(now as u64, &state, skip as u64, &sources).await?.into())
    }

    /// Tells parents that were moved what became of children that were not.
    async fn settle_adopted(queue, cursor: String, sources: Vec<String>, now: f64) -> NativeSettled {
        Ok(Migration::of(&queue).settle_adopted(now as u64, &cursor, &sources).await?.into())
    }
}
