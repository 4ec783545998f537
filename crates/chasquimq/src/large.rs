//! Data and results of more than [`MAX_BYTES`](crate::frame::MAX_BYTES), which lie apart from what scripts read (`lua/lib/large.lua`).

use crate::{
    error::{Error, Result},
    job::{Body, Job, Vitals},
    keys::Keys,
    server::{
        conn::Connection,
        reply::{int, Reply},
    },
};

/// What of a job lies apart.
#[derive(Debug, Default)]
pub(crate) struct Large {
    pub(crate) data: Option<String>,
    pub(crate) result: Option<String>,
}

impl Large {
    /// Reads what lies apart of the job of this id, as its vitals say.
    /// # Errors
    /// As [`Connection::send`].
    pub(crate) async fn read(connection: &Connection, keys: &Keys, id: &str, vitals: &Vitals) -> Result<Self> {
        let mut command = redis::cmd("HMGET");
        command.arg(keys.key("large"));
        command.arg(vitals.large_data.map(|_| format!("d{id}")));
        command.arg(vitals.large_result.map(|_| format!("r{id}")));
        let mut values = Reply::new("large values", connection.send(&command).await?)?;
        let mut next = |is_wanted: bool| if is_wanted { values.opt_text() } else { Ok(None) };
        Ok(Self {
            data: next(vitals.large_data.is_some())?,
            result: next(vitals.large_result.is_some())?,
        })
    }
}

/// What a job without its data is to fail for.
pub(crate) fn missing() -> String {
    Error::malformed("a job's data", "they are not there").reason_to_fail()
}

/// Completes a job as a script gives it; `None` when it is gone by now.
/// # Errors
/// As [`Connection::send`].
pub(crate) async fn complete(connection: &Connection, keys: &Keys, mut job: Job) -> Result<Option<Job>> {
    if !job.vitals.has_large() {
        return Ok(Some(job));
    }
    let large = Large::read(connection, keys, &job.id, &job.vitals).await?;
    job.vitals.returnvalue = large.result.or(job.vitals.returnvalue);
    match large.data {
        Some(data) => job.body.data = data,
        None if job.vitals.large_data.is_some() => {
            let mut exists = redis::cmd("HEXISTS");
            exists.arg(keys.key("jobs")).arg(&job.id);
            if int("the answer to HEXISTS", &connection.send(&exists).await?)? == 0 {
                return Ok(None);
            }
            job.body.data = Body::unreadable().data;
            job.vitals.deferred_failure.get_or_insert_with(missing);
        }
        None => {}
    }
    Ok(Some(job))
}

/// Completes jobs, one after the other, each of which may be as large as memory allows.
/// # Errors
/// As [`complete`].
pub(crate) async fn complete_all(connection: &Connection, keys: &Keys, jobs: Vec<Job>) -> Result<Vec<Job>> {
    if !jobs.iter().any(|job| job.vitals.has_large()) {
        return Ok(jobs);
    }
    let mut completed = Vec::with_capacity(jobs.len());
    for job in jobs {
        completed.extend(complete(connection, keys, job).await?);
    }
    Ok(completed)
}
