import { checkOptions } from './job-filter.js';

const MINUTE_MS = 60_000;
/** For how long workers' times are kept. */
const LONGEST_MS = 90 * 24 * 60 * MINUTE_MS;
const DEFAULT_WINDOW_MS = 60 * MINUTE_MS;

/** Which jobs `queue.getLatency` tells of: those that ended in a span of time. */
export interface LatencyOptions {
  /**
   * Milliseconds up to now, from a minute to 90 days. Not together with `from`.
   * @defaultValue an hour
   */
  window?: number;
  /** Begin of the span, epoch ms, at most 90 days ago. */
  from?: number;
  /**
   * End of the span, epoch ms. Needs `from`.
   * @defaultValue now
   */
  to?: number;
}

/**
 * The span that options name, epoch ms.
 * @throws TypeError that names the option
 */
export function spanOf(options: LatencyOptions, now: number): { from: number; to: number } {
  checkOptions(options, ['window', 'from', 'to']);
  const { window, from, to = now } = options;
  if (from === undefined) {
    if (options.to !== undefined) throw new TypeError('to needs from');
    const ms = window ?? DEFAULT_WINDOW_MS;
    if (!(ms >= MINUTE_MS && ms <= LONGEST_MS)) throw new TypeError('window must be from 60000 ms to 90 days');
    return { from: now - ms, to: now };
  }
  if (window !== undefined) throw new TypeError('window and from exclude each other');
  if (!(from >= now - LONGEST_MS && from <= now))
    throw new TypeError('from must be a time of the last 90 days, epoch ms');
  if (!(to > from)) throw new TypeError('to must be a time behind from, epoch ms');
  return { from, to: Math.min(to, now) };
}
