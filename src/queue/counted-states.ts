/** The states that getters and counts are asked for. */
import type { JobType } from '../types/job-state.js';

/** The states that getters and counts cover when none is named, in BullMQ's order. */
const ALL_STATES: JobType[] = [
  'active',
  'completed',
  'delayed',
  'failed',
  'prioritized',
  'waiting',
  'waiting-children',
];

/** What the engine counts; any other name counts 0, as in BullMQ. */
const COUNTED = new Set<string>([...ALL_STATES, 'wait', 'paused', 'repeat']);

/** What was given, each once and in order. */
export function statesFor(types: readonly JobType[] | undefined): Iterable<JobType> {
  return types && types.length > 0 ? new Set(types) : ALL_STATES;
}

/**
 * The names of those that the engine counts. As in BullMQ, what is no text goes by its text, so that a list given as one of several
 * arguments (`getJobCounts(['wait'])`) is the state in it; only as a text `waiting` is another name of `wait`.
 */
export function countable(types: Iterable<JobType>): JobType[] {
  const names = new Set<JobType>();
  for (const type of types as Iterable<unknown>) {
    const name = String(type);
    if (COUNTED.has(name) && (name === type || name !== 'waiting')) names.add(name as JobType);
  }
  return [...names];
}
