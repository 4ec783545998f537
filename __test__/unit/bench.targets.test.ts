// The floors of the bench are 70 % of what the samples of two reports say, and these reports can be read, or of what is asked for.
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Metric } from '../../bench/measure.js';
import type { Pair } from '../../bench/pairs.js';
import { readSamples } from '../../bench/samples.js';
import { scenarios } from '../../bench/scenarios/index.js';
import { median } from '../../bench/statistics.js';
import { asked, floorOf, isMet, judged, moreIsBetter, reports, reportsOf } from '../../bench/targets.js';
import { textOf } from '../support/doc-blocks.js';

interface Report {
  readonly scenarios: readonly { readonly name: string; readonly pairs: readonly Pair[] }[];
  readonly machine: { readonly cpu: string };
}

const read = new Map(Object.values(reports).map((name) => [name as string, readSamples<Report>(name)]));
const floors = Object.entries(judged).flatMap(([name, metrics]) => metrics.map((metric) => [name, metric] as const));
const wishes = Object.entries(asked).flatMap(([name, ratios]) =>
  Object.keys(ratios).map((metric) => [name, metric as Metric] as const),
);

/** The medians over the pairs of each report that has the scenario. */
function mediansOf(name: string, metric: Metric): number[] {
  const found = reportsOf(name).flatMap(
    (report) => read.get(report)?.scenarios.filter((one) => one.name === name) ?? [],
  );
  return found.map(({ pairs }) =>
    median(pairs.map(({ base, challenger }) => (challenger.values[metric] ?? NaN) / (base.values[metric] ?? NaN))),
  );
}

describe('floors', () => {
  it('are what the samples of the worse report reached, less 30 %', () => {
    const wrong = floors.filter(([name, metric]) => {
      const [medians, isMore] = [mediansOf(name, metric), moreIsBetter(metric)];
      const ratio = Number((isMore ? Math.min(...medians) * 0.7 : Math.max(...medians) / 0.7).toPrecision(3));
      return !isDeepStrictEqual(floorOf(name, metric), { ratio, text: `${isMore ? '>=' : '<='} ${ratio}x` });
    });
    expect(wrong).toEqual([]);
    expect(floors.length).toBeGreaterThan(150);
  });

  it('are what is asked for, less 30 %, of each figure of each row of handlers of mixed length', () => {
    const mixed = scenarios.filter(({ name }) => name.startsWith('mixed-'));
    const figures = mixed.flatMap(({ name, metrics }) => metrics.map((metric) => [name, metric] as const));
    expect(new Set(wishes.map(String))).toEqual(new Set(figures.map(String)));
    expect(floorOf('mixed-pair-1', 'latencyP99Ms')).toEqual({ ratio: 1.71, text: '<= 1.71x' });
    expect(floorOf('mixed-cpu-1', 'busiestJobs')).toEqual({ ratio: 1.43, text: '<= 1.43x' });
    for (const [name, metric] of wishes) {
      expect(floorOf(name, metric)?.ratio).toBeCloseTo((asked[name]?.[metric] ?? NaN) / 0.7, 2);
      expect(judged[name]).toBeUndefined();
    }
  });

  it('are met by as much and by what is better', () => {
    const met = (metric: Metric) => [0.9, 1, 1.1].map((ratio) => isMet(metric, { ratio: 1, text: '' }, ratio));
    expect(met('jobsPerSecond')).toEqual([false, true, true]);
    expect(met('bytesPerJob')).toEqual([true, true, false]);
  });

  it('are of scenarios and metrics that there are, and of no others', () => {
    const unknown = floors.filter(
      ([name, metric]) => !scenarios.find((one) => one.name === name)?.metrics.some((measured) => measured === metric),
    );
    expect(unknown).toEqual([]);
    expect(floorOf('add-tiny', 'latencyP99Ms')).toBeUndefined();
    expect(floorOf('no scenario', 'jobsPerSecond')).toBeUndefined();
  });

  it('come from reports on two kinds of processors, which the page about the bench links to', () => {
    const processors = [...read.values()].map(({ machine }) => machine.cpu);
    expect(new Set(processors).size).toBe(processors.length);
    const page = textOf('benchmarks/README.md');
    for (const name of Object.values(reports)) expect(page).toContain(`(${name}.md)`);
  });
});
