// The rows of a report: a pair that has no ratio, because nothing was measured of its base, is judged by no floor.
import { describe, expect, it } from 'vitest';
import { isWholeRun } from '../../bench/charts/data.js';
import { reservations } from '../../bench/files.js';
import { entryOf } from '../../bench/history.js';
import type { Metric } from '../../bench/measure.js';
import type { Result } from '../../bench/pairs.js';
import {
  cellsOf,
  circumstanceLines,
  isJudged,
  leftOutLines,
  notJudged,
  rowsOf,
  tablesOf,
  withoutRatio,
} from '../../bench/report.js';
import type { Circumstances, Row } from '../../bench/report.js';
import { scenarios } from '../../bench/scenarios/index.js';
import { floorOf } from '../../bench/targets.js';

const named = (name: string) => scenarios.find((scenario) => scenario.name === name)!;
const libraries = { base: { name: 'BullMQ', version: '6' }, challenger: { name: 'ChasquiMQ', version: '0' } };
/** Well below 0.8. */
const floor = floorOf('schedulers', 'latencyP50Ms')!;

/** The row of a metric of which each pair has measured these two: of the base, and of the challenger. */
function rowOf(scenario: string, metric: Metric, pairs: [base: number, challenger: number][], judged = true): Row {
  const side = (value: number) => ({ jobs: 1, seconds: 1, values: { [metric]: value } });
  const measured = pairs.map(([base, challenger]) => ({ base: side(base), challenger: side(challenger) }));
  const result = { scenario: { ...named(scenario), metrics: [metric] }, pairs: measured, faults: [] };
  return rowsOf([result as unknown as Result], judged)[0];
}

describe('a row of a report', () => {
  it('has the median of the ratios, and its floor', () => {
    const row = rowOf('schedulers', 'latencyP50Ms', [
      [10, 1],
      [10, 8],
      [10, 9],
    ]);
    expect([row.ratio?.median, row.target, row.met]).toEqual([0.8, floor, false]);
  });

  it('is judged by its floor from three pairs on', () => {
    const [one, two] = [1, 2].map((pairs) => rowOf('schedulers', 'latencyP50Ms', Array(pairs).fill([10, 9])));
    expect([one.ratio?.median, one.met, two.met]).toEqual([0.9, undefined, undefined]);
    expect(cellsOf(one, String).slice(6)).toEqual(['1', floor.text, '']);
    expect(notJudged([one, two])).toEqual([
      expect.stringMatching(/^NOT JUDGED {2}2 floors: fewer than 3 pairs were run$/),
    ]);
    const without = rowOf('schedulers', 'idleCommands', [[1, 1]]);
    expect(notJudged([without, rowOf('schedulers', 'latencyP50Ms', Array(3).fill([10, 9]))])).toEqual([]);
  });

  it.each<[string, [number, number][]]>([
    [
      'a latency, and nothing of either side',
      [
        [0, 0],
        [0, 0],
      ],
    ],
    [
      'a latency, and nothing of the base',
      [
        [0, 1],
        [0, 2],
      ],
    ],
    [
      'a latency, and nothing of the base in one of the pairs',
      [
        [1, 1],
        [0, 1],
        [2, 1],
      ],
    ],
  ])('has neither ratio nor floor where it is of %s', (_, pairs) => {
    const row = rowOf('schedulers', 'latencyP50Ms', pairs);
    expect([row.ratio, row.target, row.met]).toEqual([undefined, undefined, undefined]);
    expect(cellsOf(row, String).slice(3)).toEqual(['none', '', '', String(pairs.length), '', '']);
    expect(withoutRatio(row, libraries)).toMatch(/^NO RATIO {2}.*latencyP50Ms: 0 was measured of BullMQ/);
    const about = { libraries, machine: {}, source: { commit: 'c' } } as unknown as Circumstances;
    expect(entryOf(about, [row]).ratios).toEqual({});
  });

  it('takes no commands for as many as none', () => {
    const row = rowOf('schedulers', 'idleCommands', [
      [0, 0],
      [2, 1],
    ]);
    expect([row.ratio?.median, row.ratio?.least]).toEqual([0.75, 0.5]);
  });
});

describe('a quick run', () => {
  const row = rowOf('schedulers', 'latencyP50Ms', Array(3).fill([10, 9]), isJudged({ kind: 'quick', self: false }));

  it('has no floors, and no columns for them', () => {
    expect([row.ratio?.median, row.target, row.met, notJudged([row])]).toEqual([0.9, undefined, undefined, []]);
    const [[headings, cells]] = tablesOf([row], libraries);
    expect([headings.at(-1), cells.at(-1)]).toEqual(['pairs', '3']);
    const judged = rowOf('schedulers', 'latencyP50Ms', Array(3).fill([10, 9]));
    expect(tablesOf([judged], libraries)[0][0].slice(-2)).toEqual(['floor', 'met']);
    expect([isJudged({ kind: 'full', self: false }), isJudged({ kind: 'full', self: true })]).toEqual([true, false]);
  });

  it('says what it has left out, and what runs it', () => {
    const left = { self: false, leftOut: ['flow', 'retry'] };
    const [line] = leftOutLines(left);
    expect(line).toContain('2 scenarios');
    expect(line).toContain('`npm run bench -- --only flow,retry`');
    expect(leftOutLines({ ...left, self: true })[0]).toContain('-- --self --only flow,retry');
    expect(leftOutLines({ self: false })).toEqual([]);
    expect(leftOutLines({ self: false, long: ['open-loop-10', 'mixed-cpu-1', 'mixed-pair-1', 'idle'] })).toEqual([
      'left out, being long: 4 scenarios (open-*, mixed-*, idle), which `--only` names',
    ]);
    const about = { ...left, libraries, machine: {}, source: {} } as unknown as Circumstances;
    expect(circumstanceLines(about)).toContain(line);
  });
});

describe('the name of a report', () => {
  const about = { kind: 'full', self: false, partial: false, busy: false } as unknown as Circumstances;
  const results = (faults: Result['faults']) => [{ scenario: named('retry'), pairs: [], faults }];

  it('says nothing of a whole run', () => expect(reservations(about, results([]))).toEqual([]));

  it.each<[string, Partial<Circumstances>, Result['faults']]>([
    ['quick', { kind: 'quick' }, []],
    ['self', { self: true }, []],
    ['partial', { partial: true }, []],
    ['busy', { busy: true }, []],
    ['faults', {}, [{ side: 'base', message: 'not done' }]],
  ])('says %s, and is then none that charts are drawn from', (word, more, faults) => {
    expect(reservations({ ...about, ...more }, results(faults))).toEqual([word]);
    expect(isWholeRun(`2026-11-27-3632a5b-${word}`)).toBe(false);
    expect(isWholeRun('2026-11-27-3632a5b-2')).toBe(true);
  });
});
