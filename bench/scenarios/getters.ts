/**
 * Looking at a large queue: `getJobs` of 1,000 out of 100,000, at the head, in the middle and at the tail, in turns, by
 * one caller who waits for each answer. The rate is that of the jobs read; filling the queue is outside the clock.
 */
import type { JobState, QueueLike } from '../adapters/library.js';
import type { Stage } from '../stage.js';
import { complete, fill } from './scenario.js';
import type { Scenario } from './scenario.js';

const JOBS = 100_000;
const PAGE = 1_000;
/** Rounds go on until the clock has run so long, on either side. */
const LEAST_MS = 700;
const DELAY_MS = 3_600_000;

type Prepare = (stage: Stage, queue: QueueLike, jobs: number) => Promise<void>;

function getScenario(state: JobState, prepare: Prepare): Scenario {
  return {
    name: `get-${state}`,
    title: `getJobs of 1,000 out of 100,000 ${state}`,
    metrics: ['jobsPerSecond'],
    size: { kind: 'fixed', full: JOBS, quick: JOBS / 5 },
    async run(stage, jobs) {
      const queue = await stage.openQueue();
      await prepare(stage, queue, jobs);
      await stage.expectCounts(queue, { [state]: jobs });
      let [read, wanted] = [0, 0];
      const watch = stage.stopwatch();
      watch.start();
      for (const begin = performance.now(); performance.now() - begin < LEAST_MS;) {
        for (const start of [0, (jobs - PAGE) / 2, jobs - PAGE]) {
          wanted += PAGE;
          read += (await queue.getJobs([state], start, start + PAGE - 1, true)).length;
        }
      }
      watch.stop();
      if (read !== wanted) throw new Error(`${read} jobs were read instead of ${wanted}`);
      return watch.sample(read);
    },
  };
}

export const getScenarios: readonly Scenario[] = [
  getScenario('waiting', (_, queue, jobs) => fill(queue, jobs)),
  getScenario('completed', (stage, queue, jobs) => complete(stage, queue, jobs)),
  getScenario('delayed', (_, queue, jobs) => fill(queue, jobs, { optionsOf: () => ({ delay: DELAY_MS }) })),
];
