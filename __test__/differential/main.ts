/**
 * `npm run differential [-- --minutes N --seed S --lanes L --topology cluster]`: fresh programs, one seed after the other, on both libraries. One that they
 * do not agree on is shrunk and kept. Reading order: program.ts, generate.ts, execute.ts, workers.ts, compare.ts, judge.ts, shrink.ts. Workers in processes of
 * their own: apart.ts; jobs that wait beside one that is idle: watch.ts.
 */
import { parseArgs } from 'node:util';
import { OwnCluster } from '../support/own-cluster.js';
import { describe } from './compare.js';
import type { Difference } from './compare.js';
import { generate } from './generate.js';
import { judge, look } from './judge.js';
import { keep, keptPrograms } from './kept.js';
import type { Program } from './program.js';
import { SCENES } from './scenes.js';
import { shrink } from './shrink.js';
import { Pair } from './side.js';

const USAGE =
  'usage: npm run differential [-- --minutes N --seed S --lanes L --topology standalone|cluster --only scene,scene]';
/** Longer than a busy machine keeps a node from answering. */
const DOWN_AFTER_MS = 60_000;
const SHRINK_MS = 90_000;
/** Differences of one program that are shown. */
const SHOWN = 4;

const values = readArguments();
const minutes = Number(values.minutes);
const lanes = Number(values.lanes);
let next = Number(values.seed);
if (!(minutes > 0) || !(lanes >= 1) || !Number.isSafeInteger(next)) refuse();
if (!['standalone', 'cluster'].includes(values.topology)) refuse();
const only = values.only.split(',').filter((name) => name !== '');
if (only.some((name) => !SCENES.some(({ play }) => play.name === name))) refuse();

// its processes find it there
const cluster = values.topology === 'cluster' ? await OwnCluster.start(DOWN_AFTER_MS) : undefined;
if (cluster) process.env.CONNECTION = JSON.stringify({ nodes: cluster.startupNodes });

const begin = performance.now();
const found = new Map<string, number>();
let programs = 0;

console.log(`differential --minutes ${minutes} --seed ${next} --topology ${values.topology}`);
const queue = only.length > 0 ? [] : [...keptPrograms()];
await Promise.all(Array.from({ length: lanes }, lane));
const seconds = Math.round((performance.now() - begin) / 1_000);
console.log(`${programs} programs in ${seconds} s, up to seed ${next - 1}: ${found.size} kinds of differences`);
for (const [kind, times] of found) console.log(`  ${times}x ${kind}`);
process.exitCode = found.size > 0 ? 1 : 0;
await cluster?.close();

async function lane(): Promise<void> {
  const pair = new Pair();
  try {
    while (queue.length > 0 || performance.now() - begin < minutes * 60_000) {
      const kept = queue.shift();
      const program = kept ?? generate(next++, only);
      const differences = await judge(pair, program);
      programs++;
      if (differences.length > 0) await tell(pair, program, differences, kept !== undefined);
    }
  } finally {
    await pair.close();
  }
}

async function tell(pair: Pair, program: Program, differences: Difference[], isKept: boolean): Promise<void> {
  const fresh = differences.find((difference) => !found.has(difference.kind));
  for (const kind of new Set(differences.map((difference) => difference.kind)))
    found.set(kind, (found.get(kind) ?? 0) + 1);
  console.log(`\n${program.name}: ${differences.length} differences${fresh ? '' : ', all of them known'}`);
  if (!fresh) return;
  const { kind } = fresh;
  for (const difference of differences.slice(0, SHOWN)) console.log(describe(difference));
  if (isKept) return;
  const shows = async (smaller: Program) => {
    for (let i = 0; i < 2; i++) if ((await look(pair, smaller)).some((other) => other.kind === kind)) return true;
    return false;
  };
  const small = await shrink(program, shows, performance.now() + SHRINK_MS);
  console.log(`${keep(small)}: ${JSON.stringify(small)}`);
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        minutes: { type: 'string', default: '5' },
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
        lanes: { type: 'string', default: '2' },
        topology: { type: 'string', default: 'standalone' },
        only: { type: 'string', default: '' },
      },
    }).values;
  } catch (error) {
    console.error((error as Error).message);
    return refuse();
  }
}

function refuse(): never {
  console.error(USAGE);
  process.exit(2);
}
