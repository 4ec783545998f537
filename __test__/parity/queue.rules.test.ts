// Pins what Queue and Queue#add refuse, with which text, and that nothing is stored then.
import { describe, expect, it } from 'vitest';
import type { JobsOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { server } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { rejection } from '../support/waiting.js';

describe.each(libraries)('$name: queue.rules', ({ lib }) => {
  const stage = useStage(lib);

  const ZERO = `JobId cannot be '0' or start with '0:'`;
  const INTEGER = 'Custom Id cannot be integers';
  const COLON = 'Custom Id cannot contain :';

  it('a prefix that is no text goes by its text', async () => {
    for (const prefix of [7, true] as unknown as string[]) {
      const queue = stage.queue({ prefix });
      expect(queue.qualifiedName).toBe(`${String(prefix)}:${stage.queueName}`);
      await queue.add('job', {});
      expect(await stage.queue({ prefix: String(prefix) }).getJobCounts('wait')).toEqual({ wait: 1 });
    }
  });

  describe('add rejects a jobId', () => {
    it.each([
      ['0', ZERO],
      ['0:', ZERO],
      ['0:a:b', ZERO],
      ['12', INTEGER],
      ['-5', INTEGER],
      ['a:b', COLON],
      ['a:', COLON],
      [':', COLON],
      ['a:b:c:d', COLON],
    ])('%j: %s', async (jobId, message) => {
      const queue = stage.queue();
      expect((await rejection(queue.add('job', {}, { jobId }))).message).toBe(message);
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
      expect((await queue.add('job', {})).id).toBe('1');
    });

    it('that is a number', async () => {
      const queue = stage.queue();
      const error = await rejection(queue.add('job', {}, { jobId: 5 as unknown as string }));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toBe('jobId.startsWith is not a function');
      expect((await queue.add('job', {})).id).toBe('1');
    });

    it('that is null, as addBulk does', async () => {
      const queue = stage.queue({ defaultJobOptions: { attempts: 2 } });
      const opts = { jobId: null as unknown as string };
      await rejection(queue.add('job', {}, opts));
      await rejection(queue.addBulk([{ name: 'job', data: {}, opts }]));
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
    });
  });

  it('an option that is null is as none, once it is read back', async () => {
    const queue = stage.queue();
    const opts = { priority: null, removeOnComplete: null, deduplication: { id: 'once', extend: null } };
    const job = await queue.add('job', {}, opts as unknown as JobsOptions);
    expect(job.opts).toMatchObject(opts);
    expect((await fetchJob(queue, job.id)).opts).toEqual({ attempts: 0, deduplication: { id: 'once' } });
  });

  describe('a name', () => {
    it.each([undefined, null, true, {}, ['a']])(
      'that is neither a text nor a number is rejected: %j',
      async (given) => {
        const queue = stage.queue();
        const name = given as string;
        await rejection(queue.add(name, {}));
        await rejection(queue.addBulk([{ name, data: {} }]));
        await rejection(stage.flowProducer().add({ name, queueName: stage.queueName }));
        expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
      },
    );

    it('that is a number is stored as a text', async () => {
      const queue = stage.queue();
      const name = 5 as unknown as string;
      await queue.add(name, {});
      await queue.addBulk([{ name, data: {} }]);
      await queue.upsertJobScheduler('each', { every: 60_000 }, { name });
      expect((await queue.getJobs()).map((job) => job.name)).toEqual(['5', '5', '5']);
    });
  });

  describe('sizeLimit', () => {
    it('counts the bytes of the JSON text and names the job and the limit', async () => {
      const queue = stage.queue();
      // {"a":"é"} has 9 characters, and 10 bytes in UTF-8.
      const error = await rejection(queue.add('big', { a: 'é' }, { sizeLimit: 9 }));
      expect(error.message).toBe('The size of job big exceeds the limit 9 bytes');
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
    });

    it('allows data of exactly that many bytes', async () => {
      const queue = stage.queue();
      expect((await queue.add('fits', { a: 'é' }, { sizeLimit: 10 })).id).toBe('1');
    });

    it('of 0 is no limit', async () => {
      const queue = stage.queue();
      expect((await queue.add('free', { a: 'é' }, { sizeLimit: 0 })).id).toBe('1');
    });

    it('of less than 0 rejects everything', async () => {
      const queue = stage.queue();
      const error = await rejection(queue.add('none', {}, { sizeLimit: -1 }));
      expect(error.message).toBe('The size of job none exceeds the limit -1 bytes');
    });

    it('is checked before the jobId', async () => {
      const queue = stage.queue();
      const error = await rejection(queue.add('both', { a: 1 }, { sizeLimit: 1, jobId: 'a:b' }));
      expect(error.message).toBe('The size of job both exceeds the limit 1 bytes');
    });
  });

  describe('backoff', () => {
    it.each([-0.1, 1.1, 2])('with a jitter of %d is rejected', async (jitter) => {
      const queue = stage.queue();
      const error = await rejection(queue.add('job', {}, { backoff: { type: 'fixed', delay: 10, jitter } }));
      expect(error.message).toBe('Jitter should be between 0 and 1');
    });

    it.each([0, 0.5, 1])('with a jitter of %d is accepted', async (jitter) => {
      const queue = stage.queue();
      const job = await queue.add('job', {}, { backoff: { type: 'fixed', delay: 10, jitter } });
      expect((await fetchJob(queue, job.id)).opts.backoff).toEqual({ type: 'fixed', delay: 10, jitter });
    });
  });

  it('debounce is rejected with a pointer to its successor', async () => {
    const queue = stage.queue();
    const error = await rejection(queue.add('job', {}, { debounce: { id: 'x' } } as JobsOptions));
    expect(error.message).toBe('Debounce option has been removed. Use deduplication option instead');
  });

  it.each([
    ['delay', { delay: NaN }],
    ['delay', { delay: Infinity }],
    ['attempts', { attempts: NaN }],
    ['timestamp', { timestamp: NaN }],
  ])('a %s that is no finite number is rejected and the queue stays usable: %j', async (_, opts) => {
    const queue = stage.queue();
    await rejection(queue.add('bad', {}, opts));
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
    await queue.add('good', {});
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 1, delayed: 0 });
  });

  it('a negative delay is no delay, and is kept as it was given', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {}, { delay: -5 });
    expect([job.delay, await job.getState()]).toEqual([-5, 'waiting']);
  });

  describe('a queue name', () => {
    it.each(['', undefined, null])('must be provided: %j', (name) => {
      expect(() => new lib.Queue(name as string, { connection: { ...server } })).toThrow('Queue name must be provided');
    });

    it('must not contain a colon', () => {
      expect(() => new lib.Queue('a:b', { connection: { ...server } })).toThrow('Queue name cannot contain :');
    });

    it.each([' ', 'a b', 'ü-日本-🚀', '"quoted"', 'back\\slash', 'new\nline', '{tag}', 'a*b?[c]'])(
      'may be %j',
      async (name) => {
        const queue = stage.watch(new lib.Queue(`${name}${stage.queueName}`, { connection: { ...server } }));
        const job = await queue.add('job', { at: name });
        expect(job.queueName).toBe(`${name}${stage.queueName}`);
        expect((await fetchJob(queue, job.id)).data).toEqual({ at: name });
      },
    );
  });
});

