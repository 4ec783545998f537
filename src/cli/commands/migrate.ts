import { PLACES, REASONS, type QueueAccount } from '../../migrate/account.js';
import { Mover, type MoveOptions, type Survey } from '../../migrate/mover.js';
import { Returner } from '../../migrate/returner.js';
import type { Queue } from '../../index.js';
import { countOf, isGiven, readArguments, type Arguments } from '../arguments.js';
import { canAsk, confirmed } from '../ask.js';
import { Failure, UsageError, type Command, type Io } from '../command.js';
import { Progress } from '../progress.js';
import { openQueue, unusable } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS, type Server } from '../server.js';
import { count, plain, table } from '../text.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
  'dry-run': { type: 'boolean' },
  follow: { type: 'boolean' },
  back: { type: 'boolean' },
  verify: { type: 'boolean' },
  gap: { type: 'string' },
  'any-version': { type: 'boolean' },
  json: { type: 'boolean' },
  yes: { type: 'boolean', short: 'y' },
} as const;

/** Jobs that BullMQ's producers may still add while theirs and ours number jobs side by side. */
const FOLLOW_GAP = 1_000_000;
/** Between two looks of `--follow` that found nothing. */
const REST_MS = 250;
/** Ids that are shown of those that stay. */
const SHOWN_IDS = 5;

