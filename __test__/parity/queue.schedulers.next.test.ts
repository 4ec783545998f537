// Pins what follows a scheduler's job that a worker has taken: when, how often, and what of it.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const NOON = Date.UTC(2031, 4, 6, 7, 8, 9, 123);
const AFTER_MINUTE = NOON % MINUTE;

describe.each(libraries)('$name: what follows a job of a scheduler', ({ lib }) => {
  const stage = useStage(lib);
  const at = (ms: number) => {
    vi.spyOn(Date, 'now').mockImplementation(() => ms);
  };
  afterEach(() => {
    vi.restoreAllMocks();
  });
  const next = async (queue: Queue, id = 's') => (await queue.getJobScheduler(id))?.next;
  const delayedIds = async (queue: Queue) => (await queue.getDelayed()).map((job) => job.id);

  it('is there before the job is run, delayed by an interval', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { every: MINUTE }, { name: 'n', data: { a: 1 }, opts: { attempts: 2 } });
    const seen = await new Promise((resolve) => {
      stage.worker(async (job: Job) => resolve([job.id, await delayedIds(queue), await queue.getJobCounts()]));
    });
    expect(seen).toMatchObject([
      `repeat:s:${NOON}`,
      [`repeat:s:${NOON + MINUTE}`],
      { active: 1, delayed: 1, waiting: 0 },
    ]);
    const [following] = await queue.getDelayed();
    expect(following).toMatchObject({ name: 'n', data: { a: 1 }, delay: MINUTE, repeatJobKey: 's', timestamp: NOON });
    expect(following.opts).toEqual({
      attempts: 2,
      timestamp: NOON,
      delay: MINUTE,
      jobId: `repeat:s:${NOON + MINUTE}`,
      repeat: { every: MINUTE, count: 2 },
    });
    expect(await queue.getJobScheduler('s')).toMatchObject({ next: NOON + MINUTE, iterationCount: 2 });
  });

  it('is there when `active` is emitted', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const counts = new Promise((resolve) => {
      const worker = stage.worker(() => Promise.resolve(), { autorun: false });
      worker.on('active', () => void queue.getDelayedCount().then(resolve));
      void worker.run();
    });
    expect(await counts).toBe(1);
  });

  it('is a job with its run time in `prevMillis`, for a pattern', async () => {
    at(NOON);
    const queue = stage.queue();
    const first = await queue.upsertJobScheduler('s', { pattern: '*/10 * * * * *', tz: 'Etc/UTC', limit: 5 });
    at(NOON + 1_000);
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    const [done] = await log.get<[Job]>('completed');
    expect(done.id).toBe(first.id);
    const [following] = await queue.getDelayed();
    const slot = NOON + 877 + 10_000;
    expect(following.opts).toEqual({
      attempts: 0,
      timestamp: NOON + 1_000,
      delay: slot - NOON - 1_000,
      jobId: `repeat:s:${slot}`,
      prevMillis: slot,
      repeat: { pattern: '*/10 * * * * *', tz: 'Etc/UTC', limit: 5, count: 2 },
    });
  });

  it('skips the runs that were missed while there was no worker', async () => {
    at(NOON - 3 * DAY);
    const queue = stage.queue();
    await queue.upsertJobScheduler('plain', { every: MINUTE });
    await queue.upsertJobScheduler('offset', { every: MINUTE, offset: 777 });
    await queue.upsertJobScheduler('pattern', { pattern: '0 * * * *' });
    at(NOON);
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    await log.get('completed', 3);
    expect(await queue.getJobCounts('waiting', 'active', 'delayed')).toEqual({ waiting: 0, active: 0, delayed: 3 });
    expect(await next(queue, 'plain')).toBe(NOON + MINUTE);
    expect(await next(queue, 'offset')).toBe(NOON - AFTER_MINUTE + MINUTE + 777);
    expect(await next(queue, 'pattern')).toBe(NOON - (NOON % (60 * MINUTE)) + 60 * MINUTE);
  });

  it('keeps its slots when the clock goes back', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    at(NOON - DAY);
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    await log.get('completed');
    expect(await next(queue)).toBe(NOON + MINUTE);
  });

  it('runs on, time after time', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    const first = await queue.upsertJobScheduler('s', { every: 150 });
    await log.get('completed', 4);
    const ids = log.all<[Job]>('completed').map(([job]) => Number(job.id?.split(':')[2]));
    const start = Number(first.id?.split(':')[2]);
    expect(ids.slice(0, 4)).toEqual([0, 1, 2, 3].map((n) => start + 150 * n));
    expect(log.all<[Job]>('completed').map(([{ opts }]) => (opts as { repeat?: object }).repeat)).toMatchObject(
      [1, 2, 3, 4].map((count) => ({ every: 150, count })),
    );
  });

  it('runs on by a pattern with seconds', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    const first = await queue.upsertJobScheduler('s', { pattern: '* * * * * *' });
    await log.get('completed', 2);
    const ids = log.all<[Job]>('completed').map(([job]) => Number(job.id?.split(':')[2]));
    const start = Number(first.id?.split(':')[2]);
    expect(ids.slice(0, 2)).toEqual([start, start + 1000]);
  });

  it('stops at the limit, and leaves the scheduler', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed', 'drained'],
    );
    await queue.upsertJobScheduler('s', { every: 50, limit: 3 });
    await log.get('completed', 3);
    await log.get('drained');
    expect(await queue.getJobCounts('waiting', 'active', 'delayed')).toEqual({ waiting: 0, active: 0, delayed: 0 });
    const last = log.all<[Job]>('completed')[2][0];
    expect(await queue.getJobScheduler('s')).toMatchObject({ iterationCount: 3, limit: 3 });
    expect(`repeat:s:${await next(queue)}`).toBe(last.id);
  });

  it('stops at the end date', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('every', { every: MINUTE, endDate: NOON + 10 });
    await queue.upsertJobScheduler('cron', { pattern: '*/10 * * * * *', endDate: NOON + 1_000 });
    at(NOON + 5_000);
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    await log.get('completed', 2);
    expect(await queue.getDelayedCount()).toBe(0);
    expect(await queue.getJobSchedulersCount()).toBe(2);
  });

  it('takes name and data of the template as it is by then, and the options of the job', async () => {
    at(NOON);
    const queue = stage.queue();
    const gate = stage.gate();
    await queue.upsertJobScheduler('s', { every: MINUTE }, { name: 'a', data: 1, opts: { attempts: 2 } });
    const log = new EventLog(
      stage.worker(() => gate.opened),
      ['active'],
    );
    await log.get('active');
    const job = await queue.upsertJobScheduler('s', { every: MINUTE }, { name: 'b', data: 2, opts: { attempts: 3 } });
    expect(job.id).toBe(`repeat:s:${NOON + MINUTE}`);
    const [following] = await queue.getDelayed();
    expect(following).toMatchObject({ name: 'b', data: 2 });
    expect(following.opts).toMatchObject({ attempts: 3, repeat: { count: 1 } });
    expect(await queue.getJobCounts('active', 'delayed')).toEqual({ active: 1, delayed: 1 });
    expect(await queue.getJobScheduler('s')).toMatchObject({ iterationCount: 2 });
  });

  it('runs at once when `every` changes while the job is active', async () => {
    at(NOON);
    const queue = stage.queue();
    const gate = stage.gate();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const log = new EventLog(
      stage.worker(() => gate.opened),
      ['active'],
    );
    await log.get('active');
    at(NOON + 5);
    await queue.upsertJobScheduler('s', { every: 2 * MINUTE });
    expect((await queue.getWaiting()).map((job) => job.id)).toEqual([`repeat:s:${NOON + 5}`]);
    expect(await queue.getDelayedCount()).toBe(0);
  });

  it('comes once, whatever the tries of the job', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { every: MINUTE }, { opts: { attempts: 3 } });
    const log = new EventLog(
      stage.worker(() => Promise.reject(new Error('no'))),
      ['failed'],
    );
    await log.get('failed', 3);
    expect(await queue.getJobCounts('failed', 'delayed')).toEqual({ failed: 1, delayed: 1 });
    expect(await queue.getJobScheduler('s')).toMatchObject({ iterationCount: 2 });
    await (await queue.getFailed())[0].retry();
    await log.get('failed', 4);
    expect(await delayedIds(queue)).toEqual([`repeat:s:${NOON + MINUTE}`]);
  });

  it('comes once, with many workers', async () => {
    const queue = stage.queue();
    const done: string[] = [];
    for (let i = 0; i < 5; i++) {
      stage.worker(
        (job) => {
          done.push(job.id as string);
          return Promise.resolve();
        },
        { concurrency: 3 },
      );
    }
    await Promise.all(['a', 'b', 'c'].map((id) => queue.upsertJobScheduler(id, { every: 100 })));
    await until('some runs', () => done.length >= 15);
    expect(new Set(done).size).toBe(done.length);
    const counts = await queue.getJobCounts('waiting', 'active', 'delayed');
    expect(counts.waiting + counts.active + counts.delayed).toBeGreaterThanOrEqual(3);
    expect(counts.delayed).toBeLessThanOrEqual(3);
  });

  it('is told, between `active` and `completed` of the job', async () => {
    at(NOON);
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.upsertJobScheduler('s', { every: MINUTE }, { name: 'n' });
    stage.worker(() => Promise.resolve());
    await log.get('completed');
    const following = `repeat:s:${NOON + MINUTE}`;
    expect(log.entries.map(({ event, args }) => [event, args[0]]).slice(0, 6)).toEqual([
      ['added', { jobId: `repeat:s:${NOON}`, name: 'n' }],
      ['waiting', { jobId: `repeat:s:${NOON}` }],
      ['active', { jobId: `repeat:s:${NOON}`, prev: 'waiting' }],
      ['added', { jobId: following, name: 'n' }],
      ['delayed', { jobId: following, delay: NOON + MINUTE }],
      ['completed', { jobId: `repeat:s:${NOON}`, returnvalue: null, prev: 'active' }],
    ]);
  });

  it('is not added when a job of its id is there, which is told', async () => {
    at(NOON);
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    await queue.add('mine', {}, { jobId: `repeat:s:${NOON + MINUTE}`, delay: 5 * MINUTE });
    stage.worker(() => Promise.resolve());
    await log.get('completed');
    expect((await log.get('duplicated'))[0]).toEqual({ jobId: `repeat:s:${NOON + MINUTE}` });
    expect((await queue.getDelayed()).map((job) => job.name)).toEqual(['mine']);
    expect(await queue.getJobScheduler('s')).toMatchObject({ next: NOON, iterationCount: 1 });
  });

  it('does not come when the scheduler was removed', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    expect(await queue.removeJobScheduler('s')).toBe(true);
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    await log.get('completed');
    expect(await queue.getJobCounts('waiting', 'delayed', 'active')).toEqual({ waiting: 0, delayed: 0, active: 0 });
  });

  it('comes when a job is taken by hand', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const worker = stage.worker(null);
    const job = await worker.getNextJob('token');
    expect(job).toMatchObject({ id: `repeat:s:${NOON}`, repeatJobKey: 's' });
    expect(await delayedIds(queue)).toEqual([`repeat:s:${NOON + MINUTE}`]);
    await job.moveToCompleted(1, 'token', false);
  });

  it('comes when a job is taken by the end of another, by hand', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.add('first', {});
    await queue.upsertJobScheduler('s', { every: MINUTE });
    const worker = stage.worker(null);
    const first = await worker.getNextJob('token');
    const [data, id] = (await first.moveToCompleted(1, 'token', true)) as [object, string];
    type Open = { nextJobFromJobData(data: object, id: string, token: string): Promise<Job | undefined> };
    const job = await (worker as unknown as Open).nextJobFromJobData(data, id, 'token');
    expect(job?.id).toBe(`repeat:s:${NOON}`);
    expect(await delayedIds(queue)).toEqual([`repeat:s:${NOON + MINUTE}`]);
    await job?.moveToCompleted(1, 'token', false);
  });

  it('waits while the queue is paused, and then runs once', async () => {
    at(NOON);
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    await queue.upsertJobScheduler('s', { every: MINUTE, offset: AFTER_MINUTE + 1 });
    await queue.pause();
    at(NOON + DAY);
    await queue.resume();
    await log.get('completed');
    expect(await next(queue)).toBe(NOON + DAY + 1);
    expect(await queue.getJobCounts('completed', 'waiting', 'delayed')).toEqual({
      completed: 1,
      waiting: 0,
      delayed: 1,
    });
  });

  it('asks the strategy of the worker', async () => {
    at(NOON);
    const asked: unknown[][] = [];
    const settings = (ms: number) => ({
      repeatStrategy: (...args: unknown[]) => {
        asked.push(args);
        return ms;
      },
    });
    const queue = stage.queue({ settings: settings(NOON) });
    await queue.upsertJobScheduler('s', { pattern: 'mine', limit: 7 }, { name: 'n' });
    const log = new EventLog(
      stage.worker(() => Promise.resolve(), { settings: settings(NOON + 4_000) }),
      ['completed'],
    );
    await log.get('completed');
    expect(await delayedIds(queue)).toEqual([`repeat:s:${NOON + 4_000}`]);
    expect(asked.at(-1)).toEqual([NOON, { pattern: 'mine', limit: 7, count: 1 }, 'n']);
  });

  it('ends when the strategy gives no time', async () => {
    at(NOON);
    const queue = stage.queue({ settings: { repeatStrategy: () => NOON } });
    await queue.upsertJobScheduler('s', { pattern: 'mine' });
    const log = new EventLog(
      stage.worker(() => Promise.resolve(), { settings: { repeatStrategy: () => undefined } }),
      ['completed'],
    );
    await log.get('completed');
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
  });

  it('must be computed before the job may run', async () => {
    at(NOON);
    const queue = stage.queue({ settings: { repeatStrategy: () => NOON } });
    let ran = 0;
    const worker = stage.worker(() => Promise.resolve(ran++));
    const errors: Error[] = [];
    worker.on('error', (error) => errors.push(error));
    await queue.upsertJobScheduler('s', { pattern: 'mine' });
    const text = 'Failed to add repeatable job for next iteration: Validation error, cannot resolve alias "min"';
    await until('the error', () => errors.some(({ message }) => message === text));
    expect(ran).toBe(0);
    expect(await queue.getJobCounts('waiting', 'active', 'delayed', 'failed')).toEqual({
      waiting: 0,
      active: 1,
      delayed: 0,
      failed: 0,
    });
    await queue.add('other', {});
    await until('the other job', () => ran === 1);
    stage.takeErrors();
  });

  it('comes from the slot of a job that was promoted', async () => {
    at(NOON);
    const queue = stage.queue();
    const first = await queue.upsertJobScheduler('cron', { pattern: '0 0 * * *' });
    const midnight = Number(first.id?.split(':')[2]);
    await (await queue.getJob(first.id as string))?.promote();
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    await log.get('completed');
    expect(await next(queue, 'cron')).toBe(midnight + DAY);
  });

  it('comes though the job is removed when it completes', async () => {
    at(NOON);
    const queue = stage.queue();
    await queue.upsertJobScheduler('s', { every: MINUTE }, { opts: { removeOnComplete: true } });
    const log = new EventLog(
      stage.worker(() => Promise.resolve()),
      ['completed'],
    );
    await log.get('completed');
    expect(await queue.getJobCounts('completed', 'delayed')).toEqual({ completed: 0, delayed: 1 });
  });
});
