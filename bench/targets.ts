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
 * Ratios reached, by scenario and metric: the worse of the medians of the two reports that are kept, on two kinds of processors, against BullMQ as it is
 * fastest; of data of 10 KiB and more that of the later one: they are better for good. What is not listed is measured and
 * reported without a floor: percentiles whose pairs differ by more than the floor leaves. When the bench gets better for good, its figures come here.
 */
export const reached: Readonly<Record<string, Partial<Record<Metric, number>>>> = {
  'add-tiny': { jobsPerSecond: 1.88, nodeCpuMicros: 0.97, redisCpuMicros: 0.819 },
  'add-nested': { jobsPerSecond: 1.52, nodeCpuMicros: 1.09, redisCpuMicros: 0.967 },
  'add-in-flight': { jobsPerSecond: 12.3, nodeCpuMicros: 0.0834, redisCpuMicros: 0.0455 },
  'add-bulk-50': { jobsPerSecond: 15.5, nodeCpuMicros: 0.113, redisCpuMicros: 0.0611 },
  'add-bulk-1000': { jobsPerSecond: 45.8, nodeCpuMicros: 0.03, redisCpuMicros: 0.0107 },
  'worker-100-remove': { jobsPerSecond: 52.1, nodeCpuMicros: 0.0204, redisCpuMicros: 0.0106 },
  'worker-100-keep': { jobsPerSecond: 64.6, nodeCpuMicros: 0.018, redisCpuMicros: 0.0104 },
  'worker-1-remove': { jobsPerSecond: 143, nodeCpuMicros: 0.0122, redisCpuMicros: 0.00771 },
  'worker-1-keep': { jobsPerSecond: 128, nodeCpuMicros: 0.0133, redisCpuMicros: 0.00774 },
  'waiting-5-1': { redisCpuMicros: 0.687, nodeCpuMicros: 0.752 },
  'waiting-5-20': { redisCpuMicros: 0.405, nodeCpuMicros: 0.515 },
  'waiting-5-50': { redisCpuMicros: 0.452, nodeCpuMicros: 0.473 },
  'waiting-5-100': { redisCpuMicros: 0.288, nodeCpuMicros: 0.361 },
  'waiting-20-1': { redisCpuMicros: 1.01, nodeCpuMicros: 0.978 },
  'waiting-20-20': { redisCpuMicros: 0.454, nodeCpuMicros: 0.65 },
  'waiting-20-50': { redisCpuMicros: 0.409, nodeCpuMicros: 0.577 },
  'waiting-20-100': { redisCpuMicros: 0.425, nodeCpuMicros: 0.546 },
  'waiting-100-1': { redisCpuMicros: 1, nodeCpuMicros: 1.06 },
  'waiting-100-20': { redisCpuMicros: 0.737, nodeCpuMicros: 0.872 },
  'waiting-100-50': { redisCpuMicros: 0.544, nodeCpuMicros: 0.734 },
  'waiting-100-100': { redisCpuMicros: 0.508, nodeCpuMicros: 0.722 },
  'waiting-5-20-slow': { redisCpuMicros: 0.439, nodeCpuMicros: 0.584 },
  'waiting-20-50-1kb': { redisCpuMicros: 0.539, nodeCpuMicros: 0.595 },
  'waiting-20-50-10kb': { redisCpuMicros: 0.556, nodeCpuMicros: 0.464 },
  'waiting-20-50-100kb': { redisCpuMicros: 0.832, nodeCpuMicros: 0.372 },
  'cpu-50us': { jobsPerSecond: 1.6, nodeCpuMicros: 0.592, redisCpuMicros: 0.0586 },
  'cpu-1000us': { jobsPerSecond: 1.06, nodeCpuMicros: 0.929, redisCpuMicros: 0.212 },
  retry: { jobsPerSecond: 5.23, nodeCpuMicros: 0.186, redisCpuMicros: 0.145 },
  delayed: { jobsPerSecond: 7.5, nodeCpuMicros: 0.0734, redisCpuMicros: 0.135 },
  priority: { jobsPerSecond: 6.98, nodeCpuMicros: 0.0873, redisCpuMicros: 0.138 },
  schedulers: { latencyP50Ms: 0.147, latencyP99Ms: 0.0807, nodeCpuMicros: 0.518, redisCpuMicros: 0.508 },
  'schedulers-without': { latencyP50Ms: 0.107, latencyP99Ms: 0.0814, nodeCpuMicros: 0.386, redisCpuMicros: 0.39 },
  flow: { jobsPerSecond: 14.8, nodeCpuMicros: 0.0351, redisCpuMicros: 0.0647 },
  latency: { latencyP50Ms: 0.554, latencyP99Ms: 0.617 },
  trickle: { latencyP50Ms: 0.669, latencyP99Ms: 0.753, nodeCpuMicros: 0.707, redisCpuMicros: 0.677 },
  'busy-loop': { jobsPerSecond: 0.964, nodeCpuMicros: 1.49, redisCpuMicros: 1.1 },
  'bandwidth-100b': { megabytesPerSecond: 10.5, nodeCpuMicros: 0.126, redisCpuMicros: 0.0451 },
  'bandwidth-1kib': { megabytesPerSecond: 8.53, nodeCpuMicros: 0.145, redisCpuMicros: 0.0533 },
  'bandwidth-10kib': { megabytesPerSecond: 4.68, nodeCpuMicros: 0.241, redisCpuMicros: 0.118 },
  'bandwidth-64kib': { megabytesPerSecond: 3.63, nodeCpuMicros: 0.286, redisCpuMicros: 0.227 },
  'bandwidth-200kib': { megabytesPerSecond: 4.02, nodeCpuMicros: 0.279, redisCpuMicros: 0.247 },
  'bandwidth-1mib': { megabytesPerSecond: 3.64, nodeCpuMicros: 0.355, redisCpuMicros: 0.247 },
  'get-waiting': { jobsPerSecond: 2.42 },
  'get-completed': { jobsPerSecond: 2.56 },
  'get-delayed': { jobsPerSecond: 2.35 },
  'memory-waiting': { bytesPerJob: 0.0578 },
  'memory-completed': { bytesPerJob: 0.0386 },
  'memory-delayed': { bytesPerJob: 0.586 },
  'distance-0.5-1': { jobsPerSecond: 1.52 },
  'distance-0.5-10': { jobsPerSecond: 3.85 },
  'distance-0.5-100': { jobsPerSecond: 25.8 },
  'distance-1-1': { jobsPerSecond: 1.58 },
  'distance-1-10': { jobsPerSecond: 3.95 },
  'distance-1-100': { jobsPerSecond: 27.8 },
  'distance-5-1': { jobsPerSecond: 1.48 },
  'distance-5-10': { jobsPerSecond: 3.95 },
  'distance-5-100': { jobsPerSecond: 39.7 },
  'persistence-none': { jobsPerSecond: 14.3, nodeCpuMicros: 0.0876, redisCpuMicros: 0.0476 },
  'persistence-everysec': { jobsPerSecond: 15.7, nodeCpuMicros: 0.0872, redisCpuMicros: 0.0439 },
  'persistence-always': { jobsPerSecond: 9.48, nodeCpuMicros: 0.086, redisCpuMicros: 0.0867 },
  'open-loop-10': { latencyP50Ms: 0.454, recordedP50Ms: 0.764 },
  'open-loop-50': { latencyP50Ms: 0.505, recordedP50Ms: 0.525 },
  'open-loop-90': { latencyP50Ms: 0.0819, recordedP50Ms: 0.238 },
  'processes-1': { jobsPerSecond: 77.4, redisCpuMicros: 0.00862 },
  'processes-2': { jobsPerSecond: 110, redisCpuMicros: 0.00855 },
  'processes-4': { jobsPerSecond: 119, redisCpuMicros: 0.00775 },
  'processes-8': { jobsPerSecond: 79.9, redisCpuMicros: 0.0121 },
  'listeners-1': { jobsPerSecond: 21.2, nodeCpuMicros: 0.0633, redisCpuMicros: 0.0106 },
  'listeners-10': { jobsPerSecond: 8.21, nodeCpuMicros: 0.204, redisCpuMicros: 0.0229 },
  'contended-add-in-flight': { jobsPerSecond: 15.3, nodeCpuMicros: 0.0712, redisCpuMicros: 0.0313 },
  'contended-worker-100-remove': { jobsPerSecond: 62.5, nodeCpuMicros: 0.0184, redisCpuMicros: 0.00891 },
  'contended-waiting-20-20': { redisCpuMicros: 0.437, nodeCpuMicros: 0.642 },
  'contended-latency': { latencyP50Ms: 0.49 },
  'contended-trickle': { latencyP50Ms: 0.599, latencyP99Ms: 0.788, nodeCpuMicros: 0.638, redisCpuMicros: 0.565 },
  'trickle-20': { latencyP50Ms: 0.558, nodeCpuMicros: 0.536, redisCpuMicros: 0.654 },
  paced: { nodeCpuMicros: 0.691, redisCpuMicros: 0.68 },
  'paced-delayed': { nodeCpuMicros: 0.758, redisCpuMicros: 0.894 },
  'paced-priority': { nodeCpuMicros: 0.719, redisCpuMicros: 0.842 },
  'paced-retry': { nodeCpuMicros: 0.808, redisCpuMicros: 0.964 },
  'paced-progress': { nodeCpuMicros: 0.783, redisCpuMicros: 0.916 },
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
