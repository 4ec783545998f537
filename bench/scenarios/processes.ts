/**
 * Workers that are processes of their own, 1, 2, 4 and 8 of them, on one queue, as deployments have them: whether they share the jobs, or get into each
 * other's way. The queue is filled beforehand with warm-up jobs, by which the code of each process is compiled, and with those that are measured: the clock
 * starts when no more than the measured ones are left, or after some seconds with those that are, and stops when nothing waits and nothing is active. Each process
 * then tells how many handlers ran, and for which jobs. The CPU of those processes is not measured.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueLike } from '../adapters/library.js';
import { expectRan } from '../worker-process.js';
import { fill } from './scenario.js';
import type { Scenario } from './scenario.js';

const CONCURRENCY = 50;
const POLL_MS = 5;
/** Warm-up jobs: some for any number of processes, and more for each. */
const [LEAST_WARM_UP, WARM_UP_EACH] = [4_000, 1_000];
const LONGEST_WARM_UP_MS = 3_000;

function processScenario(processes: number): Scenario {
  return {
    name: `processes-${processes}`,
    title: `${processes === 1 ? 'one worker process' : `${processes} worker processes`} on one queue`,
    metrics: ['jobsPerSecond', 'redisCpuMicros'],
    size: { kind: 'calibrated', step: 1, firstProbe: 2_000 },
    isLong: true,
    async run(stage, jobs) {
      const total = Math.max(Math.ceil(jobs / 10), LEAST_WARM_UP + processes * WARM_UP_EACH) + jobs;
      const queue = await stage.openQueue({ removeOnComplete: true });
      await fill(queue, total);
      const workers = await stage.openWorkerProcesses(processes, CONCURRENCY);
      const begin = performance.now();
      for (const worker of workers) worker.run();
      let left = total;
      while (left > jobs && performance.now() - begin < LONGEST_WARM_UP_MS) left = await leftIn(queue);
      const measured = left;
      const watch = stage.stopwatch();
      // too few jobs to measure anything: calibration asks for more
      if (measured > 0) watch.start();
      while (left > 0) left = await leftIn(queue);
      watch.stop();
      await stage.expectCounts(queue, {});
      await expectRan(workers, total);
      return watch.sample(measured);
    },
  };
}

/** How many jobs have not ended, a moment from now. */
async function leftIn(queue: QueueLike): Promise<number> {
  await sleep(POLL_MS);
  const { waiting = 0, active = 0 } = await queue.getJobCounts('waiting', 'active');
  return waiting + active;
}

export const processScenarios: readonly Scenario[] = [1, 2, 4, 8].map(processScenario);
