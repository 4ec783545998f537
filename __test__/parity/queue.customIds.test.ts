// Pins ids of the caller's: what an add does while a job of its id exists, in each state.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions } from 'bullmq';
import { story } from '../support/deduplication.js';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, sleep } from '../support/waiting.js';

const LONG = 60_000;

describe.each(libraries)('$name: custom ids', ({ lib }) => {
  const stage = useStage(lib);

  /** A queue in which the job `mine` is in this state. */
  async function existing(state: string, opts: JobsOptions = {}) {
    const queue = stage.queue();
    const log = stage.globalLog();
    const gate = stage.gate();
    const started = stage.gate();
    if (state === 'delayed') opts = { ...opts, delay: LONG };
    await queue.add('old', { n: 1 }, { ...opts, jobId: 'mine' });
    if (state !== 'waiting' && state !== 'delayed') {
      stage.worker(async (job) => {
        if (job.id !== 'mine') return;
        started.open();
        if (state === 'active') await gate.opened;
        if (state === 'failed' || state === 'retrying') throw new Error('boom');
      });
      if (state === 'active') await started.opened;
      else await log.get(state === 'retrying' ? 'delayed' : state);
    }
    return { queue, log, open: gate.open };
  }

  describe.each([
    ['waiting', 'waiting', {}],
    ['delayed', 'delayed', {}],
    ['active', 'active', {}],
    ['completed', 'completed', {}],
    ['failed', 'failed', {}],
    ['retrying', 'delayed', { attempts: 2, backoff: LONG }],
  ])('while the job is %s', (state, bullState, opts) => {
    it('changes nothing of it', async () => {
      const { queue } = await existing(state, opts);
      const before = (await fetchJob(queue, 'mine')).asJSON();
      const added = await queue.add('new', { n: 2 }, { jobId: 'mine', attempts: 7, delay: 5 });
      expect([added.id, added.name, added.data, added.opts.attempts]).toEqual(['mine', 'new', { n: 2 }, 7]);
      const job = await fetchJob(queue, 'mine');
      expect(job.asJSON()).toEqual(before);
      expect(await job.getState()).toBe(bullState);
      expect(await added.getState()).toBe(bullState);
    });

    it('is told of in an event', async () => {
      const { queue, log } = await existing(state, opts);
      await queue.add('new', { n: 2 }, { jobId: 'mine' });
      const [args] = await log.get('duplicated');
      expect(args).toEqual({ jobId: 'mine' });
    });
  });

  it.each<[string, JobsOptions]>([
    ['completed', { removeOnComplete: true }],
    ['failed', { removeOnFail: true }],
  ])('are free again when the job has %s and is not kept', async (state, opts) => {
    const { queue, log } = await existing(state, opts);
    await queue.add('new', { n: 2 }, { jobId: 'mine', delay: LONG });
    const job = await fetchJob(queue, 'mine');
    expect([job.name, job.data, job.attemptsMade]).toEqual(['new', { n: 2 }, 0]);
    expect(log.names).not.toContain('duplicated');
  });

  it.each(['waiting', 'delayed', 'completed', 'failed'])('are free again when the %s job is removed', async (state) => {
    const { queue } = await existing(state);
    await queue.remove('mine');
    await queue.add('new', { n: 2 }, { jobId: 'mine', delay: LONG });
    const job = await fetchJob(queue, 'mine');
    expect([job.data, job.attemptsMade, job.failedReason]).toEqual([{ n: 2 }, 0, undefined]);
  });

  it('are free again when retention has removed the job', async () => {
    const { queue, log } = await existing('completed');
    // of jobs that end in one millisecond, any may be the older one
    await sleep(2);
    await queue.add('next', {}, { removeOnComplete: 1 });
    await log.get('completed', 2);
    expect(await queue.getJob('mine')).toBeUndefined();
    await queue.add('new', { n: 2 }, { jobId: 'mine', delay: LONG });
    expect((await fetchJob(queue, 'mine')).data).toEqual({ n: 2 });
  });

  it('do not run twice what was added while it was active', async () => {
    const { queue, log, open } = await existing('active');
    await queue.add('new', { n: 2 }, { jobId: 'mine' });
    open();
    await log.get('drained');
    const told = ['added', 'waiting', 'active', 'duplicated', 'completed'];
    expect(story(log)).toEqual([...told.map((event) => `${event} mine`), 'drained']);
  });

  it('run again when they are added after they ended and were removed', async () => {
    const queue = stage.queue();
    const done = new EventLog(
      stage.worker(async (job) => job.data as number),
      ['completed'],
    );
    for (let n = 1; n <= 3; n++) {
      await queue.add('job', n, { jobId: 'mine', removeOnComplete: true });
      await done.get('completed', n);
    }
    expect(done.all<[Job, number]>('completed').map(([, value]) => value)).toEqual([1, 2, 3]);
  });

  it('may be added again by the processor of a job that is removed when it completes, once it is', async () => {
    const { queue, log } = await existing('completed', { removeOnComplete: true });
    await Promise.all([1, 2, 3].map((n) => queue.add('new', n, { jobId: 'mine', delay: LONG })));
    expect(await queue.getJobCounts('delayed')).toEqual({ delayed: 1 });
    await log.get('duplicated', 2);
    expect((await fetchJob(queue, 'mine')).data).toBe(1);
  });

  it('are told apart by every character', async () => {
    const queue = stage.queue();
    for (const jobId of ['a', 'A', ' a', 'a ', 'á']) await queue.add('job', {}, { jobId });
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 5 });
  });

  it('keep their place in the waiting list among the others, and within one batch', async () => {
    const queue = stage.queue();
    await queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: {}, opts: { jobId: 'B' } },
      { name: 'c', data: {} },
      { name: 'b again', data: {}, opts: { jobId: 'B' } },
      { name: 'd', data: {}, opts: { jobId: 'D', delay: LONG } },
      { name: 'e', data: {} },
      { name: 'd again', data: {}, opts: { jobId: 'D' } },
    ]);
    expect((await queue.getWaiting()).map((job) => job.name)).toEqual(['a', 'b', 'c', 'e']);
    expect((await queue.getDelayed()).map((job) => job.name)).toEqual(['d']);
    expect((await queue.add('next', {})).id).toBe('8');
  });

  it('are told of in the order of the batch', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    await queue.addBulk([
      { name: 'a', data: {}, opts: { jobId: 'A' } },
      { name: 'a', data: {}, opts: { jobId: 'A' } },
      { name: 'b', data: {} },
      { name: 'a', data: {}, opts: { jobId: 'A' } },
      { name: 'c', data: {}, opts: { jobId: 'C' } },
    ]);
    await log.get('waiting', 3);
    expect(story(log)).toEqual([
      'added A',
      'waiting A',
      'duplicated A',
      'added 3',
      'waiting 3',
      'duplicated A',
      'added C',
      'waiting C',
    ]);
  });

  it.each([
    ['12', 'Custom Id cannot be integers'],
    ['-5', 'Custom Id cannot be integers'],
    ['a:b', 'Custom Id cannot contain :'],
    ['a:b:c:d', 'Custom Id cannot contain :'],
    [':', 'Custom Id cannot contain :'],
    ['0', "JobId cannot be '0' or start with '0:'"],
    ['0:a:b', "JobId cannot be '0' or start with '0:'"],
  ])('may not be %j', async (jobId, message) => {
    const error = await rejection(stage.queue().add('job', {}, { jobId }));
    expect(error.message).toBe(message);
  });
});
