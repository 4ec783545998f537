/**
 * Job schedulers: as many as there are jobs, with `every`, each of which runs once, a second's worth of 2,000 of them after
 * the other; one worker of concurrency 100. What is measured is how late a job's handler starts after the time for which
 * it was scheduled, and what an iteration costs: taking the job, making the one that follows, completing it. Making
 * the schedulers is not measured; how long that takes is tried on some that are removed again, so that the first run comes
 * when all are there.
 *
 * Beside it, what such jobs cost without schedulers: delayed jobs with the same times, whose adding is measured too, since it
 * is what making the next iteration replaces. What scheduling costs is the difference of the two.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobLike, QueueLike } from '../adapters/library.js';
import { quantile } from '../statistics.js';
import type { Scenario } from './scenario.js';
import type { NumberOf } from './tally.js';

const IN_FLIGHT = 100;
const PROBED = 200;
const PER_SECOND = 2_000;
/** No scheduler runs twice within a run. */
const EVERY_MS = 3_600_000;
/** Before the first run, so that the worker is waiting. */
const MARGIN_MS = 500;

type Make = (queue: QueueLike, at: readonly number[]) => Promise<void>;

const upsertAll: Make = (queue, at) =>
  inFlight(at, (i, time) => queue.upsertJobScheduler(`s${i}`, { every: EVERY_MS, startDate: time }));

const addAll: Make = (queue, at) =>
  inFlight(at, (i, time) => queue.add(`s${i}`, {}, { delay: Math.max(time - Date.now(), 0) }));

/** A scheduler's jobs have its name, and ids with their times. */
const byName: NumberOf = ({ name }) => Number(name.slice(1));

function schedulerScenario(name: string, title: string, make: Make, isMakingMeasured: boolean): Scenario {
  return {
    name,
    title,
    metrics: ['latencyP50Ms', 'latencyP99Ms', 'nodeCpuMicros', 'redisCpuMicros'],
    size: { kind: 'fixed', full: 10_000, quick: 2_000 },
    async run(stage, jobs) {
      const queue = await stage.openQueue();
      const begin = performance.now();
      const later = Array.from({ length: PROBED }, () => Date.now() + EVERY_MS);
      await upsertAll(queue, later);
      for (let i = 0; i < PROBED; i += 1) await queue.removeJobScheduler(`s${i}`);
      const msEach = (performance.now() - begin) / PROBED;

      const completions = stage.tally(jobs, byName);
      const lateness: number[] = [];
      const worker = await stage.openWorker({
        processor: async ({ timestamp, opts }: JobLike) => {
          lateness.push(Date.now() - timestamp - (opts.delay ?? 0));
        },
        concurrency: 100,
        onCompleted: completions.add,
      });
      stage.run(worker);

      const watch = stage.stopwatch();
      const firstRun = Math.ceil(Date.now() + jobs * msEach + MARGIN_MS);
      if (isMakingMeasured) watch.start();
      await make(
        queue,
        Array.from({ length: jobs }, (_, i) => firstRun + Math.floor((i * 1_000) / PER_SECOND)),
      );
      watch.stop();
      if (Date.now() > firstRun) throw new Error('the jobs were not there in time');
      await sleep(firstRun - Date.now() - MARGIN_MS / 10);

      watch.start();
      await completions.done;
      watch.stop();
      await stage.expectCounts(queue, { completed: jobs, delayed: isMakingMeasured ? 0 : jobs });
      const { seconds, values } = await watch.sample(jobs);
      const { nodeCpuMicros, redisCpuMicros } = values;
      const latencies = { latencyP50Ms: quantile(lateness, 0.5), latencyP99Ms: quantile(lateness, 0.99) };
      return { jobs, seconds, values: { ...latencies, nodeCpuMicros, redisCpuMicros } };
    },
  };
}

async function inFlight(at: readonly number[], start: (i: number, time: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < at.length; from += IN_FLIGHT) {
    await Promise.all(at.slice(from, from + IN_FLIGHT).map((time, k) => start(from + k, time)));
  }
}

export const schedulerScenarios: readonly Scenario[] = [
  schedulerScenario('schedulers', 'job schedulers: how late, and what a run costs', upsertAll, false),
  schedulerScenario('schedulers-without', 'the same jobs, added one by one', addAll, true),
];
