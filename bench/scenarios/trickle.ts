/**
 * One job at a time on an idle queue, as most queues of most programs are used: what a job costs when nothing can be shared among many. From `add` to
 * the recorded completion; the next job is added when the worker waits again, a few milliseconds later. A worker with one slot, and one with many; in the
 * producer's process, and in one of its own.
 *
 * In one process, a library can let the producer's call take the worker's step along. Apart it cannot: there each side makes its own calls. Node CPU is then that of
 * both processes, and the worker's tells the time of each completion, by a clock that both read: how long the telling takes is in neither latency.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueLike } from '../adapters/library.js';
import type { Metric, Sample } from '../measure.js';
import type { Stage } from '../stage.js';
import { quantile, randomFrom } from '../statistics.js';
import { clockOfMachine, expectRan } from '../worker-process.js';
import { tinyPayload } from './scenario.js';
import type { Scenario } from './scenario.js';

const WARM_UP = 50;
const PAUSE_MS = [1, 3] as const;

const METRICS: readonly Metric[] = [
  'latencyP50Ms',
  'latencyP99Ms',
  'nodeCpuMicros',
  'redisCpuMicros',
  'roundTrips',
  'redisCommands',
];

const size = { kind: 'fixed', full: 500, quick: 100 } as const;

function trickle(name: string, slots: string, concurrency: number): Scenario {
  return {
    name,
    title: `trickle: one job at a time, add to completion${slots}`,
    metrics: METRICS,
    size,
    run: (stage, jobs) => inThisProcess(stage, jobs, concurrency),
  };
}

export const trickleScenario = trickle('trickle', '', 1);
export const trickleOfManySlots = trickle('trickle-20', ', 20 slots', 20);
export const trickleApart: Scenario = {
  name: 'trickle-apart',
  title: 'trickle: one job at a time, add to completion, the worker in another process',
  metrics: METRICS,
  size,
  isLong: true,
  run: inTwoProcesses,
};

async function inThisProcess(stage: Stage, jobs: number, concurrency: number): Promise<Sample> {
  const queue = await stage.openQueue();
  const completions = stage.tally(WARM_UP + jobs);
  let completed: (at: number) => void = () => undefined;
  const worker = await stage.openWorker({
    processor: async () => undefined,
    concurrency,
    onCompleted: (job) => {
      completions.add(job);
      completed(performance.now());
    },
  });
  stage.run(worker);
  return oneAtATime(stage, jobs, {
    queue,
    now: () => performance.now(),
    completion: () => new Promise((resolve) => (completed = resolve)),
    cpuElsewhere: async () => 0,
  });
}

async function inTwoProcesses(stage: Stage, jobs: number): Promise<Sample> {
  const queue = await stage.openQueue();
  const workers = await stage.openWorkerProcesses(1, 1, { tells: true });
  const [worker] = workers;
  worker.run();
  const sample = await oneAtATime(stage, jobs, {
    queue,
    now: clockOfMachine,
    completion: () => new Promise((resolve) => (worker.onCompleted = resolve)),
    cpuElsewhere: async () => (await worker.account()).cpuMicros,
  });
  await expectRan(workers, WARM_UP + jobs);
  return sample;
}

interface Line {
  readonly queue: QueueLike;
  /** Milliseconds on the clock by which completions are told. */
  now(): number;
  /** When the next job will have completed. */
  completion(): Promise<number>;
  /** Microseconds that workers in other processes have spent. */
  cpuElsewhere(): Promise<number>;
}

async function oneAtATime(stage: Stage, jobs: number, line: Line): Promise<Sample> {
  const random = randomFrom(stage.seed);
  const latencies: number[] = [];
  const one = async (i: number) => {
    await sleep(PAUSE_MS[0] + random() * (PAUSE_MS[1] - PAUSE_MS[0]));
    const completion = line.completion();
    const addedAt = line.now();
    const [completedAt] = await Promise.all([completion, line.queue.add('job', tinyPayload(i))]);
    latencies.push(completedAt - addedAt);
  };
  for (let i = 0; i < WARM_UP; i += 1) await one(i);
  latencies.length = 0;
  const watch = stage.stopwatch();
  const [before, elsewhere] = [await stage.serverWork(), await line.cpuElsewhere()];
  watch.start();
  for (let i = 0; i < jobs; i += 1) await one(WARM_UP + i);
  watch.stop();
  const spentElsewhere = (await line.cpuElsewhere()) - elsewhere;
  const after = await stage.serverWork();
  await stage.expectCounts(line.queue, { completed: WARM_UP + jobs });

  const { seconds, values } = await watch.sample(jobs);
  return {
    jobs,
    seconds,
    values: {
      latencyP50Ms: quantile(latencies, 0.5),
      latencyP99Ms: quantile(latencies, 0.99),
      nodeCpuMicros: (values.nodeCpuMicros ?? NaN) + spentElsewhere / jobs,
      redisCpuMicros: values.redisCpuMicros,
      // the readings themselves are two, and two of the clock, of each master
      roundTrips: (after.reads - before.reads - 4 * stage.server.masters) / jobs,
      redisCommands: (after.commands - before.commands) / jobs,
    },
  };
}
