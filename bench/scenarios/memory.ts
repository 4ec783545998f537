/**
 * Redis memory a job: by how much the server's data grows by 20,000 jobs with a tiny payload, added by `addBulk` of 1000,
 * over what the queue takes while it is empty, divided by their number. Both readings are taken with every connection of
 * the library closed, and when the figure has come to rest. Everything that a library keeps counts: keys, records,
 * indexes, and its event stream at its default length, which is why the number of jobs is fixed.
 */
import { performance } from 'node:perf_hooks';
import type { QueueLike } from '../adapters/library.js';
import type { Stage } from '../stage.js';
import { complete, fill } from './scenario.js';
import type { Scenario } from './scenario.js';

const JOBS = 20_000;
const DELAY_MS = 3_600_000;

type Prepare = (stage: Stage, queue: QueueLike, jobs: number) => Promise<void>;

const waiting: Prepare = async (stage, queue, jobs) => {
  await fill(queue, jobs);
  await stage.expectCounts(queue, { waiting: jobs });
};

const delayed: Prepare = async (stage, queue, jobs) => {
  await fill(queue, jobs, () => ({ delay: DELAY_MS }));
  await stage.expectCounts(queue, { delayed: jobs });
};

const completed: Prepare = async (stage, queue, jobs) => {
  await complete(stage, queue, jobs);
  await stage.expectCounts(queue, { completed: jobs });
};

function memoryScenario(name: string, title: string, prepare: Prepare): Scenario {
  return {
    name,
    title,
    metrics: ['bytesPerJob'],
    size: { kind: 'fixed', full: JOBS, quick: JOBS },
    async run(stage, jobs) {
      const begin = performance.now();
      await stage.openQueue();
      await stage.close();
      const empty = await stage.settledMemory();
      await prepare(stage, await stage.openQueue(), jobs);
      await stage.close();
      const full = await stage.settledMemory();
      return { jobs, seconds: (performance.now() - begin) / 1e3, values: { bytesPerJob: (full - empty) / jobs } };
    },
  };
}

export const memoryScenarios: readonly Scenario[] = [
  memoryScenario('memory-waiting', 'Redis memory, job waiting', waiting),
  memoryScenario('memory-completed', 'Redis memory, job completed, default retention', completed),
  memoryScenario('memory-delayed', 'Redis memory, job delayed', delayed),
];
