/**
 * What can be counted exactly, and must not grow: `npm run bench:counts`. Compares with benchmarks/baseline.json and fails when a figure is
 * worse. Reading order: scenarios.ts (what is done), count.ts (what is counted), rounds.ts (how often), baseline.ts (what is allowed).
 */
import { existsSync } from 'node:fs';
import { loadChasquimq } from '../adapters/chasquimq.js';
import { interruption, messageOf, runProgram, UsageError } from '../ending.js';
import { Proxy } from '../proxy/proxy.js';
import { parseConnection, Server } from '../server.js';
import type { ConnectionSettings } from '../server.js';
import { readArguments } from './arguments.js';
import type { Asked } from './arguments.js';
import { committedBefore, compare, complaintAbout, isWorse, readBaseline, writeBaseline } from './baseline.js';
import type { Baseline, Change, Counted } from './baseline.js';
import { watchBoundary } from './boundary.js';
import { isBytes, MEMORY } from './count.js';
import type { Counter, Counts } from './count.js';
import type { Classes } from './ground.js';
import { countables, leastOf, mostCommon } from './rounds.js';
import type { Countable } from './rounds.js';

/** Of which the most common figures become the baseline. */
const RUNS_FOR_BASELINE = 9;
const MOST_RUNS_FOR_BASELINE = 4 * RUNS_FOR_BASELINE;

async function main(argv: readonly string[]): Promise<number> {
  const asked = readArguments(argv);
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run bench:counts` starts a private one and sets it');
  const baseline = asked.json || asked.reason !== undefined ? undefined : readBaseline();
  const connection = parseConnection(url);
  const server = await Server.connect(connection);
  const classes = await loadChasquimq().catch((error: unknown) => {
    throw new UsageError(messageOf(error));
  });
  watchBoundary();
  const proxy = await Proxy.open(connection);
  const secureProxy = await openSecurely(connection);
  const counter = { classes: classes as unknown as Classes, proxy, secureProxy, server };
  try {
    const work = countAll(counter, asked, baseline);
    const found = await server.guard(Promise.race([work, interruption()]));
    if (asked.json) console.log(JSON.stringify(found));
    else if (baseline) return report(baseline, found, asked.only, aboutsOf(counter));
    else console.log(`written: ${writeBaseline({ reason: String(asked.reason), ...found })}`);
    return 0;
  } finally {
    await Promise.all([proxy.close(), secureProxy.close()]);
  }
}

/** With a certificate as the tests make them. */
async function openSecurely(connection: ConnectionSettings): Promise<Proxy> {
  const { Authority } = await import('../../__test__/support/tls.js');
  const authority = new Authority('ChasquiMQ counts authority');
  const certificate = authority.sign('IP:127.0.0.1');
  await authority.close();
  return Proxy.open(connection, 0, { certificate, ca: authority.ca });
}

async function countAll(counter: Counter, { only, reason }: Asked, baseline: Baseline | undefined): Promise<Counted> {
  const wanted = countables(counter).filter(({ name }) => only === undefined || name.includes(only));
  if (wanted.length === 0) throw new UsageError(`nothing that is counted has ${only} in its name`);
  const counts: Record<string, Counts> = {};
  for (const countable of wanted) {
    const { name } = countable;
    const sameServer = baseline?.server === counter.server.version;
    const isEnough = (least: Counts) =>
      baseline === undefined ||
      Object.entries(least).every(
        ([figure, is]) => !isWorse(figure, baseline.counts[name]?.[figure], is) || (figure === MEMORY && !sameServer),
      );
    counts[name] = reason === undefined ? await leastOf(countable, isEnough) : await settledCounts(countable);
  }
  return { server: counter.server.version, counts };
}

/** On a busy machine it takes more runs until most of them agree. */
async function settledCounts(countable: Countable): Promise<Counts> {
  const runs: Counts[] = [];
  for (;;) {
    for (let i = 0; i < RUNS_FOR_BASELINE; i += 1) runs.push(await countable.run());
    const { counts, doubtful } = mostCommon(runs);
    const unsettled = doubtful.filter((name) => name !== MEMORY && !isBytes(name));
    if (unsettled.length === 0) return counts;
    if (runs.length >= MOST_RUNS_FOR_BASELINE) {
      throw new UsageError(`${countable.name} is not settled, so nothing is written: ${unsettled.join(', ')} differ`);
    }
  }
}

/** What each scenario stands for. */
type Abouts = ReadonlyMap<string, string>;

function aboutsOf(counter: Counter): Abouts {
  return new Map(countables(counter).map(({ name, about }) => [name, about]));
}

function report(baseline: Baseline, found: Counted, only: string | undefined, abouts: Abouts): number {
  const kept = Object.entries(baseline.counts).filter(([name]) => only === undefined || name in found.counts);
  const { worse, better, notCompared } = compare({ ...baseline, counts: Object.fromEntries(kept) }, found);
  for (const line of notCompared) console.log(`NOT COMPARED  ${line}`);
  for (const change of better) console.log(`better        ${lineOf(change, abouts)}`);
  for (const change of worse) console.log(`WORSE         ${lineOf(change, abouts)}`);
  const complaint = complaintAbout(baseline, committedBefore(baseline));
  if (complaint) console.log(`NO REASON     ${complaint}`);
  const figures = Object.values(found.counts).reduce((sum, counts) => sum + Object.keys(counts).length, 0);
  const names = Object.keys(found.counts).length;
  console.log(`${figures} figures of ${names} scenarios: ${worse.length} worse, ${better.length} better`);
  if (worse.length + better.length > 0) {
    console.log('If they are to stay so: npm run bench:counts -- --write "why", in the same commit.');
  }
  return worse.length > 0 || complaint ? 1 : 0;
}

function lineOf({ scenario, figure, was, is }: Change, abouts: Abouts): string {
  const about = abouts.get(scenario);
  return `${scenario}${about ? ` (${about})` : ''}: ${figure} ${was ?? 'none'} -> ${is ?? 'none'}`;
}

if (!existsSync(new URL('../../dist/esm/index.js', import.meta.url))) {
  console.error('ChasquiMQ is not built: npm run build');
  process.exit(2);
}
runProgram(main);
