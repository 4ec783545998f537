/** What `jobs` and `failed` do with the jobs that they find. */
import type { Job, JobState, Queue } from '../../index.js';
import { countOf as countGiven, isGiven, type Arguments } from './arguments.js';
import { canAsk, confirmed } from './ask.js';
import { carryOut, choose, countOf, find, isForAll, missingIds } from './chosen-jobs.js';
import type { Change, Followed, Found, Wanted } from './chosen-jobs.js';
import { Failure, UsageError, type Io } from './command.js';
import { Progress } from './progress.js';
import { count, duration, plain, table } from './text.js';

const DEFAULT_LIMIT = 100;

/** What a command line asks for. */
export interface Task {
  readonly queue: Queue;
  readonly wanted: Wanted;
  readonly read: Arguments;
  readonly io: Io;
  readonly isJson: boolean;
  /** What stands before `job`: `failed ` where all of them have, or nothing. */
  readonly which: '' | 'failed ';
}

/** One thing that is done with jobs. */
export type Action = (task: Task) => Promise<number>;

/** Options that say which jobs. */
export const WHICH_OPTIONS = {
  json: { type: 'boolean' },
  yes: { type: 'boolean', short: 'y' },
  all: { type: 'boolean' },
  name: { type: 'string', multiple: true },
  reason: { type: 'string' },
  text: { type: 'string' },
  'older-than': { type: 'string' },
  'newer-than': { type: 'string' },
  limit: { type: 'string' },
  'reset-attempts': { type: 'boolean' },
} as const;

/** Refuses, before anybody connects, what changes jobs and could do more than was meant. */
export function checkChange(
  action: string,
  read: Arguments,
  wanted: Wanted,
  { io, all }: { io: Io; all: string },
): void {
  const [isYes, isAll] = [isGiven(read, 'yes'), isGiven(read, 'all')];
  if (isForAll(wanted) && !isAll) throw new UsageError(`${action} wants ids, something to look for, or --all.`);
  if (!isForAll(wanted) && isAll) throw new UsageError(`--all means ${all}: leave out the rest, or --all.`);
  if (!isYes && !canAsk(io)) throw new UsageError(`${action} changes jobs, and there is nobody to ask: say --yes.`);
}

/** Lists the jobs. */
export async function list(task: Task): Promise<number> {
  const { read, io, isJson, which } = task;
  const found = await findAll(task, countGiven(read, 'limit') ?? DEFAULT_LIMIT);
  if (isJson) json(io, found, which);
  else if (found.length > 0) io.stdout.write(`${jobTable(found, io, which).join('\n')}\n`);
  else if (!io.signal.aborted) io.stdout.write(`No ${which}jobs match.\n`);
  requireWhole(io, found);
  return 0;
}

function findAll(task: Task, limit: number): Promise<Found[]> {
  return followed(task, 'Found', (opts) => find(task.queue, task.wanted, limit, opts));
}

/** @throws Failure where the command was told to end before all were found */
function requireWhole({ signal }: Io, found: readonly Found[]): void {
  if (signal.aborted) throw new Failure(`Stopped when ${count(found.length)} jobs were found.`);
}

function jobTable(found: readonly Found[], { stdout, isTTY }: Io, which: string): string[] {
  const now = Date.now();
  const rows = found.map(({ job, state }) => [
    ...(which ? [] : [state]),
    plain(job.id ?? '', 40),
    plain(job.name, 30),
    duration(now - timeOf(job, state)),
    String(job.attemptsMade),
    plain(job.failedReason ?? '', 500),
  ]);
  const lines = table([...(which ? [] : ['STATE']), 'ID', 'NAME', '>AGO', '>TRIES', 'REASON'], rows);
  return isTTY ? lines.map((each) => each.slice(0, stdout.columns || 80)) : lines;
}

/** When it ended, or started, or was added: as the server has it for ages. */
function timeOf(job: Job, state: JobState): number {
  if (state === 'failed' || state === 'completed') return job.finishedOn ?? job.timestamp;
  return (state === 'active' ? job.processedOn : undefined) ?? job.timestamp;
}

/** Says how many there are. */
export async function tellCount(task: Task): Promise<number> {
  const { queue, wanted, io, isJson } = task;
  const matched = await followed(task, 'Found', (opts) => countOf(queue, wanted, opts));
  io.stdout.write(isJson ? `${JSON.stringify({ queue: queue.name, matched })}\n` : `${matched}\n`);
  return 0;
}

/** Shows jobs with all there is to know of them. */
export async function show(task: Task): Promise<number> {
  const { queue, wanted, read, io, isJson, which } = task;
  const limit = countGiven(read, 'limit') ?? (wanted.ids.length > 0 ? Infinity : DEFAULT_LIMIT);
  const found = await findAll(task, limit);
  const logs = await Promise.all(found.map(async ({ job }) => (await queue.getJobLogs(job.id ?? '')).logs));
  if (isJson) json(io, found, which, logs);
  else io.stdout.write(found.map((one, i) => described(one, which, logs[i] ?? [])).join('\n'));
  requireWhole(io, found);
  requireAll(queue, which, missingIds(wanted, found));
  return 0;
}

