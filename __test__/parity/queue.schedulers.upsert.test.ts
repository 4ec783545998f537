// Pins Queue#upsertJobScheduler: what it stores, and when the first and the upserted iterations run.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const MINUTE = 60_000;
/** 2031-05-06 07:08:09.123 UTC, 9,123 ms after a minute. */
const NOON = Date.UTC(2031, 4, 6, 7, 8, 9, 123);
const AFTER_MINUTE = NOON % MINUTE;

/** What a job of a scheduler says of its repetition. */
const repeatOf = (job: Job | undefined) => (job?.opts as { repeat?: object } | undefined)?.repeat;

describe.each(libraries)('$name: queue.upsertJobScheduler', ({ lib }) => {
  const stage = useStage(lib);
  let now = NOON;
  /** From now on it is `ms`, and no later, for whoever asks in this process. */
  const at = (ms: number) => {
    now = ms;
    vi.spyOn(Date, 'now').mockImplementation(() => now);
  };
  afterEach(() => {
    vi.restoreAllMocks();
  });
  const ids = async (queue: Queue, ...states: ('waiting' | 'delayed' | 'prioritized' | 'active')[]) =>
    (await queue.getJobs(states)).map((job) => job.id);

  describe('every', () => {
    it('runs at once, and is called after its time', async () => {
      at(NOON);
      const queue = stage.queue();
      const job = await queue.upsertJobScheduler('s', { every: MINUTE });
      expect(job).toMatchObject({ id: `repeat:s:${NOON}`, name: 's', data: {}, delay: 0, repeatJobKey: 's' });
      expect(await ids(queue, 'waiting')).toEqual([`repeat:s:${NOON}`]);
      expect(await queue.getJobCounts()).toMatchObject({ waiting: 1, delayed: 0 });
    });

    it('texts of numbers are numbers', async () => {
      at(NOON);
      const queue = stage.queue();
      const repeat = { every: '60000', offset: '500' } as unknown as { every: number; offset: number };
      const job = await queue.upsertJobScheduler('s', repeat);
      const next = NOON - AFTER_MINUTE + MINUTE + 500;
      expect(job?.id).toBe(`repeat:s:${next}`);
      expect(await queue.getJobScheduler('s')).toMatchObject({ every: MINUTE, offset: 500, next });
      at(next);
      // before there is a worker, to which it is due by now
      await job?.promote();
      const ran = new EventLog(
        stage.worker(async () => {}),
        ['completed'],
      );
      await ran.get('completed');
      expect(await ids(queue, 'delayed')).toEqual([`repeat:s:${next + MINUTE}`]);
    });

    it('stores the options of the job with its repetition', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE, limit: 9 }, { opts: { attempts: 4, removeOnComplete: 7 } });
      const job = await queue.getJob(`repeat:s:${NOON}`);
      expect(job?.opts).toEqual({
        attempts: 4,
        removeOnComplete: 7,
        timestamp: NOON,
        delay: 0,
        jobId: `repeat:s:${NOON}`,
        repeat: { every: MINUTE, limit: 9, count: 1 },
      });
      expect(job).toMatchObject({ repeatJobKey: 's', timestamp: NOON, delay: 0 });
    });

    it('takes name, data and options from the template, over the defaults of the queue', async () => {
      at(NOON);
      const queue = stage.queue({ defaultJobOptions: { attempts: 2, priority: 5 } });
      const template = { name: 'mail', data: { to: 'ana' }, opts: { priority: 3, backoff: 100 } };
      const job = await queue.upsertJobScheduler('s', { every: MINUTE }, template);
      expect(job).toMatchObject({ name: 'mail', data: { to: 'ana' }, priority: 3 });
      const stored = await queue.getJob(`repeat:s:${NOON}`);
      expect(stored).toMatchObject({ name: 'mail', data: { to: 'ana' }, priority: 3 });
      expect(stored?.opts).toMatchObject({ attempts: 2, priority: 3, backoff: { type: 'fixed', delay: 100 } });
      expect(await stored?.getState()).toBe('prioritized');
    });

    it('with an offset waits for the next slot', async () => {
      at(NOON);
      const queue = stage.queue();
      const before = await queue.upsertJobScheduler('before', { every: MINUTE, offset: AFTER_MINUTE - 1 });
      const after = await queue.upsertJobScheduler('after', { every: MINUTE, offset: AFTER_MINUTE + 1 });
      const equal = await queue.upsertJobScheduler('equal', { every: MINUTE, offset: AFTER_MINUTE });
      expect(before).toMatchObject({ id: `repeat:before:${NOON + MINUTE - 1}`, delay: MINUTE - 1 });
      expect(after).toMatchObject({ id: `repeat:after:${NOON + 1}`, delay: 1 });
      expect(equal).toMatchObject({ id: `repeat:equal:${NOON + MINUTE}`, delay: MINUTE });
      expect(repeatOf(await queue.getJob(after.id as string))).toEqual({
        every: MINUTE,
        offset: AFTER_MINUTE + 1,
        count: 1,
      });
    });

    it('waits for its start date, and not when that is past', async () => {
      at(NOON);
      const queue = stage.queue();
      const late = await queue.upsertJobScheduler('late', { every: MINUTE, startDate: new Date(NOON + 5_000) });
      const past = await queue.upsertJobScheduler('past', { every: MINUTE, startDate: NOON - 5_000 });
      const both = await queue.upsertJobScheduler('both', { every: MINUTE, startDate: NOON + 5_000, offset: 7 });
      expect(late).toMatchObject({ id: `repeat:late:${NOON + 5_000}`, delay: 5_000 });
      expect(past).toMatchObject({ id: `repeat:past:${NOON}`, delay: 0 });
      expect(both).toMatchObject({ id: `repeat:both:${NOON + 5_000}` });
      const stored = await queue.getJob(late.id as string);
      expect(repeatOf(stored)).toEqual({ every: MINUTE, startDate: NOON + 5_000, count: 1 });
    });

    it('is the same again when nothing changes, also later', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE });
      at(NOON + 20_000);
      await queue.upsertJobScheduler('s', { every: MINUTE });
      expect(await ids(queue, 'waiting', 'delayed')).toEqual([`repeat:s:${NOON}`]);
      const [scheduler] = await queue.getJobSchedulers();
      expect(scheduler).toMatchObject({ next: NOON, iterationCount: 1, offset: AFTER_MINUTE });
    });

    it('keeps the time of a delayed job, whose data change', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE, offset: 30_000 }, { data: 1 });
      at(NOON + 100);
      const job = await queue.upsertJobScheduler('s', { every: MINUTE, offset: 40_000 }, { data: 2 });
      const slot = NOON - AFTER_MINUTE + 30_000;
      expect(job).toMatchObject({ id: `repeat:s:${slot}`, delay: slot - NOON - 100, data: 2 });
      expect(await ids(queue, 'waiting', 'delayed')).toEqual([`repeat:s:${slot}`]);
      expect((await queue.getJob(`repeat:s:${slot}`))?.data).toBe(2);
      expect(await queue.getJobScheduler('s')).toMatchObject({ offset: 40_000, next: slot });
    });

    it('runs at once when `every` changes', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE, offset: 30_000 });
      at(NOON + 1_000);
      await queue.upsertJobScheduler('s', { every: 2 * MINUTE });
      expect(await ids(queue, 'waiting', 'delayed')).toEqual([`repeat:s:${NOON + 1_000}`]);
      expect(await queue.getJobScheduler('s')).toMatchObject({ every: 2 * MINUTE, offset: 30_000 });
    });

    it('of a run that is past waits at once, under its old time', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE, offset: 30_000 });
      at(NOON + 1000 * MINUTE);
      const job = await queue.upsertJobScheduler('s', { every: MINUTE });
      const slot = NOON - AFTER_MINUTE + 30_000;
      expect(job).toMatchObject({ id: `repeat:s:${slot}`, delay: 0 });
      expect(await ids(queue, 'waiting')).toEqual([`repeat:s:${slot}`]);
    });

    it.each([
      { every: 1_000, slot: NOON + 10 * MINUTE, offset: NOON % 1_000 },
      { every: MINUTE, slot: NOON - AFTER_MINUTE + 11 * MINUTE, offset: 0 },
    ])('forgets the offset of a run that has ended: $every', async ({ every, slot, offset }) => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE, limit: 1 });
      const taken = await stage.worker(null).getNextJob('token');
      await taken?.moveToCompleted(null, 'token', false);
      expect(await queue.getJobScheduler('s')).toMatchObject({ offset: AFTER_MINUTE });
      at(NOON + 10 * MINUTE);
      expect((await queue.upsertJobScheduler('s', { every })).id).toBe(`repeat:s:${slot}`);
      expect(await queue.getJobScheduler('s')).toMatchObject({ offset, next: slot });
    });

    it('leaves a waiting job of a paused queue, and adds the one after it', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.pause();
      await queue.upsertJobScheduler('s', { every: MINUTE });
      await queue.upsertJobScheduler('s', { every: MINUTE });
      await queue.upsertJobScheduler('s', { every: MINUTE });
      expect(await ids(queue, 'waiting')).toEqual([`repeat:s:${NOON}`]);
      expect(await ids(queue, 'delayed')).toEqual([`repeat:s:${NOON + MINUTE}`]);
    });

    it('warns of `immediately`, which says nothing', async () => {
      at(NOON);
      const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
      const job = await stage.queue().upsertJobScheduler('s', { every: MINUTE, immediately: true });
      expect(job.id).toBe(`repeat:s:${NOON}`);
      expect(warn.mock.calls).toEqual([
        ["Using option immediately with every does not affect the job's schedule. Job will run immediately anyway."],
      ]);
    });

    it('puts a job with `lifo` at the front', async () => {
      const queue = stage.queue();
      await queue.add('first', {});
      const job = await queue.upsertJobScheduler('s', { every: MINUTE }, { opts: { lifo: true } });
      const log: (string | undefined)[] = [];
      const all = new Promise<void>((resolve) => {
        stage.worker((each) => {
          log.push(each.id);
          if (log.length === 2) resolve();
          return Promise.resolve();
        });
      });
      await all;
      expect(log).toEqual([job.id, '1']);
    });

    it('counts the number of a job as `add` does', async () => {
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE });
      expect((await queue.add('job', {})).id).toBe('2');
    });
  });

  describe('pattern', () => {
    it('waits for the next time', async () => {
      at(NOON);
      const queue = stage.queue();
      const job = await queue.upsertJobScheduler('s', { pattern: '*/10 * * * * *' }, { name: 'tick' });
      expect(job).toMatchObject({ id: `repeat:s:${NOON + 877}`, name: 'tick', delay: 877, repeatJobKey: 's' });
      expect((await queue.getJob(job.id as string))?.opts).toEqual({
        attempts: 0,
        timestamp: NOON,
        delay: 877,
        jobId: job.id,
        prevMillis: NOON + 877,
        repeat: { pattern: '*/10 * * * * *', count: 1 },
      });
    });

    it('takes five fields, names and a time zone', async () => {
      at(NOON);
      const queue = stage.queue();
      const times = [
        await queue.upsertJobScheduler('utc', { pattern: '30 9 * * *', tz: 'Etc/UTC' }),
        await queue.upsertJobScheduler('lima', { pattern: '30 9 * * *', tz: 'America/Lima' }),
        await queue.upsertJobScheduler('names', { pattern: '0 0 * jun mon', tz: 'Etc/UTC' }),
      ].map((job) => new Date(Number(job.id?.split(':')[2])).toISOString());
      expect(times).toEqual(['2031-05-06T09:30:00.000Z', '2031-05-06T14:30:00.000Z', '2031-06-02T00:00:00.000Z']);
      expect((await queue.getJobScheduler('lima'))?.tz).toBe('America/Lima');
    });

    it('passes over an hour that does not exist, and runs once in one that is there twice', async () => {
      const queue = stage.queue();
      const next = async (id: string, ms: number) => {
        at(ms);
        const job = await queue.upsertJobScheduler(id, { pattern: '30 2 * * *', tz: 'Europe/Paris' });
        return new Date(Number(job.id?.split(':')[2])).toISOString();
      };
      // clocks go forward on 2031-03-30 and back on 2031-10-26
      expect(await next('spring', Date.UTC(2031, 2, 29, 12))).toBe('2031-03-30T01:30:00.000Z');
      expect(await next('autumn', Date.UTC(2031, 9, 25, 12))).toMatch(/^2031-10-26T0[01]:30:00.000Z$/);
    });

    it('runs now with `immediately`, which is not stored', async () => {
      at(NOON);
      const queue = stage.queue();
      vi.useFakeTimers({ toFake: ['Date'], now: NOON });
      try {
        const job = await queue.upsertJobScheduler('s', { pattern: '0 0 * * *', immediately: true });
        expect(job).toMatchObject({ id: `repeat:s:${NOON}`, delay: 0 });
      } finally {
        vi.useRealTimers();
      }
      const [stored] = await queue.getWaiting();
      expect(repeatOf(stored)).toEqual({ pattern: '0 0 * * *', count: 1 });
    });

    it('waits for the first time after its start date', async () => {
      at(NOON);
      const queue = stage.queue();
      const start = NOON + 3 * MINUTE;
      const job = await queue.upsertJobScheduler('s', {
        pattern: '* * * * *',
        startDate: new Date(start).toISOString(),
      });
      expect(job.id).toBe(`repeat:s:${start - AFTER_MINUTE + MINUTE}`);
      expect(repeatOf(await queue.getJob(job.id as string))).toEqual({
        pattern: '* * * * *',
        startDate: start,
        count: 1,
      });
    });

    it('replaces the job of another pattern', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { pattern: '0 0 * * *' });
      const job = await queue.upsertJobScheduler('s', { pattern: '* * * * *' });
      expect(await ids(queue, 'waiting', 'delayed')).toEqual([job.id]);
      expect(await queue.getJobScheduler('s')).toMatchObject({ pattern: '* * * * *', iterationCount: 1 });
    });

    it('replaces `every`, and the other way round', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.upsertJobScheduler('s', { every: MINUTE });
      const job = await queue.upsertJobScheduler('s', { pattern: '* * * * *' });
      expect(await ids(queue, 'waiting', 'delayed')).toEqual([job.id]);
      expect((await queue.getJobScheduler('s'))?.every).toBeUndefined();
      await queue.upsertJobScheduler('s', { every: MINUTE });
      expect(await ids(queue, 'waiting', 'delayed')).toEqual([`repeat:s:${NOON}`]);
      expect((await queue.getJobScheduler('s'))?.pattern).toBeUndefined();
    });

    it.each(['completed', 'failed'] as const)(
      'runs again in a slot whose job was promoted and has %s',
      async (state) => {
        const queue = stage.queue();
        const first = await queue.upsertJobScheduler('s', { pattern: '0 0 1 1 *' });
        await queue.promoteJobs();
        const worker = stage.worker(async () => {
          if (state === 'failed') throw new Error('no');
        });
        await new EventLog(worker, [state]).get(state);
        await worker.close();
        expect((await queue.getJobScheduler('s'))?.iterationCount).toBe(2);
        const again = await queue.upsertJobScheduler('s', { pattern: '0 0 1 1 *' }, { name: 'again' });
        expect(again.id).toBe(first.id);
        expect((await queue.getDelayed()).map(({ id, name }) => [id, name])).toEqual([[first.id, 'again']]);
        expect(await queue.getJobScheduler('s')).toMatchObject({ iterationCount: 2, name: 'again' });
      },
    );

    it('is refused when a job of its id is there, and changes nothing', async () => {
      at(NOON);
      const queue = stage.queue();
      await queue.add('mine', {}, { jobId: `repeat:s:${NOON + 877}` });
      const error = await rejection(queue.upsertJobScheduler('s', { pattern: '*/10 * * * * *' }));
      expect(error).toMatchObject({
        code: -10,
        message: 'Cannot create job scheduler iteration - job ID already exists. addJobScheduler',
      });
      expect(await queue.getJobSchedulersCount()).toBe(0);
      expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 1, delayed: 0 });
    });
  });

  it('asks a strategy of the user for patterns', async () => {
    at(NOON);
    const asked: unknown[][] = [];
    const repeatStrategy = (...args: unknown[]) => {
      asked.push(args);
      return NOON + 4_321;
    };
    const queue = stage.queue({ settings: { repeatStrategy } });
    const job = await queue.upsertJobScheduler('s', { pattern: 'whenever', limit: 4 }, { name: 'n' });
    expect(job.id).toBe(`repeat:s:${NOON + 4_321}`);
    expect(asked).toEqual([[NOON, { pattern: 'whenever', limit: 4 }, 'n']]);
    await queue.upsertJobScheduler('e', { every: MINUTE });
    expect(asked).toHaveLength(1);
  });

  it('awaits the strategy, and takes a time that is past for now', async () => {
    at(NOON);
    const queue = stage.queue({ settings: { repeatStrategy: () => Promise.resolve(NOON - 50) } });
    const job = await queue.upsertJobScheduler('s', { pattern: 'whenever' });
    expect(job).toMatchObject({ id: `repeat:s:${NOON}`, delay: 0 });
  });

  it('makes nothing when the strategy gives no time', async () => {
    const queue = stage.queue({ settings: { repeatStrategy: () => undefined } });
    expect(await queue.upsertJobScheduler('s', { pattern: 'never' })).toBeUndefined();
    expect(await queue.getJobSchedulersCount()).toBe(0);
  });

  it('passes over slots that are taken, 32 of them', async () => {
    at(NOON);
    const queue = stage.queue();
    const taken = (n: number) => ({
      name: 'n',
      data: {},
      opts: { jobId: `repeat:s:${NOON + n * 1000}`, delay: MINUTE },
    });
    await queue.addBulk(Array.from({ length: 32 }, (_, n) => taken(n)));
    const job = await queue.upsertJobScheduler('s', { every: 1000 });
    expect(job.id).toBe(`repeat:s:${NOON + 32_000}`);
    await queue.removeJobScheduler('s');
    await queue.addBulk([taken(32)]);
    const error = await rejection(queue.upsertJobScheduler('s', { every: 1000 }));
    expect(error).toMatchObject({
      code: -11,
      message: 'Cannot create job scheduler iteration - current and next time slots already have jobs. addJobScheduler',
    });
  });

  it('makes one scheduler and one job of many calls at once', async () => {
    const queue = stage.queue();
    const other = stage.queue();
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 ? queue : other).upsertJobScheduler('s', { pattern: '0 0 1 1 *' })),
    );
    expect(await queue.getJobSchedulersCount()).toBe(1);
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 1 });
  });

  it.each(['a:b', 'a:b:c:d:e:f', '', 'with "quotes" \\ and ñandú', '17'])('takes the id %j', async (id) => {
    at(NOON);
    const queue = stage.queue();
    const job = await queue.upsertJobScheduler(id, { every: MINUTE });
    expect(job.id).toBe(`repeat:${id}:${NOON}`);
    const stored = await queue.getJob(`repeat:${id}:${NOON}`);
    expect(stored).toMatchObject({ repeatJobKey: id, name: id });
    expect(stored?.opts.jobId).toBe(`repeat:${id}:${NOON}`);
    expect((await queue.getJobScheduler(id))?.key).toBe(id);
  });

  it('tells of added jobs, and not of those it replaces', async () => {
    at(NOON);
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.upsertJobScheduler('s', { every: MINUTE });
    await queue.upsertJobScheduler('s', { pattern: '* * * * *' }, { name: 'n' });
    await queue.add('last', {});
    await log.when('the last job', () => log.all('waiting').length === 2);
    const slot = NOON - AFTER_MINUTE + MINUTE;
    expect(log.entries.map(({ event, args }) => [event, args[0]])).toEqual([
      ['added', { jobId: `repeat:s:${NOON}`, name: 's' }],
      ['waiting', { jobId: `repeat:s:${NOON}` }],
      ['added', { jobId: `repeat:s:${slot}`, name: 'n' }],
      ['delayed', { jobId: `repeat:s:${slot}`, delay: slot }],
      ['added', { jobId: '3', name: 'last' }],
      ['waiting', { jobId: '3' }],
    ]);
  });

  describe('refuses', () => {
    it.each([
      [{ every: 1000, endDate: 1 }, 'End date must be greater than current timestamp'],
      [{ every: 1000, pattern: '* * * * *' }, 'Both .pattern and .every options are defined for this repeatable job'],
      [{}, 'Either .pattern or .every options must be defined for this repeatable job'],
      [
        { pattern: '* * * * *', immediately: true, startDate: 5 },
        'Both .immediately and .startDate options are defined for this repeatable job',
      ],
      [{ pattern: 'nonsense' }, 'Validation error, cannot resolve alias "non"'],
      [{ pattern: '61 * * * *' }, 'Constraint error, got value 61 expected range 0-59'],
    ])('%j', async (repeat, message) => {
      const queue = stage.queue();
      expect((await rejection(queue.upsertJobScheduler('s', repeat))).message).toBe(message);
      expect(await queue.getJobSchedulersCount()).toBe(0);
    });

    it('a time zone that is none', async () => {
      const error = await rejection(stage.queue().upsertJobScheduler('s', { pattern: '* * * * *', tz: 'Mars/Base' }));
      expect(error.message).toMatch(/^CronDate: unhandled timestamp/);
    });

    it('`debounce` in the template', async () => {
      const opts = { debounce: { id: 'x' } } as object;
      const error = await rejection(stage.queue().upsertJobScheduler('s', { every: 1000 }, { opts }));
      expect(error.message).toBe('Debounce option has been removed. Use deduplication option instead');
    });
  });

  it.each([
    { every: 1000, limit: 0 },
    { every: 1000, limit: 3, count: 3 },
    { pattern: '0 0 1 1 *', endDate: NOON + 1 },
  ])('stores nothing of %j, which never runs', async (repeat) => {
    at(NOON);
    const queue = stage.queue();
    expect(await queue.upsertJobScheduler('s', repeat)).toBeUndefined();
    expect(await queue.getJobSchedulersCount()).toBe(0);
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
  });
});
