import type { NativeQueue, NativeTimes } from '../native/types.js';
import { spanOf, type GroupLatencyOptions } from '../options/latency.js';
import type { GroupLatency, JobTimes, QueueLatency } from '../types/latency.js';

/** How late a queue is, or a group. */
export async function latencyOf(
  native: NativeQueue,
  options: Partial<GroupLatencyOptions>,
  now: number,
): Promise<QueueLatency | GroupLatency> {
  const asked = spanOf(options, now);
  const { group } = options;
  const [oldest, { from, to, added, ...times }] = await Promise.all([
    native.oldestMs(now, group),
    native.getLatency(now, asked.from, asked.to, group),
  ]);
  const minutes = Math.max((Math.min(to, now) - from) / 60_000, 1);
  return {
    ...{ oldest: oldest ?? null, from, to },
    waiting: timesOf(times.waiting),
    running: timesOf(times.running),
    completion: timesOf(times.completion),
    perMinute: times.completion.count / minutes,
    // nobody counts the adds of a group
    ...(group === undefined && { addedPerMinute: added / minutes }),
  };
}

function timesOf({ count, sum, p50, p95, p99 }: NativeTimes): JobTimes {
  return { count, mean: count > 0 ? sum / count : null, p50: p50 ?? null, p95: p95 ?? null, p99: p99 ?? null };
}
