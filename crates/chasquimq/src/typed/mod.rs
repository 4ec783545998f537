//! The engine for Rust programs: jobs whose data is a type of yours, and handlers that are async functions.
//!
//! Data, results and progress travel as JSON texts, so a Rust program and a Node program can share a queue: what [`TypedQueue`] adds,
//! a Node worker runs, and the other way round.
//!
//! [`queue`] adds and looks up, [`worker`] is what a program holds, `run` is what happens between a job's start and its end.

pub mod event;
pub mod job;
pub mod options;
pub mod outcome;
pub mod queue;
mod report;
mod run;
pub mod worker;

pub use event::{TypedWorkerOptions, WorkerEvent};
pub use job::TypedJob;
pub use options::AddOptions;
pub use outcome::JobError;
pub use queue::{BulkJob, FoundJob, TypedQueue};
pub use worker::TypedWorker;
