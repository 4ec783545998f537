/**
 * The overhead of one operation: one tiny add and the read of it, thousands of times, each waiting for the last. It is the first figure to move when the critical path of
 * a call grows.
 */
import { throughputMetrics } from '../measure.js';
import type { QueueLike } from '../adapters/library.js';
import { tinyPayload } from './scenario.js';
import type { Scenario } from './scenario.js';

const WARM_UP = 100;

async function addAndRead(queue: QueueLike, i: number): Promise<void> {
  const { id } = await queue.add('job', tinyPayload(i));
  if (id === undefined || !(await queue.getJob(id))) throw new Error('a job that was added cannot be read');
}

export const busyScenario: Scenario = {
  name: 'busy-loop',
  title: 'one add and the read of it, in a loop',
  metrics: throughputMetrics,
  size: { kind: 'calibrated', step: 1, firstProbe: 200 },
  async run(stage, jobs) {
    const queue = await stage.openQueue();
    for (let i = 0; i < WARM_UP; i += 1) await addAndRead(queue, i);
    const watch = stage.stopwatch();
    watch.start();
    for (let i = 0; i < jobs; i += 1) await addAndRead(queue, i);
    watch.stop();
    await stage.expectCounts(queue, { waiting: WARM_UP + jobs });
    return watch.sample(jobs);
  },
};
