// Pins rate limits set by hand: queue.rateLimit, RateLimitError, and what is left of a window.
import { describe, expect, it } from 'vitest';
import type { Job, Worker } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

/** Timers and a busy machine start a job this much late, in milliseconds; a worker that slept too long would sleep for 30 s. */
const SLACK_MS = 15_000;

describe.each(libraries)('$name: queue.rateLimit', ({ lib }) => {
  const stage = useStage(lib);

  const jobs = (count: number, opts = {}) => Array.from({ length: count }, (_, data) => ({ name: 'job', data, opts }));

  const limiter = { max: 100, duration: 60_000 };

  it('keeps workers with a limiter from starting jobs', async () => {
    const queue = stage.queue();
    const began = Date.now();
    expect(await queue.rateLimit(300)).toBeUndefined();
    await queue.addBulk(jobs(2));
    const worker = stage.worker(async () => undefined, { limiter });
    const log = new EventLog(worker, ['completed']);
    const [first] = await log.get<[Job]>('completed');
    await log.get('completed', 2);
    const waited = (first.processedOn ?? 0) - began;
    expect(waited).toBeGreaterThanOrEqual(298);
    expect(waited).toBeLessThan(300 + SLACK_MS);
  });

  it('does not concern workers without a limiter', async () => {
    const queue = stage.queue();
    await queue.rateLimit(60_000);
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    await log.get('completed');
  });

  it('concerns all workers of a queue with a global rate limit', async () => {
    const queue = stage.queue();
    await queue.setGlobalRateLimit(100, 1000);
    const began = Date.now();
    await queue.rateLimit(300);
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    const [job] = await log.get<[Job]>('completed');
    expect((job.processedOn ?? 0) - began).toBeGreaterThanOrEqual(298);
  });

  it('may be called on a worker', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { limiter });
    expect(await worker.rateLimit(300)).toBeUndefined();
    expect(await queue.getRateLimitTtl()).toBeGreaterThan(0);
  });

  it.each([0, -1, 1.5, NaN, Infinity])('rejects %d', async (ms) => {
    const queue = stage.queue();
    const error = await rejection(queue.rateLimit(ms));
    const expected =
      ms < 1 ? "ERR invalid expire time in 'set' command" : 'ERR value is not an integer or out of range';
    expect(error.message).toBe(expected);
    expect(await queue.getRateLimitTtl()).toBe(-2);
  });

  it('ends with removeRateLimitKey', async () => {
    const queue = stage.queue();
    expect(await queue.removeRateLimitKey()).toBe(0);
    await queue.rateLimit(60_000);
    expect(await queue.removeRateLimitKey()).toBe(1);
    const worker = stage.worker(async () => undefined, { limiter });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    await log.get('completed');
  });

  it('is replaced by the next', async () => {
    const queue = stage.queue();
    await queue.rateLimit(60_000);
    await queue.rateLimit(1000);
    const ttl = await queue.getRateLimitTtl();
    expect(ttl).toBeGreaterThan(500);
    expect(ttl).toBeLessThanOrEqual(1000);
  });

  describe('getRateLimitTtl', () => {
    it('without a window is -2, or 0 where there is a limit to compare with', async () => {
      const queue = stage.queue();
      expect([await queue.getRateLimitTtl(), await queue.getRateLimitTtl(0), await queue.getRateLimitTtl(5)]).toEqual([
        -2, -2, 0,
      ]);
      await queue.setGlobalRateLimit(3, 1000);
      expect([await queue.getRateLimitTtl(), await queue.getRateLimitTtl(5)]).toEqual([0, 0]);
    });

    it('compares the starts of the window with the number given, or with the global limit', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => undefined, { limiter });
      const log = new EventLog(worker, ['completed']);
      await queue.addBulk(jobs(2));
      await log.get('completed', 2);
      expect(await queue.getRateLimitTtl()).toBeGreaterThan(50_000);
      expect(await queue.getRateLimitTtl(2)).toBeGreaterThan(50_000);
      expect(await queue.getRateLimitTtl(3)).toBe(0);
      await queue.setGlobalRateLimit(3, 1000);
      expect(await queue.getRateLimitTtl()).toBe(0);
      expect(await queue.getRateLimitTtl(2)).toBeGreaterThan(50_000);
      await queue.setGlobalRateLimit(2, 1000);
      expect(await queue.getRateLimitTtl()).toBeGreaterThan(50_000);
    });
  });

  describe('RateLimitError', () => {
    it('is what Worker.RateLimitError makes', () => {
      const error = lib.Worker.RateLimitError();
      expect(error).toBeInstanceOf(lib.RateLimitError);
      expect([error.name, error.message]).toEqual(['RateLimitError', 'bullmq:rateLimitExceeded']);
    });

    it.each([
      ['with', limiter],
      ['without', undefined],
    ])('puts the job back and lets a worker %s limiter rest', async (_, its) => {
      const queue = stage.queue();
      const seen: string[] = [];
      const worker: Worker = stage.worker(
        async (job) => {
          seen.push(`${job.data} ${job.attemptsStarted} ${job.attemptsMade}`);
          if (job.attemptsStarted > 1 || job.data !== 0) return;
          await queue.rateLimit(300);
          throw lib.Worker.RateLimitError();
        },
        { ...(its && { limiter: its }) },
      );
      const log = new EventLog(worker, ['active', 'completed', 'failed']);
      const global = stage.globalLog();
      await queue.addBulk(jobs(2));
      const [first] = await log.get<[Job]>('active');
      const began = first.processedOn ?? 0;
      await global.get('waiting', 3);
      expect(await queue.getJobCounts('waiting', 'active', 'delayed', 'failed')).toEqual({
        waiting: 2,
        active: 0,
        delayed: 0,
        failed: 0,
      });
      await log.get('completed', 2);
      expect(seen).toEqual(['0 1 0', '0 2 0', '1 1 0']);
      expect(log.names).toEqual(['active', 'active', 'completed', 'active', 'completed']);
      const again = (log.all<[Job]>('active')[1]?.[0].processedOn ?? 0) - began;
      expect(again).toBeGreaterThanOrEqual(298);
      expect(again).toBeLessThan(300 + SLACK_MS);
      expect(global.all<[{ jobId: string; prev?: string }]>('waiting')[2]?.[0]).toEqual({ jobId: '1', prev: 'active' });
      expect((await fetchJob(queue, '1')).attemptsMade).toBe(1);
    });

    it('starts none of the jobs that a worker with short handlers has taken', async () => {
      const queue = stage.queue();
      const [most, met] = [300, 200];
      let isLimited = false;
      let starts = 0;
      const worker: Worker = stage.worker(async (job) => {
        if (isLimited) starts++;
        if (job.data !== met || job.attemptsStarted > 1) return;
        await queue.rateLimit(3_000);
        isLimited = true;
        throw lib.Worker.RateLimitError();
      });
      const log = new EventLog(worker, ['completed']);
      await queue.addBulk(jobs(most));
      await until('all to wait', async () => isLimited && (await queue.getActiveCount()) === 0);
      expect(starts).toBe(0);
      expect((await queue.getWaiting(0, 1)).map((job) => job.data as number)).toEqual([met, met + 1]);
      await queue.removeRateLimitKey();
      await log.get('completed', most, 60_000);
      expect(log.all<[Job]>('completed').map(([job]) => job.data as number)).toEqual(
        jobs(most).map(({ data }) => data),
      );
    });

    it('lets the other slots of the worker end their jobs and start none', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const worker: Worker = stage.worker(
        async (job) => {
          if (job.data !== 0) return gate.opened;
          if (job.attemptsStarted > 1) return;
          await queue.rateLimit(400);
          throw lib.Worker.RateLimitError();
        },
        { concurrency: 2, limiter },
      );
      const log = new EventLog(worker, ['active', 'completed']);
      const global = stage.globalLog();
      await queue.addBulk(jobs(4));
      await global.get('waiting', 5);
      gate.open();
      await log.get('completed', 4);
      const starts = log.all<[Job]>('active').map(([job]) => job.processedOn ?? 0);
      expect(starts).toHaveLength(5);
      expect((starts[2] ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(398);
    });

    it('puts a job with a priority back to the front of its priority', async () => {
      const queue = stage.queue();
      const order: string[] = [];
      const worker: Worker = stage.worker(
        async (job) => {
          order.push(`${job.data as string} ${job.attemptsStarted} ${job.attemptsMade}`);
          if (job.data !== 'b' || job.attemptsStarted > 1) return;
          await queue.rateLimit(200);
          throw lib.Worker.RateLimitError();
        },
        { limiter, autorun: false },
      );
      const log = new EventLog(worker, ['completed']);
      const global = stage.globalLog();
      await queue.addBulk([
        { name: 'job', data: 'a', opts: { priority: 1 } },
        { name: 'job', data: 'b', opts: { priority: 5 } },
        { name: 'job', data: 'c', opts: { priority: 5 } },
        { name: 'job', data: 'd', opts: { priority: 9 } },
      ]);
      void worker.run();
      await global.get('waiting', 5);
      expect(await queue.getJobCounts('prioritized', 'waiting', 'active')).toEqual({
        prioritized: 3,
        waiting: 0,
        active: 0,
      });
      await log.get('completed', 4);
      expect(order).toEqual(['a 1 0', 'b 1 0', 'b 2 0', 'c 1 0', 'd 1 0']);
    });

    it('without a window tries again at once', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async (job) => {
        if (job.attemptsStarted < 4) throw new lib.RateLimitError();
      });
      const log = new EventLog(worker, ['completed', 'drained']);
      await queue.add('job', {});
      const [job] = await log.get<[Job]>('completed');
      expect([job.attemptsStarted, job.attemptsMade]).toEqual([4, 1]);
    });

    it('rests for what is left of a window that is not used up', async () => {
      const queue = stage.queue();
      const worker = stage.worker(
        async (job) => {
          if (job.attemptsStarted === 1) throw new lib.RateLimitError();
        },
        { limiter: { max: 10, duration: 300 } },
      );
      const log = new EventLog(worker, ['active', 'completed']);
      await queue.add('job', {});
      await log.get('completed');
      const [first, second] = log.all<[Job]>('active').map(([job]) => job.processedOn ?? 0);
      expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(298);
    });

    it('is known by its message: with another one the job fails', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => {
        throw new lib.RateLimitError('slow down');
      });
      const log = new EventLog(worker, ['failed']);
      await queue.add('job', {});
      const [job] = await log.get<[Job]>('failed');
      expect([job.failedReason, job.attemptsMade]).toEqual(['slow down', 1]);
    });

    it('does not use up the tries of a job, which may give up by itself', async () => {
      const queue = stage.queue();
      const worker: Worker = stage.worker(
        async (job) => {
          if (job.attemptsStarted >= (job.opts.attempts ?? 0)) throw new lib.UnrecoverableError('gave up');
          await queue.rateLimit(20);
          throw lib.Worker.RateLimitError();
        },
        { limiter },
      );
      const log = new EventLog(worker, ['failed']);
      await queue.add('job', {}, { attempts: 3 });
      const [job, error] = await log.get<[Job, Error]>('failed');
      expect([job.attemptsStarted, job.attemptsMade, error.message]).toEqual([3, 1, 'gave up']);
    });

    it('in a queue that is paused meanwhile leaves the job waiting', async () => {
      const queue = stage.queue();
      const worker: Worker = stage.worker(
        async (job) => {
          if (job.attemptsStarted > 1) return;
          await queue.rateLimit(100);
          await queue.pause();
          throw lib.Worker.RateLimitError();
        },
        { limiter },
      );
      const log = new EventLog(worker, ['drained', 'completed']);
      await queue.add('job', {});
      await until('the job to wait', async () => (await queue.getWaitingCount()) === 1 && (await queue.isPaused()));
      await until('the window to end', async () => (await queue.getRateLimitTtl()) === -2);
      expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1, active: 0 });
      await queue.resume();
      await log.get('completed');
    });

    it('for a job that is gone is an error of the worker', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const worker = stage.worker(async () => {
        await gate.opened;
        throw lib.Worker.RateLimitError();
      });
      const log = new EventLog(worker, ['active', 'error']);
      await queue.add('job', {});
      await log.get('active');
      await queue.obliterate({ force: true });
      gate.open();
      const [error] = await log.get<[Error]>('error');
      expect(error.message).toBe('Missing key for job 1. moveJobFromActiveToWait');
      stage.takeErrors();
    });

    it('is not what moveToWait needs, which tells what is left of the window', async () => {
      const queue = stage.queue();
      const left: number[] = [];
      const worker: Worker = stage.worker(async (job, token) => {
        if (job.attemptsStarted > 2) return;
        if (job.attemptsStarted === 2) await queue.rateLimit(60_000);
        left.push(await job.moveToWait(token));
        throw new lib.WaitingError();
      });
      const log = new EventLog(worker, ['completed']);
      await queue.add('job', {});
      await log.get('completed');
      expect(left[0]).toBe(0);
      expect(left[1]).toBeGreaterThan(50_000);
    });
  });
});
