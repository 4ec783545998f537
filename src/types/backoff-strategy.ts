import type { MinimalJob } from './minimal-job.js';

/**
 * Computes the milliseconds until the next try; 0 retries at once, -1 fails the job for good.
 * `attemptsMade` counts the failure at hand: 1 after the first.
 */
export type BackoffStrategy = (
  attemptsMade: number,
  type?: string,
  err?: Error,
  job?: MinimalJob,
) => Promise<number> | number;
