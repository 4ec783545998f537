// Pins Job#changePriority in each state.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, sleep } from '../support/waiting.js';

describe.each(libraries)('$name: job.changePriority', ({ lib }) => {
  const stage = useStage(lib);

  /** One job a name, in this order. */
  async function jobs<N extends string>(queue: Queue, given: Record<N, JobsOptions>): Promise<Record<N, Job>> {
    const entries = Object.entries(given) as [N, JobsOptions][];
    const added = await queue.addBulk(entries.map(([name, opts]) => ({ name, data: {}, opts })));
    return Object.fromEntries(added.map((job) => [job.name, job])) as Record<N, Job>;
  }

  /** Names of what is in the waiting list: without a priority | with one. */
  async function line(queue: Queue): Promise<string> {
    const names = (found: Job[]) => found.map((job) => job.name).join(' ');
    return `${names(await queue.getWaiting())} | ${names(await queue.getPrioritized())}`;
  }

  it('gives a waiting job a priority', async () => {
    const queue = stage.queue();
    const { a } = await jobs(queue, { a: {}, b: {}, c: { priority: 3 }, d: { priority: 4 } });
    expect(await a.changePriority({ priority: 3 })).toBeUndefined();
    expect([a.priority, a.opts.priority, await a.getState()]).toEqual([3, undefined, 'prioritized']);
    expect(await line(queue)).toBe('b | c a d');
    const stored = await fetchJob(queue, a.id);
    expect([stored.priority, stored.opts.priority]).toEqual([3, undefined]);
    expect(await queue.getCountsPerPriority([0, 3, 4])).toEqual({ 0: 1, 3: 2, 4: 1 });
  });

  it('takes the priority of a job, which then waits last', async () => {
    const queue = stage.queue();
    const { a } = await jobs(queue, { a: { priority: 3 }, b: {}, c: { priority: 3 } });
    await a.changePriority({ priority: 0 });
    expect([a.priority, a.opts.priority, await a.getState()]).toEqual([0, 3, 'waiting']);
    expect(await line(queue)).toBe('b a | c');
    expect((await fetchJob(queue, a.id)).priority).toBe(0);
  });

  it('an omitted priority is none', async () => {
    const queue = stage.queue();
    const { a } = await jobs(queue, { a: { priority: 3 }, b: {} });
    await a.changePriority({});
    expect([a.priority, await line(queue)]).toEqual([0, 'b a | ']);
  });

  it('the same priority again puts the job last in it', async () => {
    const queue = stage.queue();
    const { a, p } = await jobs(queue, { a: {}, b: {}, p: { priority: 2 }, q: { priority: 2 } });
    await p.changePriority({ priority: 2 });
    await a.changePriority({ priority: 0 });
    expect(await line(queue)).toBe('b a | q p');
  });

  it('with lifo it is the first of its priority', async () => {
    const queue = stage.queue();
    const { c, w } = await jobs(queue, { a: { priority: 2 }, b: { priority: 2 }, c: { priority: 5 }, w: {}, x: {} });
    await c.changePriority({ priority: 2, lifo: true });
    expect(await line(queue)).toBe('w x | c a b');
    await w.changePriority({ priority: 2, lifo: true });
    expect((await line(queue)).startsWith('x | ')).toBe(true);
    expect(await queue.getCountsPerPriority([2])).toEqual({ 2: 4 });
  });

  it('with lifo and no priority it heads the waiting list', async () => {
    const queue = stage.queue();
    const { p, c } = await jobs(queue, { a: {}, b: {}, c: {}, p: { priority: 2 } });
    await p.changePriority({ priority: 0, lifo: true });
    expect(await line(queue)).toBe('p a b c | ');
    await c.changePriority({ lifo: true });
    expect(await line(queue)).toBe('c p a b | ');
  });

  it('lifo says nothing of a later place: changed again, the job goes last', async () => {
    const queue = stage.queue();
    const { a } = await jobs(queue, { a: { priority: 2, lifo: true }, b: { priority: 1 } });
    await a.changePriority({ priority: 1 });
    expect(await line(queue)).toBe(' | b a');
  });

  it('to and fro, a job of a bulk is in one place and runs once', async () => {
    const queue = stage.queue();
    const { b, c } = await jobs(queue, { a: {}, b: {}, c: {}, d: {} });
    await b.changePriority({ priority: 4 });
    await b.changePriority({ priority: 0 });
    await c.changePriority({ priority: 1 });
    await c.changePriority({ lifo: true });
    expect(await line(queue)).toBe('c a d b | ');
    await b.changePriority({ priority: 0 });
    await b.changePriority({ priority: 0 });
    expect(await queue.getJobCounts('waiting', 'prioritized')).toEqual({ waiting: 4, prioritized: 0 });
    await c.changePriority({ priority: 7 });
    await b.remove();
    expect(await line(queue)).toBe('a d | c');
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['active', 'completed', 'drained']);
    await log.get('drained');
    expect(log.all<[Job]>('active').map(([job]) => job.name)).toEqual(['a', 'd', 'c']);
  });

  it('changes the order of processing', async () => {
    const queue = stage.queue();
    const all = await jobs(queue, { a: { priority: 5 }, b: { priority: 4 }, c: {}, d: { priority: 3 } });
    await all.a.changePriority({ priority: 1 });
    await all.c.changePriority({ priority: 4 });
    const worker = stage.worker(async (job) => job.priority);
    const log = new EventLog(worker, ['active', 'completed']);
    await log.get('completed', 4);
    expect(log.all<[Job]>('active').map(([job]) => job.name)).toEqual(['a', 'd', 'b', 'c']);
    expect(log.all<[Job, unknown]>('completed').map(([, seen]) => seen)).toEqual([1, 3, 4, 4]);
  });

  it('a delayed job stays delayed and has the new priority when it is promoted', async () => {
    const queue = stage.queue();
    const { d, e } = await jobs(queue, {
      d: { delay: 60_000 },
      e: { delay: 60_000, priority: 5 },
      a: { priority: 4 },
      w: {},
    });
    await d.changePriority({ priority: 4, lifo: true });
    await e.changePriority({ priority: 0 });
    expect([await d.getState(), (await fetchJob(queue, d.id)).priority]).toEqual(['delayed', 4]);
    expect([await e.getState(), (await fetchJob(queue, e.id)).delay]).toEqual(['delayed', 60_000]);
    await d.promote();
    await e.promote();
    expect(await line(queue)).toBe('w e | a d');
  });

  it('a delayed job that becomes due has the new priority', async () => {
    const queue = stage.queue();
    const { d } = await jobs(queue, { d: { delay: 20 }, a: { priority: 1 }, b: { priority: 3 } });
    await d.changePriority({ priority: 2 });
    // A worker of a paused queue promotes what is due when it starts, and starts nothing.
    await queue.pause();
    await sleep(d.timestamp + 30 - Date.now());
    stage.worker(async () => undefined);
    const log = stage.globalLog();
    await log.get('waiting', 3);
    expect(await line(queue)).toBe(' | a d b');
  });

  it('an active job goes on, and has the new priority when it is tried again', async () => {
    const queue = stage.queue();
    await jobs(queue, { a: { attempts: 2 }, l: { attempts: 2, lifo: true, priority: 0 }, p: { priority: 3 } });
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(`${job.name}${job.priority}`);
      if (job.name === 'p' || job.attemptsMade > 0) return;
      await job.changePriority({ priority: job.name === 'a' ? 3 : 2 });
      expect([job.priority, await job.getState()]).toEqual([job.name === 'a' ? 3 : 2, 'active']);
      throw new Error('again');
    });
    await new EventLog(worker, ['completed']).get('completed', 3);
    expect(order).toEqual(['l0', 'a0', 'l2', 'p3', 'a3']);
  });

  it('an active job that loses its priority is tried again without one', async () => {
    const queue = stage.queue();
    await jobs(queue, { a: { attempts: 2, priority: 1 }, b: { priority: 2 } });
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(`${job.name}${job.priority}`);
      if (job.name === 'b' || job.attemptsMade > 0) return;
      await job.changePriority({ priority: 0 });
      throw new Error('again');
    });
    await new EventLog(worker, ['completed']).get('completed', 2);
    expect(order).toEqual(['a1', 'a0', 'b2']);
  });

  it.each(['completed', 'failed'] as const)('a %s job keeps its state and has it when it is retried', async (state) => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {
      if (state === 'failed') throw new Error('failed');
    });
    const log = new EventLog(worker, [state]);
    const { a } = await jobs(queue, { a: {} });
    await log.get(state);
    await worker.pause();
    await a.changePriority({ priority: 7 });
    expect([await a.getState(), (await fetchJob(queue, a.id)).priority]).toEqual([state, 7]);
    await jobs(queue, { b: { priority: 7 }, c: { priority: 8 } });
    await a.retry(state);
    expect(await line(queue)).toBe(' | b a c');
  });

  it('is told by no event', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const { a } = await jobs(queue, { a: {}, b: {} });
    await a.changePriority({ priority: 2 });
    await a.changePriority({ priority: 0 });
    await a.remove();
    await log.get('removed');
    expect(log.names).toEqual(['added', 'waiting', 'added', 'waiting', 'removed']);
  });

  it('works on a paused queue', async () => {
    const queue = stage.queue();
    await queue.pause();
    const { a, p } = await jobs(queue, { a: {}, b: {}, p: { priority: 1 } });
    await a.changePriority({ priority: 2 });
    await p.changePriority({ priority: 0, lifo: true });
    expect(await line(queue)).toBe('p b | a');
    await queue.resume();
  });

  it('works by custom id', async () => {
    const queue = stage.queue();
    const { a, b } = await jobs(queue, { a: { jobId: 'x' }, b: { jobId: 'y' }, c: { jobId: 'z', priority: 1 } });
    await a.changePriority({ priority: 1, lifo: true });
    await b.changePriority({ priority: 2 });
    expect(await line(queue)).toBe(' | a c b');
  });

  it('of a job that is gone is rejected with code -1', async () => {
    const queue = stage.queue();
    const { a } = await jobs(queue, { a: {} });
    await a.remove();
    expect(await rejection(a.changePriority({ priority: 1 }))).toMatchObject({
      message: 'Missing key for job 1. changePriority',
      code: -1,
    });
  });
});
