//! Where the jobs of a rank lie is found without passing over those before them, and is where a walk over the whole line finds them.

use std::ops::Range;

use chasquimq::redis::call::library::ADD;
use redis::Value;

use crate::{
    given::{
        plan::{Plan, TIMESTAMP},
        queue::{run, show_reply, TestQueue},
        step::{at, of, Fail, Step},
        tree::Tree,
    },
    model::{bulk::by_age, random::Random},
    probe::snapshot::Content,
};

const ROUNDS: u64 = 5;
/// Most entries that one call passes over.
const ENTRIES_A_CALL: usize = 1000;

/// How a job is put into a plan.
type Kind = fn(Plan) -> Plan;

const FRAME: Kind = |plan| plan.frame(1);
const RECORD: Kind = |plan| plan.record("");
const DELAYED: Kind = |plan| plan.delayed("", 5000);

/// Ids of a range of ranks, and the number of calls it took.
fn page(queue: &mut TestQueue, start: i64, stop: i64, ascending: bool) -> (Vec<String>, u32) {
    let (jobs, calls) = queue.list(&["waiting"], start, stop, ascending, true);
    (jobs.iter().map(|job| show_reply(&job[0])).collect(), calls)
}

/// The waiting list, from its head: nothing is passed over.
fn line(queue: &mut TestQueue) -> Vec<String> {
    let line = page(queue, 0, -1, true).0;
    assert_eq!(line, queue.probe.snapshot().line());
    line
}

/// A page is that part of the waiting list, asked for in any way. Gives the most calls that a way took.
fn page_is(queue: &mut TestQueue, line: &[String], ranks: Range<usize>) -> u32 {
    let (len, from, to) = (line.len() as i64, ranks.start as i64, ranks.end as i64 - 1);
    let expected = &line[ranks];
    let reversed: Vec<String> = expected.iter().rev().cloned().collect();
    let ways = [
        (from, to, true, expected),
        (from - len, to - len, true, expected),
        (len - 1 - to, len - 1 - from, false, reversed.as_slice()),
        (-1 - to, -1 - from, false, reversed.as_slice()),
    ];
    let mut most = 0;
    for (start, stop, ascending, expected) in ways {
        let (found, calls) = page(queue, start, stop, ascending);
        assert_eq!(found, expected, "{start}..={stop} ascending: {ascending}");
        most = most.max(calls);
    }
    most
}

fn add(queue: &mut TestQueue, now_ms: u64, plan: &Plan) {
    let number = queue.next_number();
    let mut call = queue.call(&ADD);
    call.arg(now_ms).arg("c").arg(0).arg(number);
    plan.append_to(&mut call);
    queue.carry_out_unchecked(&call);
}

/// Adds so many jobs, each an entry of its own, of these kinds in turn.
fn add_singles(queue: &mut TestQueue, count: usize, kinds: &[Kind]) {
    for some in (0..count).collect::<Vec<_>>().chunks(100) {
        let plan = some.iter().fold(Plan::new(), |plan, i| kinds[i % kinds.len()](plan));
        add(queue, 1000, &plan);
    }
}

/// Keys are compared now and then: lines are long.
macro_rules! run_unchecked {
    ($queue:expr, $script:ident $(, $arg:expr)* $(,)?) => {{
        let mut call = $queue.call(&chasquimq::redis::call::library::$script);
        $(call.arg($arg);)*
        $queue.carry_out_unchecked(&call)
    }};
}

/// Gives a waiting job a record.
fn amend(queue: &mut TestQueue, now_ms: u64, id: &str) {
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::UPDATE_JOB, Some(now_ms));
    call.arg(id).arg("progress").arg("1");
    queue.carry_out_unchecked(&call);
}

fn remove(queue: &mut TestQueue, id: &str) {
    let mut call = queue.numbered_call(&chasquimq::redis::call::library::REMOVE_JOB, Some(1001));
    call.arg(id).arg(0);
    queue.carry_out_unchecked(&call);
}

