//! ChasquiMQ for Rust programs: jobs whose data is a type of yours, and handlers that are async functions.
//!
//! Data, results and progress travel as JSON texts, so a Rust program and a Node program can share a queue: what [`TypedQueue`] adds,
//! a Node worker runs, and the other way round.
//! ```no_run
//! use chasquimq_typed::{AddOptions, JobError, TypedJob, TypedQueue, TypedWorker, WorkerOptions};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Mail {
//!     to: String,
//! }
//!
//! async fn send(job: TypedJob<Mail>) -> Result<String, JobError> {
//!     Ok(format!("sent to {}", job.data.to))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> chasquimq_typed::Result<()> {
//! let queue = TypedQueue::connect("redis://127.0.0.1:6379", "mail").await?;
//! let mail = Mail { to: "ana@example.com".into() };
//! queue.add("welcome", &mail, &AddOptions { attempts: 3, ..AddOptions::default() }).await?;
//!
//! let options = WorkerOptions { concurrency: 100, ..WorkerOptions::default() };
//! let worker = TypedWorker::start("redis://127.0.0.1:6379", "mail", options, send).await?;
//! # let stop = std::future::ready(());
//! stop.await; // a signal, for instance
//! worker.close().await;
//! queue.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`TypedQueue`] adds and looks up, [`TypedWorker`] is what a program holds, `run` is what happens between a job's start and its end.
//! Below them is the engine, [`chasquimq`], which deals in JSON texts; what a program needs of it is here as well.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod event;
mod job;
mod json;
mod options;
mod outcome;
mod queue;
mod report;
mod run;
mod stop;
mod turns;
mod worker;

pub use chasquimq::{
    system_now_ms, unique_id, worker::FailureState, Address, Backoff, Body, ConnectOptions, ConnectionEvent, Counts,
    Deduplication, Discovery, DiscoveryKind, Error, Event, EventMessage, EventReader, Family, Group, GroupRules,
    IdentityCheck, IdentityRefusal, Job, JobOptions, JobRange, Keep, KeyLimit, Keys, Parent, Pick, Policy, Queue,
    RateLimit, Refusal, RefusedCommand, Result, Secret, SentinelOptions, StateFields, TlsOffer, TlsOptions,
    WorkerOptions,
};
pub use event::{OnEvent, TypedWorkerOptions, WorkerEvent};
pub use job::TypedJob;
pub use options::AddOptions;
pub use outcome::JobError;
pub use queue::{BulkJob, FoundJob, TypedQueue};
pub use stop::Stop;
pub use turns::PRIORITY_LIMIT;
pub use worker::TypedWorker;
