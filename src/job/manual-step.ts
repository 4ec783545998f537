/**
 * Jobs that users take and end themselves, one a call: the part that needs no worker. The user's token holds each of them for
 * `lockDuration`, unless `extendLock` says otherwise.
 */
import { RECORD_COMPLETION, RECORD_FAILURE, RECORD_RESULT } from './members.js';
import { COMMANDS } from '../connection/members.js';
import { stringify } from '../native/json.js';
import { asUnrecoverable } from '../native/native-error.js';
import { failureOf, mayTryAgain, type AttemptedJob, type FailureReply } from './attempt-policy.js';
import type { NativeManualEnd, NativeManualStepped, NativeJob } from '../native/types.js';
import { metricsMinutesOf, type WorkerOptions } from '../options/worker.js';
import { engineGroupRules } from '../options/group.js';
import { readLimiter } from '../options/rate-limiter.js';
import { recordJob } from '../telemetry/job-metrics.js';
import { traceEnd, type JobEnd } from '../telemetry/trace.js';
import type { JobJson } from '../types/job-json.js';
import { manualHold } from './manual-hold.js';
import type { JobQueue } from './minimal-queue.js';
import { storedOptions } from './stored-options.js';

/** Milliseconds a job is held, when it is taken through an object that is no worker. */
const LOCK_DURATION = 30_000;

/** A job, as its end is recorded on it. */
interface EndedJob extends AttemptedJob {
  [RECORD_RESULT](value: unknown): void;
  [RECORD_COMPLETION](finishedOn: number): void;
  [RECORD_FAILURE](failure: FailureReply, finishedOn: number): void;
}

/** The options of the queue or worker that count here; only a worker has them. */
function optionsOf(queue: JobQueue): Partial<WorkerOptions<unknown>> {
  return queue.opts;
}

/** Id of a worker: it is told when a job that it takes is cancelled. */
function workerOf({ id }: JobQueue & { readonly id?: unknown }): { worker?: string } {
  return typeof id === 'string' ? { worker: id } : {};
}

/** Token that skips the check of the lock. */
const UNLOCKED = '0';

/** A token as text. One that is left open skips the check of the lock, as in BullMQ; `null` is a token that holds nothing. */
export function unlockedOr(token: string | undefined): string {
  return token === undefined ? UNLOCKED : String(token ?? '');
}

/** Takes the next job, ends one, or both. */
export async function manualStep(
  queue: JobQueue,
  token: string,
  fetch: boolean,
  ended?: NativeManualEnd,
  now = Date.now(),
): Promise<NativeManualStepped> {
  const { lockDuration = LOCK_DURATION, name, limiter: limiterOption, group } = optionsOf(queue);
  const limiter = readLimiter(limiterOption);
  const stepped = queue[COMMANDS].native.stepManually({
    now,
    token: String(token ?? ''),
    fetch: Boolean(fetch) && !queue.closing,
    lockDuration,
    ...workerOf(queue),
    ...(name != null && { workerName: String(name) }),
    ...(limiter && { limiter }),
    ...engineGroupRules(group),
    ...(ended && { ended }),
  });
  return asUnrecoverable(stepped);
}

/** Source: BullMQ 6.7.0 `Job#moveToCompleted`. */
export async function completeManually(
  queue: JobQueue,
  job: EndedJob,
  value: unknown,
  token: string,
  fetchNext: boolean,
): Promise<unknown[]> {
  job[RECORD_RESULT](value);
  const result = stringify(value);
  const now = Date.now();
  const ended = { ...endOf(queue, job, 'removeOnComplete'), ...(result !== undefined && { result }) };
  const stepped = await traced(queue, job, 'completed', manualStep(queue, token, fetchNext, ended, now));
  job[RECORD_COMPLETION](now);
  recordEnd(queue, job, 'completed');
  return nextTuple(stepped);
}

