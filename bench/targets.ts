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
 * Ratios reached, by scenario and metric: the worse of the medians of the two reports of 2026-11-26, against BullMQ as it is fastest; of
 * retries and of data of 10 KiB and more that of the later one: they are better for good. What is not listed is measured and
 * reported without a floor: percentiles whose pairs differ by more than the floor leaves. When the bench gets better for good, its figures come here.
 */
export const reached: Readonly<Record<string, Partial<Record<Metric, number>>>> = {
  'add-tiny': { jobsPerSecond: 2.6, nodeCpuMicros: 0.681, redisCpuMicros: 0.592 },
  'add-nested': { jobsPerSecond: 2.07, nodeCpuMicros: 0.877, redisCpuMicros: 0.728 },
  'add-in-flight': { jobsPerSecond: 12.3, nodeCpuMicros: 0.0834, redisCpuMicros: 0.0455 },
  'add-bulk-50': { jobsPerSecond: 15.5, nodeCpuMicros: 0.113, redisCpuMicros: 0.0611 },
  'add-bulk-1000': { jobsPerSecond: 51.4, nodeCpuMicros: 0.0282, redisCpuMicros: 0.0107 },
  'worker-100-remove': { jobsPerSecond: 52.1, nodeCpuMicros: 0.0204, redisCpuMicros: 0.0106 },
  'worker-100-keep': { jobsPerSecond: 57.5, nodeCpuMicros: 0.0183, redisCpuMicros: 0.0106 },
  'worker-1-remove': { jobsPerSecond: 315, nodeCpuMicros: 0.00568, redisCpuMicros: 0.00396 },
  'worker-1-keep': { jobsPerSecond: 299, nodeCpuMicros: 0.00556, redisCpuMicros: 0.00424 },
  'waiting-5-1': { redisCpuMicros: 0.687, nodeCpuMicros: 0.752 },
  'waiting-5-20': { redisCpuMicros: 0.398, nodeCpuMicros: 0.515 },
  'waiting-5-50': { redisCpuMicros: 0.449, nodeCpuMicros: 0.552 },
  'waiting-5-100': { redisCpuMicros: 0.277, nodeCpuMicros: 0.398 },
  'waiting-20-1': { redisCpuMicros: 1.01, nodeCpuMicros: 0.978 },
  'waiting-20-20': { redisCpuMicros: 0.454, nodeCpuMicros: 0.65 },
  'waiting-20-50': { redisCpuMicros: 0.409, nodeCpuMicros: 0.603 },
  'waiting-20-100': { redisCpuMicros: 0.456, nodeCpuMicros: 0.559 },
  'waiting-100-1': { redisCpuMicros: 1, nodeCpuMicros: 1.01 },
  'waiting-100-20': { redisCpuMicros: 0.671, nodeCpuMicros: 0.872 },
  'waiting-100-50': { redisCpuMicros: 0.544, nodeCpuMicros: 0.734 },
  'waiting-100-100': { redisCpuMicros: 0.508, nodeCpuMicros: 0.727 },
  'waiting-5-20-slow': { redisCpuMicros: 0.439, nodeCpuMicros: 0.641 },
  'waiting-20-50-1kb': { redisCpuMicros: 0.542, nodeCpuMicros: 0.644 },
  'waiting-20-50-10kb': { redisCpuMicros: 0.537, nodeCpuMicros: 0.578 },
  'waiting-20-50-100kb': { redisCpuMicros: 0.818, nodeCpuMicros: 0.639 },
  'cpu-50us': { jobsPerSecond: 1.6, nodeCpuMicros: 0.592, redisCpuMicros: 0.0586 },
  'cpu-1000us': { jobsPerSecond: 1.05, nodeCpuMicros: 0.937, redisCpuMicros: 0.212 },
  retry: { jobsPerSecond: 10.1, nodeCpuMicros: 0.109, redisCpuMicros: 0.109 },
  delayed: { jobsPerSecond: 7.5, nodeCpuMicros: 0.0732, redisCpuMicros: 0.135 },
  priority: { jobsPerSecond: 6.81, nodeCpuMicros: 0.0873, redisCpuMicros: 0.153 },
  schedulers: { latencyP50Ms: 0.127, latencyP99Ms: 0.0891, nodeCpuMicros: 0.509, redisCpuMicros: 0.485 },
  'schedulers-without': { latencyP50Ms: 0.0923, latencyP99Ms: 0.0814, nodeCpuMicros: 0.49, redisCpuMicros: 0.476 },
  flow: { jobsPerSecond: 18.3, nodeCpuMicros: 0.0306, redisCpuMicros: 0.0641 },
  latency: { latencyP50Ms: 0.526, latencyP99Ms: 0.596 },
  trickle: { latencyP50Ms: 0.669, latencyP99Ms: 0.744, nodeCpuMicros: 0.5, redisCpuMicros: 0.588 },
  'busy-loop': { jobsPerSecond: 1.14, nodeCpuMicros: 1.34, redisCpuMicros: 0.826 },
  'bandwidth-100b': { megabytesPerSecond: 10.5, nodeCpuMicros: 0.126, redisCpuMicros: 0.0451 },
  'bandwidth-1kib': { megabytesPerSecond: 7.84, nodeCpuMicros: 0.166, redisCpuMicros: 0.0537 },
  'bandwidth-10kib': { megabytesPerSecond: 3.92, nodeCpuMicros: 0.265, redisCpuMicros: 0.157 },
  'bandwidth-64kib': { megabytesPerSecond: 2.9, nodeCpuMicros: 0.402, redisCpuMicros: 0.215 },
  'bandwidth-200kib': { megabytesPerSecond: 2.39, nodeCpuMicros: 0.539, redisCpuMicros: 0.277 },
  'bandwidth-1mib': { megabytesPerSecond: 2.52, nodeCpuMicros: 0.61, redisCpuMicros: 0.217 },
  'get-waiting': { jobsPerSecond: 2.61 },
  'get-completed': { jobsPerSecond: 2.59 },
  'get-delayed': { jobsPerSecond: 2.7 },
  'memory-waiting': { bytesPerJob: 0.0578 },
  'memory-completed': { bytesPerJob: 0.0386 },
  'memory-delayed': { bytesPerJob: 0.586 },
  'distance-0.5-1': { jobsPerSecond: 1.52 },
  'distance-0.5-10': { jobsPerSecond: 4.07 },
  'distance-0.5-100': { jobsPerSecond: 31.3 },
  'distance-1-1': { jobsPerSecond: 1.54 },
  'distance-1-10': { jobsPerSecond: 4.19 },
  'distance-1-100': { jobsPerSecond: 33.9 },
  'distance-5-1': { jobsPerSecond: 1.48 },
  'distance-5-10': { jobsPerSecond: 4.25 },
  'distance-5-100': { jobsPerSecond: 39.7 },
  'persistence-none': { jobsPerSecond: 13.7, nodeCpuMicros: 0.0911, redisCpuMicros: 0.0502 },
  'persistence-everysec': { jobsPerSecond: 15.7, nodeCpuMicros: 0.0872, redisCpuMicros: 0.0439 },
  'persistence-always': { jobsPerSecond: 8.65, nodeCpuMicros: 0.086, redisCpuMicros: 0.0888 },
  'open-loop-10': { latencyP50Ms: 0.421, recordedP50Ms: 0.764 },
  'open-loop-50': { latencyP50Ms: 0.303, recordedP50Ms: 0.494 },
  'open-loop-90': { latencyP50Ms: 0.0819, recordedP50Ms: 0.238 },
  'processes-1': { jobsPerSecond: 72.9, redisCpuMicros: 0.00874 },
  'processes-2': { jobsPerSecond: 110, redisCpuMicros: 0.00836 },
  'processes-4': { jobsPerSecond: 135, redisCpuMicros: 0.00724 },
  'processes-8': { jobsPerSecond: 108, redisCpuMicros: 0.00799 },
  'listeners-1': { jobsPerSecond: 20.1, nodeCpuMicros: 0.0656, redisCpuMicros: 0.0113 },
  'listeners-10': { jobsPerSecond: 8.21, nodeCpuMicros: 0.204, redisCpuMicros: 0.0229 },
  'contended-add-in-flight': { jobsPerSecond: 15.8, nodeCpuMicros: 0.0622, redisCpuMicros: 0.0488 },
  'contended-worker-100-remove': { jobsPerSecond: 74.8, nodeCpuMicros: 0.017, redisCpuMicros: 0.00992 },
  'contended-waiting-20-20': { redisCpuMicros: 0.451, nodeCpuMicros: 0.642 },
  'contended-latency': { latencyP50Ms: 0.447 },
  'contended-trickle': { latencyP50Ms: 0.599, latencyP99Ms: 0.788, nodeCpuMicros: 0.561, redisCpuMicros: 0.529 },
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
