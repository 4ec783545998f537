// `limits` of a job: of keys that jobs name no more is used in a window than they let, over all workers and processes.
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BatchOptions, Job, JobsOptions, KeyLimit, Queue, Worker, WorkerOptions } from '../../src/index.js';
import * as v5 from '../../src/v5/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { expectStarts, movedJobs, movers, moves } from '../support/moving-jobs.js';
import { Program } from '../support/program.js';
import { connection, redisClient, unlinkContaining } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const FINISH_MS = 60_000;
const HOUR_MS = 3_600_000;
const GROUP_FILE = fileURLToPath(new URL('programs/group.cjs', import.meta.url));

/** One start an hour. */
const once = (key: string): KeyLimit[] => [{ key, max: 1, duration: HOUR_MS }];

interface Start {
  readonly at: number;
  readonly cost: number;
}

/**
 * That windows can be laid so that each start is in one, and no window has more than the limit lets. Where they begin is not known: a start that began one may
 * have been a job's earlier one, or one that was given back.
 */
function expectWindows(starts: Start[], { max, duration }: KeyLimit): void {
  const sorted = [...starts].sort((a, b) => a.at - b.at);
  // of the starts up to each: the earliest time at which a window can begin that ends with it
  const begins: number[] = [];
  for (const [last, { at }] of sorted.entries()) {
    begins[last] = Infinity;
    for (let [first, used] = [last, sorted[last].cost]; first >= 0 && used <= max; used += sorted[--first]?.cost ?? 0) {
      const begin = Math.max(at - duration, first > 0 ? begins[first - 1] + duration : -Infinity);
      if (begin <= sorted[first].at) begins[last] = Math.min(begins[last], begin);
    }
    const seen = sorted.slice(Math.max(0, last - 3 * max), last + 1).map((start) => start.at - at);
    expect(begins[last], `where windows begin, with starts at ${String(seen)} ms`).toBeLessThan(Infinity);
  }
}

/** When the jobs were taken that name this key, and what they used. */
function startsOf(jobs: readonly Job[], key: string): Start[] {
  return jobs.flatMap(({ opts, processedOn }) => {
    const limit = opts.limits?.find((its) => its.key === key);
    return limit ? [{ at: processedOn!, cost: limit.cost ?? 1 }] : [];
  });
}

