/** Jobs as `jobs` and `failed` find them: by what the server filters, by a text anywhere in a job, which is looked for here, or by their ids. */
import { once } from 'node:events';
import type { CancelJobOptions, ChangeJobsOptions, Job, JobFilter, JobState, Queue } from '../../index.js';
import { textOf, timeOf, type Arguments } from './arguments.js';
import { UsageError } from './command.js';

/** Jobs read at a time where each is looked at here. */
const PAGE = 500;

/** Which jobs a command is about. */
export interface Wanted {
  /** Where they are looked for, in this order. */
  readonly states: readonly JobState[];
  /** What else the server looks for, beside their time. */
  readonly filter: Omit<JobFilter, 'states' | 'olderThan' | 'newerThan'>;
  /** Their time is then or earlier (epoch ms). A time, no age: while somebody is asked, the same jobs stay meant. */
  readonly before: number | undefined;
  /** Their time is then or later (epoch ms). */
  readonly after: number | undefined;
  /** Somewhere in the id, the name, the reason or the data, whatever the case of its letters. */
  readonly text: string | undefined;
  readonly ids: readonly string[];
}

/** A job, and where it was found. */
export interface Found {
  readonly job: Job;
  readonly state: JobState;
}

/** Nothing but the states says which: all jobs there are meant. */
export function isForAll({ filter, before, after, text, ids }: Wanted): boolean {
  const isFiltered = Object.keys(filter).length > 0 || before !== undefined || after !== undefined;
  return !isFiltered && text === undefined && ids.length === 0;
}

/** @throws UsageError where ids stand beside what filters */
export function readWanted(read: Arguments, states: readonly JobState[], ids: readonly string[]): Wanted {
  const now = Date.now();
  const [olderThan, newerThan] = [timeOf(read, 'older-than'), timeOf(read, 'newer-than')];
  const wanted = {
    states,
    filter: readFilter(read),
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

function readFilter(read: Arguments): Wanted['filter'] {
  const names = read.values.name as string[] | undefined;
  if (names?.some((name) => name === '')) throw new UsageError('--name is empty.');
  const [reason, data, group, parent] = ['reason', 'data', 'group', 'parent'].map((name) => textOf(read, name));
  return {
    ...(names && { name: names }),
    ...(reason !== undefined && { reason }),
    ...(data !== undefined && { data: dataOf(data) }),
    ...(group !== undefined && { group }),
    ...(parent !== undefined && { parent: parentOf(parent) }),
  };
}

/** Fields, if it is JSON text of an object; else the text. */
function dataOf(text: string): string | object {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? value : text;
  } catch {
    return text;
  }
}

/** An id, or behind the qualified name of a queue, as the key of a parent has it. */
function parentOf(text: string): { id: string; queue?: string } {
  const [, queue, id] = /^(.+:[^:]+):([^:]+)$/.exec(text) ?? [];
  return queue !== undefined && id !== undefined ? { id, queue } : { id: text };
}

/** As the queue's methods want it: ages, from the moment of the call on. */
function filterOf({ states, filter, before, after }: Wanted): JobFilter {
  const now = Date.now();
  return {
    states,
    ...filter,
    ...(before !== undefined && { olderThan: Math.max(now - before, 0) }),
    ...(after !== undefined && { newerThan: Math.max(now - after, 0) }),
  };
}

/** How a call about many jobs is followed and stopped. */
export interface Followed {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: { done: number }) => void;
}

/** The jobs in the order of `queue.findJobs`; named ones in the order of their names. Those that were found until then, when it is told to end. */
export async function find(queue: Queue, wanted: Wanted, limit: number, opts: Followed): Promise<Found[]> {
  const found: Found[] = [];
  try {
    for await (const one of everyJob(queue, wanted, opts.signal, limit)) {
      opts.onProgress({ done: found.push(one) });
      if (found.length >= limit) break;
    }
  } catch (error) {
    if (!opts.signal.aborted) throw error;
  }
  return found;
}

