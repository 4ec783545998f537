// `worker.drain()` resolves when nothing is left that the worker could start, and nothing of it runs.
import { describe, expect, it } from 'vitest';
import type { Worker } from '../../src/index.js';
import type { Job, WorkerOptions } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

type Handler = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>;

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('worker.drain', () => {
  const stage = useStage(chasquimq);

  function worker(handler: Handler, opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(handler as never, opts) as unknown as Worker;
  }

  const addAll = (count: number, opts: object = {}): Promise<unknown> =>
    stage.queue().addBulk(numbers(count).map((i) => ({ name: 'job', data: i, opts })));

  /** Whether it has resolved, once all that is under way by now has had time: the answers to two calls behind it. */
  async function isOver(drained: Promise<void>): Promise<boolean> {
    let over = false;
    void drained.then(() => (over = true));
    for (let i = 0; i < 2; i++) await stage.queue().getJobCounts();
    return over;
  }

  it.each([
    [1, {}],
    [10, {}],
    [100, {}],
    [1, { batch: { size: 7 } }],
  ])('resolves once all has ended, at concurrency %i with %o', async (concurrency, opts) => {
    await addAll(200);
    await addAll(50, { priority: 3 });
    const draining = worker(async () => undefined, { concurrency, ...opts });
    await draining.drain();
    expect(await stage.queue().getJobCounts('waiting', 'prioritized', 'active', 'completed')).toEqual({
      waiting: 0,
      prioritized: 0,
      active: 0,
      completed: 250,
    });
  });

  it('sees what was added before it was called, time and again', async () => {
    const queue = stage.queue();
    let ended = 0;
    const draining = worker(async () => void (await new Promise((resolve) => setImmediate(resolve)), ended++), {
      concurrency: 2,
    });
    await draining.waitUntilReady();
    for (let round = 1; round <= 300; round++) {
      await queue.add('job', {});
      // also where the worker has just looked in vain, and where its wait is lent to this thread's adds
      if (round % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      await draining.drain();
      expect(ended).toBe(round);
    }
  });

  it('has told the ends of all jobs', async () => {
    await addAll(20);
    const draining = worker(async () => undefined, { concurrency: 3 });
    const log = new EventLog(draining, ['completed', 'drained']);
    await draining.drain();
    expect(log.all('completed')).toHaveLength(20);
    // an answer is no event
    const { length } = log.all('drained');
    await draining.drain();
    expect(log.all('drained')).toHaveLength(length);
  });

  it('waits for a try that follows at once, and not for one that is delayed', async () => {
    const queue = stage.queue();
    await queue.add('again', {}, { attempts: 3 });
    await queue.add('later', {}, { attempts: 2, backoff: 3_600_000 });
    await queue.add('delayed', {}, { delay: 3_600_000 });
    const draining = worker((job) =>
      job.attemptsMade < (job.name === 'again' ? 2 : 1) ? Promise.reject(new Error('no')) : Promise.resolve(),
    );
    await draining.drain();
    expect(await queue.getJobCounts('waiting', 'active', 'delayed', 'completed')).toEqual({
      waiting: 0,
      active: 0,
      delayed: 2,
      completed: 1,
    });
  });

  it('does not wait for what another worker runs, and takes what that gives back', async () => {
    const gate = stage.gate();
    const other = worker(() => gate.opened);
    const log = new EventLog(other, ['active']);
    await addAll(1);
    await log.get('active');
    const draining = worker(async () => undefined);
    await draining.drain();
    expect(await stage.queue().getActiveCount()).toBe(1);
    await other.close({ timeout: 0 });
    await draining.drain();
    expect(await stage.queue().getCompletedCount()).toBe(1);
  });

  it('resolves where other workers have taken the rest', async () => {
    const queue = stage.queue();
    await queue.pause();
    await addAll(50);
    const draining = worker(async () => undefined);
    const drained = draining.drain();
    const other = worker(async () => undefined, { concurrency: 20 });
    await queue.resume();
    await Promise.all([drained, other.drain()]);
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 0, active: 0 });
  });

  it('waits while the queue is paused and jobs are in it', async () => {
    const queue = stage.queue();
    const draining = worker(async () => undefined);
    await draining.drain();
    await queue.pause();
    await draining.drain();
    await addAll(2);
    const drained = draining.drain();
    expect(await isOver(drained)).toBe(false);
    await queue.resume();
    await drained;
    expect(await queue.getCompletedCount()).toBe(2);
  });

  it('waits for jobs behind a rate limit, and behind a global concurrency', async () => {
    const queue = stage.queue();
    await addAll(4);
    const limited = worker(async () => undefined, { limiter: { max: 2, duration: 100 } });
    await limited.drain();
    expect(await queue.getCompletedCount()).toBe(4);
    await limited.close();
    await queue.setGlobalConcurrency(1);
    const gate = stage.gate();
    const holds = worker(() => gate.opened);
    await addAll(1);
    await new EventLog(holds, ['active']).get('active');
    await addAll(1);
    const draining = worker(async () => undefined, { drainDelay: 0.1 });
    const drained = draining.drain();
    expect(await isOver(drained)).toBe(false);
    gate.open();
    await drained;
    expect(await queue.getWaitingCount()).toBe(0);
  });

  it('of a worker that is paused waits for what runs alone, and goes on once it is resumed', async () => {
    const gate = stage.gate();
    await addAll(3);
    const draining = worker(() => gate.opened);
    await new EventLog(draining, ['active']).get('active');
    const early = draining.drain();
    const paused = draining.pause();
    const drained = draining.drain();
    expect(await isOver(drained)).toBe(false);
    gate.open();
    await Promise.all([paused, drained, early]);
    expect(await stage.queue().getWaitingCount()).toBe(2);
    await draining.resume();
    await draining.drain();
    expect(await stage.queue().getCompletedCount()).toBe(3);
  });

  it('of a worker that does not run resolves', async () => {
    await addAll(1);
    await worker(async () => undefined, { autorun: false }).drain();
    expect(await stage.queue().getWaitingCount()).toBe(1);
  });

  it.each([[{}], [{ timeout: 0 }], [true]])('rejects when the worker is closed with %o', async (how) => {
    const gate = stage.gate();
    await addAll(2);
    const closing = worker(() => gate.opened);
    await new EventLog(closing, ['active']).get('active');
    const drained = closing.drain();
    const refused = expect(drained).rejects.toThrow('The worker was closed before it was drained');
    const closed = closing.close(how);
    await refused;
    gate.open();
    await closed;
    await expect(closing.drain()).rejects.toThrow('The worker was closed before it was drained');
  });

  it('ends for all who wait', async () => {
    const gate = stage.gate();
    await addAll(1);
    const draining = worker(() => gate.opened);
    await new EventLog(draining, ['active']).get('active');
    const drained = [draining.drain(), draining.drain()];
    await until('one more job', async () => (await addAll(1), true));
    drained.push(draining.drain());
    gate.open();
    await Promise.all(drained);
    expect(await stage.queue().getCompletedCount()).toBe(2);
  });
});
