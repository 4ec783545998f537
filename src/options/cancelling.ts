import type { ChangeJobsOptions } from './job-filter.js';

/** What became of a job that was to be cancelled: see `queue.cancelJob`. */
export type CancelledState = 'cancelled' | 'signalled' | 'ended' | 'missing';

/** Options of `queue.cancelJob`. */
export interface CancelJobOptions {
  /** Why: the failed reason tells it, and the `reason` of the signal's error. */
  reason?: string | undefined;
  /**
   * Removes what does not run, in place of failing it. What runs is kept as its options say.
   * @defaultValue false
   */
  remove?: boolean | undefined;
  /**
   * Cancels the children that the job waits for as well, and theirs, in whatever queues; the job first.
   * @defaultValue false
   */
  cascade?: boolean;
  /**
   * Resolves once all that runs has ended; a number: rejects when that takes more milliseconds. Children are not waited for.
   * @defaultValue false
   */
  waitForEnd?: boolean | number;
}

/** Options of `queue.cancelJobs`. */
export interface CancelJobsOptions extends ChangeJobsOptions, CancelJobOptions {}

/** What they say, with their defaults; wait: milliseconds, or infinity, 0 for not at all. */
export type CancelRule = Readonly<{ reason: string; remove: boolean; cascade: boolean; wait: number }>;

/**
 * Gives what the options say of cancelling, and the other options.
 * @throws TypeError that names the option that cannot be
 */
export function readCancelOptions<T extends CancelJobOptions>({
  reason = '',
  remove = false,
  cascade = false,
  waitForEnd = false,
  ...others
}: T): { rule: CancelRule; others: Omit<T, keyof CancelJobOptions> } {
  if (typeof reason !== 'string') throw new TypeError('reason must be a text');
  for (const [name, value] of Object.entries({ remove, cascade } as Record<string, unknown>)) {
    if (typeof value !== 'boolean') throw new TypeError(`${name} must be true or false`);
  }
  if (typeof waitForEnd !== 'boolean' && !(typeof waitForEnd === 'number' && waitForEnd > 0)) {
    throw new TypeError('waitForEnd must be true, false or a number of milliseconds above 0');
  }
  return { rule: { reason, remove, cascade, wait: waitForEnd === true ? Infinity : Number(waitForEnd) }, others };
}
