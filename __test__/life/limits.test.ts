// Limits hold over all workers and processes, and what they let go starts at once.
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Queue } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { redisClient, unlinkContaining } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, Gate, until } from '../support/waiting.js';

const FINISH_MS = 60_000;

/** Idle workers look by themselves after so many seconds; those that sleep for a limit, after 30. */
const DRAIN_DELAY = 60;
/** Well below either. */
const SOON_MS = 20_000;

describe('limits', () => {
  const stage = useStage(chasquimq);
  let redis: Redis;
  beforeEach(() => {
    redis = redisClient();
  });
  afterEach(async () => {
    await unlinkContaining(redis, `${stage.queueName}:`);
    await redis.quit();
  });

  async function start(workers: number, options: object): Promise<Program> {
    const env = { QUEUE: stage.queueName, WORKERS: workers, OPTIONS: JSON.stringify(options) };
    const program = stage.keep(Program.start('limited-worker.mjs', { env }));
    await program.said('ready');
    return program;
  }

  /** Server time, and number of handlers that ran in all processes, at the start of each handler. */
  async function starts(): Promise<{ at: number; running: number }[]> {
    const rows = (await redis.lrange(`${stage.queueName}:starts`, 0, -1)).map((row) => row.split(' ').map(Number));
    return rows.map(([at = 0, running = 0]) => ({ at, running })).sort((a, b) => a.at - b.at);
  }

  /** Plain jobs, jobs with an id of their own, delayed jobs, and jobs that fail once. */
  async function addJobs(queue: Queue, count: number, data: number): Promise<void> {
    const kinds = [
      { name: 'job', opts: {} },
      { name: 'job', opts: { delay: 150 } },
      { name: 'again', opts: { attempts: 2 } },
      { name: 'job', opts: {} },
    ];
    await queue.addBulk(
      Array.from({ length: count }, (_, i) => {
        const { name, opts } = kinds[Math.floor(i / 3) % kinds.length];
        return { name, data, opts: { ...opts, ...(i % 7 === 0 && { jobId: `own-${i}` }) } };
      }),
    );
  }

  const allCompleted = (queue: Queue, count: number) =>
    until('all jobs to complete', async () => (await queue.getCompletedCount()) === count, FINISH_MS);

  /** No more than `max` starts for each window that may have begun since a time before the first start. */
  function expectRate(times: number[], before: number, { max, duration }: { max: number; duration: number }): void {
    times.forEach((at, i) => {
      // A handler starts after its job became active, never before. Two milliseconds are lost in rounding.
      const windows = 1 + Math.floor((at - before + 2) / duration);
      expect(i + 1, `starts within ${at - before} ms`).toBeLessThanOrEqual(max * windows);
    });
  }

  /** The server's time, in whole milliseconds. */
  async function serverTime(): Promise<number> {
    const [seconds, micros] = (await redis.time()).map(Number);
    return (seconds ?? 0) * 1000 + Math.floor((micros ?? 0) / 1000);
  }

  it('of a limiter hold over processes, one of which is killed', async () => {
    const queue = stage.queue();
    const limiter = { max: 7, duration: 100 };
    const options = { concurrency: 4, limiter };
    const programs = await Promise.all([start(2, options), start(2, options), start(1, options)]);
    const before = await serverTime();
    await addJobs(queue, 60, 3);
    await until('some jobs to complete', async () => (await queue.getCompletedCount()) > 15);
    await programs[0]?.kill();
    await start(2, options);
    await allCompleted(queue, 60);
    const times = (await starts()).map(({ at }) => at);
    expect(times.length).toBeGreaterThanOrEqual(75);
    expectRate(times, before, limiter);
  });

  it('of a global rate limit hold over processes whose jobs are very short', async () => {
    const queue = stage.queue();
    const limit = { max: 20, duration: 150 };
    await queue.setGlobalRateLimit(limit.max, limit.duration);
    await Promise.all([start(2, { concurrency: 50 }), start(2, { concurrency: 1 })]);
    const before = await serverTime();
    await addJobs(queue, 150, 0);
    await allCompleted(queue, 150);
    const times = (await starts()).map(({ at }) => at);
    expectRate(times, before, limit);
    // And what the limit lets start does start: a window is used for more than a start or two, on a machine that is slow, too.
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeLessThan((times.length / 3) * limit.duration);
  });

  it('of a global concurrency hold over processes', async () => {
    const queue = stage.queue();
    await queue.setGlobalConcurrency(3);
    await Promise.all([start(2, { concurrency: 5 }), start(2, { concurrency: 1 }), start(1, { concurrency: 2 })]);
    await addJobs(queue, 120, 2);
    await allCompleted(queue, 120);
    expect(Math.max(...(await starts()).map(({ running }) => running))).toBe(3);
  });

  it('give the place of a job that ends to another worker at once', async () => {
    const queue = stage.queue();
    const gates = [new Gate(), new Gate()];
    await queue.setGlobalConcurrency(1);
    const workers = gates.map((gate) => stage.worker(() => gate.opened, { drainDelay: DRAIN_DELAY }));
    const logs = workers.map((worker) => new EventLog(worker, ['active', 'completed']));
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    await queue.add('job', {});
    await until('a start', () => logs.some((log) => log.names.includes('active')));
    const [holder, other] = logs[0]?.names.includes('active') ? [0, 1] : [1, 0];
    await queue.add('job', {});
    const pausing = workers[holder]?.pause();
    gates[holder]?.open();
    await pausing;
    await logs[other]?.get('active', 1, SOON_MS);
    gates[other]?.open();
    await logs[other]?.get('completed');
  });

  // lifted-limits-wake: a wanted difference (docs/differences.md)
  it.each([
    ['raised', (queue: Queue) => queue.setGlobalConcurrency(4)],
    ['lifted', (queue: Queue) => queue.removeGlobalConcurrency()],
  ])('of concurrency that are %s let jobs start at once, in all workers', async (_, change) => {
    const queue = stage.queue();
    const gate = stage.gate();
    await queue.setGlobalConcurrency(1);
    const logs = [1, 2].map(
      () =>
        new EventLog(
          stage.worker(() => gate.opened, { concurrency: 2, drainDelay: DRAIN_DELAY }),
          ['active'],
        ),
    );
    await queue.addBulk(Array.from({ length: 4 }, () => ({ name: 'job', data: 0 })));
    await until('a start', () => logs.some((log) => log.names.length === 1));
    await change(queue);
    await until('both workers to be full', () => logs.every((log) => log.names.length === 2), SOON_MS);
  });

  it.each([
    ['ended', (queue: Queue) => queue.removeRateLimitKey(), 1],
    ['raised', (queue: Queue) => queue.setGlobalRateLimit(10, 60_000), 2],
    ['lifted', (queue: Queue) => queue.removeGlobalRateLimit(), 2],
  ])('of rate that are %s wake workers that sleep', async (_, change, expected) => {
    const queue = stage.queue();
    const gate = stage.gate();
    await queue.setGlobalRateLimit(1, 60_000);
    const workers = [1, 2].map(() => stage.worker(() => gate.opened, { concurrency: 2, drainDelay: DRAIN_DELAY }));
    const logs = workers.map((worker) => new EventLog(worker, ['active', 'drained']));
    const started = () => logs.reduce((sum, log) => sum + log.all('active').length, 0);
    await queue.addBulk(Array.from({ length: 4 }, () => ({ name: 'job', data: 0 })));
    await until('all to be refused', () => started() === 1 && logs.every((log) => log.names.includes('drained')));
    await change(queue);
    if (expected === 2) await until('both workers to be full', () => started() === 4, SOON_MS);
    else await until('another start', () => started() === 2, SOON_MS);
  });

  it('that are resumed or closed around lose no job', async () => {
    const queue = stage.queue();
    const limiter = { max: 5, duration: 20 };
    let ran = 0;
    const process = async () => void ran++;
    await queue.addBulk(Array.from({ length: 100 }, (_, data) => ({ name: 'job', data })));
    const steady = stage.worker(process, { limiter, concurrency: 2 });
    for (let round = 0; round < 6; round++) {
      const worker = stage.worker(process, { limiter, concurrency: 3 });
      await until('some jobs to run', () => ran > round * 10);
      await (round % 2 ? queue.pause() : steady.pause());
      await worker.close();
      await (round % 2 ? queue.resume() : steady.resume());
    }
    await allCompleted(queue, 100);
    expect(ran).toBe(100);
  });
});
