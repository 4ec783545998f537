// Pins the members of a Job and its JSON forms over its life, and Job.fromId.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: job.fields', ({ lib }) => {
  const stage = useStage(lib);

  const parsed = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;

  describe('JSON.stringify', () => {
    it('of a fresh job shows what was passed and the defaults', async () => {
      const job = await stage.queue().add('paint', { colour: 'red' });
      expect(parsed(job)).toEqual({
        id: '1',
        name: 'paint',
        data: { colour: 'red' },
        opts: { attempts: 0 },
        progress: 0,
        returnvalue: null,
        stacktrace: null,
        priority: 0,
        attemptsStarted: 0,
        attemptsMade: 0,
        stalledCounter: 0,
        timestamp: job.timestamp,
        queueQualifiedName: `bull:${stage.queueName}`,
      });
    });

    it('of a waiting job from getJob adds delay and an empty stacktrace', async () => {
      const queue = stage.queue();
      const { timestamp } = await queue.add('paint', { colour: 'red' }, { attempts: 3, backoff: 50 });
      expect(parsed(await fetchJob(queue, '1'))).toEqual({
        id: '1',
        name: 'paint',
        data: { colour: 'red' },
        opts: { attempts: 3, backoff: { type: 'fixed', delay: 50 } },
        progress: 0,
        returnvalue: null,
        stacktrace: [],
        delay: 0,
        priority: 0,
        attemptsStarted: 0,
        attemptsMade: 0,
        stalledCounter: 0,
        timestamp,
        queueQualifiedName: `bull:${stage.queueName}`,
      });
    });

    it('of a completed job from getJob adds times, counters and result', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(async () => ({ done: true })),
        ['completed'],
      );
      const { timestamp } = await queue.add('paint', {});
      const [{ processedOn, finishedOn }] = await log.get<[Job]>('completed');
      expect(parsed(await fetchJob(queue, '1'))).toEqual({
        id: '1',
        name: 'paint',
        data: {},
        opts: { attempts: 0 },
        progress: 0,
        returnvalue: { done: true },
        stacktrace: [],
        delay: 0,
        priority: 0,
        attemptsStarted: 1,
        attemptsMade: 1,
        stalledCounter: 0,
        timestamp,
        processedOn,
        finishedOn,
        queueQualifiedName: `bull:${stage.queueName}`,
      });
    });

    it('of a failed job from getJob adds reason and traces', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => {
        throw new Error('no paint');
      });
      const log = new EventLog(worker, ['failed']);
      await queue.add('paint', {});
      const [{ stacktrace }] = await log.get<[Job]>('failed');
      expect(parsed(await fetchJob(queue, '1'))).toMatchObject({
        failedReason: 'no paint',
        stacktrace,
        returnvalue: null,
        attemptsStarted: 1,
        attemptsMade: 1,
        progress: 0,
      });
    });

    it('does not touch the queue, however deep the job lies', async () => {
      const job = await stage.queue().add('paint', {});
      const text = JSON.stringify({ list: [{ job }] });
      expect(text).not.toContain('connection');
      expect(text).not.toContain('"queue"');
    });
  });

  it('a job that was never added is not found', async () => {
    const job = new lib.Job(stage.queue(), 'paint', {});
    expect(await Promise.all([job.getState(), job.isWaiting(), job.remove()])).toEqual(['unknown', false, undefined]);
    await expect(job.updateProgress(1)).rejects.toThrow('Missing key for job undefined. updateProgress');
  });

  describe('toJSON', () => {
    it('gives the members themselves, not their text', async () => {
      const queue = stage.queue();
      const job = await queue.add('paint', { colour: 'red' }, { attempts: 2 });
      const json = job.toJSON();
      expect(json.data).toBe(job.data);
      expect(json).toMatchObject({
        id: '1',
        name: 'paint',
        opts: { attempts: 2 },
        timestamp: job.timestamp,
        progress: 0,
      });
      expect(json).not.toHaveProperty('queue');
      expect(json).not.toHaveProperty('backend');
    });

    it('has what becomes of a job only once it has become of it', async () => {
      const queue = stage.queue();
      const later = ['processedOn', 'finishedOn', 'failedReason', 'token', 'processedBy', 'deferredFailure'];
      const laterOf = (job: Job) => later.filter((key) => key in job.toJSON());
      const job = await queue.add('paint', {}, { attempts: 2 });
      expect([laterOf(job), laterOf(await fetchJob(queue, job.id))]).toEqual([[], []]);
      const seen: string[][] = [];
      const worker = stage.worker(async (job) => {
        seen.push(laterOf(job));
        if (job.attemptsStarted === 1) throw new Error('first');
      });
      const log = new EventLog(worker, ['completed']);
      const [ended] = await log.get<[Job]>('completed', 1);
      const tried = ['processedOn', 'failedReason', 'token'];
      expect(seen).toEqual([['processedOn', 'token'], tried]);
      expect(laterOf(ended)).toEqual(['processedOn', 'finishedOn', 'failedReason', 'token']);
      expect(laterOf(await fetchJob(queue, job.id))).toEqual(['processedOn', 'finishedOn', 'failedReason']);
    });
  });

  describe('asJSON', () => {
    it('of a fresh job gives data, stacktrace and returnvalue as text', async () => {
      const job = await stage.queue().add('paint', { colour: 'red' });
      expect(job.asJSON()).toEqual({
        id: '1',
        name: 'paint',
        data: '{"colour":"red"}',
        opts: { attempts: 0 },
        progress: 0,
        attemptsMade: 0,
        attemptsStarted: 0,
        stalledCounter: 0,
        timestamp: job.timestamp,
        stacktrace: 'null',
        returnvalue: 'null',
      });
    });

    it('of a completed job gives its result as text', async () => {
      const queue = stage.queue();
      const log = new EventLog(
        stage.worker(async () => [1, 'x']),
        ['completed'],
      );
      await queue.add('paint', null);
      await log.get('completed');
      const stored = await fetchJob(queue, '1');
      expect(stored.asJSON()).toMatchObject({
        data: 'null',
        returnvalue: '[1,"x"]',
        stacktrace: '[]',
        finishedOn: stored.finishedOn,
        processedOn: stored.processedOn,
      });
    });

    it('of a failed job gives its reason and traces as text', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => {
        throw new Error('no "paint"');
      });
      const log = new EventLog(worker, ['failed']);
      await queue.add('paint', {});
      await log.get('failed');
      const stored = await fetchJob(queue, '1');
      expect(stored.asJSON()).toMatchObject({
        failedReason: '"no \\"paint\\""',
        stacktrace: JSON.stringify(stored.stacktrace),
      });
    });

    it('of undefined data gives an empty object', async () => {
      const job = await stage.queue().add('paint', undefined);
      expect(job.asJSON().data).toBe('{}');
    });
  });

  it('opts keep every option of this kind as it was given', async () => {
    const queue = stage.queue();
    const opts = {
      jobId: 'mine',
      delay: 60_000,
      attempts: 4,
      backoff: { type: 'exponential', delay: 7, jitter: 0.5 },
      removeOnComplete: { age: 60, count: 5, limit: 3 },
      removeOnFail: 9,
      keepLogs: 2,
      stackTraceLimit: 3,
      sizeLimit: 1_000,
      timestamp: 1_700_000_000_000,
    };
    const job = await queue.add('job', {}, opts);
    expect(job.opts).toEqual(opts);
    expect((await fetchJob(queue, 'mine')).opts).toEqual(opts);
  });

  it('opts of the caller are not changed', async () => {
    const opts = { backoff: 5, attempts: 2 };
    const job = await stage.queue().add('job', {}, opts);
    expect(opts).toEqual({ backoff: 5, attempts: 2 });
    expect(job.opts).not.toBe(opts);
  });

  it('opts may carry other keys', async () => {
    const queue = stage.queue();
    await queue.add('job', {}, { colour: 'red', nested: { a: [1] } } as object);
    expect((await fetchJob(queue, '1')).opts).toMatchObject({ colour: 'red', nested: { a: [1] } });
  });

  it('the queue is named by queueName, prefix and queueQualifiedName', async () => {
    const queue = stage.queue({ prefix: 'alpha' });
    const job = await queue.add('job', {});
    expect([job.queueName, job.prefix, job.queueQualifiedName]).toEqual([
      stage.queueName,
      'alpha',
      `alpha:${stage.queueName}`,
    ]);
    expect([queue.qualifiedName, queue.toKey('1')]).toEqual([`alpha:${stage.queueName}`, `alpha:${stage.queueName}:1`]);
  });

  describe('Job.fromId', () => {
    it('gives what getJob gives', async () => {
      const queue = stage.queue();
      await queue.add('job', { a: 1 }, { attempts: 2 });
      const job = await lib.Job.fromId(queue, '1');
      expect(job).toBeInstanceOf(lib.Job);
      expect(parsed(job)).toEqual(parsed(await fetchJob(queue, '1')));
    });

    it.each(['17', '', undefined])('gives undefined for %j', async (id) => {
      const queue = stage.queue();
      await queue.add('job', {});
      expect(await lib.Job.fromId(queue, id as string)).toBeUndefined();
    });
  });

  it('new Job does nothing but hold what it was given', async () => {
    const queue = stage.queue();
    const job = new lib.Job(queue, 'paint', { colour: 'red' }, { attempts: 2 }, 'mine');
    expect([job.id, job.name, job.data, job.opts.attempts]).toEqual(['mine', 'paint', { colour: 'red' }, 2]);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
  });

  it('Job.create adds, without the default options of the queue', async () => {
    const queue = stage.queue({ defaultJobOptions: { attempts: 5 } });
    const job = await lib.Job.create(queue, 'paint', { colour: 'red' });
    expect(job.id).toBe('1');
    const stored = await fetchJob(queue, '1');
    expect([stored.name, stored.data, stored.opts.attempts]).toEqual(['paint', { colour: 'red' }, 0]);
  });

  it('stored options change no prototype', () => {
    const opts = lib.Job.optsFromJSON('{"__proto__":{"attempts":5},"constructor":{"a":1},"delay":5}');
    expect(Object.getPrototypeOf(opts)).toBe(Object.prototype);
    expect([opts.delay, 'attempts' in opts]).toEqual([5, false]);
    expect(({} as { attempts?: number }).attempts).toBeUndefined();
  });

  it('Job.optsFromJSON reads short names, by a table of the caller in place of its own', () => {
    const text = '{"fpof":true,"tm":"x","d":5,"kept":1}';
    expect(lib.Job.optsFromJSON(text)).toEqual({
      failParentOnFailure: true,
      telemetry: { metadata: 'x' },
      d: 5,
      kept: 1,
    });
    const own = { d: 'delay', tm: 'timestamp' };
    expect(lib.Job.optsFromJSON(text, own)).toEqual({ fpof: true, timestamp: 'x', delay: 5, kept: 1 });
    expect(lib.Job.optsFromJSON()).toEqual({});
  });

  it('Job.fromJSON of what asJSON gave has no stack traces where there were none, and neither delay nor priority', async () => {
    const queue = stage.queue();
    const job = await queue.add('paint', { colour: 'red' });
    const again = lib.Job.fromJSON(queue, job.asJSON());
    expect([again.id, again.name, again.data as unknown, again.stacktrace]).toEqual([
      '1',
      'paint',
      { colour: 'red' },
      [],
    ]);
    expect([again.delay, again.priority]).toEqual([undefined, undefined]);
    const told = lib.Job.fromJSON(queue, { ...job.asJSON(), delay: 0, priority: 3 });
    expect([told.delay, told.priority]).toEqual([0, 3]);
    expect(lib.Job.fromJSON(queue, job.asJSON(), 'other').id).toBe('1');
    expect(lib.Job.fromJSON(queue, { ...job.asJSON(), id: '' }, 'other').id).toBe('other');
  });

  it('Job.fromJSON takes the parent of the plain form, not that of its options', async () => {
    const queue = stage.queue();
    const parent = { id: '1', queueKey: `${queue.opts.prefix}:${queue.name}` };
    const json = (await queue.add('paint', 1)).asJSON();
    const opts = { ...json.opts, parent: { id: parent.id, queue: parent.queueKey } };
    const alone = lib.Job.fromJSON(queue, { ...json, opts });
    expect([alone.parent, alone.parentKey]).toEqual([undefined, undefined]);
    const child = lib.Job.fromJSON(queue, { ...json, opts, parent, parentKey: `${parent.queueKey}:1` });
    expect([child.parent, child.parentKey]).toEqual([parent, `${parent.queueKey}:1`]);
  });
});