describe('limits of keys', () => {
  const stage = useStage(chasquimq);
  let redis: Redis;
  beforeEach(() => {
    redis = redisClient();
  });
  afterEach(async () => {
    await unlinkContaining(redis, `${stage.queueName}:`);
    await redis.quit();
  });

  const queueOf = (opts: object = {}, part = ''): Queue => stage.queue(opts, part) as unknown as Queue;

  /** A worker that tells which jobs it ran, in order. */
  function runs(opts: Partial<WorkerOptions> = {}, part = ''): { worker: Worker; log: EventLog; ran: string[] } {
    const ran: string[] = [];
    const worker = stage.worker((job) => Promise.resolve(void ran.push(job.name)), opts, part) as never;
    return { worker, ran, log: new EventLog(worker, ['completed', 'failed', 'drained']) };
  }

  const allCompleted = (queue: Queue, count: number): Promise<boolean> =>
    until('all jobs to complete', async () => (await queue.getCompletedCount()) === count, FINISH_MS);

  it('hold over processes, of which one is killed and one is closed, also for further tries', async () => {
    const queue = queueOf();
    const limits = [
      { key: 'api', max: 12, duration: 150, cost: 2 },
      { key: 'a', max: 4, duration: 100 },
      { key: 'b', max: 2, duration: 70 },
    ];
    const start = async (workers: number): Promise<Program> => {
      const env = { QUEUE: stage.queueName, WORKERS: workers, OPTIONS: JSON.stringify({ concurrency: 4 }) };
      const program = stage.keep(Program.start('limited-worker.mjs', { env }));
      await program.said('ready');
      return program;
    };
    const programs = await Promise.all([start(2), start(1)]);
    const leaving = runs({ concurrency: 3 });
    const jobs = await queue.addBulk(
      Array.from({ length: 80 }, (_, i) => ({
        name: i % 5 ? 'job' : 'again',
        data: 3,
        opts: { attempts: 2, limits: [limits[0], limits[1 + (i % 2)]] },
      })),
    );
    await until('some jobs to complete', async () => (await queue.getCompletedCount()) > 20);
    await programs[0].kill();
    await leaving.worker.close();
    await start(2);
    await allCompleted(queue, jobs.length);
    const done = await queue.getCompleted(0, -1);
    const begun = Math.min(...jobs.map(({ timestamp }) => timestamp));
    const rows = (await redis.lrange(`${stage.queueName}:starts`, 0, -1)).map((row) => row.split(' '));
    for (const limit of limits) {
      expectWindows(startsOf(done, limit.key), limit);
      // those of all handlers in other processes, further tries among them: a handler starts after its job was taken, never before
      const of = new Map(jobs.map(({ id, opts }) => [id, opts.limits!.find(({ key }) => key === limit.key)]));
      let used = 0;
      for (const [at, , id] of rows.sort((one, other) => Number(one[0]) - Number(other[0]))) {
        used += of.get(id) ? (limit.cost ?? 1) : 0;
        const windows = 1 + Math.floor((Number(at) - begun + 2) / limit.duration);
        expect(used, `used of ${limit.key}`).toBeLessThanOrEqual(limit.max * windows);
      }
    }
    expect(rows.length).toBeGreaterThan(40);
  });

  it('hold nobody else back, and tell of jobs that wait as of delayed ones', async () => {
    const queue = queueOf();
    const events = stage.globalLog();
    await queue.addBulk(
      Array.from({ length: 600 }, (_, i) => ({
        name: i % 3 ? 'limited' : 'other',
        data: i,
        opts: i % 3 ? { limits: once('k') } : {},
      })),
    );
    const { log, ran } = runs();
    await log.when('the others to complete', () => ran.length === 201);
    expect(ran.filter((name) => name === 'limited')).toHaveLength(1);
    await until('all others to wait', async () => (await queue.getDelayedCount()) === 399);
    expect(await queue.getJobCounts('waiting', 'active', 'failed')).toEqual({ waiting: 0, active: 0, failed: 0 });
    const [waiting] = await queue.getDelayed(0, 0);
    expect([await waiting.getState(), waiting.attemptsMade, waiting.attemptsStarted]).toEqual(['delayed', 0, 0]);
    await events.when('all to be told', () => events.all('delayed').length === 399);
    const [told] = events
      .all<[{ jobId: string; delay: number }]>('delayed')
      .find(([{ jobId }]) => jobId === waiting.id)!;
    expect(Number(told.delay)).toBeGreaterThan(Date.now() + HOUR_MS / 2);
    expect(waiting.timestamp + waiting.delay).toBe(Number(told.delay));
    // nothing stays behind
    for (const key of ['key-limit:k', 'key-line:k']) {
      expect(await redis.pttl(`{bull:${stage.queueName}}:${key}`), key).toBeGreaterThan(0);
    }
  });

  it('hold after an outage, when many jobs are due at once', async () => {
    const queue = queueOf();
    const limit = { key: 'k', max: 4, duration: 60 };
    await queue.addBulk(Array.from({ length: 60 }, (_, data) => ({ name: 'job', data, opts: { limits: [limit] } })));
    const first = runs({ concurrency: 10 });
    await first.log.get('completed', 5);
    await first.worker.close();
    const delayed = await queue.getDelayed(0, -1);
    const last = Math.max(...delayed.map(({ timestamp, delay }) => timestamp + delay));
    await until('all to be due', () => Date.now() > last);
    for (const concurrency of [10, 1]) runs({ concurrency });
    await allCompleted(queue, 60);
    expectWindows(startsOf(await queue.getCompleted(0, -1), 'k'), limit);
  });

  const LARGE = 'x'.repeat(3_000_000);

  it('hold for jobs of every kind', async () => {
    const queue = queueOf();
    const kinds: Record<string, JobsOptions> = {
      ...{ plain: {}, grouped: { group: { id: 'g' } }, prioritized: { priority: 2 }, delayed: { delay: 1 } },
      ...{ lifo: { lifo: true }, deduplicated: {}, named: {}, large: {}, flow: {}, batch: {} },
    };
    for (const [name, opts] of Object.entries(kinds)) {
      for (const i of [0, 1, 2]) {
        const own = {
          ...(name === 'named' && { jobId: `own-${i}` }),
          ...(name === 'deduplicated' && { deduplication: { id: `d-${i}` } }),
        };
        const job = { name, data: name === 'large' ? LARGE : i, opts: { ...opts, ...own, limits: once(name) } };
        if (name === 'flow') {
          const child = { ...job, queueName: stage.name(), name: 'child', opts: { limits: once('child') } };
          const parent = { ...job, queueName: stage.name(), children: i ? [] : [child] };
          await stage.flowProducer().add(parent as never);
        } else if (name === 'batch') await queue.addBulk([job]);
        else await queue.add(job.name, job.data, job.opts);
      }
    }
    const { ran, log } = runs({ concurrency: 5 });
    const expected = [...Object.keys(kinds), 'child'].sort();
    await log.when('one of each', () => ran.length === expected.length);
    await until('all others to wait', async () => (await queue.getDelayedCount()) === 2 * (expected.length - 1));
    expect(ran.sort()).toEqual(expected);
  });

  it('come from defaults and schedulers as well', async () => {
    const queue = queueOf({ defaultJobOptions: { limits: once('default') } });
    await queue.add('default', {});
    await queue.add('default', {});
    for (const id of ['s', 't']) {
      await queue.upsertJobScheduler(id, { every: HOUR_MS }, { name: 'scheduled', opts: { limits: once('s') } });
    }
    const { ran } = runs();
    await until('one of each', () => ran.length === 2);
    // two that wait, and the next one of the scheduler whose job ran
    await until('the others to wait', async () => (await queue.getDelayedCount()) === 3);
    expect(ran.sort()).toEqual(['default', 'scheduled']);
    expect((await queue.getDelayed())[0].opts.limits).toHaveLength(1);
  });

  it('count each try, and none that does not start', async () => {
    const queue = queueOf();
    const failing = stage.worker(() => Promise.reject(new Error('once'))) as unknown as Worker;
    const log = new EventLog(failing, ['failed']);
    const job = await queue.add('job', {}, { attempts: 2, limits: once('k') });
    await log.get('failed');
    await until('it to wait', async () => (await queue.getJobState(job.id!)) === 'delayed');
    expect(await fetchJob(stage.queue(), job.id)).toMatchObject({
      attemptsMade: 1,
      attemptsStarted: 1,
      failedReason: 'once',
    });
    expect(log.names).toEqual(['failed']);
    // a promoted job looks again, and waits
    await (await queue.getJob(job.id!))!.promote();
    await until('it to wait again', async () => (await queue.getJobState(job.id!)) === 'delayed');
  });

  it('hold for those who work manually, in batches, in files, and by the entry v5', async () => {
    const queue = queueOf();
    const add = (name: string, opts: JobsOptions = {}, to = queue): Promise<Job[]> =>
      to.addBulk(
        [0, 1, 2].map((data) => ({
          name,
          data,
          opts: { ...opts, limits: [{ key: name, max: 2, duration: HOUR_MS }] },
        })),
      );
    const manual = stage.worker(null) as unknown as Worker;
    await add('manual');
    const taken = [await manual.getNextJob('t'), await manual.getNextJob('t'), await manual.getNextJob('t')];
    expect(taken.map((job) => job?.name)).toEqual(['manual', 'manual', undefined]);

    const names: string[][] = [];
    const batch: BatchOptions = { size: 6 };
    const handler = (job: { getBatch(): { name: string }[] }): Promise<void> =>
      Promise.resolve(void names.push(job.getBatch().map(({ name }) => name)));
    await add('batch');
    const batches = stage.worker(handler as never, { batch } as never) as unknown as Worker;
    await until('a batch', () => names.length > 0);
    expect(names).toEqual([['batch', 'batch']]);
    await batches.close();

    await add('file', { group: { id: 'g' } });
    const files = new EventLog(stage.worker(GROUP_FILE as never), ['completed']);
    await files.get('completed', 2);
    await until('the others to wait', async () => (await queue.getDelayedCount()) === 3);

    const old = stage.watch(new v5.Queue(stage.name('v5'), { connection }));
    await add('v5', {}, old as never);
    stage.watch(new v5.Worker(old.name, () => Promise.resolve(), { connection }));
    await until(
      'one to wait',
      async () => (await old.getDelayedCount()) === 1 && (await old.getCompletedCount()) === 2,
    );
  });

  describe.each(Object.entries(movers))('of jobs that their handler gives back, %s', (_, open) => {
    it('count each start', async () => {
      const queue = queueOf();
      const all = { key: 'all', max: 5, duration: 60 };
      const added = await queue.addBulk(
        [1, 2, 3].flatMap(() => movedJobs((key) => [all, { key, max: 2, duration: 50 }])),
      );
      for (const _ of [1, 2]) open(stage);
      const children = added.filter(({ name }) => name === 'children').length;
      await allCompleted(queue, added.length + children);
      const done = (await queue.getCompleted(0, -1)).filter(({ opts }) => opts.limits);
      expect(new Set(done.map(({ attemptsStarted }) => attemptsStarted))).toEqual(new Set([2]));
      for (const key of Object.keys(moves)) expectWindows(startsOf(done, key), { key, max: 2, duration: 50 });
      expectWindows(startsOf(done, 'all'), all);
    });

    it('are used when they start, and not when they are given back or look again', async () => {
      await expectStarts(queueOf(), () => open(stage));
    });
  });

  it('are left to jobs that expire in line', async () => {
    const queue = queueOf();
    await queue.add('first', {}, { limits: once('k') });
    const job = await queue.add('late', {}, { limits: once('k'), expireAfter: 300 });
    const { ran } = runs({ stalledInterval: 20 });
    await until('it to fail', async () => (await queue.getFailedCount()) === 1);
    expect((await queue.getJob(job.id!))!.failedReason).toBe('job expired before it started');
    expect(ran).toEqual(['first']);
  });

  it('let those that wait start before those that come later', async () => {
    const queue = queueOf();
    const limits = [{ key: 'k', max: 1, duration: 40 }];
    await queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'first', data: 0, opts: { limits } })));
    const { ran, worker } = runs({ concurrency: 4 });
    worker.on('completed', () => void queue.add('later', 0, { limits, lifo: true }));
    await until('the first ones to run', () => ran.filter((name) => name === 'first').length === 10);
    // of those that stand in line, and not of who comes anew, each has its turn
    expect(ran.slice(0, 5)).not.toContain('later');
  });

  it('let a job of two keys start that are always used up by others', async () => {
    const queue = queueOf();
    const [a, b] = [[{ key: 'a', max: 1, duration: 50 }], [{ key: 'b', max: 2, duration: 70 }]];
    const { ran, worker } = runs({ concurrency: 4 });
    const feed = (name: string): Promise<unknown> => queue.add(name, 0, { limits: name === 'a' ? a : b });
    worker.on('completed', ({ name }) => name !== 'both' && void feed(name));
    await Promise.all(['a', 'a', 'a', 'b', 'b', 'b', 'b'].map(feed));
    await until('both keys to be used', () => ran.length > 8);
    await queue.add('both', 0, { limits: [...a, ...b] });
    await until('it to run', () => ran.includes('both'));
    const done = await queue.getCompleted(0, -1);
    for (const [limit] of [a, b]) expectWindows(startsOf(done, limit.key), limit);
  });

  it('forget a line whose jobs were removed', async () => {
    const queue = queueOf();
    const limits = [{ key: 'k', max: 1, duration: 500 }];
    await queue.addBulk(Array.from({ length: 800 }, () => ({ name: 'job', data: 0, opts: { limits } })));
    const { log } = runs();
    await log.get('completed');
    await until('the others to wait', async () => (await queue.getDelayedCount()) === 799);
    await queue.drain(true);
    await queue.add('after', 0, { limits });
    await log.when('it to run', () => log.all<[Job]>('completed').some(([{ name }]) => name === 'after'));
  });

  const limit = { key: 'k', max: 2, duration: 10 };

  it.each<[string, unknown, RegExp]>([
    ['an object', limit, /limits must be an array/],
    ['none', [], /limits must be an array of 1 to 8/],
    ['nine', Array.from({ length: 9 }, (_, i) => ({ ...limit, key: `${i}` })), /1 to 8/],
    ['a text', ['k'], /limits\[0\] must be an object/],
    ['no key', [{ ...limit, key: '' }], /limits\[0\].key must be a text of 1 to 256/],
    ['a long key', [limit, { ...limit, key: 'x'.repeat(257) }], /limits\[1\].key/],
    ['no max', [{ key: 'k', duration: 1 }], /limits\[0\].max must be/],
    ['half a max', [{ ...limit, max: 1.5 }], /limits\[0\].max must be/],
    ['no duration', [{ ...limit, duration: 0 }], /limits\[0\].duration must be/],
    ['no cost', [{ ...limit, cost: 0 }], /limits\[0\].cost must be/],
    ['a cost above max', [{ ...limit, cost: 3 }], /limits\[0\].cost must be at most its max, 2, not 3/],
    ['another field', [{ ...limit, window: 3 }], /limits\[0\] has no field window/],
    ['a key twice', [limit, limit], /limits must name each key once/],
  ])('are refused with %s', async (_, limits, why) => {
    const queue = queueOf();
    const opts = { limits } as JobsOptions;
    await expect(queue.add('job', {}, opts)).rejects.toThrow(why);
    await expect(queue.addBulk([{ name: 'job', data: 0, opts }])).rejects.toThrow(why);
    await expect(stage.flowProducer().add({ name: 'job', queueName: stage.name(), opts })).rejects.toThrow(why);
    await expect(queue.upsertJobScheduler('s', { every: 1000 }, { opts })).rejects.toThrow(why);
  });
});
