//! What a queue is, as simply as it can be said: jobs by id, and the waiting list they wait in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chasquimq::StateFields;

#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Waiting,
    Prioritized,
    /// The claim is that of the step that took it.
    Active {
        owner: String,
        claim: u64,
    },
    Completed,
    Failed,
    Delayed {
        due_ms: u64,
    },
}

impl State {
    pub fn name(&self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Prioritized => "prioritized",
            State::Active { .. } => "active",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Delayed { .. } => "delayed",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Job {
    pub state: State,
    pub data: String,
    /// The one it was added with; 0 = none.
    pub priority: i64,
    pub fields: StateFields,
    /// It was given back before it started: whether it remembers that try's start depends on how it was stored.
    pub is_start_unknown: bool,
    /// Its worker was lost, and cannot have started it.
    pub is_suspect: bool,
    /// It was to start long ago.
    pub expires: bool,
}

/// Why such a job fails.
pub const EXPIRED: &str = "job expired before it started";

/// Why one that is cancelled fails.
pub const CANCELLED: &str = "The job was cancelled";

impl Job {
    /// Whether it comes too late, should it start now.
    pub fn is_late(&self) -> bool {
        self.expires && self.fields.attempts_started == 0 && !self.is_suspect
    }
}

/// How a job ended, as a worker reports it.
#[derive(Debug, Clone)]
pub enum Ending {
    Completed {
        result: String,
    },
    Failed {
        to: &'static str,
        due_ms: u64,
        attempts_made: u32,
        reason: Option<String>,
    },
    Back {
        started: bool,
    },
    LetGo,
}

/// Where a job comes back among those of its priority.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum At {
    End,
    Front,
    /// Where it was: it did not start.
    Back,
}

/// Places count up from here (`lua/states/prioritized.lua`).
const FIRST_PLACE: i64 = 1 << 24;

/// Who holds a job that its worker let go.
pub const NOBODY: &str = "-";

/// A retention rule: count, age in seconds, limit.
pub type Keep = (i64, i64, u64);

/// Ids that were put into the waiting list together, and stay together.
#[derive(Debug, Clone)]
pub struct Group {
    pub ids: Vec<String>,
    /// Jobs that the frame had in which they lie; 0: they lie in none.
    pub frame: usize,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub now_ms: u64,
    pub jobs: BTreeMap<String, Job>,
    pub front: VecDeque<String>,
    pub log: VecDeque<Group>,
    /// Priority, place and id of those with a priority, in their order.
    pub prioritized: BTreeSet<(i64, i64, String)>,
    pub last_place: i64,
    /// In the order in which they are due.
    pub delayed: Vec<(u64, String)>,
    pub last_number: u64,
    /// Of what the step under way takes.
    pub claim: u64,
    pub leases: BTreeSet<String>,
    pub paused: bool,
    pub concurrency: u64,
    /// How many jobs may wait; 0 = any number.
    pub max_length: u64,
    /// Starts that the queue's rate limit allows in a window.
    pub rate: Option<u64>,
    /// Starts in the window under way, which is too long to end by itself.
    pub starts: Option<u64>,
    /// A job that ended in this step met a rate limit.
    pub met_limit: bool,
}

impl Model {
    pub fn line(&self) -> Vec<String> {
        let log = self.log.iter().flat_map(|group| &group.ids);
        self.front.iter().chain(log).cloned().collect()
    }

    /// Ids of all that could start.
    pub fn work(&self) -> Vec<String> {
        let mut work = self.line();
        work.extend(self.prioritized.iter().map(|(_, _, id)| id.clone()));
        work
    }

    /// Number of jobs that wait.
    pub fn length(&self) -> u64 {
        (self.work().len() + self.delayed.len()) as u64
    }

    pub fn count(&self, state: &str) -> usize {
        self.jobs.values().filter(|job| job.state.name() == state).count()
    }

    pub fn state(&self, id: &str) -> Option<&State> {
        self.jobs.get(id).map(|job| &job.state)
    }

