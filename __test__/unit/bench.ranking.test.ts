// Who is better in a row, and the dozen that a quick run shows.
import { describe, expect, it } from 'vitest';
import type { Metric } from '../../bench/measure.js';
import type { Result } from '../../bench/pairs.js';
import { chosenRows, isDecided, lossOf } from '../../bench/ranking.js';
import type { Circumstances, Row } from '../../bench/report.js';
import { scenarios } from '../../bench/scenarios/index.js';
import { tablesForScreen } from '../../bench/screen.js';

function row(scenario: string, metric: Metric, ratio: number | undefined, pairs = 2): Row {
  const spread = ratio && { median: ratio, least: ratio, most: ratio, quartiles: [ratio, ratio] };
  return { scenario, metric, ratio: spread, pairs } as unknown as Row;
}
const nameOf = ({ scenario, metric }: Row) => `${scenario} ${metric}`;

describe('a row', () => {
  it('is lost where less is better and there is more, and the other way round', () => {
    expect(lossOf(row('a', 'jobsPerSecond', 2))).toBe(0.5);
    expect(lossOf(row('a', 'latencyP50Ms', 2))).toBe(2);
    expect(lossOf(row('a', 'latencyP50Ms', undefined))).toBe(1);
  });

  it('decides nothing with one pair, or when its spread includes 1', () => {
    expect([isDecided(row('a', 'jobsPerSecond', 2)), isDecided(row('a', 'jobsPerSecond', 2, 1))]).toEqual([
      true,
      false,
    ]);
    const wide = { median: 1.5, least: 0.9, most: 2, quartiles: [1, 2] as const };
    expect(isDecided({ ...row('a', 'jobsPerSecond', 2), ratio: wide })).toBe(false);
    expect(isDecided(row('a', 'jobsPerSecond', undefined))).toBe(false);
  });
});

describe('a dozen rows', () => {
  const two = (name: string) => [row(name, 'jobsPerSecond', 3), row(name, 'nodeCpuMicros', 0.5)];

  it('are those lost, the worst of them first, then one of each scenario, in order, then others', () => {
    const rows = [...two('a'), row('a', 'redisCpuMicros', 1.1), ...two('b'), row('b', 'latencyP99Ms', 1.7)];
    expect(chosenRows(rows).map(nameOf)).toEqual([
      'b latencyP99Ms',
      'a redisCpuMicros',
      'a jobsPerSecond',
      'b jobsPerSecond',
      'a nodeCpuMicros',
      'b nodeCpuMicros',
    ]);
  });

  it('are twelve at most, and six of them lost ones, unless a scenario is about what is lost', () => {
    const lost = Array.from({ length: 8 }, (_, i) => row('a', 'redisCpuMicros', 2 + i));
    const rows = [...two('a'), ...lost, ...Array.from({ length: 9 }, (_, i) => two(`b${i}`)).flat()];
    const chosen = chosenRows(rows);
    expect(chosen.slice(0, 6)).toEqual([...lost].reverse().slice(0, 6));
    expect(chosen.slice(6).map(nameOf)).toEqual(['a', 'b0', 'b1', 'b2', 'b3', 'b4'].map((of) => `${of} jobsPerSecond`));
  });

  it('have none without a ratio', () => {
    expect(chosenRows([row('a', 'latencyP50Ms', undefined), ...two('b')]).map(nameOf)).toEqual([
      'b jobsPerSecond',
      'b nodeCpuMicros',
    ]);
  });
});

describe('the screen after a quick run', () => {
  const libraries = { base: { name: 'BullMQ', version: '6' }, challenger: { name: 'ChasquiMQ', version: '0' } };
  const about = { kind: 'quick', self: false, libraries, machine: {}, source: {} } as unknown as Circumstances;
  const side = (value: number, metrics: readonly Metric[]) => ({
    jobs: 1,
    seconds: 1,
    values: Object.fromEntries(metrics.map((metric) => [metric, value])),
  });
  const scenario = scenarios.find(({ name }) => name === 'add-tiny')!;
  const pair = { first: 'base', base: side(1, scenario.metrics), challenger: side(2, scenario.metrics) } as const;
  const textOf = (pairs: Result['pairs'], more: Partial<Circumstances> = {}, faults: Result['faults'] = []) =>
    tablesForScreen({ ...about, ...more }, [{ scenario, pairs, faults }]);

  it('has one table, in which those rows stand first and are marked where BullMQ is better', () => {
    const lines = textOf([pair, pair]).split('\n');
    const rows = lines.filter((line) => line.startsWith(scenario.title));
    expect(rows.map((line) => line.split(/\s+/).at(-1))).toEqual(['BullMQ', 'BullMQ', 'ChasquiMQ']);
    expect(rows[2]).toContain('(jobs a second)');
    expect(lines.filter((line) => /^-+$/.test(line))).toHaveLength(1);
    expect(textOf([pair, pair])).toContain('BullMQ has the better median in 2');
  });

  it('says where one pair decides nothing, what was left out, and what failed', () => {
    expect(textOf([pair])).toMatch(/BullMQ\?\n/);
    const text = textOf([], { leftOut: ['flow'] }, [{ side: 'base', message: 'not done' }]);
    expect(text).toContain('--only flow');
    expect(text).toContain(`ERROR ${scenario.title}: BullMQ: not done`);
  });
});
