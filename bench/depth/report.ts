/** The figures of the depths as tables and as a file. */
import { writeBoth } from '../files.js';
import type { Machine, SourceState } from '../machine.js';
import { markdownTable } from '../markdown.js';
import type { BothSides } from '../pairs.js';
import type { AtDepth, Cost } from './figures.js';

export interface DepthReport {
  readonly startedAt: string;
  readonly seconds: number;
  readonly machine: Machine;
  readonly source: SourceState;
  readonly server: string;
  readonly versions: BothSides<string>;
  readonly load: readonly [start: string, end: string];
  readonly depths: readonly AtDepth[];
}

/** One table for each kind of cost: a row for each operation, a pair of columns for each depth. */
export function tableOf(report: DepthReport): string {
  const { machine, source, versions, load } = report;
  const about = [
    `run of ${report.startedAt}, ${report.seconds} s, commit ${source.commit}`,
    `chasquimq ${versions.challenger} against bullmq ${versions.base}, ${report.server}, Node ${machine.node}, ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGb} GB`,
    `load average at the start ${load[0]}, at the end ${load[1]}`,
    'BullMQ / ChasquiMQ, medians of six rounds; the first column is a queue of a few thousand jobs',
  ];
  return [
    '# What an operation costs, by the number of jobs that wait',
    about.map((line) => `- ${line}`).join('\n'),
    '## Redis CPU, us',
    rowsOf(report.depths, ({ redisMicros }) => redisMicros),
    '## Wall time, us',
    rowsOf(report.depths, ({ wallMicros }) => wallMicros),
  ].join('\n\n');
}

function rowsOf(depths: readonly AtDepth[], costOf: (cost: Cost) => number): string {
  const names = depths[0]?.figures.map(({ operation }) => operation) ?? [];
  const heading = ['operation', ...depths.map(({ depth }) => (depth === 0 ? 'few' : depth.toLocaleString('en-US')))];
  const rows = names.map((name, i) => [
    name,
    ...depths.map(({ figures }) => {
      const cost = figures[i]?.cost;
      return cost ? `${shown(costOf(cost.base))} / ${shown(costOf(cost.challenger))}` : '';
    }),
  ]);
  return markdownTable([heading, ...rows]);
}

const shown = (value: number) => Number(value.toPrecision(3)).toLocaleString('en-US', { maximumSignificantDigits: 3 });

/** @returns the paths written */
export function writeDepth(report: DepthReport): string[] {
  return writeBoth(`depth-${report.startedAt.slice(0, 10)}-${report.source.commit}`, report, tableOf(report));
}
