/**
 * Latency under load, in an open loop: jobs are added at their times, whether or not those before are done, and a latency counts from the time intended. A side that falls behind
 * is not spared the jobs that it kept waiting. Both sides get the same rates: 10, 50 and 90 % of what the base does as it comes, adding and processing in
 * this one process, which is measured once for each server. From the intended time to the handler's first line, and from there to the recorded completion.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { quantile } from '../statistics.js';
import type { Server } from '../server.js';
import type { Stage } from '../stage.js';
import { tinyPayload } from './scenario.js';
import type { Scenario } from './scenario.js';
import { byData } from './tally.js';

const CONCURRENCY = 50;
const PROBED_JOBS = 3_000;
const LANES = 50;

/** Jobs a second, by the server; of the side that runs first, which is the plain base. */
const capacities = new WeakMap<Server, number>();

async function measureCapacity(stage: Stage): Promise<number> {
  const queue = await stage.openQueue({ removeOnComplete: true });
  const completions = stage.tally(PROBED_JOBS, byData);
  const worker = await stage.openWorker({
    processor: async () => undefined,
    concurrency: CONCURRENCY,
    onCompleted: completions.add,
  });
  stage.run(worker);
  const begin = performance.now();
  let next = 0;
  const lane = async () => {
    while (next < PROBED_JOBS) await queue.add('job', tinyPayload(next++));
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await completions.done;
  const perSecond = PROBED_JOBS / ((performance.now() - begin) / 1e3);
  await worker.close();
  return perSecond;
}

function openLoopScenario(percent: number): Scenario {
  return {
    name: `open-loop-${percent}`,
    title: `latency at ${percent} % of the base's capacity`,
    metrics: ['latencyP50Ms', 'latencyP99Ms', 'latencyP999Ms', 'recordedP50Ms', 'recordedP99Ms'],
    // milliseconds, not jobs
    size: { kind: 'fixed', full: 3_000, quick: 1_000 },
    isLong: true,
    async run(stage, ms) {
      const capacity = capacities.get(stage.server) ?? (await measureCapacity(stage));
      capacities.set(stage.server, capacity);
      const rate = (capacity * percent) / 100;
      const jobs = Math.max(Math.round((rate * ms) / 1e3), 1);
      const queue = await stage.openQueue({ removeOnComplete: true });
      const [intended, started, recorded]: number[][] = [[], [], []];
      const completions = stage.tally(jobs, byData);
      const worker = await stage.openWorker({
        processor: async (job) => {
          started[byData(job)] = performance.now();
        },
        concurrency: CONCURRENCY,
        onCompleted: (job) => {
          recorded[byData(job)] = performance.now();
          completions.add(job);
        },
      });
      stage.run(worker);
      const begin = performance.now();
      const adds: Promise<unknown>[] = [];
      while (adds.length < jobs) {
        const due = Math.min(Math.floor(((performance.now() - begin) * rate) / 1e3) + 1, jobs);
        for (let i = adds.length; i < due; i += 1) {
          intended[i] = begin + (i * 1e3) / rate;
          adds.push(queue.add('job', tinyPayload(i)));
        }
        await nextTurn();
      }
      await Promise.all([...adds, completions.done]);
      const seconds = (performance.now() - begin) / 1e3;
      await stage.expectCounts(queue, {});

      const starts = intended.map((time, i) => (started[i] ?? NaN) - time);
      const ends = started.map((time, i) => (recorded[i] ?? NaN) - time);
      return {
        jobs,
        seconds,
        values: {
          latencyP50Ms: quantile(starts, 0.5),
          latencyP99Ms: quantile(starts, 0.99),
          latencyP999Ms: quantile(starts, 0.999),
          recordedP50Ms: quantile(ends, 0.5),
          recordedP99Ms: quantile(ends, 0.99),
        },
      };
    },
  };
}

export const openLoopScenarios: readonly Scenario[] = [10, 50, 90].map(openLoopScenario);
