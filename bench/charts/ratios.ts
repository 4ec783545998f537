/** Bars of ratios: every row of a metric, those in which BullMQ is better as well. */
import type { TopLevelSpec } from 'vega-lite';
import type { Metric } from '../measure.js';
import { formatRatio } from '../report.js';
import { moreIsBetter } from '../targets.js';
import type { ChartData } from './data.js';
import { measuredOn } from './data.js';
import { palette } from './theme.js';

const BAR = 17;
const WIDTH = 520;

interface Bars {
  readonly title: string;
  readonly metrics: readonly Metric[];
}

export const throughput: Bars = { title: 'Jobs a second, ChasquiMQ to BullMQ', metrics: ['jobsPerSecond'] };
export const redisCpu: Bars = { title: 'Redis CPU a job, ChasquiMQ to BullMQ', metrics: ['redisCpuMicros'] };
export const nodeCpu: Bars = { title: 'Node CPU a job, ChasquiMQ to BullMQ', metrics: ['nodeCpuMicros'] };

export function ratioChart({ run }: ChartData, { title, metrics }: Bars): TopLevelSpec {
  const rows = run.rows.filter(({ metric }) => metrics.includes(metric));
  const values = rows.flatMap(({ title: row, metric, ratio }) => {
    if (!ratio) return [];
    const { median, least, most } = ratio;
    const isBetter = moreIsBetter(metric) ? median >= 1 : median <= 1;
    return [{ row, median, least, most, text: formatRatio(median), isBetter }];
  });
  const better = metrics.every(moreIsBetter) ? 'to the right' : 'to the left';
  // whole titles, however long
  const y = { field: 'row', type: 'nominal', sort: null, title: null, axis: { labelLimit: 1_000 } } as const;
  const scale = { type: 'log', nice: true } as const;
  const axis = { format: '~g', labelExpr: "datum.label === '' ? '' : datum.label + 'x'", tickCount: 6 } as const;
  return {
    title: {
      text: title,
      subtitle: [measuredOn(run), `${better} of 1x is better; the line is the spread over the pairs`],
    },
    width: WIDTH,
    height: { step: BAR },
    data: { values },
    layer: [
      {
        mark: { type: 'bar', height: BAR - 6 },
        encoding: {
          y,
          x: { field: 'median', type: 'quantitative', scale, axis, title: null },
          x2: { datum: 1 },
          color: {
            field: 'isBetter',
            type: 'nominal',
            scale: { domain: [true, false], range: [palette.better, palette.worse] },
            legend: { labelExpr: "datum.label === 'true' ? 'ChasquiMQ is better' : 'BullMQ is better'" },
          },
        },
      },
      {
        mark: { type: 'rule', opacity: 0.6 },
        encoding: { y, x: { field: 'least', type: 'quantitative', scale }, x2: { field: 'most' } },
      },
      // beyond the end of the bar
      {
        transform: [{ filter: 'datum.median >= 1' }],
        mark: { type: 'text', align: 'left', dx: 6 },
        encoding: { y, x: { field: 'most', type: 'quantitative', scale }, text: { field: 'text' } },
      },
      {
        transform: [{ filter: 'datum.median < 1' }],
        mark: { type: 'text', align: 'right', dx: -6 },
        encoding: { y, x: { field: 'least', type: 'quantitative', scale }, text: { field: 'text' } },
      },
      { mark: 'rule', encoding: { x: { datum: 1 } } },
    ],
  };
}
