//! Random operations on flows over two queues: after each, the keys of each queue agree with each other, and with those of the other
//! queue; and in the end every parent has started once its children had ended.

use chasquimq::{msgpack::Packer, Keys};

use crate::{
    given::{
        queue::{run, run_once, TestQueue},
        step::{of, Fail, Place, Step},
        tree::Tree,
    },
    model::{bulk::by_age, random::Random},
    probe::{
        check::{frames, plain_jobs},
        snapshot::Snapshot,
        tree::Tree as Packed,
    },
};

const POLICIES: [&str; 5] = [
    "{}",
    r#"{"failParentOnFailure":true}"#,
    r#"{"continueParentOnFailure":true}"#,
    r#"{"ignoreDependencyOnFailure":true}"#,
    r#"{"removeDependencyOnFailure":true}"#,
];

struct Pair {
    queues: [TestQueue; 2],
    keys: [Keys; 2],
    random: Random,
    count: u64,
    now_ms: u64,
}

impl Pair {
    fn seeded(seed: u64) -> Self {
        let queues = [TestQueue::fresh(), TestQueue::fresh()];
        let keys = [queues[0].probe.keys.clone(), queues[1].probe.keys.clone()];
        Self {
            queues,
            keys,
            random: Random::seeded(seed),
            count: 0,
            now_ms: 1000,
        }
    }

    fn below(&mut self, n: u64) -> usize {
        self.random.below(n) as usize
    }

    fn new_id(&mut self) -> String {
        self.count += 1;
        format!("j{}", self.count)
    }

    /// A tree of up to three levels, in both queues.
    fn add(&mut self) {
        let root = self.new_id();
        let mut tree = Tree::new().root(&root).to(&self.keys[0]);
        let mut parents = vec![root];
        for _ in 0..1 + self.below(5) {
            let parent = parents[self.below(parents.len() as u64)].clone();
            // now and then one that exists
            let id = if self.below(8) == 0 {
                format!("j{}", 1 + self.below(self.count))
            } else {
                self.new_id()
            };
            if parents.contains(&id) {
                continue;
            }
            let place = self.below(2);
            let policy = POLICIES[self.random.below(5) as usize];
            // the engine names children that are like each other, and keeps them in frames
            for _ in 0..self.below(2) * self.below(5) {
                tree = tree.child_with(&parent, "", policy).to(&self.keys[place]);
            }
            tree = tree.child_with(&parent, &id, policy).to(&self.keys[place]);
            parents.push(id);
        }
        self.queues[0].add_flows(self.now_ms, &tree);
    }

    /// Ids of a queue's jobs, in order.
    fn jobs(&mut self, at: usize) -> Vec<String> {
        let snapshot = self.queues[at].probe.snapshot();
        let mut ids = plain_jobs(&snapshot, &frames(&snapshot));
        ids.extend(snapshot.hash("jobs").keys().cloned());
        ids.into_iter().collect()
    }

    fn some_job(&mut self, at: usize) -> Option<String> {
        let jobs = self.jobs(at);
        (!jobs.is_empty()).then(|| jobs[self.below(jobs.len() as u64)].clone())
    }

    fn operate(&mut self) {
        self.now_ms += 1;
        let at = self.below(2);
        match self.below(13) {
            0 | 1 => self.add(),
            2 | 3 => {
                let want = 1 + self.below(4) as i64;
                self.queues[at].step(Step::by("w").at(self.now_ms).want(want));
            }
            4..=6 => self.end_some(at),
            7 => self.by_id(at),
            8 => {
                if let Some(id) = self.some_job(at) {
                    let (all, now_ms) = (self.below(2), self.now_ms);
                    run_once!(self.queues[at], REMOVE_JOB, now_ms, id, all);
                }
            }
            12 => self.remove_descendants(at),
            9 => {
                if let Some(id) = self.some_job(at) {
                    let now_ms = self.now_ms;
                    run_once!(self.queues[at], RETRY_JOB, now_ms, &id, "failed", 0, 0, 0);
                    run_once!(self.queues[at], RETRY_JOB, now_ms, &id, "completed", 0, 0, 0);
                }
            }
            10 => {
                self.queues[at].end_lease("w");
                self.recover_stalled(at);
            }
            _ => self.many(at),
        }
        self.check();
    }

