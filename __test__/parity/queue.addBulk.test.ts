// Pins Queue#addBulk: order, options of their own, validation of all before anything is sent.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions, QueueOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: queue.addBulk', ({ lib }) => {
  const stage = useStage(lib);

  it('resolves with the jobs in the order of the array, and stores them so', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk(Array.from({ length: 300 }, (_, i) => ({ name: `n${i}`, data: { i } })));
    expect(jobs.map((job) => [job.id, job.name, job.data])).toEqual(
      Array.from({ length: 300 }, (_, i) => [String(i + 1), `n${i}`, { i }]),
    );
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 300 });
    expect((await fetchJob(queue, '257')).data).toEqual({ i: 256 });
  });

  it('gives Job instances with the fields that add gives', async () => {
    const queue = stage.queue();
    const single = await queue.add('job', { a: 1 }, { timestamp: 5 });
    const [bulk] = await queue.addBulk([{ name: 'job', data: { a: 1 }, opts: { timestamp: 5 } }]);
    expect(bulk).toBeInstanceOf(lib.Job);
    const asSent = (job: Job | undefined) => JSON.parse(JSON.stringify(job)) as object;
    expect({ ...asSent(bulk), id: '1' }).toEqual(asSent(single));
  });

  it('of nothing resolves with nothing', async () => {
    const queue = stage.queue();
    expect(await queue.addBulk([])).toEqual([]);
  });

  it('takes different options for each job', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk([
      { name: 'plain', data: {} },
      { name: 'delayed', data: {}, opts: { delay: 60_000 } },
      { name: 'custom', data: {}, opts: { jobId: 'mine', attempts: 3 } },
    ]);
    expect(jobs.map((job) => job.id)).toEqual(['1', '2', 'mine']);
    expect(await Promise.all(jobs.map((job) => job.getState()))).toEqual(['waiting', 'delayed', 'waiting']);
    expect((await fetchJob(queue, 'mine')).opts.attempts).toBe(3);
  });

  it('what is changed in the options of a job, or in what they were made of, is changed in no other job', async () => {
    const queue = stage.queue();
    const given = () => ({ attempts: 2, backoff: { type: 'fixed', delay: 5 } });
    const [kept, first] = [given(), given()];
    const [a, b] = await queue.addBulk([first, kept].map((opts) => ({ name: 'job', data: {}, opts })));
    const backoffOf = (job: Job) => job.opts.backoff as { delay: number };
    backoffOf(a).delay = 77;
    expect(backoffOf(b).delay).toBe(5);
    backoffOf(b).delay = 88;
    first.backoff.delay = 99;
    const c = await queue.add('job', {}, given());
    expect([backoffOf(c).delay, backoffOf(await fetchJob(queue, c.id)).delay]).toEqual([5, 5]);
  });

  it('options of the program’s own are what was given, each job has those that it was given', async () => {
    const queue = stage.queue();
    type Own = JobsOptions & { tags: { of: string[] }[] };
    const given = (): Own => ({ tags: [{ of: ['a'] }] });
    const [a, b] = await queue.addBulk([1, 2].map(() => ({ name: 'job', data: {}, opts: given() })));
    (a.opts as Own).tags[0].of.push('b');
    const c = await queue.add('job', {}, given());
    for (const { opts } of [b, c]) expect(opts).toMatchObject(given());
  });

  it('is processed in the order of the array, after what was added before', async () => {
    const queue = stage.queue();
    await queue.add('first', {});
    await queue.addBulk(['second', 'third', 'fourth'].map((name) => ({ name, data: {} })));
    await queue.add('fifth', {});
    const log = new EventLog(
      stage.worker(async () => undefined),
      ['completed'],
    );
    await log.get('completed', 5);
    expect(log.all<[Job]>('completed').map(([job]) => job.name)).toEqual([
      'first',
      'second',
      'third',
      'fourth',
      'fifth',
    ]);
  });

  it('adds one job when one of its jobs repeats the id of another', async () => {
    const queue = stage.queue();
    await queue.addBulk([
      { name: 'first', data: {}, opts: { jobId: 'mine' } },
      { name: 'second', data: {}, opts: { jobId: 'mine' } },
    ]);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
    expect((await fetchJob(queue, 'mine')).name).toBe('first');
  });

  it.each([
    ['a bad jobId', { jobId: 'a:b' }, 'Custom Id cannot contain :'],
    ['an integer jobId', { jobId: '7' }, 'Custom Id cannot be integers'],
    ['oversized data', { sizeLimit: 1 }, 'The size of job bad exceeds the limit 1 bytes'],
    ['a bad jitter', { backoff: { type: 'fixed', jitter: 2 } }, 'Jitter should be between 0 and 1'],
  ])('adds nothing at all when its last job has %s', async (_, opts, message) => {
    const queue = stage.queue();
    const good = { name: 'good', data: {} };
    const error = await rejection(queue.addBulk([good, good, { name: 'bad', data: {}, opts }]));
    expect(error.message).toBe(message);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
    expect((await queue.add('next', {})).id).toBe('1');
  });

  it('adds nothing at all when the data of one job cannot be serialised', async () => {
    const queue = stage.queue();
    const error = await rejection(
      queue.addBulk([
        { name: 'good', data: {} },
        { name: 'bad', data: { n: 1n } },
      ]),
    );
    expect(error.message).toBe('Do not know how to serialize a BigInt');
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
  });

  it.each<[string, Partial<QueueOptions>]>([
    ['without default options', {}],
    ['with default options', { defaultJobOptions: { attempts: 2 } }],
    ['with telemetry', { telemetry: new TestTelemetry() }],
  ])('rejects what is no list of jobs: %s', async (_, opts) => {
    const queue = stage.queue(opts);
    for (const jobs of [undefined, null, {}, [null], [undefined]]) {
      const error = await rejection(queue.addBulk(jobs as never));
      expect(error.name).toBe('TypeError');
    }
  });

  it('does not emit the waiting event of the queue, but the global ones for each job', async () => {
    const queue = stage.queue();
    const local = new EventLog(queue, ['waiting']);
    const log = stage.globalLog();
    await queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: {} },
    ]);
    await log.get('waiting', 2);
    expect(log.entries.map(({ event, args }) => [event, args[0]])).toEqual([
      ['added', { jobId: '1', name: 'a' }],
      ['waiting', { jobId: '1' }],
      ['added', { jobId: '2', name: 'b' }],
      ['waiting', { jobId: '2' }],
    ]);
    expect(local.entries).toEqual([]);
  });
});
