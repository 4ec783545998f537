//! Rows of jobs' logs, many at once: calls that the server works off in a millisecond each, of which only the first is waited for before the
//! next is sent.

use std::{
    future::{poll_fn, Future},
    pin::Pin,
    task::Poll,
};

use super::Queue;
use crate::{
    error::{Error, Result},
    redis::call::{
        library::{args, Arg, LOG_JOB},
        reply::{int, Reply},
    },
};

const MOST_ROWS: usize = 250;
const MOST_BYTES: usize = 262_144;

/// A row: id of the job, text, how many rows the job keeps (0 = all, less = as many of the oldest go).
type Row<'a> = (&'a str, &'a str, i64);

impl Queue {
    /// Adds a row to a job's log and keeps the newest `keep` rows (0 = all). Answers the number of rows.
    /// # Errors
    /// [`Error::JobMissing`].
    pub async fn log(&self, id: &str, row: &str, keep: u32) -> Result<u64> {
        let counts = self.log_rows(&[(id, row, keep.into())]).await?;
        counts.into_iter().next().unwrap_or(Ok(0))
    }

    /// Rows of a job's log, and how many there are. Descending ranks count from the newest row.
    pub async fn logs(&self, id: &str, start: i64, stop: i64, ascending: bool) -> Result<(Vec<String>, u64)> {
        let key = self.keys().key(&format!("logs:{id}"));
        let (from, to) = if ascending {
            (start, stop)
        } else {
            (-(stop + 1), -(start + 1))
        };
        let (mut some, mut length) = (redis::cmd("LRANGE"), redis::cmd("LLEN"));
        some.arg(&key).arg(from).arg(to);
        length.arg(&key);
        let connection = self.connection();
        let (range, count) = tokio::try_join!(connection.send(&some), connection.send(&length))?;
        let mut rows = Reply::new("a job's log", range)?.texts()?;
        if !ascending {
            rows.reverse();
        }
        Ok((rows, int("a job's log", &count)? as u64))
    }

    /// Deletes a job's log (0), all but its newest `keep` rows, or less than 0, as many of its oldest.
    /// # Errors
    /// [`Error::Refused`] for what is no whole number.
    pub async fn clear_logs(&self, id: &str, keep: f64) -> Result<()> {
        let key = self.keys().key(&format!("logs:{id}"));
        let mut command = redis::cmd(if keep == 0.0 { "DEL" } else { "LTRIM" });
        command.arg(&key);
        if keep != 0.0 {
            // the server says what is no number of rows
            command.arg((-keep).to_string()).arg(-1);
        }
        self.connection().send(&command).await.map(drop)
    }

    /// Adds rows to the logs of jobs, in this order. Answers the number of rows behind each.
    ///
    /// As in BullMQ a row of a job that keeps less than 0 is added, and answered by an error: that of the code which this number is.
    /// # Errors
    /// As [`crate::Connection::send`]; some of them may have been added. For a row [`Error::JobMissing`].
    pub async fn log_rows(&self, rows: &[Row<'_>]) -> Result<Vec<Result<u64>>> {
        let all_rows = rows;
        let (first, rest) = rows.split_at(fitting(rows));
        // it brings the script where it is missing: none of the others may overtake another for the lack of it
        let mut counts = self.log_some(first).await?;
        let mut calls = Vec::new();
        let mut rest = rest;
        while !rest.is_empty() {
            let (some, others) = rest.split_at(fitting(rest));
            calls.push(Box::pin(self.log_some(some)));
            rest = others;
        }
        for some in all(calls).await {
            counts.extend(some?);
        }
        let of_row = |(&(id, ..), count): (&Row<'_>, i64)| match u64::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => Err(Error::from_code(count, id, "", "addLog")),
        };
        Ok(all_rows.iter().zip(counts).map(of_row).collect())
    }

    async fn log_some(&self, rows: &[Row<'_>]) -> Result<Vec<i64>> {
        let args: Vec<Arg<'_>> = rows
            .iter()
            .flat_map(|(id, row, keep)| args![*id, *row, *keep])
            .collect();
        let mut reply = Reply::new(
            "the answer to log_job",
            self.run_once(&LOG_JOB, None::<u64>, &args).await?,
        )?;
        rows.iter().map(|_| reply.int()).collect()
    }
}

/// How many of these rows go into one call: one at least.
fn fitting(rows: &[Row<'_>]) -> usize {
    let mut bytes = 0;
    let fits = |(id, row, _): &&Row<'_>| {
        bytes += id.len() + row.len();
        bytes <= MOST_BYTES
    };
    let count = rows.iter().take(MOST_ROWS).take_while(fits).count();
    count.max(1).min(rows.len())
}

/// The outputs of calls that are begun in their order.
async fn all<F: Future>(mut calls: Vec<Pin<Box<F>>>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = calls.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_ready = true;
        for (call, output) in calls.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match call.as_mut().poll(context) {
                    Poll::Ready(done) => *output = Some(done),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
