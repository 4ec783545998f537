/**
 * Redis memory a job: by how much the server's data grows by 20,000 jobs, with a tiny payload and with one of 1.5 KB, added by `addBulk` of 1000,
 * over what the queue takes while it is empty, divided by their number. Both readings are taken with every connection of
 * the library closed, and when the figure has come to rest. Everything that a library keeps counts: keys, records,
 * indexes, and its event stream at its default length, which is why the number of jobs is fixed.
 */
import { performance } from 'node:perf_hooks';
import type { QueueLike } from '../adapters/library.js';
import type { Stage } from '../stage.js';
import { complete, fill, nestedPayload } from './scenario.js';
import type { Contents, Scenario } from './scenario.js';

const JOBS = 20_000;
const DELAY_MS = 3_600_000;

type Prepare = (stage: Stage, queue: QueueLike, jobs: number, contents: Contents) => Promise<void>;

const waiting: Prepare = async (stage, queue, jobs, contents) => {
  await fill(queue, jobs, contents);
  await stage.expectCounts(queue, { waiting: jobs });
};

const delayed: Prepare = async (stage, queue, jobs, contents) => {
  await fill(queue, jobs, { ...contents, optionsOf: () => ({ delay: DELAY_MS }) });
  await stage.expectCounts(queue, { delayed: jobs });
};

const completed: Prepare = async (stage, queue, jobs, contents) => {
  await complete(stage, queue, jobs, contents);
  await stage.expectCounts(queue, { completed: jobs });
};

function memoryScenario(name: string, title: string, prepare: Prepare, isNested: boolean): Scenario {
  return {
    name: `memory-${name}${isNested ? '-nested' : ''}`,
    title: `Redis memory, job ${title}, ${isNested ? '10x10' : 'tiny'} payload`,
    metrics: ['bytesPerJob'],
    size: { kind: 'fixed', full: JOBS, quick: JOBS },
    isLong: isNested,
    isOfPlainBase: true,
    async run(stage, jobs) {
      const begin = performance.now();
      await stage.openQueue();
      await stage.close();
      const empty = await stage.settledMemory();
      await prepare(stage, await stage.openQueue(), jobs, isNested ? { payloadOf: nestedPayload } : {});
      await stage.close();
      const full = await stage.settledMemory();
      return { jobs, seconds: (performance.now() - begin) / 1e3, values: { bytesPerJob: (full - empty) / jobs } };
    },
  };
}

export const memoryScenarios: readonly Scenario[] = [false, true].flatMap((isNested) => [
  memoryScenario('waiting', 'waiting', waiting, isNested),
  memoryScenario('completed', 'completed, default retention', completed, isNested),
  memoryScenario('delayed', 'delayed', delayed, isNested),
]);
