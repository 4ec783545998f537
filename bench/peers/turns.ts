/** Runs of several libraries in turns, as pairs are of two: a scenario, round by round, the order turned about from round to round. */
import type { JobLibrary } from '../adapters/library.js';
import { calibrate, enlarge } from '../calibrate.js';
import type { Sample } from '../measure.js';
import { runOnce, SideFailed } from '../pairs.js';
import type { Bench } from '../pairs.js';
import type { Scenario } from '../scenarios/scenario.js';

export interface Measured {
  readonly library: Pick<JobLibrary, 'name' | 'version'>;
  readonly samples: readonly Sample[];
  /** What ended it. */
  readonly fault?: string;
}

export type RunBench = Omit<Bench, 'libraries'>;

/** A library that throws has no further turns. */
export async function inTurns(
  bench: RunBench,
  scenario: Scenario,
  libraries: readonly JobLibrary[],
): Promise<Measured[]> {
  const all = libraries.map((library) => ({
    library,
    samples: [] as Sample[],
    jobs: 0,
    fault: undefined as string | undefined,
  }));
  for (let round = 0; round <= bench.mode.rounds; round += 1) {
    for (const each of round % 2 === 0 ? all : all.toReversed()) {
      if (each.fault !== undefined) continue;
      const { library } = each;
      const sides = { ...bench, libraries: { base: library, challenger: library } };
      const run = (jobs: number) => runOnce(sides, scenario, 'base', jobs, round);
      const doing = round === 0 ? 'calibrating' : `round ${round} of ${bench.mode.rounds}`;
      bench.observer.step(scenario, round / (bench.mode.rounds + 1), `${doing}, ${library.name}`);
      try {
        if (round === 0) {
          each.jobs = await calibrate(scenario.size, bench.mode, run);
          continue;
        }
        const sample = await run(each.jobs);
        each.samples.push(sample);
        each.jobs = enlarge(scenario.size, bench.mode, each.jobs, sample);
      } catch (error) {
        if (!(error instanceof SideFailed)) throw error;
        each.fault = error.message;
      }
    }
  }
  return all.map(({ library: { name, version }, samples, fault }) => ({
    library: { name, version },
    samples,
    ...(fault !== undefined && { fault }),
  }));
}
