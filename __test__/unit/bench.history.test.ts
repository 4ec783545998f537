// The history of the bench: many small losses are a loss, and noise is none.
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../bench/ending.js';
import { drifts, leftOf, parseHistory, WINDOW } from '../../bench/history.js';
import type { HistoryEntry } from '../../bench/history.js';
import { randomFrom } from '../../bench/statistics.js';

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
