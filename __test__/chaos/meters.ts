/** Whether more of a key was used than its windows let. */
import type { Injected } from './faults.js';
import type { JobAccount } from './jobs.js';

/** What jobs of a kind use of each key at each start, and what each key lets be used in a window (programs/plans.mjs). */
const USES: Record<string, Record<string, number>> = {
  'meter-0': { 'meter-0': 1 },
  'meter-1': { 'meter-0': 1, 'meter-1': 2 },
};
const LIMITS: Record<string, { max: number; duration: number }> = {
  'meter-0': { max: 4, duration: 500 },
  'meter-1': { max: 4, duration: 700 },
};
/** Jobs that are sent so long after each other are not held against each other. */
const TOGETHER_MS = 30_000;

interface Start {
  readonly kind: string;
  /** When its job was sent, and when its handler noted the start. */
  readonly sent: number;
  readonly at: number;
}

/**
 * A job is taken after it was sent, and before its handler notes the start, however long. So of the jobs that were sent from a moment on, no more has started by
 * another one than there is room for in the windows between: those that begin there, and one that has begun before. A master that is gone may take a window along.
 */
export function overdrawnIn(jobs: Iterable<JobAccount>, faults: readonly Injected[]): string[] {
  const starts = [...jobs].flatMap(({ kind, sent, runs }): Start[] =>
    kind in USES && sent !== undefined ? [...runs.values()].map(({ at }) => ({ kind, sent, at })) : [],
  );
  starts.sort((one, other) => one.at - other.at);
  const lost = faults.flatMap(({ heard }) => heard ?? []);
  const moments = [...new Set(starts.map(({ sent }) => sent))];
  return moments.flatMap((from) => {
    const those = starts.filter(({ sent }) => sent >= from && sent < from + TOGETHER_MS);
    return Object.keys(LIMITS).flatMap((key) => overdrawnSince(from, key, those, lost) ?? []);
  });
}

function overdrawnSince(from: number, key: string, starts: readonly Start[], lost: number[]): string | undefined {
  const { max = 0, duration = 1 } = LIMITS[key] ?? {};
  let used = 0;
  for (const { kind, at } of starts) {
    used += USES[kind]?.[key] ?? 0;
    const windows = 2 + Math.floor((at - from) / duration) + lost.filter((gone) => gone <= at).length;
    if (used > max * windows) return `${key}: ${used} from ${from} to ${at}, in ${windows} windows`;
  }
  return undefined;
}
