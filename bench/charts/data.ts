/** What the charts show, read from what is committed below benchmarks/: the newest whole run, the newest run of depths, the history. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { DepthReport } from '../depth/report.js';
import { UsageError } from '../ending.js';
import { readHistory } from '../history.js';
import type { HistoryEntry } from '../history.js';
import type { Circumstances, Row } from '../report.js';

export const FOLDER = fileURLToPath(new URL('../../benchmarks/', import.meta.url));
const WHOLE_RUN = /^\d{4}-\d\d-\d\d-[0-9a-f]+(-\d+)?\.json$/;
const DEPTHS = /^depth-.*\.json$/;

export interface Run extends Circumstances {
  readonly rows: readonly Row[];
}

export interface ChartData {
  readonly run: Run;
  /** Its name below benchmarks/. */
  readonly file: string;
  readonly depths: DepthReport | undefined;
  readonly history: readonly HistoryEntry[];
}

export function readChartData(): ChartData {
  const run = newest<Run>(WHOLE_RUN);
  if (!run) throw new UsageError('there is no whole run in benchmarks/ to draw: `npm run bench` leaves one');
  return { ...run, depths: newest<DepthReport>(DEPTHS)?.run, history: readHistory() };
}

function newest<T extends { readonly startedAt: string }>(pattern: RegExp): { run: T; file: string } | undefined {
  const files = readdirSync(FOLDER).filter((name) => pattern.test(name));
  const reports = files.map((file) => ({ file, run: JSON.parse(readFileSync(`${FOLDER}${file}`, 'utf8')) as T }));
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
