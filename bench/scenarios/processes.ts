/**
 * Workers that are processes of their own, 1, 2, 4 and 8 of them, on one queue, as deployments have them: whether they share the jobs, or get into each
 * other's way. The queue is filled beforehand; it is done when nothing waits and nothing is active. The CPU of those processes is not measured.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fill } from './scenario.js';
import type { Scenario } from './scenario.js';

const CONCURRENCY = 50;
const POLL_MS = 5;

function processScenario(processes: number): Scenario {
  return {
    name: `processes-${processes}`,
    title: `${processes === 1 ? 'one worker process' : `${processes} worker processes`} on one queue`,
    metrics: ['jobsPerSecond', 'redisCpuMicros'],
    size: { kind: 'calibrated', step: 1, firstProbe: 2_000 },
    isLong: true,
    async run(stage, jobs) {
      const queue = await stage.openQueue({ removeOnComplete: true });
      await fill(queue, jobs);
      const children = await stage.openWorkerProcesses(processes, CONCURRENCY);
      const watch = stage.stopwatch();
      watch.start();
      for (const child of children) child.send('run');
      for (let left = jobs; left > 0;) {
        await sleep(POLL_MS);
        const { waiting = 0, active = 0 } = await queue.getJobCounts('waiting', 'active');
        left = waiting + active;
      }
      watch.stop();
      await stage.expectCounts(queue, {});
      return watch.sample(jobs);
    },
  };
}

export const processScenarios: readonly Scenario[] = [1, 2, 4, 8].map(processScenario);
