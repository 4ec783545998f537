//! Short paths against the general ones, by random operations on two queues. Both are asked the same. One of them does not know that nothing limits
//! it (`unlimited`, `lua/rules/limits.lua`), and its jobs are added as several are, so that short paths leave everything to what serves
//! any number of jobs. After each operation the reply, every key and every event of the two are the same.
//! `TWINS_SEED` and `TWINS_OPERATIONS` repeat a failure or make the search longer.

mod adds;
mod changes;
mod shown;
mod steps;

use std::collections::BTreeMap;

use chasquimq::redis::call::library::CONFIGURE;
use redis::Value;
use shown::{one_by_one, show_steady, state_of, unpadded, without_windows, UNLIMITED};

use crate::{
    given::{queue::TestQueue, step::Place},
    model::{random::Random, setting},
};

const SEEDS: std::ops::Range<u64> = 1..17;
const OPERATIONS: u64 = 100;
const OWNERS: [&str; 2] = ["w0", "w1"];
const IDS: [&str; 5] = ["x0", "x1", "x2", "x3", "x4"];
/// A time of as many digits as real ones have.
const START_MS: u64 = 1_700_000_000_000;

/// A job that a worker was given.
#[derive(Debug, Clone)]
struct Held {
    place: Place,
    claim: u64,
}

/// What the jobs of a run have; each run has some of it, as much goes by short paths only where other things are absent.
#[derive(Debug)]
struct Kinds {
    frames_of_several: bool,
    records: bool,
    delays: bool,
    priorities: bool,
    deduplication: bool,
    flows: bool,
    limits: bool,
    failures: bool,
    amendments: bool,
    metrics: bool,
    /// Results and data that lie apart.
    large: bool,
    /// More than a short path takes.
    many: bool,
}

struct Twins {
    pair: [TestQueue; 2],
    random: Random,
    kinds: Kinds,
    now_ms: u64,
    number: u64,
    /// More jobs come than end.
    is_filling: bool,
    held: BTreeMap<&'static str, Vec<Held>>,
    seed: u64,
    history: Vec<String>,
}

#[test]
fn short_paths_do_what_the_general_ones_do() {
    let seeds = setting("TWINS_SEED").map_or(SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        let mut twins = Twins::seeded(seed);
        for _ in 0..setting("TWINS_OPERATIONS").unwrap_or(OPERATIONS) {
            twins.operate();
        }
    }
}

impl Twins {
    fn seeded(seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let mut some = || random.once_in(2);
        let kinds = Kinds {
            frames_of_several: some(),
            records: some(),
            delays: some(),
            priorities: some(),
            deduplication: some(),
            flows: some() && some(),
            limits: some() && some(),
            failures: some(),
            amendments: some(),
            metrics: some(),
            large: some() && some(),
            many: some() && some(),
        };
        let mut twins = Self {
            pair: [TestQueue::told_before(START_MS), TestQueue::told_before(START_MS)],
            random,
            now_ms: START_MS,
            number: 0,
            is_filling: true,
            held: OWNERS.iter().map(|owner| (*owner, Vec::new())).collect(),
            seed,
            history: vec![format!("{kinds:?}")],
            kinds,
        };
        if twins.random.once_in(3) {
            twins.ask("configure", &CONFIGURE, &["test", "64"].map(str::to_owned));
        }
        // from the start, or once there are jobs
        if twins.random.once_in(2) {
            twins.step();
        }
        twins
    }

    fn operate(&mut self) {
        // several operations share a millisecond now and then
        self.now_ms += self.random.below(3) * self.random.below(12);
        if self.random.once_in(15) {
            self.is_filling = !self.is_filling;
        }
        match self.random.below(100) {
            0..=29 if self.is_filling => self.add(),
            0..=9 => self.add_and_step(),
            10..=79 => self.step(),
            80..=89 => self.change(),
            90..=93 => self.move_itself(),
            94..=95 => self.lose(),
            _ => self.now_ms += self.random.below(2000),
        }
    }

    /// Has both do it; `by_itself`: a job is added as a single one is. Gives the first one's reply.
    fn both(&mut self, what: String, operate: impl Fn(&mut TestQueue, bool) -> Value) -> Value {
        self.history.push(format!("{} {what}", self.now_ms - START_MS));
        let [short, general] = &mut self.pair;
        if general.command("EXISTS", "state", &[]) == Value::Int(1) {
            let at = (8 * UNLIMITED.0).to_string();
            general.command("SETRANGE", "state", &[at.as_str(), "\0\0\0\0\0\0\0\0"]);
        }
        let (reply, of_other) = (operate(short, true), operate(general, false));
        let replies = [show_steady(&reply), show_steady(&of_other)];
        let names = self
            .pair
            .each_ref()
            .map(|queue| queue.probe.keys.qualified_name.as_str());
        let [own, others] = [0, 1].map(|at| without_windows(&replies[at]).replace(names[at], "q"));
        self.same(&own, &others);
        let [left, right] = self.pair.each_mut().map(|queue| {
            let told: Vec<String> = queue.groups().iter().flatten().flat_map(one_by_one).collect();
            let told = told.join("\n").replace(&queue.probe.keys.qualified_name, "q");
            let keys = without_windows(&unpadded(&queue.show()));
            format!("{keys}\nstate {:?}\ntold\n{told}", state_of(queue))
        });
        self.same(&left, &right);
        reply
    }

    fn same(&self, short: &str, general: &str) {
        let differs = |(one, other): &(&str, &str)| one != other;
        if short != general {
            let lines: Vec<_> = short.lines().zip(general.lines()).filter(differs).collect();
            panic!("by the short paths, and by the general ones: {lines:#?}\n{short}\n\n{general}");
        }
    }

    /// A number that no call had before.
    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

// a failure, wherever it is noticed, is told with what led there
impl Drop for Twins {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TWINS_SEED={}\n{}", self.seed, self.history.join("\n"));
        }
    }
}
