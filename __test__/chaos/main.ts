/**
 * `npm run chaos [-- --topology standalone|sentinel|cluster --seconds N --seed S --only fault,fault]`.
 * Reading order: faults.ts (what goes wrong), servers.ts (where), programs/ (what goes on meanwhile), run.ts, calm.ts (what comes after),
 * account.ts (what must be true; jobs.ts, excuses.ts, idle.ts), report.ts.
 */
import { parseArgs } from 'node:util';
import { faultKindsOf } from './faults.js';
import type { FaultKind } from './faults.js';
import { describeRun, writeReport } from './report.js';
import { runChaos } from './run.js';
import { topologies } from './servers.js';
import type { Topology } from './servers.js';

const SECONDS = 180;
const USAGE = `usage: npm run chaos [-- --topology ${topologies.join('|')} --seconds N --seed S --only fault,fault]`;

const values = readArguments();

function readArguments() {
  try {
    return parseArgs({
      options: {
        topology: { type: 'string', default: 'standalone' },
        seconds: { type: 'string', default: String(SECONDS) },
        seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
        only: { type: 'string' },
      },
    }).values;
  } catch (error) {
    return refuse(`${(error as Error).message}\n${USAGE}`);
  }
}

function readTopology(text: string): Topology {
  const topology = topologies.find((known) => known === text);
  return topology ?? refuse(USAGE);
}

function readOnly(text: string | undefined, topology: Topology): FaultKind[] | undefined {
  const known = faultKindsOf(topology);
  const kinds = text?.split(',');
  const unknown = kinds?.filter((kind) => !known.some((other) => other === kind)) ?? [];
  if (unknown.length > 0) refuse(`there is no fault ${unknown.join(', ')}; there are ${known.join(', ')}`);
  return kinds as FaultKind[] | undefined;
}

function refuse(message: string): never {
  console.error(message);
  process.exit(2);
}

const topology = readTopology(values.topology);
const only = readOnly(values.only, topology);
const seconds = Number(values.seconds);
const seed = Number(values.seed);
if (!(seconds > 0) || !Number.isSafeInteger(seed)) refuse(USAGE);
const command = [
  'chaos',
  ...(topology === 'standalone' ? [] : [`--topology ${topology}`]),
  `--seconds ${seconds}`,
  `--seed ${seed}`,
  ...(only ? [`--only ${only.join(',')}`] : []),
].join(' ');
console.error(`> ${command}`);
const begin = Date.now();
const say = (line: string) => console.error(`  ${((Date.now() - begin) / 1e3).toFixed(1).padStart(6)} s  ${line}`);
const result = await runChaos({ topology, seconds, seed, ...(only && { only }), say });
const report = describeRun(result, { command, seconds, seed, partial: only !== undefined });
console.log(report.markdown);
for (const path of [...writeReport(report), ...(result.evidence ? [result.evidence] : [])]) console.log(path);
process.exit(report.faultless ? 0 : 1);
