/**
 * The consuming side: one worker, a handler that does nothing, a queue filled beforehand by `addBulk` of 1000.
 * A job counts at its `completed` event, which both libraries emit only after the completion is stored in Redis.
 * The queue holds warm-up jobs and measured jobs alike. The clock starts at the end of the event loop turn in which the
 * last warm-up job completes, stops when the last job of all does, and exactly the jobs completed in between are counted:
 * a library that reports completions in batches gains nothing from a batch that straddles the start.
 */
import type { JobSettings, JobState, WorkerSettings } from '../adapters/library.js';
import { throughputMetrics } from '../measure.js';
import type { Sample } from '../measure.js';
import type { Stage } from '../stage.js';
import { fill } from './scenario.js';
import type { Contents, Scenario } from './scenario.js';

interface WorkerScenario {
  readonly name: string;
  readonly title: string;
  readonly concurrency: number;
  readonly retention: JobSettings;
  readonly firstProbe: number;
}

function workerScenario({ name, title, concurrency, retention, firstProbe }: WorkerScenario): Scenario {
  return {
    name,
    title,
    metrics: throughputMetrics,
    size: { kind: 'calibrated', step: 1, firstProbe },
    run: (stage, jobs) => processAll(stage, jobs, { concurrency, retention, processor: async () => undefined }),
  };
}

interface Work {
  readonly concurrency: number;
  readonly retention: JobSettings;
  readonly optionsOf?: Contents['optionsOf'];
  readonly group?: WorkerSettings['group'];
  readonly metrics?: WorkerSettings['metrics'];
  processor(): Promise<unknown>;
}

/** A tenth is enough for a worker to find its stride, ten rounds of its slots are needed where a tenth is little. */
export function warmUpOf(jobs: number, concurrency: number): number {
  return Math.max(Math.ceil(jobs / 10), concurrency * 10, 100);
}

/** Runs warm-up and measured jobs, and samples the measured ones. */
export async function processAll(stage: Stage, jobs: number, work: Work): Promise<Sample> {
  const { concurrency, retention, processor, optionsOf, group, metrics } = work;
  const warmUp = warmUpOf(jobs, concurrency);
  const total = warmUp + jobs;
  const queue = await stage.openQueue(retention);
  await fill(queue, total, { optionsOf });

  const watch = stage.stopwatch();
  const completions = stage.tally(total);
  let beforeClock = total;
  const startClock = () => {
    if (completions.count === total) return; // too few jobs to measure anything; calibration asks for more
    beforeClock = completions.count;
    watch.start();
  };
  const worker = await stage.openWorker({
    processor,
    concurrency,
    group,
    metrics,
    onCompleted: (job) => {
      completions.add(job);
      if (completions.count === warmUp) setImmediate(startClock);
    },
  });
  stage.run(worker);
  await completions.done;
  watch.stop();

  const kept: Partial<Record<JobState, number>> = retention.removeOnComplete ? {} : { completed: total };
  await stage.expectCounts(queue, kept);
  return watch.sample(total - beforeClock);
}

export const workerScenarios: readonly Scenario[] = [
  workerScenario({
    name: 'worker-100-remove',
    title: 'worker, concurrency 100, removeOnComplete',
    concurrency: 100,
    retention: { removeOnComplete: true },
    firstProbe: 2_000,
  }),
  workerScenario({
    name: 'worker-100-keep',
    title: 'worker, concurrency 100, default retention',
    concurrency: 100,
    retention: {},
    firstProbe: 2_000,
  }),
  workerScenario({
    name: 'worker-1-remove',
    title: 'worker, concurrency 1, removeOnComplete',
    concurrency: 1,
    retention: { removeOnComplete: true },
    firstProbe: 300,
  }),
  workerScenario({
    name: 'worker-1-keep',
    title: 'worker, concurrency 1, default retention',
    concurrency: 1,
    retention: {},
    firstProbe: 300,
  }),
];
