/**
 * One job at a time on an idle queue, as most queues of most programs are used: what a job costs when nothing can be shared among many. From `add` to
 * the recorded completion; the next job is added when the worker waits again, a few milliseconds later. A worker with one slot, and one with many.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Metric, Sample } from '../measure.js';
import type { Stage } from '../stage.js';
import { quantile, randomFrom } from '../statistics.js';
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

function trickle(name: string, slots: string, concurrency: number): Scenario {
  return {
    name,
    title: `trickle: one job at a time, add to completion${slots}`,
    metrics: METRICS,
    size: { kind: 'fixed', full: 500, quick: 100 },
    run: (stage, jobs) => oneAtATime(stage, jobs, concurrency),
  };
}

export const trickleScenario = trickle('trickle', '', 1);
export const trickleOfManySlots = trickle('trickle-20', ', 20 slots', 20);

async function oneAtATime(stage: Stage, jobs: number, concurrency: number): Promise<Sample> {
  const queue = await stage.openQueue();
  const random = randomFrom(stage.seed);
  let completed: () => void = () => undefined;
  const worker = await stage.openWorker({
    processor: async () => undefined,
    concurrency,
    onCompleted: () => completed(),
  });
  stage.run(worker);

  const latencies: number[] = [];
  const one = async (i: number) => {
    await sleep(PAUSE_MS[0] + random() * (PAUSE_MS[1] - PAUSE_MS[0]));
    const done = new Promise<void>((resolve) => {
      completed = resolve;
    });
    const addedAt = performance.now();
    await Promise.all([queue.add('job', tinyPayload(i)), done]);
    latencies.push(performance.now() - addedAt);
  };
  for (let i = 0; i < WARM_UP; i += 1) await one(i);
  latencies.length = 0;
  const watch = stage.stopwatch();
  const before = await stage.serverWork();
  watch.start();
  for (let i = 0; i < jobs; i += 1) await one(WARM_UP + i);
  watch.stop();
  const after = await stage.serverWork();
  await stage.expectCounts(queue, { completed: WARM_UP + jobs });

  const { seconds, values } = await watch.sample(jobs);
  const { nodeCpuMicros, redisCpuMicros } = values;
  return {
    jobs,
    seconds,
    values: {
      latencyP50Ms: quantile(latencies, 0.5),
      latencyP99Ms: quantile(latencies, 0.99),
      nodeCpuMicros,
      redisCpuMicros,
      // the readings themselves are two, and two of the clock
      roundTrips: (after.reads - before.reads - 4) / jobs,
      redisCommands: (after.commands - before.commands) / jobs,
    },
  };
}
