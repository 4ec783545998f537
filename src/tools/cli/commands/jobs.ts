import type { CancelJobOptions, JobState } from '../../../index.js';
import { ALL_STATES } from '../../../options/job-filter.js';
import { countOf as countGiven, isGiven, readArguments, textOf, waitOf, type Arguments } from '../arguments.js';
import { cancel, move, promote, readWanted, remove, retry, type Wanted } from '../chosen-jobs.js';
import { UsageError, type Command, type Io } from '../command.js';
import { change, checkChange, list, show, tellCount, WHICH_OPTIONS, type Action } from '../job-actions.js';
import { didYouMean } from '../nearest.js';
import { requireQueue, withQueue } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS } from '../server.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
  ...WHICH_OPTIONS,
  state: { type: 'string', multiple: true },
  data: { type: 'string' },
  group: { type: 'string' },
  parent: { type: 'string' },
  to: { type: 'string' },
  why: { type: 'string' },
  cascade: { type: 'boolean' },
  wait: { type: 'string' },
} as const;

const ACTIONS: Readonly<Record<string, Action>> = {
  find: list,
  count: tellCount,
  show,
  remove: (task) => change(task, { action: 'remove', done: 'Removed' }, remove),
  cancel: (task) => change(task, { action: 'cancel', done: 'Cancelled' }, cancel(cancelOptions(task.read))),
  retry: (task) => change(task, { action: 'retry', done: 'Retried' }, retry(isGiven(task.read, 'reset-attempts'))),
  promote: (task) => change(task, { action: 'promote', done: 'Promoted' }, promote),
  move: (task) => change(task, { action: 'move', done: 'Moved' }, move(textOf(task.read, 'to') ?? '')),
};

function cancelOptions(read: Arguments): CancelJobOptions {
  return { reason: textOf(read, 'why'), cascade: isGiven(read, 'cascade'), waitForEnd: waitOf(read) };
}

/** States of the jobs that an action is about, unless the command line names some; those it may name. */
const STATES_OF: Readonly<Record<string, readonly [readonly JobState[], readonly JobState[]]>> = {
  cancel: [ALL_STATES.slice(0, 5), ALL_STATES.slice(0, 5)],
  retry: [['failed'], ['failed', 'completed']],
  promote: [['delayed'], ['delayed']],
  move: [
    ['prioritized', 'waiting', 'delayed', 'failed', 'completed'],
    ['prioritized', 'waiting', 'delayed', 'failed', 'completed'],
  ],
};

/** Finds jobs in every state, shows and changes them. */
export const jobs: Command = {
  name: 'jobs',
  summary: 'find, show, remove, cancel, retry, promote and move jobs in every state',
  help: `Finds jobs by state, name, data, reason, group, parent, age or any text in them, and shows or changes them.

Usage: chasquimq jobs <action> <queue> [id...] [options]

Actions:
  find     the jobs, state by state
  count    how many there are
  show     the jobs, with data, options, results, stack traces and logs
  remove   removes them for good; children of theirs stay
  cancel   fails what does not run for good, and aborts the signals of what runs
  retry    puts failed jobs back in the waiting list, or completed ones (--state completed)
  promote  puts delayed jobs in the waiting list
  move     moves them to another queue (--to); not by ids

Options:
      --state <state>       jobs in this state; may be given more than once (all that the action is about)
      --name <text>         jobs of this name; may be given more than once
      --data <text>         the data contain this as JSON, letter for letter; or an object, whose fields the data have
      --reason <text>       the reason of the failure contains this, letter for letter
      --group <id>          jobs of this group
      --parent <id>         children of this job; of another queue: <prefix>:<queue>:<id>
      --text <text>         this is in the id, the name, the reason or the data; reads all jobs that the others leave
      --older-than <time>   ended so long ago or earlier, or else started, or was added (30s, 5m, 2h, 7d)
      --newer-than <time>   did so as long ago or later
      --limit <n>           so many at most: find the first (100), change those that ended or start first (all)
      --to <queue>          where move moves jobs to, with the same prefix
      --why <text>          why cancel cancels
      --cascade             cancel takes the children that the jobs wait for as well, and theirs
      --wait [time]         cancel waits for those that run to end; so long at most for all of them (30s, 5m)
      --reset-attempts      retry counts tries from 0 again
      --all                 change every job of these states: needed where nothing else says which
  -y, --yes                 does not ask; needed where nobody can be asked
      --json                JSON on stdout: an array of jobs, or {queue, action, matched, done, skipped}

${SERVER_HELP}
Examples:
  chasquimq jobs find mail --state waiting --data '{"userId":42}'
  chasquimq jobs show mail 1234
  chasquimq jobs remove mail --group tenant-7 --yes
  chasquimq jobs move mail-dead --to mail --state failed --newer-than 1d
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const [action, name, ...ids] = read.positionals;
    if (action === undefined) throw new UsageError('Say what to do: chasquimq jobs <action> <queue>.');
    const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
    if (!act) throw new UsageError(`There is no action ${action}.${didYouMean(action, Object.keys(ACTIONS))}`);
    if (name === undefined) throw new UsageError(`Name a queue: chasquimq jobs ${action} <queue>.`);
    const wanted = readWanted(read, statesFor(action, read), ids);
    check(action, read, wanted, io);
    const server = readServer(read, io);
    return withQueue(server, name, async (queue) => {
      await requireQueue(server, queue);
      return act({ queue, wanted, read, io, isJson: isGiven(read, 'json'), which: '' });
    });
  },
};

function statesFor(action: string, read: Arguments): readonly JobState[] {
  const [usual, possible] = STATES_OF[action] ?? [ALL_STATES, ALL_STATES];
  const given = read.values.state as JobState[] | undefined;
  const wrong = given?.find((state) => !possible.includes(state));
  if (wrong !== undefined) {
    throw new UsageError(`${action} is about jobs that are ${possible.join(', ')}, not "${wrong}".`);
  }
  return given ? [...new Set(given)] : usual;
}

/** Refuses, before anybody connects, what could do more than was meant, or says too little. */
function check(action: string, read: Arguments, wanted: Wanted, io: Io): void {
  countGiven(read, 'limit');
  const target = textOf(read, 'to');
  if (action !== 'retry' && isGiven(read, 'reset-attempts')) throw new UsageError('--reset-attempts belongs to retry.');
  const { reason, cascade, waitForEnd } = cancelOptions(read);
  for (const [name, value] of Object.entries({ why: reason, cascade: cascade || undefined, wait: waitForEnd })) {
    if (action !== 'cancel' && value !== undefined) throw new UsageError(`--${name} belongs to cancel.`);
  }
  if (action !== 'move' && target !== undefined) throw new UsageError('--to belongs to move.');
  if (action === 'move' && target === undefined)
    throw new UsageError('move wants a queue to move jobs to: --to <queue>.');
  if (action === 'move' && (wanted.ids.length > 0 || wanted.text !== undefined)) {
    throw new UsageError('move takes what the server finds: leave out ids and --text.');
  }
  if (!['find', 'count', 'show'].includes(action))
    checkChange(action, read, wanted, { io, all: 'every job of these states' });
}
