// The history of the bench: many small losses are a loss, and noise is none.
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../bench/ending.js';
import { drifts, leftOf, parseHistory, WINDOW } from '../../bench/history.js';
import type { HistoryEntry } from '../../bench/history.js';
import { randomFrom } from '../../bench/statistics.js';
import { floorOf, isMet, reached } from '../../bench/targets.js';
import { scenarios } from '../../bench/scenarios/index.js';

const TEN = Array.from({ length: WINDOW }, (_, i) => i);

const entry = (i: number, ratio: number, machine = 'one', latency = 1): HistoryEntry => ({
  kind: 'bench',
  date: `2026-12-${String(i + 1).padStart(2, '0')}`,
  commit: `c${i}`,
  machine,
  versions: { node: 'v20', server: 'Redis 8.2.3' },
  load: ['0', '0'],
  ratios: { retry: { jobsPerSecond: ratio, latencyP50Ms: latency } },
  values: {},
});

describe('ten runs', () => {
  it('that each lose a little have lost', () => {
    const [drift, ...more] = drifts(TEN.map((i) => entry(i, 10 * 0.98 ** i)));
    expect(drift).toMatchObject({ scenario: 'retry', metric: 'jobsPerSecond', from: 'c0', to: 'c9' });
    expect(drift?.left).toBeCloseTo(0.98 ** 9);
    expect(more).toEqual([]);
  });

  it('of latencies have lost when they rise', () => {
    expect(drifts(TEN.map((i) => entry(i, 1, 'one', 1.02 ** i))).map(({ metric }) => metric)).toEqual(['latencyP50Ms']);
  });

  it('of two kinds of machine are fewer than ten', () => {
    expect(drifts(TEN.map((i) => entry(i, 10 * 0.9 ** i, i % 2 === 0 ? 'one' : 'other')))).toEqual([]);
  });

  it('that vary have lost nothing', () => {
    const falls = Array.from({ length: 200 }, (_, seed) => {
      const random = randomFrom(seed);
      return leftOf(TEN.map(() => Math.exp((random() - 0.5) * 0.4)));
    });
    expect(falls.filter((left) => left !== undefined && left < 0.9).length).toBeLessThan(2);
  });
});

describe('the file', () => {
  it('gives the runs of the bench in order, and passes over the rest', () => {
    const lines = [entry(2, 1), { kind: 'soak', date: '2026-12-02' }, entry(1, 1)].map((line) => JSON.stringify(line));
    expect(parseHistory(`${lines.join('\n')}\n`).map(({ commit }) => commit)).toEqual(['c1', 'c2']);
  });

  it('is refused when a line is broken', () => {
    expect(() => parseHistory('{}\n{"kind"')).toThrow(UsageError);
  });
});

describe('floors', () => {
  it('are 70 % of what is reached', () => {
    const rate = Number((reached['worker-1-remove'].jobsPerSecond! * 0.7).toPrecision(3));
    const floor = floorOf('worker-1-remove', 'jobsPerSecond');
    expect(floor).toEqual({ ratio: rate, text: `>= ${rate}x` });
    expect(isMet('jobsPerSecond', floor!, rate - 1)).toBe(false);
    const bytes = Number((reached['memory-delayed'].bytesPerJob! / 0.7).toPrecision(3));
    expect(floorOf('memory-delayed', 'bytesPerJob')).toEqual({ ratio: bytes, text: `<= ${bytes}x` });
    expect(floorOf('add-tiny', 'latencyP99Ms')).toBeUndefined();
  });

  it('are of scenarios and metrics that there are', () => {
    const unknown = Object.entries(reached).filter(([name, metrics]) => {
      const scenario = scenarios.find((one) => one.name === name);
      return !Object.keys(metrics).every((metric) => scenario?.metrics.some((measured) => measured === metric));
    });
    expect(unknown).toEqual([]);
  });
});
