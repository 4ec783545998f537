/** By when a job is to have started: the option `expireAfter`. */
import { inspect, types } from 'node:util';

/** Longer than that no job waits: a larger number is a time since 1970, which is how the engine is told a Date (`expires` in `options.rs`). */
const LONGEST_WAIT_MS = 1e11;

/** @throws RangeError unless it is a time to wait, or a Date that can be told from one */
export function checkExpiry({ expireAfter }: { expireAfter?: number | Date | null }): void {
  if (expireAfter === undefined || expireAfter === null) return;
  if (types.isDate(expireAfter) ? Number(expireAfter) > LONGEST_WAIT_MS : isWait(expireAfter)) return;
  throw new RangeError(
    `The job option expireAfter must be a number of milliseconds, 1 to ${LONGEST_WAIT_MS}, or a Date, not ${inspect(expireAfter)}`,
  );
}

function isWait(value: unknown): boolean {
  return typeof value === 'number' && value >= 1 && value <= LONGEST_WAIT_MS;
}

/** As it was given, by what is stored of it. */
export function expiryFromStored(value: unknown): unknown {
  return typeof value === 'number' && value > LONGEST_WAIT_MS ? new Date(value) : value;
}
