import type { Queue } from '../../../index.js';
import { countOf, isGiven, readArguments, timeOf } from '../arguments.js';
import { UsageError, type Command, type Io } from '../command.js';
import { look, type Look, type QueueReport } from '../queue-report.js';
import { forEachName, namesOf, openQueue, requireQueue, unusable } from '../queues.js';
import { lateLine, line, overview } from '../report-text.js';
import { listenForQuit, Screen } from '../screen.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS, type Server } from '../server.js';
import { duration } from '../text.js';
import { pause } from '../waiting.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
  json: { type: 'boolean' },
  interval: { type: 'string', short: 'i' },
  ticks: { type: 'string' },
} as const;

const DEFAULT_INTERVAL_MS = 1_000;
const LEAST_INTERVAL_MS = 100;
/** A server that has not answered for so long is told of. */
const LATE_MS = 2_000;

/** Looks at queues again and again. */
export const watch: Command = {
  name: 'watch',
  summary: 'the same, live in a terminal',
  help: `Shows queues as they change: a table in a terminal, else one line a queue and tick. Ends on q or Ctrl-C.

Usage: chasquimq watch [queue...] [options]

Without a name: all queues of the prefix that there are at the start.

Options:
  -i, --interval <time> between two looks (1s)
      --ticks <n>       ends after so many looks
      --json            one JSON line a tick: {"at": <epoch ms>, "queues": [<as inspect --json>]}

${SERVER_HELP}
Examples:
  chasquimq watch
  chasquimq watch mail reports --interval 5s
  chasquimq watch mail --json --ticks 60 >> mail.jsonl
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const server = readServer(read, io);
    const intervalMs = timeOf(read, 'interval') ?? DEFAULT_INTERVAL_MS;
    if (intervalMs < LEAST_INTERVAL_MS) throw new UsageError(`--interval must be at least ${LEAST_INTERVAL_MS}ms.`);
    const ticks = countOf(read, 'ticks') ?? Infinity;
    const isJson = isGiven(read, 'json');
    const names = read.positionals.length > 0 ? [...new Set(read.positionals)] : await namesOf(server);
    const queues = await openAll(server, names);
    try {
      const view = isJson ? textView(io, asJson) : io.isTTY ? tableView(io, server, intervalMs) : textView(io, asLines);
      await keepLooking(queues, view, { io, intervalMs, ticks });
      return 0;
    } catch (error) {
      throw unusable(server, error);
    } finally {
      await Promise.all(queues.map((queue) => queue.close()));
    }
  },
};

async function openAll(server: Server, names: readonly string[]): Promise<Queue[]> {
  const opened: Queue[] = [];
  try {
    await forEachName(names, async (name) => {
      const queue = await openQueue(server, name, true);
      opened.push(queue);
      await requireQueue(server, queue);
    });
  } catch (error) {
    await Promise.all(opened.map((queue) => queue.close()));
    throw error;
  }
  return names.map((name) => opened.find((queue) => queue.name === name) as Queue);
}

/** Where looks are shown. */
interface View {
  open(quit: () => void): void;
  show(reports: readonly QueueReport[]): void;
  /** The server has not answered for so long. */
  late(ms: number): void;
  close(): void;
}

interface Pace {
  readonly io: Io;
  readonly intervalMs: number;
  readonly ticks: number;
}

async function keepLooking(queues: readonly Queue[], view: View, { io, intervalMs, ticks }: Pace): Promise<void> {
  const quitting = new AbortController();
  const { signal } = quitting;
  const quit = (): void => quitting.abort();
  io.signal.addEventListener('abort', quit, { once: true });
  if (io.signal.aborted) return;
  const before = new Map<Queue, Look>();
  view.open(quit);
  try {
    for (let tick = 1; !signal.aborted; tick++) {
      const looks = Promise.all(queues.map((queue) => lookAgain(queue, before)));
      const reports = await untilAborted(signal, looks, (ms) => view.late(ms));
      if (!reports) return;
      view.show(reports);
      if (tick >= ticks) return;
      await pause(intervalMs, signal);
    }
  } finally {
    view.close();
  }
}

async function lookAgain(queue: Queue, before: Map<Queue, Look>): Promise<QueueReport> {
  const now = await look(queue, before.get(queue));
  before.set(queue, now);
  return now.report;
}

/**
 * Undefined when the command is to end first: a server that is away does not keep it.
 * @param late called again and again while there is no answer
 */
async function untilAborted<T>(
  signal: AbortSignal,
  work: Promise<T>,
  late: (ms: number) => void,
): Promise<T | undefined> {
  const since = performance.now();
  const timer = setInterval(() => late(performance.now() - since), LATE_MS);
  work.catch(() => {}); // it ends when the queues close, and nobody waits for it then
  // nothing of a tick stays behind: a command runs for days
  let abandon = (): void => {};
  const abandoned = new Promise<undefined>((resolve) => (abandon = () => resolve(undefined)));
  signal.addEventListener('abort', abandon);
  try {
    return await Promise.race([work, abandoned]);
  } finally {
    clearInterval(timer);
    signal.removeEventListener('abort', abandon);
  }
}

function textView({ stdout, stderr }: Io, asText: (queues: readonly QueueReport[]) => string): View {
  return {
    open() {},
    late: (ms) => void stderr.write(`chasquimq watch: ${lateLine(ms)}\n`),
    show: (queues) => void stdout.write(asText(queues)),
    close() {},
  };
}

function asJson(queues: readonly QueueReport[]): string {
  return `${JSON.stringify({ at: Date.now(), queues })}\n`;
}

function asLines(queues: readonly QueueReport[]): string {
  const now = new Date();
  return queues.map((report) => `${line(report, now)}\n`).join('');
}

function tableView(io: Io, server: Server, intervalMs: number): View {
  const screen = new Screen(io.stdout);
  const head = `chasquimq watch  ${server.shown}  prefix ${server.prefix}  every ${duration(intervalMs)}  q ends`;
  let shown: readonly string[] = [];
  let stopListening = (): void => {};
  return {
    open(quit) {
      screen.open();
      stopListening = listenForQuit(io, quit);
    },
    show(reports) {
      shown = overview(reports);
      screen.draw([head, new Date().toLocaleTimeString(), '', ...shown]);
    },
    late: (ms) => screen.draw([head, lateLine(ms), '', ...shown]),
    close() {
      stopListening();
      screen.close();
    },
  };
}
