import { isGiven, readArguments, timeOf } from '../arguments.js';
import type { Command, Io } from '../command.js';
import { lookWithRates, type QueueReport } from '../queue-report.js';
import { forEachName, namesOf, requireQueue, withQueue } from '../queues.js';
import { details, overview } from '../report-text.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS, type Server } from '../server.js';
import { pause } from '../waiting.js';

const OPTIONS = { ...SERVER_OPTIONS, json: { type: 'boolean' }, sample: { type: 'string' } } as const;

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
      --sample <time>   where workers do not count (their option metrics), or have counted nothing for two minutes,
                        rates come from two looks, so far apart (1s); 0s looks once and tells no rates. Jobs
                        removed when they end are not seen then

${SERVER_HELP}
Examples:
  chasquimq inspect
  chasquimq inspect mail --url redis://redis.internal:6379
  chasquimq inspect mail reports --json | jq '.[] | {name, waiting: .counts.waiting}'
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const server = readServer(read, io);
    const sampleMs = timeOf(read, 'sample') ?? DEFAULT_SAMPLE_MS;
    const isNamed = read.positionals.length > 0;
    const names = isNamed ? [...new Set(read.positionals)] : await namesOf(server);
    const reports = await forEachName(names, (name) => reportOf(server, name, isNamed, sampleMs, io));
    io.stdout.write(isGiven(read, 'json') ? `${JSON.stringify(reports, null, 2)}\n` : shown(reports, server, isNamed));
    return 0;
  },
};

function reportOf(server: Server, name: string, isNamed: boolean, sampleMs: number, io: Io): Promise<QueueReport> {
  return withQueue(server, name, async (queue) => {
    // one of all queues was there a moment ago
    if (isNamed) await requireQueue(server, queue);
    return (await lookWithRates(queue, sampleMs, (ms) => pause(ms, io.signal))).report;
  });
}

function shown(reports: QueueReport[], server: Server, isNamed: boolean): string {
  const [only, ...others] = reports;
  if (!only) return `There are no queues with the prefix ${server.prefix} at ${server.shown}.\n`;
  const lines = isNamed && others.length === 0 ? details(only) : overview(reports);
  return `${lines.join('\n')}\n`;
}
