/** What the gate makes of the contests: the rule of the house about load and changes. */
import { formatRange, formatRatio } from '../report.js';
import type { Contest, Ruling } from './contest.js';
import { DOUBT, LEAST_RATIO } from './interval.js';
import { LOAD_FLOOR, TAKEN_FLOOR } from './load.js';

export type Outcome = 'passes' | 'fails' | 'not judged';

export const exitCodes: Readonly<Record<Outcome, number>> = { passes: 0, fails: 1, 'not judged': 3 };

export interface Surroundings {
  /** What was changed in crates/ and src/, empty when nothing was. */
  readonly changes: string;
  /** Load average a core at the start. */
  readonly load: number;
}

/**
 * A drop fails, and so does one that all pairs could not rule out and that is more likely than not. Load may explain it only when nothing was changed;
 * with changes, and load above a floor, there is no judgement.
 */
export function judge({ rulings, taken }: Contest, { changes, load }: Surroundings): Outcome {
  if (!rulings.some(isSuspect) || changes === '') return 'passes';
  return load > LOAD_FLOOR || (taken ?? 0) > TAKEN_FLOOR ? 'not judged' : 'fails';
}

/** Below the limit, and not by chance; or below it as far as one can tell. */
export function isSuspect({ verdict, interval }: Ruling): boolean {
  return verdict === 'dropped' || (verdict === 'undecided' && interval.estimate < LEAST_RATIO);
}

export function worstOf(outcomes: readonly Outcome[]): Outcome {
  if (outcomes.includes('fails')) return 'fails';
  return outcomes.includes('not judged') ? 'not judged' : 'passes';
}

/** One line a metric, such as `worker-1-keep, jobsPerSecond: 0.84x (0.8..0.88, 12 pairs): DROPPED`. */
export function linesOf(contest: Contest): string[] {
  const { scenario, rulings, pairs, taken } = contest;
  const others = taken === undefined ? '' : `, others took ${Math.round(taken * 100)} %`;
  return rulings.map(({ metric, interval, verdict }) => {
    const range = formatRange(interval.low, interval.high);
    const word = verdict === 'dropped' ? 'DROPPED' : verdict;
    return `${scenario.name}, ${metric}: ${formatRatio(interval.estimate)} (${range}, ${pairs} pairs${others}): ${word}`;
  });
}

export function conclusion(contests: readonly Contest[], about: Surroundings, base: string): string {
  const suspects = contests.filter(({ rulings }) => rulings.some(isSuspect)).map(({ scenario }) => scenario.name);
  const sure = `${(1 - DOUBT) * 100} % sure for each figure`;
  if (suspects.length === 0) return `No scenario fell below ${LEAST_RATIO}x of ${base} (${sure}).`;
  const names = suspects.join(', ');
  const touched = `What is different from ${base} in crates/ and src/:\n${about.changes}`;
  if (about.changes === '') {
    return `Below ${LEAST_RATIO}x of ${base}: ${names}. Nothing in crates/ and src/ is different, so it is the machine's doing: passed.`;
  }
  const outcome = worstOf(contests.map((contest) => judge(contest, about)));
  if (outcome === 'fails') return `Below ${LEAST_RATIO}x of ${base}: ${names} (${sure}).\n${touched}`;
  return `Below ${LEAST_RATIO}x of ${base}: ${names}, on a machine too busy to judge it. Run it again when it is quiet: \
load below ${LOAD_FLOOR} a core, others below ${TAKEN_FLOOR * 100} % of the cores.\n${touched}`;
}
