/** What the bench must not fall below: 70 % of what two reports reached, or of what is asked for. */
import type { Metric } from './measure.js';
import type { Row } from './report.js';
import { readSamples } from './samples.js';

/** A floor: what a ratio must reach; where more is better at least, otherwise at most. */
export interface Target {
  readonly ratio: number;
  readonly text: string;
}

/**
 * The reports in `benchmarks/` that floors come from, a whole run on each kind of processor: the worse of their medians is what was reached. When the
 * bench gets better for good, newer ones are named here.
 */
export const reports = { amd: '2026-11-27-19e55db', intel: '2026-11-27-3632a5b' } as const;

/** The other report is of a time at which these were measured for too short a time, or in processes that were not warm. */
const ONLY_AMD = /^(bandwidth-(64kib|200kib|1mib)|processes-\d)$/;

/** This part of the ratio that was reached, or is asked for, is the floor. The rest is left to machines, which share it out differently from run to run. */
const PART = 0.7;

/**
 * What has a floor, by scenario. All else is measured and reported without one: percentiles whose pairs differ by more than a floor leaves, say.
 */
export const judged: Readonly<Record<string, readonly Metric[]>> = {
  'add-tiny': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'add-nested': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'add-in-flight': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'add-bulk-50': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'add-bulk-1000': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'worker-100-remove': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'worker-100-keep': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'worker-1-remove': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'worker-1-keep': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'waiting-5-1': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-5-20': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-5-50': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-5-100': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-20-1': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-20-20': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-20-50': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-20-100': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-100-1': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-100-20': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-100-50': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-100-100': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-5-20-slow': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-20-50-1kb': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-20-50-10kb': ['redisCpuMicros', 'nodeCpuMicros'],
  'waiting-20-50-100kb': ['redisCpuMicros', 'nodeCpuMicros'],
  'cpu-50us': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'cpu-1000us': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  retry: ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  delayed: ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  priority: ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  schedulers: ['latencyP50Ms', 'latencyP99Ms', 'nodeCpuMicros', 'redisCpuMicros'],
  'schedulers-without': ['latencyP99Ms', 'nodeCpuMicros', 'redisCpuMicros'],
  flow: ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  latency: ['latencyP50Ms', 'latencyP99Ms'],
  trickle: ['latencyP50Ms', 'nodeCpuMicros', 'redisCpuMicros', 'roundTrips', 'redisCommands'],
  'busy-loop': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'bandwidth-100b': ['megabytesPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'bandwidth-1kib': ['megabytesPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'bandwidth-10kib': ['megabytesPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'bandwidth-64kib': ['megabytesPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'bandwidth-200kib': ['megabytesPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'bandwidth-1mib': ['megabytesPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'get-waiting': ['jobsPerSecond'],
  'get-completed': ['jobsPerSecond'],
  'get-delayed': ['jobsPerSecond'],
  'memory-waiting': ['bytesPerJob'],
  'memory-completed': ['bytesPerJob'],
  'memory-delayed': ['bytesPerJob'],
  'memory-waiting-nested': ['bytesPerJob'],
  'memory-completed-nested': ['bytesPerJob'],
  'memory-delayed-nested': ['bytesPerJob'],
  'distance-0.5-1': ['jobsPerSecond'],
  'distance-0.5-10': ['jobsPerSecond'],
  'distance-0.5-100': ['jobsPerSecond'],
  'distance-1-1': ['jobsPerSecond'],
  'distance-1-10': ['jobsPerSecond'],
  'distance-1-100': ['jobsPerSecond'],
  'distance-5-1': ['jobsPerSecond'],
  'distance-5-10': ['jobsPerSecond'],
  'distance-5-100': ['jobsPerSecond'],
  'distance-0.5-backlog': ['jobsPerSecond'],
  'distance-1-backlog': ['jobsPerSecond'],
  'persistence-none': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'persistence-everysec': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'persistence-always': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'open-loop-10': ['latencyP50Ms', 'recordedP50Ms'],
  'open-loop-50': ['latencyP50Ms', 'recordedP50Ms'],
  'open-loop-90': ['latencyP50Ms', 'recordedP50Ms'],
  'processes-1': ['jobsPerSecond', 'redisCpuMicros'],
  'processes-2': ['jobsPerSecond', 'redisCpuMicros'],
  'processes-4': ['jobsPerSecond', 'redisCpuMicros'],
  'processes-8': ['jobsPerSecond', 'redisCpuMicros'],
  idle: ['idleNodeMillis', 'idleRedisMillis', 'idleCommands'],
  'listeners-1': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'listeners-10': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'contended-add-in-flight': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'contended-worker-100-remove': ['jobsPerSecond', 'nodeCpuMicros', 'redisCpuMicros'],
  'contended-waiting-20-20': ['redisCpuMicros', 'nodeCpuMicros'],
  'contended-latency': ['latencyP50Ms'],
  'contended-trickle': ['latencyP50Ms', 'nodeCpuMicros', 'redisCpuMicros', 'roundTrips', 'redisCommands'],
  'trickle-20': ['latencyP50Ms', 'nodeCpuMicros', 'redisCpuMicros', 'roundTrips', 'redisCommands'],
  'trickle-apart': ['latencyP50Ms', 'nodeCpuMicros', 'redisCpuMicros', 'roundTrips', 'redisCommands'],
  paced: ['nodeCpuMicros', 'redisCpuMicros'],
  'paced-delayed': ['nodeCpuMicros', 'redisCpuMicros'],
  'paced-priority': ['nodeCpuMicros', 'redisCpuMicros'],
  'paced-retry': ['nodeCpuMicros', 'redisCpuMicros'],
  'paced-progress': ['nodeCpuMicros', 'redisCpuMicros'],
};

/** A wait, or a burst, may take so many times as long as with BullMQ. */
const WAIT = 1.2;
/** No worker runs more of a burst than with BullMQ. */
const SHARE = 1;
const PAIR = { latencyP50Ms: WAIT, latencyP99Ms: WAIT };
const STEADY = { latencyP50Ms: WAIT, latencyP90Ms: WAIT, latencyP99Ms: WAIT, latencyP999Ms: WAIT };
const BURST = { burstMs: WAIT, latencyP50Ms: WAIT, latencyP99Ms: WAIT, latencyP999Ms: WAIT };

/** What is asked for, whatever a report has reached: that nobody waits behind another's job. By scenario and metric, as a ratio to BullMQ. */
export const asked: Readonly<Record<string, Readonly<Partial<Record<Metric, number>>>>> = {
  'mixed-pair-1': PAIR,
  'mixed-pair-5': PAIR,
  'mixed-pair-50': PAIR,
  'mixed-pair-cold': { latencyP50Ms: WAIT },
  'mixed-pair-async-1': PAIR,
  'mixed-behind-1': { latencyLastMs: WAIT, ...PAIR },
  'mixed-steady-100ms-1': STEADY,
  'mixed-steady-100ms-5': STEADY,
  'mixed-steady-100ms-50': STEADY,
  'mixed-steady-single-1': STEADY,
  'mixed-steady-async-1': STEADY,
  'mixed-steady-1500ms-1': STEADY,
  'mixed-cpu-1': { burstMs: WAIT, busiestJobs: SHARE },
  'mixed-spread-1': { latencyLastMs: WAIT, busiestJobs: SHARE, burstMs: WAIT },
  'mixed-burst-1': BURST,
  'mixed-burst-5': BURST,
  'mixed-burst-50': BURST,
  'mixed-burst-cold': BURST,
};

/** The floor of a scenario's metric, if it has one. */
export function floorOf(scenario: string, metric: Metric): Target | undefined {
  const isJudged = judged[scenario]?.includes(metric);
  const ratio = isJudged ? reachedBy(scenario, metric) : asked[scenario]?.[metric];
  if (ratio === undefined) return undefined;
  const floor = Number((moreIsBetter(metric) ? ratio * PART : ratio / PART).toPrecision(3));
  return { ratio: floor, text: `${moreIsBetter(metric) ? '>=' : '<='} ${floor}x` };
}

/** The reports that a scenario's floors come from. */
export function reportsOf(scenario: string): readonly string[] {
  return ONLY_AMD.test(scenario) ? [reports.amd] : Object.values(reports);
}

/** The worse of what the reports say; undefined where none has a ratio. */
function reachedBy(scenario: string, metric: Metric): number | undefined {
  const ratios = reportsOf(scenario).flatMap((name) => {
    const row = rowsOf(name).find((each) => each.scenario === scenario && each.metric === metric);
    return row?.ratio ? [row.ratio.median] : [];
  });
  if (ratios.length === 0) return undefined;
  return moreIsBetter(metric) ? Math.min(...ratios) : Math.max(...ratios);
}

/** By report, each read once. */
const known = new Map<string, readonly Row[]>();

function rowsOf(name: string): readonly Row[] {
  const rows = known.get(name) ?? readSamples<{ readonly rows: readonly Row[] }>(name).rows;
  known.set(name, rows);
  return rows;
}

export function moreIsBetter(metric: Metric): boolean {
  return ['jobsPerSecond', 'megabytesPerSecond'].includes(metric);
}

export function isMet(metric: Metric, target: Target, ratio: number): boolean {
  return moreIsBetter(metric) ? ratio >= target.ratio : ratio <= target.ratio;
}
