//! All jobs that are not active move to BullMQ's keys, and come back.

use chasquimq::redis::call::library::Script;
use chasquimq_migrate::scripts::{ADOPT_JOBS, ADOPT_QUEUE, RETURN_JOBS, RETURN_QUEUE};

use super::drive::Drive;
use crate::given::queue::run;

const MOST: u64 = 1000;
const STATES: [&str; 5] = ["waiting", "prioritized", "delayed", "failed", "completed"];
const PLACES: [&str; 5] = ["prioritized", "wait", "delayed", "failed", "completed"];
/// What BullMQ keeps of a queue without jobs.
const SETTINGS: [&str; 5] = ["id", "limiter", "marker", "meta", "pc"];

impl Drive {
    pub fn go_and_return(&mut self) {
        self.note("all go to BullMQ, and come back".to_owned());
        let source = self.queue.source();
        run!(self.queue, &RETURN_QUEUE, source.as_str(), 0);
        for state in STATES {
            self.move_all(&RETURN_JOBS, state);
        }
        run!(self.queue, &ADOPT_QUEUE, source.as_str(), 0);
        for place in PLACES {
            self.move_all(&ADOPT_JOBS, place);
        }
        let left = self.queue.left_at_source();
        assert!(left.iter().all(|key| SETTINGS.contains(&key.as_str())), "{left:?}");
        self.model.go_and_return();
    }

    fn move_all(&mut self, script: &Script, place: &str) {
        let (source, sources) = (self.queue.source(), self.queue.sources());
        loop {
            let number = self.queue.next_number();
            let mut call = self.queue.call(script);
            call.arg(self.model.now_ms).arg("m").arg(0).arg(number).arg(&source);
            call.arg(place).arg(0).arg(MOST).arg(&sources);
            if script.name == ADOPT_JOBS.name {
                call.arg(0);
            }
            let reply = self.queue.carry_out_value(&call);
            let (looked, _, _, stays, _): (u64, u64, u64, Vec<Vec<u8>>, u64) =
                redis::from_redis_value(reply).expect("a step");
            assert!(stays.is_empty(), "{stays:?}");
            if looked == 0 {
                return;
            }
        }
    }
}