/// Pages from all over a line of which no call passes over so many entries. Gives the most calls that one took.
fn pages_are(queue: &mut TestQueue) -> u32 {
    queue.probe.checked();
    let line = line(queue);
    assert!(line.len() > 3 * ENTRIES_A_CALL);
    let places = [1300, line.len() / 3, line.len() / 2, line.len() - 1400];
    let calls = places.map(|from| page_is(queue, &line, from..from + 60));
    calls.into_iter().max().unwrap_or_default()
}

#[test]
fn a_rank_far_from_both_ends_is_found_in_one_call() {
    let mut queue = TestQueue::fresh();
    // numbers of jobs that do not wait
    add_singles(&mut queue, 10, &[DELAYED, |plan| plan.prioritized("", 3)]);
    add_singles(&mut queue, 4 * ENTRIES_A_CALL, &[FRAME]);
    assert_eq!(pages_are(&mut queue), 1);
    // jobs at the head of the waiting list, and records that do not wait by references
    add_singles(&mut queue, 50, &[|plan| plan.front("")]);
    queue.step(Step::by("w").want(60));
    queue.step(
        Step::by("w")
            .at(1010)
            .done_record("4060", "")
            .fail(&of("4059"), &Fail::to("failed")),
    );
    assert_eq!(pages_are(&mut queue), 1);
    let line = line(&mut queue);
    assert_eq!(page_is(&mut queue, &line, 1000..1001), 1);
}

#[test]
fn a_rank_is_found_before_what_waits_behind_in_another_order() {
    let mut queue = TestQueue::fresh();
    add_singles(&mut queue, 20, &[DELAYED]);
    add_singles(&mut queue, 4 * ENTRIES_A_CALL, &[FRAME]);
    // as many references as numbers that are no job's: counts alone do not tell where
    add_singles(&mut queue, 40, &[DELAYED, RECORD, |plan| plan.record("own")]);
    run!(queue, PROMOTE_JOBS, 6000, 20);
    assert_eq!(pages_are(&mut queue), 1);
    add_singles(&mut queue, 10, &[FRAME]);
    assert_eq!(pages_are(&mut queue), 1);
    // more of it than is looked at
    add_singles(&mut queue, ENTRIES_A_CALL, &[FRAME, RECORD]);
    assert!(pages_are(&mut queue) > 1);
}

#[test]
fn jobs_without_a_number_in_the_place_of_one_are_told_apart() {
    let mut queue = TestQueue::fresh();
    add_singles(&mut queue, 2 * ENTRIES_A_CALL, &[FRAME]);
    add_singles(&mut queue, 100, &[DELAYED]);
    add_singles(&mut queue, 2 * ENTRIES_A_CALL, &[FRAME]);
    // as many jobs wait as there are numbers, and nothing leads to another order
    run!(queue, PROMOTE_JOBS, 6000, 100);
    pages_are(&mut queue);
    // they have gone from the waiting list, in which stale references of them are left
    for number in 2001..2101 {
        remove(&mut queue, &number.to_string());
    }
    pages_are(&mut queue);
}

#[test]
fn numbers_that_no_job_in_line_has_are_not_counted() {
    let mut queue = TestQueue::fresh();
    add_singles(&mut queue, 100, &[FRAME, DELAYED]);
    add_singles(&mut queue, 4 * ENTRIES_A_CALL, &[FRAME]);
    pages_are(&mut queue);
}

