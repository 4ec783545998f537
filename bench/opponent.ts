/** The fair opponent: of the ways to run BullMQ, the one that is best in a scenario, by the first of its metrics, is the base there. */
import type { JobLibrary } from './adapters/library.js';
import { calibrate } from './calibrate.js';
import type { Sample } from './measure.js';
import type { Bench } from './pairs.js';
import type { Scenario } from './scenarios/scenario.js';
import { median } from './statistics.js';
import { moreIsBetter } from './targets.js';

/** Of each way, in turns. */
const RUNS = 3;

export type RunBase = (base: JobLibrary, jobs: number) => Promise<Sample>;

/** @returns the base of a scenario: the plain one where there is no other, or it makes no difference */
export async function bestBase(bench: Bench, scenario: Scenario, run: RunBase): Promise<JobLibrary> {
  const { variants = [], libraries } = bench;
  const [metric] = scenario.metrics;
  if (variants.length === 0 || scenario.isOfPlainBase || metric === undefined) return libraries.base;
  // short runs: they choose only
  const period = { quick: true, seconds: bench.mode.seconds / 2 };
  const ways: { library: JobLibrary; jobs: number; values: number[] }[] = [];
  for (const library of [libraries.base, ...variants]) {
    ways.push({ library, jobs: await calibrate(scenario.size, period, (jobs) => run(library, jobs)), values: [] });
  }
  for (let round = 0; round < RUNS; round += 1) {
    for (const { library, jobs, values } of round % 2 === 0 ? ways : ways.toReversed()) {
      values.push((await run(library, jobs)).values[metric] ?? NaN);
    }
  }
  const isBetter = (one: number, other: number) => (moreIsBetter(metric) ? one > other : one < other);
  const [plain, ...others] = ways.map(({ library, values }) => ({ library, value: median(values) }));
  return others.reduce((best, way) => (isBetter(way.value, best.value) ? way : best), plain).library;
}
