import type { NativePick } from '../native/types.js';

/**
 * Which failed jobs a call is about: those for which all fields given are true. An extension: BullMQ has nothing like it.
 */
export interface FailedJobsFilter {
  /** The job's name, or one of these. */
  name?: string | readonly string[];
  /** A text that the failure reason contains, letter for letter. */
  error?: string;
  /** It failed so many milliseconds ago, or earlier. */
  olderThan?: number;
  /** It failed so many milliseconds ago, or later. */
  newerThan?: number;
}

/** Options of `queue.getFailedJobs`. */
export interface FailedJobsOptions extends FailedJobsFilter {
  /**
   * Jobs to pass over.
   * @defaultValue 0
   */
  start?: number;
  /**
   * Jobs to give at most.
   * @defaultValue 100
   */
  limit?: number;
}

/** Options of `queue.replayFailed`. */
export interface ReplayFailedOptions extends FailedJobsFilter {
  /** Jobs to put back at most; all of them unless given. */
  limit?: number;
  /**
   * Sets the counts of tries and starts to 0, so that the job has all its `attempts` again.
   * @defaultValue false
   */
  resetAttempts?: boolean;
}

/** Options of `queue.removeFailed`. */
export interface RemoveFailedOptions extends FailedJobsFilter {
  /** Jobs to remove at most; all of them unless given. */
  limit?: number;
}

const FIELDS = ['name', 'error', 'olderThan', 'newerThan'];

/**
 * Checks a filter. A field that is there must say something: `{ name: undefined }` could otherwise mean every job.
 * @throws TypeError that names the field
 */
export function readFilter(filter: FailedJobsFilter, others: readonly string[], now: number): NativePick {
  for (const field of Object.keys(filter)) {
    if (!FIELDS.includes(field) && !others.includes(field)) throw new TypeError(`${field} is no option of this call`);
  }
  const pick: NativePick = {};
  if ('name' in filter) {
    const names = typeof filter.name === 'string' ? [filter.name] : filter.name;
    const valid = Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === 'string');
    if (!valid) throw new TypeError('name must be a text, or a list of texts');
    pick.names = [...names];
  }
  if ('error' in filter) {
    if (typeof filter.error !== 'string' || filter.error === '') throw new TypeError('error must be a text');
    pick.error = filter.error;
  }
  if ('olderThan' in filter) pick.before = Math.max(now - readNumber('olderThan', filter.olderThan), 0);
  if ('newerThan' in filter) pick.after = Math.max(now - readNumber('newerThan', filter.newerThan), 0);
  return pick;
}

/** @throws TypeError unless it is a number of 0 or more */
export function readNumber(field: string, value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0)) throw new TypeError(`${field} must be a number of 0 or more`);
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}