    /// Some children of a parent, as the removal of a great family takes them.
    fn remove_descendants(&mut self, at: usize) {
        let (Some(parent), ended, now_ms) = (self.some_job(at), self.below(2), self.now_ms) else {
            return;
        };
        let mut kin = Packer::default();
        kin.array(3 * 4);
        for _ in 0..4 {
            let place = self.below(2);
            let child = self.some_job(place).unwrap_or_default();
            let key = format!("{}:{child}", self.keys[place].qualified_name);
            kin.str(&self.keys[at].base).str(&parent).str(&key);
        }
        run_once!(self.queues[at], REMOVE_DESCENDANTS, now_ms, ended, kin.0.as_slice());
    }

    /// Brings back what nobody holds.
    fn recover_stalled(&mut self, at: usize) {
        self.queues[at].end_leases_of_nobody();
        self.queues[at].command("DEL", "stalled", &[]);
        let now_ms = self.now_ms;
        self.queues[at].recover_stalled(now_ms, 1, 1);
    }

    /// Some of what BullMQ does to many jobs at once.
    fn many(&mut self, at: usize) {
        self.count += 1;
        let (number, now_ms) = (self.count, self.now_ms);
        let all = by_age(-1);
        let state = ["waiting", "failed", "completed", "waiting-children"][self.below(4)];
        match self.below(7) {
            5 => run!(
                self.queues[at],
                CHANGE_JOBS,
                now_ms,
                "m",
                "b",
                number,
                "remove",
                state,
                all,
                "",
                2,
                0,
                ""
            ),
            6 => run!(
                self.queues[at],
                CHANGE_JOBS,
                now_ms,
                "m",
                "b",
                number,
                "retry",
                "failed",
                all,
                "",
                2,
                0,
                ""
            ),
            0 => run!(
                self.queues[at],
                CLEAN_JOBS,
                now_ms,
                "m",
                "b",
                number,
                "wait",
                all,
                3,
                "",
                -1
            ),
            3 => run!(
                self.queues[at],
                CLEAN_JOBS,
                now_ms,
                "m",
                "b",
                number,
                "waiting-children",
                by_age(1 << 40),
                1,
                "",
                0
            ),
            1 => run!(
                self.queues[at],
                CLEAN_JOBS,
                now_ms,
                "m",
                "b",
                number,
                "failed",
                by_age(1 << 40),
                3,
                "",
                0
            ),
            2 => run!(
                self.queues[at],
                CLEAN_JOBS,
                now_ms,
                "m",
                "b",
                number,
                "completed",
                by_age(1 << 40),
                3,
                "",
                0
            ),
            _ => run!(
                self.queues[at],
                RETRY_JOBS,
                now_ms,
                "m",
                "b",
                number,
                "failed",
                1_u64 << 40,
                2
            ),
        };
    }

    fn end_some(&mut self, at: usize) {
        let snapshot = self.queues[at].probe.snapshot();
        let mut step = Step::by("w").at(self.now_ms);
        for run in active_children(&snapshot) {
            step = self.end_children(step, &run);
        }
        for id in snapshot.hash("active").keys() {
            match self.below(4) {
                0 | 1 => step = step.done_record(id, "1"),
                2 => step = step.fail(&of(id), &Fail::to("failed")),
                _ => {}
            }
        }
        self.queues[at].step(step);
    }

    /// Ends some children of a frame, one behind the other.
    fn end_children(&mut self, mut step: Step, run: &[Place]) -> Step {
        let mut left = run;
        while let Some((place, others)) = left.split_first() {
            left = others;
            match self.below(8) {
                0..=2 => {
                    let count = 1 + self.below(1 + others.len() as u64);
                    let result = ["", "1"][self.below(2)];
                    step = step.done_children(place, &vec![result; count]);
                    left = &others[count - 1..];
                }
                3 => step = step.fail(place, &Fail::to("failed")),
                4 => step = step.fail(place, &Fail::to("waiting")),
                5 => step = step.back(place, false),
                6 => step = step.let_go(place),
                _ => {}
            }
        }
        step
    }

    fn by_id(&mut self, at: usize) {
        let Some(id) = self.some_job(at) else { return };
        let now_ms = self.now_ms;
        match self.below(3) {
            0 => run!(
                self.queues[at],
                MOVE_TO_WAITING_CHILDREN,
                now_ms,
                chasquimq::unique_id(),
                0,
                1,
                id,
                "0",
                ""
            ),
            1 => run!(
                self.queues[at],
                REMOVE_DEPENDENCY,
                now_ms,
                chasquimq::unique_id(),
                0,
                1,
                id
            ),
            _ => run_once!(self.queues[at], REMOVE_CHILDREN, now_ms, id),
        };
    }

