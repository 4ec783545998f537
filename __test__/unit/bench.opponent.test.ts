// Whom the bench measures against: the best of the ways to run BullMQ, where there is a rate to tell by.
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

const best = (name: string, rates: Record<string, number>, of = bench) =>
  bestBase(
    of,
    scenarios.find((scenario) => scenario.name === name)!,
    async ({ name: side }, jobs) => ({
      jobs,
      seconds: 1,
      values: { jobsPerSecond: rates[side] ?? 0 },
    }),
  ).then(({ name: chosen }) => chosen);

describe('the base of a scenario', () => {
  it('is the faster one', async () => {
    expect(await best('add-in-flight', { plain: 10, tuned: 30 })).toBe('tuned');
    expect(await best('add-in-flight', { plain: 10, tuned: 9 })).toBe('plain');
  });

  it('is the plain one where no rate is measured, or there is no other', async () => {
    expect(await best('latency', { plain: 10, tuned: 30 })).toBe('plain');
    expect(await best('add-in-flight', { plain: 10, tuned: 30 }, { ...bench, variants: [] })).toBe('plain');
  });
});
