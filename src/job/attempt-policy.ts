/**
 * What becomes of an attempt: whether a job may start, and whether another attempt follows one that failed. The dispatcher and
 * jobs that users run themselves go by the same rules.
 */
import { CHANGED_OPTS, RECORD_TRACE } from './members.js';
import { JOB_EXPIRED_ERROR, JobExpiredError } from '../errors/job-expired-error.js';
import { JobTimeoutError } from '../errors/job-timeout-error.js';
import { UnrecoverableError } from '../errors/unrecoverable-error.js';
import { Backoffs, LONGEST_DELAY_MS, isEngineBackoff } from '../options/backoffs.js';
import { native } from '../native/addon.js';
import type { BackoffOptions } from '../options/job.js';
import type { BackoffStrategy } from '../types/backoff-strategy.js';
import type { MinimalJob } from '../types/minimal-job.js';

/** What a worker's options say of attempts, as it is when one ends. */
export interface AttemptPolicy {
  readonly maxStartedAttempts?: number | undefined;
  readonly settings?: { readonly backoffStrategy?: BackoffStrategy | undefined } | undefined;
}

/** A job, as the policy sees it. */
export interface AttemptedJob extends MinimalJob {
  readonly attemptsStarted: number;
  readonly deferredFailure: string;
  readonly [CHANGED_OPTS]: string | undefined;
  /** The processor said that the job is not to be tried again. */
  readonly isDiscarded?: boolean;
  [RECORD_TRACE](error: unknown): string;
}

/** What the engine is told of an attempt that failed. It decides whether there is another one. */
export interface AttemptFailure {
  /** The error's message. */
  reason: string | undefined;
  /** All stack traces of the job, JSON text. */
  stacktrace: string;
  /** No further attempts. */
  unrecoverable: boolean;
  /** The options with which the attempt ends, JSON text; undefined when the processor has not changed them. */
  changedOpts: string | undefined;
  /** Milliseconds that a strategy of the user's wants to wait; -1 for no further attempt. */
  delay: number | undefined;
}

/** What became of a failed attempt, once it is stored. */
export interface FailureReply {
  readonly attemptsMade: number;
  /** Whether the job failed for good. */
  readonly isFinal: boolean;
  /** Milliseconds before the next attempt; undefined when there is none, or no pause. */
  readonly delay: number | undefined;
}

/** Why a job must not start, though a worker has it: it comes too late, or has stalled, or was started, too often. */
export function reasonNotToRun(
  job: Pick<AttemptedJob, 'deferredFailure' | 'attemptsStarted'>,
  maxStartedAttempts: number | undefined,
): UnrecoverableError | undefined {
  if (job.deferredFailure === JOB_EXPIRED_ERROR) return new JobExpiredError();
  if (job.deferredFailure) return new UnrecoverableError(job.deferredFailure);
  if (maxStartedAttempts && job.attemptsStarted > maxStartedAttempts) {
    return new UnrecoverableError('job started more than allowable limit');
  }
  return undefined;
}

/**
 * Notes on the job why its attempt failed.
 * @returns what the engine is told; a promise of it where a strategy of the user's is asked for the delay
 * @throws what the error, or the job, throws when it is looked at
 */
export function failureOf(
  job: AttemptedJob,
  error: unknown,
  policy: AttemptPolicy,
): AttemptFailure | Promise<AttemptFailure> {
  const { message } = Object(error) as Partial<Error>;
  const reason = message === undefined || message === null ? undefined : String(message);
  job.failedReason = reason as string;
  const failure: AttemptFailure = {
    // first: what follows reads the options, and those that nobody has read are not compared
    changedOpts: job[CHANGED_OPTS],
    reason,
    stacktrace: '',
    unrecoverable: isUnrecoverable(job, error),
    delay: undefined,
  };
  // a strategy sees the traces of earlier attempts
  if (needsStrategy(job, failure, policy)) return askStrategy(job, error, failure, policy);
  failure.stacktrace = job[RECORD_TRACE](error);
  return failure;
}

/** Whether the job is not to be tried again: the processor says so, somebody has cancelled it, or its options say so of a try that took too long. */
export function isUnrecoverable(job: AttemptedJob, error: unknown): boolean {
  if (isThrownForGood(error) || job.isDiscarded === true || job.deferredFailure) return true;
  return error instanceof JobTimeoutError && job.opts.timeoutIsFinal === true;
}

/** Whether what the processor has thrown says so. */
export function isThrownForGood(error: unknown): boolean {
  const { name } = Object(error) as Partial<Error>;
  return name === 'UnrecoverableError' || error instanceof UnrecoverableError;
}

/** Whether another attempt follows, as the engine decides it, unless a strategy of the user's refuses it. */
export function mayTryAgain(
  job: AttemptedJob,
  { unrecoverable, delay }: AttemptFailure,
  { maxStartedAttempts }: AttemptPolicy,
): boolean {
  // tries that are no number are told of, whatever follows
  const made = job.attemptsMade + 1;
  if (unrecoverable || delay === -1) return false;
  return native.mayTryAgain(Number(job.opts.attempts), made, job.attemptsStarted, maxStartedAttempts);
}

/** Whether the job would be tried again, after a delay that the engine cannot compute. */
function needsStrategy(job: AttemptedJob, failure: AttemptFailure, policy: AttemptPolicy): boolean {
  const { backoff } = job.opts;
  return mayTryAgain(job, failure, policy) && Boolean(backoff) && !isEngineBackoff(backoff as BackoffOptions);
}

async function askStrategy(
  job: AttemptedJob,
  error: unknown,
  failure: AttemptFailure,
  { settings }: AttemptPolicy,
): Promise<AttemptFailure> {
  const backoff = job.opts.backoff as BackoffOptions;
  const delay = await Backoffs.calculate(backoff, job.attemptsMade + 1, error as Error, job, settings?.backoffStrategy);
  // As in BullMQ a text is a number, too, and what is empty, NaN included, is no delay.
  const ms = delay ? Number(delay) : 0;
  if (Number.isNaN(ms)) throw new TypeError(`Backoff strategy ${String(backoff.type)} gave a delay that is no number`);
  // Only -1 has a meaning of its own: no further attempt. What else lies in the past is due.
  failure.delay = Math.min(ms, LONGEST_DELAY_MS);
  failure.stacktrace = job[RECORD_TRACE](error);
  return failure;
}
