// Jobs that users take themselves hear that they are cancelled, and that their time is over. BullMQ tells them nothing.
import { describe, expect, it } from 'vitest';
import { JobCancelledError, JobTimeoutError, type Job, type Queue, type Worker } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { redisClient } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

/** A lease of 30 s is looked after this often, at the latest: whoever is told later was not told by a message. */
const RENEWAL_MS = 7_500;
const SOON_MS = 20;

const aborted = (signal: AbortSignal | undefined): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal!.aborted) resolve(signal!.reason);
    else signal!.addEventListener('abort', () => resolve(signal!.reason));
  });

describe('the signal of a job that a user has taken', () => {
  const stage = useStage(chasquimq);
  const queueOf = (): Queue => stage.queue() as unknown as Queue;
  const manual = (opts = {}, processor: unknown = null): Worker =>
    stage.worker(processor as never, { autorun: false, ...opts }) as unknown as Worker;
  const stored = async (id: string): Promise<Job> => (await fetchJob(stage.queue(), id)) as unknown as Job;

  async function take(worker: Worker, opts = {}): Promise<Job> {
    await queueOf().add('job', {}, opts);
    return worker.getNextJob('mine');
  }

  it('in another process is aborted at once, and the job is not tried again', async () => {
    const queue = queueOf();
    const env = { QUEUE: stage.queueName, LOCK_DURATION: 30_000, BY_HAND: 1 };
    const { id } = await queue.add('job', {}, { attempts: 5 });
    const other = stage.keep(Program.start('cancelled-worker.mjs', { env }));
    await other.said('running');
    const since = performance.now();
    expect(await queue.cancelJob(id!, { reason: 'enough', waitForEnd: true })).toBe('signalled');
    expect(performance.now() - since).toBeLessThan(RENEWAL_MS);
    expect(await other.said('aborted')).toBe(`${id} enough`);
    expect(await stored(id!)).toMatchObject({ failedReason: 'ended for JobCancelledError', attemptsMade: 1 });
    expect(await queue.getJobState(id!)).toBe('failed');
    other.tell('close');
    expect(await other.end()).toEqual({ code: 0, signal: null });
  });

  it('is aborted by a filter, also of a frozen job, beside one that runs', async () => {
    const [queue, worker] = [queueOf(), manual()];
    const running = manual({}, async (_: Job, __: string, signal: AbortSignal) => {
      throw (await aborted(signal)) as Error;
    });
    const [one, other] = [await take(worker), Object.freeze(await take(worker))];
    void running.run();
    await queue.add('job', {});
    await until('it to run', async () => (await queue.getActiveCount()) === 3);
    expect(await queue.cancelJobs({ name: 'job' }, { reason: 'all' })).toBe(3);
    for (const job of [one, other]) expect(await aborted(job.signal)).toEqual(new JobCancelledError('all'));
    await until('the one that runs to fail', async () => (await queue.getFailedCount()) === 1);
    await one.moveToFailed(new Error('cancelled'), 'mine');
  });

  it('is aborted when it is first asked for, if the job was cancelled before', async () => {
    const [queue, worker] = [queueOf(), manual()];
    const job = await take(worker, { attempts: 3 });
    await queue.cancelJob(job.id!, { reason: 'early' });
    await until('the worker to hear', () => job.deferredFailure);
    expect(job.signal!.reason).toEqual(new JobCancelledError('early'));
    await job.moveToFailed(job.signal!.reason as Error, 'mine');
    expect(await queue.getJobState(job.id!)).toBe('failed');
  });

  it('is aborted of a job that came with the end of another, before it is made', async () => {
    const [queue, worker] = [queueOf(), manual()];
    const [first, marker] = [await take(worker), await take(worker)];
    await queue.add('job', {});
    const [data, nextId] = (await first.moveToCompleted(1, 'mine')) as [never, string];
    await queue.cancelJob(nextId, { reason: 'meanwhile' });
    // the worker has heard of both then
    await queue.cancelJob(marker.id!);
    await aborted(marker.signal);
    const next = await (
      worker as unknown as { nextJobFromJobData(data: never, id: string, token: string): Promise<Job> }
    ).nextJobFromJobData(data, nextId, 'mine');
    expect(await aborted(next.signal)).toEqual(new JobCancelledError('meanwhile'));
    await next.moveToFailed(new Error('cancelled'), 'mine');
  });

  it('says nothing of the next time that the job is taken', async () => {
    const [queue, worker] = [queueOf(), manual()];
    const first = await take(worker);
    await queue.cancelJob(first.id!);
    await aborted(first.signal);
    await first.moveToFailed(new Error('cancelled'), 'mine');
    await first.retry();
    const again = await worker.getNextJob('mine');
    const marker = await take(worker);
    await queue.cancelJob(marker.id!);
    await aborted(marker.signal);
    expect([again.id, again.signal!.aborted]).toEqual([first.id, false]);
  });

  it('leaves a job that is completed all the same', async () => {
    const [queue, worker] = [queueOf(), manual()];
    const job = await take(worker);
    await queue.cancelJob(job.id!);
    await aborted(job.signal);
    await job.moveToCompleted('done', 'mine', false);
    expect(await queue.getJobState(job.id!)).toBe('completed');
  });

  it('is aborted by the look after the lease where no message comes, while somebody has it', async () => {
    const worker = manual({ lockDuration: 2_000 });
    const job = await take(worker);
    const { signal } = job;
    const redis = redisClient();
    await redis.hset(`{bull:${worker.name}}:cancels:${worker.id}`, `m${job.processedOn}:${job.id}`, 'unheard');
    expect(await aborted(signal)).toEqual(new JobCancelledError('unheard'));
    await redis.quit();
  });

  it('is that of processJob, whose job fails for good', async () => {
    const [queue, told] = [queueOf(), stage.gate()];
    const worker = manual({}, async (job: Job, _: string, signal: AbortSignal) => {
      expect(signal).toBe(job.signal);
      told.open();
      throw (await aborted(signal)) as Error;
    });
    const job = await take(worker, { attempts: 3 });
    const run = worker.processJob(job, 'mine', () => false);
    await told.opened;
    await queue.cancelJob(job.id!, { reason: 'enough' });
    await run;
    expect(await queue.getJobState(job.id!)).toBe('failed');
    expect((await stored(job.id!)).failedReason).toBe(new JobCancelledError('enough').message);
  });

  it('is aborted by worker.cancelJob, too, and the job may be tried again', async () => {
    const [queue, worker] = [queueOf(), manual()];
    const job = await take(worker, { attempts: 2 });
    const { signal } = job;
    expect(worker.cancelJob(job.id!, 'here')).toBe(true);
    expect(signal!.reason).toBe('here');
    await job.moveToFailed(new Error('here'), 'mine');
    expect([await queue.getJobState(job.id!), worker.cancelJob(job.id!)]).toEqual(['waiting', false]);
  });

  it.each([
    [{ timeout: SOON_MS, attempts: 2 }, {}, 'waiting'],
    [{ timeout: SOON_MS, attempts: 2, timeoutIsFinal: true }, {}, 'failed'],
    [{ attempts: 2 }, { ttl: { job: SOON_MS } }, 'waiting'],
  ])('is aborted when the time of the job is over: %j, %j', async (ofJob, ofWorker, state) => {
    const queue = queueOf();
    const job = await take(manual(ofWorker), ofJob);
    const reason = await aborted(job.signal);
    expect(reason).toEqual(new JobTimeoutError('job', job.id, SOON_MS));
    await job.moveToFailed(reason as Error, 'mine');
    expect(await queue.getJobState(job.id!)).toBe(state);
  });

  it('is left alone once the job has ended, or was moved', async () => {
    const worker = manual({ ttl: SOON_MS });
    const over = await Promise.all([1, 2, 3].map(() => take(worker)));
    const signals = over.map(({ signal }) => signal!);
    await over[0].moveToCompleted(1, 'mine', false);
    await over[1].moveToDelayed(Date.now() + 60_000, 'mine');
    const reason = await aborted(signals[2]);
    expect(reason).toBeInstanceOf(JobTimeoutError);
    await over[2].moveToWait('mine');
    const last = await worker.getNextJob('mine');
    await aborted(last.signal);
    expect(signals.map((signal) => signal.aborted)).toEqual([false, false, true]);
  });

  it('is none of a job that nobody has taken', async () => {
    const job = await queueOf().add('job', {});
    expect(job.signal).toBeUndefined();
  });
});