    pub fn job(&mut self, id: &str) -> &mut Job {
        self.jobs.get_mut(id).expect("a job of the model")
    }

    /// Whether this taking of the job by this worker is the one under way.
    pub fn is_held_by(&self, id: &str, by: &str, taken: u64) -> bool {
        matches!(self.state(id), Some(State::Active { owner, claim }) if owner == by && *claim == taken)
    }

    /// A new job, in no place yet. False when the id is known.
    pub fn create(&mut self, id: &str, data: &str, priority: i64) -> bool {
        if self.jobs.contains_key(id) {
            return false;
        }
        let job = Job {
            state: State::Waiting,
            data: data.to_owned(),
            priority,
            fields: StateFields::default(),
            is_start_unknown: false,
            is_suspect: false,
            expires: false,
        };
        self.jobs.insert(id.to_owned(), job);
        true
    }

    fn priority_of(&self, id: &str) -> i64 {
        let job = &self.jobs[id];
        job.fields.priority.unwrap_or(job.priority)
    }

    fn rank(&mut self, id: &str, at: At) {
        let priority = self.priority_of(id);
        let place = match at {
            At::Front => 0,
            At::End => {
                self.last_place = self.last_place.max(FIRST_PLACE) + 1;
                self.last_place
            }
            At::Back => {
                let from = (priority, 1, String::new());
                let lowest = self.prioritized.range(from..).next();
                match lowest {
                    Some((found, place, _)) if *found == priority => place - 1,
                    _ => FIRST_PLACE,
                }
            }
        };
        self.prioritized.insert((priority, place, id.to_owned()));
        self.job(id).state = State::Prioritized;
    }

    /// Puts jobs at the end of the waiting list, those with a priority at the end of it.
    pub fn wait_last(&mut self, mut ids: Vec<String>) {
        let ranked: Vec<String> = ids.extract_if(.., |id| self.priority_of(id) != 0).collect();
        for id in ranked {
            self.rank(&id, At::End);
        }
        self.tail(ids);
    }

    /// Puts jobs at the end of the waiting list, whatever their priority.
    pub fn tail(&mut self, ids: Vec<String>) {
        for id in &ids {
            self.job(id).state = State::Waiting;
        }
        if !ids.is_empty() {
            self.log.push_back(Group { ids, frame: 0 });
        }
    }

    /// The same for the jobs of a frame.
    pub fn tail_frame(&mut self, ids: Vec<String>) {
        let frame = ids.len();
        self.log.push_back(Group { ids, frame });
    }

    /// Puts jobs at the head of the waiting list, those with a priority where they say.
    pub fn wait_first(&mut self, ids: &[(String, At)]) {
        let (ranked, plain): (Vec<_>, Vec<_>) = ids.iter().cloned().partition(|(id, _)| self.priority_of(id) != 0);
        for (id, at) in ranked.iter().filter(|(_, at)| *at != At::Back) {
            self.rank(id, *at);
        }
        for (id, at) in ranked.iter().rev().filter(|(_, at)| *at == At::Back) {
            self.rank(id, *at);
        }
        self.head(&plain.into_iter().map(|(id, _)| id).collect::<Vec<_>>());
    }

    /// Jobs come back one after the other, each at the head of the waiting list.
    pub fn wait_one_by_one(&mut self, ids: &[(String, At)]) {
        for id in ids {
            self.wait_first(std::slice::from_ref(id));
        }
    }

    /// Puts jobs at the head of the waiting list, whatever their priority.
    fn head(&mut self, ids: &[String]) {
        for id in ids.iter().rev() {
            self.job(id).state = State::Waiting;
            self.front.push_front(id.clone());
        }
    }

