import { PLACES, type QueueAccount } from '../../migrate/account.js';
import type { MoveOptions } from '../../migrate/move.js';
import { Mover, namesThere, type Survey } from '../../migrate/mover.js';
import { Returner } from '../../migrate/returner.js';
import type { Queue } from '../../../index.js';
import { countOf, isGiven, readArguments, type Arguments } from '../arguments.js';
import { canAsk, confirmed } from '../ask.js';
import { Failure, UsageError, type Command, type Io } from '../command.js';
import { inPlaces, linesOf, listedHere, listedThere, MODES, sum, type Mode, type Outcome } from '../migrate-text.js';
import { Progress } from '../progress.js';
import { pausedOf } from '../queue-report.js';
import { namesOf, openQueue, requireQueue, unusable } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS, type Server } from '../server.js';
import { count, plain } from '../text.js';
import { pause } from '../waiting.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
  'dry-run': { type: 'boolean' },
  follow: { type: 'boolean' },
  back: { type: 'boolean' },
  verify: { type: 'boolean' },
  compare: { type: 'boolean' },
  all: { type: 'boolean' },
  gap: { type: 'string' },
  'any-version': { type: 'boolean' },
  json: { type: 'boolean' },
  yes: { type: 'boolean', short: 'y' },
} as const;

/** Jobs that producers of the side that is left may still add while theirs and ours number jobs side by side. */
const WIDE_GAP = 1_000_000;
/** Between two looks of `--follow` that found nothing. */
const REST_MS = 250;

/** The version of a queue that the paid edition wrote: what of it lies in groups would stay behind. */
const OF_PRO = /^bullmq-pro\b/;

/** What a command line of `migrate` asks for. */
interface Task {
  readonly server: Server;
  readonly queues: readonly Queue[];
  readonly mode: Mode;
  readonly read: Arguments;
  readonly io: Io;
  readonly isJson: boolean;
}

