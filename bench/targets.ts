import type { Metric } from './measure.js';

/** What a ratio must reach; where more is better at least, otherwise at most. */
export interface Target {
  readonly ratio: number;
  /** As people write it, where the number alone is hard to read. */
  readonly text: string;
}

const atLeast = (ratio: number): Target => ({ ratio, text: `>= ${ratio}x` });
const atMost = (ratio: number, text = `<= ${ratio}x`): Target => ({ ratio, text });

/** By scenario and metric. What is not listed is measured and reported without a target. */
export const targets: Readonly<Record<string, Partial<Record<Metric, Target>>>> = {
  'add-tiny': { jobsPerSecond: atLeast(1.4) },
  'add-nested': { jobsPerSecond: atLeast(1.5) },
  'add-in-flight': { jobsPerSecond: atLeast(6) },
  'add-bulk-50': { jobsPerSecond: atLeast(8) },
  'add-bulk-1000': { jobsPerSecond: atLeast(25) },
  'worker-100-remove': {
    jobsPerSecond: atLeast(25),
    nodeCpuMicros: atMost(1 / 12, '<= 1/12'),
    redisCpuMicros: atMost(1 / 15, '<= 1/15'),
  },
  'worker-100-keep': { jobsPerSecond: atLeast(15) },
  'worker-1-remove': { jobsPerSecond: atLeast(30) },
  retry: { jobsPerSecond: atLeast(8) },
  delayed: { jobsPerSecond: atLeast(8) },
  priority: { jobsPerSecond: atLeast(8) },
  flow: { jobsPerSecond: atLeast(8) },
  schedulers: { latencyP99Ms: atMost(1) },
  'schedulers-without': { latencyP99Ms: atMost(1) },
  latency: { latencyP50Ms: atMost(0.8), latencyP99Ms: atMost(0.7) },
  'get-waiting': { jobsPerSecond: atLeast(1) },
  'get-completed': { jobsPerSecond: atLeast(1) },
  'get-delayed': { jobsPerSecond: atLeast(1) },
  'memory-waiting': { bytesPerJob: atMost(0.4) },
  'memory-completed': { bytesPerJob: atMost(0.5) },
  'memory-delayed': { bytesPerJob: atMost(0.7) },
};

export function moreIsBetter(metric: Metric): boolean {
  return metric === 'jobsPerSecond';
}

export function isMet(metric: Metric, target: Target, ratio: number): boolean {
  return moreIsBetter(metric) ? ratio >= target.ratio : ratio <= target.ratio;
}
