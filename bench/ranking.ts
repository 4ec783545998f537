/** Who is better in a row, and which rows say most. */
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

/** A spread that includes 1 decides nothing, and one pair has none. */
export const isDecided = ({ ratio, pairs }: Row): boolean =>
  ratio !== undefined && pairs > 1 && (ratio.least > 1 || ratio.most < 1);

/** Of the base's rows so many at most, and of all. */
const [MOST_LOST, MOST_ROWS] = [6, 12];

/** A dozen rows: first those in which the base is better, the worst of them first, then what each scenario is about, in their order, then the rest. */
export function chosenRows(rows: readonly Row[]): Row[] {
  const lost = worstFirst(lostOf(rows)).slice(0, MOST_LOST);
  const others = rows.filter((row) => row.ratio && !lost.includes(row));
  const headlines = others.filter((row) => row === rows.find(({ scenario }) => scenario === row.scenario));
  return [...new Set([...lost, ...headlines, ...others])].slice(0, MOST_ROWS);
}