    /// All that are not active went to BullMQ, which knows a job's priority as it is now and the delay of what is delayed, and came back.
    pub fn go_and_return(&mut self) {
        let (plain, mut ranked): (Vec<_>, Vec<_>) = self.line().into_iter().partition(|id| self.priority_of(id) == 0);
        ranked.extend(self.prioritized.iter().map(|(_, _, id)| id.clone()));
        ranked.sort_by_key(|id| self.priority_of(id));
        self.front.clear();
        self.log.clear();
        self.prioritized.clear();
        let away = self.jobs.iter_mut().filter(|(_, job)| job.state.name() != "active");
        for (id, job) in away {
            // BullMQ knows of neither
            (job.is_suspect, job.expires) = (false, false);
            job.priority = job.fields.priority.unwrap_or(job.priority);
            job.fields.priority = (job.priority != 0).then_some(job.priority);
            let is_delayed = job.state.name() == "delayed";
            job.fields.delay_ms = job.fields.delay_ms.filter(|ms| is_delayed && *ms > 0);
            self.last_number = self.last_number.max(id.parse().unwrap_or(0));
        }
        for id in ranked {
            self.rank(&id, At::End);
        }
        self.tail(plain);
    }

    /// Gives a job another priority; one that waits takes its new place.
    pub fn change_priority(&mut self, id: &str, priority: i64, lifo: bool) {
        self.job(id).fields.priority = Some(priority);
        if matches!(self.state(id), Some(State::Waiting | State::Prioritized)) {
            self.take_out(id);
            if lifo {
                self.wait_first(&[(id.to_owned(), At::Front)]);
            } else {
                self.wait_last(vec![id.to_owned()]);
            }
        }
    }

    pub fn delay(&mut self, id: &str, due_ms: u64) {
        self.job(id).state = State::Delayed { due_ms };
        let at = self.delayed.partition_point(|(other, _)| *other <= due_ms);
        self.delayed.insert(at, (due_ms, id.to_owned()));
    }

    /// Takes a job out of its place.
    pub fn take_out(&mut self, id: &str) {
        self.front.retain(|other| other != id);
        for group in &mut self.log {
            group.ids.retain(|other| other != id);
        }
        self.log.retain(|group| !group.ids.is_empty());
        self.delayed.retain(|(_, other)| other != id);
        self.prioritized.retain(|(_, _, other)| other != id);
    }

    /// One that nobody has taken fails for good.
    pub fn fail_unstarted(&mut self, id: &str, reason: &str) {
        self.take_out(id);
        let now_ms = self.now_ms;
        let job = self.job(id);
        (job.state, job.expires) = (State::Failed, false);
        job.fields.failed_reason = Some(reason.to_owned());
        job.fields.finished_on = Some(now_ms);
        (job.fields.delay_ms, job.fields.deferred_failure) = (None, None);
    }

    /// One that has not ended fails, or is to fail should it ever start again.
    pub fn cancel(&mut self, id: &str) {
        match self.state(id) {
            Some(State::Active { .. }) => self.job(id).fields.deferred_failure = Some(CANCELLED.to_owned()),
            _ => self.fail_unstarted(id, CANCELLED),
        }
    }

    pub fn remove(&mut self, id: &str) {
        self.take_out(id);
        self.jobs.remove(id);
    }

    /// A job that ended in this state is to run again.
    pub fn begin_again(&mut self, id: &str, state: &str) {
        self.job(id).expires = false;
        let fields = &mut self.job(id).fields;
        if state == "failed" {
            fields.failed_reason = None;
        }
        (fields.finished_on, fields.processed_on, fields.returnvalue) = (None, None, None);
    }

    pub fn promote_due(&mut self) {
        let due = self.delayed.partition_point(|(due_ms, _)| *due_ms <= self.now_ms);
        let ids = self.delayed.drain(..due).map(|(_, id)| id).collect();
        self.wait_last(ids);
    }

