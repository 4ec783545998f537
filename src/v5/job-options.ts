/** Options of BullMQ 5, as the engine takes them. */
import { PRIORITY_LIMIT } from '../options/priority.js';
import type { JobsOptions as BaseJobsOptions } from '../options/job.js';
import type { JobsOptions } from './types.js';

/** The last priority until BullMQ 5.81, which made it one less: the engine sorts exactly up to there. */
const LAST_PRIORITY = PRIORITY_LIMIT + 1;

/**
 * Options with `debounce` as `deduplication`, and a priority that the engine has; the object given where it needs neither, so that jobs
 * that share their options go on sharing them.
 * @throws Error with BullMQ's text for a `debounce` without an id
 */
export function engineOptions(opts: JobsOptions): BaseJobsOptions;
export function engineOptions(opts: JobsOptions | undefined): BaseJobsOptions | undefined;
export function engineOptions(opts: JobsOptions | undefined): BaseJobsOptions | undefined {
  if (!opts || !('debounce' in opts || opts.priority === LAST_PRIORITY)) return opts;
  const { debounce, ...given } = opts;
  if (debounce) {
    if (!debounce.id) throw new Error('Debounce id must be provided');
    given.deduplication ??= debounce;
  }
  if (given.priority) given.priority = enginePriority(given.priority);
  return given;
}

export function enginePriority(priority: number): number {
  return priority === LAST_PRIORITY ? PRIORITY_LIMIT : priority;
}
