/**
 * A queue with priorities end to end: jobs are added by `addBulk` of 1000 with the priorities 1 to 10 in turn, while no
 * worker runs; then a connected worker (concurrency 100, default retention) is told to run. The clock runs from the first
 * call to the last `completed` event. A run fails when a job starts after one that should have come later.
 */
import { throughputMetrics } from '../measure.js';
import { fill } from './scenario.js';
import type { Scenario } from './scenario.js';

const PRIORITIES = 10;

export const priorityScenario: Scenario = {
  name: 'priority',
  title: 'priority: add, process in order',
  metrics: throughputMetrics,
  size: { kind: 'calibrated', step: 1, firstProbe: 1_000 },
  async run(stage, jobs) {
    const queue = await stage.openQueue();
    const completions = stage.tally(jobs);
    let latest = 0;
    const worker = await stage.openWorker({
      processor: async (job) => {
        if (job.priority < latest) stage.fail(new Error(`priority ${job.priority} started after ${latest}`));
        latest = job.priority;
      },
      concurrency: 100,
      onCompleted: completions.add,
    });

    const watch = stage.stopwatch();
    watch.start();
    await fill(queue, jobs, { optionsOf: (i) => ({ priority: 1 + (i % PRIORITIES) }) });
    watch.stop();
    await stage.expectCounts(queue, { prioritized: jobs });

    watch.start();
    stage.run(worker);
    await completions.done;
    watch.stop();
    await stage.expectCounts(queue, { completed: jobs });
    return watch.sample(jobs);
  },
};
