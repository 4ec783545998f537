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
        schedule.array(4).int(upsert.every_ms).int(upsert.next_ms);
        schedule.int(upsert.offset_ms).int(upsert.start_ms);
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
        let mut packed = Packer::default();
        packed.array(taken.len());
        for (id, slot, next_ms) in taken {
            packed.array(7).str(id).int(*slot).int(*next_ms);
            pack_job(&mut packed, id, 0, false);
        }
        let mut call = self.call(&chasquimq::redis::call::library::NEXT_ITERATIONS);
        call.arg(now_ms).arg(packed.0);
        self.carry_out(&call)
    }
}
