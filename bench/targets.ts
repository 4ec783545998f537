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
 * Ratios reached, by scenario and metric: the medians of the report of 2026-11-23, against BullMQ as it is fastest; of single jobs, adds and long
 * data those of a later run of that day, in a quicker hour of the machine, in which BullMQ gains more than this does. What is not listed is measured
 * and reported without a floor: percentiles whose pairs differ by more than the floor leaves. When the bench gets better for good, its figures come
 * here.
 */
export const reached: Readonly<Record<string, Partial<Record<Metric, number>>>> = {
  'add-tiny': { jobsPerSecond: 1.86, nodeCpuMicros: 1.08, redisCpuMicros: 0.707 },
  'add-nested': { jobsPerSecond: 1.92, nodeCpuMicros: 1.03, redisCpuMicros: 0.734 },
  'add-in-flight': { jobsPerSecond: 20.9, nodeCpuMicros: 0.0562, redisCpuMicros: 0.0307 },
  'add-bulk-50': { jobsPerSecond: 20.7, nodeCpuMicros: 0.0815, redisCpuMicros: 0.0498 },
  'add-bulk-1000': { jobsPerSecond: 53.3, nodeCpuMicros: 0.0233, redisCpuMicros: 0.0118 },
  'worker-100-remove': { jobsPerSecond: 61.4, nodeCpuMicros: 0.0154, redisCpuMicros: 0.00989 },
  'worker-100-keep': { jobsPerSecond: 73.8, nodeCpuMicros: 0.0153, redisCpuMicros: 0.00938 },
  'worker-1-remove': { jobsPerSecond: 223, nodeCpuMicros: 0.00698, redisCpuMicros: 0.00509 },
  'worker-1-keep': { jobsPerSecond: 282, nodeCpuMicros: 0.00631, redisCpuMicros: 0.00507 },
  'waiting-5-1': { redisCpuMicros: 0.758, nodeCpuMicros: 0.856 },
  'waiting-5-20': { redisCpuMicros: 0.471, nodeCpuMicros: 0.625 },
  'waiting-5-50': { redisCpuMicros: 0.499, nodeCpuMicros: 0.522 },
  'waiting-5-100': { redisCpuMicros: 0.309, nodeCpuMicros: 0.397 },
  'waiting-20-1': { redisCpuMicros: 0.994, nodeCpuMicros: 0.867 },
  'waiting-20-20': { redisCpuMicros: 0.577, nodeCpuMicros: 0.686 },
  'waiting-20-50': { redisCpuMicros: 0.482, nodeCpuMicros: 0.638 },
  'waiting-20-100': { redisCpuMicros: 0.486, nodeCpuMicros: 0.518 },
  'waiting-100-1': { redisCpuMicros: 0.982, nodeCpuMicros: 0.873 },
  'waiting-100-20': { redisCpuMicros: 1.07, nodeCpuMicros: 0.988 },
  'waiting-100-50': { redisCpuMicros: 0.674, nodeCpuMicros: 0.76 },
  'waiting-100-100': { redisCpuMicros: 0.568, nodeCpuMicros: 0.758 },
  'waiting-5-20-slow': { redisCpuMicros: 0.501, nodeCpuMicros: 0.722 },
  'waiting-20-50-1kb': { redisCpuMicros: 0.587, nodeCpuMicros: 0.605 },
  'waiting-20-50-10kb': { redisCpuMicros: 0.537, nodeCpuMicros: 0.592 },
  'waiting-20-50-100kb': { redisCpuMicros: 0.826, nodeCpuMicros: 0.703 },
  'cpu-50us': { jobsPerSecond: 1.71, nodeCpuMicros: 0.552, redisCpuMicros: 0.0665 },
  'cpu-1000us': { jobsPerSecond: 1.02, nodeCpuMicros: 0.963, redisCpuMicros: 0.263 },
  retry: { jobsPerSecond: 7.32, nodeCpuMicros: 0.127, redisCpuMicros: 0.14 },
  delayed: { jobsPerSecond: 7.4, nodeCpuMicros: 0.0674, redisCpuMicros: 0.138 },
  priority: { jobsPerSecond: 7.57, nodeCpuMicros: 0.0656, redisCpuMicros: 0.137 },
  schedulers: { latencyP50Ms: 0.132, latencyP99Ms: 0.0854, nodeCpuMicros: 0.54, redisCpuMicros: 0.449 },
  'schedulers-without': { latencyP50Ms: 0.0822, latencyP99Ms: 0.0814, nodeCpuMicros: 0.472, redisCpuMicros: 0.486 },
  flow: { jobsPerSecond: 13.6, nodeCpuMicros: 0.0569, redisCpuMicros: 0.0557 },
  latency: { latencyP50Ms: 0.549, latencyP99Ms: 0.634 },
  trickle: { latencyP50Ms: 0.654, latencyP99Ms: 0.728, nodeCpuMicros: 0.528, redisCpuMicros: 0.64 },
  'busy-loop': { jobsPerSecond: 1.07, nodeCpuMicros: 1.34, redisCpuMicros: 0.964 },
  'bandwidth-100b': { megabytesPerSecond: 12.2, nodeCpuMicros: 0.101, redisCpuMicros: 0.0391 },
  'bandwidth-1kib': { megabytesPerSecond: 6.34, nodeCpuMicros: 0.173, redisCpuMicros: 0.098 },
  'bandwidth-10kib': { megabytesPerSecond: 2.71, nodeCpuMicros: 0.426, redisCpuMicros: 0.147 },
  'bandwidth-64kib': { megabytesPerSecond: 1.42, nodeCpuMicros: 0.564, redisCpuMicros: 0.851 },
  'bandwidth-200kib': { megabytesPerSecond: 2.21, nodeCpuMicros: 0.568, redisCpuMicros: 0.32 },
  'bandwidth-1mib': { megabytesPerSecond: 1.55, nodeCpuMicros: 0.627, redisCpuMicros: 0.661 },
  'get-waiting': { jobsPerSecond: 2.46 },
  'get-completed': { jobsPerSecond: 2.69 },
  'get-delayed': { jobsPerSecond: 2.59 },
  'memory-waiting': { bytesPerJob: 0.0578 },
  'memory-completed': { bytesPerJob: 0.0386 },
  'memory-delayed': { bytesPerJob: 0.586 },
  'distance-0.5-1': { jobsPerSecond: 1.45 },
  'distance-0.5-10': { jobsPerSecond: 4.82 },
  'distance-0.5-100': { jobsPerSecond: 33.2 },
  'distance-1-1': { jobsPerSecond: 1.46 },
  'distance-1-10': { jobsPerSecond: 5.27 },
  'distance-1-100': { jobsPerSecond: 43.4 },
  'distance-5-1': { jobsPerSecond: 1.49 },
  'distance-5-10': { jobsPerSecond: 5.63 },
  'distance-5-100': { jobsPerSecond: 38 },
  'persistence-none': { jobsPerSecond: 16.2, nodeCpuMicros: 0.082, redisCpuMicros: 0.042 },
  'persistence-everysec': { jobsPerSecond: 16.6, nodeCpuMicros: 0.0858, redisCpuMicros: 0.0405 },
  'persistence-always': { jobsPerSecond: 7.83, nodeCpuMicros: 0.0952, redisCpuMicros: 0.0916 },
  'open-loop-10': { latencyP50Ms: 0.629, recordedP50Ms: 1.4 },
  'open-loop-50': { latencyP50Ms: 0.683, recordedP50Ms: 1.11 },
  'open-loop-90': { latencyP50Ms: 0.139, latencyP99Ms: 0.149, recordedP50Ms: 0.335 },
  'processes-1': { jobsPerSecond: 80.5, redisCpuMicros: 0.0088 },
  'processes-2': { jobsPerSecond: 123, redisCpuMicros: 0.00777 },
  'processes-4': { jobsPerSecond: 137, redisCpuMicros: 0.00717 },
  'processes-8': { jobsPerSecond: 140, redisCpuMicros: 0.00704 },
  'listeners-1': { jobsPerSecond: 10.4, nodeCpuMicros: 0.114, redisCpuMicros: 0.0177 },
  'listeners-10': { jobsPerSecond: 3, nodeCpuMicros: 0.439, redisCpuMicros: 0.0548 },
  'contended-add-in-flight': { jobsPerSecond: 15.6, nodeCpuMicros: 0.0668, redisCpuMicros: 0.0342 },
  'contended-worker-100-remove': { jobsPerSecond: 61.3, nodeCpuMicros: 0.018, redisCpuMicros: 0.0102 },
  'contended-waiting-20-20': { redisCpuMicros: 0.411, nodeCpuMicros: 0.874 },
  'contended-latency': { latencyP50Ms: 0.61, latencyP99Ms: 0.62 },
  'contended-trickle': { latencyP50Ms: 0.934, latencyP99Ms: 0.975, nodeCpuMicros: 0.606, redisCpuMicros: 0.718 },
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
