import type { ParentKeys } from '../types/parent.js';
import type { JobGroupOptions } from './group.js';
import type { KeyLimit } from './key-limits.js';
import type { RepeatOptions } from './repeat.js';

/** When a failed job is tried again. Source: BullMQ 6.7.0 `BackoffOptions`. */
export interface BackoffOptions {
  /** `fixed`, `exponential`, or a name that the worker's `settings.backoffStrategy` understands. */
  type: 'fixed' | 'exponential' | (string & {});
  /** Base delay in milliseconds. */
  delay?: number;
  /**
   * Share of the delay that is random, 0 to 1.
   * @defaultValue 0
   */
  jitter?: number;
}

/**
 * Which finished jobs to keep. Applied to the whole set of completed (or failed) jobs each time one is added to it;
 * nothing is removed by time alone.
 * Source: BullMQ 6.7.0 `KeepJobs`.
 */
export type KeepJobs =
  | {
      /** Number of jobs to keep, the newest ones. */
      count: number;
    }
  | {
      /** Age in seconds past which jobs are removed. */
      age: number;
      /** Number of jobs to keep, the newest ones. */
      count?: number;
      /**
       * Most jobs removed by age each time a job finishes.
       * @defaultValue 1000
       */
      limit?: number;
    };

/** Reference to an existing job that becomes the parent. */
export interface ParentOptions {
  /** Id of the parent job. */
  id: string;
  /** Qualified name of the parent's queue (`queue.qualifiedName`). */
  queue: string;
}

/** Describes the parent of a job. */
export interface Parent<T> {
  /** Name of the parent job. */
  name: string;
  /** Prefix of the parent's queue. */
  prefix?: string;
  /** Name of the parent's queue. */
  queue?: string;
  /** Data of the parent job. */
  data?: T;
  /** Options of the parent job. */
  opts?: JobsOptions;
}

/** Options a queue can set for all its jobs (`defaultJobOptions`). Source: BullMQ 6.7.0 `DefaultJobOptions`. */
export interface DefaultJobOptions {
  /**
   * Creation time, epoch milliseconds; `delay` counts from it.
   * @defaultValue Date.now()
   */
  timestamp?: number;
  /**
   * 1 (most urgent) to 2,097,151; 0 is no priority, and goes before all of them.
   * @defaultValue 0
   */
  priority?: number;
  /**
   * Milliseconds to wait before the job may start.
   * @defaultValue 0
   */
  delay?: number;
  /**
   * Total number of tries.
   * @defaultValue 1
   */
  attempts?: number;
  /** Delay between tries; a number is that many milliseconds each time. */
  backoff?: number | BackoffOptions;
  /**
   * Puts the job at the front of the waiting list. Does nothing with a priority, nor when a delayed job is due.
   * @defaultValue false
   */
  lifo?: boolean;
  /**
   * The group that the job waits in. Groups are served in turns, after jobs without one. Not together with `priority` and `lifo`. Not in BullMQ; the paid edition
   * has it.
   */
  group?: JobGroupOptions;
  /** `true` removes the job when it completes; a number or an object says which completed jobs to keep. By default all are kept. */
  removeOnComplete?: boolean | number | KeepJobs;
  /** `true` removes the job when it has failed for good; a number or an object says which failed jobs to keep. By default all are kept. */
  removeOnFail?: boolean | number | KeepJobs;
  /**
   * Milliseconds that one try may take, for this job; it goes before the worker's `ttl`, which says what happens then. Not in BullMQ.
   * @defaultValue the worker's `ttl`
   */
  timeout?: number;
  /**
   * A try that took too long, by `timeout` or the worker's `ttl`, is the last one: the job fails for good, whatever `attempts` are left. Not in BullMQ.
   * @defaultValue false
   */
  timeoutIsFinal?: boolean;
  /**
   * By when the job is to have started: so many milliseconds after it is added, by the server's clock, or a Date. Later it fails for good, with a
   * {@link JobExpiredError}. Of a job scheduler's job the time counts from when that is due. Not in BullMQ.
   * @defaultValue never
   */
  expireAfter?: number | Date;
  /**
   * Keys, 1 to 8, of which each start of the job, also of a further try, uses something. Where one of them has no room the job does not start, and uses none of
   * them: it is `delayed` until there may be room. Of the jobs of a queue no more starts than the limits let, whatever the workers. Not in BullMQ.
   * @defaultValue none
   */
  limits?: KeyLimit[];
  /** Number of log rows to keep, the newest ones. */
  keepLogs?: number;
  /** Number of stack traces to keep, the newest ones; one is recorded for each failed try. */
  stackTraceLimit?: number;
  /** Largest `data` accepted, in bytes of its JSON text. */
  sizeLimit?: number;
}

/** Options of one job, without those of {@link CompressableJobOptions}. Source: BullMQ 6.7.0 `BaseJobOptions`. */
export interface BaseJobOptions extends DefaultJobOptions {
  /** Id of the job scheduler that made this job. */
  repeatJobKey?: string;
  /**
   * Id of the job. While a job of this id exists, adding it again changes nothing.
   * @defaultValue the next number of the queue's counter
   */
  jobId?: string;
  /** The job that waits for this one. */
  parent?: ParentOptions;
  /** Time of the scheduler iteration, epoch milliseconds. */
  prevMillis?: number;
}

