// Queues of others behind the API that scenarios use, and what is said of them: figures of their own, in turns.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { JobLibrary, JobLike, Processor } from '../../bench/adapters/library.js';
import { fullMode } from '../../bench/pairs.js';
import { libraryOf } from '../../bench/peers/peer.js';
import type { PeerQueue } from '../../bench/peers/peer.js';
import { markdownOf, tableOf } from '../../bench/peers/report.js';
import { inTurns } from '../../bench/peers/turns.js';
import type { RunBench } from '../../bench/peers/turns.js';
import { scenarios } from '../../bench/scenarios/index.js';
import type { Scenario } from '../../bench/scenarios/scenario.js';
import type { Server } from '../../bench/server.js';

const named = (name: string) => scenarios.find((scenario) => scenario.name === name)!;
const never = new Promise<never>(() => undefined);
const server = { connection: {}, masters: 1, lost: never, isLost: false, sweep: async () => undefined };

function benchOf(rounds: number): RunBench {
  return {
    server: server as unknown as Server,
    serverOf: never as never,
    mark: 'test',
    mode: { ...fullMode, rounds, seconds: 0.001 },
    observer: { say: () => undefined, planned: () => undefined, step: () => undefined, done: () => undefined },
    ownsServer: false,
    interrupted: never,
  };
}

/** One whose runs take their figures from `figures`, in order. */
function scenarioOf(runs: string[], figures: Record<string, number[]>): Scenario {
  return {
    ...named('add-tiny'),
    size: { kind: 'fixed', full: 10, quick: 10 },
    async run(stage, jobs) {
      const queue = await stage.openQueue();
      const { id } = await queue.add('job', {});
      const name = String(id);
      if (jobs < 10) return { jobs, seconds: 1, values: {} };
      runs.push(name);
      const [jobsPerSecond] = figures[name].splice(0, 1);
      if (jobsPerSecond === undefined) throw new Error('it has\nended');
      return { jobs, seconds: 1, values: { jobsPerSecond, nodeCpuMicros: 1, redisCpuMicros: 2 } };
    },
  };
}

/** Whose ids are its name. */
const nameless = (name: string): JobLibrary =>
  libraryOf(name, '1', () => ({
    onError: () => undefined,
    ready: async () => undefined,
    add: async () => name,
    counts: async () => ({}),
    process: () => undefined,
    onCompleted: () => undefined,
    onFailed: () => undefined,
    close: async () => undefined,
  }));

describe('peers', () => {
  it('have their turns, the order turned about from round to round, until one fails', async () => {
    const runs: string[] = [];
    const scenario = scenarioOf(runs, { one: [100, 300, 200], other: [5] });
    const measured = await inTurns(benchOf(3), scenario, [nameless('one'), nameless('other')]);
    expect(runs).toEqual(['other', 'one', 'one', 'other', 'one']);
    const table = tableOf({ scenario, measured });
    expect(table).toEqual([
      ['', 'Jobs a second', 'Node CPU a job, us', 'Redis CPU a job, us', 'runs'],
      ['one 1', '200 (100..300)', '1 (1..1)', '2 (2..2)', '3'],
      ['other 1', '5 (5..5)', '1 (1..1)', '2 (2..2)', '1, ERROR it has ended'],
    ]);
    const text = markdownOf(['commit 1'], [{ scenario, measured }]);
    expect(text).toContain(`## ${scenario.title}\n\n| `);
    expect(text).toContain('- commit 1');
  });

  it('add, run and tell of jobs as scenarios ask for it', async () => {
    const told: unknown[] = [];
    const listeners: Partial<Record<'completed' | 'failed', (what: never) => void>> = {};
    const peer: PeerQueue = {
      onError: () => undefined,
      ready: async () => undefined,
      add: async () => '1',
      counts: async () => ({ completed: 2 }),
      process: (concurrency: number, _: Processor) => void told.push(concurrency),
      onCompleted: (listener) => (listeners.completed = listener),
      onFailed: (listener) => (listeners.failed = listener),
      close: async () => undefined,
    };
    const { Queue, Worker } = libraryOf('peer', '1', () => peer);
    const queue = new Queue('q', { connection: {}, defaultJobOptions: {} });
    expect(await queue.add('job', { i: 1 })).toEqual({ id: '1' });
    expect(await queue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 0, completed: 2 });
    const worker = new Worker('q', async () => undefined, { connection: {}, concurrency: 7, autorun: false });
    worker.on('completed', ({ id }: JobLike) => told.push(id));
    worker.on('failed', (_, error) => told.push(error.message));
    await worker.run();
    listeners.completed?.('4' as never);
    listeners.failed?.(new Error('no') as never);
    expect(told).toEqual([7, '4', 'no']);
  });

  it('are of one version each, which the lock file has', () => {
    const read = (name: string) =>
      JSON.parse(readFileSync(new URL(`../../bench/peers/packages/${name}`, import.meta.url), 'utf8'));
    const { dependencies } = read('package.json') as { dependencies: Record<string, string> };
    const { packages } = read('package-lock.json') as { packages: Record<string, { version: string }> };
    expect(Object.keys(dependencies)).toEqual(['bee-queue', 'bull']);
    for (const [name, version] of Object.entries(dependencies)) {
      expect(packages[`node_modules/${name}`].version).toBe(version);
    }
  });
});
