/**
 * Retry end to end: every job fails once and succeeds at its second attempt (`attempts: 2`, no backoff, default
 * retention, concurrency 100). The clock starts when the worker, already connected, is told to run, and stops at the
 * last `completed` event. There is no warm-up inside the run: a library may put retried jobs at the end of the line, and
 * then most failures would lie before the first completion that could start a clock.
 */
import { throughputMetrics } from '../measure.js';
import { fill } from './scenario.js';
import type { Scenario } from './scenario.js';

export const retryScenario: Scenario = {
  name: 'retry',
  title: 'retry: fails once, then succeeds',
  metrics: throughputMetrics,
  size: { kind: 'calibrated', step: 1, firstProbe: 1_000 },
  async run(stage, jobs) {
    const queue = await stage.openQueue({ attempts: 2 });
    await fill(queue, jobs);

    const [failures, completions] = [stage.tally(jobs), stage.tally(jobs)];
    const worker = await stage.openWorker({
      processor: async (job) => {
        if (job.attemptsMade === 0) throw new Error('the first attempt fails');
      },
      concurrency: 100,
      onCompleted: completions.add,
      onFailed: (job, error) => {
        if (job) failures.add(job);
        else stage.fail(error);
      },
    });
    const watch = stage.stopwatch();
    watch.start();
    stage.run(worker);
    await completions.done;
    watch.stop();

    if (failures.count !== jobs) throw new Error(`${failures.count} of ${jobs} jobs have failed, and each does once`);
    await stage.expectCounts(queue, { completed: jobs });
    return watch.sample(jobs);
  },
};