#[test]
fn a_rank_behind_holes_is_found_in_one_call() {
    let mut queue = TestQueue::fresh();
    for _ in 0..20 {
        add_singles(&mut queue, 150, &[|plan| plan.frame(2)]);
        add(&mut queue, 1000, &Plan::new().frame(64));
    }
    let line = line(&mut queue);
    for (i, id) in line.iter().enumerate() {
        if i % 64 == 63 {
            amend(&mut queue, 1001, id);
        } else if i % 97 == 5 {
            remove(&mut queue, id);
        }
    }
    // a frame of which one job is left
    let first = 11 * 300 + 10 * 64 + 1;
    for number in first..first + 63 {
        remove(&mut queue, &number.to_string());
    }
    let holes = queue.probe.snapshot().holes();
    assert_eq!(holes[&first].len(), 64);
    assert_eq!(pages_are(&mut queue), 1);
    let line = self::line(&mut queue);
    for from in (0..line.len() - 20).step_by(37) {
        assert_eq!(page_is(&mut queue, &line, from..from + 20), 1);
    }
}

struct Program {
    queue: TestQueue,
    random: Random,
    now_ms: u64,
    ids: u64,
    /// How often something other than frames is added, once in so many.
    mixed: u64,
    /// None of that waits by references: its numbers are missing.
    gaps: bool,
}

impl Program {
    fn id(&mut self) -> String {
        self.ids += 1;
        format!("n{}", self.ids)
    }

    fn add(&mut self) {
        let most = *self.random.pick(&[1, 1, 2, 5]);
        let mut plan = Plan::new();
        for _ in 0..self.random.below(300) {
            plan = if self.random.once_in(self.mixed) {
                let (id, due_ms, priority) = (self.id(), self.now_ms + self.random.below(3), 1 + self.ids as i64 % 3);
                match self.random.below(7).max(if self.gaps { 4 } else { 0 }) {
                    0 | 1 => plan.record(""),
                    2 => plan.record(&id),
                    3 => plan.delayed("", due_ms),
                    4 => plan.delayed("", 1_000_000),
                    5 => plan.prioritized("", priority),
                    _ => plan.front(""),
                }
            } else {
                plan.frame(1 + self.random.below(most))
            };
        }
        add(&mut self.queue, self.now_ms, &plan);
        if self.random.once_in(6) {
            let parent = self.id();
            let children = 1 + self.random.below(5);
            let tree = (0..children).fold(Tree::new().root(&parent), |tree, _| tree.child(&parent, ""));
            self.queue.add_flows(self.now_ms, &tree);
        }
    }

    /// Takes jobs, and ends what is held in one way or another.
    fn work(&mut self) {
        let now_ms = self.now_ms;
        let want = self.random.below(150) as i64;
        let call = self.queue.step_call(&Step::by("w").at(now_ms).want(want));
        self.queue.carry_out_unchecked(&call);
        let snapshot = self.queue.probe.snapshot();
        let frames = crate::probe::check::frames(&snapshot);
        for (first, take) in snapshot.takes() {
            let n = frames[&first];
            if !take.is_empty() || snapshot.header(first).is_some() || self.random.once_in(3) {
                continue;
            }
            let step = Step::by("w").at(now_ms);
            let offset = self.random.below(n);
            let fail = Fail::to(self.random.pick::<&str>(&["waiting", "failed"]));
            let call = match self.random.below(3) {
                0 => self.queue.step_call(&step.fail(&at(first, n, offset), &fail)),
                _ => self.queue.step_call(&step.done(first, n, 0, n)),
            };
            self.queue.carry_out_unchecked(&call);
        }
        for id in snapshot.hash("active").keys() {
            let step = Step::by("w").at(now_ms);
            let fail = Fail::to(self.random.pick::<&str>(&["waiting", "failed"]));
            let call = match self.random.below(3) {
                0 => self.queue.step_call(&step.fail(&of(id), &fail)),
                1 => self.queue.step_call(&step.done_record(id, "1")),
                _ => continue,
            };
            self.queue.carry_out_unchecked(&call);
        }
    }

