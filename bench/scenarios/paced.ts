/**
 * Jobs that come at an even pace, far below what either side can do, to a worker whose handlers take time: as most programs use a queue. Each kind of job
 * takes another way through it. What is compared is the CPU that Redis and Node spend on a job.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobSettings, Processor } from '../adapters/library.js';
import type { Metric, Sample } from '../measure.js';
import type { Stage } from '../stage.js';
import { tinyPayload } from './scenario.js';
import type { Scenario } from './scenario.js';
import { byId } from './tally.js';

const METRICS: readonly Metric[] = ['redisCpuMicros', 'nodeCpuMicros'];
const PER_SECOND = 100;
const WARM_UP = 20;
const CONCURRENCY = 10;
const HANDLER_MS = 20;
const NOT_YET = 'not yet';

interface Kind {
  readonly name: string;
  readonly title: string;
  readonly options?: (i: number) => JobSettings;
  readonly processor?: Processor;
}

const KINDS: readonly Kind[] = [
  { name: 'paced', title: 'plain' },
  { name: 'paced-delayed', title: 'delayed by 200 ms', options: () => ({ delay: 200 }) },
  { name: 'paced-priority', title: 'with a priority', options: (i) => ({ priority: 1 + (i % 5) }) },
  {
    name: 'paced-retry',
    title: 'that fail once, and are tried again after 100 ms',
    options: () => ({ attempts: 2, backoff: { type: 'fixed', delay: 100 } }),
    processor: async (job) => {
      await handling();
      if (job.attemptsMade === 0) throw new Error(NOT_YET);
      return undefined;
    },
  },
  {
    name: 'paced-progress',
    title: 'that tell their progress twice',
    processor: async (job) => {
      for (const percent of [50, 100]) {
        await handling(0.5);
        await job.updateProgress(percent);
      }
    },
  },
];

// they do not end in step with the adds
const handling = (part = 1) => sleep(HANDLER_MS * part * (0.5 + Math.random()));

export const pacedScenarios: readonly Scenario[] = KINDS.map((kind) => ({
  name: kind.name,
  title: `${PER_SECOND} jobs a second, handlers of ${HANDLER_MS} ms, ${CONCURRENCY} slots: jobs ${kind.title}`,
  metrics: METRICS,
  isLong: true,
  size: { kind: 'fixed', full: 300, quick: 50 },
  run: (stage, jobs) => atAPace(stage, jobs, kind),
}));

async function atAPace(stage: Stage, jobs: number, kind: Kind): Promise<Sample> {
  const queue = await stage.openQueue();
  let tally = stage.tally(WARM_UP);
  const worker = await stage.openWorker({
    processor: kind.processor ?? (() => handling()),
    concurrency: CONCURRENCY,
    onCompleted: (job) => tally.add(job),
    onFailed: (_, error) => {
      if (error.message !== NOT_YET) stage.fail(error);
    },
  });
  stage.run(worker);

  const addAll = async (from: number, count: number) => {
    const adds: Promise<unknown>[] = [];
    const start = performance.now();
    while (adds.length < count) {
      const due = Math.min(Math.floor(((performance.now() - start) * PER_SECOND) / 1_000), count);
      for (let i = from + adds.length; adds.length < due; i += 1)
        adds.push(queue.add('job', tinyPayload(i), kind.options?.(i)));
      await sleep(1);
    }
    await Promise.all(adds);
    await tally.done;
  };
  await addAll(0, WARM_UP);
  tally = stage.tally(jobs, (job) => byId(job) - WARM_UP);
  const watch = stage.stopwatch();
  watch.start();
  await addAll(WARM_UP, jobs);
  watch.stop();
  await stage.expectCounts(queue, { completed: WARM_UP + jobs });
  return watch.sample(jobs);
}
