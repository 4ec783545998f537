/**
 * How sure a paired ratio is: the interval that belongs to Wilcoxon's signed-rank test. It asks for no bell curve, and a pair that met
 * some other program's burst moves it little.
 */
import { median } from '../statistics.js';

export interface Interval {
  /** Ratio: the median of the means of all two pairs (Hodges and Lehmann). */
  readonly estimate: number;
  readonly low: number;
  readonly high: number;
}

/** The interval of the ratios that holds the true one but for the chance `doubt`. From 0 to infinity, where there are too few pairs to tell. */
export function intervalOf(ratios: readonly number[], doubt: number): Interval {
  const logs = ratios.map(Math.log);
  const means = logs.flatMap((one, i) => logs.slice(i).map((other) => (one + other) / 2)).sort((a, b) => a - b);
  const outside = cutOff(ratios.length, doubt / 2);
  const [low, high] = outside === 0 ? [-Infinity, Infinity] : [means[outside - 1], means[means.length - outside]];
  return { estimate: Math.exp(median(means)), low: Math.exp(low ?? -Infinity), high: Math.exp(high ?? Infinity) };
}

/**
 * How many of the means of two may lie on one side of the true ratio, and one more: the largest k for which a signed-rank sum below k has at
 * most the chance `doubt`. 0 when even a sum of 0 has a greater one.
 */
export function cutOff(pairs: number, doubt: number): number {
  // by sum, in how many of the 2^pairs cases the ranks of one sign add up to it
  let ways = [1];
  for (let rank = 1; rank <= pairs; rank += 1) {
    const longer = [...Array<number>(rank).fill(0), ...ways];
    ways = longer.map((count, sum) => count + (ways[sum] ?? 0));
  }
  let chance = 0;
  for (let sum = 0; ; sum += 1) {
    chance += (ways[sum] ?? 0) / 2 ** pairs;
    if (chance > doubt || sum >= ways.length) return sum;
  }
}

/** After how many pairs it is looked whether the interval decides; the last is the limit. */
export const LOOKS: readonly number[] = [8, 12, 16, 22, 30];
/** The chance that any of the looks is wrong. */
export const DOUBT = 0.05;
/** What is less than this of the base has dropped. */
export const LEAST_RATIO = 0.9;

export type Verdict = 'holds' | 'dropped' | 'undecided';

/** Each look has an equal share of the doubt, so that looking often does not make a chance drop likely. */
export function atThisLook(ratios: readonly number[]): Interval {
  return intervalOf(ratios, DOUBT / LOOKS.length);
}

export function verdictOn({ low, high }: Interval): Verdict {
  if (low > LEAST_RATIO) return 'holds';
  return high < LEAST_RATIO ? 'dropped' : 'undecided';
}