describe.each(libraries)('$name: queue.defaultJobOptions', ({ lib }) => {
  const stage = useStage(lib);

  it('lie under the options of add, key by key', async () => {
    const queue = stage.queue({
      defaultJobOptions: { attempts: 3, keepLogs: 7, backoff: { type: 'fixed', delay: 5 } },
    });
    const job = await queue.add('job', {}, { attempts: 9, backoff: { type: 'exponential' } });
    expect((await fetchJob(queue, job.id)).opts).toEqual({
      attempts: 9,
      keepLogs: 7,
      backoff: { type: 'exponential' },
    });
  });

  it('lie under the options of each job of addBulk', async () => {
    const queue = stage.queue({ defaultJobOptions: { attempts: 3 } });
    const jobs = await queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: {}, opts: { attempts: 4 } },
    ]);
    const stored = await Promise.all(jobs.map((job) => fetchJob(queue, job.id)));
    expect(stored.map((job) => job.opts)).toEqual([{ attempts: 3 }, { attempts: 4 }]);
  });

  it('are overridden by an explicit undefined', async () => {
    const queue = stage.queue({ defaultJobOptions: { delay: 60_000 } });
    expect(await (await queue.add('job', {}, { delay: undefined })).getState()).toBe('waiting');
  });

  it('cannot set a jobId', async () => {
    const queue = stage.queue({ defaultJobOptions: { jobId: 'default' } as JobsOptions });
    expect((await queue.add('job', {})).id).toBe('1');
  });

  it('are shown by the queue as they were given', () => {
    const defaultJobOptions = { attempts: 3, removeOnComplete: true };
    const queue = stage.queue({ defaultJobOptions });
    expect(queue.defaultJobOptions).toEqual(defaultJobOptions);
    expect(queue.opts.defaultJobOptions).toEqual(defaultJobOptions);
  });

  it('with a number as backoff become a fixed backoff on the job', async () => {
    const queue = stage.queue({ defaultJobOptions: { backoff: 250 } });
    const job = await queue.add('job', {});
    expect(job.opts.backoff).toEqual({ type: 'fixed', delay: 250 });
    expect((await fetchJob(queue, job.id)).opts.backoff).toEqual({ type: 'fixed', delay: 250 });
  });
});
