/** Turns results into rows: one for each scenario and metric, with the median ratio, its spread and its floor. */
import { beneathLine } from './beneath.js';
import type { Beneath } from './beneath.js';
import type { SourceState, Machine } from './machine.js';
import type { Metric } from './measure.js';
import type { BothSides, Result, Side } from './pairs.js';
import { median, spread } from './statistics.js';
import type { Spread } from './statistics.js';
import { floorOf, isMet } from './targets.js';
import type { Target } from './targets.js';

export interface Circumstances {
  readonly startedAt: string;
  readonly seconds: number;
  readonly command: string;
  readonly kind: 'full' | 'quick';
  /** BullMQ against BullMQ: ratios show the noise, and have no floors. */
  readonly self: boolean;
  /** Fewer scenarios or fewer pairs than the mode has, or other ones: on a server of somebody's, or of another build. */
  readonly partial: boolean;
  /** It began above the load at which the gate still judges; not in reports from before that was told. */
  readonly busy?: boolean;
  readonly machine: Machine;
  readonly source: SourceState;
  readonly server: string;
  readonly libraries: BothSides<{ readonly name: string; readonly version: string }>;
  readonly loadAtStart: string;
  readonly loadAtEnd: string;
  /** Not of a quick run: it takes seconds. */
  readonly beneath?: readonly Beneath[];
  /** Scenarios by name that were asked for, and for which there was no time. */
  readonly leftOut?: readonly string[];
  /** Scenarios by name that a quick run has only when they are named, and they were not. */
  readonly long?: readonly string[];
}

/** Floors are of whole runs of ours: a quick one measures too little, and one of BullMQ against itself has nothing to reach. */
export const isJudged = ({ kind, self }: Pick<Circumstances, 'kind' | 'self'>): boolean => kind === 'full' && !self;

export interface Row {
  readonly scenario: string;
  readonly title: string;
  readonly metric: Metric;
  /** The median of each side's runs. */
  readonly values: BothSides<number>;
  /** Of the ratios of the pairs, challenger to base; none where a pair has none. */
  readonly ratio: Spread | undefined;
  readonly pairs: number;
  /** None in a run that is not judged. */
  readonly target: Target | undefined;
  /** Undefined where there is no floor, and where there are too few pairs to judge it. */
  readonly met: boolean | undefined;
}

export interface MetricGroup {
  readonly heading: string;
  readonly format: (value: number) => string;
  readonly metrics: readonly Metric[];
}

const significant = (digits: number) => (value: number) =>
  Number(value.toPrecision(digits)).toLocaleString('en-US', { maximumSignificantDigits: digits });

/** A floor is judged by so many pairs at least: one alone is too noisy. */
const LEAST_PAIRS_TO_JUDGE = 3;

/** The tables of a report, in order. */
export const metricGroups: readonly MetricGroup[] = [
  { heading: 'Jobs a second', format: significant(3), metrics: ['jobsPerSecond'] },
  { heading: 'MB a second', format: significant(3), metrics: ['megabytesPerSecond'] },
  { heading: 'Node CPU a job, us', format: significant(3), metrics: ['nodeCpuMicros'] },
  { heading: 'Redis CPU a job, us', format: significant(3), metrics: ['redisCpuMicros'] },
  {
    heading: 'Latency, ms',
    format: significant(3),
    metrics: ['latencyP50Ms', 'latencyP90Ms', 'latencyP99Ms', 'latencyP999Ms', 'latencyLastMs'],
  },
  { heading: 'A whole burst, ms', format: significant(3), metrics: ['burstMs'] },
  { heading: 'Jobs of a burst on the busiest worker', format: significant(3), metrics: ['busiestJobs'] },
  { heading: 'Start to recorded, ms', format: significant(3), metrics: ['recordedP50Ms', 'recordedP99Ms'] },
  { heading: 'CPU a second while idle, ms', format: significant(3), metrics: ['idleNodeMillis', 'idleRedisMillis'] },
  { heading: 'Commands a second while idle', format: significant(3), metrics: ['idleCommands'] },
  { heading: 'Requests a minute while idle', format: significant(3), metrics: ['idleRequestsMinute'] },
  { heading: 'Commands a minute while idle', format: significant(3), metrics: ['idleCommandsMinute'] },
  { heading: 'Connections of a process', format: significant(4), metrics: ['connections'] },
  { heading: 'Memory of a process, MB', format: significant(3), metrics: ['processMegabytes'] },
  { heading: 'Round trips a job', format: significant(3), metrics: ['roundTrips'] },
  { heading: 'Redis commands a job', format: significant(3), metrics: ['redisCommands'] },
  { heading: 'Redis memory a job, bytes', format: significant(3), metrics: ['bytesPerJob'] },
];

