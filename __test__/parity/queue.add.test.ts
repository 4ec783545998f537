// Pins Queue#add and Queue#addBulk: ids, duplicates, the Job they return.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: queue.add', ({ lib }) => {
  const stage = useStage(lib);

  it.each([false, '', 0, null])('a parent of %j is none', async (parent) => {
    const queue = stage.queue();
    const opts = { parent } as unknown as JobsOptions;
    const jobs = [await queue.add('job', {}, opts), ...(await queue.addBulk([{ name: 'job', data: {}, opts }]))];
    expect(jobs.map((job) => job.parentKey)).toEqual([undefined, undefined]);
  });

  it('a delay of false is none', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { delay: false as unknown as number });
    expect(await queue.getJobState(id as string)).toBe('waiting');
  });

  describe('generated ids', () => {
    it('count up from 1, as strings', async () => {
      const queue = stage.queue();
      const ids = [];
      for (let i = 0; i < 3; i++) ids.push((await queue.add('count', {})).id);
      expect(ids).toEqual(['1', '2', '3']);
    });

    it('follow the order of the calls when many are in flight', async () => {
      const queue = stage.queue();
      const jobs = await Promise.all(Array.from({ length: 50 }, (_, i) => queue.add('count', { i })));
      expect(jobs.map((job) => job.id)).toEqual(Array.from({ length: 50 }, (_, i) => String(i + 1)));
      const eleventh = await fetchJob(queue, '11');
      expect(eleventh.data).toEqual({ i: 10 });
    });

    it('go on across add and addBulk', async () => {
      const queue = stage.queue();
      const first = await queue.add('one', {});
      const bulk = await queue.addBulk([
        { name: 'two', data: {} },
        { name: 'three', data: {} },
      ]);
      const last = await queue.add('four', {});
      expect([first, ...bulk, last].map((job) => job.id)).toEqual(['1', '2', '3', '4']);
    });

    it('go on across delayed jobs', async () => {
      const queue = stage.queue();
      await queue.add('now', {});
      const later = await queue.add('later', {}, { delay: 60_000 });
      const next = await queue.add('now', {});
      expect([later.id, next.id]).toEqual(['2', '3']);
    });

    it('are used up by custom ids too', async () => {
      const queue = stage.queue();
      await queue.add('custom', {}, { jobId: 'mine' });
      expect((await queue.add('next', {})).id).toBe('2');
    });

    it('are used up by duplicates too', async () => {
      const queue = stage.queue();
      for (let i = 0; i < 3; i++) await queue.add('custom', {}, { jobId: 'mine' });
      expect((await queue.add('next', {})).id).toBe('4');
    });

    it('are used up by custom ids and duplicates within addBulk', async () => {
      const queue = stage.queue();
      const jobs = await queue.addBulk([
        { name: 'a', data: {} },
        { name: 'b', data: {}, opts: { jobId: 'mine' } },
        { name: 'c', data: {}, opts: { jobId: 'mine' } },
        { name: 'd', data: {} },
      ]);
      expect(jobs.map((job) => job.id)).toEqual(['1', 'mine', 'mine', '4']);
    });

    it('are shared by all Queue objects of one name', async () => {
      const [one, other] = [stage.queue(), stage.queue()];
      await one.add('a', {});
      expect((await other.add('b', {})).id).toBe('2');
    });

    it('are counted for each prefix on its own', async () => {
      const one = stage.queue({ prefix: 'alpha' });
      const other = stage.queue({ prefix: 'beta' });
      await one.add('a', {});
      expect((await other.add('b', { of: 'beta' })).id).toBe('1');
      expect((await fetchJob(one, '1')).name).toBe('a');
      expect((await fetchJob(other, '1')).name).toBe('b');
    });

    it.each([
      ['an empty string', ''],
      ['undefined', undefined],
    ])('stand in for a jobId that is %s', async (_, jobId) => {
      const queue = stage.queue();
      expect((await queue.add('job', {}, { jobId })).id).toBe('1');
    });

    it('are not used up by a rejected add', async () => {
      const queue = stage.queue();
      await rejection(queue.add('bad', {}, { jobId: '7' }));
      expect((await queue.add('good', {})).id).toBe('1');
    });
  });

  describe('a custom id', () => {
    it.each([
      'mine',
      'a b',
      'ünï-日本-🚀',
      '007',
      '1.5',
      '1e3',
      '+1',
      ' 1',
      'a:b:c',
      'repeat:nightly:123',
      'x'.repeat(500),
    ])('may be %j', async (jobId) => {
      const queue = stage.queue();
      const job = await queue.add('custom', { of: jobId }, { jobId });
      expect(job.id).toBe(jobId);
      const stored = await fetchJob(queue, jobId);
      expect([stored.id, stored.data, stored.opts.jobId]).toEqual([jobId, { of: jobId }, jobId]);
    });

    it('given again leaves the first job as it was and resolves with the same id and the new arguments', async () => {
      const queue = stage.queue();
      await queue.add('first', { version: 1 }, { jobId: 'mine', attempts: 2 });
      const again = await queue.add('second', { version: 2 }, { jobId: 'mine', attempts: 5 });
      expect([again.id, again.name, again.data, again.opts.attempts]).toEqual(['mine', 'second', { version: 2 }, 5]);
      const stored = await fetchJob(queue, 'mine');
      expect([stored.name, stored.data, stored.opts.attempts]).toEqual(['first', { version: 1 }, 2]);
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
    });

    it('given again while the job is delayed leaves it delayed', async () => {
      const queue = stage.queue();
      await queue.add('later', {}, { jobId: 'mine', delay: 60_000 });
      await queue.add('now', {}, { jobId: 'mine' });
      expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 1 });
    });

    it('given again after the job completed adds nothing', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => 'done');
      const log = new EventLog(worker, ['completed']);
      await queue.add('once', {}, { jobId: 'mine' });
      await log.get('completed');
      const again = await queue.add('once', {}, { jobId: 'mine' });
      expect(await again.getState()).toBe('completed');
      expect(await queue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 0, completed: 1 });
    });

    it('is free again once its job was removed', async () => {
      const queue = stage.queue();
      const job = await queue.add('first', { version: 1 }, { jobId: 'mine' });
      await job.remove();
      await queue.add('second', { version: 2 }, { jobId: 'mine' });
      expect((await fetchJob(queue, 'mine')).data).toEqual({ version: 2 });
    });

    it('given again emits duplicated after the events of the first', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.add('first', {}, { jobId: 'mine' });
      await queue.add('second', {}, { jobId: 'mine' });
      const [args] = await log.get<[unknown]>('duplicated');
      expect(args).toEqual({ jobId: 'mine' });
      expect(log.names).toEqual(['added', 'waiting', 'duplicated']);
    });
  });

  describe('the returned job', () => {
    it('carries what was passed and the defaults', async () => {
      const queue = stage.queue();
      const before = Date.now();
      const job = await queue.add('paint', { colour: 'red' });
      expect(job).toBeInstanceOf(lib.Job);
      expect(job.timestamp).toBeGreaterThanOrEqual(before);
      expect(job.timestamp).toBeLessThanOrEqual(Date.now());
      expect({
        id: job.id,
        name: job.name,
        data: job.data,
        progress: job.progress,
        returnvalue: job.returnvalue,
        stacktrace: job.stacktrace,
        priority: job.priority,
        attemptsStarted: job.attemptsStarted,
        attemptsMade: job.attemptsMade,
        stalledCounter: job.stalledCounter,
        failedReason: job.failedReason,
        processedOn: job.processedOn,
        finishedOn: job.finishedOn,
        processedBy: job.processedBy,
        token: job.token,
        queueName: job.queueName,
        prefix: job.prefix,
        queueQualifiedName: job.queueQualifiedName,
      }).toEqual({
        id: '1',
        name: 'paint',
        data: { colour: 'red' },
        progress: 0,
        returnvalue: null,
        stacktrace: null,
        priority: 0,
        attemptsStarted: 0,
        attemptsMade: 0,
        stalledCounter: 0,
        failedReason: undefined,
        processedOn: undefined,
        finishedOn: undefined,
        processedBy: undefined,
        token: undefined,
        queueName: stage.queueName,
        prefix: 'bull',
        queueQualifiedName: `bull:${stage.queueName}`,
      });
    });

    it('shares the data object with the caller, while stored data do not', async () => {
      const queue = stage.queue();
      const data = { colour: 'red' };
      const job = await queue.add('paint', data);
      data.colour = 'blue';
      expect(job.data).toBe(data);
      expect((await fetchJob(queue, job.id)).data).toEqual({ colour: 'red' });
    });

    it('is announced by the waiting event of the queue, whatever state it entered', async () => {
      const queue = stage.queue();
      const log = new EventLog(queue, ['waiting']);
      const plain = await queue.add('now', {});
      const delayed = await queue.add('later', {}, { delay: 60_000 });
      const [[first], [second]] = log.all<[Job]>('waiting') as [[Job], [Job]];
      expect(log.names).toEqual(['waiting', 'waiting']);
      expect(first).toBe(plain);
      expect(second).toBe(delayed);
    });

    it('takes the timestamp option as its time', async () => {
      const queue = stage.queue();
      const job = await queue.add('past', {}, { timestamp: 1_600_000_000_000 });
      expect(job.timestamp).toBe(1_600_000_000_000);
      expect((await fetchJob(queue, job.id)).timestamp).toBe(1_600_000_000_000);
    });

    it('takes a timestamp of 0 for none', async () => {
      const queue = stage.queue();
      const before = Date.now();
      const job = await queue.add('now', {}, { timestamp: 0 });
      expect(job.timestamp).toBeGreaterThanOrEqual(before);
      expect(await fetchJob(queue, job.id)).toMatchObject({ timestamp: job.timestamp, opts: { timestamp: 0 } });
    });
  });

  it('options that JSON does not tell are those of their own job', async () => {
    const queue = stage.queue();
    const given = [{ one: () => 1 }, { other: () => 2 }] as object[];
    for (const opts of given) expect((await queue.add('job', {}, opts)).opts).toMatchObject(opts);
  });
});
