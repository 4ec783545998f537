//! A queue's figures and clients: what is shown on dashboards.

use redis::{cmd, Value};

use super::Queue;
use crate::{
    error::{Error, Result},
    events::unpack::count_events,
    job::msgpack::Packer,
    redis::{
        call::{
            library::{args, COUNT_JOBS, COUNT_PRIORITIES, PUBLISH_EVENT},
            reply::{int, shape, Reply},
        },
        reach::client_names::split,
    },
};

/// Entries of the event log that are read at once before it is trimmed.
const TRIM_PAGE: usize = 100;

/// Finished jobs a minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Jobs since counting began.
    pub count: u64,
    /// When the last new minute began to be counted, epoch ms.
    pub prev_ms: u64,
    /// Jobs before that.
    pub prev_count: u64,
    /// Jobs of each minute asked for, the newest first.
    pub data: Vec<u64>,
    /// Minutes there are.
    pub minutes: u64,
}

/// A client of the server, as `CLIENT LIST` describes it.
pub type Client = Vec<(String, String)>;

/// Numbers of jobs by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// In the waiting list, priorities apart.
    pub waiting: u64,
    /// Held by workers.
    pub active: u64,
    /// Completed and kept.
    pub completed: u64,
    /// Failed and kept.
    pub failed: u64,
    /// Not due yet.
    pub delayed: u64,
    /// Waiting, with a priority.
    pub prioritized: u64,
    /// Parents whose children are not done.
    pub waiting_children: u64,
}

impl Counts {
    /// Reads the answer to `count_jobs`.
    /// # Errors
    /// [`Error::Malformed`].
    pub(crate) fn read(mut reply: Reply) -> Result<Self> {
        let mut next = || reply.int().map(|count| count as u64);
        Ok(Self {
            waiting: next()?,
            active: next()?,
            completed: next()?,
            failed: next()?,
            delayed: next()?,
            prioritized: next()?,
            waiting_children: next()?,
        })
    }

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

impl Queue {
    /// Numbers of jobs by state.
    pub async fn counts(&self) -> Result<Counts> {
        Counts::read(self.ask(&COUNT_JOBS, &[]).await?)
    }

    /// Numbers of waiting jobs with each of these priorities, of a group or of those that have none; 0: without one.
    pub async fn counts_per_priority(&self, priorities: &[f64], group: Option<&str>) -> Result<Vec<u64>> {
        let mut packed = Packer::default();
        packed.array(priorities.len());
        for priority in priorities {
            packed.float(*priority);
        }
        let mut reply = self
            .ask(&COUNT_PRIORITIES, &args![&packed, group.unwrap_or("")])
            .await?;
        priorities.iter().map(|_| Ok(reply.int()? as u64)).collect()
    }

    /// The server's answer to `INFO`.
    pub async fn server_info(&self) -> Result<String> {
        match self.connection().send(&cmd("INFO")).await? {
            Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Value::VerbatimString { text, .. } => Ok(text),
            other => Err(Error::malformed("the answer to INFO", shape(&other))),
        }
    }

    /// Tells an event of the caller's own, with its fields, names and values in turn. The log is then kept at about `max_events`.
    pub async fn publish_event(&self, now_ms: u64, name: &str, fields: &[String], max_events: u64) -> Result<()> {
        let mut event = Packer::default();
        event.array(2 + fields.len()).str("E").str(name);
        for text in fields {
            event.str(text);
        }
        let args = args![&event, max_events];
        self.run_once(&PUBLISH_EVENT, now_ms, &args).await.map(drop)
    }