/** Moves BullMQ's queues into ours, and back. */
export const migrate: Command = {
  name: 'migrate',
  summary: "move BullMQ's queues here, or back",
  help: `Moves queues that BullMQ 5 or 6 wrote into ChasquiMQ's queues of the same names, on the same server or in the same
Cluster (--cluster). Each job moves in one step, with its id and all that is known of it: whoever is stopped or killed
meanwhile, it is in exactly one of the two, and the next run goes on. Workers of both may run. Active jobs stay with
BullMQ's workers: run the command again, or --follow.

Usage: chasquimq migrate <queue...> [options]
       chasquimq migrate --all [options]

Name all queues of a flow at once: a child moves only after its parent.

Options:
      --all          all queues of BullMQ's with the prefix; with --back all of ours. Lists them first
      --dry-run      moves nothing; counts what would move, and tells what would not, and why
      --follow       goes on moving what BullMQ's producers still add, and what its workers end, until Ctrl-C
      --back         moves everything back to BullMQ instead
      --verify       moves nothing; compares how many jobs BullMQ has and how many are here, and finds ids of both
      --compare      reads each job before it moves and after, and compares all that is known of it: name, data,
                     options, state, attempts, times, result, stack traces, log, parent. Takes some times as long
      --gap <n>      leaves so many numbers free for jobs that the producers of the other side still add, so that no
                     id is given twice (${count(WIDE_GAP)})
      --any-version  goes on when another version than 5 or 6 wrote the queue, or nobody knows which
  -y, --yes          does not ask; needed where nobody can be asked
      --json         JSON on stdout: what moved, what stays and why

Exit codes: 0 nothing is left to move, 1 something failed, is left or is not as it was, 2 not understood.

${SERVER_HELP}
Examples:
  chasquimq migrate mail --dry-run
  chasquimq migrate mail reports --yes
  chasquimq migrate mail --follow --yes
  chasquimq migrate mail --back --compare
  chasquimq migrate --all --dry-run
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const mode = modeOf(read);
    countOf(read, 'gap', 0);
    requireNames(read);
    if ((mode === 'move' || mode === 'follow' || mode === 'back') && !isGiven(read, 'yes') && !canAsk(io)) {
      throw new UsageError('migrate changes queues, and there is nobody to ask: say --yes, or --dry-run.');
    }
    const server = readServer(read, io);
    const queues: Queue[] = [];
    try {
      for (const name of await namesIn(read, server, mode))
        queues.push(await openQueue(server, name, mode === 'follow'));
      return await carryOut({ server, queues, mode, read, io, isJson: isGiven(read, 'json') });
    } catch (error) {
      throw unusable(server, error);
    } finally {
      await Promise.all(queues.map((queue) => queue.close()));
    }
  },
};

function modeOf(read: Arguments): Mode {
  const given = MODES.filter((mode) => isGiven(read, mode));
  if (given.length > 1) throw new UsageError(`${given.map((mode) => `--${mode}`).join(' and ')} exclude each other.`);
  const mode = given[0] ?? 'move';
  if (isGiven(read, 'compare') && (mode === 'dry-run' || mode === 'verify')) {
    throw new UsageError(`--compare does not go with --${mode}, which moves nothing.`);
  }
  return mode;
}

function requireNames(read: Arguments): void {
  const { positionals } = read;
  if (isGiven(read, 'all') && positionals.length > 0) {
    throw new UsageError(`--all moves all queues: "${positionals[0]}" does not go with it.`);
  }
  if (!isGiven(read, 'all') && positionals.length === 0) {
    throw new UsageError('Name a queue: chasquimq migrate <queue...>, or --all.');
  }
}

async function namesIn(read: Arguments, server: Server, mode: Mode): Promise<readonly string[]> {
  if (!isGiven(read, 'all')) return [...new Set(read.positionals)];
  const names = await (mode === 'back' ? namesOf(server) : namesOf(server, namesThere));
  if (names.length > 0) return names;
  const whose = mode === 'back' ? 'There is no queue' : 'BullMQ has no queue';
  throw new Failure(`${whose} with the prefix ${server.prefix} at ${server.shown}.`);
}

async function carryOut(task: Task): Promise<number> {
  const { queues, mode, read, io } = task;
  const gap = countOf(read, 'gap', 0) ?? WIDE_GAP;
  const progress = new Progress(io);
  const options: MoveOptions = {
    gap,
    tries: mode === 'dry-run' || mode === 'verify',
    compares: isGiven(read, 'compare'),
    signal: io.signal,
    onStep: () => progress.show(mover.moved),
  };
  const mover = mode === 'back' ? new Returner(queues, options) : new Mover(queues, options);
  const surveys = await new Mover(queues).survey();
  await checkSources(task, surveys);
  if (isGiven(read, 'all') && !task.isJson) io.stdout.write(`${(await listed(task, surveys)).join('\n')}\n\n`);
  if (!(await isWanted(task, surveys))) return 1;
  try {
    await mover.move();
    if (mode === 'follow') await follow(mover as Mover, io);
  } finally {
    progress.end();
  }
  return told(task, mover.accounts, progress.seconds);
}

async function listed({ queues, mode }: Task, surveys: readonly Survey[]): Promise<string[]> {
  const names = queues.map(({ name }) => name);
  if (mode !== 'back') return listedThere(names, surveys);
  const counts = await Promise.all(queues.map((queue) => queue.getJobCounts()));
  return listedHere(names, counts);
}

/** @throws Failure when one of the queues is not there to be moved */
async function checkSources(task: Task, surveys: readonly Survey[]): Promise<void> {
  const { server, queues, mode, read } = task;
  if (mode !== 'back') surveys.forEach((survey, i) => checkSource(task, survey, i));
  // --all names those that there are
  else if (!isGiven(read, 'all')) for (const queue of queues) await requireQueue(server, queue);
}

/** @throws Failure when BullMQ has no such queue, or one that nobody knows how to read */
function checkSource({ server, queues, read }: Task, { exists, version }: Survey, i: number): void {
  const name = plain(queues[i]?.name ?? '');
  if (!exists) {
    throw new Failure(`BullMQ has no queue ${name} with the prefix ${server.prefix} at ${server.shown}.`);
  }
  if (OF_PRO.test(version)) {
    throw new Failure(
      `The queue ${name} was written by BullMQ Pro (${plain(version, 60)}), whose groups migrate does not know. Nothing was moved. ` +
        'Let its workers end its jobs, and add new ones here.',
    );
  }
  if (/^bullmq:[56]\./.test(version) || isGiven(read, 'any-version')) return;
  const writer = version === '' ? 'a BullMQ that does not say its version' : plain(version, 60);
  throw new Failure(
    `The queue ${name} was written by ${writer}; known are BullMQ 5 and 6. ` +
      'Run BullMQ 5 or 6 on it first, or say --any-version.',
  );
}

async function isWanted({ queues, mode, read, io }: Task, surveys: readonly Survey[]): Promise<boolean> {
  if (mode === 'dry-run' || mode === 'verify' || isGiven(read, 'yes')) return true;
  const names = isGiven(read, 'all')
    ? `all ${count(queues.length)} queues`
    : queues.map(({ name }) => plain(name)).join(', ');
  if (mode === 'back') return confirmed(io, `Move all jobs of ${names} back to BullMQ?`);
  const jobs = surveys.reduce((all, survey) => all + inPlaces(survey, PLACES), 0);
  return confirmed(io, `Move ${count(jobs)} jobs of ${names} from BullMQ to ChasquiMQ?`);
}

/** Goes on until the command is told to end. */
async function follow(mover: Mover, { signal }: Io): Promise<void> {
  while (!signal.aborted) {
    const before = mover.moved;
    await mover.moveOnce();
    if (mover.moved === before) await pause(REST_MS, signal);
  }
}

async function told(task: Task, accounts: readonly QueueAccount[], seconds: number): Promise<number> {
  const { queues, mode, io, isJson } = task;
  const surveys = await new Mover(queues).survey();
  const outcomes = await Promise.all(
    queues.map(async (queue, i): Promise<Outcome> => {
      const here = (await queue.getJobCounts()) as Record<string, number>;
      const { places, counts, schedulers } = surveys[i];
      const there = Object.fromEntries(places.map((place, at) => [place, counts[at] ?? 0]));
      const [account, schedulersHere] = [accounts[i], await queue.getJobSchedulersCount()];
      if (mode !== 'back') return { account, here, left: there, schedulers, schedulersHere, paused: [] };
      const paused = schedulersHere > 0 ? await pausedOf(queue) : [];
      return { account, here, left: here, schedulers: schedulersHere, schedulersHere, paused };
    }),
  );
  const code = exitCode(mode, outcomes);
  if (isJson) {
    const result = outcomes.map(({ account, left, here, schedulers, schedulersHere, paused }) => ({
      ...account.toJSON(),
      ...{ left, here, schedulersLeft: schedulers, schedulersHere, pausedSchedulers: paused },
    }));
    io.stdout.write(`${JSON.stringify({ mode, done: code === 0, seconds, queues: result }, undefined, 2)}\n`);
  } else {
    for (const outcome of outcomes) io.stdout.write(`${linesOf(outcome, mode, seconds).join('\n')}\n`);
  }
  return code;
}

function exitCode(mode: Mode, outcomes: readonly Outcome[]): number {
  if (outcomes.some(({ account }) => account.differ.size > 0)) return 1;
  if (mode === 'dry-run' || mode === 'follow') return 0;
  const isDone = outcomes.every(
    ({ left, schedulers, account }) => sum(left) === 0 && schedulers === 0 && account.openChildren === 0,
  );
  return isDone ? 0 : 1;
}
