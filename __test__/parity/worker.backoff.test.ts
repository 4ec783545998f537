// Pins the delay between tries: fixed, exponential, jitter, a strategy of one's own.
import { describe, expect, it } from 'vitest';
import type { BackoffStrategy, Job, JobsOptions, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: worker.backoff', ({ lib }) => {
  const stage = useStage(lib);

  const fails = async (job: Job) => {
    throw new Error(`try ${job.attemptsStarted}`);
  };
  const settings = (backoffStrategy: BackoffStrategy): Partial<WorkerOptions> => ({ settings: { backoffStrategy } });

  /** Runs one job that always fails and gives `job.delay` as each `failed` event shows it. */
  async function delaysOf(
    opts: JobsOptions,
    tries: number,
    workerOpts: Partial<WorkerOptions> = {},
  ): Promise<number[]> {
    const queue = stage.queue();
    const delays: number[] = [];
    const worker = stage.worker(fails, workerOpts);
    worker.on('failed', (job) => delays.push(job?.delay ?? NaN));
    const log = new EventLog(worker, ['failed']);
    await queue.add('job', {}, opts);
    await log.get('failed', tries);
    return delays;
  }

  it('a strategy sees the stack traces of earlier tries', async () => {
    const seen: unknown[] = [];
    const strategy = (
      made: number,
      _type?: string,
      error?: Error,
      job?: { stacktrace: string[] | null; failedReason: string },
    ) => {
      seen.push([made, job?.stacktrace?.length ?? 0, job?.failedReason === error?.message]);
      return 1;
    };
    await delaysOf({ attempts: 3, backoff: { type: 'own' } }, 3, settings(strategy as BackoffStrategy));
    expect(seen).toEqual([
      [1, 0, true],
      [2, 1, true],
    ]);
    expect((await fetchJob(stage.queue(), '1')).stacktrace).toHaveLength(3);
  });

  it.each([
    ['a number', 40, [40, 40, 0]],
    ['fixed', { type: 'fixed', delay: 30 }, [30, 30, 0]],
    ['exponential', { type: 'exponential', delay: 20 }, [20, 40, 0]],
    ['exponential with a fraction', { type: 'exponential', delay: 10.3 }, [10, 21, 0]],
    ['a delay of 0', { type: 'fixed', delay: 0 }, [0, 0, 0]],
    ['a jitter of 0', { type: 'fixed', delay: 25, jitter: 0 }, [25, 25, 0]],
  ])('of %s delays each try but the last by what it says', async (_, backoff, delays) => {
    expect(await delaysOf({ attempts: 3, backoff }, 3)).toEqual(delays);
  });

  it.each([
    ['fixed', 0.5, 20, 40],
    ['fixed', 1, 0, 40],
    ['exponential', 0.25, 30, 40],
  ])('%s with a jitter of %d lies between %d and %d ms', async (type, jitter, least, most) => {
    const queue = stage.queue();
    const delays: number[] = [];
    const worker = stage.worker(fails, { concurrency: 40 });
    worker.on('failed', (job) => {
      if (job?.attemptsMade === 1) delays.push(job.delay);
    });
    const log = new EventLog(worker, ['failed']);
    const opts = { attempts: 2, backoff: { type, delay: 40, jitter } };
    await queue.addBulk(Array.from({ length: 40 }, () => ({ name: 'job', data: {}, opts })));
    await log.get('failed', 80);
    expect(delays).toHaveLength(40);
    for (const delay of delays) {
      expect(Number.isInteger(delay)).toBe(true);
      expect(delay).toBeGreaterThanOrEqual(least);
      expect(delay).toBeLessThan(most);
    }
    // Forty draws from at least ten values: all of them equal would be no jitter.
    expect(new Set(delays).size).toBeGreaterThan(1);
  });

  it('makes the job delayed until it is due, and starts no try before', async () => {
    const queue = stage.queue();
    const started: number[] = [];
    const worker = stage.worker(async (job) => {
      started.push(Date.now());
      return fails(job);
    });
    const global = stage.globalLog();
    const log = new EventLog(worker, ['failed']);
    const added = await queue.add('job', {}, { attempts: 2, backoff: 2_000 });
    await log.get('failed');
    expect(await added.getState()).toBe('delayed');
    const waiting = await fetchJob(queue, '1');
    expect([waiting.delay, waiting.attemptsMade, waiting.failedReason]).toEqual([2_000, 1, 'try 1']);
    const [{ delay: due }] = await global.get<[{ delay: number }]>('delayed');
    await log.get('failed', 2);
    expect(due).toBeGreaterThanOrEqual((started[0] ?? NaN) + 2_000);
    expect(started[1]).toBeGreaterThanOrEqual(due);
  });

  it('tells of a delayed try by the global events delayed, waiting and active', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    stage.worker(fails);
    await queue.add('job', {}, { attempts: 2, backoff: 30 });
    await log.get('drained');
    expect(log.entries.filter(({ event }) => event !== 'drained').map(({ event, args }) => [event, args[0]])).toEqual([
      ['added', { jobId: '1', name: 'job' }],
      ['waiting', { jobId: '1' }],
      ['active', { jobId: '1', prev: 'waiting' }],
      ['delayed', { jobId: '1', delay: expect.any(Number) as number }],
      ['waiting', { jobId: '1', prev: 'delayed' }],
      ['active', { jobId: '1', prev: 'waiting' }],
      ['failed', { jobId: '1', failedReason: 'try 2', prev: 'active' }],
      ['retries-exhausted', { jobId: '1', attemptsMade: '2' }],
    ]);
  });

  it.each(['fixed', 'exponential'])('%s may be replaced', async (type) => {
    const strategies = lib.Backoffs.builtinStrategies;
    const own = strategies[type];
    try {
      strategies[type] = (delay) => (tries) => delay + tries;
      expect(await delaysOf({ attempts: 3, backoff: { type, delay: 40 } }, 3)).toEqual([41, 42, 0]);
    } finally {
      strategies[type] = own;
    }
  });

  describe('by a custom strategy', () => {
    it('is asked with the number of the try, the type, the error and the job', async () => {
      const asked: unknown[][] = [];
      const strategy: BackoffStrategy = (...args) => {
        const [attempt, type, error, job] = args;
        asked.push([args.length, attempt, type, error?.message, job?.id, job?.attemptsMade, job?.opts.backoff]);
        return 10 * attempt;
      };
      const backoff = { type: 'mine', delay: 7 };
      expect(await delaysOf({ attempts: 3, backoff }, 3, settings(strategy))).toEqual([10, 20, 0]);
      expect(asked).toEqual([
        [4, 1, 'mine', 'try 1', '1', 0, backoff],
        [4, 2, 'mine', 'try 2', '1', 1, backoff],
      ]);
    });

    it('may be given by a promise', async () => {
      const strategy = () => Promise.resolve(15);
      expect(await delaysOf({ attempts: 2, backoff: { type: 'mine' } }, 2, settings(strategy))).toEqual([15, 0]);
    });

    it('of 0 retries at once', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(
        fails,
        settings(() => 0),
      );
      await queue.add('job', {}, { attempts: 2, backoff: { type: 'mine' } });
      await log.get('failed');
      expect(log.names).not.toContain('delayed');
      expect(log.all('active')).toHaveLength(2);
    });

    it.each([-5, -Infinity])('of %s delays a try that is due', async (delay) => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(
        fails,
        settings(() => delay),
      );
      await queue.add('job', {}, { attempts: 2, backoff: { type: 'mine' } });
      await log.get('failed');
      const names = ['added', 'waiting', 'active', 'delayed', 'waiting', 'active', 'failed'];
      expect(log.names.filter((name) => names.includes(name))).toEqual(names);
    });

    it.each(['soon', '1 s'])('of the text %s is an error event, and neither ends nor delays the try', async (text) => {
      const queue = stage.queue();
      const worker = stage.worker(
        fails,
        settings(() => text as never),
      );
      const log = new EventLog(worker, ['error', 'failed']);
      await queue.add('job', {}, { attempts: 2, backoff: { type: 'mine' } });
      const [error] = await log.get<[Error]>('error');
      expect(stage.takeErrors()).toEqual([error]);
      // in BullMQ the job is in no state any more, here it is active until it stalls
      expect(await queue.getJobCountByTypes('wait', 'delayed', 'completed', 'failed')).toBe(0);
      expect(log.names).toEqual(['error']);
    });

    it('of -1 retries no more', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(
        fails,
        settings((attempt) => (attempt === 1 ? 0 : -1)),
      );
      await queue.add('job', {}, { attempts: 5, backoff: { type: 'mine' } });
      await log.get('drained');
      expect(log.all('active')).toHaveLength(2);
      expect((await log.get('failed'))[0]).toEqual({ jobId: '1', failedReason: 'try 2', prev: 'active' });
      expect(log.names).not.toContain('retries-exhausted');
      expect((await fetchJob(queue, '1')).attemptsMade).toBe(2);
    });

    it('is not asked for the last try, nor for built-in types', async () => {
      let asked = 0;
      const strategy = () => ++asked;
      await delaysOf({ attempts: 2, backoff: { type: 'fixed', delay: 5 } }, 2, settings(strategy));
      expect(asked).toBe(0);
    });

    it('that is missing is an error event, and the job stays active', async () => {
      const queue = stage.queue();
      const worker = stage.worker(fails);
      const log = new EventLog(worker, ['error', 'failed']);
      const job = await queue.add('job', {}, { attempts: 2, backoff: { type: 'nosuch' } });
      const [error] = await log.get<[Error]>('error');
      expect(error.message).toBe(
        'Unknown backoff strategy nosuch.\n      If a custom backoff strategy is used, specify it when the queue is created.',
      );
      expect(stage.takeErrors()).toEqual([error]);
      expect(await job.getState()).toBe('active');
      expect(log.names).toEqual(['error']);
    });

    it('that throws is an error event, and the job stays active', async () => {
      const queue = stage.queue();
      const worker = stage.worker(
        fails,
        settings(() => {
          throw new Error('no strategy');
        }),
      );
      const log = new EventLog(worker, ['error', 'failed']);
      const job = await queue.add('job', {}, { attempts: 2, backoff: { type: 'mine' } });
      const [error] = await log.get<[Error]>('error');
      expect(error.message).toBe('no strategy');
      expect(stage.takeErrors()).toEqual([error]);
      expect(await job.getState()).toBe('active');
    });
  });
});
