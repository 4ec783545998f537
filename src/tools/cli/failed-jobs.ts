/** Failed jobs as `failed` finds them: by what the server filters, and by a text anywhere in a job, which is looked for here. */
import type { FailedJobsFilter, Job, Queue } from '../../index.js';
import { textOf, timeOf, type Arguments } from './arguments.js';
import { UsageError } from './command.js';

/** Jobs read at a time where each is looked at here. */
const PAGE = 500;

/** Which failed jobs a command is about. */
export interface Wanted {
  /** What the server looks for, beside when they failed. */
  readonly filter: Pick<FailedJobsFilter, 'name' | 'error'>;
  /** They failed then or earlier (epoch ms). A time, no age: while somebody is asked, the same jobs stay meant. */
  readonly before: number | undefined;
  /** They failed then or later (epoch ms). */
  readonly after: number | undefined;
  /** Somewhere in the id, the name, the reason or the data, whatever the case of its letters. */
  readonly text: string | undefined;
  readonly ids: readonly string[];
}

/** Nothing says which: all of them are meant. */
export function isForAll({ filter, before, after, text, ids }: Wanted): boolean {
  const isFiltered = Object.keys(filter).length > 0 || before !== undefined || after !== undefined;
  return !isFiltered && text === undefined && ids.length === 0;
}

/** @throws UsageError where ids stand beside what filters */
export function readWanted(read: Arguments, ids: readonly string[]): Wanted {
  const names = read.values.name as string[] | undefined;
  if (names?.some((name) => name === '')) throw new UsageError('--name is empty.');
  const error = textOf(read, 'reason');
  const now = Date.now();
  const [olderThan, newerThan] = [timeOf(read, 'older-than'), timeOf(read, 'newer-than')];
  const wanted = {
    filter: { ...(names && { name: names }), ...(error !== undefined && { error }) },
    before: olderThan === undefined ? undefined : now - olderThan,
    after: newerThan === undefined ? undefined : now - newerThan,
    text: textOf(read, 'text')?.toLowerCase(),
    ids: [...new Set(ids)],
  };
  if (ids.length > 0 && !isForAll({ ...wanted, ids: [] })) {
    throw new UsageError('Ids name jobs: say them, or what to look for, and not both.');
  }
  return wanted;
}

/** As the queue's methods want it: ages, from the moment of the call on. */
function filterOf({ filter, before, after }: Pick<Wanted, 'filter' | 'before' | 'after'>): FailedJobsFilter {
  const now = Date.now();
  return {
    ...filter,
    ...(before !== undefined && { olderThan: Math.max(now - before, 0) }),
    ...(after !== undefined && { newerThan: Math.max(now - after, 0) }),
  };
}

/** The jobs, the latest first; named ones in the order of their names. */
export async function find(queue: Queue, wanted: Wanted, limit: number): Promise<Job[]> {
  if (wanted.ids.length > 0) return (await byId(queue, wanted.ids)).slice(0, limit);
  if (wanted.text === undefined) return queue.getFailedJobs({ ...filterOf(wanted), limit });
  const found: Job[] = [];
  for await (const job of withText(queue, wanted)) {
    found.push(job);
    if (found.length >= limit) break;
  }
  return found;
}

async function* withText(queue: Queue, wanted: Wanted): AsyncGenerator<Job> {
  for await (const job of everyJob(queue, wanted)) if (contains(job, wanted.text ?? '')) yield job;
}

/**
 * Each job once, page by page. A page begins at the time at which the one before ended, so that the server need not pass over all that
 * were read; jobs that ended at that very time come again, and those that fail meanwhile are in front.
 */
async function* everyJob(queue: Queue, wanted: Wanted): AsyncGenerator<Job> {
  const seen = new Set<string | undefined>();
  let [before, start] = [wanted.before, 0];
  for (;;) {
    const page = await queue.getFailedJobs({ ...filterOf({ ...wanted, before }), start, limit: PAGE });
    const fresh = page.filter(({ id }) => !seen.has(id));
    for (const { id } of fresh) seen.add(id);
    yield* fresh;
    if (page.length < PAGE) return;
    const last = page.at(-1)?.finishedOn ?? Infinity;
    // nothing new, or a clock that is ahead of ours: on by rank
    if (fresh.length === 0 || last >= Date.now()) start += PAGE;
    else [before, start] = [last, 0];
  }
}

