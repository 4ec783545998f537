export interface Found {
  readonly commit: string;
  /** It, and the one before and after it that could be measured. */
  readonly neighbours: readonly string[];
}

/**
 * The first bad one of commits whose last is bad, in few looks. `isBad` gives undefined for one that cannot be measured: it is passed over.
 */
export async function firstBad(
  commits: readonly string[],
  isBad: (commit: string) => Promise<boolean | undefined>,
): Promise<Found> {
  const left = [...commits];
  let [from, to] = [0, left.length - 1];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const found = await isBad(left[middle] ?? '');
    if (found === undefined) {
      left.splice(middle, 1);
      to -= 1;
    } else if (found) {
      to = middle;
    } else {
      from = middle + 1;
    }
  }
  const commit = left[to] ?? '';
  return { commit, neighbours: left.slice(Math.max(to - 1, 0), to + 2) };
}
