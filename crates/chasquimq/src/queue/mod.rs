//! A queue seen from outside its workers: adding, looking, and changing jobs by their id. Workers never need this.

pub mod bulk;
pub mod lists;
mod logs;
pub mod metrics;
mod removal;

use redis::Value;

#[cfg(unix)]
use crate::redis::direct::DirectSocket;
use crate::{
    add::producer::{Added, Batch, Producer},
    error::{Error, Result},
    job::{
        frame::MAX_BYTES,
        large::{self, Large},
        msgpack::Packer,
        options::{self, JobOptions},
        Body, Job, Vitals,
    },
    keys::Keys,
    redis::{
        connection::{ConnectOptions, Connection, ConnectionEvent},
        exactly_once::Lanes,
        library::{
            Arg, Script, AMEND_JOB, CHANGE_PRIORITY, CONFIGURE, COUNT_JOBS, COUNT_PRIORITIES, JOB_STATE, LIMIT_LEFT,
            MOVE_ACTIVE, MOVE_DELAYED, OBLITERATE, PAUSE, PUBLISH_EVENT, READ_JOBS, REMOVE_DEDUP_KEY, RETRY_JOB,
            SET_LIMIT,
        },
        reply::{int, Reply},
    },
};

/// Numbers of jobs by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// In line, priorities apart.
    pub waiting: u64,
    /// Held by workers.
    pub active: u64,
    /// Completed and kept.
    pub completed: u64,
    /// Failed and kept.
    pub failed: u64,
    /// Not due yet.
    pub delayed: u64,
    /// In line, with a priority.
    pub prioritized: u64,
    /// Parents whose children are not done.
    pub waiting_children: u64,
}

impl Counts {
    /// The number for a state in BullMQ's words; 0 for `paused` and `repeat`, which are states no more.
    pub fn of(&self, state: &str) -> Option<u64> {
        Some(match state {
            "waiting" | "wait" => self.waiting,
            "active" => self.active,
            "completed" => self.completed,
            "failed" => self.failed,
            "delayed" => self.delayed,
            "prioritized" => self.prioritized,
            "waiting-children" => self.waiting_children,
            "paused" | "repeat" => 0,
            _ => return None,
        })
    }
}

/// A queue.
#[derive(Debug)]
pub struct Queue {
    connection: Connection,
    keys: Keys,
    producer: Producer,
    lanes: Lanes,
}

impl Queue {
    /// A queue that is not connected yet.
    pub fn new(
        connect: ConnectOptions,
        keys: Keys,
        listener: impl Fn(ConnectionEvent) + Send + Sync + 'static,
    ) -> Self {
        let connection = Connection::new(connect.for_keys(&keys.base), listener);
        let producer = Producer::new(connection.clone(), keys.clone());
        Self {
            connection,
            keys,
            producer,
            lanes: Lanes::default(),
        }
    }

    /// Connects.
    /// # Errors
    /// As [`Connection::ready`].
    pub async fn ready(&self) -> Result<()> {
        self.connection.ready().await
    }

    /// Tidies up after this queue's adds. Call it before [`Queue::close`], when no add is under way.
    pub async fn forget_adds(&self) {
        self.producer.forget().await;
    }

    /// Closes the connection; calls under way end with [`Error::Closed`].
    pub fn close(&self) {
        self.connection.close();
    }

    /// True after [`Queue::close`].
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// True while there is a connection.
    pub fn is_connected(&self) -> bool {
        self.connection.is_connected()
    }

    /// The queue's keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Adds jobs, exactly once, in one atomic step.
    /// # Errors
    /// As [`Producer::add`].
    pub async fn add(&self, batch: Batch) -> Result<Added> {
        self.producer.add(batch).await
    }

    /// What adds, for callers that send by a connection of their own.
    pub fn producer(&self) -> &Producer {
        &self.producer
    }

