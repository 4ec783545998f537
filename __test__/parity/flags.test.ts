// Pins that a flag that is no boolean counts as JavaScript counts it: 1, a signal's name, the text of a query.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const FLAGS = [
  [1, true],
  ['true', true],
  [{}, true],
  [0, false],
  ['', false],
  [null, false],
] as unknown as [boolean, boolean][];

describe.each(libraries)('$name: flags', ({ lib }) => {
  const stage = useStage(lib);

  it.each(FLAGS)('getters that are told %j as asc', async (asc, counts) => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
    const order = <T>(...list: T[]): T[] => (counts ? list : list.reverse());
    expect((await queue.getJobs(['wait'], 0, -1, asc)).map(({ name }) => name)).toEqual(order('a', 'b'));
    expect(await queue.getRanges(['wait'], 0, -1, asc)).toEqual(order('1', '2'));
    for (const row of ['first', 'last']) await queue.addJobLog('1', row);
    expect((await queue.getJobLogs('1', 0, -1, asc)).logs).toEqual(order('first', 'last'));
    await queue.upsertJobScheduler('soon', { every: 1_000_000 });
    await queue.upsertJobScheduler('late', { every: 1_000_000, startDate: Date.now() + 5_000_000 });
    expect((await queue.getJobSchedulers(0, -1, asc)).map(({ key }) => key)).toEqual(order('soon', 'late'));
  });

  it.each(FLAGS)('removals that are told %j as removeChildren', async (removeChildren, counts) => {
    const queue = stage.queue();
    const removals = [
      async (id: string) => (await fetchJob(queue, id)).remove({ removeChildren }),
      (id: string) => queue.remove(id, { removeChildren }),
    ];
    for (const [i, remove] of removals.entries()) {
      const node = (name: string) => ({ name, queueName: stage.queueName, opts: { jobId: `${name}-${i}` } });
      await stage.flowProducer().add({ ...node('top'), children: [node('child')] });
      await remove(`top-${i}`);
      expect(await queue.getJobState(`child-${i}`)).toBe(counts ? 'unknown' : 'waiting');
    }
  });

  it.each(FLAGS)('a retry that is told %j as resets', async (flag, counts) => {
    const queue = stage.queue();
    const worker = stage.worker(null);
    await queue.add('job', {});
    const job = await worker.getNextJob('t');
    await job?.moveToFailed(new Error('no'), 't', false);
    await job?.retry('failed', { resetAttemptsMade: flag, resetAttemptsStarted: flag });
    const stored = await fetchJob(queue, '1');
    expect([stored.attemptsMade, stored.attemptsStarted]).toEqual(counts ? [0, 0] : [1, 1]);
  });

  it.each(FLAGS)('ends by hand that are told %j as fetchNext', async (fetchNext, counts) => {
    const queue = stage.queue();
    const worker = stage.worker(null);
    await queue.addBulk(Array.from({ length: 4 }, () => ({ name: 'job', data: {} })));
    await (await worker.getNextJob('t'))?.moveToCompleted(1, 't', fetchNext);
    expect(await queue.getActiveCount()).toBe(counts ? 1 : 0);
    await (await worker.getNextJob('u'))?.moveToFailed(new Error('no'), 'u', fetchNext);
    expect(await queue.getActiveCount()).toBe(counts ? 2 : 0);
  });

  it.each(['SIGTERM', 1] as unknown as boolean[])('a worker that is told %j closes by force', async (force) => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active', 'completed', 'closed']);
    await queue.add('job', {});
    await log.get('active');
    await worker.close(force);
    expect(await queue.getActiveCount()).toBe(1);
    gate.open();
    expect(log.names).toEqual(['active', 'closed']);
  });

  it.each([null, 0, ''] as unknown as boolean[])('a worker that is told %j closes', async (force) => {
    const worker = stage.worker(() => Promise.resolve());
    const log = new EventLog(worker, ['closed']);
    await worker.close(force);
    expect(log.names).toEqual(['closed']);
  });

  it('retryJobs takes a text as timestamp', async () => {
    const queue = stage.queue();
    const worker = stage.worker(null);
    await queue.add('job', {});
    await (await worker.getNextJob('t'))?.moveToFailed(new Error('no'), 't', false);
    await queue.retryJobs({ timestamp: '5000' as unknown as number });
    expect(await queue.getFailedCount()).toBe(1);
    await queue.retryJobs({ timestamp: String(Date.now() + 1000) as unknown as number });
    expect(await queue.getFailedCount()).toBe(0);
  });
});
