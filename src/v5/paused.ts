/**
 * Jobs in the waiting list of a paused queue, which BullMQ 5 keeps, and counts, apart. Here they wait, like those of any queue; these
 * functions put the one name in the place of the other.
 */
import type { JobType as BaseJobType } from '../types/job-state.js';
import type { JobType } from './types.js';

/** The states that getters and counts cover when none is named, in BullMQ 5's order. */
const ALL_TYPES: JobType[] = [
  'active',
  'completed',
  'delayed',
  'failed',
  'paused',
  'prioritized',
  'waiting',
  'waiting-children',
];

const IN_LINE = new Set<JobType>(['waiting', 'wait', 'paused']);

/** Each name once: who asks for those that wait also gets those that are paused. */
export function typesFor(types: JobType | readonly JobType[] | undefined): JobType[] {
  const named = typeof types === 'string' ? [types] : (types ?? []);
  if (named.length === 0) return ALL_TYPES;
  return [...new Set(named.includes('waiting') ? [...named, 'paused' as const] : named)];
}

/** Whether it matters to any of these that the queue is paused. */
export function asksForLine(types: readonly JobType[]): boolean {
  return types.some((type) => IN_LINE.has(type));
}

/** The engine's names of the lists that these are. */
export function listsOf(types: readonly JobType[], isPaused: boolean): BaseJobType[] {
  return types.flatMap((type): BaseJobType[] => {
    if (!IN_LINE.has(type)) return [type as BaseJobType];
    return (type === 'paused') === isPaused ? ['wait'] : [];
  });
}

/** Counts under BullMQ 5's names. @param inLine number of jobs that wait, whether the queue is paused or not */
export function countsUnder(
  types: readonly JobType[],
  counts: { readonly [index: string]: number },
  inLine: number,
  isPaused: boolean,
): { [index: string]: number } {
  const told: { [index: string]: number } = {};
  for (const type of types) {
    if (IN_LINE.has(type)) told[type] = (type === 'paused') === isPaused ? inLine : 0;
    else told[type] = counts[type] ?? 0;
  }
  return told;
}
