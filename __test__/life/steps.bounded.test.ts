// However much ends at once, and however large results and errors are, no script keeps the server from others for long.
import { describe, expect, it } from 'vitest';
import { Queue, Worker, type Job, type JobsOptions } from '../../src/index.js';
import { useOwnServer } from '../support/use-own-server.js';
import { Gate, EventLog, until } from '../support/waiting.js';
import { watchdog } from '../support/watchdog.js';

const LONG_MS = 100_000;

describe('steps of what ends at once', () => {
  const own = useOwnServer();

  /** Runs `count` jobs that all end in one tick, and gives them with what they became. */
  async function endAtOnce(name: string, count: number, end: (i: number) => unknown): Promise<EventLog> {
    const queue = new Queue(name, { connection: own.connection });
    const gate = new Gate();
    let started = 0;
    const worker = new Worker(
      name,
      async (job: Job<number>) => {
        if (++started === count) gate.open();
        await gate.opened;
        return end(job.data);
      },
      { connection: own.connection, concurrency: count },
    );
    const log = new EventLog(worker, ['completed', 'failed', 'error']);
    // what ends, and its events, is work for this process, too
    const dog = await watchdog(own.redis, { mostPause: Infinity, about: name });
    for (let i = 0; i < count; i += 1_000) {
      const numbers = Array.from({ length: Math.min(1_000, count - i) }, (_, k) => i + k);
      await queue.addBulk(numbers.map((data) => ({ name: 'job', data })));
    }
    await log.when('all to end', () => log.entries.length >= count, LONG_MS);
    await dog.end();
    await worker.close();
    await queue.close();
    return log;
  }

  const text = (i: number, length: number) => `${i}`.padEnd(length, 'r');

  it.each<[string, (i: number) => JobsOptions, (queue: Queue) => Promise<number>]>([
    ['expired', () => ({ expireAfter: new Date(Date.now() - 1_000) }), (queue) => queue.getFailedCount()],
    [
      'without room in their keys',
      (i) => ({ limits: [i % 40, 40 + (i % 7)].map((key) => ({ key: `${key}`, max: 1, duration: 3_600_000 })) }),
      async (queue) => (await queue.getDelayedCount()) + (await queue.getFailedCount()),
    ],
  ])('20,000 jobs: %s', async (name, optsOf, countSettled) => {
    const queue = new Queue(name, { connection: own.connection });
    if (name === 'expired') await queue.pause();
    for (let i = 0; i < 20; i++) {
      await queue.addBulk(
        Array.from({ length: 1_000 }, (_, k) => ({
          name: 'job',
          data: k,
          opts: k % 2 ? optsOf(k) : { ...optsOf(k), lifo: true },
        })),
      );
    }
    const dog = await watchdog(own.redis, { about: name });
    const worker = new Worker(name, () => Promise.reject(new Error('once')), { connection: own.connection });
    await until('all to be settled', async () => (await countSettled(queue)) === 20_000, LONG_MS);
    await dog.end();
    await worker.close();
    await queue.close();
  });

  it.each([
    ['300 results of 250 KB', 300, 250_000],
    ['2,000 results of 10 KB', 2_000, 10_000],
    ['8,000 results of 1 KB', 8_000, 1_000],
  ])('%s', async (name, count, length) => {
    const log = await endAtOnce(name, count, (i) => text(i, length));
    const ended = log.all<[Job<number>, string]>('completed');
    expect(ended.length).toBe(count);
    expect(ended.every(([job, result]) => result === text(job.data, length))).toBe(true);
    // in the queue, too; compared without toEqual, whose report of a difference would be as large
    const queue = new Queue(name, { connection: own.connection });
    const stored = await queue.getJobs(['completed']);
    expect(stored.length).toBe(count);
    expect(stored.every((job) => job.returnvalue === text(job.data as number, length))).toBe(true);
    expect(await queue.getJobCounts('active', 'completed')).toEqual({ active: 0, completed: count });
    await queue.close();
  });

  it.each([
    ['20,000 failures', 20_000, 10],
    ['60 failures of 300 KB', 60, 300_000],
  ])('%s', async (name, count, length) => {
    const log = await endAtOnce(name, count, (i) => {
      const error = new Error(text(i, length));
      error.stack = 'none';
      throw error;
    });
    const ended = log.all<[Job<number>, Error]>('failed');
    expect(ended.length).toBe(count);
    expect(ended.every(([job, error]) => error.message === text(job.data, length))).toBe(true);
    const queue = new Queue(name, { connection: own.connection });
    expect(await queue.getJobCounts('active', 'failed')).toEqual({ active: 0, failed: count });
    const stored = await queue.getFailed(0, 99);
    expect(stored.every((job) => job.failedReason === text(job.data as number, length))).toBe(true);
    await queue.close();
  });

  it('as many records as there are slots start, are tried again, and complete with progress', async () => {
    const [name, count] = ['records', 1_500];
    const queue = new Queue<number>(name, { connection: own.connection });
    const numbers = Array.from({ length: count }, (_, i) => i);
    await queue.addBulk(numbers.map((data) => ({ name: 'job', data, opts: { jobId: `id-${data}`, attempts: 2 } })));
    const dog = await watchdog(own.redis, { mostPause: Infinity, about: name });
    const started: number[] = [];
    const [all, again] = [new Gate(), new Gate()];
    const worker = new Worker<number>(
      name,
      async (job) => {
        started.push(job.data);
        if (started.length === count) all.open();
        if (started.length === 2 * count) again.open();
        await all.opened;
        if (job.attemptsMade === 0) throw new Error('once more');
        await job.updateProgress(job.data);
        await again.opened;
      },
      { connection: own.connection, concurrency: count },
    );
    const log = new EventLog(worker, ['completed', 'error']);
    await log.when('all to end', () => log.entries.length >= count, LONG_MS);
    await dog.end();
    expect(started.slice(0, count)).toEqual(numbers);
    expect(log.all<[Job<number>]>('completed').length).toBe(count);
    expect(await queue.getJobCounts('active', 'completed', 'failed')).toEqual({
      active: 0,
      completed: count,
      failed: 0,
    });
    const stored = await queue.getCompleted();
    expect(stored.every((job) => job.progress === job.data && job.attemptsStarted === 2)).toBe(true);
    await worker.close();
    await queue.close();
  });

  it('jobs with much data are taken a step at a time', async () => {
    const queue = new Queue('much-data', { connection: own.connection });
    const data = Array.from({ length: 400 }, (_, i) => text(i, 200_000));
    for (let i = 0; i < data.length; i += 50) {
      const some = data.slice(i, i + 50);
      await queue.addBulk(some.map((data, k) => ({ name: 'job', data, opts: (i + k) % 2 ? { priority: 1 } : {} })));
    }
    const dog = await watchdog(own.redis, { mostPause: Infinity, about: 'much-data' });
    const seen = new Set<string>();
    const worker = new Worker('much-data', async (job: Job<string>) => void seen.add(job.data), {
      connection: own.connection,
      concurrency: 400,
    });
    const log = new EventLog(worker, ['completed', 'failed', 'error']);
    await log.when('all to end', () => log.entries.length >= data.length, LONG_MS);
    await dog.end();
    expect(log.all('completed').length).toBe(data.length);
    expect(data.every((text) => seen.has(text))).toBe(true);
    await worker.close();
    await queue.close();
  });
});
