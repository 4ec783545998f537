/** What flows are made of in BullMQ 5: any job may name its children, also none. Source: BullMQ 5.81. */
import type { DeduplicationOptions } from '../options/job.js';
import type { JobsOptions } from './types.js';

/** What every job of a flow has. */
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
  opts?: Omit<T, 'repeat'>;
  /** The jobs that it waits for. */
  children?: FlowChildJob[];
}

/** A job of a flow below its root. */
export type FlowChildJob = FlowJobBase<Omit<JobsOptions, 'debounce' | 'deduplication' | 'parent'>>;

/** Options of the root of a flow. */
type RootOptions = Omit<JobsOptions, 'debounce' | 'deduplication'> & {
  debounce?: Omit<DeduplicationOptions, 'replace'>;
  deduplication?: Omit<DeduplicationOptions, 'replace'>;
};

/** A tree of jobs: each waits for its children. Its root may be a child of a job that exists. */
export type FlowJob = FlowJobBase<RootOptions>;
