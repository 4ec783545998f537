/** What the charts show, read from what is committed below benchmarks/: the newest whole run, the newest run of depths, the history. */
import type { DepthReport } from '../depth/report.js';
import { UsageError } from '../ending.js';
import { readHistory } from '../history.js';
import type { HistoryEntry } from '../history.js';
import { metricGroups } from '../report.js';
import type { Circumstances, Row } from '../report.js';
import { namesOfSamples, readSamples } from '../samples.js';

/** Of other runs the name says what they are: partial, say. */
export const isWholeRun = (name: string): boolean => /^\d{4}-\d\d-\d\d-[0-9a-f]+(-\d+)?$/.test(name);
const isOfDepths = (name: string): boolean => name.startsWith('depth-');

export interface Run extends Circumstances {
  readonly rows: readonly Row[];
}

export interface ChartData {
  readonly run: Run;
  /** Of its report in benchmarks/. */
  readonly name: string;
  readonly depths: DepthReport | undefined;
  readonly history: readonly HistoryEntry[];
}

export function readChartData(): ChartData {
  const found = newest<Run>(isWholeRun);
  if (!found) throw new UsageError('there is no whole run in benchmarks/ to draw: `npm run bench` leaves one');
  // a report may be of a time at which more was measured
  const rows = found.run.rows.filter(({ metric }) => metricGroups.some(({ metrics }) => metrics.includes(metric)));
  return {
    ...found,
    run: { ...found.run, rows },
    depths: newest<DepthReport>(isOfDepths)?.run,
    history: readHistory(),
  };
}

function newest<T extends { readonly startedAt: string }>(
  isOne: (name: string) => boolean,
): { run: T; name: string } | undefined {
  const names = namesOfSamples().filter(isOne);
  const reports = names.map((name) => ({ name, run: readSamples<T>(name) }));
  return reports.sort((a, b) => (a.run.startedAt < b.run.startedAt ? -1 : 1)).at(-1);
}

/** Where and when it was measured, in a line. */
export function measuredOn({ machine, source, server, startedAt, libraries }: Circumstances): string {
  const { base, challenger } = libraries;
  return [
    `${startedAt.slice(0, 10)}, commit ${source.commit}: ${challenger.name} ${challenger.version}, ${base.name} ${base.version}`,
    `${server}, Node ${machine.node}, ${machine.cores} cores of ${machine.cpu}`,
  ].join('; ');
}