/** Each job that matches, page by page. */
async function* everyJob(queue: Queue, wanted: Wanted, signal: AbortSignal, limit = Infinity): AsyncGenerator<Found> {
  if (wanted.ids.length > 0) yield* byId(queue, wanted, signal);
  if (wanted.ids.length > 0) return;
  const { text } = wanted;
  for (const state of wanted.states) {
    let cursor: string | undefined;
    do {
      const page = await queue.findJobs(filterOf({ ...wanted, states: [state] }), {
        limit: text === undefined ? Math.min(limit, PAGE) : PAGE,
        cursor,
        signal,
      });
      for (const job of page.jobs) if (text === undefined || contains(job, text)) yield { job, state };
      ({ cursor } = page);
    } while (cursor !== undefined);
  }
}

/** How many there are. */
export async function countOf(queue: Queue, wanted: Wanted, opts: Followed): Promise<number> {
  if (isOnServer(wanted)) return queue.countJobs(filterOf(wanted), opts);
  let jobs = 0;
  for await (const _ of everyJob(queue, wanted, opts.signal)) opts.onProgress({ done: ++jobs });
  return jobs;
}

/** Whether the server finds them. */
function isOnServer({ ids, text }: Wanted): boolean {
  return ids.length === 0 && text === undefined;
}

async function* byId(queue: Queue, { ids, states }: Wanted, signal: AbortSignal): AsyncGenerator<Found> {
  for (const page of pagesOf(ids, signal)) {
    const found = await Promise.all(
      page.map(async (id) => {
        const [job, state] = await Promise.all([queue.getJob(id), queue.getJobState(id)]);
        return job && states.includes(state as JobState) ? { job, state: state as JobState } : undefined;
      }),
    );
    yield* found.filter((one) => one !== undefined);
  }
}

/** So many at a time; throws the signal's reason between two pages. */
export function* pagesOf<T>(list: readonly T[], signal: AbortSignal): Generator<T[]> {
  for (let at = 0; at < list.length; at += PAGE) {
    signal.throwIfAborted();
    yield list.slice(at, at + PAGE);
  }
}

function contains(job: Job, text: string): boolean {
  const parts = [job.id, job.name, job.failedReason, JSON.stringify(job.data)];
  return parts.some((part) => part?.toLowerCase().includes(text));
}

/** The ids asked for that no such job has. */
export function missingIds({ ids }: Wanted, found: readonly Found[]): string[] {
  const known = new Set(found.map(({ job }) => job.id));
  return ids.filter((id) => !known.has(id));
}

/** The jobs that are to change, settled before anybody is asked: what comes later is no part of it. */
export interface Choice {
  readonly matched: number;
  /** Of jobs that were named or hold a text; the server finds the others as fast again. */
  readonly ids: readonly string[] | undefined;
  readonly wanted: Wanted;
  /** Ids asked for that no such job has. */
  readonly missing: readonly string[];
}

/**
 * At most so many: those that ended or start first, or were named first.
 * @throws the signal's reason
 */
export async function choose(queue: Queue, asked: Wanted, limit: number, signal: AbortSignal): Promise<Choice> {
  const wanted = { ...asked, before: asked.before ?? Date.now() };
  // what is found here is no part of what is done
  const opts = { signal, onProgress: () => {} };
  if (isOnServer(wanted)) {
    return { matched: Math.min(await countOf(queue, wanted, opts), limit), ids: undefined, wanted, missing: [] };
  }
  const found = await find(queue, wanted, Infinity, opts);
  signal.throwIfAborted();
  const ids = firstOf(found, wanted).slice(0, limit);
  return { matched: ids.length, ids, wanted, missing: missingIds(wanted, found) };
}

/** Those that ended come the latest first. */
function firstOf(found: readonly Found[], { states, ids }: Wanted): string[] {
  if (ids.length > 0) return found.map(({ job }) => job.id ?? '');
  return states.flatMap((state) => {
    const some = found.filter((one) => one.state === state).map(({ job }) => job.id ?? '');
    return state === 'failed' || state === 'completed' ? some.reverse() : some;
  });
}

/** What was done, and to how many. */
export interface Done {
  readonly done: number;
  /** Jobs that were found and had moved on by then, or that somebody holds. */
  readonly skipped: number;
}

/** How jobs are changed: all that a filter picks, and one that was chosen by itself. */
export interface Change {
  all(queue: Queue, filter: JobFilter, opts: ChangeJobsOptions): Promise<number>;
  /** Whether it did anything. */
  one(queue: Queue, id: string, state: JobState): Promise<boolean>;
  /** Waits, where that is wanted, until those that were changed by themselves have ended. */
  untilOver?(queue: Queue, signal: AbortSignal): Promise<void>;
}

