/** The fair opponent: of the ways to run BullMQ, the one that is best in a scenario is the base there. */
import type { JobLibrary } from './adapters/library.js';
import { calibrate } from './calibrate.js';
import type { Sample } from './measure.js';
import type { Bench } from './pairs.js';
import type { Scenario } from './scenarios/scenario.js';
import { median } from './statistics.js';

const RUNS = 3;

export type RunBase = (base: JobLibrary, jobs: number) => Promise<Sample>;

/** @returns the base of a scenario: where there is nothing to choose by, the plain one */
export async function bestBase(bench: Bench, scenario: Scenario, run: RunBase): Promise<JobLibrary> {
  const { variants = [], libraries } = bench;
  if (variants.length === 0 || scenario.metrics[0] !== 'jobsPerSecond') return libraries.base;
  let best = { library: libraries.base, rate: 0 };
  for (const library of [libraries.base, ...variants]) {
    const rate = await rateOf(bench, scenario, (jobs) => run(library, jobs));
    if (rate > best.rate) best = { library, rate };
  }
  return best.library;
}

async function rateOf(bench: Bench, scenario: Scenario, run: (jobs: number) => Promise<Sample>): Promise<number> {
  const jobs = await calibrate(scenario.size, { ...bench.mode, seconds: bench.mode.seconds / 2 }, run);
  const rates: number[] = [];
  while (rates.length < RUNS) rates.push((await run(jobs)).values.jobsPerSecond ?? 0);
  return median(rates);
}
