import { countOf as countGiven, isGiven, readArguments, type Arguments } from '../arguments.js';
import { readWanted, remove, retry, type Wanted } from '../chosen-jobs.js';
import { UsageError, type Command, type Io } from '../command.js';
import { change, checkChange, list, show, tellCount, WHICH_OPTIONS, type Action } from '../job-actions.js';
import { didYouMean } from '../nearest.js';
import { requireQueue, withQueue } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS } from '../server.js';

const OPTIONS = { ...SERVER_OPTIONS, ...WHICH_OPTIONS } as const;

const ACTIONS: Readonly<Record<string, Action>> = {
  list,
  count: tellCount,
  show,
  replay: (task) => change(task, { action: 'replay', done: 'Replayed' }, retry(isGiven(task.read, 'reset-attempts'))),
  remove: (task) => change(task, { action: 'remove', done: 'Removed' }, remove),
};

/** Finds, shows, replays and removes failed jobs: `jobs` for these alone. */
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
    const wanted = readWanted(read, ['failed'], ids);
    check(action, read, wanted, io);
    const server = readServer(read, io);
    return withQueue(server, name, async (queue) => {
      await requireQueue(server, queue);
      return act({ queue, wanted, read, io, isJson: isGiven(read, 'json'), which: 'failed ' });
    });
  },
};

/** Refuses, before anybody connects, what could do more than was meant. */
function check(action: string, read: Arguments, wanted: Wanted, io: Io): void {
  countGiven(read, 'limit');
  if (action === 'show' && wanted.ids.length === 0) throw new UsageError('show wants ids of jobs.');
  if (action !== 'replay' && isGiven(read, 'reset-attempts'))
    throw new UsageError('--reset-attempts belongs to replay.');
  if (action === 'replay' || action === 'remove') checkChange(action, read, wanted, { io, all: 'every failed job' });
}