    /// Jobs that a fetch takes: `want`, and up to `most` in all unless the next one stalled before, or lies in a frame that does not
    /// fit. Any other group that does not fit is broken, and its rest heads the waiting list.
    pub fn fetch(&mut self, owner: &str, want: usize, most: usize) -> Vec<String> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let Some(next) = self.front.front() else { break };
            if taken.len() >= want && self.has_stalled(next) {
                break;
            }
            taken.extend(self.front.pop_front());
        }
        while self.front.is_empty() && taken.len() < most {
            let room = most - taken.len();
            let Some(mut group) = self.log.pop_front() else { break };
            if group.frame > room && taken.len() >= want {
                self.log.push_front(group);
                break;
            }
            let now = want.saturating_sub(taken.len());
            let mut surplus = group.ids.iter().skip(now);
            let fit = match surplus.position(|id| self.has_stalled(id)) {
                Some(at) => room.min(now + at),
                None => room,
            };
            let rest = group.ids.split_off(group.ids.len().min(fit));
            taken.append(&mut group.ids);
            self.front.extend(rest);
        }
        while taken.len() < most && self.line().is_empty() {
            let Some((_, _, id)) = self.prioritized.first() else {
                break;
            };
            if taken.len() >= want && self.has_stalled(id) {
                break;
            }
            taken.extend(self.prioritized.pop_first().map(|(_, _, id)| id));
        }
        let (now_ms, claim) = (self.now_ms, self.claim);
        for id in &taken {
            let job = self.job(id);
            if job.is_late() {
                job.fields.deferred_failure.get_or_insert_with(|| EXPIRED.to_owned());
            }
            job.state = State::Active {
                owner: owner.to_owned(),
                claim,
            };
            job.fields.attempts_started += 1;
            job.fields.processed_on = Some(now_ms);
            job.is_start_unknown = false;
        }
        taken
    }

    fn has_stalled(&self, id: &str) -> bool {
        self.jobs[id].fields.stalled_counter > 0 || self.jobs[id].is_suspect
    }

    /// Jobs that the global concurrency leaves room for, of those a worker wants.
    pub fn places(&self, want: usize) -> usize {
        if self.concurrency == 0 {
            return want;
        }
        want.min((self.concurrency as usize).saturating_sub(self.count("active")))
    }

    /// Starts that the rate limit leaves in the window.
    pub fn room(&self) -> usize {
        self.rate
            .map_or(usize::MAX, |max| max.saturating_sub(self.starts.unwrap_or(0)) as usize)
    }

    /// Counts jobs that started, except those that start only to fail. True when a rate limit lets no more start.
    pub fn count_starts(&mut self, taken: &[String]) -> bool {
        let Some(max) = self.rate else { return false };
        let starts = taken
            .iter()
            .filter(|id| self.jobs[*id].fields.deferred_failure.is_none())
            .count() as u64;
        if starts > 0 {
            self.starts = Some(self.starts.unwrap_or(0) + starts);
        }
        self.starts.unwrap_or(0) >= max
    }

    /// Ends a try that the worker holds. Gives where the job goes back in the waiting list, if it does: `waiting` or `front`, and its place
    /// among those of its priority.
    pub fn end(&mut self, id: &str, ending: &Ending) -> Option<(&'static str, At)> {
        let now_ms = self.now_ms;
        self.met_limit |= matches!(ending, Ending::Back { started: true });
        let job = self.job(id);
        let fields = &mut job.fields;
        match ending {
            Ending::Completed { result } => {
                job.state = State::Completed;
                fields.attempts_made += 1;
                fields.finished_on = Some(now_ms);
                fields.returnvalue = (!result.is_empty()).then(|| result.clone());
                (fields.delay_ms, fields.deferred_failure) = (None, None);
                None
            }
            Ending::Failed {
                to,
                due_ms,
                attempts_made,
                reason,
            } => {
                fields.attempts_made = *attempts_made;
                if reason.is_some() || *to == "failed" {
                    fields.failed_reason = reason.clone().filter(|reason| !reason.is_empty());
                }
                fields.stacktrace = Some("[\"trace\"]".to_owned());
                fields.delay_ms = None;
                match *to {
                    "failed" => {
                        job.state = State::Failed;
                        fields.deferred_failure = None;
                        fields.finished_on = Some(now_ms);
                        None
                    }
                    "delayed" => {
                        fields.delay_ms = Some(due_ms - now_ms);
                        self.delay(id, *due_ms);
                        None
                    }
                    place => {
                        job.state = State::Waiting;
                        Some((place, At::End))
                    }
                }
            }
            Ending::LetGo => {
                job.state = State::Active {
                    owner: NOBODY.to_owned(),
                    claim: 0,
                };
                None
            }
            Ending::Back { started } => {
                if !started {
                    fields.attempts_started -= 1;
                    job.is_start_unknown = true;
                }
                job.state = State::Waiting;
                Some(("front", if *started { At::Front } else { At::Back }))
            }
        }
    }

    pub fn finished_on(&self, id: &str) -> u64 {
        self.jobs[id].fields.finished_on.unwrap_or(0)
    }

    /// Ids of a finished state, oldest first.
    pub fn finished(&self, state: &str) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        ids.extend(
            self.jobs
                .iter()
                .filter(|(_, job)| job.state.name() == state)
                .map(|(id, _)| id.clone()),
        );
        ids.sort_by_key(|id| self.finished_on(id));
        ids
    }

    /// Numbers of jobs that a retention rule drops from a finished state: by age, then by count.
    pub fn excess(&self, state: &str, keep: Keep, ended: u64) -> (usize, usize) {
        let (count, age, limit) = keep;
        let finished = self.finished(state);
        let oldest_kept = self.now_ms as i64 - age * 1000;
        let expired = finished
            .iter()
            .filter(|id| self.finished_on(id) as i64 <= oldest_kept)
            .count();
        let by_age = if age >= 0 {
            expired.min((limit * ended) as usize)
        } else {
            0
        };
        let left = finished.len() - by_age;
        let by_count = if count > 0 {
            left.saturating_sub(count as usize)
        } else {
            0
        };
        (by_age, by_count)
    }

    /// Brings back what owners without a lease hold, each with this many slots (0: it does not tell them). Gives what stalled.
    pub fn recover_stalled(&mut self, lost: &[String], max_stalled: u32, slots: impl Fn(&str) -> usize) -> Vec<String> {
        let (mut seen, mut stalled) = (BTreeMap::<String, usize>::new(), Vec::new());
        for id in lost {
            let had_stalled = self.has_stalled(id);
            let job = self.job(id);
            let State::Active { owner, .. } = &job.state else {
                panic!("{id} is {:?}", job.state)
            };
            let (slots, before) = (slots(owner), seen.entry(owner.clone()).or_default());
            *before += 1;
            if slots == 0 || *before <= slots || had_stalled || max_stalled == 0 {
                job.is_suspect = false;
                job.fields.stalled_counter += 1;
                if job.fields.stalled_counter > max_stalled {
                    job.fields.deferred_failure = Some("job stalled more than allowable limit".to_owned());
                }
                stalled.push(id.clone());
            } else {
                job.is_suspect = true;
                job.fields.attempts_started -= 1;
                job.is_start_unknown = true;
            }
        }
        self.head(lost);
        stalled
    }

    /// Jobs whose owner has no lease, in the order in which they became active.
    pub fn lost(&self) -> Vec<String> {
        let is_alive =
            |id: &String| matches!(self.state(id), Some(State::Active { owner, .. }) if self.leases.contains(owner));
        self.active().into_iter().filter(|id| !is_alive(id)).collect()
    }

    /// Jobs that this owner holds, in the order in which they became active.
    pub fn held_by(&self, owner: &str) -> Vec<String> {
        let is_held =
            |id: &String| matches!(self.state(id), Some(State::Active { owner: other, .. }) if other == owner);
        self.active().into_iter().filter(is_held).collect()
    }

    /// Active jobs in the order in which they became active; those of one moment by number, then by id.
    pub fn active(&self) -> Vec<String> {
        let active = self.jobs.iter().filter(|(_, job)| job.state.name() == "active");
        let mut ranks: Vec<(Option<u64>, u64, &String)> = active
            .map(|(id, job)| (job.fields.processed_on, id.parse().unwrap_or(u64::MAX), id))
            .collect();
        ranks.sort();
        ranks.into_iter().map(|(_, _, id)| id.clone()).collect()
    }
}
