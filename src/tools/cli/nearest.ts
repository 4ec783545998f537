import { plain } from './text.js';

/** The name that was probably meant, if one of them is near enough. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  const ranked = names
    .map((name) => ({ name, steps: distance(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, steps }) => steps <= Math.max(1, Math.floor(Math.min(name.length, given.length) / 3)))
    .sort((one, other) => one.steps - other.steps);
  return ranked[0]?.name ?? (given.length > 1 ? names.find((name) => name.startsWith(given)) : undefined);
}

/** ` Did you mean ...?`, or nothing. */
export function didYouMean(given: string, names: readonly string[]): string {
  const name = nearest(given, names);
  return name === undefined ? '' : ` Did you mean ${plain(name)}?`;
}

/** Letters to change, to add or to leave out, and neighbours to swap, until one is the other. */
function distance(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, j) => j);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const differs = one[i - 1] === other[j - 1] ? 0 : 1;
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + differs);
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwap) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, last] = [last, row];
  }
  return last[other.length];
}
