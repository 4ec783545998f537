/**
 * `chasquimq/v5`: for programs that were written for BullMQ 5. The classes of `chasquimq`, with what BullMQ 6 has dropped; where a name
 * stands below, it is the one that counts.
 *
 * @module chasquimq/v5
 */
export * from '../index.js';
export { JobScheduler, QueueBase, QueueGetters } from './base-classes.js';
export type { ClusterOptions, ConnectionOptions, RedisOptions } from './connection.js';
export { FlowProducer, type JobNode } from './flow-producer.js';
export { Job } from './job.js';
export { Queue } from './queue.js';
export { QueueEvents } from './queue-events.js';
export { QueueEventsProducer } from './queue-events-producer.js';
export { Repeat } from './repeat.js';
export { Worker } from './worker.js';
export type { Processor, QueueListener, WorkerListener } from './listeners.js';
export type { FlowChildJob, FlowJob, FlowJobBase } from './flow.js';
export type { MinimalQueue } from './minimal-queue.js';
export type { QueueBaseOptions, QueueOptions, RepeatBaseOptions, WorkerOptions } from './options.js';
export type { Meter, Telemetry } from './telemetry.js';
export type {
  BaseJobOptions,
  BulkJobOptions,
  CompressableJobOptions,
  JobsOptions,
  JobType,
  QueueEventsListener,
  RedisClient,
  RepeatableJob,
  RepeatOptions,
} from './types.js';

// The names of BullMQ's paid edition, which stands on BullMQ 5.
export { JobScheduler as JobSchedulerPro } from './base-classes.js';
export { FlowProducer as FlowProducerPro } from './flow-producer.js';
export { Job as JobPro } from './job.js';
export { Queue as QueuePro } from './queue.js';
export { QueueEvents as QueueEventsPro } from './queue-events.js';
export { Worker as WorkerPro } from './worker.js';
export type { QueueEventsListener as QueueEventsListenerPro } from './types.js';
