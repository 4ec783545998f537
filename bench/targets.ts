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
 * Ratios reached, by scenario and metric: the worse of the medians of the runs of a8f6cf2 and f7d0d8e (`benchmarks/history.jsonl`), on two kinds of processors,
 * against BullMQ as it is fastest; of data of 10 KiB and more that of the later one: they are better for good; of the scenarios that came later, the trickle
 * with 20 slots and the paces, that of 1e682d5; of what is measured longer, or from warm processes, since 19e55db (data of 64 KiB and more,
 * worker processes), and of what is new there, that run's; of what nothing disturbs, round trips, commands and idle workers, the worst of all since a8f6cf2. What is not listed is measured and
 * reported without a floor: percentiles whose pairs differ by more than the floor leaves. When the bench gets better for good, its figures come here.
 */
export const reached: Readonly<Record<string, Partial<Record<Metric, number>>>> = {
  'add-tiny': { jobsPerSecond: 1.77, nodeCpuMicros: 1.05, redisCpuMicros: 0.876 },
  'add-nested': { jobsPerSecond: 1.53, nodeCpuMicros: 1.22, redisCpuMicros: 0.909 },
  'add-in-flight': { jobsPerSecond: 12.3, nodeCpuMicros: 0.0834, redisCpuMicros: 0.0455 },
  'add-bulk-50': { jobsPerSecond: 15.5, nodeCpuMicros: 0.113, redisCpuMicros: 0.0611 },
  'add-bulk-1000': { jobsPerSecond: 44.6, nodeCpuMicros: 0.0294, redisCpuMicros: 0.0107 },
  'worker-100-remove': { jobsPerSecond: 52.1, nodeCpuMicros: 0.0204, redisCpuMicros: 0.0106 },
  'worker-100-keep': { jobsPerSecond: 48.6, nodeCpuMicros: 0.0224, redisCpuMicros: 0.0124 },
  'worker-1-remove': { jobsPerSecond: 149, nodeCpuMicros: 0.014, redisCpuMicros: 0.00654 },
  'worker-1-keep': { jobsPerSecond: 141, nodeCpuMicros: 0.0135, redisCpuMicros: 0.008 },
  'waiting-5-1': { redisCpuMicros: 0.688, nodeCpuMicros: 0.752 },
  'waiting-5-20': { redisCpuMicros: 0.398, nodeCpuMicros: 0.515 },
  'waiting-5-50': { redisCpuMicros: 0.424, nodeCpuMicros: 0.481 },
  'waiting-5-100': { redisCpuMicros: 0.306, nodeCpuMicros: 0.361 },
  'waiting-20-1': { redisCpuMicros: 1.01, nodeCpuMicros: 0.997 },
  'waiting-20-20': { redisCpuMicros: 0.454, nodeCpuMicros: 0.65 },
  'waiting-20-50': { redisCpuMicros: 0.409, nodeCpuMicros: 0.577 },
  'waiting-20-100': { redisCpuMicros: 0.425, nodeCpuMicros: 0.546 },
  'waiting-100-1': { redisCpuMicros: 1, nodeCpuMicros: 0.897 },
  'waiting-100-20': { redisCpuMicros: 0.721, nodeCpuMicros: 0.872 },
  'waiting-100-50': { redisCpuMicros: 0.544, nodeCpuMicros: 0.734 },
  'waiting-100-100': { redisCpuMicros: 0.508, nodeCpuMicros: 0.722 },
  'waiting-5-20-slow': { redisCpuMicros: 0.439, nodeCpuMicros: 0.584 },
  'waiting-20-50-1kb': { redisCpuMicros: 0.539, nodeCpuMicros: 0.595 },
  'waiting-20-50-10kb': { redisCpuMicros: 0.52, nodeCpuMicros: 0.464 },
  'waiting-20-50-100kb': { redisCpuMicros: 0.871, nodeCpuMicros: 0.372 },
  'cpu-50us': { jobsPerSecond: 1.6, nodeCpuMicros: 0.592, redisCpuMicros: 0.0586 },
  'cpu-1000us': { jobsPerSecond: 1.05, nodeCpuMicros: 0.942, redisCpuMicros: 0.212 },
  retry: { jobsPerSecond: 5.48, nodeCpuMicros: 0.191, redisCpuMicros: 0.128 },
  delayed: { jobsPerSecond: 7.5, nodeCpuMicros: 0.0762, redisCpuMicros: 0.135 },
  priority: { jobsPerSecond: 6.98, nodeCpuMicros: 0.0873, redisCpuMicros: 0.138 },
  schedulers: { latencyP50Ms: 0.132, latencyP99Ms: 0.084, nodeCpuMicros: 0.606, redisCpuMicros: 0.541 },
  'schedulers-without': { latencyP99Ms: 0.0814, nodeCpuMicros: 0.386, redisCpuMicros: 0.529 },
  flow: { jobsPerSecond: 15.8, nodeCpuMicros: 0.0328, redisCpuMicros: 0.0641 },
  latency: { latencyP50Ms: 0.557, latencyP99Ms: 0.572 },
  trickle: {
    ...{ latencyP50Ms: 0.669, nodeCpuMicros: 0.62, redisCpuMicros: 0.642 },
    ...{ roundTrips: 0.337, redisCommands: 0.361 },
  },
  'busy-loop': { jobsPerSecond: 1.01, nodeCpuMicros: 1.33, redisCpuMicros: 0.991 },
  'bandwidth-100b': { megabytesPerSecond: 10.5, nodeCpuMicros: 0.126, redisCpuMicros: 0.0451 },
  'bandwidth-1kib': { megabytesPerSecond: 8.64, nodeCpuMicros: 0.145, redisCpuMicros: 0.0533 },
  'bandwidth-10kib': { megabytesPerSecond: 4.84, nodeCpuMicros: 0.212, redisCpuMicros: 0.134 },
  'bandwidth-64kib': { megabytesPerSecond: 3.89, nodeCpuMicros: 0.195, redisCpuMicros: 0.308 },
  'bandwidth-200kib': { megabytesPerSecond: 3.15, nodeCpuMicros: 0.307, redisCpuMicros: 0.376 },
  'bandwidth-1mib': { megabytesPerSecond: 3.18, nodeCpuMicros: 0.374, redisCpuMicros: 0.358 },
  'get-waiting': { jobsPerSecond: 2.15 },
  'get-completed': { jobsPerSecond: 2.21 },
  'get-delayed': { jobsPerSecond: 2.7 },
  'memory-waiting': { bytesPerJob: 0.0578 },
  'memory-completed': { bytesPerJob: 0.0386 },
  'memory-delayed': { bytesPerJob: 0.586 },
  'memory-waiting-nested': { bytesPerJob: 0.809 },
  'memory-completed-nested': { bytesPerJob: 0.713 },
  'memory-delayed-nested': { bytesPerJob: 0.83 },
  'distance-0.5-1': { jobsPerSecond: 1.52 },
  'distance-0.5-10': { jobsPerSecond: 3.73 },
  'distance-0.5-100': { jobsPerSecond: 25.3 },
  'distance-1-1': { jobsPerSecond: 1.58 },
  'distance-1-10': { jobsPerSecond: 4.06 },
  'distance-1-100': { jobsPerSecond: 32.5 },
  'distance-5-1': { jobsPerSecond: 1.48 },
  'distance-5-10': { jobsPerSecond: 5.42 },
  'distance-5-100': { jobsPerSecond: 39.7 },
  'distance-0.5-backlog': { jobsPerSecond: 59.9 },
  'distance-1-backlog': { jobsPerSecond: 46.7 },
  'persistence-none': { jobsPerSecond: 14.3, nodeCpuMicros: 0.0876, redisCpuMicros: 0.0476 },
  'persistence-everysec': { jobsPerSecond: 15.7, nodeCpuMicros: 0.0872, redisCpuMicros: 0.0439 },
  'persistence-always': { jobsPerSecond: 9.48, nodeCpuMicros: 0.086, redisCpuMicros: 0.0867 },
  'open-loop-10': { latencyP50Ms: 0.577, recordedP50Ms: 0.764 },
  'open-loop-50': { latencyP50Ms: 0.368, recordedP50Ms: 0.494 },
  'open-loop-90': { latencyP50Ms: 0.0819, recordedP50Ms: 0.238 },
  'processes-1': { jobsPerSecond: 62.2, redisCpuMicros: 0.0102 },
  'processes-2': { jobsPerSecond: 103, redisCpuMicros: 0.00789 },
  'processes-4': { jobsPerSecond: 90.9, redisCpuMicros: 0.00879 },
  'processes-8': { jobsPerSecond: 75.4, redisCpuMicros: 0.0124 },
  idle: { idleNodeMillis: 0.17, idleRedisMillis: 0.925, idleCommands: 0.375 },
  'listeners-1': { jobsPerSecond: 21.3, nodeCpuMicros: 0.0626, redisCpuMicros: 0.011 },
  'listeners-10': { jobsPerSecond: 8.21, nodeCpuMicros: 0.204, redisCpuMicros: 0.0229 },
  'contended-add-in-flight': { jobsPerSecond: 17, nodeCpuMicros: 0.0637, redisCpuMicros: 0.0313 },
  'contended-worker-100-remove': { jobsPerSecond: 67.5, nodeCpuMicros: 0.018, redisCpuMicros: 0.00891 },
  'contended-waiting-20-20': { redisCpuMicros: 0.438, nodeCpuMicros: 0.676 },
  'contended-latency': { latencyP50Ms: 0.481 },
  'contended-trickle': {
    ...{ latencyP50Ms: 0.691, nodeCpuMicros: 0.791, redisCpuMicros: 0.529 },
    ...{ roundTrips: 0.337, redisCommands: 0.36 },
  },
  'trickle-20': {
    ...{ latencyP50Ms: 0.558, nodeCpuMicros: 0.536, redisCpuMicros: 0.654 },
    ...{ roundTrips: 0.288, redisCommands: 0.317 },
  },
  'trickle-apart': {
    ...{ latencyP50Ms: 0.645, nodeCpuMicros: 0.395, redisCpuMicros: 0.667 },
    ...{ roundTrips: 0.503, redisCommands: 0.492 },
  },
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
  return ['jobsPerSecond', 'megabytesPerSecond'].includes(metric);
}

export function isMet(metric: Metric, target: Target, ratio: number): boolean {
  return moreIsBetter(metric) ? ratio >= target.ratio : ratio <= target.ratio;
}
