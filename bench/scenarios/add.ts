/**
 * The producing side: jobs added per second while no worker runs. The clock runs from the first measured call to the
 * resolution of the last one; a short warm-up on the same queue comes before it and is not counted. Building the
 * arguments is inside the clock, as it is for a user. A run ends with a look at Redis: all jobs added must be waiting.
 */
import type { JobData, QueueLike } from '../adapters/library.js';
import { throughputMetrics } from '../measure.js';
import { bulkOf, nestedPayload, tinyPayload } from './scenario.js';
import type { Scenario } from './scenario.js';

type AddJobs = (queue: QueueLike, jobs: number) => Promise<void>;

/** Adds one job, waits for the answer, adds the next. */
function oneAtATime(payloadOf: (i: number) => JobData): AddJobs {
  return async (queue, jobs) => {
    for (let i = 0; i < jobs; i += 1) await queue.add('job', payloadOf(i));
  };
}

/** Keeps `lanes` calls unanswered: each lane adds its next job as soon as its last one is in. */
function inFlight(lanes: number): AddJobs {
  return async (queue, jobs) => {
    let next = 0;
    const lane = async () => {
      while (next < jobs) await queue.add('job', tinyPayload(next++));
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  };
}

/** One `addBulk` call after the other. */
function bulksOf(chunk: number): AddJobs {
  return async (queue, jobs) => {
    for (let i = 0; i < jobs; i += chunk) await queue.addBulk(bulkOf(i, chunk));
  };
}

interface AddScenario {
  readonly name: string;
  readonly title: string;
  readonly add: AddJobs;
  /** Job counts are multiples of it. */
  readonly step: number;
  readonly warmUp: number;
}

function addScenario({ name, title, add, step, warmUp }: AddScenario): Scenario {
  return {
    name,
    title,
    metrics: throughputMetrics,
    size: { kind: 'calibrated', step, firstProbe: warmUp },
    async run(stage, jobs) {
      const queue = await stage.openQueue();
      await add(queue, warmUp);
      const watch = stage.stopwatch();
      watch.start();
      await add(queue, jobs);
      watch.stop();
      await stage.expectCounts(queue, { waiting: warmUp + jobs });
      return watch.sample(jobs);
    },
  };
}

export const addScenarios: readonly Scenario[] = [
  addScenario({
    name: 'add-tiny',
    title: 'add, one at a time, tiny payload',
    add: oneAtATime(tinyPayload),
    step: 1,
    warmUp: 100,
  }),
  addScenario({
    name: 'add-nested',
    title: 'add, one at a time, 10x10 payload',
    add: oneAtATime(nestedPayload),
    step: 1,
    warmUp: 100,
  }),
  addScenario({
    name: 'add-in-flight',
    title: 'add, 100 in flight',
    add: inFlight(100),
    step: 100,
    warmUp: 500,
  }),
  addScenario({
    name: 'add-bulk-50',
    title: 'addBulk of 50, serial',
    add: bulksOf(50),
    step: 50,
    warmUp: 500,
  }),
  addScenario({
    name: 'add-bulk-1000',
    title: 'addBulk of 1000, serial',
    add: bulksOf(1_000),
    step: 1_000,
    warmUp: 2_000,
  }),
];
