/** Processors that are files: each job runs in a child of its own, so that it can block, or die, alone. */
import type { Job } from '../job/job.js';
import type { ChildPool } from './pool.js';

/** A processor that has each job run by a child. */
export function sandboxed(
  file: string,
  pool: ChildPool,
): (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown> {
  return async (job, token, signal) => {
    const child = await pool.retain(file);
    try {
      return await child.run(job, token, signal);
    } finally {
      pool.release(child);
    }
  };
}
