import type { NativePick } from '../native/types.js';
import type { JobState } from '../types/job-state.js';

/**
 * Which jobs a call is about: those for which all fields given are true. An extension: BullMQ has nothing like it.
 */
export interface JobFilter {
  /** The states to look in, in this order; all of them unless given. */
  states?: JobState | readonly JobState[];
  /** The job's name, or one of these. */
  name?: string | readonly string[];
  /**
   * A text that the data contain as JSON, letter for letter. Or an object: the data have its fields, with its values; an object within it is
   * looked for in the same way, a list must be the same.
   */
  data?: string | object;
  /** A text that the failure reason contains, letter for letter. */
  reason?: string;
  /** Id of the job's group. */
  group?: string;
  /** It ended so many milliseconds ago, or earlier; if it is active: started; if it waits: was added. */
  olderThan?: number;
  /** It did so as many milliseconds ago, or later. */
  newerThan?: number;
  /** It is a child of this job. */
  parent?: JobFilterParent;
}

/** A parent, as its children are looked for. */
export interface JobFilterParent {
  /** Its id. */
  id: string;
  /** Qualified name of its queue, `<prefix>:<queue>`; the same queue unless given. */
  queue?: string;
}

/** How far a call is that looks at many jobs. */
export interface JobsProgress {
  /** The state that it looks in. */
  state: JobState;
  /** Jobs looked at so far. */
  looked: number;
  /** Jobs found, or changed, so far. */
  done: number;
}

/** How a call about many jobs is followed and stopped. */
export interface JobsWatch {
  /** Stops the call between two steps, which then rejects with the signal's reason. What was done by then stays. */
  signal?: AbortSignal;
  /** Called after each step. */
  onProgress?: (progress: JobsProgress) => void;
}

/** Options of `queue.findJobs`. */
export interface FindJobsOptions extends JobsWatch {
  /**
   * Jobs to give at most.
   * @defaultValue 100
   */
  limit?: number;
  /** Where the page before ended; the first page unless given. */
  cursor?: string | undefined;
}

/** What `queue.findJobs` gives. */
export interface FoundJobs<JobBase> {
  /** `limit` jobs at most. */
  jobs: JobBase[];
  /** For the next page, which may be empty; undefined: nothing is left. */
  cursor: string | undefined;
}

/** Options of `queue.removeJobs`, `queue.promoteJobs` and `queue.moveJobs`. */
export interface ChangeJobsOptions extends JobsWatch {
  /** Jobs to change at most; all of them unless given. */
  limit?: number;
}

/** Options of `queue.retryJobs`. */
export interface RetryJobsOptions extends ChangeJobsOptions {
  /**
   * Sets the counts of tries and starts to 0, so that the job has all its `attempts` again.
   * @defaultValue false
   */
  resetAttempts?: boolean;
}

/** The states in the order in which jobs pass through them: one that moves on meanwhile may be met twice, and is not missed. */
export const ALL_STATES: readonly JobState[] = [
  'waiting-children',
  'delayed',
  'prioritized',
  'waiting',
  'active',
  'completed',
  'failed',
];

/** What a filter says, for the engine. */
export interface ReadFilter {
  readonly states: readonly JobState[];
  readonly pick: NativePick;
}

const READERS: Readonly<Record<string, (value: unknown, now: number) => NativePick>> = {
  name: (value) => ({ names: textsOf('name', value) }),
  data: (value) => (typeof value === 'string' ? { data: textOf('data', value) } : { fields: fieldsOf(value) }),
  reason: (value) => ({ reason: textOf('reason', value) }),
  group: (value) => ({ group: textOf('group', value) }),
  olderThan: (value, now) => ({ before: Math.max(now - readNumber('olderThan', value), 0) }),
  newerThan: (value, now) => ({ after: Math.max(now - readNumber('newerThan', value), 0) }),
};

