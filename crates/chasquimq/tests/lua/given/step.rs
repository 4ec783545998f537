//! What the step script is given: who steps, how much is wanted, and how jobs ended (`lua/step/finish.lua`).

use chasquimq::{frame::child_id, msgpack::Packer, record::record_body};

use super::{
    plan::{Plan, TIMESTAMP},
    queue::TestQueue,
};

/// Where a worker holds a job.
#[derive(Debug, Clone)]
pub enum Place {
    /// First number and jobs of a frame, and the job's offset in it.
    Frame(u64, u64, u64),
    /// The same of a frame of children, and what their ids begin with.
    Child(u64, u64, u64, String),
    Record(String),
}

impl Place {
    pub fn id(&self) -> String {
        match self {
            Place::Frame(first, _, offset) => (first + offset).to_string(),
            Place::Child(first, _, offset, ids) => child_id(ids, first + offset),
            Place::Record(id) => id.clone(),
        }
    }

    fn in_frame(&self) -> Option<(u64, u64, u64)> {
        match self {
            Place::Frame(first, n, offset) | Place::Child(first, n, offset, _) => Some((*first, *n, *offset)),
            Place::Record(_) => None,
        }
    }
}

/// A place in a frame.
pub fn at(first: u64, n: u64, offset: u64) -> Place {
    Place::Frame(first, n, offset)
}

/// The place of a record.
pub fn of(id: &str) -> Place {
    Place::Record(id.to_owned())
}

/// A failed try; it ends in `failed` unless told otherwise.
pub struct Fail {
    pub to: &'static str,
    pub due_ms: u64,
    pub attempts_made: u64,
    pub exhausted: bool,
    pub reason: String,
    /// What was thrown has no message.
    pub wordless: bool,
    /// It is noted from when on it can start again.
    pub measured: bool,
}

impl Fail {
    pub fn to(to: &'static str) -> Self {
        Self {
            to,
            due_ms: 0,
            attempts_made: 1,
            exhausted: false,
            reason: "boom".to_owned(),
            wordless: false,
            measured: false,
        }
    }
}

/// What is fetched starts when the step was sent.
const UNKNOWN_OFFSET_US: i64 = -(1 << 52);

/// A step at 1000 of worker `w`, which fetches nothing and keeps everything unless told otherwise.
#[derive(Clone)]
pub struct Step {
    now_ms: i64,
    owner: String,
    number: Option<u64>,
    offset_us: i64,
    name: String,
    want: i64,
    reach: Option<i64>,
    surplus: u64,
    max_bytes: u64,
    outcomes: Packer,
    count: usize,
    keeps: Vec<(i64, f64, u64)>,
    limiter: (u64, u64),
    group_rules: (i64, i64, i64),
    fair: bool,
    apart: bool,
    leaves_due: bool,
    waits: i64,
    asks_due: bool,
    slots: u32,
    metrics_minutes: i64,
    large: Vec<String>,
    data_apart: bool,
    claim: u64,
    plain: Option<Plain>,
}

/// One plain job that completed (`lua/step/fast_path.lua`): its claim, its place and its result, packed.
#[derive(Clone)]
struct Plain {
    claim: u64,
    place: Vec<u8>,
    results: Vec<u8>,
}

impl Step {
    pub fn by(owner: &str) -> Self {
        Self {
            now_ms: 1000,
            owner: owner.to_owned(),
            number: None,
            offset_us: UNKNOWN_OFFSET_US,
            name: String::new(),
            want: -1,
            reach: None,
            surplus: 0,
            max_bytes: 1 << 20,
            outcomes: Packer::default(),
            count: 0,
            keeps: vec![(-1, -1.0, 1000)],
            limiter: (0, 0),
            group_rules: (0, 0, 0),
            fair: false,
            apart: false,
            leaves_due: false,
            waits: 0,
            asks_due: false,
            slots: 0,
            metrics_minutes: 0,
            large: Vec::new(),
            data_apart: false,
            claim: 0,
            plain: None,
        }
    }

    pub fn at(self, now_ms: u64) -> Self {
        Self {
            now_ms: now_ms as i64,
            ..self
        }
    }

    pub fn number(self, number: u64) -> Self {
        Self {
            number: Some(number),
            ..self
        }
    }

    /// The outcomes that follow are of jobs that were taken under this claim; else it is not asked under which one.
    pub fn of_claim(self, claim: u64) -> Self {
        Self { claim, ..self }
    }