    /// What a parent waits for exists, and knows it, in whichever queue it is.
    fn check(&mut self) {
        let snapshots = [self.queues[0].probe.checked(), self.queues[1].probe.checked()];
        let framed = snapshots.each_ref().map(Snapshot::framed_children);
        for (at, snapshot) in snapshots.iter().enumerate() {
            for (id, family) in &snapshot.families {
                for key in &family.all_pending() {
                    let (name, child) = key.rsplit_once(':').expect("a key");
                    let place = usize::from(name == self.keys[1].qualified_name);
                    let raw = snapshots[place].hash("vitals").get(child);
                    let fields = raw.map(|raw| Packed::one(raw));
                    let pa = match fields {
                        Some(fields) => fields.field("pa").map(Packed::show),
                        None => framed[place].get(child).map(|(base, id)| format!("[{base} {id} ")),
                    };
                    let expected = format!("[{} {id} ", self.keys[at].base);
                    assert!(
                        pa.as_ref().is_some_and(|pa| pa.starts_with(&expected)),
                        "{id} waits for {key}, whose parent is {pa:?}"
                    );
                }
            }
        }
    }

    /// Ends everything that can start: what is parked then waits for what has failed.
    fn drain(&mut self) {
        for _ in 0..1000 {
            self.now_ms += 1;
            let mut is_idle = true;
            for at in 0..2 {
                self.recover_stalled(at);
                let step = Step::by("w").at(self.now_ms).want(50);
                self.queues[at].step(step);
                let snapshot = self.queues[at].probe.snapshot();
                is_idle = is_idle && snapshot.active().is_empty();
                let mut step = Step::by("w").at(self.now_ms);
                for run in active_children(&snapshot) {
                    step = step.done_children(&run[0], &vec![""; run.len()]);
                }
                for id in snapshot.hash("active").keys() {
                    // one with pending children must not complete
                    step = step.done_record(id, "1");
                }
                self.queues[at].step(step);
                let mut step = Step::by("w").at(self.now_ms);
                for id in self.queues[at].probe.snapshot().hash("active").keys() {
                    step = step.fail(&of(id), &Fail::to("failed"));
                }
                self.queues[at].step(step);
            }
            self.check();
            if is_idle {
                break;
            }
        }
        let snapshots = [self.queues[0].probe.snapshot(), self.queues[1].probe.snapshot()];
        let failed = |key: &str| {
            let (name, child) = key.rsplit_once(':').expect("a key");
            let place = usize::from(name == self.keys[1].qualified_name);
            let is_in = |set: &str| snapshots[place].set(set).iter().any(|(id, _)| id == child);
            is_in("failed") || is_in("waiting-children")
        };
        for snapshot in &snapshots {
            assert!(snapshot.line().is_empty());
            for (id, _) in snapshot.set("waiting-children") {
                let pending = &snapshot.families[id].all_pending();
                assert!(pending.iter().all(|key| failed(key)), "{id} waits for {pending:?}");
            }
        }
    }
}

/// Children that are held in frames, those that lie one behind the other together.
pub(super) fn active_children(snapshot: &Snapshot) -> Vec<Vec<Place>> {
    let mut runs: Vec<Vec<Place>> = Vec::new();
    let sizes = frames(snapshot);
    for (first, take) in snapshot.takes() {
        let n = sizes[&first];
        let ids = snapshot.header(first).expect("a frame of children").ids.to_owned();
        let is_active = |offset: &u64| take.is_empty() || take.as_bytes()[*offset as usize] == b'1';
        let mut before = None;
        for offset in (0..n).filter(is_active) {
            let place = Place::Child(first, n, offset, ids.clone());
            match runs.last_mut() {
                Some(run) if before.is_some_and(|before| before + 1 == offset) => run.push(place),
                _ => runs.push(vec![place]),
            }
            before = Some(offset);
        }
    }
    runs
}

#[test]
fn random_operations_leave_families_whole() {
    for seed in 1..=12 {
        let mut pair = Pair::seeded(seed);
        for _ in 0..120 {
            pair.operate();
        }
        pair.drain();
    }
}
