/**
 * The bench: ChasquiMQ against BullMQ, in one process, on one Redis, through the API they share.
 * Reading order: scenarios/ (what is done), measure.ts (what is read), pairs.ts (in which order), report.ts (what is said).
 */
import { randomBytes } from 'node:crypto';
import { loadBullmq } from './adapters/bullmq.js';
import { loadChasquimq } from './adapters/chasquimq.js';
import type { JobLibrary } from './adapters/library.js';
import { readArguments, UsageError } from './arguments.js';
import { writeReport } from './files.js';
import { describeMachine, describeSource, loadAverage } from './machine.js';
import { fullMode, Interrupted, quickMode, runAll } from './pairs.js';
import { tablesForScreen, Progress } from './screen.js';
import { scenarios } from './scenarios/index.js';
import { parseConnection, Server } from './server.js';

/** How long an interrupted bench may take to remove its keys. */
const CLEANING_LIMIT_MS = 5_000;

/** Returns the exit code: 1 when a side threw in a scenario. A target that is missed is a result, not an error. */
async function main(argv: readonly string[]): Promise<number> {
  const asked = readArguments(argv);
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run bench` starts a private one and sets it');
  const base = loadBullmq();
  const libraries = { base, challenger: asked.self ? loadBullmq('bullmq again') : await loadOurs() };
  const server = await Server.connect(parseConnection(url));
  const mark = `chasqui-bench-${randomBytes(4).toString('hex')}`;

  const mode = asked.quick ? quickMode : fullMode;
  const rounds = asked.rounds ?? mode.rounds;
  const startedAt = new Date();
  const loadAtStart = loadAverage();
  const source = describeSource();
  const results = await runAll(
    {
      libraries,
      server,
      mark,
      mode: { ...mode, rounds },
      observer: new Progress(asked.scenarios.length, asked.self),
      interrupted: interruption(),
    },
    asked.scenarios,
  );
  server.close();

  const about = {
    startedAt: startedAt.toISOString(),
    seconds: (Date.now() - startedAt.getTime()) / 1e3,
    command: ['bench', ...argv].join(' '),
    kind: asked.quick ? 'quick' : 'full',
    self: asked.self,
    partial: asked.scenarios.length < scenarios.length || rounds < mode.rounds,
    machine: describeMachine(),
    source,
    server: server.version,
    libraries: {
      base: { name: base.name, version: base.version },
      challenger: { name: libraries.challenger.name, version: libraries.challenger.version },
    },
    loadAtStart,
    loadAtEnd: loadAverage(),
  } as const;
  console.log(`\n${tablesForScreen(about, results)}\n`);
  for (const path of writeReport(about, results)) console.log(path);
  return results.some((result) => result.faults.length > 0) ? 1 : 0;
}

async function loadOurs(): Promise<JobLibrary> {
  return loadChasquimq().catch((error: unknown) => {
    throw new UsageError(`${messageOf(error)}\n${messageOf(error instanceof Error ? error.cause : '')}`);
  });
}

/** Whoever stops the bench on their own server finds nothing of it there; who asks twice is not kept waiting. */
function interruption(): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    const stop = (signal: NodeJS.Signals) => {
      reject(new Interrupted(`stopped by ${signal}`));
      for (const again of ['SIGINT', 'SIGTERM'] as const) process.once(again, () => process.exit(130));
      setTimeout(() => process.exit(130), CLEANING_LIMIT_MS).unref();
    };
    process.once('SIGINT', stop).once('SIGTERM', stop);
  });
  interrupted.catch(() => undefined); // it may come when nothing runs that could be interrupted
  return interrupted;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// tsx turns source maps on, which makes every stack trace cost several times what it costs a user's compiled program;
// the retry scenario would measure little else.
process.setSourceMapsEnabled(false);

// `exit`, because a side that failed may have left connections or threads that keep the process alive.
main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    const expected = error instanceof UsageError || error instanceof Interrupted;
    console.error(expected ? error.message : error);
    process.exit(error instanceof UsageError ? 2 : error instanceof Interrupted ? 130 : 1);
  },
);
