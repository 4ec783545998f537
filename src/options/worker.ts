import type { ForkOptions } from 'node:child_process';
import type { WorkerOptions as WorkerThreadsOptions } from 'node:worker_threads';
import { NotSupportedError } from '../errors/not-supported-error.js';
import type { BackoffStrategy } from '../types/backoff-strategy.js';
import type { ConnectionOptions } from './connection.js';
import { checkWorkerGroup, type WorkerGroupOptions } from './group.js';
import type { KeepJobs } from './job.js';
import type { AdvancedRepeatOptions, KeyPrefixOptions, QueueBaseOptions } from './queue.js';
import { checkTimeLimits, type TimeLimit } from './time-limits.js';

/** At most `max` activations in `duration` milliseconds, over all workers of the queue. */
export interface RateLimiterOptions {
  /** Jobs that may start in `duration`. */
  max: number;
  /** Milliseconds. */
  duration: number;
}

/** What a worker counts of its finished jobs. */
export interface MetricsOptions {
  /** Number of minutes to keep; see `MetricsTime`. */
  maxDataPoints?: number;
  /**
   * Measures how long jobs wait and run: `queue.getLatency`. A worker tells it each five seconds, in one call for all its jobs; of a worker that is killed the last
   * are lost. Jobs that are taken by hand are not measured. With a `telemetry` that has a meter it records how long each waited, too. With `'groups'` each group of jobs is
   * measured by itself, too: `queue.getLatency({ group })`. Not in BullMQ.
   * @defaultValue false
   */
  latency?: boolean | 'groups';
}

/** Settings of a worker. */
export interface AdvancedOptions extends AdvancedRepeatOptions {
  /** Computes the delay of jobs whose `backoff.type` is not built in. */
  backoffStrategy?: BackoffStrategy;
}

/** How processors given as a file are run. */
export interface SandboxedOptions {
  /**
   * Runs processors that are files in threads, not in processes.
   * @defaultValue false
   */
  useWorkerThreads?: boolean;
  /** What `child_process.fork` takes. */
  workerForkOptions?: ForkOptions;
  /** What `new worker_threads.Worker` takes. */
  workerThreadsOptions?: WorkerThreadsOptions;
}

/** How many jobs one call of the processor takes. */
export interface BatchOptions {
  /** Most jobs of a call: those that wait when it begins. */
  size: number;
  /**
   * Least jobs of a call, from 1 to `size`: the processor is not called before there are so many, or `timeout` is over. One worker of a queue at a time holds jobs that
   * are too few; its `pause()` and `close()`, and a pause of the queue, give them back.
   * @defaultValue 1
   */
  minSize?: number;
  /**
   * Milliseconds for which a call waits for `minSize` jobs, from its first job on: then it begins with those there are. It has no effect without `minSize`.
   * @defaultValue no end
   */
  timeout?: number;
  /**
   * All jobs of a call are of one group, or have none. Not together with `minSize` yet.
   * @defaultValue false
   */
  groupAffinity?: boolean;
}

/** Options of `worker.close`. */
export interface WorkerCloseOptions {
  /**
   * Waits for no job that runs: these stay active, and are recovered as stalled. `timeout` has no effect then.
   * @defaultValue false
   */
  force?: boolean;
  /**
   * Milliseconds for the jobs that run to end. Those that have not ended by then go back to the front of the waiting list, and the try is not counted.
   * @defaultValue no limit
   */
  timeout?: number;
}

/** Options of `worker.getNextJob`. */
export interface GetNextJobOptions {
  /**
   * `false` resolves to undefined at once when no job is ready.
   * @defaultValue true
   */
  block?: boolean;
}

