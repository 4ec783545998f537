/** Pairs of runs of two builds, until the interval of the ratio decides for each metric of a scenario, or the pairs are used up. */
import type { JobLibrary } from '../adapters/library.js';
import { calibrate } from '../calibrate.js';
import type { Metric } from '../measure.js';
import { runOnce, runPair } from '../pairs.js';
import type { Bench, Pair } from '../pairs.js';
import type { Scenario } from '../scenarios/scenario.js';
import { moreIsBetter } from '../targets.js';
import { atThisLook, LOOKS, verdictOn } from './interval.js';
import type { Interval, Verdict } from './interval.js';
import { readLoad, takenByOthers } from './load.js';

/** The far ends of a distribution vary by more than what is looked for. */
const UNJUDGED: readonly Metric[] = ['latencyP99Ms', 'latencyP999Ms', 'latencyLastMs', 'recordedP99Ms'];

export interface Ruling {
  readonly metric: Metric;
  /** How good head is, of the base: below 1 it is worse, whatever the metric. */
  readonly interval: Interval;
  readonly verdict: Verdict;
}

export interface Contest {
  readonly scenario: Scenario;
  readonly rulings: readonly Ruling[];
  readonly pairs: number;
  /** Part of the cores' time that others took; undefined where the system does not say. */
  readonly taken: number | undefined;
}

/** @param first what the process loaded first (`loadFirst`): it runs before the two are measured */
export async function contest(bench: Bench, first: JobLibrary, scenario: Scenario): Promise<Contest> {
  const { server, mode, observer } = bench;
  const cpu = async () => readLoad((await server.cpuMicros()) / 1e6);
  const metrics = scenario.metrics.filter((metric) => !UNJUDGED.includes(metric));
  const warm = { ...bench, libraries: { base: first, challenger: first } };
  await calibrate(scenario.size, mode, (jobs) => runOnce(warm, scenario, 'base', jobs, 0));
  const size = async (side: 'base' | 'challenger') =>
    calibrate(scenario.size, mode, (jobs) => runOnce(bench, scenario, side, jobs, 0));
  const from = await cpu();
  // the same jobs for both, or the base's larger queue would be compared with a smaller one; the other's code is warmed up by it
  const jobs = await size('base');
  await size('challenger');

  const pairs: Pair[] = [];
  let rulings: Ruling[] = [];
  for (const look of LOOKS) {
    while (pairs.length < look) {
      const round = pairs.length + 1;
      observer.step(scenario, pairs.length / (LOOKS.at(-1) ?? 1), `pair ${round}`);
      const measured = (side: 'base' | 'challenger') => runOnce(bench, scenario, side, jobs, round);
      pairs.push(await runPair(round % 2 === 1 ? 'base' : 'challenger', measured));
    }
    rulings = metrics.map((metric) => rule(metric, pairs));
    if (rulings.every(({ verdict }) => verdict !== 'undecided')) break;
  }
  return { scenario, rulings, pairs: pairs.length, taken: takenByOthers(from, await cpu()) };
}

function rule(metric: Metric, pairs: readonly Pair[]): Ruling {
  const ratios = pairs.map(({ base, challenger }) => {
    const ratio = (challenger.values[metric] ?? NaN) / (base.values[metric] ?? NaN);
    return moreIsBetter(metric) ? ratio : 1 / ratio;
  });
  // what is too small for the server's clock, on either side, says nothing
  const interval = atThisLook(ratios.filter((ratio) => Number.isFinite(ratio) && ratio > 0));
  return { metric, interval, verdict: verdictOn(interval) };
}