    /// What workers with [`crate::WorkerOptions::metrics_minutes`] counted of a finished state (`completed` or `failed`): minutes `start`
    /// to `stop`, 0 is the newest, negative from the oldest. Three reads, sent together.
    pub async fn metrics(&self, state: &str, start: i64, stop: i64) -> Result<Metrics> {
        let key = self.keys().key(&format!("metrics:{state}"));
        let data = format!("{key}:data");
        let (mut totals, mut points, mut length) = (cmd("HMGET"), cmd("LRANGE"), cmd("LLEN"));
        totals.arg(&key).arg(&["count", "prevTS", "prevCount"]);
        points.arg(&data).arg(start).arg(stop);
        length.arg(&data);
        let connection = self.connection();
        let (known, range, minutes) = tokio::try_join!(
            connection.send(&totals),
            connection.send(&points),
            connection.send(&length)
        )?;
        let mut known = Reply::new("a queue's metrics", known)?;
        let mut next = || Ok::<_, Error>(known.opt_text()?.and_then(|text| text.parse().ok()).unwrap_or(0));
        let (count, prev_ms, prev_count) = (next()?, next()?, next()?);
        let points = Reply::new("a queue's metrics", range)?.texts()?;
        let minutes = int("a queue's metrics", &minutes)? as u64;
        Ok(Metrics {
            count,
            prev_ms,
            prev_count,
            data: points.iter().map(|point| point.parse().unwrap_or(0)).collect(),
            minutes,
        })
    }

    /// Workers of this queue that are connected to the server.
    /// # Errors
    /// As [`Queue::counts`]; a server may forbid `CLIENT LIST`.
    pub async fn worker_clients(&self) -> Result<Vec<Client>> {
        let name = self.keys().worker_client("");
        let named = format!("{name}:w:");
        self.clients(|found| *found == name || found.starts_with(&named)).await
    }

    /// Readers of this queue's events that are connected to the server.
    pub async fn event_clients(&self) -> Result<Vec<Client>> {
        let name = self.keys().events_client();
        self.clients(|found| *found == name).await
    }

    async fn clients(&self, is_wanted: impl Fn(&String) -> bool) -> Result<Vec<Client>> {
        let text = match self.connection().send(cmd("CLIENT").arg("LIST")).await? {
            Value::VerbatimString { text, .. } => text,
            other => redis::from_redis_value(other).unwrap_or_default(),
        };
        let clients = text.lines().flat_map(|line| {
            let fields = line.split(' ').filter_map(|field| field.split_once('='));
            let client: Client = fields
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            let named = client.iter().position(|(field, _)| field == "name");
            // one that several share is each of them
            let names: Vec<_> = named.map(|at| split(&client[at].1).collect()).unwrap_or_default();
            names.into_iter().filter(&is_wanted).map(move |name| {
                let mut client = client.clone();
                named.iter().for_each(|at| client[*at].1.clone_from(&name));
                client
            })
        });
        Ok(clients.collect())
    }

    /// Removes the oldest events until about `most` are left; those of one entry stay together. Answers how many went. Reads the log,
    /// 100 entries at a time.
    pub async fn trim_events(&self, most: u64) -> Result<u64> {
        let key = self.keys().key("events");
        let (mut entries, mut total, mut after) = (Vec::new(), 0, "-".to_owned());
        loop {
            let page = self
                .connection()
                .send(cmd("XRANGE").arg(&key).arg(&after).arg("+").arg("COUNT").arg(TRIM_PAGE))
                .await?;
            let mut page = Reply::new("the event log", page)?;
            let before = entries.len();
            while !page.is_empty() {
                let mut entry = page.array()?;
                let id = entry.text()?;
                let mut fields = entry.array()?;
                fields.text()?;
                let count = count_events(&fields.bytes()?).unwrap_or(1);
                total += count;
                after = format!("({id}");
                entries.push((id, count));
            }
            if entries.len() < before + TRIM_PAGE {
                break;
            }
        }
        let (mut left, mut kept) = (total, None);
        for (id, count) in entries {
            if left.saturating_sub(count) < most || left <= most {
                kept = Some(id);
                break;
            }
            left -= count;
        }
        if left < total {
            let mut trim = cmd("XTRIM");
            trim.arg(&key);
            match kept {
                Some(id) => trim.arg("MINID").arg(id),
                None => trim.arg("MAXLEN").arg(0),
            };
            self.connection().send(&trim).await?;
        }
        Ok(total - left)
    }

    /// Number of jobs that are delayed and due before `due_ms`.
    pub async fn delayed_before(&self, due_ms: u64) -> Result<u64> {
        let (key, most) = (self.keys().key("delayed"), format!("({}", due_ms as f64 * 4096.0));
        let count = self
            .connection()
            .send(cmd("ZCOUNT").arg(key).arg("-inf").arg(most))
            .await?;
        int("a number of delayed jobs", &count).map(|count| count as u64)
    }
}