/** Options of `Worker`. Source: BullMQ 6.7.0 `WorkerOptions`. */
export interface WorkerOptions<ConnectionOptionsType = ConnectionOptions>
  extends QueueBaseOptions<ConnectionOptionsType>, SandboxedOptions, KeyPrefixOptions {
  /** Stored on every job this worker processes, as `processedBy`. */
  name?: string;
  /**
   * Starts processing at construction.
   * @defaultValue true
   */
  autorun?: boolean;
  /**
   * Number of jobs this worker runs at once.
   * @defaultValue 1
   */
  concurrency?: number;
  /**
   * Calls the processor for several jobs at once: with the first of them, whose `getBatch()` gives all. `concurrency` counts calls then. Each job ends by itself; what
   * the processor returns is the result of each job, or, as an array of as many, of one job each; what it throws fails all. See `Job.setResult` and `Job.setAsFailed`.
   */
  batch?: BatchOptions;
  /**
   * Milliseconds that one run of a job may take: of all jobs, or by their names, where others have no limit. The `timeout` of a job goes before it. When the time is over,
   * the signal of the job is aborted with a `JobTimeoutError`, and the try fails with it as soon as the processor has ended, whatever it returns; it is tried again as after
   * any other error. Not in BullMQ; the paid edition has it.
   * @defaultValue no limit
   */
  ttl?: TimeLimit;
  /**
   * Milliseconds for a processor to end behind `ttl` or `timeout`, 0 or more. Then it is not waited for: the try fails, its slot is free, the worker emits `error`, and
   * what the processor does still is not heard. The child that runs a processor which is a file is killed. With `Infinity` it is waited for.
   * @defaultValue Infinity; 500 for processors that are files
   */
  killAfter?: number;
  /** Limits of each group of jobs that nothing was set for: see `queue.setGroupConcurrency` and `queue.setGroupRateLimit`. */
  group?: WorkerGroupOptions;
  /** Limits how many jobs may start in a window of time, over all workers of the queue that have one; may be changed at any time. */
  limiter?: RateLimiterOptions;
  /** Counts finished jobs by the minute, `queue.getMetrics`, and measures how long they take, `queue.getLatency`. */
  metrics?: MetricsOptions;
  /**
   * Longest sleep while rate limited, in milliseconds.
   * @defaultValue 30000
   */
  maximumRateLimitDelay?: number;
  /** Number of times a job may be started; the next start fails it without running it. */
  maxStartedAttempts?: number;
  /**
   * Number of times a job may be recovered from a lost worker; the next time it fails.
   * @defaultValue 1
   */
  maxStalledCount?: number;
  /**
   * Milliseconds between two checks for jobs of lost workers.
   * @defaultValue 30000
   */
  stalledInterval?: number;
  /** Which completed jobs to keep, for jobs that do not say so themselves. */
  removeOnComplete?: KeepJobs;
  /** Which failed jobs to keep, for jobs that do not say so themselves. */
  removeOnFail?: KeepJobs;
  /**
   * This worker does not look for jobs of lost workers.
   * @defaultValue false
   */
  skipStalledCheck?: boolean;
  /**
   * This worker does not renew its lease: what it has not finished after `lockDuration` goes to others.
   * @defaultValue false
   */
  skipLockRenewal?: boolean;
  /**
   * Longest wait for a job in one request, in seconds (decimals allowed).
   * @defaultValue 5
   */
  drainDelay?: number;
  /**
   * Milliseconds without contact to the server after which a worker loses its jobs.
   * @defaultValue 30000
   */
  lockDuration?: number;
  /**
   * Milliseconds between two renewals of the lease.
   * @defaultValue half of lockDuration
   */
  lockRenewTime?: number;
  /**
   * Has no effect: the engine connects again by itself, after 50 ms, then after twice as long, up to 500 ms, and fetches
   * as soon as the server is back. What BullMQ refuses, 0 or less, is refused.
   * @defaultValue 15000
   */
  runRetryDelay?: number;
  /** Strategies for backoffs and schedulers. */
  settings?: AdvancedOptions;
}

/** A worker's options with every default filled in. */
export type ResolvedWorkerOptions<ConnectionOptionsType> = WorkerOptions<ConnectionOptionsType> & {
  concurrency: number;
  drainDelay: number;
  lockDuration: number;
  lockRenewTime: number;
  maximumRateLimitDelay: number;
  maxStalledCount: number;
  runRetryDelay: number;
  stalledInterval: number;
};

/**
 * Fills in the defaults and checks the values. As in BullMQ, a key that is present with the value `undefined`
 * overrides its default, and unknown keys are kept.
 * @throws Error with BullMQ's text for a value out of range; NotSupportedError for an option that is not there yet.
 */
