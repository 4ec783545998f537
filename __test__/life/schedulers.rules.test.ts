// What BullMQ's schedulers do not have: they pause, run when they are told, catch up with what was missed, do not overlap, and spread.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Job, JobSchedulerJson, Queue, RepeatOptions, Worker, WorkerOptions } from '../../src/index.js';
import * as v5 from '../../src/v5/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** 2031-05-06 07:08:00 UTC. */
const NOON = Date.UTC(2031, 4, 6, 7, 8);

type Repeat = Omit<RepeatOptions, 'key'>;

/** The same times, named in both ways. */
const EACH_MINUTE: [string, Repeat][] = [
  ['every', { every: MINUTE }],
  ['pattern', { pattern: '* * * * *' }],
];

describe('rules of schedulers', () => {
  const stage = useStage(chasquimq);
  let now = NOON;
  /** From now on it is `ms`, and no later, for whoever asks in this process. */
  const at = (ms: number) => {
    now = ms;
    vi.spyOn(Date, 'now').mockImplementation(() => now);
  };
  afterEach(() => {
    vi.restoreAllMocks();
  });
  const queue = () => stage.queue() as unknown as Queue;
  const worker = (handler: (job: Job) => Promise<unknown>, opts: Partial<WorkerOptions> = {}) =>
    stage.worker(handler as never, opts) as unknown as Worker;
  const slotOf = (job: { id?: string } | undefined) => Number(job?.id?.split(':').at(-1));
  const slots = async (from: Queue, ...states: ('waiting' | 'delayed' | 'active' | 'completed')[]) =>
    (await from.getJobs(states)).map(slotOf);
  const scheduler = async (from: Queue) => (await from.getJobScheduler('s')) as JobSchedulerJson;

  describe.each(EACH_MINUTE)('pausing, %s', (_, repeat) => {
    it('takes the next job back, and resuming makes it again', async () => {
      at(NOON + 1);
      const some = queue();
      await some.upsertJobScheduler('s', { ...repeat, startDate: NOON + 1000 }, { name: 'n', data: { a: 1 } });
      const [first] = await slots(some, 'delayed');
      expect(await some.pauseJobScheduler('s')).toBe(true);
      expect(await some.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
      expect(await scheduler(some)).toMatchObject({ paused: true, next: first, iterationCount: 1 });
      expect(await some.pauseJobScheduler('s')).toBe(true);

      expect(await some.resumeJobScheduler('s')).toBe(true);
      expect(await slots(some, 'delayed')).toEqual([first]);
      expect((await some.getDelayed())[0]).toMatchObject({ name: 'n', data: { a: 1 }, delay: first - now });
      expect((await scheduler(some)).paused).toBeUndefined();
      expect(await some.resumeJobScheduler('s')).toBe(true);
      expect(await slots(some, 'delayed')).toEqual([first]);
    });

    it('outlasts the starts of programs, which change what it makes', async () => {
      at(NOON + 1);
      const some = queue();
      await some.upsertJobScheduler('s', repeat, { data: 1 });
      await some.pauseJobScheduler('s');
      expect(await some.upsertJobScheduler('s', repeat, { data: 2 })).toBeUndefined();
      expect(await some.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
      at(NOON + HOUR);
      await some.resumeJobScheduler('s');
      expect((await some.getDelayed()).map(({ data }) => data as number)).toEqual([2]);
    });

    it('lets a run go on, and the next one comes behind the pause', async () => {
      at(NOON + 1);
      const some = queue();
      const gate = stage.gate();
      await some.upsertJobScheduler('s', repeat);
      await some.promoteJobs();
      const log = new EventLog(
        worker(() => gate.opened),
        ['active', 'completed'],
      );
      await log.get('active');
      await some.pauseJobScheduler('s');
      gate.open();
      await log.get('completed');
      expect(await some.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
      at(NOON + HOUR + 1);
      await some.resumeJobScheduler('s');
      const [next] = await slots(some, 'delayed');
      expect(next).toBeGreaterThan(NOON + HOUR);
      expect(next).toBeLessThanOrEqual(now + MINUTE);
    });

    it('counts the runs of a limit', async () => {
      at(NOON + 1);
      const some = queue();
      await some.upsertJobScheduler('s', { ...repeat, limit: 2 });
      await some.pauseJobScheduler('s');
      await some.resumeJobScheduler('s');
      const log = new EventLog(
        worker(() => Promise.resolve()),
        ['completed'],
      );
      for (let run = 1; run <= 2; run++) {
        await some.promoteJobs();
        await log.get('completed', run);
      }
      expect(await some.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
    });

    it('ends with the end date', async () => {
      at(NOON + 1);
      const some = queue();
      await some.upsertJobScheduler('s', { ...repeat, endDate: NOON + HOUR });
      await some.pauseJobScheduler('s');
      at(NOON + 2 * HOUR);
      expect(await some.resumeJobScheduler('s')).toBe(true);
      expect(await some.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
      expect((await scheduler(some)).paused).toBeUndefined();
    });

    it('is not needed to run one now', async () => {
      at(NOON + 1);
      const some = queue();
      await some.upsertJobScheduler('s', { ...repeat, limit: 1 }, { name: 'n', data: { a: 1 }, opts: { attempts: 3 } });
      await some.pauseJobScheduler('s');
      const before = await scheduler(some);
      const job = await some.runJobSchedulerNow('s');
      expect(job).toMatchObject({ name: 'n', data: { a: 1 }, repeatJobKey: 's', delay: 0 });
      const log = new EventLog(
        worker(() => Promise.resolve()),
        ['completed'],
      );
      const [done] = await log.get<[Job]>('completed');
      expect(done).toMatchObject({ id: job?.id, name: 'n', data: { a: 1 }, repeatJobKey: 's' });
      expect(done.opts).toMatchObject({ attempts: 3, jobId: job?.id });
      expect(await scheduler(some)).toEqual(before);
      expect(await some.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
    });
  });

  it('of none there is nothing to pause, to resume and to run', async () => {
    const some = queue();
    expect(await some.pauseJobScheduler('s')).toBe(false);
    expect(await some.resumeJobScheduler('s')).toBe(false);
    expect(await some.runJobSchedulerNow('s')).toBeUndefined();
  });

  it('many processes that pause and resume at once leave one job', async () => {
    const queues = Array.from({ length: 5 }, queue);
    await queues[0].upsertJobScheduler('s', { pattern: '0 0 1 1 *' });
    await Promise.all(
      queues.flatMap((some) => [
        some.pauseJobScheduler('s'),
        some.resumeJobScheduler('s'),
        some.resumeJobScheduler('s'),
      ]),
    );
    await queues[0].resumeJobScheduler('s');
    expect(await queues[0].getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 1 });
  });

  it('several runs in a millisecond are several jobs', async () => {
    at(NOON);
    const some = queue();
    await some.upsertJobScheduler('s', { every: MINUTE });
    const jobs = await Promise.all(Array.from({ length: 3 }, () => some.runJobSchedulerNow('s')));
    expect(new Set(jobs.map((job) => job?.id)).size).toBe(3);
    expect(await some.getWaitingCount()).toBe(4);
  });

  describe.each(EACH_MINUTE)('overlap, %s', (_, repeat) => {
    /** A run that has started, and the next one, which is due. */
    async function twoRuns(some: Queue, overlap: 'allow' | 'skip' | 'queue', concurrency = 5) {
      at(NOON + 1);
      const gates = [stage.gate(), stage.gate(), stage.gate()];
      const ran: number[] = [];
      await some.upsertJobScheduler('s', { ...repeat, overlap });
      await some.promoteJobs();
      const log = new EventLog(
        worker(
          async (job) => {
            ran.push(slotOf(job));
            await gates[ran.length - 1].opened;
          },
          { concurrency },
        ),
        ['active', 'completed'],
      );
      await log.get('active');
      await some.promoteJobs();
      return { gates, ran, log };
    }
    const told = stage.globalLog.bind(stage);

    it("'allow' runs both", async () => {
      const some = queue();
      const { ran } = await twoRuns(some, 'allow');
      await until('the second run', () => ran.length === 2);
      expect(await some.getActiveCount()).toBe(2);
    });

    it.each([5, 1])("'skip' leaves out the second, with a concurrency of %d", async (concurrency) => {
      const some = queue();
      const { gates, ran, log } = await twoRuns(some, 'skip', concurrency);
      const events = told();
      if (concurrency === 1) {
        at(NOON + 2 * MINUTE + 10);
        gates[0].open();
      }
      const [removed] = await events.get<[{ jobId: string; prev: string }]>('removed');
      expect(removed.prev).toBe('active');
      expect(slotOf({ id: removed.jobId })).toBeGreaterThan(ran[0]);
      gates[0].open();
      await log.get('completed');
      await until('the one behind', async () => (await some.getDelayedCount()) === 1);
      expect(await some.getJobCounts('waiting', 'active', 'completed')).toEqual({
        waiting: 0,
        active: 0,
        completed: 1,
      });
      const [next] = await slots(some, 'delayed');
      expect(next).toBeGreaterThan(now);
      at(now + MINUTE);
      await some.promoteJobs();
      await log.get('active', 2);
      expect(ran).toEqual([ran[0], next]);
    });

    it.each([5, 1])("'queue' lets the second wait, with a concurrency of %d", async (concurrency) => {
      const some = queue();
      const events = told();
      const { gates, ran, log } = await twoRuns(some, 'queue', concurrency);
      if (concurrency > 1) await until('it to be put off', async () => (await some.getDelayedCount()) === 1);
      expect(await some.getActiveCount()).toBe(1);
      at(NOON + 2 * MINUTE + 10);
      gates[0].open();
      await until('the second run', () => ran.length === 2);
      expect(ran[1]).toBeGreaterThan(ran[0]);
      expect(await some.getJobCounts('active', 'completed')).toEqual({ active: 1, completed: 1 });
      gates[1].open();
      await log.get('completed', 2);
      expect(events.all('failed')).toEqual([]);
      expect((await slots(some, 'delayed'))[0]).toBeGreaterThan(now);
    });
  });

  it.each(['skip', 'queue'] as const)(
    "'%s' is heeded by many workers, whatever becomes of the runs",
    async (overlap) => {
      const some = queue();
      let running = 0;
      let most = 0;
      let runs = 0;
      const handler = async (job: Job) => {
        most = Math.max(most, ++running);
        // longer than the interval: time has to pass
        await new Promise((resolve) => setTimeout(resolve, 35));
        running--;
        if (++runs % 2 === 0) throw new Error(`run ${job.id}`);
      };
      for (let i = 0; i < 3; i++) worker(handler, { concurrency: 4 });
      await some.upsertJobScheduler(
        's',
        { every: 20, overlap },
        { opts: { attempts: 2, removeOnComplete: true, removeOnFail: true } },
      );
      await until('some runs', () => runs >= 12);
      expect(most).toBe(1);
      expect(await some.getJobSchedulersCount()).toBe(1);
    },
  );

  it('a run that is tried again later has not ended', async () => {
    at(NOON);
    const some = queue();
    const events = stage.globalLog();
    const log = new EventLog(
      worker(() => Promise.reject(new Error('no'))),
      ['failed'],
    );
    await some.upsertJobScheduler(
      's',
      { every: MINUTE, overlap: 'skip' },
      { opts: { attempts: 2, backoff: 10 * MINUTE } },
    );
    await log.get('failed');
    expect(await some.getDeduplicationJobId('repeat:s')).toBe(`repeat:s:${NOON}`);
    at(NOON + MINUTE);
    await some.promoteJobs();
    expect((await events.get('removed'))[0]).toMatchObject({ jobId: `repeat:s:${NOON + MINUTE}` });
  });

  it('a run that is taken by hand is judged as well', async () => {
    at(NOON);
    const some = queue();
    await some.upsertJobScheduler('s', { every: MINUTE, overlap: 'skip' });
    const by = stage.worker(null);
    const first = await by.getNextJob('token');
    expect(slotOf(first)).toBe(NOON);
    at(NOON + MINUTE);
    await some.promoteJobs();
    await some.add('other', {});
    expect((await by.getNextJob('token'))?.name).toBe('other');
    expect(await slots(some, 'delayed')).toEqual([NOON + 2 * MINUTE]);
    expect(await some.getActiveCount()).toBe(2);
  });

  describe.each(EACH_MINUTE)('catching up, %s', (_, repeat) => {
    it.each([
      ['none', [], 6],
      ['latest', [5], 6],
      ['all', [1, 2, 3, 4, 5], 6],
      [undefined, [1], 6],
    ] as const)('%s', async (catchUp, made, next) => {
      at(NOON + 1);
      const some = queue();
      await some.upsertJobScheduler('s', {
        ...repeat,
        offset: 0,
        startDate: NOON + MINUTE,
        ...(catchUp && { catchUp }),
      });
      // of a pattern the start is no run
      const first = (await slots(some, 'delayed'))[0];
      at(first + 4 * MINUTE + 500);
      const ran: number[] = [];
      worker((job) => Promise.resolve(ran.push(slotOf(job))));
      const nth = (slot: number) => (slot - first) / MINUTE + 1;
      await until('the next run', async () => (await slots(some, 'delayed')).map(nth)[0] === next);
      await until(
        'what was missed',
        async () => (await some.getJobCounts('waiting', 'active')).active === 0 && ran.length === made.length,
      );
      expect(ran.map(nth)).toEqual(made);
    });

    it('leaves a run that is late by less than the next one', async () => {
      at(NOON + 1);
      const some = queue();
      await some.upsertJobScheduler('s', { ...repeat, catchUp: 'none' });
      const first = (await slots(some, 'waiting', 'delayed'))[0];
      at(first + MINUTE - 1);
      const log = new EventLog(
        worker(() => Promise.resolve()),
        ['completed'],
      );
      expect(slotOf((await log.get<[Job]>('completed'))[0])).toBe(first);
    });

    it('ends with the end date', async () => {
      at(NOON + 1);
      const some = queue();
      await some.upsertJobScheduler('s', {
        ...repeat,
        startDate: NOON + MINUTE,
        endDate: NOON + 3 * MINUTE + 30_000,
        catchUp: 'all',
      });
      const first = (await slots(some, 'delayed'))[0];
      at(NOON + HOUR);
      const ran: number[] = [];
      worker((job) => Promise.resolve(ran.push(slotOf(job))));
      const expected = [0, 1, 2].map((n) => first + n * MINUTE).filter((slot) => slot <= NOON + 3 * MINUTE + 30_000);
      await until('all of them', () => ran.length === expected.length);
      expect(ran).toEqual(expected);
      expect(await some.getDelayedCount()).toBe(0);
    });
  });

  const utc = (text: string) => Date.parse(`${text}:00.000Z`);
  const inZone = (pattern: string): Repeat => ({ pattern, tz: 'Europe/Paris' });
  /** Where clocks go forward, at 01:00 UTC of 2031-03-30, and back, at 01:00 UTC of 2031-10-26. */
  const changes: [string, Repeat, string, string[]][] = [
    ['forward, each day', inZone('30 2 * * *'), '2031-03-29T12:00', ['03-30T01:30', '03-31T00:30', '04-01T00:30']],
    ['back, each day', inZone('30 2 * * *'), '2031-10-25T12:00', ['10-26T00:30', '10-27T01:30', '10-28T01:30']],
    ['forward, each hour', inZone('0 * * * *'), '2031-03-29T23:30', ['03-30T00:00', '03-30T01:00', '03-30T02:00']],
    ['back, each hour', inZone('0 * * * *'), '2031-10-25T23:30', ['10-26T00:00', '10-26T01:00', '10-26T02:00']],
    [
      'forward, by `every`',
      { every: HOUR, offset: 0 },
      '2031-03-29T23:30',
      ['03-29T23:30', '03-30T00:30', '03-30T01:30'],
    ],
    ['back, by `every`', { every: HOUR, offset: 0 }, '2031-10-25T23:30', ['10-25T23:30', '10-26T00:30', '10-26T01:30']],
  ];

  describe.each(changes)('clocks that go %s', (_, repeat, from, times) => {
    const expected = times.map((time) => utc(`2031-${time}`));

    it('all runs are made up for', async () => {
      at(utc(from));
      const some = queue();
      await some.upsertJobScheduler('s', { ...repeat, catchUp: 'all' });
      at(expected[2] + 1);
      const ran: number[] = [];
      worker((job) => Promise.resolve(ran.push(slotOf(job))));
      await until('all of them', () => ran.length === 3);
      expect(ran).toEqual(expected);
    });

    it('the latest run is made up for', async () => {
      at(utc(from));
      const some = queue();
      await some.upsertJobScheduler('s', { ...repeat, catchUp: 'latest' });
      at(expected[2] + 1);
      const ran: number[] = [];
      worker((job) => Promise.resolve(ran.push(slotOf(job))));
      await until('it', () => ran.length === 1);
      expect(ran).toEqual([expected[2]]);
    });
  });

  it('all that was missed runs one by one with overlap, also with skip', async () => {
    at(NOON);
    const some = queue();
    await some.upsertJobScheduler('s', { every: MINUTE, overlap: 'skip', catchUp: 'all' });
    at(NOON + 4 * MINUTE + 1);
    const ran: number[] = [];
    let running = 0;
    let most = 0;
    worker(
      async (job) => {
        most = Math.max(most, ++running);
        ran.push(slotOf(job));
        await until('others to be looked at', async () => (await some.getWaitingCount()) === 0);
        running--;
      },
      { concurrency: 5 },
    );
    await until('all of them', () => ran.length === 5);
    expect(ran).toEqual([0, 1, 2, 3, 4].map((n) => NOON + n * MINUTE));
    expect(most).toBe(1);
  });

  it.each(EACH_MINUTE)('jitter puts each run off, by the same whoever asks: %s', async (_, repeat) => {
    at(NOON + 1);
    const some = queue();
    const jitter = 30_000;
    const ids = Array.from({ length: 20 }, (__, i) => `s${i}`);
    const upsert = () =>
      Promise.all(ids.map((id) => some.upsertJobScheduler(id, { ...repeat, startDate: NOON + MINUTE, jitter })));
    const jobs = await upsert();
    const dues = jobs.map((job) => job.delay + now);
    const [slot] = jobs.map(slotOf);
    expect(jobs.every((job) => slotOf(job) === slot)).toBe(true);
    expect(dues.every((due) => due >= slot && due <= slot + jitter)).toBe(true);
    expect(new Set(dues).size).toBeGreaterThan(10);
    at(NOON + 500);
    expect((await upsert()).map((job) => job.delay + now)).toEqual(dues);

    // a run that is put off is followed by the next one all the same
    at(slot + jitter);
    const log = new EventLog(
      worker(() => Promise.resolve()),
      ['completed'],
    );
    await log.get('completed', 20);
    expect(new Set(await slots(some, 'delayed'))).toEqual(new Set([slot + MINUTE]));
  });

  it('tells the rules of a scheduler', async () => {
    const some = queue();
    const rules = { overlap: 'queue', catchUp: 'latest', jitter: 5 } as const;
    await some.upsertJobScheduler('s', { every: MINUTE, ...rules });
    expect(await scheduler(some)).toMatchObject(rules);
  });

  it.each([
    [{ overlap: 'never' }, TypeError, "overlap must be one of 'allow', 'skip', 'queue', not 'never'"],
    [{ overlap: true }, TypeError, "overlap must be one of 'allow', 'skip', 'queue', not true"],
    [{ catchUp: 'some' }, TypeError, "catchUp must be one of 'none', 'latest', 'all', not 'some'"],
    [{ jitter: -1 }, RangeError, 'jitter must be a whole number of milliseconds, at least 0'],
    [{ jitter: 0.5 }, RangeError, 'jitter must be a whole number of milliseconds, at least 0'],
    [{ jitter: MINUTE }, RangeError, 'jitter must be less than every'],
  ])('refuses %o', async (rules, Class, message) => {
    const some = queue();
    const error = await rejection(some.upsertJobScheduler('s', { every: MINUTE, ...rules } as Repeat));
    expect(error).toBeInstanceOf(Class);
    expect(error.message).toBe(message);
    expect(await some.getJobSchedulersCount()).toBe(0);
  });

  it('`chasquimq/v5` has them', async () => {
    const some = stage.keep(new v5.Queue(stage.queueName, { connection: { ...connection } }));
    await some.upsertJobScheduler('s', { every: MINUTE, overlap: 'skip', catchUp: 'all', jitter: 10 });
    expect(await some.pauseJobScheduler('s')).toBe(true);
    expect(await some.runJobSchedulerNow('s')).toBeInstanceOf(v5.Job);
    expect(await some.resumeJobScheduler('s')).toBe(true);
    expect(await some.getJobScheduler('s')).toMatchObject({ overlap: 'skip', catchUp: 'all', jitter: 10 });
    // what repeats by `add` takes them as well
    await some.add('n', {}, { repeat: { every: MINUTE, overlap: 'queue' } });
    expect((await some.getJobSchedulers()).map(({ overlap }) => overlap).sort()).toEqual(['queue', 'skip']);
  });
});
