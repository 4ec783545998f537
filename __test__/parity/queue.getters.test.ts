// Pins Queue#getJob and Queue#getJobCounts in every state of a plain job.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const NONE = { active: 0, completed: 0, delayed: 0, failed: 0, prioritized: 0, waiting: 0, 'waiting-children': 0 };

describe.each(libraries)('$name: queue.getJob', ({ lib }) => {
  const stage = useStage(lib);

  it.each([
    ['an unknown number', '17'],
    ['an unknown name', 'nobody'],
    ['an empty string', ''],
    ['undefined', undefined],
  ])('gives undefined for %s', async (_, id) => {
    const queue = stage.queue();
    await queue.add('job', {});
    expect(await queue.getJob(id as string)).toBeUndefined();
  });

  it('gives undefined on an empty queue', async () => {
    expect(await stage.queue().getJob('1')).toBeUndefined();
  });

  it('gives a new Job each time', async () => {
    const queue = stage.queue();
    const added = await queue.add('job', {});
    const [one, two] = [await fetchJob(queue, '1'), await fetchJob(queue, '1')];
    expect(one).toBeInstanceOf(lib.Job);
    expect(one).not.toBe(two);
    expect(one).not.toBe(added);
    expect(one.toJSON()).toMatchObject({ id: '1', name: 'job' });
  });

  it('finds each job of a bulk, first, middle and last', async () => {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: 200 }, (_, i) => ({ name: 'job', data: { i } })));
    for (const id of ['1', '64', '65', '128', '200'])
      expect((await fetchJob(queue, id)).data).toEqual({ i: Number(id) - 1 });
    expect(await queue.getJob('201')).toBeUndefined();
  });

  it('finds a waiting job while its neighbours of the same bulk are active and done', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(async (job) => (job.id === '2' ? gate.opened : undefined));
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.addBulk([1, 2, 3, 4].map((i) => ({ name: `n${i}`, data: { i } })));
    await log.get('active', 2);
    const jobs = await Promise.all(['1', '2', '3', '4'].map((id) => fetchJob(queue, id)));
    expect(jobs.map((job) => job.name)).toEqual(['n1', 'n2', 'n3', 'n4']);
    expect(await Promise.all(jobs.map((job) => job.getState()))).toEqual(['completed', 'active', 'waiting', 'waiting']);
  });

  it('takes a number, which is the id of the job that it gives', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    const job = await fetchJob(queue, 1 as unknown as string);
    expect(job.id).toBe(1);
    await job.updateData({ a: 1 });
    expect((await lib.Job.fromId(queue, 1 as unknown as string))?.data).toEqual({ a: 1 });
    expect(await job.getState()).toBe('waiting');
    await job.remove();
    expect(await queue.getJob('1')).toBeUndefined();
  });

  it('does not see the jobs of another queue', async () => {
    const queue = stage.queue();
    const other = stage.watch(new lib.Queue(`${stage.queueName}-other`, { connection: queue.opts.connection }));
    await queue.add('job', {});
    expect(await other.getJob('1')).toBeUndefined();
  });
});

describe.each(libraries)('$name: queue.getJobCounts', ({ lib }) => {
  const stage = useStage(lib);

  it('of an empty queue is seven zeros', async () => {
    expect(await stage.queue().getJobCounts()).toEqual(NONE);
  });

  it('has exactly the keys asked for', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    expect(await queue.getJobCounts('completed', 'waiting')).toEqual({ completed: 0, waiting: 1 });
    expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 0 });
  });

  it('knows wait as another word for waiting, and paused as none', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    // BullMQ's types have dropped 'paused', its getters have not.
    expect(await queue.getJobCounts('wait', 'waiting', 'paused' as 'wait')).toEqual({ wait: 1, waiting: 1, paused: 0 });
  });

  it('collapses a key asked for twice', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    expect(await queue.getJobCounts('waiting', 'waiting')).toEqual({ waiting: 1 });
  });

  it('counts each job once, in its state', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(async (job) => {
      if (job.name === 'fails') throw new Error('no');
      if (job.name === 'holds') await gate.opened;
    });
    const log = new EventLog(worker, ['active']);
    await queue.addBulk(
      ['passes', 'passes', 'fails', 'holds', 'waits', 'waits', 'waits'].map((name) => ({ name, data: {} })),
    );
    await queue.add('sleeps', {}, { delay: 60_000 });
    await log.get('active', 4);
    expect(await queue.getJobCounts()).toEqual({ ...NONE, completed: 2, failed: 1, active: 1, waiting: 3, delayed: 1 });
  });

  it('counts what a bulk added, at once', async () => {
    const queue = stage.queue();
    await queue.addBulk(Array.from({ length: 1_000 }, () => ({ name: 'job', data: {} })));
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1_000 });
  });

  it('is the same through another Queue object', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    expect(await stage.queue().getJobCounts()).toEqual({ ...NONE, waiting: 1 });
  });
});

describe.each(libraries)('$name: queue.getMeta', ({ lib }) => {
  const stage = useStage(lib);

  it('has its settings in one order', async () => {
    const queue = stage.queue();
    await until('the version', async () => (await queue.getMeta()).version);
    await queue.setGlobalRateLimit(5, 1000);
    await queue.pause();
    await queue.setGlobalConcurrency(5);
    const all = ['version', 'concurrency', 'maxLenEvents', 'max', 'duration', 'paused'];
    expect(Object.keys(await queue.getMeta())).toEqual(all);
  });
});
