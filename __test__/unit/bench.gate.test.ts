// The gate of the bench: when pairs decide, what load excuses, and where a culprit is found.
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../bench/ending.js';
import { readBisectArguments, readGateArguments } from '../../bench/gate/arguments.js';
import type { Contest } from '../../bench/gate/contest.js';
import { atThisLook, cutOff, intervalOf, LOOKS, verdictOn } from '../../bench/gate/interval.js';
import { lineOf, outcomeOf } from '../../bench/gate/instructions.js';
import { conclusion, judge, worstOf } from '../../bench/gate/judgement.js';
import { parseBusy, takenByOthers } from '../../bench/gate/load.js';
import { firstBad } from '../../bench/gate/search.js';
import { scenarios } from '../../bench/scenarios/index.js';
import { randomFrom } from '../../bench/statistics.js';

/** Ratios around `middle` as a noisy machine gives them: a tenth of them are far off. */
function noisy(middle: number, pairs: number, seed: number): number[] {
  const random = randomFrom(seed);
  return Array.from({ length: pairs }, () => {
    const spread = random() < 0.1 ? 1.5 : 0.16;
    return middle * Math.exp((random() + random() - 1) * spread);
  });
}

function decide(middle: number, seed: number): string {
  const ratios = noisy(middle, LOOKS.at(-1) ?? 0, seed);
  const verdicts = LOOKS.map((look) => verdictOn(atThisLook(ratios.slice(0, look))));
  return verdicts.find((verdict) => verdict !== 'undecided') ?? 'undecided';
}

describe('the interval of a paired ratio', () => {
  // as in tables of Wilcoxon's test, where the greatest sum that is still significant is one less
  it.each([
    [6, 0.025, 1],
    [8, 0.025, 4],
    [10, 0.025, 9],
    [12, 0.005, 8],
    [20, 0.025, 53],
    [5, 0.025, 0],
  ])('of %i pairs leaves out the tails of %f', (pairs, doubt, below) => expect(cutOff(pairs, doubt)).toBe(below));

  it('knows nothing of too few pairs', () => {
    expect(intervalOf([0.5, 0.5, 0.5], 0.05)).toMatchObject({ low: 0, high: Infinity });
  });

  it('holds the middle and is moved little by one pair that is far off', () => {
    const calm = intervalOf([0.97, 0.98, 0.99, 1, 1, 1.01, 1.02, 1.03], 0.05);
    const disturbed = intervalOf([0.97, 0.98, 0.99, 1, 1, 1.01, 1.02, 20], 0.05);
    expect(calm.low).toBeLessThan(1);
    expect(calm.high).toBeGreaterThan(1);
    expect(Math.abs(disturbed.estimate - calm.estimate)).toBeLessThan(0.02);
  });

  it('decides at the first look when it is clear', () => {
    const first = LOOKS[0] ?? 0;
    expect(verdictOn(atThisLook(Array<number>(first).fill(0.8)))).toBe('dropped');
    expect(verdictOn(atThisLook(Array<number>(first).fill(1)))).toBe('holds');
    expect(verdictOn(atThisLook(Array<number>(first - 1).fill(0.8)))).toBe('undecided');
  });

  it('finds what is slower by a fifth, and never what is not', () => {
    const seeds = Array.from({ length: 100 }, (_, seed) => seed);
    expect(seeds.filter((seed) => decide(1, seed) === 'dropped')).toEqual([]);
    expect(seeds.filter((seed) => decide(0.8, seed) === 'holds')).toEqual([]);
    expect(seeds.filter((seed) => decide(0.8, seed) === 'dropped').length).toBeGreaterThan(90);
  });
});

const [scenario] = scenarios;
if (!scenario) throw new Error('there are no scenarios');

function contestOf(low: number, high: number, taken = 0): Contest {
  const interval = { low, high, estimate: Math.sqrt(low * high) };
  return {
    scenario: scenario,
    rulings: [{ metric: 'jobsPerSecond', interval, verdict: verdictOn(interval) }],
    pairs: 8,
    taken,
  };
}

describe('a judgement', () => {
  const changes = ' src/worker.ts | 2 +-';
  const [dropped, unclear, fine] = [contestOf(0.7, 0.8), contestOf(0.7, 1), contestOf(0.95, 1.05)];

  it('is made when it is quiet', () => {
    const about = { changes, load: 0.1 };
    expect([dropped, unclear, fine].map((done) => judge(done, about))).toEqual(['fails', 'fails', 'passes']);
    expect(conclusion([fine, dropped], about, 'abc')).toContain(changes);
  });

  it('is not made when it is not, but for what holds anyway', () => {
    const about = { changes, load: 2 };
    expect([dropped, fine].map((done) => judge(done, about))).toEqual(['not judged', 'passes']);
    expect(judge(contestOf(0.7, 0.8, 0.5), { changes, load: 0.1 })).toBe('not judged');
    expect(conclusion([dropped], about, 'abc')).toContain('when it is quiet');
  });

  it('excuses what nothing was changed for', () => {
    expect(judge(dropped, { changes: '', load: 0.1 })).toBe('passes');
    expect(conclusion([dropped], { changes: '', load: 0.1 }, 'abc')).toContain("machine's doing");
  });

  it('is the worst of all', () => {
    expect(worstOf(['passes', 'not judged', 'fails'])).toBe('fails');
    expect(worstOf(['passes', 'not judged'])).toBe('not judged');
    expect(worstOf([])).toBe('passes');
  });
});

