/**
 * Delayed jobs end to end, without the waiting: jobs are added by `addBulk` of 1000 with delays spread over 1 to 500 ms,
 * while no worker runs; when the last of them is due, a connected worker (concurrency 100, default retention) is told to
 * run and finds them all due. The clock runs while they are added, and again from the start of the worker to the last
 * `completed` event; it rests in between, because there neither library does anything but let time pass, and counting
 * it would pull every ratio towards one. What is measured is therefore the work of delaying, promoting and processing a
 * job; how punctually a due job is started on an idle queue is not.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { throughputMetrics } from '../measure.js';
import { fill } from './scenario.js';
import type { Scenario } from './scenario.js';

const LONGEST_DELAY_MS = 500;
/** Clocks of server and client count in whole milliseconds. */
const MARGIN_MS = 20;

export const delayedScenario: Scenario = {
  name: 'delayed',
  title: 'delayed: add, promote, process',
  metrics: throughputMetrics,
  size: { kind: 'calibrated', step: 1, firstProbe: 1_000 },
  async run(stage, jobs) {
    const queue = await stage.openQueue();
    const completions = stage.tally(jobs);
    const worker = await stage.openWorker({
      processor: async () => undefined,
      concurrency: 100,
      onCompleted: completions.add,
    });

    const watch = stage.stopwatch();
    watch.start();
    await fill(queue, jobs, { optionsOf: (i) => ({ delay: 1 + (i % LONGEST_DELAY_MS) }) });
    watch.stop();
    await stage.expectCounts(queue, { delayed: jobs });
    await sleep(LONGEST_DELAY_MS + MARGIN_MS);

    watch.start();
    stage.run(worker);
    await completions.done;
    watch.stop();
    await stage.expectCounts(queue, { completed: jobs });
    return watch.sample(jobs);
  },
};
