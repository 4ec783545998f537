//! Jobs as scripts give them, completed by what lies apart from what these read.

use std::collections::HashMap;

use redis::Value;

use super::{
    apart::{read_frames, ApartFrame, ApartPlace},
    frame::bodies_in_frame,
    large::{self, missing},
    msgpack::Packer,
    read::read_job,
    Job,
};
use crate::{
    error::Result,
    keys::Keys,
    redis::{
        call::{
            library::{args, READ_JOBS},
            reply::Reply,
        },
        connection::Connection,
    },
};

/// Most jobs that one call reads by their ids.
const IDS_A_CALL: usize = 500;

/// The jobs of these ids, as far as they are there, in steps.
/// # Errors
/// [`crate::Error::Malformed`] when what is stored is not a job; as [`Connection::send`].
pub(crate) async fn read_all(connection: &Connection, keys: &Keys, ids: &[impl AsRef<str>]) -> Result<Vec<Job>> {
    let jobs = ask_for(connection, keys, ids).await?;
    complete_all(connection, keys, jobs).await
}

/// The same of one job, as the call that reads it.
pub(crate) fn ask_for_one(connection: &Connection, keys: &Keys, id: &str) -> Vec<u8> {
    READ_JOBS.packed(connection, &keys.base, &args![&Packer::of_texts([id].into_iter())])
}

/// What that call is answered: the job, or that there is none. `None`: of a job that is larger the answer is not all.
pub(crate) fn read_one(answer: Value) -> Option<Option<Job>> {
    let mut reply = Reply::new(READ_JOBS.name, answer).ok()?;
    if reply.is_empty() {
        return Some(None);
    }
    let job = read_job(&mut reply).ok()?;
    let is_whole = job
        .as_ref()
        .is_none_or(|job| job.apart.is_none() && !job.fields.has_large());
    is_whole.then_some(job)
}

/// Jobs, as the script gives them.
async fn ask_for(connection: &Connection, keys: &Keys, ids: &[impl AsRef<str>]) -> Result<Vec<Job>> {
    let (mut jobs, mut at) = (Vec::new(), 0);
    while at < ids.len() {
        let some = &ids[at..ids.len().min(at + IDS_A_CALL)];
        let packed = Packer::of_texts(some.iter().map(AsRef::as_ref));
        let mut reply = READ_JOBS.ask(connection, &keys.base, &args![&packed]).await?;
        while reply.len() > 1 {
            jobs.extend(read_job(&mut reply)?);
        }
        // large ones are left for another call
        at += if reply.is_empty() {
            some.len()
        } else {
            reply.int()?.max(1) as usize
        };
    }
    Ok(jobs)
}

/// Completes jobs; those that are gone by now are left out.
/// # Errors
/// As [`read_all`].
pub(crate) async fn complete_all(connection: &Connection, keys: &Keys, jobs: Vec<Job>) -> Result<Vec<Job>> {
    let jobs = match jobs.iter().any(|job| job.apart.is_some()) {
        true => with_frames(connection, keys, jobs).await?,
        false => jobs,
    };
    large::complete_all(connection, keys, jobs).await
}

/// Reads the frames that lie apart. A job whose frame has gone since was removed, or has got a record, and is asked for once more.
async fn with_frames(connection: &Connection, keys: &Keys, jobs: Vec<Job>) -> Result<Vec<Job>> {
    let jobs = put_in_bodies(connection, keys, jobs).await?;
    let left: Vec<&str> = jobs
        .iter()
        .filter(|job| job.apart.is_some())
        .map(|job| job.id.as_str())
        .collect();
    if left.is_empty() {
        return Ok(jobs);
    }
    let asked = ask_for(connection, keys, &left).await?;
    let mut again: HashMap<String, Job> = asked.into_iter().map(|job| (job.id.clone(), job)).collect();
    let jobs = jobs.into_iter().filter_map(|job| match job.apart {
        // nobody takes a frame away and leaves its jobs there
        Some(_) => again.remove(&job.id).map(|job| match job.apart {
            Some(_) => job.without_data(missing()),
            None => job,
        }),
        None => Some(job),
    });
    Ok(jobs.collect())
}

/// Gives those jobs their bodies whose frames are there. Each frame is let go behind the last of its jobs that follow each other.
async fn put_in_bodies(connection: &Connection, keys: &Keys, jobs: Vec<Job>) -> Result<Vec<Job>> {
    let places: Vec<ApartPlace> = jobs.iter().filter_map(|job| job.apart).collect();
    let by_frame: Vec<&[ApartPlace]> = places.chunk_by(|one, other| one.frame == other.frame).collect();
    let frames: Vec<ApartFrame> = by_frame.iter().map(|places| places[0].frame).collect();
    let read = read_frames(connection, keys, &frames).await?;
    let mut bodies = by_frame
        .into_iter()
        .zip(read)
        .flat_map(|(places, blob)| bodies_at(places, blob));
    let jobs = jobs
        .into_iter()
        .map(|job| match job.apart.and_then(|_| bodies.next()?) {
            Some(body) => job.with_body(&body),
            None => job,
        });
    Ok(jobs.collect())
}

/// The bodies at these places of a frame; `None` each when that is not there.
fn bodies_at(places: &[ApartPlace], blob: Option<Vec<u8>>) -> Vec<Option<Vec<u8>>> {
    let Some(blob) = blob else {
        return vec![None; places.len()];
    };
    let offsets: Vec<usize> = places.iter().map(|place| place.offset).collect();
    bodies_in_frame(&blob, &offsets).into_iter().map(Some).collect()
}
