/**
 * A server that is farther away than on the same machine: a proxy holds requests back for 0.5, 1 or 5 ms. One, ten or a hundred producers each add a job, wait until
 * it has completed, and add the next; the worker has as many slots. It shows how many round trips one after the other a job takes.
 *
 * Such a closed loop is slow for BullMQ, whatever the slots: its worker is handed a next job with the end of one, but in this loop nothing waits yet when one ends, since
 * the producer adds the next only then. So each job is fetched by a call of its own, and a worker makes one such call after the other. That is why each distance has
 * a backlog, too, in which jobs wait all the time, and ends bring the next.
 */
import { tinyPayload } from './scenario.js';
import type { Scenario } from './scenario.js';
import { processAll } from './worker.js';

const WARM_UP_ROUNDS = 5;
/** BullMQ needs seconds for them. */
const MOST_JOBS = 2_500;
const BACKLOG_CONCURRENCY = 100;

function distanceScenario(delayMs: number, lanes: number): Scenario {
  const perLane = (seconds: number) => Math.max(Math.round(seconds / ((delayMs + 0.5) * 4e-3)), 5);
  const jobsIn = (seconds: number) => Math.min(lanes * perLane(seconds), MOST_JOBS);
  return {
    name: `distance-${delayMs}-${lanes}`,
    title: `server ${delayMs} ms away, ${lanes === 1 ? 'one job' : `${lanes} jobs`} at a time`,
    metrics: ['jobsPerSecond'],
    size: { kind: 'fixed', full: jobsIn(1), quick: jobsIn(0.3) },
    isLong: true,
    async run(stage, jobs) {
      await stage.moveAway(delayMs);
      const queue = await stage.openQueue();
      const waiting = new Map<string, () => void>();
      // a job may be told of before the answer to its add
      const early = new Set<string>();
      const warmUp = lanes * WARM_UP_ROUNDS;
      const completions = stage.tally(warmUp + jobs);
      const worker = await stage.openWorker({
        processor: async () => undefined,
        concurrency: lanes,
        onCompleted: (job) => {
          completions.add(job);
          const id = String(job.id);
          const resolve = waiting.get(id);
          if (resolve) resolve();
          else early.add(id);
          waiting.delete(id);
        },
      });
      stage.run(worker);
      const one = async (i: number) => {
        const id = String((await queue.add('job', tinyPayload(i))).id);
        if (!early.delete(id)) await new Promise<void>((resolve) => waiting.set(id, resolve));
      };
      const all = async (count: number) => {
        let next = 0;
        const lane = async () => {
          while (next < count) await one(next++);
        };
        await Promise.all(Array.from({ length: lanes }, lane));
      };
      await all(warmUp);
      const watch = stage.stopwatch();
      watch.start();
      await all(jobs);
      watch.stop();
      await stage.expectCounts(queue, { completed: warmUp + jobs });
      return watch.sample(jobs);
    },
  };
}

function backlogScenario(delayMs: number): Scenario {
  return {
    name: `distance-${delayMs}-backlog`,
    title: `server ${delayMs} ms away, a backlog, concurrency ${BACKLOG_CONCURRENCY}`,
    metrics: ['jobsPerSecond'],
    size: { kind: 'calibrated', step: 1, firstProbe: 1_000 },
    isLong: true,
    async run(stage, jobs) {
      await stage.moveAway(delayMs);
      return processAll(stage, jobs, {
        concurrency: BACKLOG_CONCURRENCY,
        retention: { removeOnComplete: true },
        processor: async () => undefined,
      });
    },
  };
}

export const distanceScenarios: readonly Scenario[] = [0.5, 1, 5].flatMap((delayMs) => [
  ...[1, 10, 100].map((lanes) => distanceScenario(delayMs, lanes)),
  backlogScenario(delayMs),
]);