    /// A connection of the caller's own to the same server; `None` where there can be none.
    /// # Errors
    /// As [`DirectSocket::open`].
    #[cfg(unix)]
    pub async fn open_direct(&self) -> Result<Option<DirectSocket>> {
        // what stands still there while another server takes over would be noticed by nobody
        if self.connection.has_discovery() {
            return Ok(None);
        }
        self.connection.open_direct().await
    }

    /// One job, or `None`.
    /// # Errors
    /// [`Error::Malformed`] when what is stored is not a job.
    pub async fn job(&self, id: &str) -> Result<Option<Job>> {
        let mut ids = Packer::default();
        ids.array(1).str(id);
        let reply = self.run(&READ_JOBS, &[Arg::from(ids.0.as_slice())]).await?;
        let mut reply = Reply::new("the answer to read_jobs", reply)?;
        if reply.is_empty() {
            return Ok(None);
        }
        match read_job(&mut reply)? {
            Some(job) => large::complete(&self.connection, &self.keys, job).await,
            None => Ok(None),
        }
    }

    /// Numbers of jobs by state.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn counts(&self) -> Result<Counts> {
        let mut reply = Reply::new("the answer to count_jobs", self.run(&COUNT_JOBS, &[]).await?)?;
        let mut next = || reply.int().map(|count| count as u64);
        Ok(Counts {
            waiting: next()?,
            active: next()?,
            completed: next()?,
            failed: next()?,
            delayed: next()?,
            prioritized: next()?,
            waiting_children: next()?,
        })
    }

    /// Numbers of jobs in line with each of these priorities; 0: without one.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn counts_per_priority(&self, priorities: &[f64]) -> Result<Vec<u64>> {
        let mut packed = Packer::default();
        packed.array(priorities.len());
        for priority in priorities {
            packed.float(*priority);
        }
        let reply = self.run(&COUNT_PRIORITIES, &[Arg::from(packed.0.as_slice())]).await?;
        let mut reply = Reply::new("the answer to count_priorities", reply)?;
        let mut counts = Vec::with_capacity(reply.len());
        while !reply.is_empty() {
            counts.push(reply.int()? as u64);
        }
        Ok(counts)
    }

    /// A job's state; `unknown` if there is no such job.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn state(&self, id: &str) -> Result<String> {
        self.read_state(id).await?.text()
    }

    async fn read_state(&self, id: &str) -> Result<Reply> {
        Reply::new("the answer to job_state", self.run(&JOB_STATE, &[Arg::from(id)]).await?)
    }

    /// As [`Queue::state`], and the job's return value (JSON text) or the reason it failed.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn outcome(&self, id: &str) -> Result<(String, String)> {
        let mut reply = self.read_state(id).await?;
        let (state, mut ended) = (reply.text()?, reply.text()?);
        if !reply.is_empty() {
            let vitals = Vitals {
                large_result: Some(0),
                ..Vitals::default()
            };
            let large = Large::read(&self.connection, &self.keys, id, &vitals).await?;
            ended = large.result.unwrap_or(ended);
        }
        Ok((state, ended))
    }

    /// Replaces a job's data (JSON text).
    /// # Errors
    /// [`Error::JobMissing`].
    pub async fn update_data(&self, now_ms: u64, id: &str, data: &str) -> Result<()> {
        let what = if data.len() > MAX_BYTES { "large" } else { "data" };
        self.amend(now_ms, id, what, data, "updateData").await
    }

    /// Replaces a job's progress (JSON text), and tells it as an event.
    /// # Errors
    /// [`Error::JobMissing`].
    pub async fn update_progress(&self, now_ms: u64, id: &str, progress: &str) -> Result<()> {
        self.amend(now_ms, id, "progress", progress, "updateProgress").await
    }

    async fn amend(&self, now_ms: u64, id: &str, what: &str, value: &str, command: &'static str) -> Result<()> {
        let args = [
            Arg::Int(now_ms as i64),
            Arg::from(id),
            Arg::from(what),
            Arg::from(value),
        ];
        self.coded(&AMEND_JOB, &args, id, "", command).await.map(drop)
    }

    /// Adds a row to a job's log and keeps the newest `keep` rows (0 = all). Answers the number of rows.
    /// # Errors
    /// [`Error::JobMissing`].
    pub async fn log(&self, id: &str, row: &str, keep: u32) -> Result<u64> {
        match self.log_rows(&[(id, row, keep)]).await?.first() {
            Some(code) if *code < 0 => Err(Error::from_code(*code, id, "", "addLog")),
            rows => Ok(rows.map_or(0, |rows| *rows as u64)),
        }
    }

    /// Rows of a job's log, and how many there are. Descending ranks count from the newest row.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn logs(&self, id: &str, start: i64, stop: i64, ascending: bool) -> Result<(Vec<String>, u64)> {
        let key = self.keys.key(&format!("logs:{id}"));
        let (from, to) = if ascending {
            (start, stop)
        } else {
            (-(stop + 1), -(start + 1))
        };
        let mut range = redis::cmd("LRANGE");
        range.arg(&key).arg(from).arg(to);
        let mut rows = Reply::new("a job's log", self.connection.send(&range).await?)?.texts()?;
        if !ascending {
            rows.reverse();
        }
        let mut len = redis::cmd("LLEN");
        len.arg(&key);
        let count = int("a job's log", &self.connection.send(&len).await?)?;
        Ok((rows, count as u64))
    }

    /// Deletes a job's log, or all but its newest `keep` rows.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn clear_logs(&self, id: &str, keep: u32) -> Result<()> {
        let key = self.keys.key(&format!("logs:{id}"));
        let mut command = redis::cmd(if keep > 0 { "LTRIM" } else { "DEL" });
        command.arg(&key);
        if keep > 0 {
            command.arg(-i64::from(keep)).arg(-1);
        }
        self.connection.send(&command).await.map(drop)
    }

    /// Id of the job that owns a deduplication id.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn deduplication_owner(&self, dedup_id: &str) -> Result<Option<String>> {
        let mut get = redis::cmd("GET");
        get.arg(self.keys.key(&format!("de:{dedup_id}")));
        let reply = Value::Array(vec![self.connection.send(&get).await?]);
        Reply::new("the answer to GET", reply)?.opt_text()
    }

    /// Frees a deduplication id: whoever owns it, or only if the job `owner` does. False when it was free, or another's. What was kept
    /// to be added after the owner still is.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn free_deduplication(&self, dedup_id: &str, owner: Option<&str>) -> Result<bool> {
        let args = [Arg::from(dedup_id), Arg::from(owner.unwrap_or(""))];
        let reply = self.run(&REMOVE_DEDUP_KEY, &args).await?;
        Ok(int("the answer to remove_dedup_key", &reply)? == 1)
    }

    /// Puts a finished job back in line. `state` is the one it must be in.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::NotInState`].
    pub async fn retry(&self, now_ms: u64, id: &str, state: &str, retry: RetryOptions) -> Result<()> {
        let args = [
            Arg::Int(now_ms as i64),
            Arg::from(id),
            Arg::from(state),
            Arg::from(retry.front),
            Arg::from(retry.reset_attempts_made),
            Arg::from(retry.reset_attempts_started),
        ];
        self.coded(&RETRY_JOB, &args, id, state, "reprocessJob").await.map(drop)
    }

    /// Makes a delayed job wait at once.
    /// # Errors
    /// [`Error::NotInState`], also when there is no such job.
    pub async fn promote(&self, now_ms: u64, id: &str) -> Result<()> {
        let args = [Arg::Int(now_ms as i64), Arg::from(id), Arg::Int(0)];
        match self.coded(&MOVE_DELAYED, &args, id, "delayed", "promote").await {
            Err(Error::JobMissing { job, command }) => Err(Error::NotInState {
                job,
                state: "delayed".into(),
                command,
            }),
            done => done.map(drop),
        }
    }

    /// Changes when a delayed job is due: `delay_ms` from now.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::NotInState`].
    pub async fn change_delay(&self, now_ms: u64, id: &str, delay_ms: u64) -> Result<()> {
        let args = [
            Arg::Int(now_ms as i64),
            Arg::from(id),
            Arg::Int(options::due_ms(now_ms, delay_ms) as i64),
        ];
        self.coded(&MOVE_DELAYED, &args, id, "delayed", "changeDelay")
            .await
            .map(drop)
    }

    /// Gives a job another priority (0 = none). One in line goes behind those of its new priority, or before them with `lifo`.
    /// # Errors
    /// [`Error::JobMissing`].
    pub async fn change_priority(&self, id: &str, priority: i64, lifo: bool) -> Result<()> {
        let args = [Arg::from(id), Arg::Int(priority), Arg::from(lifo)];
        self.coded(&CHANGE_PRIORITY, &args, id, "", "changePriority")
            .await
            .map(drop)
    }

    /// Moves an active job to delayed until `due_ms`. The token `0` moves anybody's.
    /// # Errors
    /// [`Error::JobMissing`], [`Error::LockMissing`], [`Error::NotInState`], [`Error::LockMismatch`].
    pub async fn move_to_delayed(&self, now_ms: u64, id: &str, due_ms: u64, token: &str) -> Result<()> {
        self.move_active(
            now_ms,
            id,
            due_ms.clamp(1, 2 * options::LONGEST_MS),
            token,
            "moveToDelayed",
        )
        .await
        .map(drop)
    }

    /// Moves an active job to the head of the line. Answers how long the window of the rate limit still lasts, ms.
    /// # Errors
    /// As [`Queue::move_to_delayed`].
    pub async fn move_to_wait(&self, now_ms: u64, id: &str, token: &str) -> Result<u64> {
        self.move_active(now_ms, id, 0, token, "moveJobFromActiveToWait").await
    }

    async fn move_active(&self, now_ms: u64, id: &str, due_ms: u64, token: &str, command: &'static str) -> Result<u64> {
        let args = [
            Arg::Int(now_ms as i64),
            Arg::from(id),
            Arg::from(token),
            Arg::Int(due_ms as i64),
        ];
        self.coded(&MOVE_ACTIVE, &args, id, "active", command)
            .await
            .map(|ms| ms as u64)
    }

    /// Sets or clears the flag that stops every worker's fetching.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn pause(&self, now_ms: u64, paused: bool) -> Result<()> {
        self.run(&PAUSE, &[Arg::Int(now_ms as i64), Arg::from(paused)])
            .await
            .map(drop)
    }

    /// Sets how many jobs may be active at once, over all workers; `None` = any number. Numbers are texts, kept as they are. Answers how
    /// many settings came or went.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn limit_concurrency(&self, jobs: Option<&str>) -> Result<u64> {
        self.set_limit("concurrency", jobs, "").await
    }

    /// Sets how many jobs may start in a window of `duration_ms`, over all workers; `None` = any number. Otherwise as
    /// [`Queue::limit_concurrency`].
    /// # Errors
    /// As [`Connection::send`].
    pub async fn limit_rate(&self, rate: Option<(&str, &str)>) -> Result<u64> {
        let (max, duration_ms) = rate.unzip();
        self.set_limit("rate", max, duration_ms.unwrap_or("")).await
    }

    /// Lets no job start for so long, wherever a rate limit holds. `None` ends the window under way: answers 1, or 0 when there is none.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn hold(&self, ms: Option<u64>) -> Result<u64> {
        let ms = ms.map(|ms| ms.to_string());
        self.set_limit("window", ms.as_deref(), "").await
    }

    /// Sets how many jobs may wait: in line, prioritized, delayed, or for their children. Adds past that are refused
    /// ([`Error::QueueFull`]). `None` = any number. Answers 1 when a setting came or went.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn limit_length(&self, jobs: Option<u64>) -> Result<u64> {
        let jobs = jobs.map(|jobs| jobs.to_string());
        self.set_limit("length", jobs.as_deref(), "").await
    }

    async fn set_limit(&self, what: &str, value: Option<&str>, duration_ms: &str) -> Result<u64> {
        let args = [what, value.unwrap_or(""), duration_ms].map(Arg::from);
        Ok(int("the answer to set_limit", &self.run(&SET_LIMIT, &args).await?)? as u64)
    }

    /// How long the window of the rate limit still lasts, ms: 0 while fewer than `max` jobs have started in it. Without a `max`, and without
    /// one of the queue's own: -2 when there is no window.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn limit_left(&self, max: Option<&str>) -> Result<i64> {
        let reply = self.run(&LIMIT_LEFT, &[Arg::from(max.unwrap_or(""))]).await?;
        int("the answer to limit_left", &reply)
    }

    /// Every field of the queue's settings.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn meta(&self) -> Result<Vec<(String, String)>> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys.key("meta"));
        let flat = match self.connection.send(&command).await? {
            Value::Map(pairs) => pairs.into_iter().flat_map(|(field, value)| [field, value]).collect(),
            Value::Array(values) => values,
            other => return Err(Error::malformed("the queue's settings", format_args!("{other:?}"))),
        };
        let mut reply = Reply::new("the queue's settings", Value::Array(flat))?;
        let mut fields = Vec::with_capacity(reply.len() / 2);
        while !reply.is_empty() {
            fields.push((reply.text()?, reply.text()?));
        }
        Ok(fields)
    }

    /// Writes the queue's version, and the cap of its event log (events, approximate).
    /// # Errors
    /// As [`Connection::send`].
    pub async fn configure(&self, version: &str, max_events: u64) -> Result<()> {
        self.run(&CONFIGURE, &[Arg::from(version), Arg::Int(max_events as i64)])
            .await
            .map(drop)
    }

    /// Tells an event of the caller's own, with its fields, names and values in turn. The log is then kept at about `max_events`.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn publish_event(&self, now_ms: u64, name: &str, fields: &[String], max_events: u64) -> Result<()> {
        let mut event = Packer::default();
        event.array(2 + fields.len()).str("E").str(name);
        for text in fields {
            event.str(text);
        }
        let args = [Arg::from(event.0.as_slice()), Arg::Int(max_events as i64)];
        self.run_once(&PUBLISH_EVENT, now_ms, &args).await.map(drop)
    }

    /// The server's answer to `INFO`.
    /// # Errors
    /// As [`Connection::send`].
    pub async fn server_info(&self) -> Result<String> {
        match self.connection.send(&redis::cmd("INFO")).await? {
            Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Value::VerbatimString { text, .. } => Ok(text),
            other => Err(Error::malformed("the answer to INFO", format_args!("{other:?}"))),
        }
    }

    /// Pauses the queue, then deletes all of it, in one step, or in steps of `count` (1,000 at most) jobs that ran or have a log.
    /// # Errors
    /// [`Error::ActiveJobs`] unless `force`; [`Error::NotPaused`] when somebody resumes the queue meanwhile.
    pub async fn obliterate(&self, now_ms: u64, force: bool, count: u32) -> Result<()> {
        self.pause(now_ms, true).await?;
        self.obliterate_paused(now_ms, force, count).await
    }

    /// The same of a queue that is paused.
    /// # Errors
    /// As [`Queue::obliterate`].
    pub async fn obliterate_paused(&self, now_ms: u64, force: bool, count: u32) -> Result<()> {
        let mut cursor = b"0".to_vec();
        loop {
            let args = [
                Arg::Int(now_ms as i64),
                Arg::Int(i64::from(count.max(1))),
                Arg::from(force),
                Arg::from(cursor.as_slice()),
            ];
            match self.run(&OBLITERATE, &args).await? {
                Value::Int(0) => {
                    self.producer.forget().await;
                    return Ok(());
                }
                Value::Int(-1) => return Err(Error::NotPaused),
                Value::Int(-2) => return Err(Error::ActiveJobs),
                Value::BulkString(next) => cursor = next,
                other => return Err(Error::malformed("the answer to obliterate", format_args!("{other:?}"))),
            }
        }
    }

    /// What the commands go by.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) async fn run(&self, script: &Script, args: &[Arg<'_>]) -> Result<Value> {
        script.run(&self.connection, &self.keys.base, args).await
    }

    /// Runs a script that is carried out once: see [`Lanes::run`].
    pub(crate) async fn run_once(&self, script: &Script, now_ms: u64, args: &[Arg<'_>]) -> Result<Value> {
        self.run_once_at(&self.keys.base, script, now_ms, args).await
    }

    /// The same, on the queue with this base.
    pub(crate) async fn run_once_at(
        &self,
        base: &str,
        script: &Script,
        now_ms: u64,
        args: &[Arg<'_>],
    ) -> Result<Value> {
        let connection = self.connection.for_keys(base);
        self.lanes.run(&connection, base, script, now_ms, args).await
    }

    /// Runs a script that answers a number; a negative one is an error about the job.
    pub(crate) async fn coded(
        &self,
        script: &Script,
        args: &[Arg<'_>],
        id: &str,
        state: &str,
        command: &'static str,
    ) -> Result<i64> {
        read_code(script, &self.run(script, args).await?, id, state, command)
    }
}

/// The number that a script answers; a negative one is an error about the job.
pub(crate) fn read_code(script: &Script, reply: &Value, id: &str, state: &str, command: &'static str) -> Result<i64> {
    let number = int(script.name, reply)?;
    if number < 0 {
        return Err(Error::from_code(number, id, state, command));
    }
    Ok(number)
}

/// Reads a job; `None` when it was gone before it was read. One that cannot be read has no name and no data, and says why.
pub(crate) fn read_job(reply: &mut Reply) -> Result<Option<Job>> {
    let (id, state, body) = (reply.text()?, reply.text()?, reply.bytes()?);
    let vitals = reply.bytes()?;
    let mut vitals = Vitals::parse(&vitals).unwrap_or_else(|error| Vitals::of_unreadable(&error));
    vitals.stacktrace = Some(reply.text()?).filter(|traces| !traces.is_empty());
    if body.is_empty() {
        return Ok(None);
    }
    let (body, options) = read_body(&body).unwrap_or_else(|error| {
        vitals.deferred_failure.get_or_insert_with(|| error.reason_to_fail());
        (Body::unreadable(), JobOptions::none("{}"))
    });
    let delay_ms = match (state.as_str(), vitals.delay_ms) {
        ("delayed", Some(delay_ms)) | ("waiting-children", Some(delay_ms)) => delay_ms,
        ("delayed", None) => options.delay_ms,
        _ => 0,
    };
    let priority = vitals.priority.unwrap_or(options.priority);
    Ok(Some(Job {
        id,
        state,
        body,
        vitals,
        delay_ms,
        priority,
    }))
}

fn read_body(blob: &[u8]) -> Result<(Body, JobOptions)> {
    let body = Body::parse(blob)?;
    let options = JobOptions::of_stored(&body.options)?;
    Ok((body, options))
}

/// How a finished job is put back in line.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetryOptions {
    /// At the head.
    pub front: bool,
    /// Its tries are counted from 0 again.
    pub reset_attempts_made: bool,
    /// Its starts are counted from 0 again.
    pub reset_attempts_started: bool,
}

pub(crate) fn pack_map(packer: &mut Packer, pairs: u8) -> &mut Packer {
    packer.0.push(0x80 | pairs);
    packer
}
