// Pins a worker's own limiter: how many jobs may start in a window, over all workers.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Job, Worker } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, sleep, until } from '../support/waiting.js';

/** Timers and a busy machine start a job this much late, in milliseconds; a worker that slept too long would sleep for 30 s. */
const SLACK_MS = 15_000;

describe.each(libraries)('$name: worker.limiter', ({ lib }) => {
  const stage = useStage(lib);

  const jobs = (count: number, opts = {}) => Array.from({ length: count }, (_, data) => ({ name: 'job', data, opts }));

  let began = 0;
  beforeEach(() => {
    began = Date.now();
  });

  /** When each job started, or a little later. */
  function record(starts: number[]) {
    return async () => void starts.push(Date.now());
  }

  /**
   * Starts are at most `max` in any window, which begins with the first start after the last window. A start may be seen
   * late, so what is known for certain is how many windows must have passed since the test began.
   */
  function expectWindows(starts: readonly number[], max: number, duration: number): void {
    for (const [i, start] of [...starts].sort((a, b) => a - b).entries()) {
      // Times are whole milliseconds, taken by another clock than the window's.
      const soonest = Math.floor(i / max) * duration - 2;
      expect(start - began, `start no. ${i} of ${starts.join(' ')}`).toBeGreaterThanOrEqual(soonest);
    }
  }

  it('lets one job start in a window', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    await queue.addBulk(jobs(4));
    stage.worker(record(starts), { limiter: { max: 1, duration: 200 } });
    await until('all jobs', () => starts.length === 4);
    expectWindows(starts, 1, 200);
    expect((starts[3] ?? 0) - (starts[0] ?? 0)).toBeLessThan(3 * 200 + SLACK_MS);
  });

  it('lets as many start at once as it says, whatever the concurrency', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    await queue.addBulk(jobs(7));
    stage.worker(record(starts), { concurrency: 10, limiter: { max: 3, duration: 300 } });
    await until('all jobs', () => starts.length === 7);
    expectWindows(starts, 3, 300);
    expect((starts[6] ?? 0) - (starts[0] ?? 0)).toBeLessThan(2 * 300 + SLACK_MS);
  });

  it('holds over several workers', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    const limiter = { max: 2, duration: 200 };
    for (let i = 0; i < 3; i++) stage.worker(record(starts), { concurrency: 2, limiter });
    await queue.addBulk(jobs(7));
    await until('all jobs', () => starts.length === 7);
    expectWindows(starts, 2, 200);
    expect((starts[6] ?? 0) - (starts[0] ?? 0)).toBeLessThan(3 * 200 + SLACK_MS);
  });

  it('leaves jobs waiting, in their order', async () => {
    const queue = stage.queue();
    const order: unknown[] = [];
    const worker = stage.worker(async (job) => void order.push(job.data), { limiter: { max: 2, duration: 300 } });
    const log = new EventLog(worker, ['completed']);
    await queue.addBulk(jobs(5));
    await log.get('completed', 2);
    expect(await queue.getJobCounts('waiting', 'delayed', 'active')).toEqual({ waiting: 3, delayed: 0, active: 0 });
    expect(await queue.getRateLimitTtl()).toBeGreaterThan(0);
    await log.get('completed', 5);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it('starts jobs added in a window that is used up when it ends', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    const worker = stage.worker(record(starts), { limiter: { max: 1, duration: 300 } });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', 0);
    await log.get('completed');
    await queue.add('job', 1);
    await log.get('completed', 2);
    expectWindows(starts, 1, 300);
    expect((starts[1] ?? 0) - (starts[0] ?? 0)).toBeLessThan(300 + SLACK_MS);
  });

  it('begins a window with the first start, not with a clock', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    stage.worker(record(starts), { limiter: { max: 2, duration: 250 } });
    await queue.addBulk(jobs(2));
    await until('the first two', () => starts.length === 2);
    await until('the window to end', async () => (await queue.getRateLimitTtl()) === -2);
    await queue.addBulk(jobs(2));
    await until('the others', () => starts.length === 4);
    expect((starts[3] ?? 0) - (starts[2] ?? 0)).toBeLessThan(SLACK_MS);
  });

  it('counts every try', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    const worker = stage.worker(
      async () => {
        starts.push(Date.now());
        throw new Error('no');
      },
      { limiter: { max: 1, duration: 150 } },
    );
    const log = new EventLog(worker, ['failed']);
    await queue.add('job', {}, { attempts: 3 });
    await log.get('failed', 3);
    expectWindows(starts, 1, 150);
    const [job] = await log.get<[Job]>('failed', 3);
    expect([job.attemptsMade, job.attemptsStarted]).toEqual([3, 3]);
  });

  it('holds for delayed jobs', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    stage.worker(record(starts), { concurrency: 4, limiter: { max: 1, duration: 150 } });
    await queue.addBulk(jobs(4, { delay: 50 }));
    await until('all jobs', () => starts.length === 4);
    expectWindows(starts, 1, 150);
    expect((starts[3] ?? 0) - (starts[0] ?? 0)).toBeLessThan(3 * 150 + SLACK_MS);
  });

  it('holds for jobs with priorities, which start in their order', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    const order: unknown[] = [];
    const worker = stage.worker(
      async (job) => {
        starts.push(Date.now());
        order.push(job.data);
      },
      { concurrency: 3, limiter: { max: 2, duration: 150 }, autorun: false },
    );
    await queue.addBulk(
      [3, 1, 2, 0, 2].map((priority, i) => ({ name: 'job', data: `${priority}.${i}`, opts: { priority } })),
    );
    void worker.run();
    await until('all jobs', () => starts.length === 5);
    expect(order).toEqual(['0.3', '1.1', '2.2', '2.4', '3.0']);
    expectWindows(starts, 2, 150);
  });

  it('is heeded only by workers that have it', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const limited = stage.worker(() => gate.opened, { concurrency: 5, limiter: { max: 1, duration: 60_000 } });
    const log = new EventLog(limited, ['active']);
    await queue.addBulk(jobs(3));
    await log.get('active');
    const free = stage.worker(async () => undefined);
    const others = new EventLog(free, ['completed']);
    await others.get('completed', 2);
    expect(log.all('active')).toHaveLength(1);
    expect(await queue.getRateLimitTtl(2)).toBe(0);
  });

  it.each([
    [0, 1],
    [-3, 1],
    [1.5, 2],
  ])('of max %d lets %d start', async (max, most) => {
    const queue = stage.queue();
    const starts: number[] = [];
    await queue.addBulk(jobs(4));
    stage.worker(record(starts), { limiter: { max, duration: 300 } });
    await until('the first starts', () => starts.length >= most);
    expect(await queue.getRateLimitTtl(most)).toBeGreaterThan(0);
    expect(starts).toHaveLength(most);
    await until('the others', () => starts.length === 4);
  });

  it.each([[undefined], [null], [{}], [{ duration: 60_000 }], [{ max: Infinity, duration: 60_000 }]])(
    'that is %j limits nothing',
    async (limiter) => {
      const queue = stage.queue();
      const worker = stage.worker(async () => undefined, { limiter: limiter as never });
      const log = new EventLog(worker, ['completed']);
      await queue.addBulk(jobs(3));
      await log.get('completed', 3);
    },
  );

  it('tells drained when it lets nothing more start, and when it was slept out in vain', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { limiter: { max: 2, duration: 150 } });
    const log = new EventLog(worker, ['active', 'completed', 'drained']);
    const global = stage.globalLog();
    await worker.waitUntilReady();
    await log.get('drained');
    await queue.addBulk(jobs(2));
    await log.get('drained', 3);
    expect(log.names).toEqual(['drained', ...['active', 'completed', 'active', 'completed'], 'drained', 'drained']);
    await global.get('completed', 2);
    expect(global.names).not.toContain('drained');
  });

  it('sleeps no longer than maximumRateLimitDelay', async () => {
    const queue = stage.queue();
    await queue.rateLimit(60_000);
    await queue.add('job', {});
    const worker = stage.worker(async () => undefined, {
      limiter: { max: 1, duration: 1000 },
      maximumRateLimitDelay: 50,
    });
    const log = new EventLog(worker, ['completed', 'drained']);
    await log.get('drained', 3);
    await queue.removeRateLimitKey();
    await log.get('completed');
  });

  it('may be changed, replaced and taken away while the worker runs', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { concurrency: 10, limiter: { max: 1, duration: 100 } });
    const log = new EventLog(worker, ['completed']);
    await queue.addBulk(jobs(1));
    await log.get('completed');
    (worker.opts.limiter as { max: number }).max = 2;
    expect(worker.opts.limiter).toEqual({ max: 2, duration: 100 });
    await until('the window to end', async () => (await queue.getRateLimitTtl()) === -2);
    await queue.addBulk(jobs(2));
    await log.get('completed', 3);
    await until('the window to end', async () => (await queue.getRateLimitTtl()) === -2);
    worker.opts.limiter = { max: 3, duration: 60_000 };
    // a fetch that was sent before may still go by the limit it brought (limiter-replaced, a wanted difference)
    await worker.pause();
    await worker.resume();
    await queue.addBulk(jobs(8));
    await log.get('completed', 6);
    await until('it to be used up', async () => (await queue.getRateLimitTtl(3)) > 0);
    expect(await queue.getWaitingCount()).toBe(5);
    expect(log.all('completed')).toHaveLength(6);
  });

  it('may be changed by the object that the constructor was given', async () => {
    const queue = stage.queue();
    const limiter = { max: 1, duration: 100 };
    const worker = stage.worker(async () => undefined, { concurrency: 10, limiter });
    const log = new EventLog(worker, ['completed']);
    await queue.addBulk(jobs(1));
    await log.get('completed');
    limiter.max = 3;
    limiter.duration = 3_000;
    // a fetch that was sent before may still go by the limit it brought (limiter-replaced, a wanted difference)
    await until('the window to end', async () => (await queue.getRateLimitTtl()) === -2);
    await queue.addBulk(jobs(1));
    await log.get('completed', 2);
    await until('the window to end', async () => (await queue.getRateLimitTtl()) === -2);
    await queue.addBulk(jobs(8));
    await log.get('completed', 5);
    expect(await queue.getRateLimitTtl(3)).toBeGreaterThan(0);
    expect(await queue.getWaitingCount()).toBe(5);
    // without it nothing is limited
    delete worker.opts.limiter;
    await queue.removeRateLimitKey();
    await log.get('completed', 10);
  });

  it('does not keep the worker from closing', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { limiter: { max: 1, duration: 60_000 } });
    const log = new EventLog(worker, ['completed', 'drained']);
    await queue.addBulk(jobs(2));
    await log.get('drained');
    // BullMQ starts to sleep a moment after it has told so, and close interrupts a sleep that has begun.
    await sleep(50);
    const began = performance.now();
    await worker.close();
    expect(performance.now() - began).toBeLessThan(SLACK_MS);
    expect(await queue.getWaitingCount()).toBe(1);
  });

  it('does not keep the worker from pausing and resuming', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    const worker = stage.worker(record(starts), { limiter: { max: 1, duration: 200 } });
    await queue.addBulk(jobs(2));
    await until('a start', () => starts.length === 1);
    await worker.pause();
    await worker.resume();
    await until('the other', () => starts.length === 2);
    expectWindows(starts, 1, 200);
  });

  it('holds while the queue is paused in between', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    const worker: Worker = stage.worker(record(starts), { limiter: { max: 1, duration: 200 } });
    const log = new EventLog(worker, ['drained']);
    await queue.addBulk(jobs(2));
    await until('a start', () => starts.length === 1);
    await queue.pause();
    await log.get('drained', 2);
    expect(starts).toHaveLength(1);
    await queue.resume();
    await until('the other', () => starts.length === 2);
    expectWindows(starts, 1, 200);
  });

  it('counts no job that is taken only to fail', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const [job] = await queue.addBulk(jobs(2));
    const quick = { lockDuration: 200, stalledInterval: 100, maxStalledCount: 0 };
    const dying = stage.worker(() => gate.opened, quick);
    await new EventLog(dying, ['active']).get('active');
    await dying.close(true);
    await queue.pause();
    const worker = stage.worker(async () => undefined, { ...quick, limiter: { max: 1, duration: 60_000 } });
    const log = new EventLog(worker, ['failed', 'completed', 'stalled']);
    await log.get('stalled');
    await queue.resume();
    await log.get('failed');
    await log.get('completed');
    expect(log.all<[Job]>('failed')[0]?.[0].id).toBe(job?.id);
  });
});
