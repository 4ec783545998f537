// Pins what moves one job by hand: promote, changeDelay, moveToDelayed, moveToWait, retry; in every state, and with a
// priority.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, sleep } from '../support/waiting.js';

type State = 'waiting' | 'prioritized' | 'delayed' | 'active' | 'completed' | 'failed' | 'missing';

const STATES: State[] = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed', 'missing'];

describe.each(libraries)('$name: job.moves', ({ lib }) => {
  const stage = useStage(lib);

  /** A job in that state, which is no. 1. */
  async function jobIn(state: State): Promise<Job> {
    const queue = stage.queue();
    const opts: JobsOptions = state === 'prioritized' ? { priority: 3 } : state === 'delayed' ? { delay: 60_000 } : {};
    const job = await queue.add('job', {}, opts);
    if (state === 'missing') await job.remove();
    if (state === 'active' || state === 'completed' || state === 'failed') {
      const gate = stage.gate();
      const worker = stage.worker(async () => {
        if (state === 'active') await gate.opened;
        if (state === 'failed') throw new Error('failed');
      });
      await new EventLog(worker, [state]).get(state);
      if (state !== 'active') await worker.close();
    }
    return job;
  }

  /** How a call ended: its value, or its error's text and code. */
  async function ended(call: Promise<unknown>): Promise<unknown> {
    return call.then(
      (value) => value,
      (error: Error & { code?: number }) => `${String(error.code)} ${error.message}`,
    );
  }

  async function inEachState(states: State[], call: (job: Job) => Promise<unknown>): Promise<Record<string, unknown>> {
    const outcomes: Record<string, unknown> = {};
    for (const state of states) {
      stage.queueName += state[0];
      const job = await jobIn(state);
      outcomes[state] = await ended(call(job));
      const after = await job.getState();
      expect([state, after], 'the state after the call').toEqual([state, state === 'missing' ? 'unknown' : state]);
    }
    return outcomes;
  }

  function besides(...states: State[]): State[] {
    return STATES.filter((state) => !states.includes(state));
  }

  it('promote is for delayed jobs only', async () => {
    const refused = '-3 Job 1 is not in the delayed state. promote';
    const outcomes = await inEachState(besides('delayed'), (job) => job.promote());
    expect(outcomes).toEqual(Object.fromEntries(besides('delayed').map((state) => [state, refused])));
  });

  it('changeDelay is for delayed jobs only', async () => {
    const refused = '-3 Job 1 is not in the delayed state. changeDelay';
    const outcomes = await inEachState(besides('delayed'), (job) => job.changeDelay(50_000));
    expect(outcomes).toEqual({
      ...Object.fromEntries(besides('delayed').map((state) => [state, refused])),
      missing: '-1 Missing key for job 1. changeDelay',
    });
  });

  it('moveToDelayed without a token is for active jobs only', async () => {
    const refused = '-3 Job 1 is not in the active state. moveToDelayed';
    const outcomes = await inEachState(besides('active'), (job) => job.moveToDelayed(Date.now() + 60_000));
    expect(outcomes).toEqual({
      ...Object.fromEntries(besides('active').map((state) => [state, refused])),
      missing: '-1 Missing key for job 1. moveToDelayed',
    });
  });

  it.each([1, NaN])('moveToDelayed until %d counts from now', async (timestamp) => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.add('job', {});
    const job: Job = await stage.worker(null).getNextJob('token');
    const before = Date.now();
    await job.moveToDelayed(timestamp, 'token');
    expect([job.delay, (await fetchJob(queue, job.id)).delay]).toEqual([0, 0]);
    expect((await log.get<[{ delay: number }]>('delayed'))[0].delay).toBeGreaterThanOrEqual(before);
  });

  it('moveToDelayed with a token that does not hold the job is refused', async () => {
    const outcomes = await inEachState(STATES, (job) => job.moveToDelayed(Date.now() + 60_000, 'other:1'));
    expect(outcomes).toEqual({
      ...Object.fromEntries(STATES.map((state) => [state, '-2 Missing lock for job 1. moveToDelayed'])),
      active: '-6 Lock mismatch for job 1. Cmd moveToDelayed from active',
      missing: '-1 Missing key for job 1. moveToDelayed',
    });
  });

  it.each([0, 5_000])('moveToDelayed to a time that is past, %i, delays until now', async (past) => {
    const queue = stage.queue();
    const events = stage.globalLog();
    await queue.addBulk(['first', 'second'].map((name) => ({ name, data: {} })));
    const worker = stage.worker(null);
    const job = await worker.getNextJob('token');
    const before = Date.now();
    await job?.moveToDelayed(past, 'token');
    expect((await queue.getDelayed()).map(({ name, delay }) => [name, delay])).toEqual([['first', 0]]);
    const [{ delay }] = await events.get<[{ delay: number }]>('delayed');
    expect(delay).toBeGreaterThanOrEqual(before);
    expect((await worker.getNextJob('token'))?.name).toBe('second');
  });

  it('moveToWait without a token leaves a job alone that is not active', async () => {
    const outcomes = await inEachState(besides('active'), (job) => job.moveToWait());
    expect(outcomes).toEqual({
      ...Object.fromEntries(besides('active').map((state) => [state, 0])),
      missing: '-1 Missing key for job 1. moveJobFromActiveToWait',
    });
  });

  it('moveToWait with a token that does not hold the job is refused', async () => {
    const outcomes = await inEachState(STATES, (job) => job.moveToWait('other:1'));
    expect(outcomes).toEqual({
      ...Object.fromEntries(STATES.map((state) => [state, '-2 Missing lock for job 1. moveJobFromActiveToWait'])),
      active: '-6 Lock mismatch for job 1. Cmd moveJobFromActiveToWait from active',
      missing: '-1 Missing key for job 1. moveJobFromActiveToWait',
    });
  });

  it.each(['completed', 'failed'] as const)('retry from %s is for such jobs only', async (from) => {
    const refused = `-3 Job 1 is not in the ${from} state. reprocessJob`;
    const outcomes = await inEachState(besides(from), (job) => job.retry(from));
    expect(outcomes).toEqual({
      ...Object.fromEntries(besides(from).map((state) => [state, refused])),
      missing: '-1 Missing key for job 1. reprocessJob',
    });
  });

  it('changeDelay counts from now, and is told', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const job = await queue.add('job', {}, { delay: 60_000, priority: 2 });
    const before = Date.now();
    await job.changeDelay(90_000);
    const stored = await fetchJob(queue, job.id);
    expect([job.delay, stored.delay, stored.opts.delay, stored.priority]).toEqual([90_000, 90_000, 60_000, 2]);
    const [{ jobId, delay }] = await log.get<[{ jobId: string; delay: number }]>('delayed', 2);
    expect(jobId).toBe('1');
    expect(delay).toBeGreaterThanOrEqual(before + 90_000);
    expect(delay).toBeLessThanOrEqual(Date.now() + 90_000);
  });

  it.each(['6000', ' 6e3 '])('changeDelay takes the text %j', async (delay) => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const job = await queue.add('job', {}, { delay: 60_000 });
    const before = Date.now();
    await job.changeDelay(delay as unknown as number);
    expect([job.delay, (await fetchJob(queue, job.id)).delay]).toEqual([delay, 6000]);
    const [told] = await log.get<[{ delay: number }]>('delayed', 2);
    expect(told.delay).toBeGreaterThanOrEqual(before + 6000);
    expect(told.delay).toBeLessThanOrEqual(Date.now() + 6000);
  });

  it.each(['', 'soon', null, undefined])('changeDelay refuses %j', async (delay) => {
    const job = await stage.queue().add('job', {}, { delay: 60_000 });
    await expect(job.changeDelay(delay as unknown as number)).rejects.toThrow();
    expect((await fetchJob(stage.queue(), job.id)).delay).toBe(60_000);
  });

  it('changeDelay changes the order of delayed jobs, and starts one sooner', async () => {
    const queue = stage.queue();
    const [a] = await queue.addBulk(
      ['a', 'b'].map((name, i) => ({ name, data: {}, opts: { delay: 60_000 + i, priority: 1 } })),
    );
    await a.changeDelay(70_000);
    expect((await queue.getDelayed()).map((job) => job.name)).toEqual(['b', 'a']);
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['drained', 'completed']);
    await log.get('drained');
    await a.changeDelay(20);
    const [done] = await log.get<[Job]>('completed');
    expect([done.name, done.delay]).toEqual(['a', 0]);
    expect(await queue.getJobCounts('delayed', 'prioritized')).toEqual({ delayed: 1, prioritized: 0 });
  });

  /** A worker that does `first` at a job's first start, and notes every start. */
  function mover(first: (job: Job, token: string | undefined) => Promise<void>) {
    const order: string[] = [];
    const worker = stage.worker(async (job, token) => {
      order.push(`${job.name}${job.attemptsStarted}${job.attemptsMade}`);
      if (job.attemptsStarted === 1 && job.name.startsWith('m')) await first(job, token);
    });
    return { order, log: new EventLog(worker, ['completed', 'failed', 'active', 'error']) };
  }

  function bulk(queue: Queue, jobs: Record<string, JobsOptions>): Promise<Job[]> {
    return queue.addBulk(Object.entries(jobs).map(([name, opts]) => ({ name, data: {}, opts })));
  }

  it('moveToWait in a handler puts a job first again, and counts no try', async () => {
    const queue = stage.queue();
    const global = stage.globalLog();
    await bulk(queue, { m: {}, a: {} });
    const { order, log } = mover(async (job, token) => {
      expect(await job.moveToWait(token)).toBe(0);
      expect((await queue.getWaiting()).map((waiting) => waiting.name)).toEqual(['m', 'a']);
      throw new lib.WaitingError();
    });
    await log.get('completed', 2);
    expect(order).toEqual(['m10', 'm20', 'a10']);
    expect(log.names).not.toContain('failed');
    await global.get('completed', 2);
    expect(global.all('waiting').map(([event]) => event)).toEqual([
      { jobId: '1' },
      { jobId: '2' },
      { jobId: '1', prev: 'active' },
    ]);
    const stored = await fetchJob(queue, '1');
    expect([stored.attemptsMade, stored.attemptsStarted]).toEqual([1, 2]);
  });

  it('moveToWait puts a job with a priority first in it', async () => {
    const queue = stage.queue();
    await bulk(queue, { m: { priority: 2 }, a: { priority: 2 }, b: { priority: 3 } });
    const { order, log } = mover(async (job, token) => {
      await bulk(queue, { c: { priority: 1 } });
      await job.moveToWait(token);
      expect(await job.getState()).toBe('prioritized');
      expect((await queue.getPrioritized()).map((waiting) => waiting.name)).toEqual(['c', 'm', 'a', 'b']);
      throw new lib.WaitingError();
    });
    await log.get('completed', 4);
    expect(order).toEqual(['m10', 'c10', 'm20', 'a10', 'b10']);
  });

  it('moveToDelayed in a handler delays a job with a priority, which comes back to it', async () => {
    const queue = stage.queue();
    await bulk(queue, { m: { priority: 1 }, a: { priority: 2 } });
    const due = Date.now() + 1000;
    const { order, log } = mover(async (job, token) => {
      await job.moveToDelayed(due, token);
      expect([await job.getState(), job.delay > 0]).toEqual(['delayed', true]);
      const stored = await fetchJob(queue, job.id);
      expect([stored.delay, stored.priority]).toEqual([job.delay, 1]);
      await bulk(queue, { held: {}, b: { priority: 1 } });
      throw new lib.DelayedError();
    });
    await log.get('completed', 4);
    expect(order.at(-1)).toBe('m20');
    expect(log.names).not.toContain('failed');
    expect((await fetchJob(queue, '1')).delay).toBe(0);
  });

  it('a job moved to delayed and promoted in its handler has its new priority', async () => {
    const queue = stage.queue();
    await bulk(queue, { m: { priority: 4 }, a: { priority: 4 } });
    const { order, log } = mover(async (job, token) => {
      await job.moveToDelayed(Date.now() + 60_000, token);
      await job.changePriority({ priority: 9 });
      await job.promote();
      expect((await queue.getPrioritized()).map((waiting) => [waiting.name, waiting.priority])).toEqual([
        ['a', 4],
        ['m', 9],
      ]);
      throw new lib.DelayedError();
    });
    await log.get('completed', 2);
    expect(order).toEqual(['m10', 'a10', 'm20']);
  });

  it('a failed try without a pause puts a job last in its priority, whatever its lifo', async () => {
    const queue = stage.queue();
    const attempts = { attempts: 2, priority: 2 };
    await bulk(queue, { m: attempts, a: { priority: 2 }, ml: { ...attempts, lifo: true }, b: { priority: 3 } });
    const global = stage.globalLog();
    const { order, log } = mover(async () => {
      throw new Error('again');
    });
    await log.get('completed', 4);
    expect(order).toEqual(['m10', 'a10', 'ml10', 'm21', 'ml21', 'b10']);
    await global.get('completed', 4);
    expect(global.all<[{ prev?: string }]>('waiting').filter(([event]) => event.prev)).toEqual([
      [{ jobId: '1', prev: 'active' }, expect.anything()],
      [{ jobId: '3', prev: 'active' }, expect.anything()],
    ]);
  });

  it('a failed try with a pause brings a job back to its priority', async () => {
    const queue = stage.queue();
    await bulk(queue, { m: { attempts: 2, priority: 2, backoff: 20 } });
    const gate = stage.gate();
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(`${job.name}${job.priority}`);
      if (job.name === 'held') await gate.opened;
      if (job.name === 'm' && job.attemptsMade === 0) {
        await bulk(queue, { held: {}, a: { priority: 2 }, c: { priority: 3 }, b: { priority: 1 } });
        throw new Error('again');
      }
    });
    const log = new EventLog(worker, ['active', 'completed']);
    await log.get('active', 2);
    expect([await queue.getJobState('1'), (await fetchJob(queue, '1')).delay]).toEqual(['delayed', 20]);
    // The retried job has to be due while the second one is held.
    await sleep(40);
    gate.open();
    await log.get('completed', 5);
    expect(order).toEqual(['m2', 'held0', 'b1', 'a2', 'm2', 'c3']);
  });

  it('retry brings a finished job back to the end of its priority', async () => {
    const queue = stage.queue();
    await bulk(queue, { m: { priority: 2 }, a: { priority: 2 }, ml: { priority: 2, lifo: true } });
    const { log } = mover(async () => {
      throw new Error('once');
    });
    await log.get('completed');
    await log.get('failed', 2);
    await queue.pause();
    const global = stage.globalLog();
    await bulk(queue, { b: { priority: 2 }, c: { priority: 3 } });
    for (const [id, state] of [['3', 'failed'] as const, ['1', 'failed'] as const, ['2', 'completed'] as const]) {
      await (await fetchJob(queue, id)).retry(state);
      expect(await queue.getJobState(id)).toBe('prioritized');
    }
    expect((await queue.getPrioritized()).map((job) => job.name)).toEqual(['b', 'ml', 'm', 'a', 'c']);
    await global.get('waiting', 8);
    expect(global.all<[{ prev?: string }]>('waiting').filter(([event]) => event.prev === 'failed').length).toBe(2);
    await queue.resume();
  });

  it('a job with a priority whose worker is gone heads the waiting list', async () => {
    const queue = stage.queue();
    await bulk(queue, { a: { priority: 2 }, b: { priority: 1 } });
    const gate = stage.gate();
    const quick = { lockDuration: 400, stalledInterval: 200, drainDelay: 1 };
    const worker = stage.worker(() => gate.opened, quick);
    await new EventLog(worker, ['active']).get('active');
    await worker.close(true);
    await queue.pause();
    stage.worker(async () => undefined, quick);
    const global = stage.globalLog();
    await global.get('stalled');
    const stored = await fetchJob(queue, '2');
    expect([await stored.getState(), stored.priority, stored.stalledCounter]).toEqual(['waiting', 1, 1]);
    expect((await queue.getPrioritized()).map((job) => job.name)).toEqual(['a']);
    await queue.resume();
    await global.get('completed', 2);
    expect(global.all<[{ jobId: string }]>('completed').map(([event]) => event.jobId)).toEqual(['2', '1']);
  });
});
