/** Goes over the jobs of some states in steps, each of which blocks the server for a few milliseconds. */
import type { JobsWatch } from '../options/job-filter.js';
import type { JobState } from '../types/job-state.js';

/** Where a step begins, or the next one goes on. */
export interface Place {
  readonly state: JobState;
  /** Within the state, as the engine tells it; empty: at its beginning. */
  readonly within: string;
}

/** What a step tells of itself. */
export interface StepAnswer {
  readonly place: string;
  readonly looked: number;
}

/** What all steps of a call are about. */
export interface Steps extends JobsWatch {
  readonly states: readonly JobState[];
  readonly limit: number;
  readonly from?: Place | undefined;
}

/**
 * Takes the steps, until there is nothing left or `limit` jobs are done.
 * @param step at a place, for so many jobs at most
 * @param take gives how many jobs a step has done
 * @returns where to go on; undefined: nowhere
 * @throws (rejects) the signal's reason, between two steps
 */
export async function takeSteps<T extends StepAnswer>(
  { states, limit, from, signal, onProgress }: Steps,
  step: (place: Place, room: number) => Promise<T>,
  take: (answer: T, state: JobState) => number,
): Promise<Place | undefined> {
  let at = from ? states.indexOf(from.state) : 0;
  let within = from?.within ?? '';
  let [looked, done] = [0, 0];
  while (at < states.length && done < limit) {
    signal?.throwIfAborted();
    const state = states[at];
    const answer = await step({ state, within }, limit - done);
    looked += answer.looked;
    done += take(answer, state);
    within = answer.place;
    if (within === '') at++;
    onProgress?.({ state, looked, done });
  }
  return at < states.length ? { state: states[at], within } : undefined;
}

/** The place as a text, which users keep for the next page. */
export function cursorOf(place: Place | undefined): string | undefined {
  return place && Buffer.from(JSON.stringify([place.state, place.within])).toString('base64url');
}

/** @throws TypeError unless it is a cursor of a call that looked in these states */
export function placeOf(cursor: unknown, states: readonly JobState[]): Place {
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString() : '';
  const [state, within] = read(text) ?? [];
  const valid = states.includes(state as JobState) && typeof within === 'string';
  if (!valid || (within !== '' && read(within) === undefined)) {
    throw new TypeError('cursor must be what findJobs gave for the same states');
  }
  return { state: state as JobState, within };
}

/** What is JSON text of a list, or of an object, which has nothing in places; undefined: it is neither. */
function read(text: string): unknown[] | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value !== 'object' || value === null) return undefined;
    return Array.isArray(value) ? (value as unknown[]) : [];
  } catch {
    return undefined;
  }
}
