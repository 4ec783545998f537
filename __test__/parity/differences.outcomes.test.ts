// Pins wanted differences in how jobs end, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { describe, expect, it } from 'vitest';
import type { Job, Processor, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { redisClient } from '../support/redis.js';
import { sideOf } from '../support/sides.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

describe.each(libraries)('$name: differences, outcomes', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = sideOf(name);

  /** Runs one job until its try is over, whatever became of it: the next job of the one slot starts then. Gives the job as it is stored. */
  async function run(processor: Processor, opts: Partial<WorkerOptions> = {}, attempts = 1): Promise<Job> {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { attempts });
    await queue.add('next', {});
    let isNext = false;
    stage.worker(async (job, token) => {
      if (job.name === 'job') return processor(job, token);
      isNext = true;
    }, opts);
    await until('the next job', () => isNext);
    stage.takeErrors();
    return fetchJob(queue, id);
  }

  it.each([undefined, null])('throw-undefined: %s', async (thrown) => {
    const job = await run(() => Promise.reject(thrown));
    expect(await job.getState()).toBe(of({ bullmq: 'active', chasquimq: 'failed' }));
  });

  it('throw-undefined: moveToFailed(undefined)', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {});
    const job = await stage.worker(null).getNextJob('token');
    const outcome = await job.moveToFailed(undefined as unknown as Error, 'token', false).then(
      () => 'done',
      (error: Error) => error.name,
    );
    expect(outcome).toBe(of({ bullmq: 'TypeError', chasquimq: 'done' }));
    expect(await (await fetchJob(queue, id)).getState()).toBe(of({ bullmq: 'active', chasquimq: 'failed' }));
  });

  it('attempts-made-is-of-the-server', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { attempts: 2 });
    let runs = 0;
    const worker = stage.worker(async (job) => {
      runs++;
      job.attemptsMade = 5;
      throw new Error('no');
    });
    const log = new EventLog(worker, ['drained']);
    await log.get('drained');
    await until('its end', async () => (await fetchJob(queue, id)).getState().then((state) => state === 'failed'));
    expect(runs).toBe(of({ bullmq: 1, chasquimq: 2 }));
  });

  it('error-message-no-text', async () => {
    const job = await run(async () => {
      throw Object.assign(new Error('no'), { message: { odd: true } });
    });
    expect(await job.getState()).toBe(of({ bullmq: 'active', chasquimq: 'failed' }));
  });

  it('thrown-without-message', async () => {
    const job = await run(() => Promise.reject(7));
    expect(job.failedReason || undefined).toBe(of<unknown>({ bullmq: 'null', chasquimq: undefined }));
  });

  it('backoff-no-number', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { attempts: 2, backoff: { type: 'mine' } });
    const backoffStrategy = () => 'soon' as unknown as number;
    const worker = stage.worker(() => Promise.reject(new Error('no')), { settings: { backoffStrategy } });
    await new EventLog(worker, ['error']).get('error');
    stage.takeErrors();
    expect(await (await fetchJob(queue, id)).getState()).toBe(of({ bullmq: 'unknown', chasquimq: 'active' }));
  });

  it('sealed-jobs', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    const worker = stage.worker(async (job) => void Object.seal(job));
    const log = new EventLog(worker, ['completed', 'error']);
    await log.when('its end', () => log.entries.length > 0);
    expect(log.names[0]).toBe(of({ bullmq: 'error', chasquimq: 'completed' }));
    await worker.close();
    stage.takeErrors();
  });

  it('moved-and-returned', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    await queue.add('next', {});
    const worker = stage.worker(async (job, token) => {
      if (job.name === 'job') await job.moveToDelayed(Date.now() + 60_000, token);
    });
    await new EventLog(worker, ['completed']).get('completed');
    expect(stage.takeErrors().length).toBe(of({ bullmq: 2, chasquimq: 1 }));
  });

  it('move-to-failed-refused', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { attempts: 2 });
    const worker = stage.worker(null);
    const job = await worker.getNextJob('token');
    await job?.moveToCompleted('done', 'token', false);
    await rejection((await fetchJob(queue, id)).moveToFailed(new Error('too late'), '0'));
    expect((await fetchJob(queue, id)).failedReason || undefined).toBe(
      of<unknown>({ bullmq: 'too late', chasquimq: undefined }),
    );
  });

  it('change-delay-range', async () => {
    const job = await stage.queue().add('job', {}, { delay: 60_000 });
    const told = await job.changeDelay(NaN).catch((error: unknown) => error);
    expect(told instanceof RangeError).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('change-priority-range', async () => {
    const job = await stage.queue().add('job', {}, { priority: 1 });
    const told = await job.changePriority({ priority: 2 ** 22 }).then(
      () => 'taken',
      (error: Error) => error.message,
    );
    expect(told === 'taken').toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('wait-until-finished-listeners', async () => {
    const queue = stage.queue();
    const events = stage.events();
    await events.waitUntilReady();
    const warnings: string[] = [];
    const warn = (warning: Error) => void warnings.push(warning.name);
    process.on('warning', warn);
    const jobs = await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data: {} })));
    const ends = jobs.map((job) => job.waitUntilFinished(events));
    stage.worker(async () => undefined);
    await Promise.all(ends);
    process.off('warning', warn);
    expect(warnings.includes('MaxListenersExceededWarning')).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('wait-until-finished-removed', async () => {
    const [queue, events] = [stage.queue(), stage.events()];
    const told = new EventLog(events, ['completed']);
    stage.worker(async () => 'done');
    const job = await queue.add('job', {}, { removeOnComplete: true });
    await told.get('completed');
    const end = await job.waitUntilFinished(events).catch((error: Error) => error.message);
    const missing = `Missing key for job bull:${stage.queueName}:1. isFinished`;
    expect(end).toBe(of({ bullmq: missing, chasquimq: 'done' }));
  });

  it('unreadable-jobs', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, { jobId: 'odd' });
    const redis = redisClient();
    if (name === 'bullmq') await redis.hset(`bull:${stage.queueName}:odd`, 'data', 'garbage');
    else await redis.hset(`{bull:${stage.queueName}}:jobs`, 'odd', 'garbage');
    await redis.quit();
    const jobs = await queue.getJobs().catch((error: Error) => error.name);
    expect(jobs).toEqual(of<unknown>({ bullmq: 'SyntaxError', chasquimq: [expect.objectContaining({ id })] }));
    const worker = stage.worker(async () => undefined);
    await new EventLog(worker, ['error']).get('error');
    await until(
      'its state',
      async () => (await queue.getJobState('odd')) === of({ bullmq: 'active', chasquimq: 'failed' }),
    );
    await worker.close(true);
    stage.takeErrors();
  });

  it('retention-count-lowered', async () => {
    const queue = stage.queue();
    const MANY = 3_000;
    await queue.addBulk(Array.from({ length: MANY }, (_, i) => ({ name: 'job', data: {}, opts: { jobId: `j${i}` } })));
    const worker = stage.worker(async () => undefined, { concurrency: 100 });
    await until('all to end', async () => (await queue.getCompletedCount()) === MANY, 60_000);
    const log = new EventLog(worker, ['completed']);
    await queue.add('last', {}, { removeOnComplete: 5 });
    // the events of others may come behind what is stored
    await log.when('the last job', () => log.entries.some(({ args: [job] }) => (job as Job).name === 'last'));
    const left = await queue.getCompletedCount();
    expect([left === 5, left < MANY]).toEqual([of({ bullmq: true, chasquimq: false }), true]);
  });
});
