/**
 * `benchmarks/history.jsonl`: one line for each full run of the bench, and what is left of old reports. Many small losses are a loss:
 * the line tells when a figure falls over ten runs on one kind of machine, though no two runs in a row show it.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { UsageError } from './ending.js';
import type { Metric } from './measure.js';
import type { Circumstances, Row } from './report.js';
import { median } from './statistics.js';
import { moreIsBetter } from './targets.js';

const FILE = fileURLToPath(new URL('../benchmarks/history.jsonl', import.meta.url));

/** Runs that are looked at. */
export const WINDOW = 10;
/** What is lost over them that is a drop. */
const DROP = 0.1;
/** Of all two runs of a window, the part in which the later one must be the lower. Chance does it to one figure in a thousand. */
const FALLING = 0.85;

type Ratios = Readonly<Record<string, Partial<Record<Metric, number>>>>;

export interface HistoryEntry {
  readonly kind: 'bench';
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly load: readonly [start: string, end: string];
  /** Medians of the paired ratios, ours to BullMQ's. */
  readonly ratios: Ratios;
  /** Medians of both sides: BullMQ's, ours. */
  readonly values: Readonly<Record<string, Partial<Record<Metric, readonly [number, number]>>>>;
  /** As in `benchmarks/baseline.json`; not in runs from before there were any. */
  readonly counts?: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export interface Drift {
  readonly scenario: string;
  readonly metric: Metric;
  /** What is left of the figure at the end of the window; below 1 it is worse. */
  readonly left: number;
  readonly from: string;
  readonly to: string;
}

export function entryOf(about: Circumstances, rows: readonly Row[], counts?: HistoryEntry['counts']): HistoryEntry {
  const { machine, libraries } = about;
  const ratios: Record<string, Partial<Record<Metric, number>>> = {};
  const values: Record<string, Partial<Record<Metric, readonly [number, number]>>> = {};
  for (const { scenario, metric, ratio, values: both } of rows) {
    if (ratio) (ratios[scenario] ??= {})[metric] = rounded(ratio.median);
    (values[scenario] ??= {})[metric] = [rounded(both.base), rounded(both.challenger)];
  }
  return {
    kind: 'bench',
    date: about.startedAt,
    commit: about.source.commit + (about.source.engineDiff ? `+${about.source.engineDiff}` : ''),
    machine: `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB`,
    versions: {
      node: machine.node,
      system: machine.system,
      server: about.server,
      [libraries.base.name]: libraries.base.version,
      [libraries.challenger.name]: libraries.challenger.version,
    },
    load: [about.loadAtStart, about.loadAtEnd],
    ratios,
    values,
    ...(counts && { counts }),
  };
}

const rounded = (value: number) => Number(value.toPrecision(4));

/** The runs of the bench, oldest first. */
export function readHistory(): HistoryEntry[] {
  if (!existsSync(FILE)) return [];
  return parseHistory(readFileSync(FILE, 'utf8'));
}

export function parseHistory(text: string): HistoryEntry[] {
  const lines = text.split('\n').filter(Boolean);
  const entries = lines.map((line, i) => {
    try {
      return JSON.parse(line) as HistoryEntry;
    } catch {
      throw new UsageError(`line ${i + 1} of benchmarks/history.jsonl is not JSON`);
    }
  });
  return entries.filter(({ kind }) => kind === 'bench').sort((a, b) => (a.date < b.date ? -1 : 1));
}

/** One write, so that there is never half a line. */
export function appendHistory(entry: HistoryEntry): string {
  const before = existsSync(FILE) ? readFileSync(FILE, 'utf8') : '';
  appendFileSync(FILE, `${before === '' || before.endsWith('\n') ? '' : '\n'}${JSON.stringify(entry)}\n`);
  return FILE;
}

/** Which figures of the last entry's machine have fallen over the last ten entries of that kind of machine. */
export function drifts(history: readonly HistoryEntry[]): Drift[] {
  const last = history.at(-1);
  if (!last) return [];
  const kindOf = ({ machine, versions }: HistoryEntry) => `${machine} ${versions.server} ${versions.node}`;
  const same = history.filter((entry) => kindOf(entry) === kindOf(last));
  return Object.entries(last.ratios).flatMap(([scenario, metrics]) =>
    (Object.keys(metrics) as Metric[]).flatMap((metric) => {
      const runs = same.filter(({ ratios }) => ratios[scenario]?.[metric] !== undefined).slice(-WINDOW);
      const figures = runs.map(({ ratios }) => ratios[scenario]?.[metric] ?? NaN);
      const left = leftOf(figures.map((ratio) => (moreIsBetter(metric) ? ratio : 1 / ratio)));
      if (left === undefined || left > 1 - DROP) return [];
      return [{ scenario, metric, left, from: runs[0]?.commit ?? '', to: last.commit }];
    }),
  );
}

/**
 * What is left of a figure at the end of ten, by the median slope of any two of them (Theil and Sen); undefined where there are fewer, or where too few
 * of the pairs fall.
 */
export function leftOf(figures: readonly number[]): number | undefined {
  if (figures.length < WINDOW) return undefined;
  const logs = figures.map(Math.log);
  const slopes = logs.flatMap((later, j) => logs.slice(0, j).map((earlier, i) => (later - earlier) / (j - i)));
  if (slopes.filter((slope) => slope < 0).length < slopes.length * FALLING) return undefined;
  return Math.exp(median(slopes) * (WINDOW - 1));
}
