// Pins Job#updateProgress and Job#updateData. What a progress may be: payload.data.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: job.updateProgress', ({ lib }) => {
  const stage = useStage(lib);

  it('is stored before it resolves, and shown by getJob while the job runs', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      await job.updateProgress(30);
      const stored = await fetchJob(queue, job.id);
      return [stored.progress, await stored.getState()];
    });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    expect((await log.get('completed'))[1]).toEqual([30, 'active']);
  });

  it('is kept when the job completes', async () => {
    const queue = stage.queue();
    const worker = stage.worker((job) => job.updateProgress(80));
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    const [job] = await log.get<[Job]>('completed');
    expect([job.progress, (await fetchJob(queue, '1')).progress]).toEqual([80, 80]);
  });

  it('is kept when the job fails and is retried', async () => {
    const queue = stage.queue();
    const seen: unknown[] = [];
    const worker = stage.worker(async (job) => {
      seen.push(job.progress);
      await job.updateProgress(10 * job.attemptsStarted);
      if (job.attemptsStarted === 1) throw new Error('no');
    });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', {}, { attempts: 2 });
    await log.get('completed');
    expect([seen, (await fetchJob(queue, '1')).progress]).toEqual([[0, 10], 20]);
  });

  it('lets the last of many win, and tells of each in order', async () => {
    const queue = stage.queue();
    const global = stage.globalLog();
    const worker = stage.worker(async (job) => {
      for (let i = 1; i <= 5; i++) await job.updateProgress(i);
    });
    const local = new EventLog(worker, ['progress', 'completed']);
    await queue.add('job', {});
    await local.get('completed');
    await global.get('completed');
    expect(local.all('progress').map(([, progress]) => progress)).toEqual([1, 2, 3, 4, 5]);
    expect(global.all('progress').map(([args]) => args)).toEqual([1, 2, 3, 4, 5].map((data) => ({ jobId: '1', data })));
    expect((await fetchJob(queue, '1')).progress).toBe(5);
  });

  it('of a job of the queue is an event of the queue, with the job', async () => {
    const queue = stage.queue();
    const log = new EventLog(queue, ['progress']);
    const job = await queue.add('job', {});
    await job.updateProgress({ done: 3 });
    expect(log.entries).toHaveLength(1);
    const [args] = log.all<[Job, unknown]>('progress');
    expect(args?.[0]).toBe(job);
    expect(args?.[1]).toEqual({ done: 3 });
  });

  it('works on any job of a bulk, and only on that one', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'job', data: {} })));
    await jobs[4]?.updateProgress(55);
    const stored = await Promise.all(jobs.map((job) => fetchJob(queue, job.id)));
    expect(stored.map((job) => job.progress)).toEqual([0, 0, 0, 0, 55, 0, 0, 0, 0, 0]);
  });

  it('of a waiting job is seen by the processor', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk([1, 2].map(() => ({ name: 'job', data: {} })));
    await jobs[1]?.updateProgress('prepared');
    const log = new EventLog(
      stage.worker(async (job) => job.progress),
      ['completed'],
    );
    await log.get('completed', 2);
    expect(log.all('completed').map(([, progress]) => progress)).toEqual([0, 'prepared']);
  });

  it('of a job that is gone is rejected with code -1', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    await job.remove();
    expect(await rejection(job.updateProgress(5))).toMatchObject({
      message: 'Missing key for job 1. updateProgress',
      code: -1,
    });
  });
});

describe.each(libraries)('$name: job.updateData', ({ lib }) => {
  const stage = useStage(lib);

  it('replaces the data, here and in the store', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', { a: 1, b: 2 });
    await job.updateData({ a: 3 });
    expect([job.data, (await fetchJob(queue, '1')).data]).toEqual([{ a: 3 }, { a: 3 }]);
  });

  it('of a waiting job is what its processor gets', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk([1, 2, 3].map((i) => ({ name: 'job', data: { i } })));
    await jobs[1]?.updateData({ i: 20, text: '日本🚀' });
    const log = new EventLog(
      stage.worker(async (job) => job.data as unknown),
      ['completed'],
    );
    await log.get('completed', 3);
    expect(log.all('completed').map(([, data]) => data)).toEqual([{ i: 1 }, { i: 20, text: '日本🚀' }, { i: 3 }]);
  });

  it('by the processor is kept for the next try', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      if (job.attemptsStarted === 2) return job.data as unknown;
      await job.updateData({ step: 'second' });
      throw new Error('once more');
    });
    const log = new EventLog(worker, ['completed']);
    await queue.add('job', { step: 'first' }, { attempts: 2 });
    expect((await log.get('completed'))[1]).toEqual({ step: 'second' });
  });

  it('of a delayed job is what its processor gets', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', { v: 1 }, { delay: 50 });
    await job.updateData({ v: 2 });
    const log = new EventLog(
      stage.worker(async (run) => run.data as unknown),
      ['completed'],
    );
    expect((await log.get('completed'))[1]).toEqual({ v: 2 });
  });

  it('of a completed job changes what getJob shows', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => 'kept'),
      ['completed'],
    );
    const job = await queue.add('job', { v: 1 });
    await log.get('completed');
    await job.updateData({ v: 2 });
    const stored = await fetchJob(queue, '1');
    expect([stored.data, stored.returnvalue]).toEqual([{ v: 2 }, 'kept']);
  });

  it('stores an empty object for undefined, and null for null', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', { v: 1 });
    await job.updateData(null);
    expect((await fetchJob(queue, '1')).data).toBeNull();
    await job.updateData(undefined);
    expect((await fetchJob(queue, '1')).data).toEqual({});
  });

  it('with what cannot be serialised is rejected, and the stored data stay', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', { v: 1 });
    expect((await rejection(job.updateData({ n: 1n }))).message).toBe('Do not know how to serialize a BigInt');
    expect((await fetchJob(queue, '1')).data).toEqual({ v: 1 });
  });

  it('of a job that is gone is rejected with code -1', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    await job.remove();
    expect(await rejection(job.updateData({}))).toMatchObject({
      message: 'Missing key for job 1. updateData',
      code: -1,
    });
  });
});