/** Discards adds with the deduplication id of a job that has not ended; with `ttl`, for that time. Source: BullMQ 6.7.0 `DeduplicationOptions`. */
export type DeduplicationOptions = {
  /** The deduplication id, by which jobs are compared. */
  id: string;
  /** Milliseconds for which later adds are discarded. */
  ttl?: number;
  /** Every discarded add starts `ttl` anew. */
  extend?: boolean;
  /** A job that is still delayed is replaced by the new one. */
  replace?: boolean;
  /** A job that is still delayed becomes due after the new job's delay. */
  reschedule?: boolean;
  /** While the job is active, the latest add is kept and becomes a job when the active one has finished. */
  keepLastIfActive?: boolean;
  /** Adds are discarded until the job has started, not until it has ended. Not in BullMQ. */
  until?: 'started';
};

/** Options that are stored under short names. Source: BullMQ 6.7.0 `CompressableJobOptions`. */
export type CompressableJobOptions = {
  /** Discards this add when a job with the same deduplication id has not ended. */
  deduplication?: DeduplicationOptions;
  /** The parent fails when this job has failed. */
  failParentOnFailure?: boolean;
  /** The parent starts as soon as this job has failed. */
  continueParentOnFailure?: boolean;
  /** The parent counts this job as done when it has failed, and can read why. */
  ignoreDependencyOnFailure?: boolean;
  /** The parent forgets this job when it has failed. */
  removeDependencyOnFailure?: boolean;
  /** What a telemetry library carries with the job. */
  telemetry?: {
    /** Trace context to carry to the worker. */
    metadata?: string;
    /**
     * Does not carry a trace context.
     * @defaultValue false
     */
    omitContext?: boolean;
  };
};

/** Options of `queue.add`. Source: BullMQ 6.7.0 `JobsOptions`. */
export type JobsOptions = BaseJobOptions & CompressableJobOptions;

/** Options of one job of `queue.addBulk`. */
export type BulkJobOptions = JobsOptions;

/** Options of the jobs that a scheduler makes. */
export type JobSchedulerTemplateOptions = Omit<JobsOptions, 'jobId' | 'repeat' | 'delay' | 'deduplication'>;

/** {@link JobsOptions} with the repetition of the scheduler that makes the job. */
export interface JobSchedulerJobOptions extends JobsOptions {
  /** When the scheduler makes jobs. */
  repeat?: Omit<RepeatOptions, 'key' | 'jobId'>;
}

/* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's: fields are of any type */

/** How a datastore moves a job to `delayed`. */
export interface MoveToDelayedOpts {
  /** Does not count the try. */
  skipAttempt?: boolean;
  /** Fields of the job to store with the move. */
  fieldsToUpdate?: Record<string, any>;
  /** Takes the next job. */
  fetchNext?: boolean;
}

/** How a datastore puts a failed job back in the waiting list. */
export interface RetryJobOpts {
  /** Fields of the job to store with the move. */
  fieldsToUpdate?: Record<string, any>;
}
/* eslint-enable @typescript-eslint/no-explicit-any */

/** What `job.retry` resets. */
export interface RetryOptions {
  /** Sets `attemptsMade` to 0. */
  resetAttemptsMade?: boolean;
  /** Sets `attemptsStarted` to 0. */
  resetAttemptsStarted?: boolean;
}

/** What `job.moveToWaitingChildren` waits for. */
export interface MoveToWaitingChildrenOpts {
  /** Waits for this child alone; for all of them unless given. */
  child?: ParentOptions;
}

/** One page of one kind of dependency. */
export interface DependencyOpts {
  /**
   * Where the page begins: 0, or what the page before gave.
   * @defaultValue 0
   */
  cursor?: number;
  /**
   * About how many to give.
   * @defaultValue 20
   */
  count?: number;
}

/** The kinds of dependency to read, page by page. */
export interface DependenciesOpts {
  /** Children that have failed, and whose failure is not ignored. */
  failed?: DependencyOpts;
  /** Children whose failure is ignored. */
  ignored?: DependencyOpts;
  /** Children that have completed. */
  processed?: DependencyOpts;
  /** Children that have not ended. */
  unprocessed?: DependencyOpts;
}

/** Key of the parent as `job.parentKey` shows it: `<qualified name of its queue>:<its id>`. */
export function parentKeyOf(parent: ParentOptions | undefined): string | undefined {
  return parent ? `${parent.queue}:${parent.id}` : undefined;
}

/** The reference stored with a child, failure flags included. */
export function parentKeysOf(opts: JobsOptions): ParentKeys | undefined {
  if (!opts.parent) return undefined;
  const keys: ParentKeys = { id: opts.parent.id, queueKey: opts.parent.queue };
  if (opts.failParentOnFailure) keys.fpof = true;
  if (opts.removeDependencyOnFailure) keys.rdof = true;
  if (opts.ignoreDependencyOnFailure) keys.idof = true;
  if (opts.continueParentOnFailure) keys.cpof = true;
  return keys;
}
