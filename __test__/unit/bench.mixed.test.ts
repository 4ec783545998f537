// Rows of handlers of mixed length: what a wait is, that a run fails unless each job ran once, and that both libraries can be measured so.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadBullmq } from '../../bench/adapters/bullmq.js';
import { loadChasquimq } from '../../bench/adapters/chasquimq.js';
import type { JobLibrary } from '../../bench/adapters/library.js';
import { quickMode, runOnce } from '../../bench/pairs.js';
import type { Bench } from '../../bench/pairs.js';
import { mixedScenarios } from '../../bench/scenarios/mixed/index.js';
import { roundsScenario, sampleOf, waitsOf } from '../../bench/scenarios/mixed/rounds.js';
import { steadyScenario, callsOf } from '../../bench/scenarios/mixed/steady.js';
import { startsOf } from '../../bench/scenarios/mixed/team.js';
import type { Scenario } from '../../bench/scenarios/scenario.js';
import { parseConnection, Server } from '../../bench/server.js';

describe('the starts of jobs', () => {
  const account = (...numbers: number[]) => ({ starts: numbers.map((i) => ({ i, at: 100 + i })) });

  it('are those that all workers tell, by number', () => {
    expect(startsOf([10, 11, 12], [account(1), account(), account(2, 0)])).toEqual([
      { addedAt: 10, startedAt: 100, worker: 2 },
      { addedAt: 11, startedAt: 101, worker: 0 },
      { addedAt: 12, startedAt: 102, worker: 2 },
    ]);
  });

  it.each([
    ['twice', [account(0, 1), account(1)], 'job 1 of 2 ran twice'],
    ['never', [account(0)], 'job 1 of 2 did not run'],
    ['and was not added', [account(0, 1, 2)], 'job 2 of 2 is none of this run'],
  ])('are refused where a job ran %s', (_, accounts, fault) => {
    expect(() => startsOf([10, 11], accounts)).toThrow(fault);
  });
});

describe('a wait', () => {
  const starts = [5, 40, 30, 90].map((startedAt, worker) => ({ addedAt: 3, startedAt, worker }));

  it('is from the call that adds a job to its start', () => {
    expect(waitsOf(starts, {}).map(({ ms }) => ms)).toEqual([2, 37, 27, 87]);
    expect(waitsOf(starts, { measured: 1 })).toEqual([{ ms: 87, worker: 3 }]);
  });

  it('behind a job is from its start, and none where another worker was earlier', () => {
    expect(waitsOf(starts, { measured: 2, areBehindIt: true }).map(({ ms }) => ms)).toEqual([0, 50]);
  });
});

it('a sample has the waits of all rounds, and of each round the last, the time and the busiest worker', () => {
  const round = (ms: number, ...waits: [ms: number, worker: number][]) => ({
    ms,
    jobs: waits.map(([wait, worker]) => ({ ms: wait, worker })),
  });
  const { jobs, seconds, values } = sampleOf([
    round(60, [1, 0], [2, 1], [3, 2]),
    round(200, [1, 0], [50, 0], [101, 0]),
    round(100, [1, 2], [2, 1], [51, 1]),
  ]);
  expect([jobs, seconds]).toEqual([9, 0.36]);
  expect(values).toMatchObject({ latencyP50Ms: 2, latencyLastMs: 51, burstMs: 100, busiestJobs: 2 });
  expect(values.latencyP999Ms).toBeGreaterThan(100);
});

describe('a steady stream', () => {
  const flow = { workers: 4, concurrency: 1, slow: { blocks: 100 }, oneIn: 20, together: 10 };

  it('keeps 12 % of the workers busy, with gaps by chance, the same for both sides of a pair', () => {
    const calls = callsOf(100_000, flow, 7);
    expect(callsOf(100_000, flow, 7)).toEqual(calls);
    expect(callsOf(100, flow, 8)).not.toEqual(calls.slice(0, 10));
    const works = calls.flatMap((call) => call.works);
    const busyMs = works.reduce((sum, { blocks = 0 }) => sum + blocks, 0);
    expect([works.length, busyMs]).toEqual([100_000, (100_000 / flow.oneIn) * flow.slow.blocks]);
    expect(busyMs / (calls[calls.length - 1].at * flow.workers)).toBeCloseTo(0.12, 2);
    expect(calls.every(({ at }, k) => k === 0 || at > calls[k - 1].at)).toBe(true);
  });

  it('has a slow job however few there are, and any number in the last call', () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const calls = callsOf(13, flow, seed);
      expect(calls.map(({ works }) => works.length)).toEqual([10, 3]);
      expect(calls.flatMap(({ works }) => works).filter(({ blocks }) => blocks === 100)).toHaveLength(1);
    }
  });
});

it('the rows are long ones that are compared with BullMQ as it comes, and a plan knows what they wait', () => {
  const names = mixedScenarios.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const { name, isLong, isOfPlainBase, size, waits } of mixedScenarios) {
    expect(name).toMatch(/^mixed-/);
    expect([isLong, isOfPlainBase, size.kind]).toEqual([true, true, 'fixed']);
    expect(waits).toBeGreaterThan(0.5);
  }
});

describe.each([
  ['BullMQ', loadBullmq],
  ['ChasquiMQ', loadChasquimq],
])('%s', (_, load) => {
  let library: JobLibrary;
  let server: Server;
  beforeAll(async () => {
    library = await load();
    server = await Server.connect(parseConnection(process.env.REDIS_URL ?? ''));
  });
  afterAll(() => server.close());

  const never = new Promise<never>(() => undefined);
  const runOf = (scenario: Scenario, jobs: number) => {
    const libraries = { base: library, challenger: library };
    const bench = { libraries, server, mode: quickMode, mark: 'bench-mixed', ownsServer: false, interrupted: never };
    return runOnce(bench as unknown as Bench, scenario, 'base', jobs, 1);
  };

  it('runs rounds of jobs that block and wait in processes of their own', async () => {
    const rounds = roundsScenario({
      name: 'mixed',
      title: '',
      metrics: ['burstMs'],
      workers: 2,
      concurrency: 1,
      rounds: 2,
      works: [{ blocks: 30 }, { waits: 20, blocks: 20 }, {}],
      measured: 2,
    });
    const { jobs, values } = await runOf(rounds, 2);
    expect(jobs).toBe(4);
    // timers may be a millisecond early
    expect(values.burstMs).toBeGreaterThanOrEqual(39);
    expect(values.latencyP50Ms).toBeGreaterThan(0);
    expect([1, 1.5, 2]).toContain(values.busiestJobs);
  });

  it('runs a steady stream', async () => {
    const stream = steadyScenario({
      name: 'mixed',
      title: '',
      workers: 2,
      concurrency: 5,
      slow: { waits: 10 },
      oneIn: 5,
      together: 3,
      jobs: 40,
    });
    const { jobs, values } = await runOf(stream, 40);
    expect(jobs).toBe(40);
    expect(values.latencyP50Ms).toBeGreaterThan(0);
    expect(values.latencyP999Ms).toBeGreaterThanOrEqual(values.latencyP90Ms ?? NaN);
  });
});