    /// At the time at which it is carried out, with the caller's clock minus the server's.
    pub fn when_it_comes(self, offset_us: i64) -> Self {
        Self {
            now_ms: -1,
            offset_us,
            ..self
        }
    }

    /// The caller's clock minus the server's.
    pub fn clock(self, offset_us: i64) -> Self {
        Self { offset_us, ..self }
    }

    /// Of a worker that lets so many jobs of a group be active, and start in a window of so many ms; 0 = any number.
    pub fn group_rules(self, concurrency: i64, max: i64, duration_ms: i64) -> Self {
        Self {
            group_rules: (concurrency, max, duration_ms),
            ..self
        }
    }

    /// Of a worker by whom jobs without a group have turns, too.
    pub fn fair(self) -> Self {
        Self { fair: true, ..self }
    }

    /// Of a worker of which a step takes jobs of one group.
    pub fn apart(self) -> Self {
        Self { apart: true, ..self }
    }

    /// Of a worker with a limiter: starts a window, and its ms.
    pub fn limiter(self, max: u64, duration_ms: u64) -> Self {
        Self {
            limiter: (max, duration_ms),
            ..self
        }
    }

    pub fn named(self, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..self
        }
    }

    pub fn want(self, jobs: i64) -> Self {
        Self { want: jobs, ..self }
    }

    /// No more of them while another worker is idle; as many as are wanted by default.
    pub fn reach(self, jobs: i64) -> Self {
        let reach = Some(jobs);
        Self { reach, ..self }
    }

    pub fn surplus(self, jobs: u64) -> Self {
        Self { surplus: jobs, ..self }
    }

    pub fn max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
    }

    /// The retention rule of every outcome.
    pub fn keep(self, count: i64, age: f64, limit: u64) -> Self {
        Self {
            keeps: vec![(count, age, limit)],
            ..self
        }
    }

    /// The retention rule of the outcomes that follow.
    pub fn then_keep(mut self, count: i64, age: f64, limit: u64) -> Self {
        self.keeps.push((count, age, limit));
        self
    }

    fn rule(&self) -> i64 {
        self.keeps.len() as i64
    }

    /// Finished jobs are counted, for so many minutes.
    pub fn metrics(self, minutes: i64) -> Self {
        Self {
            metrics_minutes: minutes,
            ..self
        }
    }

    /// `count` jobs of a frame completed, with undefined results.
    pub fn done(self, first: u64, n: u64, offset: u64, count: u64) -> Self {
        self.completed(first, n, offset, count, b"")
    }

    /// Jobs of a frame completed with these results, JSON texts; an empty one is undefined.
    pub fn done_with(self, first: u64, n: u64, offset: u64, results: &[&str]) -> Self {
        self.completed(
            first,
            n,
            offset,
            results.len() as u64,
            &pack_texts(results.iter().copied()),
        )
    }

    fn completed(mut self, first: u64, n: u64, offset: u64, count: u64, results: &[u8]) -> Self {
        let (rule, claim) = (self.rule(), self.claim);
        if n == 1 {
            let mut place = Packer::default();
            place.int(first as i64);
            self.plain = Some(Plain {
                claim,
                place: place.0,
                results: results.to_vec(),
            });
        }
        self.outcome(8, "c", first, n, offset)
            .int(count as i64)
            .int(rule)
            .bytes(results);
        self
    }

    /// Children of a frame completed, from the one at this place on, with these results.
    pub fn done_children(mut self, from: &Place, results: &[&str]) -> Self {
        let Place::Child(first, n, offset, ids) = from else {
            panic!("{from:?} is not in a frame of children")
        };
        let are_undefined = results.iter().all(|result| result.is_empty());
        let packed = if are_undefined {
            Vec::new()
        } else {
            pack_texts(results.iter().copied())
        };
        let rule = self.rule();
        let outcome = self.outcome(9, "c", *first, *n, *offset);
        outcome.int(results.len() as i64).int(rule).bytes(&packed).str(ids);
        self
    }

    pub fn done_record(self, id: &str, result: &str) -> Self {
        self.done_records(&[(id, result)])
    }

    /// Records completed, each with its result; an empty one is undefined.
    pub fn done_records(self, records: &[(&str, &str)]) -> Self {
        let claim = self.claim;
        self.done_records_of(&[claim], records)
    }

    /// The same; `claims`: of each, or one for all.
    pub fn done_records_of(mut self, claims: &[u64], records: &[(&str, &str)]) -> Self {
        let packed = if records.iter().all(|(_, result)| result.is_empty()) {
            Vec::new()
        } else {
            pack_texts(records.iter().map(|(_, result)| *result))
        };
        let ids = pack_texts(records.iter().map(|(id, _)| *id));
        let rule = self.rule();
        if let ([claim], [(id, _)]) = (claims, records) {
            let mut place = Packer::default();
            place.str(id);
            self.plain = Some(Plain {
                claim: *claim,
                place: place.0,
                results: packed.clone(),
            });
        }
        let outcome = self.placed_at(8, "r", 0, 0, 0);
        match claims {
            [one] => drop(outcome.int(*one as i64)),
            _ => {
                outcome.array(claims.len());
                for claim in claims {
                    outcome.int(*claim as i64);
                }
            }
        }
        outcome.0.extend_from_slice(&ids);
        outcome.int(rule).bytes(&packed);
        self
    }

    /// Of a worker that hears of work, and does not wait, as far as it knows.
    pub fn busy(self) -> Self {
        Self { waits: 1, ..self }
    }

    /// Of one that waits.
    pub fn waiting(self) -> Self {
        Self { waits: 2, ..self }
    }

    /// Of a worker that runs so many jobs at once, and tells it.
    pub fn slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    /// It is told when the next job is due though no slot is left.
    pub fn asking_due(self, asks_due: bool) -> Self {
        Self { asks_due, ..self }
    }

    /// Nobody looks whether delayed jobs are due.
    pub fn leaving_due(self) -> Self {
        Self {
            leaves_due: true,
            ..self
        }
    }

    /// Data of the jobs of frames that follow, and are given records, go apart.
    pub fn data_apart(self) -> Self {
        Self {
            data_apart: true,
            ..self
        }
    }

    /// What is known of a job of a frame, as its record is to hold it.
    fn body(&mut self, offset: u64) -> Vec<u8> {
        let data = (offset + 1).to_string();
        let mut packed = Packer::default();
        if self.data_apart {
            self.large.push(data);
            let at = self.large.len() as i64;
            packed.array(2).bytes(&record_body(TIMESTAMP, "{}", "a", "")).int(at);
        } else {
            packed.bytes(&record_body(TIMESTAMP, "{}", "a", &data));
        }
        packed.0
    }

    /// A job completed with a result that is to lie apart.
    pub fn done_large(mut self, place: &Place, result: &str) -> Self {
        let rule = self.rule();
        self.placed(9, "l", place);
        self.large.push(result.to_owned());
        let number = self.large.len() as i64;
        self.outcomes.int(rule).int(number);
        self
    }

    pub fn fail(mut self, place: &Place, fail: &Fail) -> Self {
        self.count += 1;
        let (claim, rule) = (self.claim as i64, self.rule());
        let body = place.in_frame().map(|(_, _, offset)| self.body(offset));
        let outcome = self
            .outcomes
            .array(if fail.measured {
                16
            } else {
                14 + usize::from(fail.wordless)
            })
            .str("f");
        match place.in_frame() {
            Some((first, n, offset)) => {
                outcome
                    .int(first as i64)
                    .int(n as i64)
                    .array(1)
                    .int(offset as i64)
                    .int(claim);
                outcome.array(1).str(&place.id()).array(1);
                outcome.0.extend_from_slice(&body.unwrap_or_default());
            }
            None => {
                outcome
                    .int(0)
                    .int(0)
                    .int(0)
                    .int(claim)
                    .array(1)
                    .str(&place.id())
                    .str("");
            }
        }
        outcome
            .str(fail.to)
            .int(rule)
            .int(fail.due_ms as i64)
            .int(fail.attempts_made as i64)
            .int(i64::from(fail.exhausted))
            .str(&fail.reason)
            .str("[\"trace\"]");
        if fail.wordless {
            outcome.int(1);
        } else if fail.measured {
            outcome.nil();
        }
        if fail.measured {
            outcome.int(1);
        }
        self
    }

    /// Gives a job back; `started`: its handler ran.
    pub fn back(mut self, place: &Place, started: bool) -> Self {
        self.placed(8, "b", place).int(i64::from(started));
        self
    }

    /// Lets a job go whose handler moved it elsewhere.
    pub fn let_go(mut self, place: &Place) -> Self {
        self.placed(7, "m", place);
        self
    }

    fn placed(&mut self, len: usize, kind: &str, place: &Place) -> &mut Packer {
        match place.in_frame() {
            Some((first, n, offset)) => {
                let body = self.body(offset);
                let outcome = self.outcome(len, kind, first, n, offset).str(&place.id());
                outcome.0.extend_from_slice(&body);
                outcome
            }
            None => self.outcome(len, kind, 0, 0, 0).str(&place.id()).str(""),
        }
    }

    fn outcome(&mut self, len: usize, kind: &str, first: u64, n: u64, offset: u64) -> &mut Packer {
        let claim = self.claim as i64;
        self.placed_at(len, kind, first, n, offset).int(claim)
    }

    fn placed_at(&mut self, len: usize, kind: &str, first: u64, n: u64, offset: u64) -> &mut Packer {
        self.count += 1;
        self.outcomes
            .array(len)
            .str(kind)
            .int(first as i64)
            .int(n as i64)
            .int(offset as i64)
    }

    /// The outcomes and their retention rules, as scripts take them.
    pub fn packed(&self) -> (Vec<u8>, Vec<u8>) {
        let mut outcomes = Packer::default();
        outcomes.array(self.count);
        outcomes.0.extend_from_slice(&self.outcomes.0);
        let mut keeps = Packer::default();
        keeps.array(self.keeps.len());
        for keep in &self.keeps {
            self.pack_keep(&mut keeps, keep);
        }
        (outcomes.0, keeps.0)
    }

    fn pack_keep(&self, packed: &mut Packer, (count, age, limit): &(i64, f64, u64)) {
        let minutes = self.metrics_minutes;
        packed
            .array(if minutes > 0 { 4 } else { 3 })
            .int(*count)
            .float(*age)
            .int(*limit as i64);
        if minutes > 0 {
            packed.int(minutes);
        }
    }

    /// How the jobs ended, as a worker says it.
    fn ends(&self) -> Vec<u8> {
        let (Some(plain), 1, [keep]) = (&self.plain, self.count, &self.keeps[..]) else {
            let (outcomes, keeps) = self.packed();
            return [outcomes, keeps].concat();
        };
        let mut packed = Packer::default();
        packed.int(plain.claim as i64);
        if keep.1 < 0.0 && self.metrics_minutes == 0 {
            packed.int(keep.0);
        } else {
            self.pack_keep(&mut packed, keep);
        }
        packed.0.extend_from_slice(&plain.place);
        packed.bytes(&plain.results);
        packed.0
    }

    pub fn append_to(&self, next_number: u64, call: &mut redis::Cmd) {
        call.arg(self.asked(next_number)).arg(&self.large);
    }

    /// What it asks for, with how jobs ended.
    pub fn asked(&self, next_number: u64) -> Vec<u8> {
        let mut packed = Packer::default();
        packed.int(0).int(self.now_ms).str(&self.owner);
        packed.int(self.number.unwrap_or(next_number) as i64);
        packed.int(60_000).str(&self.name);
        packed
            .int(self.want)
            .int(self.reach.unwrap_or(self.want))
            .int(self.surplus as i64)
            .int(self.max_bytes as i64);
        packed.int(self.offset_us);
        if (self.limiter, self.group_rules, self.fair || self.apart) == ((0, 0), (0, 0, 0), false) {
            packed.int(0);
        } else {
            let (concurrency, max, duration_ms) = self.group_rules;
            packed
                .array(3)
                .int(self.limiter.0 as i64)
                .int(self.limiter.1 as i64)
                .array(5);
            packed
                .int(concurrency)
                .int(max)
                .int(duration_ms)
                .int(i64::from(self.fair))
                .int(i64::from(self.apart));
        }
        packed
            .int(i64::from(self.leaves_due))
            .int(i64::from(self.asks_due))
            .int(i64::from(self.slots))
            .int(self.waits);
        packed.0.extend_from_slice(&self.ends());
        packed.0
    }
}

fn pack_texts<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Vec<u8> {
    let mut packed = Packer::default();
    packed.array(texts.len());
    for text in texts {
        packed.str(text);
    }
    packed.0
}

/// A queue of which the jobs 1..3 completed, and 4 and x failed on their second try.
pub fn finished() -> TestQueue {
    let mut queue = TestQueue::with(Plan::new().frame(4).record("x"));
    queue.step(Step::by("w").named("bob").want(5));
    let fail = || Fail {
        attempts_made: 2,
        ..Fail::to("failed")
    };
    let step = Step::by("w").at(1010).done_with(1, 4, 0, &["10", "20", "30"]);
    queue.step(step.fail(&at(1, 4, 3), &fail()).fail(&of("x"), &fail()));
    queue.command("DEL", "wake", &[]);
    queue.skip_events();
    queue
}
