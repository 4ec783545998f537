/** What the bench must not fall below: a part of what the committed reports reach. */
import type { Metric } from './measure.js';

/** A floor: what a ratio must reach; where more is better at least, otherwise at most. */
export interface Target {
  readonly ratio: number;
  readonly text: string;
}

/** This part of the reached ratio is the floor. The rest is left to machines, which share it out differently from run to run. */
const PART = 0.7;

/**
 * Ratios reached, by scenario and metric: the medians of the reports of 2026-11-22. What is not listed is measured and reported
 * without a floor. When the bench gets better for good, its figures come here.
 */
export const reached: Readonly<Record<string, Partial<Record<Metric, number>>>> = {
  // 2.05 and 1.8 where the machine wakes a process within some 100 us, 1.13 in its slow phases; the floor is BullMQ's speed
  'add-tiny': { jobsPerSecond: 1.43 },
  'add-nested': { jobsPerSecond: 1.43 },
  'add-in-flight': { jobsPerSecond: 10.4, nodeCpuMicros: 0.0752, redisCpuMicros: 0.0517 },
  'add-bulk-50': { jobsPerSecond: 12.2, nodeCpuMicros: 0.102, redisCpuMicros: 0.0731 },
  'add-bulk-1000': { jobsPerSecond: 48, nodeCpuMicros: 0.0242, redisCpuMicros: 0.0114 },
  'worker-100-remove': { jobsPerSecond: 76.2, nodeCpuMicros: 0.0123, redisCpuMicros: 0.0084 },
  'worker-100-keep': { jobsPerSecond: 67.9, nodeCpuMicros: 0.013, redisCpuMicros: 0.0101 },
  'worker-1-remove': { jobsPerSecond: 462, nodeCpuMicros: 0.0036, redisCpuMicros: 0.0031 },
  'worker-1-keep': { jobsPerSecond: 412, nodeCpuMicros: 0.0044, redisCpuMicros: 0.0037 },
  retry: { jobsPerSecond: 9.73, nodeCpuMicros: 0.101, redisCpuMicros: 0.103 },
  delayed: { jobsPerSecond: 9.35, nodeCpuMicros: 0.0661, redisCpuMicros: 0.102 },
  priority: { jobsPerSecond: 10.6, nodeCpuMicros: 0.0637, redisCpuMicros: 0.0912 },
  flow: { jobsPerSecond: 13.3, nodeCpuMicros: 0.0595, redisCpuMicros: 0.0488 },
  schedulers: { latencyP50Ms: 0.114, latencyP99Ms: 0.106, nodeCpuMicros: 0.516, redisCpuMicros: 0.494 },
  'schedulers-without': { latencyP50Ms: 0.276, latencyP99Ms: 0.0873, nodeCpuMicros: 0.293, redisCpuMicros: 0.357 },
  latency: { latencyP50Ms: 0.678, latencyP99Ms: 0.594 },
  'get-waiting': { jobsPerSecond: 2.81 },
  'get-completed': { jobsPerSecond: 3.38 },
  'get-delayed': { jobsPerSecond: 3.71 },
  'memory-waiting': { bytesPerJob: 0.0704 },
  'memory-completed': { bytesPerJob: 0.0425 },
  'memory-delayed': { bytesPerJob: 0.58 },
};

/** The floor of a scenario's metric, if it has one. */
export function floorOf(scenario: string, metric: Metric): Target | undefined {
  const ratio = reached[scenario]?.[metric];
  if (ratio === undefined) return undefined;
  const floor = Number((moreIsBetter(metric) ? ratio * PART : ratio / PART).toPrecision(3));
  return { ratio: floor, text: `${moreIsBetter(metric) ? '>=' : '<='} ${floor}x` };
}

export function moreIsBetter(metric: Metric): boolean {
  return ['jobsPerSecond', 'megabytesPerSecond', 'rawShare'].includes(metric);
}

export function isMet(metric: Metric, target: Target, ratio: number): boolean {
  return moreIsBetter(metric) ? ratio >= target.ratio : ratio <= target.ratio;
}
