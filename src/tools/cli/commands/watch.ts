import type { Queue } from '../../../index.js';
import { countOf, isGiven, readArguments, textOf, timeOf, type Arguments } from '../arguments.js';
import { UsageError, type Command, type Io } from '../command.js';
import { forEachName, namesOf, openQueue, requireQueue, unusable } from '../queues.js';
import { lateLine } from '../report-text.js';
import { listenForQuit, Screen } from '../screen.js';
import { readServer, SERVER_HELP, SERVER_OPTIONS, type Server } from '../server.js';
import { groupSight, QUEUES, type Sight } from '../sights.js';
import { duration } from '../text.js';
import { pause } from '../waiting.js';

const OPTIONS = {
  ...SERVER_OPTIONS,
  json: { type: 'boolean' },
  group: { type: 'string' },
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
      --group <id>      this group of them instead: its jobs, status and limits
      --json            one JSON line a tick: {"at": <epoch ms>, "queues": [<as inspect --json>]}

${SERVER_HELP}
Examples:
  chasquimq watch
  chasquimq watch mail reports --interval 5s
  chasquimq watch mail --group tenant-7
  chasquimq watch mail --json --ticks 60 >> mail.jsonl
`,
  async run(args: string[], io: Io): Promise<number> {
    const read = readArguments(args, OPTIONS);
    const group = textOf(read, 'group');
    return group === undefined ? watchAll(QUEUES, read, io) : watchAll(groupSight(group), read, io);
  },
};

async function watchAll<R>(sight: Sight<R>, read: Arguments, io: Io): Promise<number> {
  const server = readServer(read, io);
  const intervalMs = timeOf(read, 'interval') ?? DEFAULT_INTERVAL_MS;
  if (intervalMs < LEAST_INTERVAL_MS) throw new UsageError(`--interval must be at least ${LEAST_INTERVAL_MS}ms.`);
  const ticks = countOf(read, 'ticks') ?? Infinity;
  const names = read.positionals.length > 0 ? [...new Set(read.positionals)] : await namesOf(server);
  const queues = await openAll(server, names);
  const isJson = isGiven(read, 'json');
  try {
    const view =
      io.isTTY && !isJson
        ? tableView(io, sight, headOf(server, intervalMs))
        : textView(io, isJson ? asJson : (reports: readonly R[]) => linesOf(sight, reports));
    const looks = queues.map((queue) => sight.of(queue));
    await keepLooking(() => Promise.all(looks.map((look) => look())), view, { io, intervalMs, ticks });
    return 0;
  } catch (error) {
    throw unusable(server, error);
  } finally {
    await Promise.all(queues.map((queue) => queue.close()));
  }
}

function headOf(server: Server, intervalMs: number): string {
  return `chasquimq watch  ${server.shown}  prefix ${server.prefix}  every ${duration(intervalMs)}  q ends`;
}

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
interface View<R> {
  open(quit: () => void): void;
  show(reports: readonly R[]): void;
  /** The server has not answered for so long. */
  late(ms: number): void;
  close(): void;
}

interface Pace {
  readonly io: Io;
  readonly intervalMs: number;
  readonly ticks: number;
}

async function keepLooking<R>(look: () => Promise<R[]>, view: View<R>, { io, intervalMs, ticks }: Pace): Promise<void> {
  const quitting = new AbortController();
  const { signal } = quitting;
  const quit = (): void => quitting.abort();
  io.signal.addEventListener('abort', quit, { once: true });
  if (io.signal.aborted) return;
  view.open(quit);
  try {
    for (let tick = 1; !signal.aborted; tick++) {
      const reports = await untilAborted(signal, look(), (ms) => view.late(ms));
      if (!reports) return;
      view.show(reports);
      if (tick >= ticks) return;
      await pause(intervalMs, signal);
    }
  } finally {
    view.close();
  }
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

function textView<R>({ stdout, stderr }: Io, asText: (queues: readonly R[]) => string): View<R> {
  return {
    open() {},
    late: (ms) => void stderr.write(`chasquimq watch: ${lateLine(ms)}\n`),
    show: (queues) => void stdout.write(asText(queues)),
    close() {},
  };
}

function asJson(queues: readonly unknown[]): string {
  return `${JSON.stringify({ at: Date.now(), queues })}\n`;
}

function linesOf<R>(sight: Sight<R>, reports: readonly R[]): string {
  const now = new Date();
  return reports.map((report) => `${sight.line(report, now)}\n`).join('');
}

function tableView<R>(io: Io, sight: Sight<R>, head: string): View<R> {
  const screen = new Screen(io.stdout);
  let shown: readonly string[] = [];
  let stopListening = (): void => {};
  return {
    open(quit) {
      screen.open();
      stopListening = listenForQuit(io, quit);
    },
    show(reports) {
      shown = sight.overview(reports);
      screen.draw([head, new Date().toLocaleTimeString(), '', ...shown]);
    },
    late: (ms) => screen.draw([head, lateLine(ms), '', ...shown]),
    close() {
      stopListening();
      screen.close();
    },
  };
}
