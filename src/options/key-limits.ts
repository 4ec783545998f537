/** Keys of which jobs use something when they start, within limits: the option `limits`. */
import { checkCount, checkFields, checkGroupId } from './group.js';

/** What each start of a job uses of a key, and how much of it all jobs of the queue may use in a window of time. */
export interface KeyLimit {
  /** What is limited, such as an API, or a customer of it: a text of 1 to 256 characters. */
  key: string;
  /** What may be used of the key in a window. */
  max: number;
  /** Milliseconds of a window, by the server's clock. It begins with the first start in it; the job that starts it says how long it is. */
  duration: number;
  /**
   * What one start of this job uses, at most `max`.
   * @defaultValue 1
   */
  cost?: number;
}

const FIELDS = ['key', 'max', 'duration', 'cost'];
/** Each of them is looked at, and written, when the job starts. */
const MOST_KEYS = 8;

/** @throws TypeError or RangeError with the name of what is wrong, for the option `limits` of a job */
export function checkKeyLimits({ limits }: { limits?: readonly KeyLimit[] | null }): void {
  if (limits === undefined || limits === null) return;
  const name = 'The job option limits';
  if (!Array.isArray(limits) || limits.length === 0 || limits.length > MOST_KEYS) {
    throw new TypeError(`${name} must be an array of 1 to ${MOST_KEYS} limits`);
  }
  limits.forEach((limit: unknown, at) => {
    checkKeyLimit(limit, `${name}[${at}]`);
  });
  if (new Set(limits.map(({ key }: KeyLimit) => key)).size < limits.length) {
    throw new TypeError(`${name} must name each key once`);
  }
}

function checkKeyLimit(limit: unknown, name: string): void {
  if (typeof limit !== 'object' || limit === null) throw new TypeError(`${name} must be an object with a key`);
  checkFields(limit, FIELDS, name);
  const { key, max, duration, cost } = limit as KeyLimit;
  checkGroupId(key, `${name}.key`);
  checkCount(max, `${name}.max`);
  checkCount(duration, `${name}.duration`);
  if (cost === undefined) return;
  checkCount(cost, `${name}.cost`);
  if (cost > max) throw new RangeError(`${name}.cost must be at most its max, ${max}, not ${cost}`);
}
