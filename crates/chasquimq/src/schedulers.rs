//! Schedulers: what makes jobs again and again. Each has one iteration that is still to be taken; who takes it makes the next one.
//! When that is, for those that do not run each so many ms, the caller computes.

mod scheduler;

use redis::Value;

use crate::{
    error::{Error, Result},
    job::{
        msgpack::{Packer, Reader},
        options::JobOptions,
    },
    queue::Queue,
    redis::call::{
        library::{
            args, LIST_SCHEDULERS, NEXT_ITERATIONS, PAUSE_SCHEDULER, REMOVE_SCHEDULER, RESUME_SCHEDULER, RUN_SCHEDULER,
            UPSERT_SCHEDULER,
        },
        reply::{int, Reply},
    },
};

pub use scheduler::{CatchUp, Following, Overlap, Resumed, Resumption, Rules, Scheduler, Upsert, Upserted};

// in front of a stored scheduler lies its count of iterations, a double (lua/rules/schedulers.lua)
const COUNT_BYTES: usize = 8;
// most that one script call reads
const SCHEDULERS_A_CALL: usize = 500;

/// The scheduler that made a job, by the job's id and options; `None` for any other job.
pub fn scheduler_of<'a>(id: &'a str, options: &str) -> Option<&'a str> {
    let (scheduler, slot) = id.strip_prefix("repeat:")?.rsplit_once(':')?;
    let is_slot = !slot.is_empty() && slot.bytes().all(|byte| byte.is_ascii_digit());
    (is_slot && options.contains("\"repeat\":{")).then_some(scheduler)
}

impl Queue {
    /// Makes a scheduler or replaces what it was told, with its next iteration.
    /// # Errors
    /// [`Error::IterationIdTaken`], [`Error::IterationSlotsTaken`]; [`Error::Invalid`] for options that are no object.
    pub async fn upsert_scheduler(&self, now_ms: u64, upsert: &Upsert) -> Result<Upserted> {
        let (mut schedule, mut record, mut job) = (Packer::default(), Packer::default(), Packer::default());
        schedule.array(7).int(upsert.every_ms as i64).int(upsert.next_ms as i64);
        schedule.int(upsert.offset_ms.map_or(-1, |ms| ms as i64));
        schedule.int(upsert.start_ms as i64).int(upsert.jitter_ms as i64);
        schedule.int(upsert.after_ms as i64).int(i64::from(upsert.keeps));
        record.array(4).str(&upsert.name).str(&upsert.data);
        record.str(&upsert.template).str(&upsert.repeat);
        pack_job(&mut job, 0, &upsert.id, &upsert.options, |_| {})?;
        let args = args![upsert.id.as_str(), &schedule, &record, &job];
        match self.run_once(&UPSERT_SCHEDULER, now_ms, &args).await? {
            Value::Int(0) => Ok(Upserted::Paused),
            Value::Int(-1) => Ok(Upserted::AskBehind),
            Value::Int(code) => Err(Error::from_code(code, &upsert.id, "", "addJobScheduler")),
            value => {
                let mut reply = Reply::new("the answer to upsert_scheduler", value)?;
                Ok(Upserted::Made(reply.int()? as u64, reply.int()? as u64))
            }
        }
    }

    /// Makes what follows iterations that were taken; those that were followed before are passed over. Answers the slot of what follows
    /// each, `Some(0)` for nothing, and `None` where the taken one is not to run: it is nobody's any more.
    /// # Errors
    /// As [`Queue::counts`]; [`Error::Invalid`] for options that are no object.
    pub async fn next_iterations(&self, now_ms: u64, taken: &[Following]) -> Result<Vec<Option<u64>>> {
        let mut packed = Packer::default();
        packed.array(taken.len());
        for following in taken {
            pack_job(&mut packed, 6, &following.scheduler, &following.options, |packed| {
                packed
                    .str(&following.id)
                    .str(&following.scheduler)
                    .int(following.slot as i64);
                packed
                    .int(next_of(following.next_ms))
                    .int(following.first_ms.unwrap_or(0) as i64);
                match &following.rules {
                    Some(rules) => pack_rules(packed, rules),
                    None => drop(packed.int(0)),
                }
            })?;
        }
        let args = args![now_ms, &packed];
        let mut reply = self.ask(&NEXT_ITERATIONS, &args).await?;
        taken.iter().map(|_| Ok(u64::try_from(reply.int()?).ok())).collect()
    }

