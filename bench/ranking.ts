/** Who is better in a row. */
import type { Row } from './report.js';
import { moreIsBetter } from './targets.js';

/** How far the base is ahead: above one, it is better. Without a ratio nobody is. */
export function lossOf({ metric, ratio }: Row): number {
  if (!ratio) return 1;
  return moreIsBetter(metric) ? 1 / ratio.median : ratio.median;
}

/** Those in which the median is the base's. */
export const lostOf = (rows: readonly Row[]): Row[] => rows.filter((row) => lossOf(row) > 1);

export const worstFirst = (rows: readonly Row[]): Row[] => [...rows].sort((a, b) => lossOf(b) - lossOf(a));

/** A spread that includes 1 decides nothing. */
export const isDecided = ({ ratio }: Row): boolean => ratio !== undefined && (ratio.least > 1 || ratio.most < 1);