/** How many there are. */
export async function countOf(queue: Queue, wanted: Wanted): Promise<number> {
  if (wanted.ids.length > 0) return (await find(queue, wanted, Infinity)).length;
  if (wanted.text === undefined) return queue.countFailedJobs(filterOf(wanted));
  let jobs = 0;
  for await (const _ of withText(queue, wanted)) jobs++;
  return jobs;
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

/** The ids asked for that no failed job has. */
export function missingIds({ ids }: Wanted, found: readonly Job[]): string[] {
  const known = new Set(found.map(({ id }) => id));
  return ids.filter((id) => !known.has(id));
}

/** The jobs that are to change, settled before anybody is asked: what fails later is no part of it. */
export interface Choice {
  readonly matched: number;
  /** Of jobs that were named or hold a text; the server finds the others as fast again. */
  readonly ids: readonly string[] | undefined;
  readonly wanted: Wanted;
  /** Ids asked for that no failed job has. */
  readonly missing: readonly string[];
}

/** At most so many: those that failed first, or were named first. */
export async function choose(queue: Queue, asked: Wanted, limit: number): Promise<Choice> {
  const wanted = { ...asked, before: asked.before ?? Date.now() };
  if (wanted.ids.length > 0) {
    const found = await byId(queue, wanted.ids);
    const ids = found.slice(0, limit).map(({ id = '' }) => id);
    return { matched: ids.length, ids, wanted, missing: missingIds(wanted, found) };
  }
  if (wanted.text === undefined) {
    return { matched: Math.min(await countOf(queue, wanted), limit), ids: undefined, wanted, missing: [] };
  }
  const latestFirst: string[] = [];
  for await (const { id = '' } of withText(queue, wanted)) latestFirst.push(id);
  const ids = latestFirst.reverse().slice(0, limit);
  return { matched: ids.length, ids, wanted, missing: [] };
}

/** What was done, and to how many. */
export interface Done {
  readonly done: number;
  /** Jobs that were found and had left `failed` by then, or that somebody holds. */
  readonly skipped: number;
}

/** Puts jobs back in the waiting list. */
export async function replay(queue: Queue, choice: Choice, resetAttempts: boolean): Promise<Done> {
  const { ids, wanted, matched } = choice;
  if (!ids) {
    const done = await queue.replayFailed({ ...filterOf(wanted), limit: matched, resetAttempts });
    return { done, skipped: matched - done };
  }
  const reset = { resetAttemptsMade: resetAttempts, resetAttemptsStarted: resetAttempts };
  return forEach(ids, async (id) => {
    const job = await queue.getJob(id);
    await job?.retry('failed', reset);
    return job !== undefined;
  });
}

/** Removes jobs, and not their children: whether those are still wanted, nobody has said. */
export async function remove(queue: Queue, { ids, wanted, matched }: Choice): Promise<Done> {
  if (!ids) {
    const { length: done } = await queue.removeFailed({ ...filterOf(wanted), limit: matched });
    return { done, skipped: matched - done };
  }
  return forEach(ids, async (id) => {
    // a job that somebody has replayed meanwhile stays
    if ((await queue.getJobState(id)) !== 'failed') return false;
    return (await queue.remove(id, { removeChildren: false })) === 1;
  });
}

/** @param act whether it did anything */
async function forEach(ids: readonly string[], act: (id: string) => Promise<boolean>): Promise<Done> {
  // loaded here: help does without the addon
  const { ErrorCode } = await import('../../index.js');
  const { JobNotExist, JobNotInState, JobBelongsToJobScheduler } = ErrorCode;
  /** The one job has left, or is held. What else is refused, the server refuses for the rest, too. */
  const isOfJob = (error: unknown): boolean =>
    [JobNotExist, JobNotInState, JobBelongsToJobScheduler].includes((error as { code: number }).code);
  let done = 0;
  for (let at = 0; at < ids.length; at += PAGE) {
    const results = await Promise.allSettled(ids.slice(at, at + PAGE).map(act));
    for (const result of results) {
      if (result.status === 'rejected' && !isOfJob(result.reason)) throw result.reason;
      if (result.status === 'fulfilled' && result.value) done++;
    }
  }
  return { done, skipped: ids.length - done };
}