    /// Pauses a scheduler: it makes no iterations until it is resumed, and takes back the one that stands to start. False when there is none.
    pub async fn pause_scheduler(&self, now_ms: u64, id: &str) -> Result<bool> {
        Ok(self.int_once(&PAUSE_SCHEDULER, now_ms, &args![id]).await? == 1)
    }

    /// Lets a scheduler go on that is paused. One that is not stays as it is.
    /// # Errors
    /// As [`Queue::upsert_scheduler`].
    pub async fn resume_scheduler(&self, now_ms: u64, resumption: &Resumption) -> Result<Resumed> {
        let Resumption { id, held, options, .. } = resumption;
        let mut job = Packer::default();
        pack_job(&mut job, 0, id, options, |_| {})?;
        let next_ms = next_of(resumption.next_ms);
        let args = args![id.as_str(), held.as_str(), next_ms, resumption.jitter_ms, &job];
        match self.int_once(&RESUME_SCHEDULER, now_ms, &args).await? {
            1 => Ok(Resumed::GoesOn),
            0 => Ok(Resumed::Missing),
            -1 => Ok(Resumed::Changed),
            code => Err(Error::from_code(code, id, "", "resumeJobScheduler")),
        }
    }

    /// Adds a job of a scheduler now, with these options (as [`Upsert::options`]). Answers its id; `None` when there is no such scheduler.
    /// # Errors
    /// As [`Queue::counts`]; [`Error::Invalid`] for options that are no object.
    pub async fn run_scheduler(&self, now_ms: u64, id: &str, options: &str) -> Result<Option<String>> {
        let mut job = Packer::default();
        pack_job(&mut job, 0, id, options, |_| {})?;
        let noughts = self.int_once(&RUN_SCHEDULER, now_ms, &args![id, &job]).await?;
        Ok((noughts > 0).then(|| format!("repeat:{id}:{}{now_ms}", "0".repeat(noughts as usize))))
    }

    /// Removes a scheduler, and its next iteration if that is delayed. False when there is none.
    pub async fn remove_scheduler(&self, now_ms: u64, id: &str) -> Result<bool> {
        Ok(self.int_once(&REMOVE_SCHEDULER, now_ms, &args![id]).await? == 1)
    }

    /// One scheduler, or `None`.
    /// # Errors
    /// [`Error::Malformed`] when what is stored is none.
    pub async fn scheduler(&self, id: &str) -> Result<Option<Scheduler>> {
        Ok(self.read_schedulers(&[id.to_owned()]).await?.pop())
    }

    /// Schedulers by the slot of their latest iteration, the last first unless `ascending`; ranks as those of `ZRANGE`. Those that go or
    /// come while the call reads the next 500 may be there or not.
    pub async fn schedulers(&self, start: i64, stop: i64, ascending: bool) -> Result<Vec<Scheduler>> {
        let mut command = redis::cmd(if ascending { "ZRANGE" } else { "ZREVRANGE" });
        command.arg(self.keys().key("schedulers")).arg(start).arg(stop);
        // they change their places as they run: their ranks are those of one moment
        let ids = Reply::new("the ids of schedulers", self.connection().send(&command).await?)?.texts()?;
        let mut found = Vec::with_capacity(ids.len());
        for some in ids.chunks(SCHEDULERS_A_CALL) {
            found.extend(self.read_schedulers(some).await?);
        }
        Ok(found)
    }

    async fn read_schedulers(&self, ids: &[String]) -> Result<Vec<Scheduler>> {
        let packed = Packer::of_texts(ids.iter().map(String::as_str));
        let mut reply = self.ask(&LIST_SCHEDULERS, &args![&packed]).await?;
        let mut found = Vec::with_capacity(reply.len() / 3);
        while !reply.is_empty() {
            let (id, slot, stored) = (reply.text()?, reply.int()?, reply.bytes()?);
            found.push(read_scheduler(id, slot as u64, &stored)?);
        }
        Ok(found)
    }

