import type { CancelledState, CancelJobOptions, Queue } from '../../../index.js';
import { isGiven, readArguments, textOf, waitOf } from '../arguments.js';
import { UsageError, type Command, type Io } from '../command.js';
import { pagesOf, untilOver, type Followed } from '../chosen-jobs.js';
import { followed, requireAll } from '../job-actions.js';
import { requireQueue, withQueue } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS } from '../server.js';
import { plain, table } from '../text.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
  json: { type: 'boolean' },
  why: { type: 'string' },
  cascade: { type: 'boolean' },
  remove: { type: 'boolean' },
  wait: { type: 'string' },
} as const;

/** Cancels jobs by their ids. */
export const cancel: Command = {
  name: 'cancel',
  summary: 'cancel jobs by their ids, whether they wait or run',
  help: `Cancels jobs. One that does not run fails for good; of one that runs the signal is aborted, and its worker decides.

Usage: chasquimq cancel <queue> <id...> [options]

Says of each job what became of it: cancelled, signalled (it runs), ended (before) or missing. By a filter:
chasquimq jobs cancel.

Options:
      --why <text>    the failed reason tells it
      --cascade       the children that the jobs wait for as well, and theirs
      --remove        removes what does not run, in place of failing it
      --wait [time]   waits for those that run to end; so long at most (30s, 5m)
      --json          JSON on stdout: {queue, jobs: [{id, became}]}

${SERVER_HELP}
Examples:
  chasquimq cancel mail 1234 --why 'the order is withdrawn'
  chasquimq cancel reports r-17 --cascade --wait 30s
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const [name, ...ids] = read.positionals;
    if (name === undefined || ids.length === 0)
      throw new UsageError('Name a queue and jobs: chasquimq cancel <queue> <id...>.');
    const [reason, waitForEnd, server] = [textOf(read, 'why'), waitOf(read), readServer(read, io)];
    const [cascade, remove] = [isGiven(read, 'cascade'), isGiven(read, 'remove')];
    return withQueue(server, name, async (queue) => {
      await requireQueue(server, queue);
      const opts = { reason, cascade, remove, waitForEnd };
      const jobs = await followed({ io }, 'Cancelled', (how) => cancelAll(queue, [...new Set(ids)], opts, how));
      if (isGiven(read, 'json')) io.stdout.write(`${JSON.stringify({ queue: name, jobs })}\n`);
      else
        io.stdout.write(
          `${table(
            ['ID', 'BECAME'],
            jobs.map(({ id, became }) => [plain(id, 40), became]),
          ).join('\n')}\n`,
        );
      requireAll(
        queue,
        '',
        jobs.filter(({ became }) => became === 'missing').map(({ id }) => id),
      );
      return 0;
    });
  },
};

interface Cancelled {
  readonly id: string;
  readonly became: CancelledState;
}

async function cancelAll(
  queue: Queue,
  ids: readonly string[],
  { waitForEnd, ...how }: CancelJobOptions,
  { signal, onProgress }: Followed,
): Promise<Cancelled[]> {
  const jobs: Cancelled[] = [];
  const count = (...some: string[]): number => jobs.filter(({ became }) => some.includes(became)).length;
  for (const page of pagesOf(ids, signal)) {
    jobs.push(...(await Promise.all(page.map(async (id) => ({ id, became: await queue.cancelJob(id, how) })))));
    onProgress({ done: count('cancelled', 'signalled') });
  }
  const running = jobs.filter(({ became }) => became === 'signalled').map(({ id }) => id);
  await untilOver(queue, running, { ...how, waitForEnd }, signal);
  return jobs;
}
