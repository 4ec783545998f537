import { readFilter, textOf, type JobFilter, type ReadFilter } from './job-filter.js';

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

const FIELDS: readonly string[] = ['name', 'error', 'olderThan', 'newerThan'];

/**
 * Checks such a filter, which is a filter of jobs that looks among the failed ones.
 * @param others fields that say something else
 * @throws TypeError that names the field
 */
export function readFailedFilter(
  opts: FailedJobsFilter,
  others: readonly string[],
  at: { now: number; queue: string },
): ReadFilter {
  const filter: JobFilter = { states: 'failed' };
  for (const [field, value] of Object.entries(opts)) {
    if (others.includes(field)) continue;
    if (!FIELDS.includes(field)) throw new TypeError(`${field} is no option of this call`);
    if (field === 'error') filter.reason = textOf('error', value);
    else Object.assign(filter, { [field]: value as unknown });
  }
  return readFilter(filter, at);
}