describe('instructions', () => {
  it('may grow by 2 %', () => {
    const grown = (head: number) => outcomeOf([{ part: 'decode', base: 1_000, head }]);
    expect([grown(900), grown(1_020), grown(1_021)]).toEqual(['passes', 'passes', 'fails']);
    expect(lineOf({ part: 'decode', base: 1_000, head: 1_021 })).toMatch(/decode.* 1000 -> 1021: GROWN$/);
    expect(lineOf({ part: 'decode', base: 1_000, head: 1_020 })).toMatch(/: holds$/);
  });

  it('of a part that the base does not have are told, and judged by nothing', () => {
    const fresh = { part: 'decode', base: undefined, head: 1_000 };
    expect([outcomeOf([fresh]), outcomeOf([])]).toEqual(['passes', 'passes']);
    expect(lineOf(fresh)).toContain('1000; the base has no such part');
  });
});

describe('load', () => {
  it('is what others took', () => {
    expect(parseBusy('cpu  100 10 40 5000 30 5 5 40 0 0\ncpu0 1 2 3')).toBe(2);
    const reading = (busySeconds: number | undefined, ownSeconds: number, wallSeconds: number) => ({
      busySeconds,
      ownSeconds,
      wallSeconds,
    });
    expect(takenByOthers(reading(10, 5, 0), reading(20, 9, 10), 2)).toBeCloseTo(0.3);
    expect(takenByOthers(reading(undefined, 5, 0), reading(20, 9, 10), 2)).toBeUndefined();
  });
});

describe('a search', () => {
  const commits = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

  it.each(commits)('finds %s', async (first) => {
    const looked: string[] = [];
    const found = await firstBad(commits, async (commit) => {
      looked.push(commit);
      return commit >= first;
    });
    expect(found.commit).toBe(first);
    expect(looked.length).toBeLessThanOrEqual(3);
  });

  it('passes over what cannot be measured', async () => {
    const found = await firstBad(commits, async (commit) => (commit === 'd' ? undefined : commit >= 'e'));
    expect(found).toEqual({ commit: 'e', neighbours: ['c', 'e', 'f'] });
  });
});

describe('arguments', () => {
  it('are read', () => {
    const { base, scenarios: chosen, evenIfBusy } = readGateArguments(['--base', 'main', '--only', 'add-tiny']);
    expect([base, chosen.map(({ name }) => name), evenIfBusy]).toEqual(['main', ['add-tiny'], false]);
    const begun = readGateArguments(['--only', 'worker-1-*,add-tiny']).scenarios;
    expect(begun.map(({ name }) => name)).toEqual(['add-tiny', 'worker-1-remove', 'worker-1-keep']);
    expect(readBisectArguments(['--good', 'a', '--bad', 'b', '--only', 'retry'])).toMatchObject({
      good: 'a',
      bad: 'b',
    });
  });

  it('name instructions, scenarios, or both; without any it is all but the long ones, and some of those', () => {
    const read = (...only: string[]) => {
      const { instructions, scenarios: chosen } = readGateArguments(only);
      return [instructions, chosen.map(({ name }) => name)];
    };
    const short = scenarios.filter(({ isLong, isGated }) => !isLong || isGated).map(({ name }) => name);
    expect(read('--only', 'instructions')).toEqual([true, []]);
    expect(read('--only', 'instructions,add-tiny')).toEqual([true, ['add-tiny']]);
    expect(read('--only', 'add-tiny')).toEqual([false, ['add-tiny']]);
    expect(read()).toEqual([true, short]);
  });

  it.each([[['--only', 'nothing']], [['--only', 'nothing-*']], [['--only', '']], [['--what']], [['main']]])(
    '%j are refused by the gate',
    (argv) => {
      expect(() => readGateArguments(argv)).toThrow(UsageError);
    },
  );

  it.each([
    [['--good', 'a', '--only', 'retry']],
    [['--good', 'a', '--bad', 'b']],
    [['--good', 'a', '--bad', 'b', '--only', 'retry,add-tiny']],
  ])('%j are refused by the search', (argv) => expect(() => readBisectArguments(argv)).toThrow(UsageError));
});
