//! Random operations on jobs that use keys, expire, are cancelled, or none of it (`lua/rules/terms.lua`). After each one every key is compared with the others
//! (`probe::check`), each job is where it is to be, and what was taken is compared with the rules: no job starts that has expired or is cancelled, no window
//! of a key has more than the key lets, none begins before the one before is over, what waits is held back by its own keys alone; and in the end every job
//! has ended, in time. Stays whole: what is noted of jobs is of use beside what is compared. `TERMS_SEED` and `TERMS_OPERATIONS` repeat a failure or make the
//! search longer; time passes meanwhile, so some failures take a few runs.

use std::collections::{BTreeMap, BTreeSet};

use redis::Value;

use crate::{
    cancel_jobs::named,
    change_jobs::change,
    fail_expired::keep,
    given::{
        plan::Plan,
        queue::{run_once, taken_apart, TestQueue},
        step::{of, Fail, Step},
    },
    model::{bulk::by_age, random::Random, setting},
    probe::{snapshot::Snapshot, tree::Tree},
};

const SEEDS: std::ops::Range<u64> = 1..5;
const OPERATIONS: u64 = 100;
/// Workers, and by how much their clocks are ahead of the server's.
const OWNERS: [(&str, u64); 2] = [("w", 0), ("v", 20)];
/// More than there are jobs that could start.
const ALL: i64 = 300;
/// Of a key: its name, max, ms and the job's cost.
type Limit = (&'static str, i64, i64, i64);
const LIMITS: [&[Limit]; 10] = [
    &[],
    &[("k", 2, 60_000, 1)],
    &[("i", 5, 20_000, 2)],
    &[("k", 3, 60_000, 1)],
    &[("k", 3, 60_000, 2)],
    &[("j", 1, 20_000, 1)],
    &[("i", 5, 45_000, 2)],
    &[("k", 3, 60_000, 1), ("j", 1, 20_000, 1)],
    &[("i", 5, 45_000, 2), ("k", 3, 60_000, 2)],
    &[("k", 3, 60_000, 3), ("i", 5, 45_000, 5), ("j", 1, 20_000, 1)],
];
const LONGEST_MS: u64 = 60_000;
/// All that a queue stores of the server's time becomes so many ms earlier, as if those had passed.
const PASS: &str = r"
local base, ms = KEYS[1], tonumber(ARGV[1])
local function age(key)
  local left = redis.call('PTTL', key)
  if left >= 0 then redis.call('PEXPIRE', key, left - ms) end
end
local function move(key)
  local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do redis.call('ZADD', key, string.format('%d', all[i + 1] - ms), all[i]) end
end
for _, key in ipairs(redis.call('KEYS', base .. 'key-limit:*')) do
  local ends, used, line, booked, next, held, held_until = struct.unpack('<ddddddd', redis.call('GET', key))
  redis.call('SET', key, struct.pack('<ddddddd', ends - ms, used, line - ms, booked, next, held, held_until - ms), 'KEEPTTL')
  age(key)
end
for _, key in ipairs(redis.call('KEYS', base .. 'key-line:*')) do
  move(key)
  age(key)
end
move(base .. 'expiring')
local all = redis.call('HGETALL', base .. 'vitals')
for i = 1, #all, 2 do
  local fields = cmsgpack.unpack(all[i + 1])
  if fields.ex then fields.ex = fields.ex - ms end
  if fields.kr and fields.kr ~= 1 then fields.kr = fields.kr - ms end
  for at, ends in ipairs(fields.ku or {}) do fields.ku[at] = ends - ms end
  redis.call('HSET', base .. 'vitals', all[i], cmsgpack.pack(fields))
end
";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// It waits for its turn, for room or for its time.
    Out,
    Active(&'static str),
    Completed,
    Failed,
}

#[derive(Debug)]
struct Job {
    place: Place,
    limits: &'static [Limit],
    /// By the time of this test: the server's is between the two; 0 = never.
    expires_ms: (u64, u64),
    starts: u64,
    is_cancelled: bool,
    /// It was taken only to fail.
    is_doomed: bool,
    /// The windows that its last start used, by when they end.
    windows: Vec<u64>,
}

struct Drive {
    queue: TestQueue,
    random: Random,
    /// What passed by `PASS`.
    passed_ms: u64,
    added: u64,
    jobs: BTreeMap<String, Job>,
    /// What was used of keys, by when the window ends.
    used: BTreeMap<&'static str, BTreeMap<u64, i64>>,
    /// Until when jobs may have to stand behind others that want this key.
    wanted_until: BTreeMap<&'static str, u64>,
    /// How often jobs found no room.
    put_off: usize,
    seed: u64,
    history: Vec<String>,
}

/// Until when room is held for a job in all of its keys, by the server's time; 0 = it is not.
fn held_until(snapshot: &Snapshot, id: &str) -> u64 {
    let fields = snapshot.hash("vitals").get(id).map(|raw| Tree::one(raw));
    let rank = fields.and_then(|fields| fields.field("kr").map(Tree::number));
    rank.filter(|rank| *rank > 1).unwrap_or(0)
}

impl Drive {
    fn seeded(seed: u64) -> Self {
        Self {
            queue: TestQueue::fresh(),
            random: Random::seeded(seed),
            passed_ms: 0,
            added: 0,
            jobs: BTreeMap::new(),
            used: BTreeMap::new(),
            wanted_until: BTreeMap::new(),
            put_off: 0,
            seed,
            history: Vec::new(),
        }
    }

    fn note(&mut self, what: String) {
        self.history.push(format!("{} {what}", self.passed_ms));
    }

    /// The server's time, with what passed by `PASS`.
    fn now_ms(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME")
            .query(&mut self.queue.probe.connection)
            .expect("the time");
        seconds * 1000 + micros / 1000 + self.passed_ms
    }

    fn pass(&mut self, ms: u64) {
        self.note(format!("{ms} ms pass"));
        let mut pass = redis::cmd("EVAL");
        pass.arg(PASS).arg(1).arg(&self.queue.probe.keys.base).arg(ms);
        pass.exec(&mut self.queue.probe.connection).expect("time that passes");
        self.passed_ms += ms;
    }

    fn add(&mut self) {
        let (now_ms, mut plan, mut ids) = (self.now_ms(), Plan::new(), Vec::new());
        for _ in 0..=self.random.below(5) {
            self.added += 1;
            let id = format!("x{}", self.added);
            let limits = *self.random.pick(&LIMITS);
            let due_ms = if self.random.once_in(5) {
                now_ms + 1 + self.random.below(60_000)
            } else {
                0
            };
            let expires_in = if self.random.once_in(4) {
                1 + self.random.below(120_000)
            } else {
                0
            };
            let group = *self.random.pick(&["", "", "a", "b"]);
            self.note(format!(
                "add {id} {limits:?}, due {due_ms}, expires in {expires_in}, group '{group}'"
            ));
            // options tell a time to wait as a number below 0
            plan = plan.on_terms(&id, (due_ms, -(expires_in as i64)), limits, group);
            let job = Job {
                place: Place::Out,
                limits,
                expires_ms: (expires_in, expires_in),
                starts: 0,
                is_cancelled: false,
                is_doomed: false,
                windows: Vec::new(),
            };
            self.jobs.insert(id.clone(), job);
            ids.push(id);
        }
        self.queue.add(now_ms, plan);
        let added_ms = self.now_ms();
        for id in ids {
            let (from, until) = &mut self.job(&id).expires_ms;
            if *from > 0 {
                (*from, *until) = (now_ms + *from, added_ms + *until);
            }
        }
    }

    /// Ids of jobs in such a place.
    fn ids(&self, is_there: impl Fn(Place) -> bool) -> Vec<String> {
        let there = self.jobs.iter().filter(|(_, job)| is_there(job.place));
        there.map(|(id, _)| id.clone()).collect()
    }

    fn job(&mut self, id: &str) -> &mut Job {
        self.jobs.get_mut(id).expect("a job")
    }

    /// What was used of windows that are not over, and not of others, is given back.
    fn give_back(&mut self, id: &str) {
        let now_ms = self.now_ms();
        let job = self.job(id);
        job.starts -= 1;
        if job.is_doomed || job.is_cancelled {
            return;
        }
        for ((key, _, _, cost), ends) in job.limits.iter().zip(std::mem::take(&mut job.windows)) {
            let windows = self.used.entry(key).or_default();
            if ends <= now_ms {
                continue;
            }
            let used = windows.entry(ends).or_default();
            *used -= cost;
            // a window begins with a start
            if *used == 0 {
                windows.remove(&ends);
            }
        }
    }

    /// How some of the jobs of a worker end, or all. Gives the step, and ids of those that it delays.
    fn with_ends(&mut self, mut step: Step, owner: &'static str, all: bool) -> (Step, BTreeSet<String>) {
        let mut delayed = BTreeSet::new();
        for id in self.ids(|place| place == Place::Active(owner)) {
            let place = of(&id);
            let is_doomed = self.jobs[&id].is_doomed;
            let how = match self.random.below(10) {
                _ if all && is_doomed => 3,
                _ if all => 4,
                how @ (1 | 2 | 4..) if is_doomed => {
                    if how > 6 {
                        3
                    } else {
                        9
                    }
                }
                how => how,
            };
            self.job(&id).place = Place::Out;
            let what = match how {
                0 => {
                    let has_started = !is_doomed && self.random.once_in(2);
                    if !has_started {
                        self.give_back(&id);
                    }
                    step = step.back(&place, has_started);
                    "is given back"
                }
                1 => {
                    step = step.fail(&place, &Fail::to("waiting"));
                    "is tried again"
                }
                2 => {
                    let due_ms = self.now_ms() + 1 + self.random.below(80_000);
                    let fail = Fail {
                        due_ms,
                        ..Fail::to("delayed")
                    };
                    step = step.fail(&place, &fail);
                    delayed.insert(id.clone());
                    "is tried again later"
                }
                3 => {
                    step = step.fail(&place, &Fail::to("failed"));
                    self.job(&id).place = Place::Failed;
                    "fails"
                }
                4..=6 => {
                    step = step.done_record(&id, "1");
                    self.job(&id).place = Place::Completed;
                    "completes"
                }
                _ => {
                    self.job(&id).place = Place::Active(owner);
                    continue;
                }
            };
            self.note(format!("  {id} {what}"));
        }
        (step, delayed)
    }

    fn step(&mut self, (owner, ahead_ms): (&'static str, u64), want: i64, ends_all: bool) {
        self.note(format!("step of {owner}, wants {want}"));
        let (offset_us, now_ms) = ((self.passed_ms + ahead_ms) as i64 * 1000, self.now_ms() + ahead_ms);
        let is_idle = self.ids(|place| place == Place::Active(owner)).is_empty();
        let step = Step::by(owner).want(want);
        // the time at which it comes is that of a step of which no job ends
        let step = if is_idle {
            step.when_it_comes(offset_us)
        } else {
            step.at(now_ms).clock(offset_us)
        };
        let (step, delayed) = self.with_ends(step, owner, ends_all);
        let before = self.queue.probe.snapshot();
        let from_ms = self.now_ms();
        let call = self.queue.step_call(&step);
        let (taken, reply) = self.queue.taken_by(&call);
        let until_ms = self.now_ms();
        let after = self.queue.probe.snapshot();
        let taken = self.take(owner, &taken_apart(&taken), &after, (from_ms, until_ms));
        let put_off = self.check_put_off(&before, &after, &delayed, (from_ms, until_ms));
        if self.random.once_in(8) {
            let keys = self.queue.show();
            self.queue.carry_out_value(&call);
            assert_eq!(self.queue.show(), keys, "a step that is sent again");
        }
        if taken < want as u64 && !(after.line().is_empty() && after.set("grouped").is_empty()) {
            // a step looks at as many as it wants
            assert_eq!(
                (put_off > 0, &reply[4]),
                (true, &Value::Int(1)),
                "what waits is held back"
            );
            self.step((owner, ahead_ms), want - taken as i64, false);
        }
    }

    /// Compares what a step took with the rules. Gives how many jobs those are.
    fn take(&mut self, owner: &'static str, taken: &[Value], after: &Snapshot, during: (u64, u64)) -> u64 {
        let mut values = taken.iter().peekable();
        let mut count = 0;
        while values.next().is_some() {
            let mut bytes =
                || redis::from_redis_value::<Vec<u8>>(values.next().expect("a value").clone()).expect("bytes");
            let (id, _, fields) = (String::from_utf8(bytes()).expect("an id"), bytes(), bytes());
            values.next();
            values.next_if(|value| matches!(value, Value::BulkString(_)));
            count += 1;
            let is_doomed = !fields.is_empty() && Tree::one(&fields).field("df").is_some();
            self.note(format!("  takes {id}{}", if is_doomed { " to fail" } else { "" }));
            self.start(&id, owner, is_doomed, during);
            if !is_doomed {
                self.use_keys(&id, after, during);
            }
        }
        count
    }

    fn start(&mut self, id: &str, owner: &'static str, is_doomed: bool, (from_ms, until_ms): (u64, u64)) {
        let job = self.job(id);
        assert_eq!(job.place, Place::Out, "{id} starts once");
        job.place = Place::Active(owner);
        let (from, until) = job.expires_ms;
        let may_expire = from > 0 && job.starts == 0;
        if is_doomed {
            let is_late = may_expire && from <= until_ms;
            assert!(job.is_cancelled || job.is_doomed || is_late, "{id} is to fail: {job:?}");
        } else {
            assert!(!job.is_cancelled && !job.is_doomed, "{id} starts: {job:?}");
            assert!(!may_expire || until > from_ms, "{id} starts too late: {job:?}");
        }
        job.is_doomed = is_doomed;
        job.starts += 1;
    }

    fn use_keys(&mut self, id: &str, snapshot: &Snapshot, (from_ms, until_ms): (u64, u64)) {
        let limits = self.jobs[id].limits;
        if limits.is_empty() {
            return;
        }
        let windows = Tree::one(&snapshot.hash("vitals")[id]).field("ku").cloned();
        let windows = windows.expect("windows that were used");
        let windows: Vec<u64> = windows
            .items()
            .iter()
            .map(|ends| ends.number() + self.passed_ms)
            .collect();
        assert_eq!(windows.len(), limits.len());
        for ((key, max, duration_ms, cost), ends) in limits.iter().zip(&windows) {
            let duration_ms = *duration_ms as u64;
            let of_key = self.used.entry(key).or_default();
            assert!(from_ms < *ends, "{id} starts in a window of {key}");
            if !of_key.contains_key(ends) {
                assert!(*ends <= until_ms + duration_ms + 1, "{id} begins a window of {key}");
                let before = of_key.last_key_value();
                assert!(
                    before.is_none_or(|(last, _)| last + duration_ms <= *ends),
                    "windows of {key}: {of_key:?}"
                );
            }
            let used = of_key.entry(*ends).or_default();
            *used += cost;
            assert!(*used <= *max, "{used} is used of {key}");
        }
        self.job(id).windows = windows;
    }

    /// A job is put off only where one of its keys is used up, or others stand before it.
    fn check_put_off(
        &mut self,
        before: &Snapshot,
        after: &Snapshot,
        delayed: &BTreeSet<String>,
        (from_ms, until_ms): (u64, u64),
    ) -> usize {
        let was: BTreeMap<&String, f64> = before.set("delayed").iter().map(|(id, score)| (id, *score)).collect();
        let mut put_off = Vec::new();
        for (id, score) in after.set("delayed") {
            if was.get(id) != Some(score) && !delayed.contains(id) {
                put_off.push((id, *score as u64 / 4096));
            }
        }
        let mut wanted = self.wanted_until.clone();
        for (id, due_ms) in &put_off {
            for (key, ..) in self.jobs[*id].limits {
                let until = wanted.entry(key).or_default();
                *until = (*until).max(due_ms + LONGEST_MS + 100);
            }
        }
        for (id, due_ms) in &put_off {
            self.note(format!("  puts off {id} until {due_ms}"));
            self.put_off += 1;
            let has_reason = self.jobs[*id].limits.iter().any(|(key, max, _, cost)| {
                let of_key = self.used.get(key).and_then(|windows| windows.last_key_value());
                let used = of_key.map_or(0, |(ends, used)| if *ends > from_ms { *used } else { 0 });
                used + cost > *max || self.wanted_until.get(key).is_some_and(|until| from_ms < *until)
            });
            // of those that come at once, the first one is put off as its key is used up
            let has_company = put_off.len() > 1;
            assert!(has_reason || has_company, "{id} is put off");
            let was_held = held_until(before, id) + self.passed_ms > until_ms;
            // else nobody could use it until it is held no more
            assert!(held_until(after, id) > 0 || !was_held, "{id} loses what is held for it");
            assert!(*due_ms >= from_ms, "{id} is put off until {due_ms}");
        }
        self.wanted_until = wanted;
        put_off.len()
    }

    fn lose(&mut self) {
        let (owner, _) = *self.random.pick(&OWNERS);
        self.note(format!("{owner} is lost"));
        self.queue.end_lease(owner);
        self.queue.command("DEL", "stalled", &[]);
        let now_ms = self.now_ms();
        self.queue.bring_back(now_ms, 1, "", &[], 1_000);
        for id in self.ids(|place| place == Place::Active(owner)) {
            self.job(&id).place = Place::Out;
        }
    }

    /// Notes that a job was told to end: it fails, or its worker hears of it.
    fn cancel_one(&mut self, id: &str, removes: bool) {
        let job = self.job(id);
        match job.place {
            Place::Active(_) => job.is_cancelled = true,
            _ if removes => drop(self.jobs.remove(id)),
            _ => job.place = Place::Failed,
        }
    }

    fn cancel(&mut self) {
        let ids = self.ids(|place| place != Place::Completed);
        if ids.is_empty() {
            return;
        }
        let (id, removes) = (self.random.pick(&ids).clone(), self.random.once_in(3));
        self.note(format!("cancel {id}, removes: {removes}"));
        let now_ms = self.now_ms();
        let reply = run_once!(self.queue, CANCEL_JOBS, now_ms, "", u8::from(removes), named(&[&id]));
        let expected = match self.jobs[&id].place {
            Place::Out => "[1]",
            Place::Active(_) => "[2]",
            _ => "[3]",
        };
        assert_eq!(reply, expected, "cancel {id}");
        if expected != "[3]" {
            self.cancel_one(&id, removes);
        }
    }

    fn cancel_some(&mut self) {
        let state = *self.random.pick(&["waiting", "delayed", "active"]);
        let room = 1 + self.random.below(4);
        self.note(format!("cancel {state}"));
        for id in change(&mut self.queue, "cancel", state, &by_age(-1), room).split_whitespace() {
            self.cancel_one(id, false);
        }
    }

    fn remove(&mut self) {
        let ids = self.ids(|place| !matches!(place, Place::Active(_)));
        if ids.is_empty() {
            return;
        }
        let (id, now_ms) = (self.random.pick(&ids).clone(), self.now_ms());
        self.note(format!("remove {id}"));
        assert_eq!(run_once!(self.queue, REMOVE_JOB, now_ms, &id, 0), "1");
        self.jobs.remove(&id);
    }

    /// A job that has failed is tried again, whatever it failed of.
    fn retry(&mut self) {
        let ids = self.ids(|place| place == Place::Failed);
        if ids.is_empty() {
            return;
        }
        let (id, now_ms) = (self.random.pick(&ids).clone(), self.now_ms());
        let anew = u8::from(self.random.once_in(2));
        self.note(format!("retry {id}, anew: {anew}"));
        assert_eq!(
            run_once!(self.queue, RETRY_JOB, now_ms, &id, "failed", 0, anew, anew),
            "0"
        );
        let job = self.job(&id);
        (job.place, job.is_cancelled, job.is_doomed, job.expires_ms) = (Place::Out, false, false, (0, 0));
    }

    /// A job comes before it is due.
    fn promote(&mut self) {
        let snapshot = self.queue.probe.snapshot();
        let ids: Vec<&String> = snapshot.set("delayed").iter().map(|(id, _)| id).collect();
        if ids.is_empty() {
            return;
        }
        let (id, now_ms) = ((*self.random.pick(&ids)).clone(), self.now_ms());
        self.note(format!("promote {id}"));
        assert_eq!(run_once!(self.queue, MOVE_DELAYED, now_ms, &id, 0), "0");
    }

    fn fail_expired(&mut self) {
        self.note("fail_expired".to_owned());
        let from_ms = self.now_ms();
        while run_once!(self.queue, FAIL_EXPIRED, from_ms, keep(-1)) == "1" {}
        let until_ms = self.now_ms();
        let snapshot = self.queue.probe.snapshot();
        let failed: BTreeSet<&String> = snapshot.set("failed").iter().map(|(id, _)| id).collect();
        for (id, job) in self.jobs.iter_mut().filter(|(_, job)| job.place == Place::Out) {
            let (from, until) = job.expires_ms;
            let may_expire = from > 0 && job.starts == 0 && from <= until_ms;
            if failed.contains(id) {
                assert!(may_expire, "{id} expires: {job:?}");
                job.place = Place::Failed;
            } else {
                assert!(!may_expire || until > from_ms, "{id} is to expire: {job:?}");
            }
        }
    }

    /// Each job is where it is to be, and none is lost.
    fn check_places(&mut self) {
        let snapshot = self.queue.probe.checked();
        let sorted = |ids: Vec<String>| ids.into_iter().collect::<BTreeSet<_>>();
        let all = |set: &str| snapshot.set(set).iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        let out = [snapshot.line(), all("delayed"), all("grouped")].concat();
        let expected = |is_there: &dyn Fn(Place) -> bool| sorted(self.ids(is_there));
        assert_eq!(sorted(out), expected(&|place| place == Place::Out), "out");
        let active = expected(&|place| matches!(place, Place::Active(_)));
        assert_eq!(sorted(snapshot.active()), active, "active");
        assert_eq!(
            sorted(snapshot.completed()),
            expected(&|place| place == Place::Completed),
            "completed"
        );
        assert_eq!(
            sorted(all("failed")),
            expected(&|place| place == Place::Failed),
            "failed"
        );
    }

    fn operate(&mut self) {
        match self.random.below(40) {
            0..=8 => self.add(),
            9..=22 => {
                let owner = *self.random.pick(&OWNERS);
                let want = *self.random.pick(&[0, 1, 2, 5, ALL, ALL]);
                self.step(owner, want, false);
            }
            23..=28 => {
                let ms = *self.random.pick(&[10, 1_000, 20_000, 70_000]);
                let ms = 1 + self.random.below(ms);
                self.pass(ms);
            }
            29 | 30 => self.cancel(),
            31 => self.cancel_some(),
            32 => self.remove(),
            33 => self.retry(),
            34 | 35 => self.promote(),
            36 => self.lose(),
            37 | 38 => self.fail_expired(),
            _ => self.add(),
        }
        self.check_places();
    }

    /// Everything runs to its end: whenever a job is due, all that can start does, and ends.
    fn end(&mut self) {
        self.note("the end".to_owned());
        let begun_ms = self.now_ms();
        self.put_off = 0;
        let left = self.ids(|place| place == Place::Out);
        let limits = left.iter().flat_map(|id| self.jobs[id].limits);
        let least_ms: i64 = limits.map(|(_, max, duration_ms, cost)| duration_ms * cost / max).sum();
        loop {
            for owner in OWNERS {
                self.step(owner, ALL, true);
            }
            self.step(OWNERS[0], ALL, true);
            self.check_places();
            if self
                .ids(|place| !matches!(place, Place::Completed | Place::Failed))
                .is_empty()
            {
                break;
            }
            let snapshot = self.queue.probe.snapshot();
            let due_ms = snapshot
                .set("delayed")
                .iter()
                .map(|(_, score)| *score as u64 / 4096)
                .min();
            let now_ms = self.now_ms();
            let ms = due_ms.map_or(0, |due_ms| due_ms.saturating_sub(now_ms));
            self.pass(ms + 1);
            // one after the other, and each of them for as long again
            let took_ms = self.now_ms() - begun_ms;
            assert!(
                took_ms < 2 * least_ms as u64 + 5 * LONGEST_MS,
                "jobs take {took_ms} ms, not {least_ms}"
            );
        }
        // a job is looked at when it comes, and when it is due
        let (looks, jobs) = (self.put_off, left.len());
        assert!(looks < 5 * jobs + 20, "{jobs} jobs are put off {looks} times");
    }
}

// a failure, wherever it is noticed, is told with what led there
impl Drop for Drive {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TERMS_SEED={}\n{}", self.seed, self.history.join("\n"));
        }
    }
}

#[test]
fn terms_are_kept_whatever_happens() {
    let seeds = setting("TERMS_SEED").map_or(SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        let mut drive = Drive::seeded(seed);
        for _ in 0..setting("TERMS_OPERATIONS").unwrap_or(OPERATIONS) {
            drive.operate();
        }
        drive.end();
    }
}
