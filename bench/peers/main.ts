/**
 * Other queues on Redis beside ours and BullMQ: `npm run bench -- --peers`. What all of them can do is measured of all of them, by the scenarios that measure it of two:
 * single adds, the latency of an idle queue, a trickle of jobs. Reading order: peer.ts (what a scenario asks of a peer), bee-queue.ts and bull.ts, turns.ts, report.ts.
 */
import { randomBytes } from 'node:crypto';
import { loadBullmq } from '../adapters/bullmq.js';
import { loadChasquimq } from '../adapters/chasquimq.js';
import { interruption, runProgram, UsageError } from '../ending.js';
import { writeText } from '../files.js';
import { describeMachine, describeSource, loadAverage } from '../machine.js';
import { readOptions } from '../options.js';
import { fullMode } from '../pairs.js';
import { addScenarios } from '../scenarios/add.js';
import { latencyScenario } from '../scenarios/latency.js';
import { trickleScenario } from '../scenarios/trickle.js';
import { alignedTable, Progress } from '../screen.js';
import { parseConnection, Server } from '../server.js';
import { loadBeeQueues } from './bee-queue.js';
import { loadBull } from './bull.js';
import { markdownOf, tableOf } from './report.js';
import type { Table } from './report.js';
import { inTurns } from './turns.js';

const USAGE = `usage: npm run bench -- --peers [--rounds N]

Measures ChasquiMQ, BullMQ and other queues on Redis in turns, each in its own figures, and writes benchmarks/peers-<date>-<commit>.md.

  --rounds   runs of each library in each scenario, ${fullMode.rounds} unless told`;

const scenarios = [...addScenarios.filter(({ name }) => name === 'add-tiny'), latencyScenario, trickleScenario];

/** Returns 1 when a library threw. */
async function main(argv: readonly string[]): Promise<number> {
  const values = readOptions(argv, USAGE, { rounds: { type: 'string' } });
  const rounds = Number(values.rounds ?? fullMode.rounds);
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new UsageError(`--rounds takes a whole number above 0\n\n${USAGE}`);
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run bench` starts a private one and sets it');
  const libraries = [await loadBullmq(), await loadChasquimq(), ...loadBeeQueues(), loadBull()];
  const server = await Server.connect(parseConnection(url));
  const observer = new Progress(scenarios.length);
  const bench = {
    server,
    serverOf: async () => server,
    mark: `chasqui-peers-${randomBytes(4).toString('hex')}`,
    mode: { ...fullMode, rounds },
    observer,
    ownsServer: process.env.BENCH_OWNS_REDIS === '1',
    interrupted: interruption(),
  };
  const [startedAt, loadAtStart] = [new Date().toISOString(), loadAverage()];
  const tables: Table[] = [];
  for (const scenario of scenarios) {
    const table = { scenario, measured: await server.guard(inTurns(bench, scenario, libraries)) };
    tables.push(table);
    observer.told([scenario.title]);
    console.log(`${alignedTable(tableOf(table))}\n`);
  }
  server.close();
  const [machine, { commit, changes }] = [describeMachine(), describeSource()];
  const lines = [
    `run of ${startedAt}, ${rounds} rounds`,
    `commit ${commit}${changes.length > 0 ? `, with ${changes.length} uncommitted changes in crates/ and src/` : ''}`,
    `${server.version}, Node ${machine.node}, ${machine.system}, ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGb} GB`,
    `load average at the start ${loadAtStart}, at the end ${loadAverage()}`,
  ];
  console.log(writeText(`peers-${startedAt.slice(0, 10)}-${commit}`, markdownOf(lines, tables)));
  return tables.some(({ measured }) => measured.some(({ fault }) => fault !== undefined)) ? 1 : 0;
}

runProgram(main);