/** @throws Failure that names the ids that no such job has */
export function requireAll(queue: Queue, which: string, missing: readonly string[]): void {
  if (missing.length === 0) return;
  const ids = missing.map((id) => plain(id)).join(', ');
  throw new Failure(`No ${which}job of ${plain(queue.name)} has the id ${ids}.`);
}

function described({ job, state }: Found, which: string, logs: readonly string[]): string {
  const time = (ms: number | undefined): string => (ms === undefined ? '-' : new Date(ms).toISOString());
  const value = (of: unknown): string => plain(JSON.stringify(of) ?? 'undefined');
  const block = (text: string): string =>
    text
      .split('\n')
      .map((each) => `    ${plain(each)}`)
      .join('\n');
  const hasFailed = which !== '' || state === 'failed';
  return [
    `job ${plain(job.id ?? '')}  ${plain(job.name)}`,
    ...(which ? [] : [`  state     ${state}`]),
    ...(hasFailed ? [`  reason    ${plain(job.failedReason ?? '')}`] : []),
    `  tries     ${job.attemptsMade} ended, ${job.attemptsStarted} started`,
    `  added     ${time(job.timestamp)}`,
    `  started   ${time(job.processedOn)}${job.processedBy ? ` by ${plain(job.processedBy)}` : ''}`,
    hasFailed ? `  failed    ${time(job.finishedOn)}` : `  ended     ${time(job.finishedOn)}`,
    `  data      ${value(job.data)}`,
    ...(state === 'completed' ? [`  returned  ${value(job.returnvalue)}`] : []),
    `  options   ${value(job.opts)}`,
    ...(job.stacktrace ?? []).map((trace) => `  stack\n${block(trace)}`),
    ...(logs.length > 0 ? [`  log\n${logs.map(block).join('\n')}`] : []),
    '',
  ].join('\n');
}

/** Field names are part of the output: they stay. */
function json({ stdout }: Io, found: readonly Found[], which: string, logs?: readonly (readonly string[])[]): void {
  const plainJobs = found.map(({ job, state }, i) => ({
    id: job.id,
    ...(which ? {} : { state }),
    name: job.name,
    data: job.data as unknown,
    opts: job.opts,
    failedReason: job.failedReason,
    ...(which ? {} : { returnvalue: job.returnvalue as unknown }),
    attemptsMade: job.attemptsMade,
    attemptsStarted: job.attemptsStarted,
    timestamp: job.timestamp,
    processedOn: job.processedOn,
    finishedOn: job.finishedOn,
    processedBy: job.processedBy,
    stacktrace: job.stacktrace,
    ...(logs && { logs: logs[i] }),
  }));
  stdout.write(`${JSON.stringify(plainJobs, null, 2)}\n`);
}

/** What an action that changes jobs is called: `remove`, and of what was done `Removed`. */
export interface Verb {
  readonly action: string;
  readonly done: string;
}

/** Changes jobs, once somebody has agreed. */
export async function change(task: Task, { action, done: past }: Verb, how: Change): Promise<number> {
  const { queue, wanted, read, io, isJson, which } = task;
  const limit = countGiven(read, 'limit') ?? Infinity;
  const choice = await followed(task, past, ({ signal }) => choose(queue, wanted, limit, signal));
  const { matched, missing } = choice;
  const verb = `${action.charAt(0).toUpperCase()}${action.slice(1)}`;
  const what = `${count(matched)} ${which}${matched === 1 ? 'job' : 'jobs'} of ${plain(queue.name)}`;
  if (matched > 0 && !isGiven(read, 'yes') && !(await confirmed(io, `${verb} ${what}?`))) {
    throw new Failure('Nothing was done.');
  }
  const { done, skipped } =
    matched > 0 ? await followed(task, past, (opts) => carryOut(queue, choice, how, opts)) : NONE;
  if (isJson) io.stdout.write(`${JSON.stringify({ queue: queue.name, action, matched, done, skipped })}\n`);
  else {
    const why = which ? 'had left the failed ones, or are held' : 'had moved on, are held, or belong to others';
    io.stdout.write(`${past} ${count(done)} of ${what}${skipped > 0 ? `; ${count(skipped)} ${why}` : ''}.\n`);
  }
  requireAll(queue, which, missing);
  return 0;
}

const NONE = { done: 0, skipped: 0 };
/** What takes less shows no progress. */
const QUICK_S = 0.5;

/** Shows how far it is, and ends it when the command is told to end. */
export async function followed<T>(
  { io }: Pick<Task, 'io'>,
  past: string,
  act: (opts: Followed) => Promise<T>,
): Promise<T> {
  const progress = new Progress(io, past.toLowerCase());
  let jobs = 0;
  const onProgress = ({ done }: { done: number }): void => {
    jobs = done;
    if (progress.seconds > QUICK_S) progress.show(jobs);
  };
  try {
    return await act({ signal: io.signal, onProgress });
  } catch (error) {
    const { code, message } = error as Error & { code?: unknown };
    const isLate = code === 'ERR_STILL_RUNNING';
    if (!io.signal.aborted && !isLate) throw error;
    throw new Failure(`${isLate ? `${message};` : 'Stopped when'} ${count(jobs)} jobs were ${past.toLowerCase()}.`);
  } finally {
    progress.end();
  }
}
