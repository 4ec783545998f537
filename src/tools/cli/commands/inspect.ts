import { isGiven, readArguments, textOf, timeOf, type Arguments } from '../arguments.js';
import { UsageError, type Command, type Io } from '../command.js';
import { forEachName, namesOf, requireQueue, withQueue } from '../queues.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS, type Server } from '../server.js';
import { groupSight, QUEUES, type Sight } from '../sights.js';
import { pause } from '../waiting.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
  json: { type: 'boolean' },
  group: { type: 'string' },
  sample: { type: 'string' },
} as const;

const DEFAULT_SAMPLE_MS = 1_000;

/** Shows queues as they are now. */
export const inspect: Command = {
  name: 'inspect',
  summary: 'counts, ages, rates, workers and limits of queues',
  help: `Shows queues as they are now: jobs by state, how old the oldest are, how many end, who works, what is limited.

Usage: chasquimq inspect [queue...] [options]

Without a name: all queues of the prefix, one a line. With one name: all of that queue.

Options:
      --json            a JSON array of reports, on stdout
      --group <id>      this group of them instead: its jobs, status, limits and weight
      --sample <time>   where workers do not count (their option metrics), or have counted nothing for two minutes,
                        rates come from two looks, so far apart (1s); 0s looks once and tells no rates. Jobs
                        removed when they end are not seen then

${SERVER_HELP}
Examples:
  chasquimq inspect
  chasquimq inspect mail --group tenant-7
  chasquimq inspect mail --url redis://redis.internal:6379
  chasquimq inspect mail reports --json | jq '.[] | {name, waiting: .counts.waiting}'
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const group = textOf(read, 'group');
    if (group === undefined) return tell(QUEUES, read, io);
    if (textOf(read, 'sample') !== undefined) throw new UsageError('--sample is about rates, which no group has.');
    return tell(groupSight(group), read, io);
  },
};

async function tell<R>(sight: Sight<R>, read: Arguments, io: Io): Promise<number> {
  const server = readServer(read, io);
  const sampleMs = timeOf(read, 'sample') ?? DEFAULT_SAMPLE_MS;
  const isNamed = read.positionals.length > 0;
  const names = isNamed ? [...new Set(read.positionals)] : await namesOf(server);
  const reports = await forEachName(names, (name) =>
    withQueue(server, name, async (queue) => {
      // one of all queues was there a moment ago
      if (isNamed) await requireQueue(server, queue);
      const look = sight.of(queue);
      const first = await look();
      if (sampleMs === 0 || !sight.isPart(first)) return first;
      await pause(sampleMs, io.signal);
      return look();
    }),
  );
  const lines = isGiven(read, 'json') ? [JSON.stringify(reports, null, 2)] : shown(sight, reports, server, isNamed);
  io.stdout.write(`${lines.join('\n')}\n`);
  return 0;
}

function shown<R>(sight: Sight<R>, reports: R[], server: Server, isNamed: boolean): string[] {
  if (reports.length === 0) return [`There are no queues with the prefix ${server.prefix} at ${server.shown}.`];
  return isNamed && reports.length === 1 ? sight.details(reports[0]) : sight.overview(reports);
}
