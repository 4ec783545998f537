import { checkOptions, type ChangeJobsOptions } from './job-filter.js';

/** What became of a job that was to be cancelled: see `queue.cancelJob`. */
export type CancelledState = 'cancelled' | 'signalled' | 'ended' | 'missing';

/** How jobs are cancelled. */
export interface CancelOptions {
  /** Why: the failed reason tells it, and the `reason` of the signal's error. */
  reason?: string | undefined;
  /**
   * Removes what does not run, in place of failing it. What runs is kept as its options say.
   * @defaultValue false
   */
  remove?: boolean | undefined;
}

/** Options of `queue.cancelJob`. */
export interface CancelJobOptions extends CancelOptions {
  /**
   * Cancels the children that the job waits for as well, and theirs, in whatever queues; the job first.
   * @defaultValue false
   */
  cascade?: boolean;
  /**
   * Resolves once a job that runs has ended; a number: rejects when that takes more milliseconds. Children are not waited for.
   * @defaultValue false
   */
  waitForEnd?: boolean | number;
}

/** Options of `queue.cancelJobs`. */
export interface CancelJobsOptions extends ChangeJobsOptions, CancelOptions {}

/**
 * Gives the options with their defaults.
 * @throws TypeError that names the option that cannot be
 */
export function checkCancelOptions(
  { reason = '', remove = false, ...others }: CancelOptions,
  { cascade = false, waitForEnd = false }: { cascade?: unknown; waitForEnd?: unknown } = {},
): { reason: string; remove: boolean } {
  checkOptions(others, []);
  if (typeof reason !== 'string') throw new TypeError('reason must be a text');
  for (const [name, value] of Object.entries({ remove, cascade })) {
    if (typeof value !== 'boolean') throw new TypeError(`${name} must be true or false`);
  }
  if (typeof waitForEnd !== 'boolean' && !(typeof waitForEnd === 'number' && waitForEnd > 0)) {
    throw new TypeError('waitForEnd must be true, false or a number of milliseconds above 0');
  }
  return { reason, remove };
}
