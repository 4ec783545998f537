// Pins the getters and the removal of job schedulers, and what protects their jobs.
import { describe, expect, it, vi, afterEach } from 'vitest';
import type { JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const MINUTE = 60_000;
const NOON = Date.UTC(2031, 4, 6, 7, 8, 9, 123);
const TOO_EARLY = 'belongs to a job scheduler and cannot be removed directly. removeJob';

describe.each(libraries)('$name: job schedulers', ({ lib }) => {
  const stage = useStage(lib);
  const at = (ms: number) => {
    vi.spyOn(Date, 'now').mockImplementation(() => ms);
  };
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('are told with all that was said of them', async () => {
    at(NOON);
    const queue = stage.queue();
    const endDate = new Date(NOON + 9 * MINUTE);
    await queue.upsertJobScheduler(
      'every',
      { every: MINUTE, limit: 5, startDate: NOON + MINUTE, endDate, offset: 17 },
      { name: 'mail', data: { to: 'ana' }, opts: { attempts: 3, backoff: { type: 'fixed', delay: 9 } } },
    );
    expect(await queue.getJobScheduler('every')).toEqual({
      key: 'every',
      name: 'mail',
      next: NOON + MINUTE,
      iterationCount: 1,
      limit: 5,
      startDate: NOON + MINUTE,
      endDate: NOON + 9 * MINUTE,
      every: MINUTE,
      offset: 17,
      template: { data: { to: 'ana' }, opts: { attempts: 3, backoff: { type: 'fixed', delay: 9 } } },
    });
  });

  it('are told without what was not said', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('every', { every: MINUTE });
    expect(await queue.getJobScheduler('every')).toEqual({
      key: 'every',
      name: 'every',
      next: NOON,
      iterationCount: 1,
      every: MINUTE,
      offset: NOON % MINUTE,
    });
    await queue.upsertJobScheduler('cron', { pattern: '*/10 * * * * *', tz: 'Etc/UTC' }, { data: [1] });
    expect(await queue.getJobScheduler('cron')).toEqual({
      key: 'cron',
      name: 'cron',
      next: NOON + 877,
      iterationCount: 1,
      pattern: '*/10 * * * * *',
      tz: 'Etc/UTC',
      offset: 0,
      template: { data: [1] },
    });
  });

  it('are told without what says nothing, and with numbers for their texts', async () => {
    at(NOON);
    const queue = stage.queue();
    const shown = async (repeat: object, template?: object) => {
      await queue.upsertJobScheduler('s', repeat, template);
      const {
        key: _key,
        name: _name,
        next: _next,
        iterationCount: _count,
        offset: _offset,
        ...said
      } = (await queue.getJobScheduler('s')) ?? {};
      await queue.removeJobScheduler('s');
      return said;
    };
    expect(await shown({ every: MINUTE, pattern: null, tz: null })).toEqual({ every: MINUTE });
    expect(await shown({ every: MINUTE, pattern: '', tz: '' })).toEqual({ every: MINUTE });
    expect(await shown({ pattern: '0 0 * * *', every: null })).toEqual({ pattern: '0 0 * * *' });
    expect(await shown({ every: MINUTE, limit: '5' })).toEqual({ every: MINUTE, limit: 5 });
    expect(await shown({ every: MINUTE }, { opts: { priority: null, backoff: null } })).toEqual({ every: MINUTE });
    expect(await shown({ every: MINUTE }, { opts: { removeOnComplete: { age: 5, count: null } } })).toEqual({
      every: MINUTE,
      template: { opts: { removeOnComplete: { age: 5 } } },
    });
  });

  it("have jobs with the deduplication id of the queue's defaults", async () => {
    const defaultJobOptions = { deduplication: { id: 'own' } } as JobsOptions;
    const queue = stage.queue({ defaultJobOptions });
    const made = await queue.upsertJobScheduler('s', { every: 3_600_000 });
    const read = await fetchJob(queue, made?.id);
    expect([made?.deduplicationId, read.deduplicationId]).toEqual(['own', 'own']);
  });

  it('forget what is not said again, but for the offset', async () => {
    at(NOON);
    const queue = stage.queue();
    const all = { every: MINUTE, limit: 5, endDate: NOON + 9 * MINUTE, offset: 17 };
    await queue.upsertJobScheduler('s', all, { data: 1, opts: { attempts: 2 } });
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const found = await queue.getJobScheduler('s');
    expect(Object.keys(found ?? {}).sort()).toEqual(['every', 'iterationCount', 'key', 'name', 'next', 'offset']);
    expect(found?.offset).toBe(17);
  });

  it('show the defaults of the queue in their template', async () => {
    const queue = stage.queue({ defaultJobOptions: { attempts: 4, removeOnFail: 3 } });
    await queue.upsertJobScheduler('s', { every: MINUTE }, { opts: { attempts: 5 } });
    expect((await queue.getJobScheduler('s'))?.template).toEqual({ opts: { attempts: 5, removeOnFail: 3 } });
  });

  it.each(['text', 0, false, [], { nested: { a: [null] } }])('keep the data %j', async (data) => {
    const queue = stage.queue();
    const job = await queue.upsertJobScheduler('s', { every: MINUTE }, { data });
    expect((await queue.getJobScheduler('s'))?.template?.data).toEqual(data);
    expect((await queue.getJob(job.id as string))?.data).toEqual(data);
  });

  it('take null for no data', async () => {
    const queue = stage.queue();
    const job = await queue.upsertJobScheduler('s', { every: MINUTE }, { data: null });
    expect((await queue.getJobScheduler('s'))?.template).toBeUndefined();
    expect((await queue.getJob(job.id as string))?.data).toEqual({});
  });

  it('are none where there are none', async () => {
    const queue = stage.queue();
    expect(await queue.getJobScheduler('s')).toBeUndefined();
    expect(await queue.getJobSchedulers()).toEqual([]);
    expect(await queue.getJobSchedulersCount()).toBe(0);
    expect(await queue.removeJobScheduler('s')).toBe(false);
    expect(await (await queue.jobScheduler).isJobScheduler('s')).toBe(false);
  });

  it('are counted as `repeat`', async () => {
    const queue = stage.queue();
    expect(await queue.getJobCounts('repeat')).toEqual({ repeat: 0 });
    await queue.upsertJobScheduler('a', { every: MINUTE });
    await queue.upsertJobScheduler('b', { pattern: '0 0 1 1 *' });
    expect(await queue.getJobCounts('delayed', 'repeat')).toEqual({ delayed: 1, repeat: 2 });
  });

  it('are listed by their next run, the last first', async () => {
    at(NOON);
    const queue = stage.queue();
    for (const [id, offset] of [
      ['b', 20_000],
      ['d', 40_000],
      ['a', 10_000],
      ['c', 30_000],
    ] as const) {
      await queue.upsertJobScheduler(id, { every: MINUTE, offset });
    }
    const keys = async (...range: [number?, number?, boolean?]) =>
      (await queue.getJobSchedulers(...range)).map(({ key }) => key);
    expect(await keys()).toEqual(['d', 'c', 'b', 'a']);
    expect(await keys(0, -1, true)).toEqual(['a', 'b', 'c', 'd']);
    expect(await keys(1, 2)).toEqual(['c', 'b']);
    expect(await keys(1, 2, true)).toEqual(['b', 'c']);
    expect(await keys(-2, -1, true)).toEqual(['c', 'd']);
    expect(await keys(4, 9)).toEqual([]);
    expect(await queue.getJobSchedulersCount()).toBe(4);
  });

  it('are the same, listed and alone', async () => {
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { pattern: '0 0 * * *', limit: 3 }, { name: 'n', data: { a: 1 } });
    expect(await queue.getJobSchedulers()).toEqual([await queue.getJobScheduler('s')]);
  });

  it('are those of one queue', async () => {
    const queue = stage.queue();
    const other = stage.queue({ prefix: 'other' });
    await queue.upsertJobScheduler('s', { every: MINUTE });
    expect(await other.getJobSchedulersCount()).toBe(0);
    expect(await other.removeJobScheduler('s')).toBe(false);
    await other.obliterate();
  });

  it('are no jobs: counts and getters do not show them', async () => {
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { pattern: '0 0 1 1 *' });
    expect(await queue.getJobCounts()).toMatchObject({ delayed: 1, waiting: 0 });
    expect(await queue.getJobs()).toHaveLength(1);
    expect(await queue.getJob('s')).toBeFalsy();
  });

  describe('removal', () => {
    it('takes the delayed job along, and tells of it', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const job = await queue.upsertJobScheduler('s', { pattern: '0 0 1 1 *' });
      expect(await queue.removeJobScheduler('s')).toBe(true);
      expect(await queue.getJobSchedulersCount()).toBe(0);
      expect(await queue.getJob(job.id as string)).toBeFalsy();
      expect((await log.get('removed'))[0]).toEqual({ jobId: job.id, prev: 'delayed' });
      expect(await queue.removeJobScheduler('s')).toBe(false);
    });

    it('leaves a job that waits', async () => {
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE });
      await queue.upsertJobScheduler('p', { every: MINUTE }, { opts: { priority: 1 } });
      expect(await queue.removeJobScheduler('s')).toBe(true);
      expect(await queue.removeJobScheduler('p')).toBe(true);
      expect(await queue.getJobCounts('waiting', 'prioritized')).toEqual({ waiting: 1, prioritized: 1 });
    });

    it('lets the scheduler be made anew', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE, offset: 5 });
      await queue.removeJobScheduler('s');
      await queue.upsertJobScheduler('s', { every: MINUTE });
      expect(await queue.getJobScheduler('s')).toMatchObject({ next: NOON, offset: NOON % MINUTE, iterationCount: 1 });
    });
  });

  describe('protection of the next job', () => {
    it('refuses to remove it', async () => {
      const queue = stage.queue();
      const delayed = await queue.upsertJobScheduler('d', { pattern: '0 0 1 1 *' });
      const waiting = await queue.upsertJobScheduler('w', { every: MINUTE });
      for (const { id } of [delayed, waiting]) {
        const error = await rejection(queue.remove(id as string));
        expect(error).toMatchObject({ code: -8, message: `Job ${id} ${TOO_EARLY}` });
      }
      const job = await queue.getJob(delayed.id as string);
      expect(await rejection(job?.remove() as Promise<void>)).toMatchObject({ code: -8 });
      expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 1, delayed: 1 });
    });

    it('does not protect those before it', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(() => Promise.resolve()),
        ['completed'],
      );
      const job = await queue.upsertJobScheduler('s', { every: MINUTE });
      await log.get('completed');
      expect(await queue.remove(job.id as string)).toBe(1);
      expect(await queue.getCompletedCount()).toBe(0);
    });

    it('does protect one that ended and was the last', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(() => Promise.resolve()),
        ['completed'],
      );
      const job = await queue.upsertJobScheduler('s', { every: MINUTE, limit: 1 });
      await log.get('completed');
      expect(await rejection(queue.remove(job.id as string))).toMatchObject({ code: -8 });
      expect(await queue.clean(0, 0, 'completed')).toEqual([job.id]);
    });

    it('holds while the queue is drained and cleaned', async () => {
      const queue = stage.queue();
      await queue.upsertJobScheduler('d', { pattern: '0 0 1 1 *' });
      await queue.upsertJobScheduler('w', { every: MINUTE });
      await queue.upsertJobScheduler('p', { every: MINUTE }, { opts: { priority: 2 } });
      await queue.addBulk([
        { name: 'n', data: {} },
        { name: 'n', data: {}, opts: { delay: MINUTE } },
        { name: 'n', data: {}, opts: { priority: 2 } },
      ]);
      await queue.drain(true);
      const left = { waiting: 1, delayed: 1, prioritized: 1 };
      expect(await queue.getJobCounts('waiting', 'delayed', 'prioritized')).toEqual(left);
      for (const state of ['wait', 'delayed', 'prioritized'] as const)
        expect(await queue.clean(0, 0, state)).toEqual([]);
      expect(await queue.getJobCounts('waiting', 'delayed', 'prioritized')).toEqual(left);
      expect(await queue.getJobSchedulersCount()).toBe(3);
    });

    it('ends with the queue', async () => {
      const queue = stage.queue();
      await queue.upsertJobScheduler('d', { pattern: '0 0 1 1 *' });
      await queue.obliterate();
      expect(await queue.getJobSchedulersCount()).toBe(0);
      expect(await queue.getJobs()).toEqual([]);
    });

    it('lets it be promoted, and its delay be changed', async () => {
      const queue = stage.queue();
      const { id = '' } = await queue.upsertJobScheduler('d', { pattern: '0 0 1 1 *' });
      const job = await queue.getJob(id);
      await job?.changeDelay(5 * MINUTE);
      expect((await queue.getJob(id))?.delay).toBe(5 * MINUTE);
      await job?.promote();
      expect(await job?.getState()).toBe('waiting');
      expect(await queue.getJobSchedulersCount()).toBe(1);
    });
  });

  describe('JobScheduler', () => {
    it('does what the methods of the queue do', async () => {
      at(NOON);
      const queue = stage.queue();
      const scheduler = await queue.jobScheduler;
      expect(scheduler.name).toBe(stage.queueName);
      const job = await scheduler.upsertJobScheduler(
        's',
        { every: MINUTE },
        'n',
        { a: 1 },
        { attempts: 2 },
        { override: true },
      );
      expect(job).toMatchObject({ id: `repeat:s:${NOON}`, name: 'n', data: { a: 1 } });
      expect(await scheduler.isJobScheduler('s')).toBe(true);
      expect(await scheduler.getSchedulersCount()).toBe(1);
      expect(await scheduler.getScheduler('s')).toEqual(await queue.getJobScheduler('s'));
      expect(await scheduler.getJobSchedulers()).toEqual(await queue.getJobSchedulers());
      expect(await scheduler.removeJobScheduler('s')).toBe(0);
      expect(await scheduler.removeJobScheduler('s')).toBe(1);
    });

    it('stands on its own', async () => {
      const queue = stage.queue();
      const scheduler = stage.keep(new lib.JobScheduler(stage.queueName, { connection: queue.opts.connection }));
      await scheduler.upsertJobScheduler('s', { every: MINUTE }, 'n', {}, {}, { override: true });
      expect(await queue.getJobSchedulersCount()).toBe(1);
    });

    it('is that of a worker too', async () => {
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { pattern: '0 0 1 1 *' });
      const worker = stage.worker(null);
      const scheduler = await (worker as unknown as typeof queue).jobScheduler;
      expect(await scheduler.getSchedulersCount()).toBe(1);
    });
  });

  it('`repeat` of a plain job is kept and says nothing', async () => {
    const queue = stage.queue();
    const job = await queue.add('n', {}, { repeat: { every: 10 } } as object);
    expect(job.id).toBe('1');
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    await log.get('completed');
    expect((await queue.getJob('1'))?.opts).toMatchObject({ repeat: { every: 10 } });
    expect(await queue.getJobSchedulersCount()).toBe(0);
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
  });

  it('have a limit that is a number', async () => {
    const queue = stage.queue();
    await rejection(queue.upsertJobScheduler('s', { every: 60_000, limit: NaN }));
    expect(await queue.getWaitingCount()).toBe(0);
    for (const start of [NaN, 1.5, 'x']) await rejection(queue.getJobSchedulers(start as number));
  });
});
