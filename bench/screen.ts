/** What a person sees: the progress while the bench runs and the tables at its end. */
import type { Observer, Result } from './pairs.js';
import { chosenRows, isDecided, lossOf, lostOf } from './ranking.js';
import {
  circumstanceLines,
  faultsOf,
  formatRange,
  formatRatio,
  isJudged,
  leftOutLines,
  rowsOf,
  rowWithUnit,
  tablesOf,
  wakeLine,
} from './report.js';
import type { Circumstances, Row } from './report.js';
import type { Scenario } from './scenarios/scenario.js';

const BAR_WIDTH = 24;
/** Part of the work. */
const LEAST_TO_GUESS_BY = 0.03;

/** A bar that redraws itself on a terminal; elsewhere one plain line for each scenario, when it is done. */
export class Progress implements Observer {
  private finished = 0;
  private readonly startedAt = performance.now();

  constructor(
    private scenarioCount: number,
    private readonly out: NodeJS.WriteStream = process.stderr,
  ) {}

  planned(scenarios: number): void {
    this.scenarioCount = scenarios;
  }

  step(scenario: Scenario, part: number, doing: string): void {
    if (!this.out.isTTY) return;
    const whole = (this.finished + part) / this.scenarioCount;
    const filled = Math.round(whole * BAR_WIDTH);
    const bar = '#'.repeat(filled).padEnd(BAR_WIDTH, '.');
    const text = `[${bar}] ${Math.round(whole * 100)}% ${this.elapsed()}${this.remaining(whole)}  ${scenario.name}: ${doing}`;
    this.redraw(text.slice(0, (this.out.columns || 80) - 1));
  }

  done(result: Result): void {
    this.finished += 1;
    this.redraw('');
    const [row] = rowsOf([result], false);
    const spread = row?.ratio;
    const ratio = spread
      ? `${formatRatio(spread.median)} (${formatRange(spread.least, spread.most)})`
      : row && 'no ratio';
    const faults = result.faults.map((fault) => `ERROR ${fault.message}`);
    const parts = [ratio, row && (row.pairs === 1 ? '1 pair' : `${row.pairs} pairs`), ...faults].filter(Boolean);
    const count = `${this.finished}/${this.scenarioCount}`.padStart(5);
    this.out.write(`${count} ${this.elapsed()}  ${result.scenario.title}: ${parts.join(', ')}\n`);
  }

  /** A line of its own, above the bar. */
  say(line: string): void {
    this.redraw('');
    this.out.write(`${line}\n`);
  }

  /** One more scenario is done, of which `lines` tell. */
  told(lines: readonly string[]): void {
    this.finished += 1;
    for (const line of lines)
      this.say(`${`${this.finished}/${this.scenarioCount}`.padStart(5)} ${this.elapsed()}  ${line}`);
  }

  private elapsed(): string {
    const seconds = Math.floor((performance.now() - this.startedAt) / 1e3);
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  }

  /** As long as what is done has taken, which is a guess: scenarios differ. */
  private remaining(whole: number): string {
    if (whole < LEAST_TO_GUESS_BY) return '';
    const minutes = (((performance.now() - this.startedAt) / whole) * (1 - whole)) / 60_000;
    return minutes < 1 ? ', less than a minute to go' : `, some ${Math.round(minutes)} min to go`;
  }

  private redraw(text: string): void {
    if (this.out.isTTY) this.out.write(`\r\x1b[2K${text}`);
  }
}

/** All rows of a full run; of a quick one, a dozen. */
export function tablesForScreen(about: Circumstances, results: readonly Result[]): string {
  const { kind, libraries } = about;
  const rows = rowsOf(results, isJudged(about));
  const faults = faultsOf(results, libraries).map((fault) => `ERROR ${fault.title}: ${fault.side}: ${fault.message}`);
  return [...(kind === 'quick' ? dozenOf(about, rows) : allOf(about, results, rows)), faults]
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

/** Columns below each other, the headings first. */
export function alignedTable(table: readonly string[][]): string {
  return alignedLines(table, columnWidths(table)).join('\n');
}

type Block = readonly string[];

function allOf(about: Circumstances, results: readonly Result[], rows: readonly Row[]): Block[] {
  const tables = tablesOf(rows, about.libraries);
  const widths = columnWidths(tables.flat());
  return [[...circumstanceLines(about), wakeLine(results)], ...tables.map((table) => alignedLines(table, widths))];
}

function dozenOf(about: Circumstances, rows: readonly Row[]): Block[] {
  const { base, challenger } = about.libraries;
  const where = `${about.server}, ${about.machine.cores} cores, load average ${about.loadAtStart} at the start`;
  const heading = `${challenger.name} ${challenger.version} against ${base.name} ${base.version}: ${where}`;
  const shown = chosenRows(rows);
  const table = [
    ['', base.name, challenger.name, 'ratio', 'min..max', 'pairs', 'better'],
    ...shown.map((row) => [...rowWithUnit(row), String(row.pairs), betterOf(row, about.libraries)]),
  ];
  const lost = lostOf(rows).length;
  const theirs = `${base.name} has the better median in ${lost === 0 ? 'none' : `${lost}; the worst of them stand first`}`;
  const legend = [
    `${shown.length} of ${rows.length} rows. ${theirs}. "?": one pair alone, or a spread that includes 1, decides nothing.`,
    `A ratio is ${challenger.name}'s figure divided by ${base.name}'s: more is better for jobs and MB a second, less for all else.`,
  ];
  const shownRows = shown.length > 0 ? [alignedLines(table, columnWidths(table)), legend] : [];
  return [[heading], ...shownRows, leftOutLines(about)];
}

function betterOf(row: Row, { base, challenger }: Circumstances['libraries']): string {
  const loss = lossOf(row);
  if (loss === 1) return 'neither';
  return (loss > 1 ? base.name : challenger.name) + (isDecided(row) ? '' : '?');
}

function columnWidths(table: readonly string[][]): number[] {
  const columns = table[0]?.length ?? 0;
  return Array.from({ length: columns }, (_, i) => Math.max(...table.map((cells) => cells[i]?.length ?? 0)));
}

/** The first column to the left, figures to the right, a rule below the headings. */
function alignedLines(table: readonly string[][], widths: readonly number[]): string[] {
  const lines = table.map((cells) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
  const rule = '-'.repeat(widths.reduce((sum, width) => sum + width + 2, -2));
  return [lines[0] ?? '', rule, ...lines.slice(1)];
}
