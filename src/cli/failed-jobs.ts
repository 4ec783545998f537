/** Failed jobs as `failed` finds them: by what the server filters, and by a text anywhere in a job, which is looked for here. */
import type { FailedJobsFilter, Job, Queue } from '../index.js';
import { textOf, timeOf, type Arguments } from './arguments.js';
import { UsageError } from './command.js';

/** Jobs read at a time where each is looked at here. */
const PAGE = 500;

/** Which failed jobs a command is about. */
export interface Wanted {
  /** What the server looks for. */
  readonly filter: FailedJobsFilter;
  /** Somewhere in the id, the name, the reason or the data, whatever the case of its letters. */
  readonly text: string | undefined;
  readonly ids: readonly string[];
}

/** Nothing says which: all of them are meant. */
export function isForAll({ filter, text, ids }: Wanted): boolean {
  return Object.keys(filter).length === 0 && text === undefined && ids.length === 0;
}

/** @throws UsageError where ids stand beside what filters */
export function readWanted(read: Arguments, ids: readonly string[]): Wanted {
  const names = read.values.name as string[] | undefined;
  if (names?.some((name) => name === '')) throw new UsageError('--name is empty.');
  const error = textOf(read, 'reason');
  const [olderThan, newerThan] = [timeOf(read, 'older-than'), timeOf(read, 'newer-than')];
  const filter: FailedJobsFilter = {
    ...(names && { name: names }),
    ...(error !== undefined && { error }),
    ...(olderThan !== undefined && { olderThan }),
    ...(newerThan !== undefined && { newerThan }),
  };
  const wanted = { filter, text: textOf(read, 'text')?.toLowerCase(), ids: [...new Set(ids)] };
  if (ids.length > 0 && !isForAll({ ...wanted, ids: [] })) {
    throw new UsageError('Ids name jobs: say them, or what to look for, and not both.');
  }
  return wanted;
}

/** The jobs, the latest first; named ones in the order of their names. */
export async function find(queue: Queue, wanted: Wanted, limit: number): Promise<Job[]> {
  if (wanted.ids.length > 0) return byId(queue, wanted.ids.slice(0, limit));
  if (wanted.text === undefined) return queue.getFailedJobs({ ...wanted.filter, limit });
  const found: Job[] = [];
  for await (const job of everyJob(queue, wanted.filter)) {
    if (contains(job, wanted.text)) found.push(job);
    if (found.length >= limit) break;
  }
  return found;
}

/**
 * Each job once, page by page. A page begins at the time at which the one before ended, so that the server need not pass over all that
 * were read; jobs that ended at that very time come again, and those that fail meanwhile are in front.
 */
async function* everyJob(queue: Queue, filter: FailedJobsFilter): AsyncGenerator<Job> {
  const seen = new Set<string | undefined>();
  let [at, start] = [filter, 0];
  for (;;) {
    const page = await queue.getFailedJobs({ ...at, start, limit: PAGE });
    const fresh = page.filter(({ id }) => !seen.has(id));
    for (const { id } of fresh) seen.add(id);
    yield* fresh;
    if (page.length < PAGE) return;
    const age = Date.now() - (page.at(-1)?.finishedOn ?? Infinity);
    // nothing new, or a clock that is ahead of ours: on by rank
    if (fresh.length === 0 || !(age > 0)) start += PAGE;
    else [at, start] = [{ ...filter, olderThan: Math.max(age, filter.olderThan ?? 0) }, 0];
  }
}

/** How many there are. */
export async function countOf(queue: Queue, wanted: Wanted): Promise<number> {
  if (wanted.ids.length > 0 || wanted.text !== undefined) return (await find(queue, wanted, Infinity)).length;
  return queue.countFailedJobs(wanted.filter);
}

async function byId(queue: Queue, ids: readonly string[]): Promise<Job[]> {
  const jobs = await Promise.all(ids.map((id) => queue.getJob(id)));
  const failed = await Promise.all(jobs.map(async (job) => ((await job?.isFailed()) ? job : undefined)));
  return failed.filter((job) => job !== undefined);
}

function contains(job: Job, text: string): boolean {
  const parts = [job.id, job.name, job.failedReason, JSON.stringify(job.data)];
  return parts.some((part) => part?.toLowerCase().includes(text));
}

/** What was done, and to how many. */
export interface Done {
  readonly done: number;
  /** Jobs that were found and had left `failed` by then, or that somebody holds. */
  readonly skipped: number;
}

/** Puts jobs back in the waiting list. */
export async function replay(queue: Queue, wanted: Wanted, limit: number, resetAttempts: boolean): Promise<Done> {
  if (wanted.ids.length === 0 && wanted.text === undefined) {
    return { done: await queue.replayFailed({ ...wanted.filter, limit, resetAttempts }), skipped: 0 };
  }
  const reset = { resetAttemptsMade: resetAttempts, resetAttemptsStarted: resetAttempts };
  return forEach(await find(queue, wanted, limit), (job) => job.retry('failed', reset));
}

/** Removes jobs. */
export async function remove(queue: Queue, wanted: Wanted, limit: number): Promise<Done> {
  if (wanted.ids.length === 0 && wanted.text === undefined) {
    return { done: (await queue.removeFailed({ ...wanted.filter, limit })).length, skipped: 0 };
  }
  return forEach(await find(queue, wanted, limit), async (job) => {
    // a job that somebody has replayed meanwhile stays
    if (!(await job.isFailed())) throw new Error('it has left the failed ones');
    await job.remove();
  });
}

async function forEach(jobs: readonly Job[], act: (job: Job) => Promise<void>): Promise<Done> {
  let done = 0;
  for (let at = 0; at < jobs.length; at += PAGE) {
    const results = await Promise.allSettled(jobs.slice(at, at + PAGE).map(act));
    for (const result of results) {
      if (result.status === 'fulfilled') done++;
      else if (isOfConnection(result.reason)) throw result.reason;
    }
  }
  return { done, skipped: jobs.length - done };
}

/** Not about the one job: the rest would fail, too. */
function isOfConnection(error: unknown): boolean {
  const { code, name } = error as { code?: unknown; name?: string };
  return typeof code === 'string' || name === 'ConnectionClosedError';
}
