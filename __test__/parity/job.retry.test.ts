// Pins Job#retry from failed and completed, and what it refuses.
import { describe, expect, it } from 'vitest';
import type { Job, Queue, Worker } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe.each(libraries)('$name: job.retry', ({ lib }) => {
  const stage = useStage(lib);

  /** A job that ran once and a paused worker on which it would pass the next time. */
  async function finished(
    outcome: 'failed' | 'completed',
  ): Promise<{ queue: Queue; job: Job; worker: Worker; log: EventLog }> {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      if (outcome === 'failed' && job.id === '1' && job.attemptsStarted === 1) throw new Error('first');
      return job.attemptsStarted;
    });
    const log = new EventLog(worker, ['failed', 'completed']);
    await queue.add('job', {});
    await log.get(outcome);
    await worker.pause();
    return { queue, job: await fetchJob(queue, '1'), worker, log };
  }

  it('takes a failed job back to waiting, and the next run can complete it', async () => {
    const { queue, job, worker, log } = await finished('failed');
    await job.retry();
    expect(await job.getState()).toBe('waiting');
    expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 1, failed: 0 });
    await worker.resume();
    await log.get('completed');
    const stored = await fetchJob(queue, '1');
    expect([stored.returnvalue, stored.attemptsMade, stored.attemptsStarted]).toEqual([2, 2, 2]);
  });

  it('takes a completed job back when told so', async () => {
    const { queue, job, worker, log } = await finished('completed');
    await job.retry('completed');
    expect(await queue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 1, completed: 0 });
    expect((await fetchJob(queue, '1')).returnvalue).toBeNull();
    await worker.resume();
    await log.get('completed', 2);
    expect((await fetchJob(queue, '1')).returnvalue).toBe(2);
  });

  it('clears the end and the reason, and keeps traces and counters', async () => {
    const { queue, job } = await finished('failed');
    await job.retry();
    expect([job.failedReason, job.finishedOn, job.processedOn, job.returnvalue]).toEqual([null, null, null, null]);
    const stored = await fetchJob(queue, '1');
    expect([stored.failedReason, stored.finishedOn, stored.processedOn, stored.returnvalue]).toEqual([
      undefined,
      undefined,
      undefined,
      null,
    ]);
    expect([stored.stacktrace?.length, stored.attemptsMade, stored.attemptsStarted]).toEqual([1, 1, 1]);
  });

  it('resets the counters it is told to reset', async () => {
    const { queue, job } = await finished('failed');
    await job.retry('failed', { resetAttemptsMade: true });
    const stored = await fetchJob(queue, '1');
    expect([stored.attemptsMade, stored.attemptsStarted]).toEqual([0, 1]);
    expect(job.attemptsMade).toBe(0);
  });

  it('resets both counters when told so', async () => {
    const { queue, job } = await finished('completed');
    await job.retry('completed', { resetAttemptsMade: true, resetAttemptsStarted: true });
    const stored = await fetchJob(queue, '1');
    expect([stored.attemptsMade, stored.attemptsStarted]).toEqual([0, 0]);
  });

  it('keeps the stack traces, to which the next failure adds', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      throw new Error(`try ${job.attemptsStarted} after ${job.stacktrace?.length}`);
    });
    const log = new EventLog(worker, ['failed']);
    await queue.addBulk([
      { name: 'one', data: {} },
      { name: 'all', data: {} },
    ]);
    await log.get('failed', 2);
    await worker.pause();
    await (await fetchJob(queue, '1')).retry('failed', { resetAttemptsMade: true });
    await worker.resume();
    await log.get('failed', 3);
    await queue.retryJobs();
    await log.get('failed', 5);
    const traces = ((await queue.getJobs('failed', 0, -1, true)) as Job[]).map(({ id, stacktrace }) => [
      id,
      stacktrace?.map((trace) => trace.split('\n')[0]),
    ]);
    expect(Object.fromEntries(traces)).toEqual({
      1: ['Error: try 1 after 0', 'Error: try 2 after 1', 'Error: try 3 after 2'],
      2: ['Error: try 1 after 0', 'Error: try 2 after 1'],
    });
  });

  it('of a completed job keeps why it failed before', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async (job) => {
      if (job.attemptsStarted === 1) throw new Error('first');
    });
    const log = new EventLog(worker, ['completed']);
    const { id } = await queue.add('job', {}, { attempts: 2 });
    await log.get('completed');
    await worker.pause();
    await (await fetchJob(queue, id)).retry('completed');
    expect((await fetchJob(queue, id)).failedReason).toBe('first');
    await worker.resume();
    await log.get('completed', 2);
    await worker.pause();
    await queue.retryJobs({ state: 'completed' });
    expect((await fetchJob(queue, id)).failedReason).toBe('first');
  });

  it('puts the job at the end of the waiting list', async () => {
    const { queue, job, worker, log } = await finished('failed');
    await queue.add('other', {});
    await job.retry();
    await worker.resume();
    await log.get('completed', 2);
    expect(log.all<[Job]>('completed').map(([done]) => done.id)).toEqual(['2', '1']);
  });

  it('is told by a global waiting event with the state it left', async () => {
    const { job } = await finished('failed');
    const log = stage.globalLog();
    await job.retry();
    expect((await log.get('waiting', 2))[0]).toEqual({ jobId: '1', prev: 'failed' });
  });

  it('wakes an idle worker', async () => {
    const { job, worker, log } = await finished('completed');
    await worker.resume();
    await job.retry('completed');
    await log.get('completed', 2);
    expect(log.names).toEqual(['completed', 'completed']);
  });

  it('of a job in another state is rejected with code -3', async () => {
    const { queue, job } = await finished('failed');
    const other = await queue.add('waits', {});
    expect(await rejection(job.retry('completed'))).toMatchObject({
      message: 'Job 1 is not in the completed state. reprocessJob',
      code: -3,
    });
    expect(await rejection(other.retry())).toMatchObject({
      message: 'Job 2 is not in the failed state. reprocessJob',
      code: -3,
    });
    expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 1, failed: 1 });
  });

  it('asks for a state in which jobs end', async () => {
    const queue = stage.queue();
    const job = await queue.add('waits', {});
    expect(await rejection(job.retry('waiting' as 'failed'))).toMatchObject({ code: -3 });
    expect((await queue.getWaiting()).map(({ id }) => id)).toEqual([job.id]);
  });

  it('of a job that is gone is rejected with code -1', async () => {
    const { job } = await finished('failed');
    await job.remove();
    expect(await rejection(job.retry())).toMatchObject({ message: 'Missing key for job 1. reprocessJob', code: -1 });
  });

  it('twice is rejected the second time', async () => {
    const { queue, job } = await finished('failed');
    await job.retry();
    expect(await rejection(job.retry())).toMatchObject({ code: -3 });
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
  });
});