/**
 * Checks a filter. A field that is there must say something: `{ name: undefined }` could otherwise mean every job.
 * @param possible the states that the call is about
 * @param queue qualified name of the queue
 * @throws TypeError that names the field
 */
export function readFilter(
  filter: JobFilter,
  { now, queue, possible = ALL_STATES }: { now: number; queue: string; possible?: readonly JobState[] },
): ReadFilter {
  if (typeof filter !== 'object' || filter === null) throw new TypeError('The filter must be an object');
  let states = possible;
  const pick: NativePick = {};
  for (const [field, value] of Object.entries(filter)) {
    if (field === 'states') states = statesOf(value, possible);
    else if (field === 'parent') pick.parent = parentOf(value, queue);
    else if (Object.hasOwn(READERS, field)) Object.assign(pick, READERS[field]?.(value, now));
    else throw new TypeError(`${field} is no option of this call`);
  }
  return { states, pick };
}

/** @throws TypeError unless the filter says anything: no slip can mean every job */
export function requireFilter(filter: JobFilter): void {
  if (Object.keys(Object(filter) as object).length > 0) return;
  throw new TypeError('The filter must say which jobs: name their states at least');
}

/** @throws TypeError unless the options are those of this call */
export function checkOptions(options: object, known: readonly string[]): void {
  for (const field of Object.keys(options)) {
    if (!known.includes(field)) throw new TypeError(`${field} is no option of this call`);
  }
  const { signal, onProgress } = options as { signal?: unknown; onProgress?: unknown };
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError('signal must be an AbortSignal');
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw new TypeError('onProgress must be a function');
  }
}

/** @throws TypeError unless it is a whole number of at least 1, or all of them (`Infinity`) */
export function readLimit(limit: unknown): number {
  if (limit === Infinity) return Number.MAX_SAFE_INTEGER;
  if (Number.isSafeInteger(limit) && (limit as number) >= 1) return limit as number;
  throw new TypeError('limit must be a whole number of at least 1');
}

/** @throws TypeError unless it is a number of 0 or more */
export function readNumber(field: string, value: unknown): number {
  if (typeof value !== 'number' || !(value >= 0)) throw new TypeError(`${field} must be a number of 0 or more`);
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** @throws TypeError unless it is a text that says something */
export function textOf(field: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new TypeError(`${field} must be a text${field === 'data' ? ', or an object with fields' : ''}`);
}

function textsOf(field: string, value: unknown): string[] {
  const texts: unknown = typeof value === 'string' ? [value] : value;
  const valid = Array.isArray(texts) && texts.length > 0 && texts.every((text) => typeof text === 'string');
  if (!valid) throw new TypeError(`${field} must be a text, or a list of texts`);
  return [...texts];
}

function statesOf(value: unknown, possible: readonly JobState[]): JobState[] {
  const states: unknown = typeof value === 'string' ? [value] : value;
  const valid =
    Array.isArray(states) && states.length > 0 && states.every((state) => possible.includes(state as JobState));
  if (!valid) throw new TypeError(`states must be some of ${possible.join(', ')}`);
  return [...new Set(states as JobState[])];
}

/** JSON text. A field without a value would be left out, and then mean any. */
function fieldsOf(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0) {
    throw new TypeError('data must be a text, or an object with fields');
  }
  return JSON.stringify(value, (field, part: unknown) => {
    if (part === undefined || typeof part === 'function' || typeof part === 'symbol') {
      throw new TypeError(`data.${field} must have a value`);
    }
    return part;
  });
}

function parentOf(value: unknown, queue: string): { queue: string; id: string } {
  const { id, queue: of = queue } = Object(value) as { id?: unknown; queue?: unknown };
  const valid = typeof id === 'string' && id !== '' && typeof of === 'string' && of.includes(':');
  if (!valid) throw new TypeError('parent must be { id, queue }, the queue as <prefix>:<name>');
  return { queue: of, id };
}
