//! The worker's lease, which says that its jobs are run, and the jobs that nobody runs.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use super::Loop;
use crate::{
    clock::{system_now_ms, Moment},
    error::Result,
    job::msgpack::Packer,
    lost::{Scan, Search},
    redis::call::{
        library::{args, Arg, NOTE_LATENCY, RELEASE_WORKER, RENEW_LEASE},
        reply::Reply,
    },
    worker::{
        idle::idle_wait::Pending,
        manual::extend_locks,
        message::{CancelledJob, Message, Taking},
        record::pack::pack_keep,
    },
};

/// Most locks that are looked at in one call.
const LOCKS_A_CALL: usize = 500;
/// A cancelled job that the last step may have brought is looked for again after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What part of a lease, or of the time between two scans, is no matter to a scan. A worker that waits looks twice in the usual time.
const LATELY: f64 = 0.6;

/// Time between two notes of how long jobs took.
const NOTE_INTERVAL: Duration = Duration::from_secs(5);

impl Loop {
    /// Renews the lease, and reads which jobs are cancelled.
    pub(super) async fn renew_lease(&mut self) {
        let renew_time = self.options.lock_renew_time;
        self.rounds.renewal = renew_time.map(|time| Instant::now() + time / 2);
        // without jobs there is none
        let renewed = renew_time.filter(|_| self.holds_jobs());
        let duration = renewed.map_or(0, |_| self.options.lock_duration.as_millis() as u64);
        let mut known = Packer::default();
        known.array(self.rounds.read_cancels.len());
        for mark in &self.rounds.read_cancels {
            known.str(mark);
        }
        let args = args![self.options.id.as_str(), duration, &known];
        let sent = Moment::now();
        let reply = match RENEW_LEASE.ask(&self.connection, &self.keys.base, &args).await {
            Ok(reply) => reply,
            Err(error) => return self.report(error),
        };
        let (was_there, marks) = match read_renewal(reply) {
            Ok(read) => read,
            Err(error) => return self.report(error),
        };
        if !was_there {
            // others may have them
            self.offers.lapsed();
            self.take_back(true);
            (self.sink)(Message {
                lease_lost: true,
                ..Message::default()
            });
        }
        if duration > 0 {
            let lapsed = self.offers.lease(sent..=Moment::now());
            self.return_jobs(lapsed);
        }
        self.rounds.read_cancels.clear();
        if !marks.is_empty() {
            self.tell_cancelled(marks).await;
        }
    }

    /// Tells of the jobs that are cancelled and held. What is not held has left, unless the answer of the last step is still to come.
    async fn tell_cancelled(&mut self, marks: Vec<(String, CancelledJob)>) {
        if self.waiter.pending == Pending::Lent {
            self.break_off().await;
        }
        let held: HashSet<(String, u64)> = self.standing.in_flight.ids().into_iter().collect();
        let mut cancelled = Vec::new();
        for (mark, job) in marks {
            let (is_held, is_new) = match job.taking {
                Taking::Claim(claim) => (
                    held.contains(&(job.id.clone(), claim)),
                    claim as i64 >= self.standing.step_number,
                ),
                // whoever took it knows
                Taking::Manual(_) => (true, false),
            };
            if !is_held && is_new {
                self.rounds.renewal = Some(Instant::now() + LOOK_AGAIN);
                continue;
            }
            self.rounds.read_cancels.push(mark);
            cancelled.extend(is_held.then_some(job));
        }
        if !cancelled.is_empty() {
            (self.sink)(Message {
                cancelled,
                ..Message::default()
            });
        }
    }

    /// Tells of the jobs that run for longer than from one look to the next, and that are this worker's no more. Whatever renews the lease, steps
    /// included, says nothing of single jobs.
    pub(super) async fn check_locks(&mut self) {
        if self.waiter.pending == Pending::Lent {
            self.break_off().await;
        }
        // the turn that finds jobs sets it again
        self.rounds.check = None;
        let duration = self.options.lock_duration.as_millis() as u64;
        let mut held = self.standing.in_flight.ids();
        let newest = held.iter().map(|(_, claim)| *claim).max().unwrap_or_default();
        let known = std::mem::replace(&mut self.rounds.checked_claim, newest);
        held.retain(|(_, claim)| *claim <= known);
        let token = |claim| format!("{}:{claim}.0", self.options.id);
        let locks: Vec<_> = held.into_iter().map(|(id, claim)| (id, token(claim))).collect();
        for some in locks.chunks(LOCKS_A_CALL) {
            match extend_locks(&self.connection, &self.keys, some, duration).await {
                Ok(lost) if lost.is_empty() => {}
                Ok(locks_lost) => (self.sink)(Message {
                    locks_lost,
                    ..Message::default()
                }),
                Err(error) => return self.report(error),
            }
        }
    }

    /// Begins to look for jobs that nobody runs, unless there can be none.
    pub(super) fn begin_scan(&mut self) {
        let Some(interval) = self.options.stalled_interval else {
            return;
        };
        self.rounds.next_scan = Some(Instant::now() + interval);
        // what came since then has its lease
        let lately = interval.min(self.options.lock_duration).mul_f64(LATELY);
        if self.rounds.scan.is_none() && !self.waiter.spares_scan(lately) {
            self.waiter.scans();
            self.rounds.scan = Some(Scan::new());
        }
    }

