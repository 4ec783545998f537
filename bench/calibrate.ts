import type { Sample } from './measure.js';
import type { Size } from './scenarios/scenario.js';

/** The clock of a run must run this fraction of the wanted period. */
const TRUSTED_FRACTION = 0.7;
/** A cold first probe says little about the rate, and a queue must not be flooded on its word. */
const MOST_GROWTH = 20;
const MOST_PROBES = 8;
/** Code that is not compiled yet would be slower in the first pair than in the others, so probes last this many periods. */
const WARM_UP_PERIODS = 2;
/** Keeps the jobs of one run within a few hundred megabytes of Redis memory. */
const MOST_JOBS = 1_000_000;

export interface Period {
  readonly quick: boolean;
  /** How long the clock of a calibrated run should run. */
  readonly seconds: number;
}

/**
 * How many jobs one side needs in one scenario for the clock to run for about `seconds`. Short runs, each longer than
 * the one before, until one is long enough to tell and all together have warmed up the side's code.
 */
export async function calibrate(size: Size, period: Period, probe: (jobs: number) => Promise<Sample>): Promise<number> {
  if (size.kind === 'fixed') {
    const jobs = period.quick ? size.quick : size.full;
    await probe(Math.ceil(jobs / 10));
    return jobs;
  }
  let jobs = Math.ceil(size.firstProbe / size.step) * size.step;
  for (let probes = 0, clocked = 0; probes < MOST_PROBES; probes += 1) {
    const sample = await probe(jobs);
    const next = enlarge(size, period, jobs, sample);
    clocked += sample.seconds;
    if (next === jobs && clocked >= period.seconds * WARM_UP_PERIODS) break;
    jobs = next;
  }
  return jobs;
}

/** The count for the next run of a side whose last run had `jobs` jobs: more if that was over too soon. */
export function enlarge(size: Size, period: Period, jobs: number, sample: Sample): number {
  if (size.kind === 'fixed' || sample.seconds >= period.seconds * TRUSTED_FRACTION) return jobs;
  const fitting = sample.jobs > 0 ? (sample.jobs / sample.seconds) * period.seconds : Infinity;
  const most = Math.min(jobs * MOST_GROWTH, size.most ?? MOST_JOBS);
  return Math.max(jobs, Math.ceil(Math.min(fitting, most) / size.step) * size.step);
}