    fn change(&mut self, line: &[String]) {
        let now_ms = self.now_ms;
        let Self { queue, random, .. } = self;
        let some = if line.is_empty() { 0 } else { random.below(12) };
        let ids: Vec<&String> = (0..some).map(|_| random.pick(line)).collect();
        match random.below(9) {
            0 | 1 => drop(run_unchecked!(queue, PROMOTE_JOBS, now_ms, random.below(30))),
            2 if random.once_in(3) => ids.iter().for_each(|id| remove(queue, id)),
            3 | 4 => {
                for id in ids {
                    if queue.command("HEXISTS", "jobs", &[id]) == Value::Int(0) {
                        remove(queue, id);
                    }
                }
            }
            5 => {
                for id in ids {
                    amend(queue, now_ms, id);
                }
            }
            6 => {
                let state = random.pick(&["failed", "completed"]);
                let (room, number) = (1 + random.below(20), queue.next_number());
                run_unchecked!(queue, RETRY_JOBS, now_ms, "c", "b", number, state, now_ms, room);
            }
            7 if random.once_in(3) => {
                let most = *random.pick(&[5, 300, 1 << 40]);
                let before_ms = *random.pick(&[TIMESTAMP as i64, -1]);
                let (room, number) = (1 + random.below(most), queue.next_number());
                let filter = by_age(before_ms);
                run_unchecked!(queue, CLEAN_JOBS, now_ms, "c", "b", number, "wait", filter, room, "", 0);
            }
            _ => {}
        }
    }

    /// Whether a walk from either end passes over more entries than a call does. A frame is counted as whole.
    fn is_far(&self, entries: &[usize], ranks: &Range<usize>) -> bool {
        let passed = |jobs: usize, sizes: &mut dyn Iterator<Item = &usize>| {
            let mut sum = 0;
            sizes
                .take_while(|size| {
                    sum += **size;
                    sum <= jobs
                })
                .count()
        };
        let len: usize = entries.iter().sum();
        passed(ranks.start, &mut entries.iter()) > ENTRIES_A_CALL
            && passed(len.saturating_sub(ranks.end), &mut entries.iter().rev()) > ENTRIES_A_CALL
    }

    /// Pages from anywhere. Gives how many were found without passing over what is before them.
    fn look(&mut self) -> u64 {
        let line = line(&mut self.queue);
        let snapshot = self.queue.probe.checked();
        let behind = snapshot
            .log
            .iter()
            .filter(|entry| (entry.ms, entry.seq) > snapshot.cursor());
        let entries: Vec<usize> = behind
            .map(|entry| match &entry.content {
                Content::Frame(_) => entry.seq as usize,
                Content::References(ids) => ids.len(),
            })
            .collect();
        let mut found = 0;
        for _ in 0..6 {
            let mut from = self.random.below(line.len() as u64) as usize;
            if self.random.once_in(2) {
                // the middle
                from = line.len() / 3 + from / 3;
            }
            let to = line.len().min(from + 1 + self.random.below(200) as usize);
            if from < to {
                let calls = page_is(&mut self.queue, &line, from..to);
                found += u64::from(calls == 1 && self.is_far(&entries, &(from..to)));
            }
        }
        found
    }
}

#[test]
fn pages_are_parts_of_the_line_whatever_happens_to_it() {
    let kinds = [
        (3, false),
        (50, false),
        (50, true),
        (30, true),
        (2000, false),
        (10_000, false),
    ];
    for (seed, (mixed, gaps)) in (1..).zip(kinds) {
        let mut program = Program {
            queue: TestQueue::fresh(),
            random: Random::seeded(seed),
            now_ms: 1000,
            ids: 0,
            mixed,
            gaps,
        };
        let mut found = 0;
        for round in 0..ROUNDS {
            // many plain jobs, before what else is added or behind it
            if round == seed % 3 {
                add_singles(&mut program.queue, 4 * ENTRIES_A_CALL, &[FRAME]);
            }
            program.now_ms += 1;
            for _ in 0..2 {
                program.add();
            }
            let line = line(&mut program.queue);
            program.change(&line);
            if program.random.once_in(2) {
                program.work();
            }
            found += program.look();
        }
        eprintln!("seed {seed}: {found} pages found by number");
        assert!(mixed < 1000 || found > 0);
    }
}
