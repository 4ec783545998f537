//! The ChasquiMQ engine: a job queue on Redis streams. Knows Redis, knows nothing of JavaScript.
//!
//! Rust programs use `chasquimq-typed`, a crate on top of this one; the engine deals in JSON texts.
//!
//! # Words
//! - **job**: a name, data (JSON text), options. Its id is a number that counts up, or the caller's.
//! - **frame**: 1 to 64 plain jobs in one entry of the log.
//! - **record**: a job with fields of its own, because it has a custom id or a priority, is delayed, failed, was looked at closely...
//! - **reference**: a log entry with the ids of records.
//! - **waiting list**: what waits: the front list, then the log from the cursor on; jobs with a priority come after it.
//! - **holder**: who holds an active job or frame, since when, and under which **claim**. **lease**: what shows that the worker is alive.
//! - **run**: consecutive jobs of a frame that completed together and are kept.
//! - **outcome**: how a job ended. **report**: outcomes told together.
//! - **offer**: jobs that were handed over to be started. Each is **drawn** right before it starts; until then it can be taken back.
//! - **told**: an idle worker is told of work by a channel (`lua/states/waiting_workers.lua`); where none waits, a **marker** says that there is work. **memo**: what the server remembers of a call (`lua/queue/memo.lua`).
//! - **step**: a worker's round trip: finish what is done, fetch what can start. It goes **along** where somebody else's call carries it.
//! - **flow**: a tree of jobs in any queues. A **parent** waits, parked, for its **children**, and knows what became of them; a child's
//!   **key** is the name of its queue, as users see it, and its id (`flows`, `lua/states/parents.lua`).
//! - **parent header**: what a frame of children begins with: what their ids begin with, and whose they are. **sibling range**: those of one parent in one
//!   frame, of which the parent is told at once when they end together (`lua/jobs/frame`, `lua/jobs/sibling_ranges`).
//! - **large**: data and results that lie apart from what scripts read (`lua/jobs/large.lua`).
//! - **scheduler**: what makes jobs again and again. **iteration**: a job of one. **slot**: the time for which it was made.
//! - **manual**: without a worker's loop: one job a call, under a token of the caller's (`worker::manual`).
//!
//! # A job's life (script on each arrow)
//! ```text
//! new --add--> waiting --step--> active --step--> completed | failed     (waiting: with a priority, prioritized)
//!      \          ^ ^               |  \--step--> delayed (retry with backoff)
//!       \--add--> | delayed <-------/  \--step--> waiting (retry at once)
//!                 |    \--step (due), move_delayed, promote_jobs--> waiting
//!                 \--recover_stalled-- active (its worker is gone)     completed | failed --retry_job(s)--> waiting
//! new --add_and_step--> active (a worker waits for it)
//! new --add_flows--> waiting-children (parents) --step (of the last child), remove_*, remove_dependency--> waiting | delayed
//!                    active --move_to_waiting_children--> waiting-children
//! waiting | delayed | waiting-children --cancel_jobs, change_jobs--> failed
//! waiting | delayed | waiting-children --fail_expired--> failed (it has not started in time)
//! ```
//! # Reading order
//! [`add`] (1.), [`flows`] (the same for trees), `worker::take` (2.), `worker::work_loop` (3. the loop), `worker::record` (4.), [`retry`] (5.), then
//! [`queue`] (by id, by rank, many at once), [`active`], [`lost`] (jobs that nobody runs), `schedulers`, [`events`], [`job`] (how jobs are stored), [`redis`]
//! (the server), and `lua/` beside them. The crate `chasquimq-migrate` moves BullMQ's queues.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod active;
pub mod add;
mod clock;
pub mod error;
pub mod events;
pub mod flows;
#[cfg(test)]
mod garbage;
mod id;
pub mod job;
pub mod keys;
pub mod latency;
pub mod lost;
pub mod queue;
pub mod redis;
pub mod retry;
mod schedulers;
pub mod worker;

pub use crate::redis::{
    call::functions::Found as FoundLibrary,
    connection::Connection,
    reach::{
        credentials::{AskCredentials, Credentials},
        identity::{IdentityCheck, IdentityRefusal},
        options::{Address, ConnectOptions, Discovery, DiscoveryKind, Family, SentinelOptions, TlsOptions},
        secret::Secret,
        tls_offer::TlsOffer,
    },
    session::ConnectionEvent,
    sharing::{Access, Sharing},
};
pub use add::{AddBatch, Added, NewJob, Producer};
pub use clock::{millis, system_now_ms, LONGEST_MS};
pub use error::{Error, Refusal, RefusedCommand, Result};
pub use events::{Event, EventMessage, EventReader};
pub use flows::{
    children::{ChildKind, ChildPage, ChildRange, Children, Extent, TreeNode},
    AddedFlows, FlowException, FlowNode, Flows, NamedChildren, NodeParent,
};
pub use id::unique_id;
pub use job::{
    deduplication::Deduplication,
    frame,
    group::Group,
    keep::Keep,
    key_limit::KeyLimit,
    msgpack,
    options::{Backoff, JobOptions},
    record, Body, Job, Parent, Policy, StateFields,
};
pub use keys::Keys;
pub use queue::{
    by_id::RetryOptions,
    cancel::Cancelled,
    find::{Change, Pick, Picked},
    groups::{GroupSetting, GroupState, ListedGroup},
    libraries::ServerLibrary,
    lists::JobRange,
    metrics::{Client, Counts, Metrics},
    Queue,
};
pub use schedulers::{
    scheduler_of, CatchUp, Following, Overlap, Resumed, Resumption, Rules, Scheduler, Upsert, Upserted,
};
pub use worker::{GroupRules, RateLimit, Worker, WorkerOptions};
