//! What the scripts of schedulers are given. Their jobs are named `n`, with the data 1, and the options `{"a":1}`.

use chasquimq::msgpack::Packer;

use super::queue::TestQueue;

/// A scheduler that runs every 100 ms, unless told otherwise.
#[derive(Clone)]
pub struct Upsert {
    id: &'static str,
    every_ms: i64,
    next_ms: i64,
    offset_ms: i64,
    start_ms: i64,
    jitter_ms: i64,
    after_ms: i64,
    keeps: bool,
    priority: i64,
    lifo: bool,
    number: u64,
}

impl Upsert {
    pub fn of(id: &'static str) -> Self {
        Self {
            id,
            every_ms: 100,
            next_ms: 0,
            offset_ms: -1,
            start_ms: 0,
            jitter_ms: 0,
            after_ms: 0,
            keeps: true,
            priority: 0,
            lifo: false,
            number: 0,
        }
    }

    pub fn every(mut self, every_ms: i64) -> Self {
        self.every_ms = every_ms;
        self
    }

    /// Runs at times that the caller computes.
    pub fn next(mut self, next_ms: i64) -> Self {
        self.every_ms = 0;
        self.next_ms = next_ms;
        self
    }

    pub fn offset(mut self, offset_ms: i64) -> Self {
        self.offset_ms = offset_ms;
        self
    }

    pub fn start(mut self, start_ms: i64) -> Self {
        self.start_ms = start_ms;
        self
    }

    pub fn jitter(mut self, jitter_ms: i64) -> Self {
        self.jitter_ms = jitter_ms;
        self
    }

    /// The caller's time is the one behind this.
    pub fn after(mut self, after_ms: i64) -> Self {
        self.after_ms = after_ms;
        self
    }

    /// Nothing of what it was told before counts.
    pub fn anew(mut self) -> Self {
        self.keeps = false;
        self
    }

    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    pub fn lifo(mut self) -> Self {
        self.lifo = true;
        self
    }

    /// The call's number; else it has one of its own.
    pub fn number(mut self, number: u64) -> Self {
        self.number = number;
        self
    }
}

fn pack_job(packer: &mut Packer, id: &str, priority: i64, lifo: bool) {
    packer.str("{\"a\":1,").str(&format!("\"repeat:{id}:"));
    packer.int(priority).int(i64::from(lifo));
}

impl TestQueue {
    /// Makes or changes a scheduler.
    pub fn upsert(&mut self, now_ms: u64, upsert: &Upsert) -> String {
        let (mut schedule, mut record, mut job) = (Packer::default(), Packer::default(), Packer::default());
        schedule.array(7).int(upsert.every_ms).int(upsert.next_ms);
        schedule
            .int(upsert.offset_ms)
            .int(upsert.start_ms)
            .int(upsert.jitter_ms)
            .int(upsert.after_ms)
            .int(i64::from(upsert.keeps));
        record.array(4).str("n").str("1").str("T").str("R");
        job.array(4);
        pack_job(&mut job, upsert.id, upsert.priority, upsert.lifo);
        let number = if upsert.number > 0 {
            upsert.number
        } else {
            self.next_number()
        };
        let mut call = self.call(&chasquimq::redis::call::library::UPSERT_SCHEDULER);
        call.arg(now_ms).arg("u").arg(1).arg(number).arg(upsert.id);
        call.arg(schedule.0).arg(record.0).arg(job.0);
        self.carry_out(&call)
    }

    /// Follows taken iterations: scheduler, slot, time of the next (0 = the scheduler knows).
    pub fn follow(&mut self, now_ms: u64, taken: &[(&str, i64, i64)]) -> String {
        let taken: Vec<_> = taken
            .iter()
            .map(|(id, slot, next_ms)| Taken::of(id, *slot).next(*next_ms))
            .collect();
        self.follow_all(now_ms, &taken)
    }

    /// Follows taken iterations.
    pub fn follow_all(&mut self, now_ms: u64, taken: &[Taken]) -> String {
        let mut packed = Packer::default();
        packed.array(taken.len());
        for taken in taken {
            packed
                .array(10)
                .str(&taken.id)
                .str(&taken.scheduler)
                .int(taken.slot)
                .int(taken.next_ms)
                .int(taken.first_ms);
            if taken.token.is_empty() {
                packed.int(0);
            } else {
                packed
                    .array(5)
                    .int(taken.overlap)
                    .int(taken.catch_up)
                    .int(taken.missed)
                    .int(0);
                packed.str(taken.token);
            }
            pack_job(&mut packed, &taken.scheduler, 0, false);
        }
        let mut call = self.call(&chasquimq::redis::call::library::NEXT_ITERATIONS);
        call.arg(now_ms).arg(packed.0);
        self.carry_out(&call)
    }

    /// Resumes a scheduler that held this.
    pub fn resume(&mut self, now_ms: u64, id: &str, held: &str, next_ms: i64) -> String {
        let mut job = Packer::default();
        job.array(4);
        pack_job(&mut job, id, 0, false);
        let number = self.next_number();
        let mut call = self.call(&chasquimq::redis::call::library::RESUME_SCHEDULER);
        call.arg(now_ms).arg("u").arg(1).arg(number).arg(id).arg(held);
        call.arg(next_ms).arg(0).arg(job.0);
        self.carry_out(&call)
    }

    /// Adds a job of a scheduler now.
    pub fn run_now(&mut self, now_ms: u64, id: &str) -> String {
        let mut job = Packer::default();
        job.array(4);
        pack_job(&mut job, id, 0, false);
        let number = self.next_number();
        let mut call = self.call(&chasquimq::redis::call::library::RUN_SCHEDULER);
        call.arg(now_ms).arg("u").arg(1).arg(number).arg(id).arg(job.0);
        self.carry_out(&call)
    }
}

/// An iteration that was taken.
#[derive(Clone)]
pub struct Taken {
    id: String,
    scheduler: String,
    slot: i64,
    next_ms: i64,
    first_ms: i64,
    overlap: i64,
    catch_up: i64,
    missed: i64,
    token: &'static str,
}

impl Taken {
    pub fn of(scheduler: &str, slot: i64) -> Self {
        Self {
            id: format!("repeat:{scheduler}:{slot}"),
            scheduler: scheduler.to_owned(),
            slot,
            next_ms: 0,
            first_ms: 0,
            overlap: 0,
            catch_up: 0,
            missed: 0,
            token: "",
        }
    }

    /// Of another id.
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// What follows it: 0 = the scheduler knows, -1 = nothing.
    pub fn next(mut self, next_ms: i64) -> Self {
        self.next_ms = next_ms;
        self
    }

    /// The time behind it, which the next one passes over.
    pub fn first(mut self, first_ms: i64) -> Self {
        self.first_ms = first_ms;
        self
    }

    /// Rules of its scheduler: what becomes of overlaps (1 skip, 2 queue), and of what was missed (1 none, 2 latest, 3 all). It is held by the worker w.
    pub fn rules(mut self, overlap: i64, catch_up: i64) -> Self {
        (self.overlap, self.catch_up, self.token) = (overlap, catch_up, "w");
        self
    }

    /// The caller knows that it was missed.
    pub fn missed(mut self) -> Self {
        self.missed = 1;
        self
    }
}
