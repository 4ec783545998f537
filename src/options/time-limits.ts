/** How long a run may take: the checks of what is said of it. */
import { inspect } from 'node:util';

/** Milliseconds that a run may take: of all jobs, or by their names. */
export type TimeLimit = number | { readonly [jobName: string]: number };

/** What a job says of it. */
interface OwnLimit {
  timeout?: number | null;
  timeoutIsFinal?: boolean | null;
}

/** Whether it is a time that a run can have. */
export function isTime(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value < Infinity;
}

/** @throws RangeError with the name of the option unless it is a time */
function checkTime(value: unknown, name: string): void {
  if (!isTime(value)) throw new RangeError(`${name} must be a number of milliseconds above 0, not ${inspect(value)}`);
}

/** @throws RangeError or TypeError with the name of what is wrong, for the options `timeout` and `timeoutIsFinal` of a job */
export function checkJobTimeout({ timeout, timeoutIsFinal }: OwnLimit): void {
  if (timeout !== undefined && timeout !== null) checkTime(timeout, 'The job option timeout');
  if (timeoutIsFinal !== undefined && timeoutIsFinal !== null && typeof timeoutIsFinal !== 'boolean') {
    throw new TypeError('The job option timeoutIsFinal must be true or false');
  }
}

/** @throws RangeError with the name of what is wrong, for the options `ttl` and `killAfter` of a worker */
export function checkTimeLimits({ ttl, killAfter }: { ttl?: unknown; killAfter?: unknown }): void {
  for (const [name, ms] of namedLimits(ttl)) checkTime(ms, name);
  if (killAfter === undefined || (typeof killAfter === 'number' && killAfter >= 0)) return;
  throw new RangeError(`killAfter must be a number of milliseconds, 0 or more, not ${inspect(killAfter)}`);
}

function namedLimits(ttl: unknown): [string, unknown][] {
  if (ttl === undefined) return [];
  if (typeof ttl !== 'object' || ttl === null || Array.isArray(ttl)) return [['ttl', ttl]];
  return Object.entries(ttl).map(([name, ms]) => [`ttl.${name}`, ms]);
}
