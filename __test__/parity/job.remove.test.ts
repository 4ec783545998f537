// Pins Job#remove in every state, and what it refuses.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const NONE = { active: 0, completed: 0, delayed: 0, failed: 0, prioritized: 0, waiting: 0, 'waiting-children': 0 };

describe.each(libraries)('$name: job.remove', ({ lib }) => {
  const stage = useStage(lib);

  it('of a waiting job takes it out of the waiting list', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk(['a', 'b', 'c'].map((name) => ({ name, data: {} })));
    await jobs[1]?.remove();
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 2 });
    expect(await queue.getJob('2')).toBeUndefined();
    const log = new EventLog(
      stage.worker(async () => undefined),
      ['completed', 'drained'],
    );
    await log.get('drained');
    expect(log.all<[Job]>('completed').map(([job]) => job.name)).toEqual(['a', 'c']);
  });

  it('of a delayed job keeps it from ever starting', async () => {
    const queue = stage.queue();
    const job = await queue.add('never', {}, { delay: 30 });
    await queue.add('later', {}, { delay: 60 });
    await job.remove();
    const log = new EventLog(
      stage.worker(async () => undefined),
      ['completed'],
    );
    await log.get('completed');
    expect(log.all<[Job]>('completed').map(([done]) => done.name)).toEqual(['later']);
    expect(await queue.getJobCounts()).toEqual({ ...NONE, completed: 1 });
  });

  it('of a completed job removes it with its logs', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker((job) => job.log('row')),
      ['completed'],
    );
    const job = await queue.add('job', {});
    await log.get('completed');
    await job.remove();
    expect(await queue.getJobCounts()).toEqual(NONE);
    expect(await queue.getJobLogs('1')).toEqual({ logs: [], count: 0 });
  });

  it('of a failed job removes it', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {
      throw new Error('no');
    });
    const log = new EventLog(worker, ['failed']);
    const job = await queue.add('job', {});
    await log.get('failed');
    await job.remove();
    expect(await queue.getJobCounts()).toEqual(NONE);
    expect(await queue.getJob('1')).toBeUndefined();
  });

  it('of an active job is refused, and the job completes', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const log = new EventLog(
      stage.worker(() => gate.opened),
      ['active', 'completed'],
    );
    const job = await queue.add('job', {});
    await log.get('active');
    const error = await rejection(job.remove());
    expect(error.message).toBe('Job 1 could not be removed because it is locked by another worker');
    expect(await job.getState()).toBe('active');
    gate.open();
    await log.get('completed');
    expect(await job.getState()).toBe('completed');
  });

  it('of a job that is gone resolves', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    await job.remove();
    expect(await job.remove()).toBeUndefined();
  });

  it('leaves all other jobs of a bulk as they are', async () => {
    const queue = stage.queue();
    const jobs = await queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'job', data: { i } })));
    for (const at of [0, 49, 99]) await jobs[at]?.remove();
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 97 });
    expect((await fetchJob(queue, '2')).data).toEqual({ i: 1 });
    expect((await fetchJob(queue, '99')).data).toEqual({ i: 98 });
  });

  it('is an event of the queue, with the job', async () => {
    const queue = stage.queue();
    const log = new EventLog(queue, ['removed']);
    const job = await queue.add('job', {});
    await job.remove();
    expect(log.entries).toHaveLength(1);
    expect(log.entries[0]?.args[0]).toBe(job);
  });

  it('tells the state it left in a global event, where waiting is wait', async () => {
    const queue = stage.queue();
    const global = stage.globalLog();
    const worker = stage.worker(async (job) => {
      if (job.name === 'fails') throw new Error('no');
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    const finished = await queue.addBulk(['passes', 'fails'].map((name) => ({ name, data: {} })));
    await log.when('both to finish', () => log.entries.length === 2);
    await worker.close();
    const jobs = [...finished, await queue.add('waits', {}), await queue.add('sleeps', {}, { delay: 60_000 })];
    for (const job of jobs) await job.remove();
    await global.get('removed', 4);
    expect(global.all('removed').map(([args]) => args)).toEqual([
      { jobId: '1', prev: 'completed' },
      { jobId: '2', prev: 'failed' },
      { jobId: '3', prev: 'wait' },
      { jobId: '4', prev: 'delayed' },
    ]);
  });
});
