/** Curves: latency under load, cost against depth, the history of the main ratios. */
import type { TopLevelSpec } from 'vega-lite';
import type { DepthReport } from '../depth/report.js';
import type { Metric } from '../measure.js';
import { sideNames } from '../pairs.js';
import type { ChartData } from './data.js';
import { measuredOn } from './data.js';
import { palette } from './theme.js';

const NAMES = { base: 'BullMQ', challenger: 'ChasquiMQ' } as const;
const sides = {
  field: 'side',
  type: 'nominal',
  scale: { domain: [NAMES.base, NAMES.challenger], range: [palette.theirs, palette.ours] },
} as const;
const QUANTILES: Partial<Record<Metric, string>> = { latencyP50Ms: 'p50', latencyP99Ms: 'p99', latencyP999Ms: 'p99.9' };
/** What the history shows: the first that a user asks for, and what takes longest to get better. */
const TOLD: readonly (readonly [scenario: string, metric: Metric, name: string])[] = [
  ['add-tiny', 'jobsPerSecond', 'single adds'],
  ['add-bulk-1000', 'jobsPerSecond', 'addBulk of 1000'],
  ['worker-100-remove', 'jobsPerSecond', 'worker, concurrency 100'],
  ['retry', 'jobsPerSecond', 'retries'],
  ['flow', 'jobsPerSecond', 'flows'],
];

export function latencyChart({ run }: ChartData): TopLevelSpec {
  const values = run.rows.flatMap(({ scenario, metric, values: both }) => {
    const load = /^open-loop-(\d+)$/.exec(scenario)?.[1];
    const quantile = QUANTILES[metric];
    if (load === undefined || quantile === undefined) return [];
    return sideNames.map((side) => ({ load: Number(load), quantile, ms: both[side], side: NAMES[side] }));
  });
  return {
    title: { text: 'From the time intended to the handler, under load', subtitle: [measuredOn(run)] },
    data: { values },
    facet: { column: { field: 'quantile', type: 'nominal', title: null } },
    spec: {
      width: 210,
      height: 220,
      mark: { type: 'line', point: true },
      encoding: {
        x: { field: 'load', type: 'quantitative', title: "load, % of BullMQ's capacity" },
        y: { field: 'ms', type: 'quantitative', title: 'ms', scale: { type: 'log' } },
        color: sides,
      },
    },
  };
}

/** Cost of the server: what deep queues make dear is dear there. */
export function depthChart({ startedAt, source, server, machine, depths }: DepthReport): TopLevelSpec {
  const values = depths.flatMap(({ depth, figures }) =>
    figures.flatMap(({ operation, cost }) =>
      // the logarithm of a queue with few jobs
      sideNames.map((side) => ({
        depth: Math.max(depth, 3_000),
        operation,
        us: cost[side].redisMicros,
        side: NAMES[side],
      })),
    ),
  );
  const about = `${startedAt.slice(0, 10)}, commit ${source.commit}; ${server}, ${machine.cores} cores of ${machine.cpu}`;
  return {
    title: { text: 'Redis CPU of one operation, by the number of jobs that wait', subtitle: [about] },
    data: { values },
    facet: { field: 'operation', type: 'nominal', title: null, sort: null },
    columns: 4,
    resolve: { scale: { y: 'independent' } },
    spec: {
      width: 165,
      height: 140,
      mark: { type: 'line', point: true },
      encoding: {
        x: {
          field: 'depth',
          type: 'quantitative',
          scale: { type: 'log' },
          title: null,
          axis: { format: '~s', tickCount: 4 },
        },
        y: { field: 'us', type: 'quantitative', title: 'us', scale: { zero: true } },
        color: sides,
      },
    },
  };
}

export function historyChart({ history }: ChartData): TopLevelSpec {
  const values = history.flatMap(({ date, ratios }, run) =>
    TOLD.flatMap(([scenario, metric, name]) => {
      const ratio = ratios[scenario]?.[metric];
      return ratio === undefined ? [] : [{ run: run + 1, date: date.slice(0, 10), name, ratio }];
    }),
  );
  const subtitle = 'each whole run that is kept, on machines of one kind that other work shares; higher is better';
  return {
    title: { text: 'Jobs a second, ChasquiMQ to BullMQ, run by run', subtitle: [subtitle] },
    width: 640,
    height: 260,
    data: { values },
    mark: { type: 'line', point: true },
    encoding: {
      x: { field: 'run', type: 'quantitative', title: 'run', axis: { tickMinStep: 1 } },
      y: {
        field: 'ratio',
        type: 'quantitative',
        title: null,
        scale: { type: 'log' },
        axis: { labelExpr: "datum.label === '' ? '' : datum.label + 'x'" },
      },
      color: { field: 'name', type: 'nominal', sort: TOLD.map(([, , name]) => name) },
    },
  };
}
