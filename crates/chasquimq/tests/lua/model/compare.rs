//! Asks the queue everything that can be asked, and compares the answers with the model.

use chasquimq::{msgpack::Packer, Body, StateFields};
use redis::Value;

use super::{
    bulk::by_age,
    drive::Drive,
    state::{Job, State},
};
use crate::{
    find_jobs::find,
    given::queue::{run, show_reply},
};

const STATES: [&str; 6] = ["waiting", "active", "completed", "failed", "delayed", "prioritized"];

impl Drive {
    pub fn compare(&mut self) {
        let counts = STATES.map(|state| self.model.count(state));
        let [waiting, active, completed, failed, delayed, prioritized] = counts;
        let found = run!(self.queue, COUNT_JOBS);
        self.same(
            &found,
            &format!("[{waiting} {active} {completed} {failed} {delayed} {prioritized} 0]"),
        );
        self.compare_jobs();
        for state in STATES {
            self.compare_ranks(state);
            self.compare_listed(state);
        }
        let id = self.random.pick(&self.ids).clone();
        let found = run!(self.queue, JOB_STATE, &id);
        let expected = match self.model.jobs.get(&id) {
            None => "[unknown '']".to_owned(),
            Some(Job {
                state: State::Completed,
                fields,
                ..
            }) => {
                format!("[completed {}]", fields.returnvalue.as_deref().unwrap_or("null"))
            }
            Some(Job {
                state: State::Failed,
                fields,
                ..
            }) => {
                format!("[failed {}]", fields.failed_reason.as_deref().unwrap_or("''"))
            }
            Some(job) => format!("[{} '']", job.state.name()),
        };
        self.same(&found, &expected);
    }

    /// Every id that ever was: its job's state, data and state fields, or nothing.
    fn compare_jobs(&mut self) {
        let mut what = Packer::default();
        what.array(self.ids.len());
        for id in &self.ids {
            what.str(id);
        }
        let found = self.read(&what);
        let mut found = found.chunks_exact(5);
        for id in &self.ids {
            let Some(job) = self.model.jobs.get(id) else { continue };
            let Some([found_id, state, body, fields, traces]) = found.next() else {
                panic!("too few jobs")
            };
            let body = Body::parse(&bytes(body)).expect("body");
            let mut fields = StateFields::parse(&bytes(fields)).expect("state fields");
            if job.is_start_unknown {
                fields.processed_on = job.fields.processed_on;
            }
            fields.stacktrace = Some(show_reply(traces)).filter(|traces| traces != "''");
            let found = [
                show_reply(found_id),
                show_reply(state),
                body.data,
                format!("{fields:?}"),
            ];
            let expected = [
                id.clone(),
                job.state.name().to_owned(),
                job.data.clone(),
                format!("{:?}", job.fields),
            ];
            self.same(&found.join(" "), &expected.join(" "));
        }
        assert!(found.next().is_none(), "jobs that are none");
    }

    fn compare_ranks(&mut self, state: &str) {
        let expected = match state {
            "waiting" => self.model.line(),
            "delayed" => self.model.delayed.iter().map(|(_, id)| id.clone()).collect(),
            "prioritized" => self.model.prioritized.iter().map(|(_, _, id)| id.clone()).collect(),
            "active" => self.model.active(),
            // which of the jobs that ended in one millisecond comes first is the script's choice
            _ => self.model.finished(state),
        };
        let all = self.ids_of(state, 0, -1, true);
        let times = |ids: &[String]| {
            let time = |id| self.model.jobs.get(id).map(|job| job.fields.finished_on);
            ids.iter().map(time).collect::<Vec<_>>()
        };
        if matches!(state, "completed" | "failed") {
            self.same(
                &format!("{state} {:?}", times(&all)),
                &format!("{state} {:?}", times(&expected)),
            );
        } else {
            self.same(&format!("{state} {all:?}"), &format!("{state} {expected:?}"));
        }
        let reversed: Vec<String> = all.iter().rev().cloned().collect();
        let found = self.ids_of(state, 0, -1, false);
        self.same(&format!("{state} {found:?}"), &format!("{state} {reversed:?}"));

        self.compare_found(state, &all, &reversed);
        let len = all.len() as i64;
        let [start, stop] = [0; 2].map(|_| self.random.below(2 * len as u64 + 3) as i64 - len - 1);
        for (ascending, ids) in [(true, &all), (false, &reversed)] {
            let found = self.ids_of(state, start, stop, ascending);
            let from = (if start < 0 { len + start } else { start }).max(0);
            let to = (if stop < 0 { len + stop } else { stop }).min(len - 1);
            let expected: Vec<&String> = (from..=to).map(|rank| &ids[rank as usize]).collect();
            self.same(
                &format!("{state} {start}..{stop} {ascending} {found:?}"),
                &format!("{state} {start}..{stop} {ascending} {expected:?}"),
            );
        }
    }

    /// All are found by a filter, whatever a step takes.
    fn compare_found(&mut self, state: &str, all: &[String], reversed: &[String]) {
        let take = 1 + self.random.below(2 * all.len() as u64 + 1);
        let (mut found, _) = find(&mut self.queue, state, &by_age(-1), take);
        let mut expected = match state {
            "completed" | "failed" => reversed.to_vec(),
            _ => all.to_vec(),
        };
        if state == "active" {
            found.sort();
            expected.sort();
        }
        self.same(
            &format!("{state} by {take} {found:?}"),
            &format!("{state} by {take} {expected:?}"),
        );
    }

    pub fn ids_of(&mut self, state: &str, start: i64, stop: i64, ascending: bool) -> Vec<String> {
        let (jobs, _) = self.queue.list(&[state], start, stop, ascending, false);
        jobs.iter().map(|job| show_reply(&job[0])).collect()
    }

    /// A job found by its rank is the one that is found by its id.
    fn compare_listed(&mut self, state: &str) {
        let (jobs, _) = self.queue.list(&[state], 0, -1, true, false);
        let mut ids = Packer::default();
        ids.array(jobs.len());
        for job in &jobs {
            ids.bytes(&bytes(&job[0]));
        }
        let by_id = self.read(&ids);
        assert_eq!(by_id.len(), 5 * jobs.len());
        for (listed, read) in jobs.iter().zip(by_id.chunks_exact(5)) {
            let fields = |value: &Value| format!("{:?}", StateFields::parse(&bytes(value)));
            let show = |job: &[Value]| format!("{:?} {:?}", &job[..3], &job[4]) + &fields(&job[3]);
            self.same(&show(listed), &show(read));
        }
    }

    fn read(&mut self, what: &Packer) -> Vec<Value> {
        let mut call = self.queue.call(&chasquimq::redis::call::library::READ_JOBS);
        call.arg(&what.0);
        match self.queue.carry_out_unchecked(&call) {
            Value::Array(values) => values,
            other => panic!("{other:?}"),
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    redis::from_redis_value(value.clone()).expect("bytes")
}
