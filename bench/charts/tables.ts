/** The tables of README.md and docs/figures.md, made of the newest whole run. They stand between two marks in each page. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { markdownTable } from '../markdown.js';
import type { Metric } from '../measure.js';
import { isDecided, lostOf, worstFirst } from '../ranking.js';
import { figuresOf, metricGroups, rowWithUnit } from '../report.js';
import type { Row } from '../report.js';
import { measuredOn } from './data.js';
import type { ChartData } from './data.js';

/** What the README shows; the row in which BullMQ is furthest ahead comes after them. */
const CHOSEN: readonly (readonly [scenario: string, metric: Metric])[] = [
  ['add-tiny', 'jobsPerSecond'],
  ['add-bulk-50', 'jobsPerSecond'],
  ['worker-100-keep', 'jobsPerSecond'],
  ['retry', 'jobsPerSecond'],
  ['waiting-20-50', 'redisCpuMicros'],
  ['memory-completed', 'bytesPerJob'],
];

const pages: Readonly<Record<string, (data: ChartData) => string>> = {
  'README.md': few,
  'docs/figures.md': all,
};
export const pageNames: readonly string[] = Object.keys(pages);

const SIDES = ['BullMQ', 'ChasquiMQ'];
const BLOCK = /(<!-- bench:start[^>]*-->\n)[^]*?(<!-- bench:end -->)/;

const pathOf = (page: string) => fileURLToPath(new URL(`../../${page}`, import.meta.url));

/** The page as it is, with its tables made anew. */
export async function pageWithTables(page: string, data: ChartData): Promise<string> {
  const path = pathOf(page);
  const old = readFileSync(path, 'utf8');
  if (!BLOCK.test(old)) throw new Error(`${page} has no <!-- bench:start --> and <!-- bench:end -->`);
  const tables = pages[page](data);
  const text = old.replace(BLOCK, (_, start: string, end: string) => `${start}\n${tables}\n\n${end}`);
  return format(text, { ...(await resolveConfig(path)), filepath: path });
}

export function readPage(page: string): string {
  return readFileSync(pathOf(page), 'utf8');
}

/** @returns the paths written */
export async function writeTables(data: ChartData): Promise<string[]> {
  for (const page of pageNames) writeFileSync(pathOf(page), await pageWithTables(page, data));
  return pageNames.map(pathOf);
}

function few(data: ChartData): string {
  const { rows } = data.run;
  const chosen = CHOSEN.map(([scenario, metric]) => {
    const row = rows.find((each) => each.scenario === scenario && each.metric === metric);
    if (!row) throw new Error(`the newest whole run has no ${metric} of ${scenario}`);
    return row;
  });
  const [worst] = worstFirst(rows);
  const shown = [...chosen, worst].map((row) => rowWithUnit(row).slice(0, 4));
  return [
    markdownTable([['Scenario', ...SIDES, 'Ratio'], ...shown]),
    `A ratio is ChasquiMQ's figure divided by BullMQ's: more is better for jobs and MB a second, less for all else. ${verdict(rows)} The last row is that in which BullMQ's median is furthest ahead.`,
    `${measuredOn(data.run)}.`,
  ].join('\n\n');
}

function all(data: ChartData): string {
  const { run, name } = data;
  const headings = ['Scenario', ...SIDES, 'Ratio', 'Spread'];
  const groups = metricGroups.flatMap(({ heading, metrics }) => {
    const rows = run.rows.filter((row) => metrics.includes(row.metric));
    return rows.length > 0
      ? [`### ${heading}`, markdownTable([headings, ...rows.map((row) => [row.title, ...figuresOf(row)])])]
      : [];
  });
  return [
    `${measuredOn(run)}; load ${run.loadAtStart} at the start. [The whole report](../benchmarks/${name}.md), with each floor and run.`,
    '### Where BullMQ is better',
    lostLine(lostOf(run.rows)),
    markdownTable([headings, ...worstFirst(lostOf(run.rows)).map(rowWithUnit)]),
    ...groups,
  ].join('\n\n');
}

/** Who is better in how many rows. A ratio whose spread includes 1 decides nothing. */
function verdict(rows: readonly Row[]): string {
  const decided = rows.filter(isDecided);
  const theirs = lostOf(decided).length;
  const without = rows.filter(({ ratio }) => !ratio).length;
  return [
    `Of ${rows.length} rows ChasquiMQ is better in ${decided.length - theirs}, BullMQ in ${theirs}`,
    `in ${rows.length - decided.length - without} the spread over the pairs includes 1, which decides nothing`,
    ...(without > 0 ? [`${without} have no ratio`] : []),
  ]
    .join('; ')
    .concat('.');
}

function lostLine(rows: readonly Row[]): string {
  const open = rows.length - rows.filter(isDecided).length;
  return `By the median BullMQ is better in these ${rows.length} rows. In ${open} of them the spread includes 1, which decides nothing.`;
}
