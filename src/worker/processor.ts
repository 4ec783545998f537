import type { Job } from '../job/job.js';
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
/* eslint-enable @typescript-eslint/no-explicit-any */
