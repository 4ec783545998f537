/**
 * Job schedulers: as many as there are jobs, with `every`, each of which runs once, a second's worth of 2,000 of them after
 * the other; one worker of concurrency 100. What is measured is how late a job's handler starts after the time for which
 * it was scheduled, and what an iteration costs: taking the job, making the one that follows, completing it. Making
 * the schedulers is not measured; how long that takes is tried on some that are removed again, so that the first run comes
 * when all are there.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobLike, QueueLike } from '../adapters/library.js';
import { quantile } from '../statistics.js';
import type { Scenario } from './scenario.js';
import { Tally } from './tally.js';

const IN_FLIGHT = 100;
const PROBED = 200;
const PER_SECOND = 2_000;
/** No scheduler runs twice within a run. */
const EVERY_MS = 3_600_000;
/** Before the first run, so that the worker is waiting. */
const MARGIN_MS = 500;

export const schedulersScenario: Scenario = {
  name: 'schedulers',
  title: 'job schedulers: how late, and what a run costs',
  metrics: ['latencyP50Ms', 'latencyP99Ms', 'nodeCpuMicros', 'redisCpuMicros'],
  size: { kind: 'fixed', full: 10_000, quick: 2_000 },
  async run(stage, jobs) {
    const queue = await stage.openQueue();
    const begin = performance.now();
    await upsertAll(queue, PROBED, () => Date.now() + EVERY_MS);
    for (let i = 0; i < PROBED; i += 1) await queue.removeJobScheduler(`s${i}`);
    const msEach = (performance.now() - begin) / PROBED;

    const completions = new Tally(jobs);
    const lateness: number[] = [];
    const worker = await stage.openWorker({
      processor: async ({ id = '' }: JobLike) => {
        lateness.push(Date.now() - Number(id.slice(id.lastIndexOf(':') + 1)));
      },
      concurrency: 100,
      onCompleted: completions.add,
    });
    stage.run(worker);

    const firstRun = Math.ceil(Date.now() + jobs * msEach + MARGIN_MS);
    await upsertAll(queue, jobs, (i) => firstRun + Math.floor((i * 1_000) / PER_SECOND));
    if (Date.now() > firstRun) throw new Error('the schedulers were not there in time');
    await sleep(firstRun - Date.now() - MARGIN_MS / 10);

    const watch = stage.stopwatch();
    watch.start();
    await completions.done;
    watch.stop();
    await stage.expectCounts(queue, { completed: jobs, delayed: jobs });
    const { seconds, values } = await watch.sample(jobs);
    const { nodeCpuMicros, redisCpuMicros } = values;
    const latencies = { latencyP50Ms: quantile(lateness, 0.5), latencyP99Ms: quantile(lateness, 0.99) };
    return { jobs, seconds, values: { ...latencies, nodeCpuMicros, redisCpuMicros } };
  },
};

async function upsertAll(queue: QueueLike, count: number, startOf: (i: number) => number): Promise<void> {
  for (let from = 0; from < count; from += IN_FLIGHT) {
    const some = Array.from({ length: Math.min(IN_FLIGHT, count - from) }, (_, k) => from + k);
    await Promise.all(some.map((i) => queue.upsertJobScheduler(`s${i}`, { every: EVERY_MS, startDate: startOf(i) })));
  }
}
