/**
 * What control costs, and what it spares. A worker that measures how late its jobs are, and jobs that expire and may take so long, stand beside the same
 * jobs without, as BullMQ knows neither. Jobs of one name are counted and removed in a large queue: with BullMQ one reads the queue page by page, and
 * removes job by job.
 */
import type { JobState, Named, QueueLike } from '../adapters/library.js';
import { throughputMetrics } from '../measure.js';
import type { Scenario } from './scenario.js';
import { processAll } from './worker.js';

const HOUR_MS = 3_600_000;
const WEEK_MINUTES = 10_080;

const base = {
  metrics: throughputMetrics,
  size: { kind: 'calibrated', step: 1, firstProbe: 2_000 },
  isLong: true,
} as const;

const work = { concurrency: 100, retention: { removeOnComplete: true }, processor: async () => undefined };

const JOBS = 100_000;
const PAGE = 1_000;
const STATES: readonly JobState[] = ['waiting'];
/** One job in a hundred has the name that is looked for. */
const RARE: Named = { states: [...STATES], name: 'rare' };
const EVERY = 100;

async function fillWithRare(queue: QueueLike, jobs: number): Promise<void> {
  for (let from = 0; from < jobs; from += PAGE) {
    const nameOf = (i: number) => (i % EVERY === 0 ? RARE.name : 'job');
    await queue.addBulk(Array.from({ length: PAGE }, (_, k) => ({ name: nameOf(from + k), data: { i: from + k } })));
  }
}

async function countOf(queue: QueueLike, jobs: number): Promise<number> {
  if (queue.countJobs) return queue.countJobs(RARE);
  let count = 0;
  for (let from = 0; from < jobs; from += PAGE) {
    const page = await queue.getJobs([...STATES], from, from + PAGE - 1, true);
    count += page.filter(({ name }) => name === RARE.name).length;
  }
  return count;
}

async function removeOf(queue: QueueLike, jobs: number): Promise<number> {
  if (queue.removeJobs) return queue.removeJobs(RARE);
  let count = 0;
  // from the end, as what is removed moves what is behind it
  for (let from = jobs - PAGE; from >= 0; from -= PAGE) {
    const page = await queue.getJobs([...STATES], from, from + PAGE - 1, true);
    const rare = page.filter(({ name }) => name === RARE.name);
    await Promise.all(rare.map((job) => job.remove()));
    count += rare.length;
  }
  return count;
}

type Act = (queue: QueueLike, jobs: number) => Promise<number>;

/** The rate is that of the jobs that are looked at. */
function lookingScenario(name: string, title: string, act: Act, removed: number): Scenario {
  return {
    name,
    title,
    metrics: throughputMetrics,
    size: { kind: 'fixed', full: JOBS, quick: JOBS / 5 },
    isLong: true,
    async run(stage, jobs) {
      const queue = await stage.openQueue();
      await fillWithRare(queue, jobs);
      const watch = stage.stopwatch();
      watch.start();
      const found = await act(queue, jobs);
      watch.stop();
      if (found !== jobs / EVERY) throw new Error(`${found} jobs were found instead of ${jobs / EVERY}`);
      await stage.expectCounts(queue, { waiting: jobs - removed * found });
      return watch.sample(jobs);
    },
  };
}

export const controlScenarios: readonly Scenario[] = [
  {
    ...base,
    name: 'worker-100-latency',
    title: 'worker, concurrency 100, removeOnComplete, metrics: latency measured beside counts',
    run: (stage, jobs) => processAll(stage, jobs, { ...work, metrics: { maxDataPoints: WEEK_MINUTES, latency: true } }),
  },
  {
    ...base,
    name: 'worker-100-deadlines',
    title: 'the same, without metrics: a deadline and a time limit a job beside none',
    run: (stage, jobs) =>
      processAll(stage, jobs, { ...work, optionsOf: () => ({ expireAfter: HOUR_MS, timeout: HOUR_MS }) }),
  },
  lookingScenario('count-named', 'jobs of one name counted in 100,000', countOf, 0),
  lookingScenario('remove-named', '1,000 jobs of one name removed from 100,000', removeOf, 1),
];
