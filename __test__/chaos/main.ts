/**
 * `npm run chaos [-- --seconds N --seed S --only fault,fault]`.
 * Reading order: faults.ts (what goes wrong), programs/ (what goes on meanwhile), run.ts, account.ts (what must be true), report.ts.
 */
import { parseArgs } from 'node:util';
import { faultKinds } from './faults.js';
import type { FaultKind } from './faults.js';
import { describeRun, writeReport } from './report.js';
import { runChaos } from './run.js';

const SECONDS = 180;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: String(SECONDS) },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
    only: { type: 'string' },
  },
});

function readOnly(text: string | undefined): FaultKind[] | undefined {
  const kinds = text?.split(',');
  const unknown = kinds?.filter((kind) => !faultKinds.some((known) => known === kind)) ?? [];
  if (unknown.length > 0) {
    console.error(`there is no fault ${unknown.join(', ')}; there are ${faultKinds.join(', ')}`);
    process.exit(2);
  }
  return kinds as FaultKind[] | undefined;
}

const only = readOnly(values.only);
const seconds = Number(values.seconds);
const seed = Number(values.seed);
if (!(seconds > 0) || !Number.isSafeInteger(seed)) {
  console.error('usage: npm run chaos [-- --seconds N --seed S --only fault,fault]');
  process.exit(2);
}
const command = ['chaos', `--seconds ${seconds}`, `--seed ${seed}`, ...(only ? [`--only ${only.join(',')}`] : [])].join(
  ' ',
);
console.error(`> ${command}`);
const begin = Date.now();
const say = (line: string) => console.error(`  ${((Date.now() - begin) / 1e3).toFixed(1).padStart(6)} s  ${line}`);
const result = await runChaos({ seconds, seed, ...(only && { only }), say });
const report = describeRun(result, { command, seconds, seed, partial: only !== undefined });
console.log(report.markdown);
for (const path of writeReport(report)) console.log(path);
process.exit(report.faultless ? 0 : 1);
