//! Large data and results, which lie apart from what scripts read (`lua/jobs/large.lua`).

use super::{apart::MAX_READ, Job, StateFields};
use crate::{
    error::{Error, Result},
    keys::Keys,
    redis::{
        call::reply::{int, Reply},
        connection::Connection,
    },
};

/// What of a job lies apart.
#[derive(Debug, Default)]
pub(crate) struct Large {
    pub(crate) data: Option<String>,
    pub(crate) result: Option<String>,
}

impl Large {
    /// Reads what lies apart of the job of this id, as its state fields say.
    pub(crate) async fn read(connection: &Connection, keys: &Keys, id: &str, fields: &StateFields) -> Result<Self> {
        let mut read = Self::read_all(connection, keys, &[(id, fields)]).await?;
        Ok(read.pop().unwrap_or_default())
    }

    /// The same of several jobs, in one command.
    async fn read_all(connection: &Connection, keys: &Keys, jobs: &[(&str, &StateFields)]) -> Result<Vec<Self>> {
        let mut command = redis::cmd("HMGET");
        command.arg(keys.key("large"));
        for (id, fields) in jobs {
            command.arg(fields.large_data.map(|_| format!("d{id}")));
            command.arg(fields.large_result.map(|_| format!("r{id}")));
        }
        let mut values = Reply::new("large values", connection.send(&command).await?)?;
        let mut next = |is_wanted: bool| if is_wanted { values.opt_text() } else { Ok(None) };
        let read = jobs.iter().map(|(_, fields)| {
            Ok(Self {
                data: next(fields.large_data.is_some())?,
                result: next(fields.large_result.is_some())?,
            })
        });
        read.collect()
    }
}

/// What a job without its data is to fail for.
pub(crate) fn missing() -> String {
    Error::malformed("a job's data", "they are not there").reason_to_fail()
}

/// Completes a job; `None` when it is gone by now.
async fn put_in(connection: &Connection, keys: &Keys, mut job: Job, large: Large) -> Result<Option<Job>> {
    job.fields.returnvalue = large.result.or(job.fields.returnvalue);
    match large.data {
        Some(data) => job.body.data = data,
        None if job.fields.large_data.is_some() => {
            let exists = connection
                .send(redis::cmd("HEXISTS").arg(keys.key("jobs")).arg(&job.id))
                .await?;
            if int("the answer to HEXISTS", &exists)? == 0 {
                return Ok(None);
            }
            job = job.without_data(missing());
        }
        None => {}
    }
    Ok(Some(job))
}

/// Completes jobs as scripts give them, as many at a time as one read may bring.
pub(super) async fn complete_all(connection: &Connection, keys: &Keys, jobs: Vec<Job>) -> Result<Vec<Job>> {
    if !jobs.iter().any(|job| job.fields.has_large()) {
        return Ok(jobs);
    }
    let mut completed = Vec::with_capacity(jobs.len());
    let mut jobs = jobs.into_iter().peekable();
    while jobs.peek().is_some() {
        let (mut some, mut bytes) = (Vec::new(), 0);
        while let Some(job) = jobs.next_if(|job| some.is_empty() || bytes + bytes_of(job) <= MAX_READ) {
            bytes += bytes_of(&job);
            some.push(job);
        }
        completed.extend(complete_some(connection, keys, some).await?);
    }
    Ok(completed)
}

fn bytes_of(job: &Job) -> u64 {
    job.fields.large_data.unwrap_or(0) + job.fields.large_result.unwrap_or(0)
}

async fn complete_some(connection: &Connection, keys: &Keys, jobs: Vec<Job>) -> Result<Vec<Job>> {
    let wanted: Vec<(&str, &StateFields)> = jobs
        .iter()
        .filter(|job| job.fields.has_large())
        .map(|job| (job.id.as_str(), &job.fields))
        .collect();
    let mut read = match wanted.is_empty() {
        true => Vec::new(),
        false => Large::read_all(connection, keys, &wanted).await?,
    }
    .into_iter();
    let mut completed = Vec::with_capacity(jobs.len());
    for job in jobs {
        match job.fields.has_large() {
            true => completed.extend(put_in(connection, keys, job, read.next().unwrap_or_default()).await?),
            false => completed.push(job),
        }
    }
    Ok(completed)
}
