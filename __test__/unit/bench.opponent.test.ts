// Whom the bench measures against: the best of the ways to run BullMQ, by the first metric of a scenario.
import { describe, expect, it } from 'vitest';
import type { JobLibrary } from '../../bench/adapters/library.js';
import { bestBase } from '../../bench/opponent.js';
import type { Bench } from '../../bench/pairs.js';
import { scenarios } from '../../bench/scenarios/index.js';

const library = (name: string) => ({ name }) as JobLibrary;
const [plain, tuned] = [library('plain'), library('tuned')];
const bench = {
  libraries: { base: plain, challenger: library('ours') },
  variants: [tuned],
  mode: { quick: true, seconds: 0.25 },
} as unknown as Bench;

/** The chosen base, where its ways reach these figures in the scenario's first metric. */
const best = (name: string, figures: Record<string, number>, of = bench) => {
  const scenario = scenarios.find((one) => one.name === name)!;
  const run = async ({ name: side }: JobLibrary, jobs: number) => ({
    jobs,
    seconds: 1,
    values: { [scenario.metrics[0]]: figures[side] },
  });
  return bestBase(of, scenario, run).then(({ name: chosen }) => chosen);
};

describe('the base of a scenario', () => {
  it('is the faster one', async () => {
    expect(await best('add-in-flight', { plain: 10, tuned: 30 })).toBe('tuned');
    expect(await best('add-in-flight', { plain: 10, tuned: 9 })).toBe('plain');
  });

  it.each(['latency', 'trickle-apart', 'waiting-20-20', 'idle', 'schedulers'])(
    'is the one with less of the first metric: %s',
    async (name) => {
      expect(await best(name, { plain: 10, tuned: 9 })).toBe('tuned');
      expect(await best(name, { plain: 10, tuned: 30 })).toBe('plain');
    },
  );

  it('is the plain one of equals, and where the other has no figure', async () => {
    expect(await best('latency', { plain: 10, tuned: 10 })).toBe('plain');
    expect(await best('latency', { plain: 10 })).toBe('plain');
  });

  it('is the plain one where it makes no difference, or there is no other', async () => {
    expect(await best('memory-waiting', { plain: 10, tuned: 3 })).toBe('plain');
    expect(await best('add-in-flight', { plain: 10, tuned: 30 }, { ...bench, variants: [] })).toBe('plain');
  });

  it('is chosen by runs in turns, short where the size is fixed', async () => {
    const runs: string[] = [];
    const scenario = scenarios.find(({ name }) => name === 'latency')!;
    await bestBase(bench, scenario, async ({ name }, jobs) => {
      runs.push(`${name} ${jobs}`);
      return { jobs, seconds: 1, values: { latencyP50Ms: 1 } };
    });
    expect(runs.slice(0, 2)).toEqual(['plain 25', 'tuned 25']);
    expect(runs.slice(2, 6)).toEqual(['plain 250', 'tuned 250', 'tuned 250', 'plain 250']);
  });
});