const MODES = ['dry-run', 'follow', 'back', 'verify'] as const;
type Mode = 'move' | (typeof MODES)[number];

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
  help: `Moves queues that BullMQ 5 or 6 wrote, on the same server, into ChasquiMQ's queues of the same names. Each job moves
in one step, with its id and all that is known of it: whoever is stopped or killed meanwhile, it is in exactly one of
the two. Workers of both may run. Active jobs stay with BullMQ's workers: run the command again, or --follow.

Usage: chasquimq migrate <queue...> [options]

Name all queues of a flow at once: a child moves only after its parent.

Options:
      --dry-run      moves nothing; counts what would move, and tells what would not, and why
      --follow       goes on moving what BullMQ's producers still add, and what its workers end, until Ctrl-C
      --back         moves everything to BullMQ 6 instead
      --verify       moves nothing; compares what BullMQ has with what is here
      --gap <n>      leaves so many numbers free for jobs that BullMQ's producers still add, so that no id is given
                     twice (0; with --follow ${count(FOLLOW_GAP)})
      --any-version  goes on when another version than 5 or 6 wrote the queue, or nobody knows which
  -y, --yes          does not ask; needed where nobody can be asked
      --json         JSON on stdout: what moved, what stays and why

Exit codes: 0 nothing is left to move, 1 something failed or is left, 2 not understood.

${SERVER_HELP}
Examples:
  chasquimq migrate mail --dry-run
  chasquimq migrate mail reports --yes
  chasquimq migrate mail --follow --yes
  chasquimq migrate mail --back
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const names = [...new Set(read.positionals)];
    if (names.length === 0) throw new UsageError('Name a queue: chasquimq migrate <queue...>.');
    const mode = modeOf(read);
    countOf(read, 'gap', 0);
    if ((mode === 'move' || mode === 'follow' || mode === 'back') && !isGiven(read, 'yes') && !canAsk(io)) {
      throw new UsageError('migrate changes queues, and there is nobody to ask: say --yes, or --dry-run.');
    }
    const server = readServer(read, io);
    const queues: Queue[] = [];
    try {
      for (const name of names) queues.push(await openQueue(server, name, mode === 'follow'));
      return await carryOut({ server, queues, mode, read, io, isJson: isGiven(read, 'json') });
    } catch (error) {
      throw error instanceof Failure || error instanceof UsageError ? error : unusable(server, error);
    } finally {
      await Promise.all(queues.map((queue) => queue.close()));
    }
  },
};

function modeOf(read: Arguments): Mode {
  const given = MODES.filter((mode) => isGiven(read, mode));
  if (given.length > 1) throw new UsageError(`${given.map((mode) => `--${mode}`).join(' and ')} exclude each other.`);
  if (isGiven(read, 'back') && isGiven(read, 'gap')) throw new UsageError('--gap does not go with --back.');
  return given[0] ?? 'move';
}

async function carryOut(task: Task): Promise<number> {
  const { queues, mode, read, io } = task;
  const gap = countOf(read, 'gap', 0) ?? (mode === 'follow' ? FOLLOW_GAP : 0);
  const progress = new Progress(io, 'moved');
  const options: MoveOptions = {
    gap,
    tries: mode === 'dry-run' || mode === 'verify',
    signal: io.signal,
    onStep: () => progress.show(mover.moved),
  };
  const mover = mode === 'back' ? new Returner(queues, options) : new Mover(queues, options);
  const surveys = await new Mover(queues).survey();
  if (mode !== 'back') surveys.forEach((survey, i) => checkSource(task, survey, i));
  if (!(await isWanted(task, surveys))) return 1;
  try {
    await mover.move();
    if (mode === 'follow') await follow(mover as Mover, io);
  } finally {
    progress.end();
  }
  return told(task, mover.accounts, progress.seconds);
}

/** @throws Failure when BullMQ has no such queue, or one that nobody knows how to read */
function checkSource({ server, queues, read }: Task, { exists, version }: Survey, i: number): void {
  const name = queues[i]?.name ?? '';
  if (!exists) {
    throw new Failure(`BullMQ has no queue ${name} with the prefix ${server.prefix} at ${server.shown}.`);
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
  const names = queues.map(({ name }) => name).join(', ');
  if (mode === 'back') return confirmed(io, `Move all jobs of ${names} back to BullMQ?`);
  const jobs = surveys.reduce((sum, survey) => sum + inPlaces(survey, PLACES), 0);
  return confirmed(io, `Move ${count(jobs)} jobs of ${names} from BullMQ to ChasquiMQ?`);
}

function inPlaces({ places, counts }: Survey, wanted: readonly string[]): number {
  return places.reduce((sum, place, at) => sum + (wanted.includes(place) ? (counts[at] ?? 0) : 0), 0);
}

/** Goes on until the command is told to end. */
async function follow(mover: Mover, { signal }: Io): Promise<void> {
  while (!signal.aborted) {
    const before = mover.moved;
    await mover.moveOnce();
    if (mover.moved === before) await rest(signal);
  }
}

function rest(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, REST_MS);
    signal.addEventListener('abort', end);
  });
}

/** What a move did to one queue, and where that leaves it. */
interface Outcome {
  readonly account: QueueAccount;
  /** Jobs that are still on the other side, by place. */
  readonly left: Readonly<Record<string, number>>;
  /** Jobs that are here, by state. */
  readonly here: Readonly<Record<string, number>>;
  /** Job schedulers that are still on the other side. */
  readonly schedulers: number;
}

async function told(task: Task, accounts: readonly QueueAccount[], seconds: number): Promise<number> {
  const { queues, mode, io, isJson } = task;
  const surveys = await new Mover(queues).survey();
  const outcomes = await Promise.all(
    queues.map(async (queue, i): Promise<Outcome> => {
      const here = (await queue.getJobCounts()) as Record<string, number>;
      const { places, counts, schedulers } = surveys[i];
      const there = Object.fromEntries(places.map((place, at) => [place, counts[at] ?? 0]));
      const account = accounts[i];
      if (mode !== 'back') return { account, here, left: there, schedulers };
      return { account, here, left: here, schedulers: await queue.getJobSchedulersCount() };
    }),
  );
  const code = exitCode(mode, outcomes);
  if (isJson) {
    const result = outcomes.map(({ account, left, here, schedulers }) => ({
      ...account.toJSON(),
      ...{ left, here, schedulersLeft: schedulers },
    }));
    io.stdout.write(`${JSON.stringify({ mode, done: code === 0, seconds, queues: result }, undefined, 2)}\n`);
  } else {
    for (const outcome of outcomes) io.stdout.write(`${linesOf(outcome, mode, seconds).join('\n')}\n`);
  }
  return code;
}

function exitCode(mode: Mode, outcomes: readonly Outcome[]): number {
  if (mode === 'dry-run' || mode === 'follow') return 0;
  const isDone = outcomes.every(
    ({ left, schedulers, account }) => sum(left) === 0 && schedulers === 0 && account.openChildren === 0,
  );
  return isDone ? 0 : 1;
}

function linesOf({ account, left, here, schedulers }: Outcome, mode: Mode, seconds: number): string[] {
  const lines = [`${account.name}: ${headline(account, mode, seconds)}`];
  if (mode === 'verify') lines.push(...table(['', 'BULLMQ', 'HERE'], compared(left, here)).map((line) => `  ${line}`));
  else if (account.total > 0) {
    const parts = [...account.moved].map(([place, jobs]) => `${count(jobs)} ${place}`);
    if (account.schedulers > 0) parts.push(`with ${count(account.schedulers)} job schedulers`);
    lines.push(`  ${parts.join(', ')}`);
  }
  const settings = Object.entries(account.settings).map(([name, value]) =>
    name === 'paused' ? name : `${name} ${value}`,
  );
  if (settings.length > 0) lines.push(`  settings: ${settings.join(', ')}`);
  if ('paused' in account.settings && mode !== 'back')
    lines.push('  the queue was paused, and is: resume it when your workers are ready');
  if ((left.active ?? 0) > 0)
    lines.push(`  ${count(left.active ?? 0)} jobs stay: ${mode === 'back' ? 'active here' : REASONS.active}`);
  if (schedulers > 0 && mode !== 'dry-run') {
    lines.push(`  ${count(schedulers)} job schedulers stay: they have no job that waits for its time`);
  }
  for (const [reason, ids] of account.stays) {
    const shown = ids.slice(0, SHOWN_IDS).map((id) => plain(id, 60));
    const more = ids.length > SHOWN_IDS ? ', ...' : '';
    lines.push(`  ${count(ids.length)} jobs stay: they ${REASONS[reason] ?? reason} (${shown.join(', ')}${more})`);
  }
  if (account.openChildren > 0) {
    lines.push(
      `  parents that were moved wait for ${count(account.openChildren)} children that are BullMQ's still: run it again when they have ended`,
    );
  }
  if (!account.mayScan) {
    lines.push('  this user may not SCAN: deduplication ids whose jobs are gone, but whose time is not over, stay');
  }
  return lines;
}

function headline({ total, stays }: QueueAccount, mode: Mode, seconds: number): string {
  if (mode === 'dry-run') return `${count(total)} jobs would move`;
  if (mode === 'verify') {
    const twice = stays.get('exists')?.length ?? 0;
    return twice > 0 ? `${count(twice)} ids are on both sides` : 'no id is on both sides';
  }
  const where = mode === 'back' ? ' back to BullMQ' : '';
  return `${count(total)} jobs moved${where} in ${seconds.toFixed(1)} s`;
}

function compared(there: Readonly<Record<string, number>>, here: Readonly<Record<string, number>>): string[][] {
  const names: readonly (readonly [string, readonly string[]])[] = [
    ['waiting', ['wait', 'paused']],
    ...['active', 'prioritized', 'delayed', 'waiting-children', 'completed', 'failed'].map(
      (name) => [name, [name]] as const,
    ),
  ];
  return names.map(([name, places]) => [
    name,
    count(places.reduce((jobs, place) => jobs + (there[place] ?? 0), 0)),
    count(here[name] ?? 0),
  ]);
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, jobs) => all + jobs, 0);
}