/** Puts jobs that have ended back in the waiting list. */
export function retry(resetAttempts: boolean): Change {
  return {
    all: (queue, filter, opts) => queue.retryJobs(filter, { ...opts, resetAttempts }),
    async one(queue, id, state) {
      const job = await queue.getJob(id);
      if (!job || (state !== 'failed' && state !== 'completed')) return false;
      await job.retry(state, { resetAttemptsMade: resetAttempts, resetAttemptsStarted: resetAttempts });
      return true;
    },
  };
}

/** Removes jobs, and not their children: whether those are still wanted, nobody has said. */
export const remove: Change = {
  all: (queue, filter, opts) => queue.removeJobs(filter, opts),
  one: async (queue, id) => (await queue.remove(id, { removeChildren: false })) === 1,
};

/** Cancels jobs that have not ended. */
export function cancel({ waitForEnd, ...how }: CancelJobOptions): Change {
  const running: string[] = [];
  return {
    all: (queue, filter, opts) => queue.cancelJobs(filter, { ...opts, ...how, waitForEnd }),
    async one(queue, id) {
      const became = await queue.cancelJob(id, how);
      if (became === 'signalled' && waitForEnd) running.push(id);
      return became === 'signalled' || became === 'cancelled';
    },
    untilOver: (queue, signal) => untilOver(queue, running, { ...how, waitForEnd }, signal),
  };
}

/** Waits until jobs have ended that run, and were cancelled in that way. All were by now: none runs on because another one is waited for. */
export async function untilOver(
  queue: Queue,
  running: readonly string[],
  opts: CancelJobOptions,
  signal: AbortSignal,
): Promise<void> {
  if (running.length === 0 || !opts.waitForEnd) return;
  signal.throwIfAborted();
  await Promise.race([Promise.all(running.map((id) => queue.cancelJob(id, opts))), once(signal, 'abort')]);
  signal.throwIfAborted();
}

/** Puts delayed jobs in the waiting list. */
export const promote: Change = {
  all: (queue, filter, opts) => queue.promoteJobs(filter, opts),
  async one(queue, id) {
    const job = await queue.getJob(id);
    await job?.promote();
    return job !== undefined;
  },
};

/** Moves jobs to another queue. One that was chosen by itself stays: only the server finds and moves in one step. */
export function move(target: string): Change {
  return {
    all: (queue, filter, opts) => queue.moveJobs(target, filter, opts),
    one: () => Promise.resolve(false),
  };
}

/** Changes the jobs of a choice. */
export async function carryOut(
  queue: Queue,
  { ids, wanted, matched }: Choice,
  change: Change,
  opts: Followed,
): Promise<Done> {
  if (!ids) {
    const done = await change.all(queue, filterOf(wanted), { ...opts, limit: matched });
    return { done, skipped: matched - done };
  }
  const result = await forEach(ids, opts, async (id) => {
    const state = (await queue.getJobState(id)) as JobState;
    // a job that has moved on meanwhile stays
    return wanted.states.includes(state) && change.one(queue, id, state);
  });
  await change.untilOver?.(queue, opts.signal);
  return result;
}

/** @param act whether it did anything */
async function forEach(
  ids: readonly string[],
  { signal, onProgress }: Followed,
  act: (id: string) => Promise<boolean>,
): Promise<Done> {
  // loaded here: help does without the addon
  const { ErrorCode } = await import('../../index.js');
  const { JobNotExist, JobNotInState, JobBelongsToJobScheduler } = ErrorCode;
  /** The one job has left, or is held. What else is refused, the server refuses for the rest, too. */
  const isOfJob = (error: unknown): boolean =>
    [JobNotExist, JobNotInState, JobBelongsToJobScheduler].includes((error as { code: number }).code);
  let done = 0;
  for (const page of pagesOf(ids, signal)) {
    const results = await Promise.allSettled(page.map(act));
    for (const result of results) {
      if (result.status === 'rejected' && !isOfJob(result.reason)) throw result.reason;
      if (result.status === 'fulfilled' && result.value) done++;
    }
    onProgress({ done });
  }
  return { done, skipped: ids.length - done };
}