    /// Takes a step of the scan under way. In between jobs start and end, and the lease is renewed, however many are found.
    pub(super) async fn go_on_scanning(&mut self) {
        let (Some(mut scan), Some(interval)) = (self.rounds.scan.take(), self.options.stalled_interval) else {
            return;
        };
        let mut keep = Packer::default();
        pack_keep(&mut keep, &self.options.remove_on_fail, self.options.metrics_minutes);
        // what this brings back may wake this worker as well, and is `stalled` before it is active
        self.waiter.hold_back(true);
        let search = Search {
            interval_ms: interval.as_millis() as i64,
            owner: "",
            is_held: &|_, _| false,
            max_stalled: self.options.max_stalled_count,
            keep: &keep.0,
        };
        let (stalled, is_over, done) = match scan.step(&search, &self.connection, &self.keys, system_now_ms()).await {
            Ok(Some(stalled)) => (stalled, false, Ok(())),
            Ok(None) => (Vec::new(), true, Ok(())),
            Err(error) => (Vec::new(), true, Err(error)),
        };
        self.tell_stalled(stalled);
        if let Err(error) = done {
            self.report(error);
        }
        self.waiter.hold_back(false);
        if is_over {
            self.waiter.has_scanned(scan.expires());
            // any sooner, those that are to start last would start first
            self.look_again |= self.mode.is_running() && scan.has_found();
        } else {
            self.rounds.scan = Some(scan);
        }
    }

    /// Another server is there, which may lack the last that happened, or nobody knows what this one did: it is told what is held, and brings back the
    /// rest.
    pub(super) async fn reconcile(&mut self, servers: u64, max_stalled: u32) -> Result<()> {
        self.servers = servers;
        if self.waiter.pending.takes_jobs() {
            // what that took is held, too
            self.break_off().await;
        }
        let mut held: HashMap<String, Vec<i64>> = HashMap::new();
        for (id, claim) in self.standing.in_flight.ids() {
            held.entry(id).or_default().push(claim as i64);
        }
        let search = Search {
            interval_ms: 0,
            owner: &self.options.id,
            is_held: &|id, claim| held.get(id).is_some_and(|claims| claims.contains(&claim)),
            max_stalled,
            keep: &[],
        };
        let (stalled, done) = search.bring_back(&self.connection, &self.keys, system_now_ms()).await;
        self.look_again |= self.mode.is_running() && !stalled.is_empty();
        self.tell_stalled(stalled);
        done
    }

    /// Tells how long jobs took when it is time; of many groups in several calls, between which steps are taken. What is full is told first.
    pub(super) async fn note_latency_in_time(&mut self) {
        if self.rounds.note.is_some_and(|at| at <= Instant::now()) {
            self.note_latency().await;
        }
        while self.measured.as_ref().is_some_and(|measured| measured.is_full()) && self.note_latency().await {}
    }

    /// Tells how long some jobs took; false: nothing more is to be told. What the server refuses is not told again: it says why.
    async fn note_latency(&mut self) -> bool {
        let Some(measured) = &self.measured else {
            return false;
        };
        if self.untold.is_empty() {
            self.untold = measured.take_packed();
        }
        let told = self.untold.pop();
        if let Some([minutes, groups]) = &told {
            let args = args![minutes, groups];
            let noted = self
                .calls
                .run(&self.connection, &self.keys.base, &NOTE_LATENCY, None, &args);
            if let Err(error) = noted.await {
                self.untold.clear();
                self.report(error);
            }
        }
        let pause = if self.untold.is_empty() {
            NOTE_INTERVAL
        } else {
            Duration::ZERO
        };
        self.rounds.note = Some(Instant::now() + pause);
        told.is_some()
    }

    fn tell_stalled(&mut self, stalled: Vec<String>) {
        if !stalled.is_empty() {
            (self.sink)(Message {
                stalled,
                ..Message::default()
            });
        }
    }

    /// Tells what is left to be told, and gives up the lease; jobs nobody waits for any more wake another worker.
    pub(super) async fn release(&mut self) {
        while self.note_latency().await {}
        self.calls.forget(&self.connection, &self.keys).await;
        if !self.connection.is_connected() {
            return;
        }
        let args = [Arg::from(self.options.id.as_str())];
        if let Err(error) = RELEASE_WORKER.run(&self.connection, &self.keys.base, &args).await {
            self.report(error);
        }
    }
}

/// Whether the lease was there, and which jobs are cancelled (`lua/lists/cancel.lua`): as they are marked, and what that says.
fn read_renewal(mut reply: Reply) -> Result<(bool, Vec<(String, CancelledJob)>)> {
    let was_there = reply.int()? == 1;
    let mut marks = Vec::new();
    while !reply.is_empty() {
        let (mark, reason) = (reply.text()?, reply.text()?);
        marks.extend(CancelledJob::read(&mark, reason).map(|job| (mark, job)));
    }
    Ok((was_there, marks))
}