    /// Number of schedulers.
    pub async fn count_schedulers(&self) -> Result<u64> {
        let key = self.keys().key("schedulers");
        let count = self.connection().send(redis::cmd("ZCARD").arg(key)).await?;
        Ok(int("the number of schedulers", &count)? as u64)
    }
}

/// The slot of a next iteration, as scripts take it.
fn next_of(next_ms: Option<u64>) -> i64 {
    next_ms.map_or(-1, |ms| ms as i64)
}

fn pack_rules(packed: &mut Packer, rules: &Rules) {
    packed.array(5).int(rules.overlap as i64).int(rules.catch_up as i64);
    packed
        .int(i64::from(rules.missed))
        .int(rules.jitter_ms as i64)
        .str(&rules.token);
}

/// An array of what stands before, so many values, and of options, id text, priority, place and, if there are any, group and expiry of an iteration, as
/// lua/rules/schedulers.lua puts its slot in.
fn pack_job(
    packer: &mut Packer,
    count_before: usize,
    scheduler: &str,
    options: &str,
    before: impl FnOnce(&mut Packer),
) -> Result<()> {
    let parsed = JobOptions::parse(options)?;
    packer.array(count_before + 4 + parsed.more());
    before(packer);
    let open = options.trim_end().strip_suffix('}').unwrap_or(options);
    let open = if open.trim() == "{" {
        open.to_owned()
    } else {
        format!("{open},")
    };
    let id = serde_json::Value::from(format!("repeat:{scheduler}:")).to_string();
    packer.str(&open).str(id.trim_end_matches('"'));
    packer.int(parsed.rank()).int(i64::from(parsed.lifo));
    parsed.pack_more(packer);
    Ok(())
}

fn read_scheduler(id: String, next_ms: u64, stored: &[u8]) -> Result<Scheduler> {
    let Some((count, fields)) = stored.split_first_chunk::<COUNT_BYTES>() else {
        return Err(Error::malformed("a scheduler", "too short"));
    };
    let mut reader = Reader::new(fields);
    let values = reader.array()?;
    if values < 6 {
        return Err(Error::malformed("a scheduler", "too few values"));
    }
    let mut text = || reader.str().map(str::to_owned);
    let (name, data, template, repeat) = (text()?, text()?, text()?, text()?);
    reader.skip()?;
    let offset_ms = reader.int()? as u64;
    if values > 6 {
        reader.skip()?;
    }
    let held = (values > 7).then(|| reader.str().map(str::to_owned)).transpose()?;
    Ok(Scheduler {
        id,
        next_ms,
        count: f64::from_le_bytes(*count) as u64,
        name,
        data,
        template,
        repeat,
        offset_ms,
        held,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_is_known_by_its_id_and_options() {
        let options = r#"{"repeat":{"every":5}}"#;
        assert_eq!(scheduler_of("repeat:a:b:17", options), Some("a:b"));
        assert_eq!(scheduler_of("repeat::17", options), Some(""));
        for (id, options) in [
            ("repeat:a:17", "{}"),
            ("repeat:a:x", options),
            ("repeat:a:", options),
            ("a:b:17", options),
            ("17", options),
        ] {
            assert_eq!(scheduler_of(id, options), None, "{id} {options}");
        }
    }

    #[test]
    fn what_depends_on_the_slot_is_left_open() {
        let mut packer = Packer::default();
        pack_job(&mut packer, 0, "a\"b", r#"{"priority":3}"#, |_| {}).expect("options");
        let mut reader = Reader::new(&packer.0);
        assert_eq!(reader.array().expect("an array"), 4);
        assert_eq!(reader.str().expect("options"), r#"{"priority":3,"#);
        assert_eq!(reader.str().expect("id"), r#""repeat:a\"b:"#);
        assert_eq!((reader.int().expect("priority"), reader.int().expect("lifo")), (3, 0));
    }
}
