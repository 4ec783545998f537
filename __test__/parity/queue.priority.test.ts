// Pins jobs with a priority: their state, order, counts, events and errors.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, sleep } from '../support/waiting.js';

const PRIORITY_LIMIT = 2 ** 21 - 1;

describe.each(libraries)('$name: queue.priority', ({ lib }) => {
  const stage = useStage(lib);

  /** Adds one job a name, in the order of the object's keys, with these options or this priority. */
  async function addAll(queue: Queue, jobs: Record<string, number | JobsOptions>): Promise<Job[]> {
    const entries = Object.entries(jobs);
    return queue.addBulk(
      entries.map(([name, opts]) => ({ name, data: {}, opts: typeof opts === 'number' ? { priority: opts } : opts })),
    );
  }

  /** Names of the jobs in these states, in the order in which they will start. */
  async function names(queue: Queue, type: 'waiting' | 'prioritized' | 'delayed'): Promise<string> {
    return (await queue.getJobs([type], 0, -1, true)).map((job) => job.name).join(' ');
  }

  /** The names in the order in which one worker starts the jobs that are there. */
  async function order(jobs: number, concurrency = 1): Promise<string> {
    const worker = stage.worker(async () => undefined, { concurrency });
    const log = new EventLog(worker, ['active', 'completed']);
    await log.get('completed', jobs);
    await worker.close();
    return log
      .all<[Job]>('active')
      .map(([job]) => job.name)
      .join(' ');
  }

  it('a job with a priority is prioritized, not waiting', async () => {
    const queue = stage.queue();
    const job = await queue.add('urgent', {}, { priority: 3 });
    expect([job.priority, job.opts.priority]).toEqual([3, 3]);
    expect(await job.getState()).toBe('prioritized');
    expect(await queue.getJobState(job.id ?? '')).toBe('prioritized');
    expect([await job.isWaiting(), await job.isDelayed(), await job.isActive()]).toEqual([false, false, false]);
    const stored = await fetchJob(queue, job.id);
    expect([stored.priority, stored.opts.priority, stored.delay]).toEqual([3, 3, 0]);
  });

  it.each([[0], [undefined]])('a priority of %s is none', async (priority) => {
    const queue = stage.queue();
    const job = await queue.add('plain', {}, { priority });
    expect([job.priority, await job.getState()]).toEqual([0, 'waiting']);
    expect((await fetchJob(queue, job.id)).priority).toBe(0);
  });

  it('takes priorities up to the limit, and negative ones, which come first', async () => {
    const queue = stage.queue();
    await addAll(queue, { last: PRIORITY_LIMIT, first: -1, one: 1 });
    expect(await names(queue, 'prioritized')).toBe('first one last');
    expect((await queue.getPrioritized()).map((job) => job.priority)).toEqual([-1, 1, PRIORITY_LIMIT]);
    expect(await order(3)).toBe('first one last');
  });

  it.each([
    [1.5, 'Priority should not be float'],
    ['3', 'Priority should not be float'],
    [PRIORITY_LIMIT + 1, `Priority should be between 0 and ${PRIORITY_LIMIT}`],
    [Infinity, `Priority should be between 0 and ${PRIORITY_LIMIT}`],
  ])('refuses the priority %s', async (priority, message) => {
    const queue = stage.queue();
    const opts = { priority: priority as number };
    expect((await rejection(queue.add('a', {}, opts))).message).toBe(message);
    expect(
      (
        await rejection(
          queue.addBulk([
            { name: 'a', data: {} },
            { name: 'b', data: {}, opts },
          ]),
        )
      ).message,
    ).toBe(message);
    expect(await queue.count()).toBe(0);
  });

  it('jobs start by priority, those of one in the order of adding, after all without one', async () => {
    const queue = stage.queue();
    await addAll(queue, { c1: 3, a1: 1, w1: 0, b1: 2, c2: 3, w2: {}, a2: 1, b2: 2 });
    expect(await names(queue, 'prioritized')).toBe('a1 a2 b1 b2 c1 c2');
    expect(await order(8)).toBe('w1 w2 a1 a2 b1 b2 c1 c2');
  });

  it('the order holds over single adds and several bulks', async () => {
    const queue = stage.queue();
    await queue.add('b1', {}, { priority: 2 });
    await addAll(queue, { a1: 1, b2: 2 });
    await queue.add('a2', {}, { priority: 1 });
    await addAll(queue, { b3: 2, a3: 1 });
    expect(await order(6)).toBe('a1 a2 a3 b1 b2 b3');
  });

  it('adds of one tick keep the order of the calls within a priority', async () => {
    const queue = stage.queue();
    const jobs = Array.from({ length: 60 }, (_, i) => queue.add(`${i % 3}-${i}`, {}, { priority: 1 + (i % 3) }));
    await Promise.all(jobs);
    const expected = [0, 1, 2].flatMap((p) => Array.from({ length: 20 }, (_, k) => `${p}-${3 * k + p}`));
    expect((await queue.getPrioritized()).map((job) => job.name)).toEqual(expected);
    expect((await order(60)).split(' ')).toEqual(expected);
  });

  it('a job that comes later with a better priority is next', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(job.name);
      if (job.name === 'held') await gate.opened;
    });
    const log = new EventLog(worker, ['active', 'completed']);
    await addAll(queue, { held: 5, late: 5 });
    await log.get('active');
    await addAll(queue, { middle: 3, early: 1, plain: 0 });
    gate.open();
    await log.get('completed', 5);
    expect(order).toEqual(['held', 'plain', 'early', 'middle', 'late']);
  });

  it('of lifo and priority the priority counts', async () => {
    const queue = stage.queue();
    await addAll(queue, {
      a: 2,
      b: { priority: 2, lifo: true },
      c: { priority: 1, lifo: true },
      d: { lifo: true },
      e: {},
    });
    expect([await names(queue, 'waiting'), await names(queue, 'prioritized')]).toEqual(['d e', 'c a b']);
    expect(await order(5)).toBe('d e c a b');
  });

  it('custom ids have priorities, and the first job of an id keeps its own', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await addAll(queue, { a: { jobId: 'x', priority: 2 }, b: { jobId: 'y', priority: 1 }, c: 3, d: { jobId: 'x' } });
    await queue.add('e', {}, { jobId: 'y', priority: 9 });
    expect(await names(queue, 'prioritized')).toBe('b a c');
    await log.get('duplicated', 2);
    expect(log.all('duplicated').map(([event]) => event)).toEqual([{ jobId: 'x' }, { jobId: 'y' }]);
    expect(await order(3)).toBe('b a c');
  });

  it('is a default like any other option', async () => {
    const queue = stage.queue({ defaultJobOptions: { priority: 5 } });
    await queue.add('default', {});
    await queue.add('none', {}, { priority: 0 });
    await queue.add('undefined', {}, { priority: undefined });
    expect([await names(queue, 'waiting'), await names(queue, 'prioritized')]).toEqual(['none undefined', 'default']);
  });

  it('is counted apart, and in the count of jobs to come', async () => {
    const queue = stage.queue();
    await addAll(queue, { a: 1, b: 2, c: {}, d: { delay: 60_000, priority: 1 } });
    expect(await queue.getJobCounts('waiting', 'prioritized', 'delayed')).toEqual({
      waiting: 1,
      prioritized: 2,
      delayed: 1,
    });
    expect([await queue.getPrioritizedCount(), await queue.getWaitingCount(), await queue.count()]).toEqual([2, 1, 4]);
  });

  it('is counted by priority: 0 is the waiting list without one, others only what is in the waiting list', async () => {
    const queue = stage.queue();
    await addAll(queue, { a: 1, b: 3, c: 3, d: {}, e: { delay: 60_000, priority: 3 }, f: PRIORITY_LIMIT });
    const counts = await queue.getCountsPerPriority([3, 0, 1, 2, 3, PRIORITY_LIMIT]);
    expect(counts).toEqual({ 0: 1, 1: 1, 2: 0, 3: 2, [PRIORITY_LIMIT]: 1 });
    expect(await queue.getCountsPerPriority([])).toEqual({});
  });

  it('getters give ranges in both directions', async () => {
    const queue = stage.queue();
    await addAll(queue, { c: 3, a: 1, b: 2, a2: 1, c2: 3 });
    const range = async (start: number, end: number, asc: boolean) =>
      (await queue.getJobs(['prioritized'], start, end, asc)).map((job) => job.name).join(' ');
    expect(await range(0, -1, true)).toBe('a a2 b c c2');
    expect(await range(0, -1, false)).toBe('c2 c b a2 a');
    expect([await range(1, 2, true), await range(1, 2, false), await range(-2, -1, true)]).toEqual([
      'a2 b',
      'c b',
      'c c2',
    ]);
    expect((await queue.getPrioritized(0, 1)).map((job) => job.name)).toEqual(['a', 'a2']);
    expect((await queue.getWaiting()).length).toBe(0);
  });

  it('tells added, waiting, active and completed as of any job', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.add('one', {}, { priority: 4 });
    await addAll(queue, { two: 4 });
    stage.worker(async () => 'done');
    await log.get('drained');
    const told = log.entries.filter(({ event }) => event !== 'drained').map(({ event, args }) => [event, args[0]]);
    expect(told).toEqual([
      ['added', { jobId: '1', name: 'one' }],
      ['waiting', { jobId: '1' }],
      ['added', { jobId: '2', name: 'two' }],
      ['waiting', { jobId: '2' }],
      ['active', { jobId: '1', prev: 'waiting' }],
      ['completed', { jobId: '1', returnvalue: 'done', prev: 'active' }],
      ['active', { jobId: '2', prev: 'waiting' }],
      ['completed', { jobId: '2', returnvalue: 'done', prev: 'active' }],
    ]);
  });

  it('drained comes once after the last of several', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await addAll(queue, { a: 1, b: 2, c: 3 });
    stage.worker(async () => undefined);
    await log.get('drained');
    expect(log.all('completed').length).toBe(3);
    expect(log.names.at(-1)).toBe('drained');
  });

  it('is seen by its handler and kept when completed', async () => {
    const queue = stage.queue();
    await queue.add('urgent', {}, { priority: 6 });
    const worker = stage.worker(async (job) => [job.priority, job.opts.priority]);
    const log = new EventLog(worker, ['completed']);
    const [job, seen] = await log.get<[Job, unknown]>('completed');
    expect([seen, job.priority]).toEqual([[6, 6], 6]);
    const stored = await fetchJob(queue, '1');
    expect([stored.priority, await stored.getState(), stored.toJSON().priority]).toEqual([6, 'completed', 6]);
  });

  it('an idle worker is woken', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['drained', 'completed']);
    await log.get('drained');
    await queue.add('a', {}, { priority: 1 });
    await log.get('completed', 1);
    await queue.addBulk([{ name: 'b', data: {}, opts: { priority: 1 } }]);
    await log.get('completed', 2);
  });

  it('waits while the queue is paused, and keeps its order', async () => {
    const queue = stage.queue();
    await queue.pause();
    await addAll(queue, { b: 2, w: {}, d: { delay: 1, priority: 1 }, a: 1 });
    // The delayed job has to be due when the worker starts.
    await sleep(5);
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['active', 'completed']);
    const promoted = stage.globalLog();
    await promoted.when('the delayed job to be promoted', () =>
      promoted.all<[{ prev?: string }]>('waiting').some(([event]) => event.prev === 'delayed'),
    );
    expect([await names(queue, 'waiting'), await names(queue, 'prioritized')]).toEqual(['w', 'a d b']);
    expect(log.names).toEqual([]);
    await queue.resume();
    await log.get('completed', 4);
    expect(log.all<[Job]>('active').map(([job]) => job.name)).toEqual(['w', 'a', 'd', 'b']);
  });

  it('can be removed, which tells where it was', async () => {
    const queue = stage.queue();
    const [a, b] = await addAll(queue, { a: 1, b: 2, c: 2 });
    const log = stage.globalLog();
    await a.remove();
    expect(await queue.remove(b.id ?? '')).toBe(1);
    await log.get('removed', 2);
    expect(log.all('removed').map(([event]) => event)).toEqual([
      { jobId: '1', prev: 'prioritized' },
      { jobId: '2', prev: 'prioritized' },
    ]);
    expect(await names(queue, 'prioritized')).toBe('c');
    expect(await order(1)).toBe('c');
  });

  it('takes new data, progress and logs where it is', async () => {
    const queue = stage.queue();
    const [a] = await addAll(queue, { a: 2, b: 1 });
    await a.updateData({ new: true });
    await a.updateProgress(50);
    await a.log('row');
    const stored = await fetchJob(queue, a.id);
    expect([stored.data, stored.progress, stored.priority, await stored.getState()]).toEqual([
      { new: true },
      50,
      2,
      'prioritized',
    ]);
    expect(await order(2)).toBe('b a');
  });

  it('a delayed job has its priority when it is due', async () => {
    const queue = stage.queue();
    const timestamp = Date.now();
    const jobs = await addAll(queue, {
      d2: { priority: 2, delay: 40, timestamp },
      a2: 2,
      d1: { priority: 1, delay: 50, timestamp },
      w: {},
      dw: { delay: 40, timestamp },
    });
    expect([await jobs[0].getState(), (await fetchJob(queue, '1')).delay]).toEqual(['delayed', 40]);
    // Nothing promotes a job without a worker, so nothing signals that it is due.
    await sleep(60);
    const seen: unknown[] = [];
    const worker = stage.worker(async (job) => {
      if (seen.length === 0) seen.push([await names(queue, 'waiting'), await names(queue, 'prioritized')]);
      seen.push([job.name, job.priority, job.delay]);
    });
    await new EventLog(worker, ['completed']).get('completed', 5);
    expect(seen).toEqual([
      ['dw', 'd1 a2 d2'],
      ['w', 0, 0],
      ['dw', 0, 0],
      ['d1', 1, 0],
      ['a2', 2, 0],
      ['d2', 2, 0],
    ]);
    const stored = await fetchJob(queue, '1');
    expect([stored.priority, stored.delay, stored.opts.delay]).toEqual([2, 0, 40]);
  });

  it.each<[string, (jobs: Job[]) => Promise<unknown>]>([
    ['are promoted', (jobs) => Promise.all(jobs.map((job) => job.promote()))],
    ['are due', () => sleep(60)],
  ])('jobs that %s have their priorities in a queue where no other had one', async (_, become) => {
    const queue = stage.queue();
    const low = await queue.add('low', {}, { priority: 9, delay: 40 });
    await become([low, await queue.add('high', {}, { priority: 1, delay: 40 })]);
    await queue.add('plain', {});
    const seen: unknown[] = [];
    const worker = stage.worker(async ({ name }) => {
      if (seen.length === 0) seen.push(await names(queue, 'waiting'), await names(queue, 'prioritized'));
      seen.push(name);
    });
    await new EventLog(worker, ['completed']).get('completed', 3);
    expect(seen).toEqual(['', 'high low', 'plain', 'high', 'low']);
  });

  it('delayed jobs of one priority keep the order of their due times', async () => {
    const queue = stage.queue();
    const timestamp = Date.now();
    const delays = { a: 30, b: 10, c: 20, b2: 10 };
    await addAll(
      queue,
      Object.fromEntries(Object.entries(delays).map(([name, delay]) => [name, { delay, timestamp, priority: 5 }])),
    );
    // As above.
    await sleep(50);
    expect(await order(4)).toBe('b b2 c a');
  });

  it('promoted by hand, a job goes to the end of its priority', async () => {
    const queue = stage.queue();
    const [, d] = await addAll(queue, { a: 2, d: { priority: 2, delay: 60_000 }, c: 2, e: 3 });
    const log = stage.globalLog();
    await d.promote();
    expect([d.delay, await d.getState(), (await fetchJob(queue, d.id)).delay]).toEqual([0, 'prioritized', 0]);
    expect(await names(queue, 'prioritized')).toBe('a c d e');
    await log.get('waiting', 4);
    expect(log.all('waiting').at(-1)?.[0]).toEqual({ jobId: '2', prev: 'delayed' });
  });

  it('a deduplicated job has its priority, one kept while the first was active too', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(`${job.name}${job.priority}`);
      if (job.name === 'first') await gate.opened;
    });
    const log = new EventLog(worker, ['active', 'completed']);
    const deduplication = { id: 'd', keepLastIfActive: true };
    await queue.add('first', {}, { priority: 2, deduplication });
    await log.get('active');
    await queue.add('kept', {}, { priority: 3, deduplication });
    await addAll(queue, { a: 2, b: 4, c: 3 });
    gate.open();
    await log.get('completed', 5);
    expect(order).toEqual(['first2', 'a2', 'c3', 'kept3', 'b4']);
  });

  it('many workers start each job once, and the best first', async () => {
    const queue = stage.queue();
    const jobs = Array.from({ length: 300 }, (_, i) => ({ name: 'n', data: { p: 1 + (i % 10) } }));
    await queue.addBulk(jobs.map((job) => ({ ...job, opts: { priority: job.data.p } })));
    const started: number[] = [];
    const logs = [1, 2, 3].map(() => {
      const worker = stage.worker(
        async (job) => {
          started.push((job.data as { p: number }).p);
          // so long that no worker takes more jobs than it can start
          await sleep(10);
        },
        { concurrency: 5 },
      );
      return new EventLog(worker, ['completed']);
    });
    const global = stage.globalLog();
    await global.get('completed', 300);
    expect(started.length).toBe(300);
    const ids = global.all<[{ jobId: string }]>('completed').map(([event]) => event.jobId);
    expect(new Set(ids).size).toBe(300);
    const mean = (from: number, to: number) => started.slice(from, to).reduce((sum, p) => sum + p, 0) / (to - from);
    expect(mean(0, 30)).toBeLessThan(3);
    expect(mean(270, 300)).toBeGreaterThan(8);
    expect(logs.length).toBe(3);
  });

  it('an obliterated queue has none', async () => {
    const queue = stage.queue();
    await addAll(queue, { a: 1, b: 2 });
    await queue.obliterate();
    expect(await queue.getJobCounts('prioritized')).toEqual({ prioritized: 0 });
    await queue.resume();
    await addAll(queue, { c: 2, d: 1 });
    expect(await order(2)).toBe('d c');
  });
});
