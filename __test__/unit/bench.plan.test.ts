// What a quick run does: as much as ends in time on a machine as fast as that one.
import { describe, expect, it } from 'vitest';
import { scenariosOf } from '../../bench/arguments.js';
import { fullMode, quickMode } from '../../bench/pairs.js';
import { fitting, planOf, wordsOf } from '../../bench/plan.js';
import type { Plan } from '../../bench/plan.js';
import { scenarios } from '../../bench/scenarios/index.js';

const SECONDS = 95;
const quick = scenariosOf(true);
const namesOf = (plan: Plan, seconds = SECONDS) => fitting(plan.parts, seconds).map(({ scenario }) => scenario.name);

/** Speeds of machines, the fastest first: of BullMQ, and of ChasquiMQ. */
const machines = [1e6, 12_000, 5_000, 2_500, 1_000, 500, 50].map((base) => ({ base, challenger: base * 30 }));
const plans = machines.map((speeds) => planOf(quick, quickMode, speeds, SECONDS));

describe('a plan', () => {
  it('is all of it, as it comes, where there is no budget', () => {
    const plan = planOf(scenarios, fullMode);
    expect(plan).toMatchObject({ window: fullMode.seconds, pairs: fullMode.rounds });
    expect(fitting(plan.parts, Infinity).map(({ scenario }) => scenario)).toEqual(scenarios);
  });

  it('is all of it where there is the time', () => {
    const plan = planOf(quick, quickMode, machines[0], 1_000);
    expect(plan).toMatchObject({ window: quickMode.seconds, pairs: quickMode.rounds });
    expect(namesOf(plan, 1_000)).toHaveLength(quick.length);
  });

  it('has fewer runs, shorter windows and fewer pairs the slower a machine is', () => {
    const falls = (values: number[]) => values.every((value, i) => i === 0 || value <= values[i - 1]);
    expect(falls(plans.map(({ window }) => window))).toBe(true);
    expect(falls(plans.map(({ pairs }) => pairs))).toBe(true);
    expect(falls(plans.map((plan) => plan.pairs * namesOf(plan).length))).toBe(true);
    expect(plans[1]).toMatchObject({ window: quickMode.seconds, pairs: 2 });
    expect(plans.at(-1)).toMatchObject({ window: quickMode.seconds * 0.4, pairs: 1 });
    expect(namesOf(plans[1]).length).toBeGreaterThan(quick.length / 2);
    expect(namesOf(plans[5]).length).toBeLessThan(quick.length / 3);
  });

  it.each(machines)('ends in time at %j', (speeds) => {
    const { parts } = planOf(quick, quickMode, speeds, SECONDS);
    expect(fitting(parts, SECONDS).reduce((sum, { takes }) => sum + takes, 0)).toBeLessThanOrEqual(SECONDS);
  });

  it('has what is most wanted on machines that are not among the slowest', () => {
    for (const plan of plans.slice(0, 4)) {
      const [first, ...more] = namesOf(plan);
      expect(first).toBe('add-tiny');
      expect(more).toEqual(expect.arrayContaining(['add-bulk-50', 'worker-100-keep', 'waiting-20-50', 'retry']));
    }
  });

  it('has each scenario of a quick run in its place, and those that only a name brings after them', () => {
    const { parts } = planOf(scenarios, quickMode, machines[1], SECONDS);
    const ordered = parts.map(({ scenario }) => scenario);
    expect(new Set(ordered.slice(0, quick.length))).toEqual(new Set(quick));
    expect(ordered.slice(quick.length)).toEqual(scenarios.filter(({ isLong }) => isLong));
  });

  it('has time for what a scenario says that it waits', () => {
    const [scenario] = scenarios.filter(({ isLong, waits }) => isLong && waits === undefined);
    const [little, much] = [0.5, 3].map((waits) => planOf([{ ...scenario, waits }], quickMode, machines[1], SECONDS));
    expect(much.parts[0].takes).toBeGreaterThan(little.parts[0].takes + 2 * 2.5);
  });

  it('has no more pairs than were asked for', () => {
    expect(planOf(quick, { ...quickMode, rounds: 1 }, machines[1], SECONDS).pairs).toBe(1);
    expect(planOf(quick.slice(0, 1), { ...quickMode, rounds: 10 }, machines[1], SECONDS).pairs).toBe(10);
  });
});

describe('what fits', () => {
  const [one, other, third] = quick;

  it('passes over what takes too long', () => {
    const parts = [
      { scenario: one, takes: 3 },
      { scenario: other, takes: 20 },
      { scenario: third, takes: 7 },
    ];
    expect(fitting(parts, 10)).toEqual([parts[0], parts[2]]);
    expect(fitting(parts, 9)).toEqual([parts[0]]);
    expect(fitting(parts, -1)).toEqual([]);
  });
});

it('is said beforehand', () => {
  const speeds = { base: 2_345, challenger: 67_890 };
  const parts = quick.slice(0, 3).map((scenario) => ({ scenario, takes: 4 }));
  const libraries = { base: { name: 'BullMQ' }, challenger: { name: 'ChasquiMQ' } };
  const words = wordsOf({ window: 0.1, pairs: 1, parts }, speeds, libraries, 9.6);
  expect(words).toContain('BullMQ 2,300, ChasquiMQ 68,000');
  expect(words).toContain('In 10 s there is time for 2 of 3 scenarios, in one pair each, 0.1 s a clock');
});
