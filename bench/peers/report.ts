/** What was measured of several libraries, each in its own figures: there is no base, and no ratio. */
import { markdownTable } from '../markdown.js';
import type { Metric } from '../measure.js';
import { metricGroups, titleOf } from '../report.js';
import type { Scenario } from '../scenarios/scenario.js';
import { spread } from '../statistics.js';
import type { Measured } from './turns.js';

export interface Table {
  readonly scenario: Scenario;
  readonly measured: readonly Measured[];
}

/** A row a library, a column a figure: the median over the rounds, with the least and the most. */
export function tableOf({ scenario, measured }: Table): string[][] {
  const { metrics } = scenario;
  const headings = ['', ...metrics.map(titleOf), 'runs'];
  const rows = measured.map(({ library, samples, fault }) => [
    `${library.name} ${library.version}`,
    ...metrics.map((metric) =>
      samples.length > 0
        ? figureOf(
            metric,
            samples.map(({ values }) => values[metric] ?? NaN),
          )
        : '',
    ),
    fault === undefined ? String(samples.length) : `${samples.length}, ERROR ${fault.replaceAll(/\s+/g, ' ')}`,
  ]);
  return [headings, ...rows];
}

function figureOf(metric: Metric, values: readonly number[]): string {
  const format = metricGroups.find(({ metrics }) => metrics.includes(metric))?.format ?? String;
  const { median, least, most } = spread(values);
  return `${format(median)} (${format(least)}..${format(most)})`;
}

export function markdownOf(lines: readonly string[], tables: readonly Table[]): string {
  return [
    '# ChasquiMQ, BullMQ and their peers',
    lines.map((line) => `- ${line}`).join('\n'),
    'A figure is the median over the runs, with the least and the most of them. The libraries run in turns, in one process, on one server.',
    ...tables.flatMap((table) => [`## ${table.scenario.title}`, markdownTable(tableOf(table))]),
  ].join('\n\n');
}
