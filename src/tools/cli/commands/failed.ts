import type { Job, Queue } from '../../../index.js';
import { countOf as countGiven, isGiven, readArguments, type Arguments } from '../arguments.js';
import { canAsk, confirmed } from '../ask.js';
import { Failure, UsageError, type Command, type Io } from '../command.js';
import { choose, countOf, find, isForAll, missingIds, readWanted, remove, replay } from '../failed-jobs.js';
import type { Choice, Done, Wanted } from '../failed-jobs.js';
import { didYouMean } from '../nearest.js';
import { requireQueue, withQueue } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS } from '../server.js';
import { count, duration, plain, table } from '../text.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
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

const DEFAULT_LIMIT = 100;

/** What a command line of `failed` asks for. */
interface Task {
  readonly queue: Queue;
  readonly wanted: Wanted;
  readonly read: Arguments;
  readonly io: Io;
  readonly isJson: boolean;
}

type Action = (task: Task) => Promise<number>;

const ACTIONS: Readonly<Record<string, Action>> = {
  list,
  count: tellCount,
  show,
  replay: replayJobs,
  remove: removeJobs,
};

/** Finds, shows, replays and removes failed jobs. */
export const failed: Command = {
  name: 'failed',
  summary: 'find, show, replay and remove failed jobs',
  help: `Finds failed jobs by name, reason, age or any text in them, and shows, replays or removes them.

Usage: chasquimq failed <queue> [action] [id...] [options]

Actions:
  list     the jobs, the latest first (unless an action is named)
  count    how many there are
  show     jobs of these ids, with data, options, stack traces and logs
  replay   puts them back in the waiting list
  remove   removes them for good; children of theirs stay

Options:
      --name <text>         jobs of this name; may be given more than once
      --reason <text>       the reason of the failure contains this, letter for letter
      --text <text>         this is in the id, the name, the reason or the data; reads all jobs that the others leave
      --older-than <time>   failed so long ago or earlier (30s, 5m, 2h, 7d)
      --newer-than <time>   failed so long ago or later
      --limit <n>           so many at most: list the latest (100), replay and remove those that failed first (all)
      --reset-attempts      replay counts tries from 0 again
      --all                 replay or remove every failed job: needed where nothing else says which
  -y, --yes                 does not ask; needed where nobody can be asked
      --json                JSON on stdout: an array of jobs, or {queue, action, matched, done, skipped}

${SERVER_HELP}
Examples:
  chasquimq failed mail --reason ECONNREFUSED --newer-than 1h
  chasquimq failed mail show 1234
  chasquimq failed mail replay --name welcome --reset-attempts --yes
  chasquimq failed mail remove --older-than 30d
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const [name, action = 'list', ...ids] = read.positionals;
    if (name === undefined) throw new UsageError('Name a queue: chasquimq failed <queue>.');
    const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
    if (!act) throw new UsageError(`There is no action ${action}.${didYouMean(action, Object.keys(ACTIONS))}`);
    const wanted = readWanted(read, ids);
    check(action, read, wanted, io);
    const server = readServer(read, io);
    return withQueue(server, name, async (queue) => {
      await requireQueue(server, queue);
      return act({ queue, wanted, read, io, isJson: isGiven(read, 'json') });
    });
  },
};

/** Refuses, before anybody connects, what could do more than was meant. */
function check(action: string, read: Arguments, wanted: Wanted, io: Io): void {
  countGiven(read, 'limit');
  const [isYes, isAll] = [isGiven(read, 'yes'), isGiven(read, 'all')];
  if (action === 'show' && wanted.ids.length === 0) throw new UsageError('show wants ids of jobs.');
  if (action !== 'replay' && isGiven(read, 'reset-attempts'))
    throw new UsageError('--reset-attempts belongs to replay.');
  if (action !== 'replay' && action !== 'remove') return;
  if (isForAll(wanted) && !isAll) throw new UsageError(`${action} wants ids, something to look for, or --all.`);
  if (!isForAll(wanted) && isAll) throw new UsageError('--all means every failed job: leave out the rest, or --all.');
  if (!isYes && !canAsk(io)) throw new UsageError(`${action} changes jobs, and there is nobody to ask: say --yes.`);
}

async function list({ queue, wanted, read, io, isJson }: Task): Promise<number> {
  const jobs = await find(queue, wanted, countGiven(read, 'limit') ?? DEFAULT_LIMIT);
  if (isJson) return json(io, jobs);
  if (jobs.length === 0) io.stdout.write('No failed jobs match.\n');
  else io.stdout.write(`${jobTable(jobs, io).join('\n')}\n`);
  return 0;
}

function jobTable(jobs: readonly Job[], { stdout, isTTY }: Io): string[] {
  const now = Date.now();
  const rows = jobs.map((job) => [
    plain(job.id ?? '', 40),
    plain(job.name, 30),
    duration(now - (job.finishedOn ?? now)),
    String(job.attemptsMade),
    plain(job.failedReason ?? '', 500),
  ]);
  const lines = table(['ID', 'NAME', '>AGO', '>TRIES', 'REASON'], rows);
  return isTTY ? lines.map((each) => each.slice(0, stdout.columns || 80)) : lines;
}

async function tellCount({ queue, wanted, io, isJson }: Task): Promise<number> {
  const matched = await countOf(queue, wanted);
  io.stdout.write(isJson ? `${JSON.stringify({ queue: queue.name, matched })}\n` : `${matched}\n`);
  return 0;
}

async function show({ queue, wanted, io, isJson }: Task): Promise<number> {
  const jobs = await find(queue, wanted, Infinity);
  const logs = await Promise.all(jobs.map(async (job) => (await queue.getJobLogs(job.id ?? '')).logs));
  if (isJson) json(io, jobs, logs);
  else io.stdout.write(jobs.map((job, i) => described(job, logs[i] ?? [])).join('\n'));
  requireAll(queue, missingIds(wanted, jobs));
  return 0;
}

/** @throws Failure that names the ids that no failed job has */
function requireAll(queue: Queue, missing: readonly string[]): void {
  if (missing.length === 0) return;
  throw new Failure(`No failed job of ${plain(queue.name)} has the id ${missing.map((id) => plain(id)).join(', ')}.`);
}

function described(job: Job, logs: readonly string[]): string {
  const time = (ms: number | undefined): string => (ms === undefined ? '-' : new Date(ms).toISOString());
  const value = (of: unknown): string => plain(JSON.stringify(of) ?? 'undefined');
  const block = (text: string): string =>
    text
      .split('\n')
      .map((each) => `    ${plain(each)}`)
      .join('\n');
  return [
    `job ${plain(job.id ?? '')}  ${plain(job.name)}`,
    `  reason    ${plain(job.failedReason ?? '')}`,
    `  tries     ${job.attemptsMade} ended, ${job.attemptsStarted} started`,
    `  added     ${time(job.timestamp)}`,
    `  started   ${time(job.processedOn)}${job.processedBy ? ` by ${plain(job.processedBy)}` : ''}`,
    `  failed    ${time(job.finishedOn)}`,
    `  data      ${value(job.data)}`,
    `  options   ${value(job.opts)}`,
    ...(job.stacktrace ?? []).map((trace) => `  stack\n${block(trace)}`),
    ...(logs.length > 0 ? [`  log\n${logs.map(block).join('\n')}`] : []),
    '',
  ].join('\n');
}

/** Field names are part of the output: they stay. */
function json({ stdout }: Io, jobs: readonly Job[], logs?: readonly (readonly string[])[]): number {
  const plainJobs = jobs.map((job, i) => ({
    id: job.id,
    name: job.name,
    data: job.data as unknown,
    opts: job.opts,
    failedReason: job.failedReason,
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
  return 0;
}

function replayJobs(task: Task): Promise<number> {
  const resetAttempts = isGiven(task.read, 'reset-attempts');
  return change(task, 'replay', (choice) => replay(task.queue, choice, resetAttempts));
}

function removeJobs(task: Task): Promise<number> {
  return change(task, 'remove', (choice) => remove(task.queue, choice));
}

async function change(
  { queue, wanted, read, io, isJson }: Task,
  action: 'replay' | 'remove',
  act: (choice: Choice) => Promise<Done>,
): Promise<number> {
  const choice = await choose(queue, wanted, countGiven(read, 'limit') ?? Infinity);
  const { matched, missing } = choice;
  const verb = action === 'replay' ? 'Replay' : 'Remove';
  const what = `${count(matched)} failed ${matched === 1 ? 'job' : 'jobs'} of ${plain(queue.name)}`;
  if (matched > 0 && !isGiven(read, 'yes') && !(await confirmed(io, `${verb} ${what}?`))) {
    throw new Failure('Nothing was done.');
  }
  const { done, skipped } = matched > 0 ? await act(choice) : { done: 0, skipped: 0 };
  if (isJson) io.stdout.write(`${JSON.stringify({ queue: queue.name, action, matched, done, skipped })}\n`);
  else {
    const left = skipped > 0 ? `; ${count(skipped)} had left the failed ones, or are held` : '';
    io.stdout.write(`${verb}${action === 'replay' ? 'ed' : 'd'} ${count(done)} of ${what}${left}.\n`);
  }
  requireAll(queue, missing);
  return 0;
}