const suffixes: Partial<Record<Metric, string>> = {
  latencyP50Ms: ', p50',
  latencyP90Ms: ', p90',
  latencyP99Ms: ', p99',
  latencyP999Ms: ', p99.9',
  latencyLastMs: ', the last to start',
  recordedP50Ms: ', p50',
  recordedP99Ms: ', p99',
  idleNodeMillis: ', Node',
  idleRedisMillis: ', Redis',
};

export function rowsOf(results: readonly Result[], judged: boolean): Row[] {
  return results.flatMap((result) => result.scenario.metrics.flatMap((metric) => rowOf(result, metric, judged)));
}

/** None when no pair was completed; the result's fault is reported instead. */
function rowOf({ scenario, pairs }: Result, metric: Metric, judged: boolean): Row[] {
  if (pairs.length === 0) return [];
  const of = (side: Side) => pairs.map((pair) => pair[side].values[metric] ?? NaN);
  const [base, challenger] = [of('base'), of('challenger')];
  const ratios = challenger.map((value, i) => ratioOf(metric, value, base[i] ?? NaN));
  // without those pairs it would be a ratio of the base's worse runs
  const ratio = ratios.every((each) => each !== undefined) ? spread(ratios) : undefined;
  const target = judged && ratio ? floorOf(scenario.name, metric) : undefined;
  return [
    {
      scenario: scenario.name,
      title: scenario.title + (suffixes[metric] ?? ''),
      metric,
      values: { base: median(base), challenger: median(challenger) },
      ratio,
      pairs: pairs.length,
      target,
      met: target && ratio && pairs.length >= LEAST_PAIRS_TO_JUDGE ? isMet(metric, target, ratio.median) : undefined,
    },
  ];
}

/**
 * Nothing is as much as nothing: neither side sends a command while it is idle, say. But a latency of 0 is one that the clock cannot tell,
 * and to that, as to any other 0, nothing has a ratio.
 */
function ratioOf(metric: Metric, value: number, base: number): number | undefined {
  if (base !== 0) return value / base;
  return value === 0 && !/^(latency|recorded)/.test(metric) ? 1 : undefined;
}

/** What is said of a row without a ratio. */
export function withoutRatio({ title, metric }: Row, { base }: Circumstances['libraries']): string {
  return `NO RATIO  ${title}, ${metric}: 0 was measured of ${base.name}, and no floor is judged`;
}

/** What is said of floors that too few pairs were run to judge. */
export function notJudged(rows: readonly Row[]): string[] {
  const count = rows.filter(({ target, met }) => target && met === undefined).length;
  if (count === 0) return [];
  return [`NOT JUDGED  ${count} floors: fewer than ${LEAST_PAIRS_TO_JUDGE} pairs were run`];
}

export interface FaultLine {
  readonly title: string;
  readonly side: string;
  readonly message: string;
}

export function faultsOf(results: readonly Result[], libraries: Circumstances['libraries']): FaultLine[] {
  return results.flatMap(({ scenario, faults }) =>
    faults.map(({ side, message }) => ({
      title: scenario.title,
      side: side ? libraries[side].name : 'bench',
      message: message.replaceAll(/\s+/g, ' '),
    })),
  );
}

/** Three significant digits; ratios far below one are easier to read as they are than rounded to 0.0. */
export function formatRatio(ratio: number): string {
  return `${ratio >= 100 ? ratio.toFixed(0) : Number(ratio.toPrecision(3)).toString()}x`;
}

export function formatRange(from: number, to: number): string {
  return `${formatRatio(from).slice(0, -1)}..${formatRatio(to).slice(0, -1)}`;
}

export function formatMet(met: boolean | undefined): string {
  return met === undefined ? '' : met ? 'yes' : 'NO';
}

/** The cells of a row, for the screen and for Markdown alike. */
export function cellsOf(row: Row, format: (value: number) => string): string[] {
  const { ratio } = row;
  const ratios = ratio
    ? [formatRatio(ratio.median), formatRange(ratio.least, ratio.most), formatRange(...ratio.quartiles)]
    : ['none', '', ''];
  return [
    row.title,
    format(row.values.base),
    format(row.values.challenger),
    ...ratios,
    String(row.pairs),
    row.target?.text ?? '',
    formatMet(row.met),
  ];
}

function headingsOf(group: MetricGroup, libraries: Circumstances['libraries']): string[] {
  const names = [libraries.base.name, libraries.challenger.name];
  return [group.heading, ...names, 'ratio', 'min..max', 'middle half', 'pairs', 'floor', 'met'];
}

/** The last columns of the tables, where there are floors. */
const FLOOR_COLUMNS = 2;

