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
 * Ratios reached, by scenario and metric: the worse of the medians of the reports of 2026-11-25 and 2026-11-26, against BullMQ as it is fastest; of
 * single adds and 1 MiB that of the later one: they are better for good. What is not listed is measured and
 * reported without a floor: percentiles whose pairs differ by more than the floor leaves. When the bench gets better for good, its figures come here.
 */
export const reached: Readonly<Record<string, Partial<Record<Metric, number>>>> = {
  'add-tiny': { jobsPerSecond: 2.6, nodeCpuMicros: 0.681, redisCpuMicros: 0.592 },
  'add-nested': { jobsPerSecond: 2.11, nodeCpuMicros: 0.853, redisCpuMicros: 0.728 },
  'add-in-flight': { jobsPerSecond: 12.4, nodeCpuMicros: 0.0822, redisCpuMicros: 0.0475 },
  'add-bulk-50': { jobsPerSecond: 15.7, nodeCpuMicros: 0.103, redisCpuMicros: 0.0629 },
  'add-bulk-1000': { jobsPerSecond: 51.5, nodeCpuMicros: 0.0282, redisCpuMicros: 0.0103 },
  'worker-100-remove': { jobsPerSecond: 52.2, nodeCpuMicros: 0.0199, redisCpuMicros: 0.0103 },
  'worker-100-keep': { jobsPerSecond: 57.5, nodeCpuMicros: 0.0193, redisCpuMicros: 0.0112 },
  'worker-1-remove': { jobsPerSecond: 336, nodeCpuMicros: 0.00547, redisCpuMicros: 0.00385 },
  'worker-1-keep': { jobsPerSecond: 302, nodeCpuMicros: 0.00613, redisCpuMicros: 0.00426 },
  'waiting-5-1': { redisCpuMicros: 0.612, nodeCpuMicros: 0.74 },
  'waiting-5-20': { redisCpuMicros: 0.468, nodeCpuMicros: 0.569 },
  'waiting-5-50': { redisCpuMicros: 0.449, nodeCpuMicros: 0.552 },
  'waiting-5-100': { redisCpuMicros: 0.28, nodeCpuMicros: 0.419 },
  'waiting-20-1': { redisCpuMicros: 0.971, nodeCpuMicros: 1.02 },
  'waiting-20-20': { redisCpuMicros: 0.527, nodeCpuMicros: 0.647 },
  'waiting-20-50': { redisCpuMicros: 0.475, nodeCpuMicros: 0.645 },
  'waiting-20-100': { redisCpuMicros: 0.456, nodeCpuMicros: 0.56 },
  'waiting-100-1': { redisCpuMicros: 1, nodeCpuMicros: 1.02 },
  'waiting-100-20': { redisCpuMicros: 0.762, nodeCpuMicros: 0.973 },
  'waiting-100-50': { redisCpuMicros: 0.578, nodeCpuMicros: 0.717 },
  'waiting-100-100': { redisCpuMicros: 0.592, nodeCpuMicros: 0.786 },
  'waiting-5-20-slow': { redisCpuMicros: 0.503, nodeCpuMicros: 0.699 },
  'waiting-20-50-1kb': { redisCpuMicros: 0.586, nodeCpuMicros: 0.643 },
  'waiting-20-50-10kb': { redisCpuMicros: 0.551, nodeCpuMicros: 0.61 },
  'waiting-20-50-100kb': { redisCpuMicros: 0.824, nodeCpuMicros: 0.639 },
  'cpu-50us': { jobsPerSecond: 1.59, nodeCpuMicros: 0.584, redisCpuMicros: 0.0906 },
  'cpu-1000us': { jobsPerSecond: 1.05, nodeCpuMicros: 0.937, redisCpuMicros: 0.199 },
  retry: { jobsPerSecond: 8.99, nodeCpuMicros: 0.116, redisCpuMicros: 0.109 },
  delayed: { jobsPerSecond: 7.15, nodeCpuMicros: 0.0759, redisCpuMicros: 0.139 },
  priority: { jobsPerSecond: 6.36, nodeCpuMicros: 0.0781, redisCpuMicros: 0.162 },
  schedulers: { latencyP50Ms: 0.161, latencyP99Ms: 0.0891, nodeCpuMicros: 0.599, redisCpuMicros: 0.485 },
  'schedulers-without': { latencyP50Ms: 0.114, latencyP99Ms: 0.0814, nodeCpuMicros: 0.49, redisCpuMicros: 0.476 },
  flow: { jobsPerSecond: 17.4, nodeCpuMicros: 0.0294, redisCpuMicros: 0.0607 },
  latency: { latencyP50Ms: 0.53, latencyP99Ms: 0.755 },
  trickle: { latencyP50Ms: 0.648, latencyP99Ms: 0.895, nodeCpuMicros: 0.504, redisCpuMicros: 0.577 },
  'busy-loop': { jobsPerSecond: 1.11, nodeCpuMicros: 1.4, redisCpuMicros: 0.901 },
  'bandwidth-100b': { megabytesPerSecond: 11.3, nodeCpuMicros: 0.113, redisCpuMicros: 0.0429 },
  'bandwidth-1kib': { megabytesPerSecond: 7.84, nodeCpuMicros: 0.167, redisCpuMicros: 0.0537 },
  'bandwidth-10kib': { megabytesPerSecond: 2.64, nodeCpuMicros: 0.386, redisCpuMicros: 0.177 },
  'bandwidth-64kib': { megabytesPerSecond: 1.9, nodeCpuMicros: 0.625, redisCpuMicros: 0.286 },
  'bandwidth-200kib': { megabytesPerSecond: 2.05, nodeCpuMicros: 0.601, redisCpuMicros: 0.3 },
  'bandwidth-1mib': { megabytesPerSecond: 2.1, nodeCpuMicros: 0.624, redisCpuMicros: 0.292 },
  'get-waiting': { jobsPerSecond: 2.52 },
  'get-completed': { jobsPerSecond: 2.55 },
  'get-delayed': { jobsPerSecond: 2.64 },
  'memory-waiting': { bytesPerJob: 0.0578 },
  'memory-completed': { bytesPerJob: 0.0386 },
  'memory-delayed': { bytesPerJob: 0.586 },
  'distance-0.5-1': { jobsPerSecond: 1.56 },
  'distance-0.5-10': { jobsPerSecond: 4.07 },
  'distance-0.5-100': { jobsPerSecond: 33 },
  'distance-1-1': { jobsPerSecond: 1.52 },
  'distance-1-10': { jobsPerSecond: 4.21 },
  'distance-1-100': { jobsPerSecond: 33.7 },
  'distance-5-1': { jobsPerSecond: 1.5 },
  'distance-5-10': { jobsPerSecond: 4.25 },
  'distance-5-100': { jobsPerSecond: 32.6 },
  'persistence-none': { jobsPerSecond: 13.7, nodeCpuMicros: 0.0911, redisCpuMicros: 0.0502 },
  'persistence-everysec': { jobsPerSecond: 16.4, nodeCpuMicros: 0.0906, redisCpuMicros: 0.0427 },
  'persistence-always': { jobsPerSecond: 7.78, nodeCpuMicros: 0.0959, redisCpuMicros: 0.0992 },
  'open-loop-10': { latencyP50Ms: 0.413, recordedP50Ms: 0.728 },
  'open-loop-50': { latencyP50Ms: 0.193, recordedP50Ms: 0.462 },
  'open-loop-90': { latencyP50Ms: 0.0764, recordedP50Ms: 0.251 },
  'processes-1': { jobsPerSecond: 72.9, redisCpuMicros: 0.00886 },
  'processes-2': { jobsPerSecond: 110, redisCpuMicros: 0.00836 },
  'processes-4': { jobsPerSecond: 135, redisCpuMicros: 0.00724 },
  'processes-8': { jobsPerSecond: 102, redisCpuMicros: 0.00842 },
  'listeners-1': { jobsPerSecond: 19.9, nodeCpuMicros: 0.0656, redisCpuMicros: 0.0125 },
  'listeners-10': { jobsPerSecond: 8.42, nodeCpuMicros: 0.198, redisCpuMicros: 0.0202 },
  'contended-add-in-flight': { jobsPerSecond: 15.8, nodeCpuMicros: 0.0622, redisCpuMicros: 0.0494 },
  'contended-worker-100-remove': { jobsPerSecond: 64, nodeCpuMicros: 0.0187, redisCpuMicros: 0.00992 },
  'contended-waiting-20-20': { redisCpuMicros: 0.516, nodeCpuMicros: 0.625 },
  'contended-latency': { latencyP50Ms: 0.465, latencyP99Ms: 0.383 },
  'contended-trickle': { latencyP50Ms: 0.526, latencyP99Ms: 0.679, nodeCpuMicros: 0.56, redisCpuMicros: 0.496 },
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
