import type { Job } from '../job/job.js';
import type { ObservableLike } from '../job/observable.js';
import type { JobProgress } from '../types/job-progress.js';

/**
 * Handles one job. `signal` is given only to a function that declares three parameters.
 * Source: BullMQ 6.7.0 `Processor`.
 */
/* eslint-disable @typescript-eslint/no-explicit-any -- the defaults are BullMQ's: untyped queues stay untyped */
export type Processor<T = any, R = any, N extends string = string, P extends JobProgress = JobProgress> = (
  job: Job<T, R, N, P>,
  token?: string,
  signal?: AbortSignal,
) => Promise<R>;

/** Handles one job by what it returns to be observed: the last value is the result. Not in BullMQ; the paid edition has it. */
export type ObservingProcessor<T = any, R = any, N extends string = string, P extends JobProgress = JobProgress> = (
  job: Job<T, R, N, P>,
  token?: string,
  signal?: AbortSignal,
) => ObservableLike<R> | Promise<ObservableLike<R>>;
/* eslint-enable @typescript-eslint/no-explicit-any */
