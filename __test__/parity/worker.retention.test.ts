// Pins removeOnComplete and removeOnFail: every form, whose rule wins, what goes with a job.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Job, JobsOptions, Queue, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: worker.retention', ({ lib }) => {
  const stage = useStage(lib);
  afterEach(() => {
    vi.useRealTimers();
  });

  const FAILS = 'fails';

  /** Runs one job after the other, one for each of `opts`, and gives the ids that are still there. */
  async function finish(
    opts: JobsOptions[],
    workerOpts: Partial<WorkerOptions> = {},
    name = 'passes',
  ): Promise<string[]> {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.log('a row');
      if (job.name === FAILS) throw new Error('no');
    }, workerOpts);
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.addBulk(opts.map((options) => ({ name, data: {}, opts: options })));
    await log.when('all to finish', () => log.entries.length === opts.length);
    return remaining(queue, opts.length);
  }

  it("a worker's 0 is no rule: all are kept", async () => {
    const none = 0 as unknown as { count: number };
    const rules = { removeOnComplete: none, removeOnFail: none };
    expect(await finish([{}, {}], rules)).toEqual(['1', '2']);
    const queue = stage.queue({}, 'by-hand');
    await queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: {} },
    ]);
    const byHand = stage.worker(null, { ...rules, autorun: false }, 'by-hand');
    const one = await byHand.getNextJob('token');
    await one.moveToCompleted(1, 'token', false);
    const other = await byHand.getNextJob('token');
    await other.moveToFailed(new Error('no'), 'token', false);
    expect(await queue.getJobCounts('completed', 'failed')).toEqual({ completed: 1, failed: 1 });
  });

  async function remaining(queue: Queue, count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, i) => String(i + 1));
    const found = await Promise.all(ids.map((id) => queue.getJob(id)));
    const kept = ids.filter((_, i) => found[i]);
    const { completed = 0, failed = 0 } = await queue.getJobCounts('completed', 'failed');
    expect(completed + failed, 'the count of finished jobs').toBe(kept.length);
    return kept;
  }

  const times = (count: number, opts: JobsOptions) => Array.from({ length: count }, () => opts);
  const all = ['1', '2', '3', '4', '5'];

  it.each([
    ['left out', undefined, all],
    ['false', false, all],
    ['true', true, []],
    ['0', 0, []],
    ['2', 2, ['4', '5']],
    ['9', 9, all],
    ['-1', -1, all],
    ['{count: 2}', { count: 2 }, ['4', '5']],
    ['{count: 0}', { count: 0 }, []],
    ['{count: -1}', { count: -1 }, all],
    ['{age: 3600}', { age: 3_600 }, all],
    ['{age: 0}', { age: 0 }, []],
    ['{age: 3600, count: 2}', { age: 3_600, count: 2 }, ['4', '5']],
  ])('removeOnComplete %s', async (_, removeOnComplete, kept) => {
    expect(await finish(times(5, { removeOnComplete: removeOnComplete }))).toEqual(kept);
  });

  it.each([
    ['left out', undefined, all],
    ['false', false, all],
    ['true', true, []],
    ['2', 2, ['4', '5']],
    ['{count: 2}', { count: 2 }, ['4', '5']],
    ['{age: 3600}', { age: 3_600 }, all],
  ])('removeOnFail %s', async (_, removeOnFail, kept) => {
    expect(await finish(times(5, { removeOnFail: removeOnFail }), {}, FAILS)).toEqual(kept);
  });

  it('removeOnComplete has no say about failed jobs', async () => {
    expect(await finish(times(3, { removeOnComplete: true }), {}, FAILS)).toEqual(['1', '2', '3']);
  });

  it('removeOnFail has no say about completed jobs', async () => {
    expect(await finish(times(3, { removeOnFail: true }))).toEqual(['1', '2', '3']);
  });

  it('removeOnFail removes only the job whose last try failed', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {
      throw new Error('no');
    });
    const log = new EventLog(worker, ['failed']);
    const job = await queue.add('job', {}, { removeOnFail: true, attempts: 2, backoff: 500 });
    await log.get('failed');
    expect(await job.getState()).toBe('delayed');
    await log.get('failed', 2);
    expect(await job.getState()).toBe('unknown');
  });

  describe('the rule', () => {
    it('of the worker holds for jobs without one', async () => {
      expect(await finish(times(5, {}), { removeOnComplete: { count: 2 } })).toEqual(['4', '5']);
    });

    it('of the worker holds for failed jobs without one', async () => {
      expect(await finish(times(5, {}), { removeOnFail: { count: 0 } }, FAILS)).toEqual([]);
    });

    it('of the job beats that of the worker', async () => {
      expect(await finish(times(5, { removeOnComplete: false }), { removeOnComplete: { count: 2 } })).toEqual(all);
    });

    it('of the job beats that of the worker also when it removes more', async () => {
      expect(await finish(times(5, { removeOnComplete: true }), { removeOnComplete: { count: 2 } })).toEqual([]);
    });

    it('of the queue is that of its jobs', async () => {
      const queue = stage.queue({ defaultJobOptions: { removeOnComplete: { count: 1 } } });
      const log = new EventLog(
        stage.worker(async () => undefined, { removeOnComplete: { count: 3 } }),
        ['completed'],
      );
      for (let i = 0; i < 4; i++) await queue.add('job', {});
      await log.get('completed', 4);
      expect(await remaining(queue, 4)).toEqual(['4']);
    });

    it('of the job that finishes holds for all that finished before', async () => {
      expect(await finish([...times(4, { removeOnComplete: false }), { removeOnComplete: 2 }])).toEqual(['4', '5']);
    });

    it('true removes the job itself and no other', async () => {
      expect(await finish([{}, {}, { removeOnComplete: true }, {}, {}])).toEqual(['1', '2', '4', '5']);
    });
  });

  describe('by age', () => {
    /** Runs jobs that end one second apart by the fake clock, then one more at once by the rule `last`. */
    async function secondsApart(count: number, opts: JobsOptions, last?: JobsOptions) {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
      const queue = stage.queue();
      const worker = stage.worker(async () => {
        vi.setSystemTime(Date.now() + 1_000);
      });
      const log = new EventLog(worker, ['completed']);
      await queue.addBulk(times(count, opts).map((options) => ({ name: 'job', data: {}, opts: options })));
      await log.get('completed', count);
      if (last) {
        await queue.add('last', {}, last);
        await log.get('completed', count + 1);
      }
      return { log, kept: (await remaining(queue, count + (last ? 1 : 0))).map(Number) };
    }

    it('each job has the time of its own end', async () => {
      const { log } = await secondsApart(4, {});
      const ends = log.all<[Job]>('completed').map(([job]) => job.finishedOn ?? NaN);
      expect(ends.map((end) => end - (ends[0] ?? NaN))).toEqual([0, 1_000, 2_000, 3_000]);
    });

    it('{age: 7} keeps the seven seconds before the last end', async () => {
      const { kept } = await secondsApart(15, { removeOnComplete: { age: 7 } });
      expect(kept).toEqual([9, 10, 11, 12, 13, 14, 15]);
    });

    it('with a count keeps what both allow', async () => {
      const { kept } = await secondsApart(10, { removeOnComplete: { age: 7, count: 3 } });
      expect(kept).toEqual([8, 9, 10]);
    });

    it('applies to jobs kept before under another rule', async () => {
      const { kept } = await secondsApart(10, {}, { removeOnComplete: { age: 3 } });
      expect(kept).toEqual([9, 10, 11]);
    });

    it('with a limit removes at most so many, the newest of the expired first', async () => {
      const { kept } = await secondsApart(10, {}, { removeOnComplete: { age: 3, limit: 2 } });
      expect(kept).toEqual([1, 2, 3, 4, 5, 6, 9, 10, 11]);
    });

    it('removes nothing as time passes and nothing finishes', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
      const kept = await finish(times(3, { removeOnComplete: { age: 1 } }));
      vi.setSystemTime(Date.now() + 60_000);
      expect(kept).toEqual(['1', '2', '3']);
      expect(await remaining(stage.queue(), 3)).toEqual(['1', '2', '3']);
    });
  });

  it('a count holds when many jobs finish at once, for completed and failed jobs each', async () => {
    const queue = stage.queue();
    const worker = stage.worker(
      async (job) => {
        if (Number(job.id) % 2) throw new Error('odd');
      },
      { concurrency: 20 },
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    const opts = { removeOnComplete: 10, removeOnFail: { count: 3 } };
    await queue.addBulk(times(100, opts).map((options) => ({ name: 'job', data: {}, opts: options })));
    await log.when('all to finish', () => log.entries.length === 100);
    expect(await queue.getJobCounts('completed', 'failed')).toEqual({ completed: 10, failed: 3 });
    expect(await remaining(queue, 100)).toHaveLength(13);
  });

  describe('the ends of jobs that each took a millisecond', () => {
    /** Runs the jobs of these ids one after the other, without a pause in between, and gives the ids that are kept. */
    async function inTurn(ids: string[], opts: (id: string) => JobsOptions, name = 'passes'): Promise<string[]> {
      const queue = stage.queue();
      // a worker that has seen many short jobs takes several at a time
      await queue.addBulk(
        times(200, { removeOnComplete: true }).map((options) => ({ name, data: 'short', opts: options })),
      );
      await queue.addBulk(ids.map((jobId) => ({ name, data: {}, opts: { jobId, ...opts(jobId) } })));
      const worker = stage.worker(async (job) => {
        if (job.data === 'short') return;
        const begin = Date.now();
        while (Date.now() === begin);
        if (job.name === FAILS) throw new Error('no');
      });
      const log = new EventLog(worker, ['completed', 'failed']);
      await log.when('all to finish', () => log.entries.length === 200 + ids.length);
      const kept = await queue.getJobs(['completed', 'failed'], 0, -1, true);
      return kept.map((job) => job.id as string);
    }

    const ids = ['z', 'y', 'x', 'w', 'v', 'u', 't', 's', 'r', 'q'];

    it('are kept by a count as they came, whatever the ids', async () => {
      expect(await inTurn(ids, () => ({ removeOnComplete: { count: 3 } }))).toEqual(['s', 'r', 'q']);
    });

    it('are kept so of failed jobs, too', async () => {
      expect(await inTurn(ids, () => ({ removeOnFail: { count: 3 } }), FAILS)).toEqual(['s', 'r', 'q']);
    });

    it('are kept by the rule of each: it says nothing of those that end later', async () => {
      const rule = (id: string): JobsOptions => (id === 'v' ? { removeOnComplete: { count: 2 } } : {});
      expect(await inTurn(ids, rule)).toEqual(['w', 'v', 'u', 't', 's', 'r', 'q']);
    });
  });

  it('logs go with their job, and stay with a kept one', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.log(`row of ${job.name}`);
    });
    const log = new EventLog(worker, ['completed']);
    await queue.add('kept', {});
    await queue.add('gone', {}, { removeOnComplete: true });
    await log.get('completed', 2);
    expect(await queue.getJobLogs('1')).toEqual({ logs: ['row of kept'], count: 1 });
    expect(await queue.getJobLogs('2')).toEqual({ logs: [], count: 0 });
  });

  it('a removed job still tells of its end, and of no removal', async () => {
    const queue = stage.queue();
    const global = stage.globalLog();
    const log = new EventLog(
      stage.worker(async () => 'result'),
      ['completed'],
    );
    await queue.add('job', {}, { removeOnComplete: true });
    const [job, result] = await log.get<[Job, string]>('completed');
    expect([job.returnvalue, result]).toEqual(['result', 'result']);
    await global.get('drained');
    expect(global.names).toEqual(['added', 'waiting', 'active', 'completed', 'drained']);
    expect(global.all('completed')[0]?.[0]).toEqual({ jobId: '1', returnvalue: 'result', prev: 'active' });
  });

  it('a removed custom id can be added again', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async (job) => job.data as unknown),
      ['completed'],
    );
    await queue.add('job', 1, { jobId: 'mine', removeOnComplete: true });
    await log.get('completed');
    await queue.add('job', 2, { jobId: 'mine' });
    expect((await log.get('completed', 2))[1]).toBe(2);
    expect((await fetchJob(queue, 'mine')).data).toBe(2);
  });
});
