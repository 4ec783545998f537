/** Processors that are files: each job runs in a child of its own, so that it can block, or die, alone. */
import { JobTimeoutError } from '../errors/job-timeout-error.js';
import type { Job } from '../job/job.js';
import type { ChildPool } from './pool.js';

/** A processor that has each job run by a child. */
export function sandboxed(
  file: string,
  pool: ChildPool,
): (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown> {
  return async (job, token, signal) => {
    const child = await pool.retain(file, job);
    try {
      const reason = signal?.reason as unknown;
      // its time was over before its child was there
      if (reason instanceof JobTimeoutError) throw reason;
      return await child.run(job, token, signal);
    } finally {
      pool.release(child);
    }
  };
}
