//! Jobs that a filter picks, found, counted and changed a step at a time.

use chasquimq::{Cancelled, Change, Keys, Pick, Picked};
use napi_derive::napi;

use super::{
    commands::commands,
    job::{to_jobs, NativeJob},
    NativeQueue,
};

/// Which jobs of a state a call is about.
#[napi(object)]
pub struct NativePick {
    /// Ended, or started, or created then or before, epoch ms.
    pub before: Option<f64>,
    /// Ended, or started, or created then or later, epoch ms.
    pub after: Option<f64>,
    /// Has one of these names.
    pub names: Option<Vec<String>>,
    /// Its data contain this text.
    pub data: Option<String>,
    /// Its data have these fields: JSON text of an object.
    pub fields: Option<String>,
    /// Failed for a reason that contains this text.
    pub reason: Option<String>,
    /// Is of this group.
    pub group: Option<String>,
    /// Is a child of this job.
    pub parent: Option<NativePickParent>,
}

/// A parent, as children are looked for.
#[napi(object)]
pub struct NativePickParent {
    /// `<prefix>:<queue>`.
    pub queue: String,
    /// Its id.
    pub id: String,
}

impl From<NativePick> for Pick {
    fn from(pick: NativePick) -> Self {
        Self {
            before_ms: pick.before.map(|ms| ms as u64),
            after_ms: pick.after.map(|ms| ms as u64),
            names: pick.names.unwrap_or_default(),
            data: pick.data,
            fields: pick.fields,
            reason: pick.reason,
            group: pick.group,
            parent: pick.parent.map(|of| (Keys::of_qualified(&of.queue).base, of.id)),
        }
    }
}

/// What a step has found.
#[napi(object, object_from_js = false)]
pub struct NativeFoundJobs {
    /// Where the next step goes on; empty: nothing is left.
    pub place: String,
    /// Jobs that it looked at.
    pub looked: f64,
    /// Jobs that were picked.
    pub picked: f64,
    /// These jobs, unless they are only counted.
    pub jobs: Vec<NativeJob>,
}

/// What a step has changed.
#[napi(object, object_from_js = false)]
pub struct NativeChangedJobs {
    /// Where the next step goes on; empty: nothing is left.
    pub place: String,
    /// Jobs that it looked at.
    pub looked: f64,
    /// Jobs that were picked.
    pub picked: f64,
    /// Ids of those that were changed.
    pub ids: Vec<String>,
}

commands! {
    /// A step of finding jobs of a state, what ended last or starts first first.
    async fn find_jobs(queue, state: String, pick: NativePick, place: String, take: f64) -> NativeFoundJobs {
        let Picked { place, looked, picked, found } = queue.find_step(&state, &pick.into(), &place, take as u64).await?;
        Ok(NativeFoundJobs { place, looked: looked as f64, picked: picked as f64, jobs: to_jobs(found) })
    }

    /// The same, where they are only counted.
    async fn count_jobs(queue, state: String, pick: NativePick, place: String, take: f64) -> NativeFoundJobs {
        let Picked { place, looked, picked, .. } = queue.count_step(&state, &pick.into(), &place, take as u64).await?;
        Ok(NativeFoundJobs { place, looked: looked as f64, picked: picked as f64, jobs: Vec::new() })
    }

    /// A step of removing jobs of a state, what ended or starts first first.
    async fn remove_jobs(queue, state: String, pick: NativePick, place: String, room: f64, now: f64) -> NativeChangedJobs {
        let pick = pick.into();
        let step = queue.change_step(now as u64, Change::Remove, &state, &pick, (&place, room as u64)).await?;
        Ok(step.into())
    }

    /// A step of putting failed or completed jobs back in the waiting list.
    async fn retry_picked(
        queue, state: String, pick: NativePick, place: String, room: f64, reset: bool, now: f64
    ) -> NativeChangedJobs {
        let (change, pick) = (Change::Retry { reset }, pick.into());
        Ok(queue.change_step(now as u64, change, &state, &pick, (&place, room as u64)).await?.into())
    }

    /// A step of moving jobs to another queue, `<prefix>:<queue>`.
    async fn move_picked(
        queue, state: String, pick: NativePick, place: String, room: f64, target: String, now: f64
    ) -> NativeChangedJobs {
        let (target, pick) = (Keys::of_qualified(&target), pick.into());
        let change = Change::Move(&target.base);
        Ok(queue.change_step(now as u64, change, &state, &pick, (&place, room as u64)).await?.into())
    }

    /// A step of cancelling jobs.
    async fn cancel_picked(
        queue, state: String, pick: NativePick, place: String, room: f64, reason: String, remove: bool, now: f64
    ) -> NativeChangedJobs {
        let (change, pick) = (Change::Cancel { reason: &reason, remove }, pick.into());
        Ok(queue.change_step(now as u64, change, &state, &pick, (&place, room as u64)).await?.into())
    }

    /// Cancels a job, and with `children` those that it waits for. Gives what became of it.
    async fn cancel(queue, id: String, reason: String, remove: bool, children: bool, now: f64) -> String {
        let became = queue.cancel(now as u64, &id, &reason, remove, children).await?;
        Ok(name_of(became).to_owned())
    }

    /// The same of many; empty: it is the next job of a scheduler, and stays.
    async fn cancel_named(
        queue, ids: Vec<String>, reason: String, remove: bool, children: bool, now: f64
    ) -> Vec<String> {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let became = queue.cancel_named(now as u64, &ids, &reason, remove, children).await?;
        Ok(became.into_iter().map(|one| one.map_or("", name_of).to_owned()).collect())
    }

    /// A step of putting delayed jobs in the waiting list.
    async fn promote_picked(queue, pick: NativePick, place: String, room: f64, now: f64) -> NativeChangedJobs {
        let pick = pick.into();
        let step = queue.change_step(now as u64, Change::Promote, "delayed", &pick, (&place, room as u64)).await?;
        Ok(step.into())
    }
}

fn name_of(became: Cancelled) -> &'static str {
    match became {
        Cancelled::Cancelled => "cancelled",
        Cancelled::Signalled => "signalled",
        Cancelled::Ended => "ended",
        Cancelled::Missing => "missing",
    }
}

impl From<Picked<Vec<String>>> for NativeChangedJobs {
    fn from(step: Picked<Vec<String>>) -> Self {
        Self {
            place: step.place,
            looked: step.looked as f64,
            picked: step.picked as f64,
            ids: step.found,
        }
    }
}
