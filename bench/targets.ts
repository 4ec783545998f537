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
 * Ratios reached, by scenario and metric: the worse of the medians of the reports of 2026-11-23 and 2026-11-24, against BullMQ as it is fastest; of
 * latencies, retries, delayed and scheduled jobs those of the later one, of flows, listeners and 64 KiB those of runs of their own on
 * 2026-11-25: they are better for good. What is not listed is measured and
 * reported without a floor: percentiles whose pairs differ by more than the floor leaves. When the bench gets better for good, its figures come here.
 */
export const reached: Readonly<Record<string, Partial<Record<Metric, number>>>> = {
  'add-tiny': { jobsPerSecond: 1.86, nodeCpuMicros: 1.08, redisCpuMicros: 0.707 },
  'add-nested': { jobsPerSecond: 1.82, nodeCpuMicros: 1.03, redisCpuMicros: 0.853 },
  'add-in-flight': { jobsPerSecond: 12.7, nodeCpuMicros: 0.0796, redisCpuMicros: 0.0435 },
  'add-bulk-50': { jobsPerSecond: 16.1, nodeCpuMicros: 0.104, redisCpuMicros: 0.0604 },
  'add-bulk-1000': { jobsPerSecond: 53.3, nodeCpuMicros: 0.0269, redisCpuMicros: 0.0118 },
  'worker-100-remove': { jobsPerSecond: 58.8, nodeCpuMicros: 0.0175, redisCpuMicros: 0.00989 },
  'worker-100-keep': { jobsPerSecond: 61.2, nodeCpuMicros: 0.0171, redisCpuMicros: 0.0101 },
  'worker-1-remove': { jobsPerSecond: 223, nodeCpuMicros: 0.00698, redisCpuMicros: 0.00509 },
  'worker-1-keep': { jobsPerSecond: 282, nodeCpuMicros: 0.00631, redisCpuMicros: 0.00507 },
  'waiting-5-1': { redisCpuMicros: 0.846, nodeCpuMicros: 0.856 },
  'waiting-5-20': { redisCpuMicros: 0.471, nodeCpuMicros: 0.625 },
  'waiting-5-50': { redisCpuMicros: 0.499, nodeCpuMicros: 0.522 },
  'waiting-5-100': { redisCpuMicros: 0.309, nodeCpuMicros: 0.397 },
  'waiting-20-1': { redisCpuMicros: 1.11, nodeCpuMicros: 1.13 },
  'waiting-20-20': { redisCpuMicros: 0.577, nodeCpuMicros: 0.686 },
  'waiting-20-50': { redisCpuMicros: 0.482, nodeCpuMicros: 0.638 },
  'waiting-20-100': { redisCpuMicros: 0.486, nodeCpuMicros: 0.536 },
  'waiting-100-1': { redisCpuMicros: 1, nodeCpuMicros: 0.986 },
  'waiting-100-20': { redisCpuMicros: 1.07, nodeCpuMicros: 0.988 },
  'waiting-100-50': { redisCpuMicros: 0.689, nodeCpuMicros: 0.76 },
  'waiting-100-100': { redisCpuMicros: 0.568, nodeCpuMicros: 0.758 },
  'waiting-5-20-slow': { redisCpuMicros: 0.501, nodeCpuMicros: 0.722 },
  'waiting-20-50-1kb': { redisCpuMicros: 0.587, nodeCpuMicros: 0.611 },
  'waiting-20-50-10kb': { redisCpuMicros: 0.537, nodeCpuMicros: 0.592 },
  'waiting-20-50-100kb': { redisCpuMicros: 0.828, nodeCpuMicros: 0.709 },
  'cpu-50us': { jobsPerSecond: 1.63, nodeCpuMicros: 0.593, redisCpuMicros: 0.0665 },
  'cpu-1000us': { jobsPerSecond: 1.02, nodeCpuMicros: 0.963, redisCpuMicros: 0.289 },
  retry: { jobsPerSecond: 9.72, nodeCpuMicros: 0.109, redisCpuMicros: 0.0969 },
  delayed: { jobsPerSecond: 7.67, nodeCpuMicros: 0.0635, redisCpuMicros: 0.131 },
  priority: { jobsPerSecond: 7.35, nodeCpuMicros: 0.0698, redisCpuMicros: 0.137 },
  schedulers: { latencyP50Ms: 0.111, latencyP99Ms: 0.0833, nodeCpuMicros: 0.486, redisCpuMicros: 0.445 },
  'schedulers-without': { latencyP50Ms: 0.079, latencyP99Ms: 0.0814, nodeCpuMicros: 0.456, redisCpuMicros: 0.453 },
  flow: { jobsPerSecond: 18.5, nodeCpuMicros: 0.0279, redisCpuMicros: 0.0575 },
  latency: { latencyP50Ms: 0.562, latencyP99Ms: 0.704 },
  trickle: { latencyP50Ms: 0.575, latencyP99Ms: 0.929, nodeCpuMicros: 0.442, redisCpuMicros: 0.554 },
  'busy-loop': { jobsPerSecond: 1.07, nodeCpuMicros: 1.34, redisCpuMicros: 0.964 },
  'bandwidth-100b': { megabytesPerSecond: 10.9, nodeCpuMicros: 0.121, redisCpuMicros: 0.0434 },
  'bandwidth-1kib': { megabytesPerSecond: 6.34, nodeCpuMicros: 0.173, redisCpuMicros: 0.098 },
  'bandwidth-10kib': { megabytesPerSecond: 2.68, nodeCpuMicros: 0.443, redisCpuMicros: 0.147 },
  'bandwidth-64kib': { megabytesPerSecond: 2.08, nodeCpuMicros: 0.593, redisCpuMicros: 0.263 },
  'bandwidth-200kib': { megabytesPerSecond: 2.21, nodeCpuMicros: 0.568, redisCpuMicros: 0.32 },
  'bandwidth-1mib': { megabytesPerSecond: 1.5, nodeCpuMicros: 0.753, redisCpuMicros: 0.661 },
  'get-waiting': { jobsPerSecond: 2.37 },
  'get-completed': { jobsPerSecond: 2.69 },
  'get-delayed': { jobsPerSecond: 2.54 },
  'memory-waiting': { bytesPerJob: 0.0578 },
  'memory-completed': { bytesPerJob: 0.0386 },
  'memory-delayed': { bytesPerJob: 0.586 },
  'distance-0.5-1': { jobsPerSecond: 1.45 },
  'distance-0.5-10': { jobsPerSecond: 4.52 },
  'distance-0.5-100': { jobsPerSecond: 33.2 },
  'distance-1-1': { jobsPerSecond: 1.46 },
  'distance-1-10': { jobsPerSecond: 5.02 },
  'distance-1-100': { jobsPerSecond: 30.8 },
  'distance-5-1': { jobsPerSecond: 1.49 },
  'distance-5-10': { jobsPerSecond: 5.61 },
  'distance-5-100': { jobsPerSecond: 38 },
  'persistence-none': { jobsPerSecond: 15.2, nodeCpuMicros: 0.0903, redisCpuMicros: 0.0452 },
  'persistence-everysec': { jobsPerSecond: 16.6, nodeCpuMicros: 0.0864, redisCpuMicros: 0.0405 },
  'persistence-always': { jobsPerSecond: 7.83, nodeCpuMicros: 0.0952, redisCpuMicros: 0.0953 },
  'open-loop-10': { latencyP50Ms: 0.386, recordedP50Ms: 0.71 },
  'open-loop-50': { latencyP50Ms: 0.24, recordedP50Ms: 0.526 },
  'open-loop-90': { latencyP50Ms: 0.0901, recordedP50Ms: 0.265 },
  'processes-1': { jobsPerSecond: 78.2, redisCpuMicros: 0.00885 },
  'processes-2': { jobsPerSecond: 106, redisCpuMicros: 0.00828 },
  'processes-4': { jobsPerSecond: 137, redisCpuMicros: 0.00717 },
  'processes-8': { jobsPerSecond: 135, redisCpuMicros: 0.00714 },
  'listeners-1': { jobsPerSecond: 22.8, nodeCpuMicros: 0.0618, redisCpuMicros: 0.0177 },
  'listeners-10': { jobsPerSecond: 8.35, nodeCpuMicros: 0.198, redisCpuMicros: 0.0548 },
  'contended-add-in-flight': { jobsPerSecond: 15, nodeCpuMicros: 0.0717, redisCpuMicros: 0.046 },
  'contended-worker-100-remove': { jobsPerSecond: 61.3, nodeCpuMicros: 0.018, redisCpuMicros: 0.0102 },
  'contended-waiting-20-20': { redisCpuMicros: 0.506, nodeCpuMicros: 0.874 },
  'contended-latency': { latencyP50Ms: 0.422, latencyP99Ms: 0.62 },
  'contended-trickle': { latencyP50Ms: 0.492, latencyP99Ms: 0.657, nodeCpuMicros: 0.487, redisCpuMicros: 0.448 },
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