/** A table for each group that has rows, its headings first. */
export function tablesOf(rows: readonly Row[], libraries: Circumstances['libraries']): string[][][] {
  const end = rows.some(({ target }) => target) ? undefined : -FLOOR_COLUMNS;
  return metricGroups.flatMap((group) => {
    const cells = rows.filter((row) => group.metrics.includes(row.metric)).map((row) => cellsOf(row, group.format));
    const table = [headingsOf(group, libraries), ...cells];
    return cells.length > 0 ? [table.map((line) => line.slice(0, end))] : [];
  });
}

function groupOf(metric: Metric): MetricGroup {
  const group = metricGroups.find(({ metrics }) => metrics.includes(metric));
  if (!group) throw new Error(`${metric} has no table`);
  return group;
}

/** What a column of a metric's figures is called. */
export const titleOf = (metric: Metric): string => `${groupOf(metric).heading}${suffixes[metric] ?? ''}`;

/** What a row's figures are, in so far as its title does not say it. */
function unitOf({ title, metric }: Row): string {
  const { heading } = groupOf(metric);
  if (heading.startsWith('Redis memory') && title.startsWith('Redis memory')) return 'bytes';
  return /^(Node|Redis|MB|CPU)/.test(heading) ? heading : heading[0].toLowerCase() + heading.slice(1);
}

/** Both sides, the ratio and its spread. */
export function figuresOf({ metric, values, ratio }: Row): string[] {
  const { format } = groupOf(metric);
  const sides = [format(values.base), format(values.challenger)];
  return [...sides, ...(ratio ? [formatRatio(ratio.median), formatRange(ratio.least, ratio.most)] : ['none', ''])];
}

/** For a table of rows of several groups. */
export const rowWithUnit = (row: Row): string[] => [`${row.title} (${unitOf(row)})`, ...figuresOf(row)];

/** What waking a process took on this machine, beside the pairs. */
export function wakeLine(results: readonly Result[]): string {
  const times = results.flatMap(({ pairs }) => pairs.flatMap(({ wakeMicros }) => wakeMicros ?? []));
  if (times.length === 0) return 'no pair was run';
  const { median: middle, least, most } = spread(times);
  return `a PING to a server asleep, and its answer, took ${middle.toFixed(0)} us (${least.toFixed(0)}..${most.toFixed(0)}) beside the pairs: single calls of both libraries wait for it`;
}

export function circumstanceLines(about: Circumstances): string[] {
  const { machine, source, libraries } = about;
  const changed = source.engineDiff
    ? `, with ${source.changes.length} uncommitted changes in crates/ and src/ (engine diff ${source.engineDiff})`
    : '';
  return [
    `${about.kind} run of ${about.startedAt}, ${Math.round(about.seconds)} s: ${about.command}`,
    `${libraries.challenger.name} ${libraries.challenger.version} against ${libraries.base.name} ${libraries.base.version}`,
    `commit ${source.commit}${changed}`,
    `${about.server}, Node ${machine.node}, ${machine.system}, ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGb} GB`,
    `load average at the start ${about.loadAtStart}, at the end ${about.loadAtEnd}`,
    ...(about.beneath ? [beneathLine(about.beneath)] : []),
    ...leftOutLines(about),
  ];
}

/** What was asked for and not run, and how to run it. */
export function leftOutLines({
  leftOut = [],
  long = [],
  self,
}: Pick<Circumstances, 'leftOut' | 'long' | 'self'>): string[] {
  const lines: string[] = [];
  if (leftOut.length > 0) {
    const command = `npm run bench -- ${self ? '--self ' : ''}--only ${leftOut.join(',')}`;
    const count = leftOut.length === 1 ? 'one scenario' : `${leftOut.length} scenarios`;
    lines.push(`left out, to end in time: ${count}, which \`${command}\` runs`);
  }
  if (long.length > 0) {
    const kinds = new Set(long.map((name) => name.replace(/-.*/, '-*')));
    lines.push(`left out, being long: ${long.length} scenarios (${[...kinds].join(', ')}), which \`--only\` names`);
  }
  return lines;
}

/** Jobs and measured seconds of a run, the least and the most over all runs of a side. */
export function runSizes({ pairs }: Result, side: Side): { readonly jobs: string; readonly seconds: string } {
  const range = (values: number[], format: (value: number) => string) => {
    const [least, most] = [format(Math.min(...values)), format(Math.max(...values))];
    return least === most ? least : `${least}..${most}`;
  };
  return {
    jobs: range(
      pairs.map((pair) => pair[side].jobs),
      (jobs) => jobs.toLocaleString('en-US'),
    ),
    seconds: range(
      pairs.map((pair) => pair[side].seconds),
      (seconds) => seconds.toFixed(2),
    ),
  };
}
