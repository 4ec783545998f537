/** What the engine is told of a failed try, by whomever the job was run. */
import { Backoffs, LONGEST_DELAY_MS, isEngineBackoff } from '../options/backoffs.js';
import { UnrecoverableError } from '../errors/unrecoverable-error.js';
import type { Job } from './job.js';
import type { BackoffOptions } from '../options/job.js';
import type { BackoffStrategy } from '../types/backoff-strategy.js';

/** A try that failed, and what decides whether there is another one. */
export interface FailedTry {
  /** The error's message. */
  reason: string | undefined;
  /** All stack traces of the job, JSON text. */
  stacktrace: string;
  /** No further tries. */
  unrecoverable: boolean;
  /** The options with which the try ends, JSON text; undefined when the processor has not changed them. */
  changedOpts: string | undefined;
  /** Milliseconds that a strategy of the user's wants to wait; -1 for no further try. */
  delay: number | undefined;
}

/**
 * Notes on the job why it failed. The delay that a strategy of the user's computes is still missing.
 * @throws what the error, or the job, throws when it is looked at
 */
export function failedTry(job: Job, error: unknown): FailedTry {
  const { name, message, stack } = Object(error) as Partial<Error>;
  const reason = message === undefined || message === null ? undefined : String(message);
  return {
    // first: what follows reads the options, and those that nobody has read are not compared
    changedOpts: job.changedOpts,
    reason,
    stacktrace: job.recordError(reason, stack),
    unrecoverable: name === 'UnrecoverableError' || error instanceof UnrecoverableError,
    delay: undefined,
  };
}

/** Whether the job would be tried again, after a delay that the engine cannot compute. */
export function needsStrategy(job: Job, failed: FailedTry, maxStartedAttempts: number | undefined): boolean {
  const { attempts = 0, backoff } = job.opts;
  if (failed.unrecoverable || !(job.attemptsMade + 1 < attempts)) return false;
  if (maxStartedAttempts && job.attemptsStarted >= maxStartedAttempts) return false;
  return Boolean(backoff) && !isEngineBackoff(backoff as BackoffOptions);
}

/** Asks the user's strategy for the delay, and notes it. */
export async function askStrategy(
  job: Job,
  error: unknown,
  failed: FailedTry,
  strategy: BackoffStrategy | undefined,
): Promise<void> {
  const backoff = job.opts.backoff as BackoffOptions;
  const delay = await Backoffs.calculate(backoff, job.attemptsMade + 1, error as Error, job, strategy);
  // As in BullMQ a text is a number, too, and what is empty, NaN included, is no delay.
  const ms = delay ? Number(delay) : 0;
  if (Number.isNaN(ms)) throw new TypeError(`Backoff strategy ${String(backoff.type)} gave a delay that is no number`);
  // Only -1 has a meaning of its own: no further try. What else lies in the past is due.
  failed.delay = Math.min(ms, LONGEST_DELAY_MS);
}

/** Why a job must not be run, though a worker has it: it has stalled, or was started, too often. */
export function reasonNotToRun(job: Job, maxStartedAttempts: number | undefined): UnrecoverableError | undefined {
  if (job.deferredFailure) return new UnrecoverableError(job.deferredFailure);
  if (maxStartedAttempts && job.attemptsStarted > maxStartedAttempts) {
    return new UnrecoverableError('job started more than allowable limit');
  }
  return undefined;
}