/** Source: BullMQ 6.7.0 `Job#moveToFailed`. */
export async function failManually(
  queue: JobQueue,
  job: EndedJob,
  error: unknown,
  token: string,
  fetchNext: boolean,
): Promise<unknown[] | undefined> {
  const failure = failureOf(job, error, optionsOf(queue));
  // A command of the user's next line comes behind this one: nothing is awaited without need.
  const failed = 'then' in failure ? await failure : failure;
  const now = Date.now();
  // as in BullMQ, who leaves it open may retry anybody's job, and fail nobody's for good
  const holder = mayTryAgain(job, failed, optionsOf(queue)) ? unlockedOr(token) : token;
  const step = manualStep(queue, holder, fetchNext, { ...endOf(queue, job, 'removeOnFail'), failed }, now);
  const stepped = await traced(queue, job, 'failed', step);
  const { failure: reply } = stepped;
  if (reply) {
    const { state, attemptsMade, delay } = reply;
    job[RECORD_FAILURE]({ attemptsMade, isFinal: state === 'failed', delay }, now);
    recordEnd(queue, job, state === 'waiting' ? 'retried' : state);
  }
  if (reply?.state === 'waiting') return undefined;
  return reply?.state === 'delayed' && !stepped.job ? [] : nextTuple(stepped);
}

/** An end that is refused has a span, too. */
async function traced<T>(queue: JobQueue, job: EndedJob, wanted: JobEnd, step: Promise<T>): Promise<T> {
  try {
    const stepped = await step;
    manualHold(job)?.release();
    return stepped;
  } catch (error) {
    traceEnd(queue, job, wanted, error);
    throw error;
  }
}

function recordEnd(queue: JobQueue, job: EndedJob, became: JobEnd): void {
  traceEnd(queue, job, became);
  recordJob(queue, job, became);
}

function endOf(queue: JobQueue, job: EndedJob, retention: 'removeOnComplete' | 'removeOnFail'): NativeManualEnd {
  const { maxStartedAttempts, metrics, [retention]: keep } = optionsOf(queue);
  const metricsMinutes = metricsMinutesOf(metrics);
  return {
    id: String(job.id),
    opts: JSON.stringify(job.opts),
    attemptsMade: job.attemptsMade,
    attemptsStarted: job.attemptsStarted,
    ...(maxStartedAttempts && { maxStartedAttempts }),
    ...(metricsMinutes > 0 && { metricsMinutes }),
    ...(keep && { keep: JSON.stringify(keep) }),
  };
}

/** `[data, id, limit, due]` of the next job; without one `[null, 0, limit, due]`, or `[]` when nothing is to come. */
function nextTuple({ job, gated, limited, nextDue }: NativeManualStepped): unknown[] {
  if (job) return [jobJsonOf(job), job.id, 0, 0];
  if (gated) return [null, 0, limited, 0];
  return nextDue === undefined ? [] : [null, 0, 0, nextDue];
}

/** What `Job.fromJSON` makes a job of. As in BullMQ, the id is not in it. */
function jobJsonOf(found: NativeJob): Omit<JobJson, 'id'> {
  const { name, data, opts, timestamp, processedOn, extra } = found;
  const { id: _, progress, returnvalue, parent: parentText, failedReason, ...fields } = extra;
  const parent = parentText === undefined ? undefined : (JSON.parse(parentText) as JobJson['parent']);
  return {
    ...fields,
    name,
    data,
    timestamp,
    processedOn,
    opts: storedOptions(opts, parent),
    progress: progress === undefined ? 0 : (JSON.parse(progress) as JobJson['progress']),
    delay: extra.delay ?? 0,
    priority: extra.priority ?? 0,
    attemptsMade: extra.attemptsMade ?? 0,
    attemptsStarted: extra.attemptsStarted ?? 0,
    stalledCounter: extra.stalledCounter ?? 0,
    failedReason: failedReason as string,
    returnvalue: returnvalue as string,
    ...(parent && { parent }),
  };
}

/**
 * Makes locks last `duration` milliseconds from now.
 * @returns the ids of the jobs that are not held by their token
 */
export async function extendLocks(
  queue: JobQueue,
  locks: { id: string; token: string }[],
  duration: number,
): Promise<string[]> {
  if (!(duration >= 1)) throw new RangeError(`A lock lasts a number of milliseconds, at least 1, not ${duration}`);
  const asked = locks.map(({ id, token }) => ({ id: String(id), token: String(token ?? '') }));
  return queue[COMMANDS].native.extendLocks(asked, Number(duration));
}
