/**
 * From `add` to the handler on an idle queue: one job at a time, one worker of concurrency 1, default options. The clock
 * starts just before `add` is called and stops in the first line of the handler. The next job is added only after the
 * last one has completed, its `add` has resolved, and a random pause of 1 to 5 ms has passed, so that the worker is
 * waiting again; both sides of a pair draw the same pauses.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { tinyPayload } from './scenario.js';
import type { Scenario } from './scenario.js';
import { quantile, randomFrom } from '../statistics.js';

const WARM_UP = 50;
const PAUSE_MS = [1, 5] as const;

export const latencyScenario: Scenario = {
  name: 'latency',
  title: 'add to handler, idle queue',
  metrics: ['latencyP50Ms', 'latencyP99Ms', 'latencyP999Ms'],
  size: { kind: 'fixed', full: 1_000, quick: 250 },
  async run(stage, jobs) {
    const queue = await stage.openQueue();
    const random = randomFrom(stage.seed);
    let startedAt = 0;
    let completed: () => void = () => undefined;
    const completions = stage.tally(WARM_UP + jobs);
    const worker = await stage.openWorker({
      processor: async () => {
        startedAt = performance.now();
      },
      concurrency: 1,
      onCompleted: (job) => {
        completions.add(job);
        completed();
      },
    });
    stage.run(worker);

    const latencies: number[] = [];
    const begin = performance.now();
    for (let i = 0; i < WARM_UP + jobs; i += 1) {
      await sleep(PAUSE_MS[0] + random() * (PAUSE_MS[1] - PAUSE_MS[0]));
      const done = new Promise<void>((resolve) => {
        completed = resolve;
      });
      const addedAt = performance.now();
      await Promise.all([queue.add('job', tinyPayload(i)), done]);
      if (i >= WARM_UP) latencies.push(startedAt - addedAt);
    }
    const seconds = (performance.now() - begin) / 1e3;

    await stage.expectCounts(queue, { completed: WARM_UP + jobs });
    return {
      jobs,
      seconds,
      values: {
        latencyP50Ms: quantile(latencies, 0.5),
        latencyP99Ms: quantile(latencies, 0.99),
        latencyP999Ms: quantile(latencies, 0.999),
      },
    };
  },
};
