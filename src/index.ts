/**
 * ChasquiMQ: BullMQ's API on a Rust engine. Every name and signature here is BullMQ 6.7.0's, but for `NotSupportedError`, `BatchOptions`,
 * `WorkerCloseOptions`, what concerns groups, limits of keys, time limits, deadlines and observables, and the names that BullMQ's paid edition has for these classes.
 *
 * @module chasquimq
 */
export type {
  Backend,
  BackendClient,
  BackendFactory,
  IConnection,
  IQueueBackend,
  IRedisClient,
  RedisClient,
  RedisConnection,
  RedisQueueBackend,
} from './connection/backend.js';
export { Backoffs, type BuiltInStrategies } from './options/backoffs.js';
export { CONNECTION_CLOSED_ERROR_MSG, ConnectionClosedError } from './errors/connection-closed-error.js';
export { DELAYED_ERROR, DelayedError } from './errors/delayed-error.js';
export { GroupMaxSizeExceededError } from './errors/group-max-size-exceeded-error.js';
export { JobCancelledError } from './errors/job-cancelled-error.js';
export { JobExpiredError } from './errors/job-expired-error.js';
export { JobTimeoutError } from './errors/job-timeout-error.js';
export { NotSupportedError } from './errors/not-supported-error.js';
export { RATE_LIMIT_ERROR, RateLimitError } from './errors/rate-limit-error.js';
export { UNRECOVERABLE_ERROR, UnrecoverableError } from './errors/unrecoverable-error.js';
export { WAITING_CHILDREN_ERROR, WaitingChildrenError } from './errors/waiting-children-error.js';
export { WAITING_ERROR, WaitingError } from './errors/waiting-error.js';
export { FlowProducer, type FlowProducerListener } from './flow/flow-producer.js';
export type { JobNode, NodeOpts } from './flow/flow-tree.js';
export { Job } from './job/job.js';
export { PRIORITY_LIMIT } from './options/priority.js';
export { JobScheduler } from './scheduler/job-scheduler.js';
export { delay } from './worker/delay.js';
export { Queue } from './queue/queue.js';
export { removeAllQueueData } from './queue/remove-all-queue-data.js';
export { QueueBase } from './queue/queue-base.js';
export { QueueEvents } from './events/queue-events.js';
export { QueueEventsProducer } from './events/queue-events-producer.js';
export { QueueGetters } from './queue/queue-getters.js';
export { defaultRepeatStrategy, getNextMillis } from './scheduler/next-run.js';
export { Worker } from './worker/worker.js';

export type * from './options/connection.js';
export type * from './options/flow.js';
export type { GroupLimit, JobGroupOptions, WorkerGroupOptions } from './options/group.js';
export type { KeyLimit } from './options/key-limits.js';
export type * from './options/job.js';
export type * from './options/queue.js';
export type * from './options/queue-events.js';
export type * from './options/repeat.js';
export type {
  AdvancedOptions,
  BatchOptions,
  GetNextJobOptions,
  MetricsOptions,
  RateLimiterOptions,
  SandboxedOptions,
  WorkerCloseOptions,
  WorkerOptions,
} from './options/worker.js';

export type { TimeLimit } from './options/time-limits.js';
export type { GroupStatus, GroupWithCount, GroupWithStatus } from './types/group.js';
export type { DatabaseType } from './types/database-type.js';
export type { BackoffStrategy } from './types/backoff-strategy.js';
export { ErrorCode } from './errors/error-code.js';
export type { IoredisListener } from './types/ioredis-listener.js';
export type { JobJson, JobJsonSandbox } from './types/job-json.js';
export type { JobProgress } from './types/job-progress.js';
export type { JobSchedulerJson, JobSchedulerTemplateJson } from './types/job-scheduler-json.js';
export type * from './types/job-state.js';
export type {
  FailedJobsFilter,
  FailedJobsOptions,
  RemoveFailedOptions,
  ReplayFailedOptions,
} from './options/failed-jobs.js';
export type {
  ChangeJobsOptions,
  FindJobsOptions,
  FoundJobs,
  JobFilter,
  JobFilterParent,
  JobsProgress,
  JobsWatch,
  RetryJobsOptions,
} from './options/job-filter.js';
export type { CancelJobOptions, CancelJobsOptions, CancelledState } from './options/cancelling.js';
export type { GroupLatencyOptions, LatencyOptions } from './options/latency.js';
export type { GroupLatency, JobTimes, QueueLatency } from './types/latency.js';
export type { Metrics } from './types/metrics.js';
export { MetricsTime } from './types/metrics-time.js';
export type { MinimalJob } from './types/minimal-job.js';
export type { ObservableLike, ObservedLike } from './job/observable.js';
export type { MinimalQueue } from './job/minimal-queue.js';
export type { ParentKeyOpts, ParentKeys } from './types/parent.js';
export type { ObservingProcessor, Processor } from './worker/processor.js';
export type { QueueEventsListener } from './events/queue-events-listener.js';
export type { QueueListener } from './queue/queue-listener.js';
export type { QueueMeta } from './queue/queue-meta.js';
export type { RepeatStrategy } from './types/repeat-strategy.js';
export type { SandboxedJob, SandboxedJobProcessor } from './sandbox/sandboxed-job.js';
export { MetricNames, TelemetryAttributes } from './telemetry/names.js';
export { SpanKind } from './types/telemetry.js';
export type * from './types/telemetry.js';
export type { WorkerListener } from './worker/worker-listener.js';

// The names of BullMQ's paid edition. Nothing differs, so each is the class itself: `instanceof` holds whichever of its names a program imports.
export { FlowProducer as FlowProducerPro } from './flow/flow-producer.js';
export { Job as JobPro } from './job/job.js';
export { JobScheduler as JobSchedulerPro } from './scheduler/job-scheduler.js';
export { Queue as QueuePro } from './queue/queue.js';
export { QueueEvents as QueueEventsPro } from './events/queue-events.js';
export { Worker as WorkerPro } from './worker/worker.js';
export type { QueueEventsListener as QueueEventsListenerPro } from './events/queue-events-listener.js';
export type { SandboxedJob as SandboxedJobPro } from './sandbox/sandboxed-job.js';
