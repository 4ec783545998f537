/**
 * `npm run bench:depth`: what one operation costs with few jobs in the queue, and with up to ten million. Both libraries have a queue of their own on one
 * server; each depth is reached by addBulk, and then each operation is done in rounds by both in turn. Writes benchmarks/depth-<date>-<commit>.md, and
 * every figure beside it. Reading order: operations.ts, figures.ts, report.ts.
 */
import { randomBytes } from 'node:crypto';
import { loadBullmq } from '../adapters/bullmq.js';
import { loadChasquimq } from '../adapters/chasquimq.js';
import { interruption, messageOf, runProgram, UsageError } from '../ending.js';
import { describeMachine, describeSource, loadAverage } from '../machine.js';
import { sideNames } from '../pairs.js';
import type { BothSides } from '../pairs.js';
import { bulkOf } from '../scenarios/scenario.js';
import { readOptions } from '../options.js';
import { parseConnection, Server } from '../server.js';
import { measureAll } from './figures.js';
import type { AtDepth } from './figures.js';
import type { Side } from './operations.js';
import { tableOf, writeDepth } from './report.js';
import type { DepthReport } from './report.js';

const USAGE = 'usage: npm run bench:depth [-- --most N]   (jobs, 10,000,000 unless told)';
const LEAST_DEPTH = 10_000;
const FILL_CHUNK = 1_000;

async function main(argv: readonly string[]): Promise<number> {
  const most = readMost(argv);
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run bench:depth` starts a private one and sets it');
  const server = await Server.connect(parseConnection(url));
  const mark = `chasqui-depth-${randomBytes(4).toString('hex')}`;
  const startedAt = new Date();
  const load = loadAverage();
  const libraries = { base: await loadBullmq(), challenger: await loadChasquimq() };
  const sides = { base: open('base'), challenger: open('challenger') };
  const measuring = measure(server, sides, depthsUpTo(most));
  const depths = await server.guard(Promise.race([measuring, interruption()]));
  const report: DepthReport = {
    startedAt: startedAt.toISOString(),
    seconds: Math.round((Date.now() - startedAt.getTime()) / 1e3),
    machine: describeMachine(),
    source: describeSource(),
    server: server.version,
    versions: { base: libraries.base.version, challenger: libraries.challenger.version },
    load: [load, loadAverage()],
    depths,
  };
  console.log(`\n${tableOf(report)}`);
  for (const side of sideNames) await sides[side].queue.close();
  if (process.env.BENCH_OWNS_REDIS !== '1') await server.sweep(mark);
  if (most === depthsUpTo(Infinity).at(-1)) for (const path of writeDepth(report)) console.log(path);
  server.close();
  return 0;

  function open(side: keyof typeof libraries): Side {
    const library = libraries[side];
    const queueName = `${mark}-${side}`;
    const { connection } = server;
    const queue = new library.Queue(queueName, { connection, defaultJobOptions: {} });
    queue.on('error', (error) => console.error(`${library.name}: ${messageOf(error)}`));
    return { library, queue, queueName, connection, ids: { first: 1, last: 0 } };
  }
}

/** 0, and the powers of ten. */
function depthsUpTo(most: number): number[] {
  const all = [0, LEAST_DEPTH, 100_000, 1_000_000, 10_000_000];
  return all.filter((depth) => depth <= most);
}

async function measure(server: Server, sides: BothSides<Side>, depths: readonly number[]): Promise<AtDepth[]> {
  const all: AtDepth[] = [];
  for (const depth of depths) {
    for (const side of sideNames) {
      const begin = performance.now();
      await fillUp(sides[side], depth);
      const seconds = ((performance.now() - begin) / 1e3).toFixed(1);
      console.log(`${depth.toLocaleString('en-US')} jobs wait in ${sides[side].library.name} (${seconds} s)`);
    }
    all.push({ depth, figures: await measureAll(server, sides) });
  }
  return all;
}

async function fillUp({ queue, ids }: Side, depth: number): Promise<void> {
  const { waiting = 0 } = await queue.getJobCounts('waiting');
  for (let left = depth - waiting; left > 0; left -= FILL_CHUNK) {
    const jobs = (await queue.addBulk(bulkOf(0, Math.min(left, FILL_CHUNK)))) as { readonly id?: string }[];
    ids.last = Number(jobs.at(-1)?.id);
  }
}

function readMost(argv: readonly string[]): number {
  const { most } = readOptions(argv, USAGE, { most: { type: 'string', default: '10000000' } });
  if (Number.isSafeInteger(Number(most)) && Number(most) >= 0) return Number(most);
  throw new UsageError(`--most takes a number of jobs, not ${most}\n\n${USAGE}`);
}

runProgram(main);
