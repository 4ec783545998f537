import type { DeduplicationOptions, JobsOptions } from './job.js';
import type { QueueOptions } from './queue.js';

type FlowJobOpts = Omit<JobsOptions, 'deduplication'> & { deduplication?: Omit<DeduplicationOptions, 'replace'> };

/** What every job of a flow has. Source: BullMQ 6.7.0 `FlowJobBase`. */
export interface FlowJobBase<T> {
  /** Name of the job. */
  name: string;
  /** Name of the queue it goes to. */
  queueName: string;
  /** Data of the job. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- BullMQ's: data is of any type
  data?: any;
  /**
   * Prefix of that queue.
   * @defaultValue the producer's
   */
  prefix?: string;
  /** Options of the job. */
  opts?: T;
}

/** A child without children. */
export type FlowNestedLeafJob = FlowJobBase<Omit<FlowJobOpts, 'parent' | 'repeat'>> & { children?: never };

/** A job that waits for its children. */
export type FlowParentJob = FlowJobBase<Omit<FlowJobOpts, 'deduplication' | 'parent' | 'repeat'>> & {
  /** The jobs that it waits for. */
  children: FlowJobNode[];
};

/** A job below the root of a flow. */
export type FlowJobNode = FlowParentJob | FlowNestedLeafJob;

/** A flow of one job, which may be a child of a job that exists. */
export type FlowRootLeafJob = FlowJobBase<Omit<FlowJobOpts, 'repeat'>> & { children?: never };

/** The root of a flow, which may be a child of a job that exists. */
export type FlowRootParentJob = FlowJobBase<Omit<FlowJobOpts, 'repeat'>> & {
  /** The jobs that it waits for. */
  children: FlowJobNode[];
};

/** A tree of jobs: each waits for its children. Source: BullMQ 6.7.0 `FlowJob`. */
export type FlowJob = FlowRootLeafJob | FlowRootParentJob;

/** Options of queues, by their names; `defaultJobOptions` is what counts. */
export type FlowQueuesOpts = Record<string, Omit<QueueOptions, 'connection' | 'prefix'>>;

/** Options of `FlowProducer.add`. */
export interface FlowOpts {
  /** Options of the queues that jobs of the flow go to. */
  queuesOptions: FlowQueuesOpts;
}
