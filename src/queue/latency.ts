import type { NativeQueue, NativeTimes } from '../native/types.js';
import { spanOf, type LatencyOptions } from '../options/latency.js';
import type { JobTimes, QueueLatency } from '../types/latency.js';

/** How late a queue is. */
export async function latencyOf(native: NativeQueue, options: LatencyOptions, now: number): Promise<QueueLatency> {
  const asked = spanOf(options, now);
  const [oldest, { from, to, ...times }] = await Promise.all([
    native.oldestMs(now),
    native.getLatency(now, asked.from, asked.to),
  ]);
  const minutes = Math.max((Math.min(to, now) - from) / 60_000, 1);
  return {
    ...{ oldest: oldest ?? null, from, to },
    waiting: timesOf(times.waiting),
    running: timesOf(times.running),
    completion: timesOf(times.completion),
    perMinute: times.completion.count / minutes,
    addedPerMinute: times.added / minutes,
  };
}

function timesOf({ count, sum, p50, p95, p99 }: NativeTimes): JobTimes {
  return { count, mean: count > 0 ? sum / count : null, p50: p50 ?? null, p95: p95 ?? null, p99: p99 ?? null };
}
