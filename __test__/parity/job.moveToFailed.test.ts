// Pins how a try of a job that was taken by hand fails.
import { describe, expect, it } from 'vitest';
import type { Job, Worker, WorkerOptions } from 'bullmq';
import { UnrecoverableError } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';

type Tuple = [Record<string, unknown> | null, string, number, number];

describe.each(libraries)('$name: job.moveToFailed', ({ lib }) => {
  const stage = useStage(lib);

  function manualWorker(opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(null, opts);
  }

  async function taken(worker = manualWorker()): Promise<Job> {
    return await worker.getNextJob('t', { block: false });
  }

  it('fails for good when no try is left', async () => {
    const queue = stage.queue();
    await queue.add('a', {});
    const job = await taken();
    const before = Date.now();
    expect(await job.moveToFailed(new Error('boom'), 't')).toEqual([]);
    const stored = await fetchJob(queue, '1');
    for (const each of [job, stored]) {
      expect([each.failedReason, each.attemptsMade, each.returnvalue]).toEqual(['boom', 1, null]);
      expect(each.finishedOn).toBeGreaterThanOrEqual(before);
      expect(each.stacktrace).toHaveLength(1);
      expect(each.stacktrace?.[0]).toMatch(/^Error: boom\n/);
    }
    expect([stored.finishedOn, stored.processedOn]).toEqual([job.finishedOn, job.processedOn]);
    expect(await job.isFailed()).toBe(true);
  });

  it('puts the job at the end of the waiting list when it is tried again at once', async () => {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 2 });
    await queue.add('b', {});
    const job = await taken();
    expect(await job.moveToFailed(new Error('boom'), 't')).toBeUndefined();
    expect([job.attemptsMade, job.failedReason, job.finishedOn]).toEqual([1, 'boom', undefined]);
    const stored = await fetchJob(queue, '1');
    expect([stored.attemptsMade, stored.failedReason, stored.finishedOn]).toEqual([1, 'boom', undefined]);
    expect((await queue.getWaiting()).map(({ id }) => id)).toEqual(['2', '1']);
    expect((await taken()).id).toBe('2');
    const again = await taken();
    expect([again.id, again.attemptsStarted, again.attemptsMade, again.stacktrace?.length]).toEqual(['1', 2, 1, 1]);
  });

  it('takes no next job when it is tried again at once', async () => {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 2 });
    await queue.add('b', {});
    expect(await (await taken()).moveToFailed(new Error('boom'), 't', true)).toBeUndefined();
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 2, active: 0 });
  });

  it('delays the next try', async () => {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 3, backoff: { type: 'exponential', delay: 60_000 } });
    const job = await taken();
    const before = Date.now();
    expect(await job.moveToFailed(new Error('boom'), 't')).toEqual([]);
    expect([job.delay, job.attemptsMade, job.finishedOn]).toEqual([60_000, 1, undefined]);
    const [delayed] = await queue.getDelayed();
    expect([delayed.id, delayed.delay, delayed.failedReason, delayed.attemptsMade]).toEqual(['1', 60_000, 'boom', 1]);
    expect(await job.isDelayed()).toBe(true);
    expect(before).toBeLessThanOrEqual(Date.now());
  });

  it('takes the next job when it is delayed', async () => {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 3, backoff: 60_000 });
    await queue.add('b', {});
    const [data, id, limit, due] = (await (await taken()).moveToFailed(new Error('boom'), 't', true)) as Tuple;
    expect([data?.name, id, limit, due]).toEqual(['b', '2', 0, 0]);
  });

  it('gives an empty answer when it is delayed and nothing waits', async () => {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 3, backoff: 60_000 });
    expect(await (await taken()).moveToFailed(new Error('boom'), 't', true)).toEqual([]);
  });

  it('takes the next job when it fails for good', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: { of: name } })));
    const [data, id] = (await (await taken()).moveToFailed(new Error('boom'), 't', true)) as Tuple;
    expect([data?.name, data?.data, id]).toEqual(['b', '{"of":"b"}', '2']);
    const next = await fetchJob(queue, '2');
    expect([await next.getState(), await next.extendLock('t', 1_000)]).toEqual(['active', 1]);
  });

  it('tells when the next job is due when it fails for good', async () => {
    const queue = stage.queue();
    await queue.add('a', {});
    const delayed = await queue.add('b', {}, { delay: 60_000 });
    expect(await (await taken()).moveToFailed(new Error('boom'), 't', true)).toEqual([
      null,
      0,
      0,
      delayed.timestamp + 60_000,
    ]);
  });

  it('an UnrecoverableError, or one of that name, is not tried again', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {}, opts: { attempts: 5 } })));
    const named = Object.assign(new Error('named'), { name: 'UnrecoverableError' });
    for (const error of [new UnrecoverableError('classed'), named]) {
      const job = await taken();
      await job.moveToFailed(error, 't');
      expect([await job.getState(), job.failedReason, job.attemptsMade]).toEqual(['failed', error.message, 1]);
    }
  });

  it('asks the strategy of the worker', async () => {
    const queue = stage.queue();
    const asked: unknown[] = [];
    const worker = manualWorker({
      settings: {
        backoffStrategy: (attemptsMade, type, error, job) => {
          asked.push([attemptsMade, type, error?.message, job?.id]);
          return attemptsMade === 1 ? 60_000 : -1;
        },
      },
    });
    await queue.add('a', {}, { attempts: 5, backoff: { type: 'mine' } });
    const job = await taken(worker);
    await job.moveToFailed(new Error('one'), 't');
    expect([await job.getState(), job.delay]).toEqual(['delayed', 60_000]);
    await job.promote();
    const again = await taken(worker);
    await again.moveToFailed(new Error('two'), 't');
    expect(await again.getState()).toBe('failed');
    expect(asked).toEqual([
      [1, 'mine', 'one', '1'],
      [2, 'mine', 'two', '1'],
    ]);
  });

  it('fails for good at maxStartedAttempts', async () => {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 5 });
    const worker = manualWorker({ maxStartedAttempts: 2 });
    await (await taken(worker)).moveToFailed(new Error('boom'), 't');
    const job = await taken(worker);
    await job.moveToFailed(new Error('boom'), 't');
    expect([await job.getState(), job.attemptsMade]).toEqual(['failed', 2]);
  });

  it('keeps the stack traces of all tries, or as many as stackTraceLimit', async () => {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 3 });
    await queue.add('b', {}, { attempts: 3, stackTraceLimit: 1 });
    for (let i = 0; i < 6; i++) await (await taken()).moveToFailed(new Error(`no. ${Math.floor(i / 2)}`), 't');
    const traces = async (id: string) => (await fetchJob(queue, id)).stacktrace?.map((trace) => trace.split('\n')[0]);
    expect(await traces('1')).toEqual(['Error: no. 0', 'Error: no. 1', 'Error: no. 2']);
    expect(await traces('2')).toEqual(['Error: no. 2']);
  });

  it('takes what has a message', async () => {
    const queue = stage.queue();
    await queue.add('a', {});
    await (await taken()).moveToFailed({ message: 'only' } as Error, 't');
    const stored = await fetchJob(queue, '1');
    expect([stored.failedReason, stored.stacktrace]).toEqual(['only', []]);
  });

  it('follows the retention of the job, then that of the worker', async () => {
    const queue = stage.queue();
    await queue.addBulk([
      { name: 'a', data: {}, opts: { removeOnFail: true } },
      { name: 'b', data: {} },
      { name: 'c', data: {} },
    ]);
    const worker = manualWorker({ removeOnFail: { count: 1 } });
    for (let i = 0; i < 3; i++) await (await taken(worker)).moveToFailed(new Error('boom'), 't');
    expect((await queue.getFailed()).map(({ name }) => name)).toEqual(['c']);
  });

  it('is told as global events', async () => {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 3, backoff: { type: 'twice', delay: 0 } });
    const delays = [0, 60_000];
    const worker = manualWorker({ settings: { backoffStrategy: () => delays.shift() ?? 0 } });
    const log = stage.globalLog();
    await (await taken(worker)).moveToFailed(new Error('one'), 't');
    const second = await taken(worker);
    await second.moveToFailed(new Error('two'), 't');
    await second.promote();
    await (await taken(worker)).moveToFailed(new Error('three'), 't');
    await log.get('drained');
    expect(log.names.slice(2)).toEqual([
      ...['active', 'waiting', 'active', 'delayed', 'waiting', 'active'],
      ...['failed', 'retries-exhausted', 'drained'],
    ]);
    expect(log.all('failed')[0][0]).toEqual({ jobId: '1', failedReason: 'three', prev: 'active' });
    expect(log.all('retries-exhausted')[0][0]).toEqual({ jobId: '1', attemptsMade: '3' });
  });

  it('emits nothing on the worker', async () => {
    await stage.queue().add('a', {});
    const worker = manualWorker();
    const emitted: string[] = [];
    for (const event of ['completed', 'failed', 'active'] as const) worker.on(event, () => emitted.push(event));
    await (await taken(worker)).moveToFailed(new Error('boom'), 't');
    expect(emitted).toEqual(['active']);
  });
});
