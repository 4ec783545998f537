//! A scheduler: what it is told, by what rules it runs, what is stored of it, and what calls about it come to.

/// A scheduler, as it is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Upsert {
    /// Its id.
    pub id: String,
    /// Name of its jobs.
    pub name: String,
    /// Their data, JSON text.
    pub data: String,
    /// Their options as the user gave them, JSON text. Kept for getters.
    pub template: String,
    /// When it runs, as the user said, JSON text. Kept for getters.
    pub repeat: String,
    /// Options of the next iteration, JSON text, without what depends on its slot.
    pub options: String,
    /// Runs each so many ms; 0: at times the caller computes.
    pub every_ms: u64,
    /// The next of those times, epoch ms.
    pub next_ms: u64,
    /// By how much its slots are off multiples of `every_ms`; `None`: as before, or as its first run is.
    pub offset_ms: Option<u64>,
    /// Not before, epoch ms; 0: no matter. Only with `every_ms`.
    pub start_ms: u64,
    /// Its jobs are due by up to so many ms later than their slots.
    pub jitter_ms: u64,
    /// Of which slot `next_ms` is the time behind, epoch ms; 0: the time behind now.
    pub after_ms: u64,
    /// What the scheduler was told before goes on where it is told the same again.
    pub keeps: bool,
}

/// What an upsert came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upserted {
    /// Slot of the next iteration, and how far off it is, ms.
    Made(u64, u64),
    /// The scheduler is paused.
    Paused,
    /// Nothing yet: a worker has just taken the latest iteration. The caller upserts the time behind that.
    AskBehind,
}

/// Where a scheduler that was paused goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Resumption {
    /// The scheduler.
    pub id: String,
    /// What it held, as [`Scheduler::held`] tells it.
    pub held: String,
    /// Slot of the next iteration; 0: the scheduler runs each so many ms, and knows. `None`: there is none.
    pub next_ms: Option<u64>,
    /// Options of the next iteration, JSON text, without what depends on its slot.
    pub options: String,
    /// As [`Upsert::jitter_ms`].
    pub jitter_ms: u64,
}

/// What becomes of an iteration that is due while the one before has not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Both run.
    #[default]
    Allow,
    /// It does not run.
    Skip,
    /// It runs when that has ended.
    Queue,
}

/// What becomes of iterations that were missed: the next one was due before a worker took them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// The first of them runs late, the others do not run.
    #[default]
    First,
    /// None of them runs.
    None,
    /// The latest of them runs.
    Latest,
    /// All of them run.
    All,
}

/// By what rules a scheduler runs, where it has any.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// Whether its jobs may run side by side.
    pub overlap: Overlap,
    /// What is made up for.
    pub catch_up: CatchUp,
    /// Whether the taken iteration was missed, where the caller computes the times.
    pub missed: bool,
    /// As [`Upsert::jitter_ms`].
    pub jitter_ms: u64,
    /// Token of who holds the taken iteration.
    pub token: String,
}

/// What follows an iteration that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Following {
    /// Id of the iteration that was taken.
    pub id: String,
    /// The scheduler.
    pub scheduler: String,
    /// Slot of the iteration that was taken.
    pub slot: u64,
    /// Slot of the next; 0: the scheduler runs each so many ms, and knows. `None`: there is none.
    pub next_ms: Option<u64>,
    /// The first slot behind the taken one, where `next_ms` passes it over because it is past.
    pub first_ms: Option<u64>,
    /// The scheduler's rules, if it has any.
    pub rules: Option<Rules>,
    /// Options of the next, JSON text, without what depends on its slot.
    pub options: String,
}

/// A stored scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheduler {
    /// Its id.
    pub id: String,
    /// Slot of its latest iteration, epoch ms.
    pub next_ms: u64,
    /// Iterations so far.
    pub count: u64,
    /// Name of its jobs.
    pub name: String,
    /// Their data, JSON text.
    pub data: String,
    /// Their options, JSON text.
    pub template: String,
    /// When it runs, JSON text.
    pub repeat: String,
    /// By how much its slots are off.
    pub offset_ms: u64,
    /// Of one that is paused, the options of the iteration that is to come, JSON text; empty: none is. `None`: it is not paused.
    pub held: Option<String>,
}

/// Where a call found a scheduler that is to be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    /// It goes on.
    GoesOn,
    /// There is none.
    Missing,
    /// It holds another iteration by now.
    Changed,
}
