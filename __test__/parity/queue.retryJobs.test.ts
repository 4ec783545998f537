// Pins Queue#retryJobs: order, counters, time limit and events.
import { describe, expect, it, vi } from 'vitest';
import type { Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: queue.retryJobs', ({ lib }) => {
  const stage = useStage(lib);

  async function end(queue: Queue, n: number, fails: boolean, opts = {}): Promise<void> {
    const worker = stage.worker(async (job) => {
      if (fails) throw new Error('no');
      return job.id;
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.addBulk(Array.from({ length: n }, (_, i) => ({ name: `n${i + 1}`, data: { i }, opts })));
    await log.get(fails ? 'failed' : 'completed', n);
    await worker.close();
  }

  it('of an empty queue does nothing', async () => {
    const queue = stage.queue();
    expect(await queue.retryJobs()).toBeUndefined();
    expect(await queue.getWaitingCount()).toBe(0);
  });

  it.each([
    ['failed', true],
    ['completed', false],
  ] as const)('puts all %s jobs back in the waiting list, in the order in which they ended', async (state, fails) => {
    const queue = stage.queue();
    await end(queue, 150, fails);
    await queue.add('before', {});
    const ended = await queue.getJobs(state, 0, -1, true);
    expect(ended).toHaveLength(150);
    await queue.retryJobs({ state });
    const waiting = await queue.getWaiting();
    expect(waiting.map((job) => job.id)).toEqual(['151', ...ended.map((job) => job.id)]);
    expect((await fetchJob(queue, '100')).toJSON()).toMatchObject({ id: '100', name: 'n100', data: { i: 99 } });
    expect(await queue.getJobCounts('failed', 'completed', 'waiting')).toEqual({
      failed: 0,
      completed: 0,
      waiting: 151,
    });
  });

  it.each([Infinity, Number.MAX_VALUE, 1e20, 2 ** 53])('a timestamp of %d is after all of them', async (timestamp) => {
    const queue = stage.queue();
    await end(queue, 2, true);
    await queue.retryJobs({ timestamp });
    expect(await queue.getJobCounts('failed', 'waiting')).toEqual({ failed: 0, waiting: 2 });
  });

  it('takes failed jobs unless told otherwise', async () => {
    const queue = stage.queue();
    await end(queue, 1, false);
    await end(queue, 1, true);
    await queue.retryJobs();
    expect(await queue.getJobCounts('failed', 'completed', 'waiting')).toEqual({ failed: 0, completed: 1, waiting: 1 });
  });

  it('keeps the counts of tries and what was logged, and forgets how the job ended', async () => {
    const queue = stage.queue();
    await end(queue, 2, true);
    await queue.addJobLog('1', 'row');
    await queue.retryJobs();
    const job = await fetchJob(queue, '1');
    expect(job.attemptsMade).toBe(1);
    expect(job.attemptsStarted).toBe(1);
    expect(job.failedReason).toBeUndefined();
    expect(job.finishedOn).toBeUndefined();
    expect(job.processedOn).toBeUndefined();
    expect(job.stacktrace).toHaveLength(1);
    expect(await job.getState()).toBe('waiting');
    expect((await queue.getJobLogs('1')).logs).toEqual(['row']);
  });

  it('forgets what completed jobs returned', async () => {
    const queue = stage.queue();
    await end(queue, 3, false);
    await queue.addJobLog('2', 'row');
    await queue.retryJobs({ state: 'completed' });
    for (const id of ['1', '2', '3']) {
      const job = await fetchJob(queue, id);
      expect([job.returnvalue ?? null, job.attemptsMade, job.attemptsStarted, job.finishedOn]).toEqual([
        null,
        1,
        1,
        undefined,
      ]);
    }
  });

  it('runs them again', async () => {
    const queue = stage.queue();
    await end(queue, 3, true);
    await queue.retryJobs();
    const log = new EventLog(
      stage.worker(async (job) => [job.id, job.attemptsMade, job.attemptsStarted]),
      ['completed'],
    );
    await log.get('completed', 3);
    expect(log.all('completed').map((args) => args[1])).toEqual([
      ['1', 1, 2],
      ['2', 1, 2],
      ['3', 1, 2],
    ]);
  });

  it('moves all of them whatever the count, which is that of a step', async () => {
    const queue = stage.queue();
    await end(queue, 20, true);
    await queue.retryJobs({ count: 3 });
    expect(await queue.getJobCounts('failed', 'waiting')).toEqual({ failed: 0, waiting: 20 });
  });

  it('takes now from new Date(), where somebody fakes Date.now alone', async () => {
    const queue = stage.queue();
    const real = Date.now.bind(Date);
    const ahead = vi.spyOn(Date, 'now').mockImplementation(() => real() + 86_400_000);
    try {
      await end(queue, 1, true);
      await queue.retryJobs();
      expect(await queue.getFailedCount()).toBe(1);
    } finally {
      ahead.mockRestore();
    }
  });

  it('leaves those that ended after the timestamp', async () => {
    const queue = stage.queue();
    await end(queue, 2, true);
    const { finishedOn = 0 } = await fetchJob(queue, '2');
    await queue.retryJobs({ timestamp: finishedOn - 60_000 });
    expect(await queue.getFailedCount()).toBe(2);
    await queue.retryJobs({ timestamp: finishedOn });
    expect(await queue.getFailedCount()).toBe(0);
  });

  it('puts jobs into a paused queue, which stays paused', async () => {
    const queue = stage.queue();
    await end(queue, 2, true);
    await queue.pause();
    await queue.retryJobs();
    expect(await queue.getJobCounts('failed', 'waiting')).toEqual({ failed: 0, waiting: 2 });
    expect(await queue.isPaused()).toBe(true);
  });

  it('leaves the other states alone', async () => {
    const queue = stage.queue();
    await queue.add('job', {}, { delay: 60_000 });
    await queue.add('job', {});
    await queue.retryJobs();
    await queue.retryJobs({ state: 'completed' });
    expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 1, waiting: 1 });
  });

  it('tells each job as waiting, with the state it came from', async () => {
    const queue = stage.queue();
    await end(queue, 2, true);
    await end(queue, 2, false);
    const log = new EventLog(stage.events(), ['waiting', 'paused']);
    await queue.retryJobs();
    await queue.retryJobs({ state: 'completed' });
    await queue.pause();
    await log.get('paused');
    expect(
      log
        .all('waiting')
        .slice(4)
        .map(([args]) => args),
    ).toEqual([
      { jobId: '1', prev: 'failed' },
      { jobId: '2', prev: 'failed' },
      { jobId: '3', prev: 'completed' },
      { jobId: '4', prev: 'completed' },
    ]);
  });

  it('leaves jobs that can no longer be retried as failed', async () => {
    const queue = stage.queue();
    await end(queue, 1, true);
    await queue.retryJobs();
    expect((await rejection((await fetchJob(queue, '1')).retry())).message).toBe(
      'Job 1 is not in the failed state. reprocessJob',
    );
  });
});
