// Pins the rate limit of a whole queue, and which of it and a worker's own holds.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

/** Timers and a busy machine start a job this much late, in milliseconds; a worker that slept too long would sleep for 30 s. */
const SLACK_MS = 15_000;

describe.each(libraries)('$name: queue.globalRateLimit', ({ lib }) => {
  const stage = useStage(lib);

  const jobs = (count: number) => Array.from({ length: count }, (_, data) => ({ name: 'job', data }));

  function record(starts: number[]) {
    return async (job: Job) => void starts.push(job.processedOn ?? 0);
  }

  it('is set, read and removed', async () => {
    const queue = stage.queue();
    expect(await queue.getGlobalRateLimit()).toBeNull();
    expect(await queue.setGlobalRateLimit(3, 1000)).toBe(2);
    expect(await queue.getGlobalRateLimit()).toEqual({ max: 3, duration: 1000 });
    expect(await queue.setGlobalRateLimit(4, 500)).toBe(0);
    expect(await queue.getMeta()).toMatchObject({ max: 4, duration: 500 });
    expect(await queue.removeGlobalRateLimit()).toBe(2);
    expect(await queue.removeGlobalRateLimit()).toBe(0);
    expect(await queue.getGlobalRateLimit()).toBeNull();
    expect(await queue.getMeta()).not.toHaveProperty('max');
  });

  it('holds for workers without a limiter, all together', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    await queue.setGlobalRateLimit(2, 200);
    for (let i = 0; i < 3; i++) stage.worker(record(starts), { concurrency: 2 });
    await queue.addBulk(jobs(5));
    await until('all jobs', () => starts.length === 5);
    starts.sort((a, b) => a - b);
    const [first = 0, , third = 0, , fifth = 0] = starts;
    expect(third - first).toBeGreaterThanOrEqual(198);
    expect(fifth - third).toBeGreaterThanOrEqual(198);
    expect(fifth - first).toBeLessThan(2 * 200 + SLACK_MS);
  });

  it.each([
    { max: 3, its: 1, expected: 3 },
    { max: 1, its: 3, expected: 1 },
  ])('of $max comes before the $its of a worker', async ({ max, its, expected }) => {
    const queue = stage.queue();
    const starts: number[] = [];
    await queue.setGlobalRateLimit(max, 60_000);
    stage.worker(record(starts), { limiter: { max: its, duration: 300 } });
    await queue.addBulk(jobs(4));
    await until('the first window', () => starts.length >= expected);
    // The worker's own duration holds, not the queue's.
    const left = await queue.getRateLimitTtl();
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(300);
    expect(starts).toHaveLength(expected);
    await until('the others', () => starts.length === 4);
  });

  it('holds over the duration of a worker whose limiter has nothing else', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    await queue.setGlobalRateLimit(1, 60_000);
    stage.worker(record(starts), { limiter: { duration: 200 } as never });
    await queue.addBulk(jobs(3));
    await until('all jobs', () => starts.length === 3);
    expect((starts[2] ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(398);
  });

  it('is heeded by workers that run already from their next look on', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker((job: Job) => (job.data === 0 ? gate.opened : undefined) as Promise<void>);
    const log = new EventLog(worker, ['active', 'completed', 'drained']);
    await worker.waitUntilReady();
    await queue.addBulk(jobs(4));
    await log.get('active');
    await queue.setGlobalRateLimit(2, 60_000);
    gate.open();
    await log.get('completed', 3);
    await until('the rest to be refused', () => log.names.at(-1) === 'drained');
    expect(await queue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 1, completed: 3 });
  });

  it('that is removed holds no more once the window is over', async () => {
    const queue = stage.queue();
    await queue.setGlobalRateLimit(1, 300);
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['completed']);
    await queue.addBulk(jobs(4));
    await log.get('completed');
    await queue.removeGlobalRateLimit();
    await log.get('completed', 4);
  });

  it('counts from the window under way when it is set after a worker has counted', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { limiter: { max: 10, duration: 60_000 } });
    const log = new EventLog(worker, ['completed', 'drained']);
    await worker.waitUntilReady();
    await queue.addBulk(jobs(3));
    await log.get('completed', 3);
    await queue.setGlobalRateLimit(4, 60_000);
    await queue.addBulk(jobs(3));
    await log.get('completed', 4);
    await until('the rest to be refused', async () => (await queue.getRateLimitTtl()) > 0);
    expect(await queue.getWaitingCount()).toBe(2);
  });
});
