/** Groups: the options of jobs and workers, and their checks. */
import { PRIORITY_LIMIT } from './priority.js';

/** Characters of a group's id at most. */
const LONGEST_ID = 256;

/** The group of a job. Groups are served in turns, so that none waits behind the many jobs of another. */
export interface JobGroupOptions {
  /** The group: a text of 1 to 256 characters. */
  id: string;
  /**
   * Order within the group, 0 to 2,097,151: lower numbers start first.
   * @defaultValue 0
   */
  priority?: number;
  /**
   * The add is refused, with `GroupMaxSizeExceededError`, where more jobs would wait in the group. Jobs that wait count, and delayed ones that were added with
   * `maxSize`.
   */
  maxSize?: number;
  /**
   * Turns that the group has to one of another group, from now on; as `queue.setGroupWeight`. A weight above 1,048,576 counts as 1,048,576.
   * @defaultValue 1
   */
  weight?: number;
  /**
   * `strict`: a job of the group that waits for its next try holds the others back, and comes first when it is tried again. Holds for the group from now on.
   * @defaultValue 'fifo': it goes behind the others
   */
  order?: 'strict' | 'fifo';
}

/** What a worker heeds of each group that nothing was set for. */
export interface WorkerGroupOptions {
  /** Jobs of a group that may run at once, over all workers. */
  concurrency?: number;
  /** Jobs of a group that may start in a window of time, over all workers; it begins with the first of them. */
  limit?: GroupLimit;
  /**
   * `fair`: the jobs without a group have turns as a group has.
   * @defaultValue 'first': they start before all others
   */
  ungrouped?: 'first' | 'fair';
}

/** At most `max` starts in a window of time. */
export interface GroupLimit {
  /** Jobs that may start in `duration`. */
  max: number;
  /** Milliseconds. */
  duration: number;
}

const JOB_FIELDS = ['id', 'priority', 'maxSize', 'weight', 'order'];
const WORKER_FIELDS = ['concurrency', 'limit', 'ungrouped'];

/** @throws TypeError unless it is the id of a group */
export function checkGroupId(id: unknown, name = 'The group id'): asserts id is string {
  if (typeof id !== 'string' || id.length === 0 || id.length > LONGEST_ID) {
    throw new TypeError(`${name} must be a text of 1 to ${LONGEST_ID} characters`);
  }
}

/** @throws RangeError unless it is a whole number of at least 1 */
export function checkCount(value: unknown, name: string): asserts value is number {
  if (!Number.isSafeInteger(value) || (value as number) < 1) {
    throw new RangeError(`${name} must be a whole number of at least 1, not ${String(value)}`);
  }
}

/** @throws RangeError unless it is a finite number above 0 */
export function checkWeight(value: unknown, name: string): asserts value is number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) {
    throw new RangeError(`${name} must be a finite number above 0, not ${String(value)}`);
  }
}

/** @throws TypeError for a field that is none of these */
export function checkFields(value: object, fields: string[], name: string): void {
  const other = Object.keys(value).find((field) => !fields.includes(field));
  if (other !== undefined) throw new TypeError(`${name} has no field ${other}`);
}

/**
 * The option `group` of a job that has these options.
 * @throws TypeError or RangeError with the name of what is wrong; Error for options that say where a job stands without a group
 */
export function checkJobGroup(opts: { group?: JobGroupOptions | null; lifo?: boolean; priority?: number }): void {
  const { group, lifo, priority } = opts;
  if (group === undefined || group === null) return;
  if (typeof group !== 'object') throw new TypeError('The job option group must be an object with an id');
  checkFields(group, JOB_FIELDS, 'The job option group');
  checkGroupId(group.id, 'The job option group.id');
  if (group.priority !== undefined && !isPriority(group.priority)) {
    throw new RangeError(`The job option group.priority must be a whole number from 0 to ${PRIORITY_LIMIT}`);
  }
  if (group.maxSize !== undefined) checkCount(group.maxSize, 'The job option group.maxSize');
  if (group.weight !== undefined) checkWeight(group.weight, 'The job option group.weight');
  checkWord(group.order, ['strict', 'fifo'], 'The job option group.order');
  if (priority) throw new Error('The job options group and priority cannot be used together: give group.priority');
  if (lifo) throw new Error('The job options group and lifo cannot be used together');
}

function checkWord(value: string | undefined, words: string[], name: string): void {
  if (value === undefined || words.includes(value)) return;
  throw new TypeError(`${name} must be ${words.join(' or ')}, not ${String(value)}`);
}

function isPriority(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= PRIORITY_LIMIT;
}

/** @throws TypeError or RangeError with the name of what is wrong, for the option `group` of a worker */
export function checkWorkerGroup(group: unknown): void {
  if (group === undefined || group === null) return;
  if (typeof group !== 'object') throw new TypeError('The worker option group must be an object');
  checkFields(group, WORKER_FIELDS, 'The worker option group');
  const { concurrency, limit, ungrouped } = group as WorkerGroupOptions;
  checkWord(ungrouped, ['first', 'fair'], 'The worker option group.ungrouped');
  if (concurrency !== undefined) checkCount(concurrency, 'The worker option group.concurrency');
  if (limit === undefined) return;
  if (typeof limit !== 'object' || limit === null)
    throw new TypeError('The worker option group.limit must be an object');
  checkCount(limit.max, 'The worker option group.limit.max');
  checkCount(limit.duration, 'The worker option group.limit.duration');
}

/**
 * What the engine is told of the option `group` of a worker.
 * @param groupsApart a step takes jobs of one group
 */
export function engineGroupRules(
  group: WorkerGroupOptions | undefined,
  groupsApart = false,
): {
  groupConcurrency?: number;
  groupLimit?: GroupLimit;
  groupsFair?: boolean;
  groupsApart?: boolean;
} {
  return {
    ...(group?.concurrency !== undefined && { groupConcurrency: group.concurrency }),
    ...(group?.limit && { groupLimit: { max: group.limit.max, duration: group.limit.duration } }),
    ...(group?.ungrouped === 'fair' && { groupsFair: true }),
    ...(groupsApart && { groupsApart }),
  };
}
