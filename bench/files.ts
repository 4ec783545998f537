/** Writes a report under benchmarks/: the tables as Markdown, and every sample beside them. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { markdownTable } from './markdown.js';
import type { Result } from './pairs.js';
import { circumstanceLines, faultsOf, isJudged, rowsOf, runSizes, tablesOf, wakeLine } from './report.js';
import type { Circumstances } from './report.js';
import { FOLDER, writeSamples } from './samples.js';

/** What makes a run other than a whole and undisturbed one: each is part of its report's name, by which the charts and tables pass it over. */
export function reservations(about: Circumstances, results: readonly Result[]): string[] {
  return [
    ...(about.kind === 'quick' ? ['quick'] : []),
    ...(about.self ? ['self'] : []),
    ...(about.partial ? ['partial'] : []),
    ...(about.busy ? ['busy'] : []),
    ...(results.some(({ faults }) => faults.length > 0) ? ['faults'] : []),
  ];
}

/** Returns the paths written, that of the samples first. A full report is never overwritten: one more of the same day and commit gets a number. */
export function writeReport(about: Circumstances, results: readonly Result[]): [samples: string, tables: string] {
  const plain = [about.startedAt.slice(0, 10), about.source.commit, ...reservations(about, results)].join('-');
  let name = plain;
  if (about.kind === 'full') {
    for (let copy = 2; existsSync(`${FOLDER}${name}.md`); copy += 1) name = `${plain}-${copy}`;
  }
  return writeBoth(name, samplesOf(about, results), markdown(about, results));
}

/** Writes the samples and `<name>.md` under benchmarks/, and returns their paths. */
export function writeBoth(name: string, report: unknown, text: string): [samples: string, text: string] {
  return [writeSamples(name, report), writeText(name, text)];
}

/** Writes `<name>.md` alone. */
export function writeText(name: string, text: string): string {
  mkdirSync(FOLDER, { recursive: true });
  const path = `${FOLDER}${name}.md`;
  writeFileSync(path, `${text}\n`);
  return path;
}

function samplesOf(about: Circumstances, results: readonly Result[]): unknown {
  const scenarios = results.map(({ scenario, pairs, base, faults }) => ({
    name: scenario.name,
    title: scenario.title,
    base,
    faults,
    pairs,
  }));
  return { ...about, rows: rowsOf(results, isJudged(about)), scenarios };
}

function markdown(about: Circumstances, results: readonly Result[]): string {
  const tables = tablesOf(rowsOf(results, isJudged(about)), about.libraries).map(markdownTable);
  const faults = faultsOf(results, about.libraries);
  const faultTable = [['Error in', 'side', 'message'], ...faults.map((fault) => Object.values(fault) as string[])];
  return [
    `# ${about.libraries.challenger.name} against ${about.libraries.base.name}`,
    [...circumstanceLines(about), wakeLine(results)].map((line) => `- ${line}`).join('\n'),
    'A ratio is the median of the ratios of the pairs; "middle half" is from the first to the third quartile. How each scenario ' +
      'is measured stands at the top of its file in `bench/scenarios/`.',
    ...tables,
    ...(faults.length > 0 ? [markdownTable(faultTable)] : []),
    '## Sizes of the runs',
    markdownTable(sizeTable(about, results)),
  ].join('\n\n');
}

/** The sides may differ in the number of jobs, so that both are measured for about as long. */
function sizeTable({ libraries }: Circumstances, results: readonly Result[]): string[][] {
  const { base, challenger } = libraries;
  const rows = results
    .filter((result) => result.pairs.length > 0)
    .map((result) => {
      const [one, other] = [runSizes(result, 'base'), runSizes(result, 'challenger')];
      return [result.scenario.title, result.base ?? base.name, one.jobs, one.seconds, other.jobs, other.seconds];
    });
  const headings = [
    'scenario',
    'measured against',
    `${base.name} jobs`,
    `${base.name} s`,
    `${challenger.name} jobs`,
    `${challenger.name} s`,
  ];
  return [headings, ...rows];
}
