/**
 * The bench: ChasquiMQ against BullMQ, in one process, on one Redis, through the API they share.
 * Reading order: scenarios/ (what is done), measure.ts (what is read), pairs.ts (in which order), report.ts (what is said).
 */
import { randomBytes } from 'node:crypto';
import { loadBullmq } from './adapters/bullmq.js';
import { loadChasquimq } from './adapters/chasquimq.js';
import type { JobLibrary } from './adapters/library.js';
import { readArguments } from './arguments.js';
import { interruption, messageOf, runProgram, UsageError } from './ending.js';
import { writeReport } from './files.js';
import { describeMachine, describeSource, loadAverage } from './machine.js';
import { fullMode, quickMode, runAll } from './pairs.js';
import { tablesForScreen, Progress } from './screen.js';
import { scenarios } from './scenarios/index.js';
import { parseConnection, Server } from './server.js';

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

runProgram(main);
