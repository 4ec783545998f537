import { checkGroupId } from './group.js';
import { checkOptions } from './job-filter.js';

const MINUTE_MS = 60_000;
/** Days for which workers' times are kept, those of the queue and those of a group. */
const [LONGEST, LONGEST_OF_GROUP] = [90, 14];
const DEFAULT_WINDOW_MS = 60 * MINUTE_MS;

/** Which jobs `queue.getLatency` tells of: those that ended in a span of time. */
export interface LatencyOptions {
  /**
   * Milliseconds up to now, from a minute to 90 days; of a group to 14 days. Not together with `from`.
   * @defaultValue an hour
   */
  window?: number;
  /** Begin of the span, epoch ms, at most 90 days ago; of a group 14 days. */
  from?: number;
  /**
   * End of the span, epoch ms. Needs `from`.
   * @defaultValue now
   */
  to?: number;
}

/** Which jobs of a group `queue.getLatency` tells of. */
export interface GroupLatencyOptions extends LatencyOptions {
  /** The group: workers with `metrics: { latency: 'groups' }` measure each. */
  group: string;
}

/**
 * The span that options name, epoch ms.
 * @throws TypeError that names the option
 */
export function spanOf(options: Partial<GroupLatencyOptions>, now: number): { from: number; to: number } {
  checkOptions(options, ['window', 'from', 'to', 'group']);
  const { window, from, to = now, group } = options;
  if (group !== undefined) checkGroupId(group, 'group');
  const days = group === undefined ? LONGEST : LONGEST_OF_GROUP;
  const longestMs = days * 24 * 60 * MINUTE_MS;
  if (from === undefined) {
    if (options.to !== undefined) throw new TypeError('to needs from');
    const ms = window ?? DEFAULT_WINDOW_MS;
    if (!(ms >= MINUTE_MS && ms <= longestMs)) throw new TypeError(`window must be from 60000 ms to ${days} days`);
    return { from: now - ms, to: now };
  }
  if (window !== undefined) throw new TypeError('window and from exclude each other');
  if (!(from >= now - longestMs && from <= now))
    throw new TypeError(`from must be a time of the last ${days} days, epoch ms`);
  if (!(to > from)) throw new TypeError('to must be a time behind from, epoch ms');
  return { from, to: Math.min(to, now) };
}
