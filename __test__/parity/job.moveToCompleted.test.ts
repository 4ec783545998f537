// Pins how a job that was taken by hand completes, and what comes next.
import { describe, expect, it } from 'vitest';
import type { Job, Worker, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';

type Data = Record<string, unknown>;
type Tuple = [Data | null, string, number, number];

describe.each(libraries)('$name: job.moveToCompleted', ({ lib }) => {
  const stage = useStage(lib);

  function manualWorker(opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(null, opts);
  }

  async function taken(worker = manualWorker()): Promise<Job> {
    return await worker.getNextJob('t', { block: false });
  }

  it('stores the result, the time and the try', async () => {
    const queue = stage.queue();
    await queue.add('a', {});
    const job = await taken();
    const before = Date.now();
    expect(await job.moveToCompleted({ deep: ['x'] }, 't')).toEqual([]);
    const stored = await fetchJob(queue, '1');
    for (const each of [job, stored]) {
      expect([each.returnvalue, each.attemptsMade, each.attemptsStarted]).toEqual([{ deep: ['x'] }, 1, 1]);
      expect(each.finishedOn).toBeGreaterThanOrEqual(before);
    }
    expect([stored.finishedOn, stored.processedOn]).toEqual([job.finishedOn, job.processedOn]);
    expect(await queue.getJobCounts('completed', 'active')).toEqual({ completed: 1, active: 0 });
  });

  it.each([undefined, null, 0, '', false, 'text', [1, 2]])('stores %j as JSON has it', async (value) => {
    const queue = stage.queue();
    await queue.add('a', {});
    await (await taken()).moveToCompleted(value, 't');
    expect((await fetchJob(queue, '1')).returnvalue).toEqual(value === undefined ? null : value);
  });

  it('rejects a value without a JSON form, and leaves the job active', async () => {
    const queue = stage.queue();
    await queue.add('a', {});
    const job = await taken();
    const circle: Data = {};
    circle.self = circle;
    await expect(job.moveToCompleted(circle, 't')).rejects.toThrow('Converting circular structure to JSON');
    expect(await job.getState()).toBe('active');
  });

  it('gives the data of the next job, which is active with the same token', async () => {
    const queue = stage.queue();
    await queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: { x: 1 }, opts: { attempts: 3 } },
    ]);
    const job = await taken(manualWorker({ name: 'hand' }));
    const [data, id, limit, due] = (await job.moveToCompleted('done', 't')) as Tuple;
    expect([id, limit, due]).toEqual(['2', 0, 0]);
    expect(data).toMatchObject({
      name: 'b',
      data: '{"x":1}',
      opts: { attempts: 3 },
      progress: 0,
      attemptsMade: 0,
      attemptsStarted: 1,
      stalledCounter: 0,
      delay: 0,
      priority: 0,
      processedBy: 'hand',
    });
    const next = await fetchJob(queue, '2');
    expect([await next.getState(), await next.extendLock('t', 10_000)]).toEqual(['active', 1]);
    await next.moveToCompleted('done', 't');
    expect(await queue.getJobCounts('completed')).toEqual({ completed: 2 });
  });

  it('takes no next job when told so', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
    expect(await (await taken()).moveToCompleted('done', 't', false)).toEqual([]);
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1, active: 0 });
  });

  it('tells when the next job is due', async () => {
    const queue = stage.queue();
    await queue.add('a', {});
    const delayed = await queue.add('b', {}, { delay: 60_000 });
    const tuple = (await (await taken()).moveToCompleted('done', 't')) as Tuple;
    expect(tuple).toEqual([null, 0, 0, delayed.timestamp + 60_000]);
  });

  it('takes none of a paused queue', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
    const job = await taken();
    await queue.pause();
    expect(await job.moveToCompleted('done', 't')).toEqual([null, 0, 0, 0]);
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1, active: 0 });
  });

  it('takes a job that has come due', async () => {
    const queue = stage.queue();
    await queue.add('a', {});
    const job = await taken();
    await queue.add('b', {}, { delay: 1, timestamp: Date.now() - 1_000 });
    expect(((await job.moveToCompleted('done', 't')) as Tuple)[1]).toBe('2');
  });

  it('is told as global events, drained last', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
    const log = stage.globalLog();
    const job = await taken();
    await job.moveToCompleted('x', 't');
    await (await fetchJob(queue, '2')).moveToCompleted('y', 't');
    await log.get('drained');
    expect(log.names).toEqual([
      ...['added', 'waiting', 'added', 'waiting'],
      ...['active', 'completed', 'active', 'completed', 'drained'],
    ]);
    expect(log.all('completed').map(([args]) => args)).toEqual([
      { jobId: '1', returnvalue: 'x', prev: 'active' },
      { jobId: '2', returnvalue: 'y', prev: 'active' },
    ]);
  });

  it('emits nothing on the worker', async () => {
    await stage.queue().add('a', {});
    const worker = manualWorker();
    const emitted: string[] = [];
    for (const event of ['completed', 'failed', 'active'] as const) worker.on(event, () => emitted.push(event));
    await (await taken(worker)).moveToCompleted('x', 't');
    expect(emitted).toEqual(['active']);
  });

  it('follows the retention of the job, then that of the worker', async () => {
    const queue = stage.queue();
    await queue.addBulk([
      { name: 'a', data: {}, opts: { removeOnComplete: true } },
      { name: 'b', data: {}, opts: { removeOnComplete: false } },
      { name: 'c', data: {} },
      { name: 'd', data: {} },
    ]);
    const worker = manualWorker({ removeOnComplete: { count: 1 } });
    for (let i = 0; i < 4; i++) await (await taken(worker)).moveToCompleted(i, 't', false);
    expect((await queue.getCompleted()).map(({ name }) => name)).toEqual(['d']);
  });

  it('works on a job that was looked up through a queue', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
    await taken();
    const found = await fetchJob(queue, '1');
    expect(found.token).toBeUndefined();
    await found.moveToCompleted('x', 't', false);
    expect((await fetchJob(queue, '1')).returnvalue).toBe('x');
  });

  it('settles waitUntilFinished', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const job = await queue.add('a', {});
    const finished = job.waitUntilFinished(events);
    await (await taken()).moveToCompleted({ a: 1 }, 't');
    expect(await finished).toEqual({ a: 1 });
  });

  it('works for every job of a bulk, one after the other', async () => {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'a', data: i })));
    const worker = manualWorker();
    const inner = worker as unknown as { nextJobFromJobData(data: unknown, id: string, token: string): Promise<Job> };
    let job: Job | undefined = await taken(worker);
    const seen: unknown[] = [];
    while (job) {
      seen.push(job.data);
      const [data, id] = (await job.moveToCompleted(job.data, 't')) as Tuple;
      job = data ? await inner.nextJobFromJobData(data, id, 't') : undefined;
    }
    expect(seen).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(await queue.getJobCounts()).toMatchObject({ completed: 100, active: 0, waiting: 0 });
  });
});
