// How a run keeps to its time: scenarios that there is none for are left out, and one that is under way makes do with the pairs it has.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { jobStates } from '../../bench/adapters/library.js';
import type { BulkEntry, JobLibrary, JobLike, Processor } from '../../bench/adapters/library.js';
import type { Sample } from '../../bench/measure.js';
import { runScenario } from '../../bench/pairs.js';
import type { Bench, Mode } from '../../bench/pairs.js';
import { runAll } from '../../bench/run.js';
import type { Scenario } from '../../bench/scenarios/scenario.js';
import type { Server } from '../../bench/server.js';

const mode: Mode = { quick: true, rounds: 3, seconds: 0.001, timeLimitMs: 10_000, budgetSeconds: Infinity };
const never = new Promise<never>(() => undefined);
const server = {
  connection: {},
  lost: never,
  isLost: false,
  cpuMicros: async () => 0,
  wakeMicros: async () => 1,
  sweep: async () => undefined,
} as unknown as Server;

/** Jobs in memory, of queues by name. */
function libraryInMemory(name: string): JobLibrary {
  const jobs = new Map<string, JobLike[]>();
  const done = new Map<string, number>();
  const resource = { waitUntilReady: async () => undefined, close: async () => undefined };
  class Queue {
    constructor(readonly name: string) {
      Object.assign(this, resource);
    }
    on = () => this;
    async addBulk(entries: BulkEntry[]) {
      const all = jobs.get(this.name) ?? [];
      for (const { data } of entries) all.push({ id: String(all.length + 1), data } as JobLike);
      jobs.set(this.name, all);
    }
    async getJobCounts() {
      const [added, completed] = [jobs.get(this.name)?.length ?? 0, done.get(this.name) ?? 0];
      const none = jobStates.map((state) => [state, 0]);
      return { ...Object.fromEntries(none), waiting: added - completed, completed };
    }
  }
  class Worker {
    private completed: (job: JobLike) => void = () => undefined;
    constructor(
      readonly name: string,
      readonly processor: Processor,
    ) {
      Object.assign(this, resource);
    }
    on(event: string, listener: (job: JobLike) => void) {
      if (event === 'completed') this.completed = listener;
      return this;
    }
    async run() {
      for (const job of jobs.get(this.name) ?? []) {
        // a turn each, in which clocks start
        await nextTurn();
        await this.processor(job);
        done.set(this.name, (done.get(this.name) ?? 0) + 1);
        this.completed(job);
      }
    }
  }
  return { name, version: '1', address: name, Queue, Worker } as unknown as JobLibrary;
}

interface Watched {
  readonly bench: Bench;
  readonly said: string[];
}

function benchOf(more: Partial<Mode> = {}): Watched {
  const said: string[] = [];
  const observer = {
    say: (line: string) => said.push(line),
    planned: () => undefined,
    step: () => undefined,
    done: () => undefined,
  };
  const libraries = { base: libraryInMemory('BullMQ'), challenger: libraryInMemory('ChasquiMQ') };
  const serverOf = async () => server;
  const rest = { mark: 'test', ownsServer: false, interrupted: never, serverOf };
  return { bench: { libraries, server, observer, mode: { ...mode, ...more }, ...rest }, said };
}

function scenarioOf(name: string, run: (jobs: number) => Partial<Sample> = () => ({})): Scenario {
  return {
    name,
    title: name,
    metrics: ['jobsPerSecond'],
    size: { kind: 'calibrated', step: 1, firstProbe: 10 },
    run: async (_, jobs) => ({ jobs, seconds: 1, values: { jobsPerSecond: jobs }, ...run(jobs) }),
  };
}

describe('a run', () => {
  const asked = ['one', 'other', 'third'].map((name) => scenarioOf(name));

  it('without a budget has all that was asked for, as it comes, in all pairs', async () => {
    const { bench, said } = benchOf();
    const results = await runAll(bench, asked);
    expect(results.map(({ scenario, pairs }) => [scenario.name, pairs.length])).toEqual([
      ['one', 3],
      ['other', 3],
      ['third', 3],
    ]);
    expect(said).toEqual([]);
  });

  it('says how fast both sides are, and does all that there is time for', async () => {
    const { bench, said } = benchOf({ budgetSeconds: 600 });
    const results = await runAll(bench, asked);
    expect(results.map(({ pairs }) => pairs.length)).toEqual([3, 3, 3]);
    expect(said).toEqual([expect.stringMatching(/BullMQ [\d,]+, ChasquiMQ [\d,]+.* 3 of 3 scenarios/)]);
  });

  it('does one at least, in one pair, and is not at fault for what it leaves out', async () => {
    const { bench, said } = benchOf({ budgetSeconds: 0 });
    const results = await runAll(bench, asked);
    expect(results.map(({ scenario, pairs, faults }) => [scenario.name, pairs.length, faults])).toEqual([
      ['one', 1, []],
    ]);
    expect(said[0]).toContain('0 of 3 scenarios');
  });
});

describe('a scenario', () => {
  it('makes do with one pair when there is no time for another', async () => {
    const { bench } = benchOf();
    const lengths = await Promise.all([0, 600].map((seconds) => runScenario(bench, scenarioOf('one'), seconds)));
    expect(lengths.map(({ pairs, faults }) => [pairs.length, faults])).toEqual([
      [1, []],
      [3, []],
    ]);
  });

  it('has more jobs when a run was over before its clock had started', async () => {
    let runs = 0;
    const { bench } = benchOf({ rounds: 1, seconds: 1 });
    const early = scenarioOf('one', (jobs) => ((runs += 1) > 4 && jobs < 50 ? { jobs: 0, seconds: 0 } : {}));
    const { pairs, faults } = await runScenario(bench, early, 600);
    expect(faults).toEqual([]);
    expect(pairs.map(({ base, challenger }) => [base.jobs, challenger.jobs])).toEqual([[200, 200]]);
  });

  it('fails when it is over too early however many jobs it has', async () => {
    const { bench } = benchOf();
    const fixed = { ...scenarioOf('one', () => ({ jobs: 0 })), size: { kind: 'fixed', full: 1, quick: 1 } as const };
    expect((await runScenario(bench, fixed, 600)).faults).toEqual([
      { side: 'base', message: expect.stringContaining('before its clock had started') },
    ]);
  });

  it('that throws is at fault, by its side', async () => {
    const { bench } = benchOf();
    const broken = scenarioOf('one', () => {
      throw new Error('the queue holds 1 waiting instead of 0');
    });
    const results = await runAll(bench, [broken]);
    expect(results[0].faults).toEqual([{ side: 'base', message: 'the queue holds 1 waiting instead of 0' }]);
  });
});