export function resolveWorkerOptions<C>(opts: WorkerOptions<C>): ResolvedWorkerOptions<C> {
  const resolved = {
    drainDelay: 5,
    concurrency: 1,
    lockDuration: 30_000,
    maximumRateLimitDelay: 30_000,
    maxStalledCount: 1,
    stalledInterval: 30_000,
    autorun: true,
    runRetryDelay: 15_000,
    ...opts,
    blockingConnection: true,
  } as ResolvedWorkerOptions<C>;

  if (!isAtLeast(resolved.maxStalledCount, 0)) throw new Error('maxStalledCount must be greater or equal than 0');
  // BullMQ takes numbers written as strings.
  if (typeof resolved.maxStartedAttempts === 'string')
    resolved.maxStartedAttempts = Number(resolved.maxStartedAttempts);
  if (resolved.maxStartedAttempts !== undefined && !(resolved.maxStartedAttempts >= 0)) {
    throw new Error('maxStartedAttempts must be greater or equal than 0');
  }
  if (!isAtLeast(resolved.stalledInterval, Number.MIN_VALUE)) throw new Error('stalledInterval must be greater than 0');
  if (!isAtLeast(resolved.drainDelay, Number.MIN_VALUE)) throw new Error('drainDelay must be greater than 0');
  checkConcurrency(resolved.concurrency);
  checkBatch(resolved.batch);
  checkWorkerGroup(resolved.group);
  checkTimeLimits(resolved);
  const measures: unknown = resolved.metrics?.latency ?? false;
  if (typeof measures !== 'boolean' && measures !== 'groups')
    throw new Error("metrics.latency must be true, false or 'groups'");

  resolved.lockRenewTime ||= resolved.lockDuration / 2;
  resolved.maximumRateLimitDelay ??= 30_000;
  resolved.runRetryDelay ??= 15_000;
  for (const key of ['lockDuration', 'lockRenewTime', 'runRetryDelay'] as const) {
    if (!(resolved[key] > 0)) throw new Error(`${key} must be greater than 0`);
  }
  if (Number.isNaN(Number(resolved.maximumRateLimitDelay))) throw new Error('maximumRateLimitDelay must be a number');
  return resolved;
}

/** Whether a close waits for no job. As in BullMQ any truthy value counts; an object is options. */
export function forceOf(options: unknown): unknown {
  return isObject(options) ? ((options as WorkerCloseOptions).force ?? false) : options;
}

/**
 * Milliseconds for which a close waits for the jobs that run.
 * @throws RangeError for what is no number of milliseconds
 */
export function closeTimeoutOf(options: unknown): number {
  const { timeout = Infinity } = (isObject(options) ? options : {}) as WorkerCloseOptions;
  if (!isAtLeast(timeout, 0)) throw new RangeError('timeout must be a number of milliseconds, 0 or more');
  return timeout;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Minutes for which finished jobs are counted; 0 = not. */
export function metricsMinutesOf(metrics: MetricsOptions | undefined): number {
  return Math.min(Math.max(Math.floor(metrics?.maxDataPoints ?? 0), 0), 2 ** 31 - 1);
}

/** @throws Error unless `batch` says how many jobs, and for how long they are waited for; NotSupportedError for what of it is not there yet */
function checkBatch(batch: unknown): void {
  if (batch === undefined) return;
  const {
    size,
    minSize = 1,
    timeout = 0,
    groupAffinity = false,
    ...others
  } = Object(batch) as Partial<Record<string, unknown>>;
  if (!Number.isInteger(size) || !isAtLeast(size, 1)) throw new Error('batch.size must be an integer of at least 1');
  if (!Number.isInteger(minSize) || !isAtLeast(minSize, 1) || !isAtLeast(size, minSize as number))
    throw new Error('batch.minSize must be an integer from 1 to batch.size');
  if (!isAtLeast(timeout, 0)) throw new Error('batch.timeout must be a number of milliseconds of at least 0');
  if (typeof groupAffinity !== 'boolean') throw new Error('batch.groupAffinity must be true or false');
  if (groupAffinity && minSize !== 1) throw new NotSupportedError('batch.minSize together with batch.groupAffinity');
  const other = Object.keys(others).find((name) => others[name] !== undefined);
  if (other !== undefined) throw new NotSupportedError(`the worker option "batch.${other}"`);
}

/** How many jobs may run at once. */
export function mostRunning({
  concurrency,
  batch,
}: Pick<ResolvedWorkerOptions<unknown>, 'concurrency' | 'batch'>): number {
  return slotsOf(Math.ceil(concurrency) * (batch?.size ?? 1));
}

/** A number of jobs that run at once. The engine counts with 32 bits. */
export function slotsOf(concurrency: number): number {
  return Math.min(Math.ceil(concurrency), 2 ** 31 - 1);
}

/** @throws Error with BullMQ's text unless `concurrency` is a finite number of at least 1. */
export function checkConcurrency(concurrency: number): void {
  if (!isAtLeast(concurrency, 1) || !Number.isFinite(concurrency)) {
    throw new Error('concurrency must be a finite number greater than 0');
  }
}

function isAtLeast(value: unknown, least: number): boolean {
  return typeof value === 'number' && value >= least;
}
