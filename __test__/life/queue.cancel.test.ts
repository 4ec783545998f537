// Jobs that are cancelled from any process, whether they wait or run. BullMQ has none of it.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Job, WorkerOptions } from 'bullmq';
import { JobCancelledError, type CancelJobOptions, type JobsProgress, type Queue } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

const SANDBOX = fileURLToPath(new URL('../parity/processors/by-name.cjs', import.meta.url));
const START_MS = 60_000;
/** A lease of 30 s is renewed this often, at the latest: whoever is told later was not told by a message. */
const RENEWAL_MS = 7_500;
const HOUR = 3_600_000;

const textOf = (reason?: string): string => new JobCancelledError(reason).message;

describe('queue.cancel', () => {
  const stage = useStage(chasquimq);
  const queueOf = (part = '', opts = {}): Queue => stage.queue(opts, part) as unknown as Queue;

  /** A worker whose jobs run until their signals are aborted, and then throw why. */
  function worker(opts: Partial<WorkerOptions> = {}): EventLog {
    const untilAborted = (_: Job, __?: string, signal?: AbortSignal): Promise<never> =>
      new Promise((___, reject) => signal!.addEventListener('abort', () => reject(signal!.reason as Error)));
    return new EventLog(stage.worker(untilAborted, opts), ['active', 'completed', 'failed']);
  }

  function program(env: Record<string, string | number> = {}): Program {
    const all = { QUEUE: stage.queueName, LOCK_DURATION: 30_000, ...env };
    return stage.keep(Program.start('cancelled-worker.mjs', { env: all }));
  }

  it('a job that waits for anything fails for good, and never starts', async () => {
    const queue = queueOf();
    const global = stage.globalLog();
    await queue.addBulk([
      { name: 'plain', data: 1 },
      { name: 'own', data: 1, opts: { jobId: 'own', attempts: 3 } },
      { name: 'later', data: 1, opts: { jobId: 'later', delay: HOUR } },
      { name: 'ranked', data: 1, opts: { jobId: 'ranked', priority: 2 } },
      { name: 'grouped', data: 1, opts: { jobId: 'grouped', group: { id: 'a' } } },
    ]);
    const child = { name: 'child', queueName: queue.name, opts: { jobId: 'child' } };
    await stage
      .flowProducer()
      .add({ ...{ name: 'p', queueName: queue.name, opts: { jobId: 'p' } }, children: [child] });
    const ids = ['1', 'own', 'later', 'ranked', 'grouped', 'p'];
    const became = await Promise.all(ids.map((id) => queue.cancelJob(id, { reason: 'withdrawn' })));
    expect(new Set(became)).toEqual(new Set(['cancelled']));
    expect(await queue.cancelJob('own')).toBe('ended');
    expect(await queue.cancelJob('nobody')).toBe('missing');
    await global.get('failed', ids.length);
    const told = global.all<[{ jobId: string; failedReason: string; prev: string }]>('failed').map(([event]) => event);
    expect(told.map(({ jobId, prev }) => `${jobId} ${prev}`).sort()).toEqual([
      '1 waiting',
      'grouped waiting',
      'later delayed',
      'own waiting',
      'p waiting-children',
      'ranked prioritized',
    ]);
    expect(new Set(told.map(({ failedReason }) => failedReason))).toEqual(new Set([textOf('withdrawn')]));
    const log = worker();
    await log.get('active');
    await queue.cancelJob('child', { waitForEnd: true });
    expect(log.all<[Job]>('active').map(([job]) => job.id)).toEqual(['child']);
    const job = await queue.getJob('own');
    expect(job).toMatchObject({
      failedReason: textOf('withdrawn'),
      attemptsMade: 0,
      attemptsStarted: 0,
      stacktrace: [],
    });
  });

  it('is removed instead, with remove', async () => {
    const queue = queueOf();
    const { id } = await queue.add('job', {});
    expect(await queue.cancelJob(id!, { remove: true })).toBe('cancelled');
    expect(await queue.getJob(id!)).toBeUndefined();
    expect(await queue.cancelJob(id!, { remove: true })).toBe('missing');
  });

  it('may be tried again by hand, and then runs', async () => {
    const queue = queueOf();
    const { id } = await queue.add('job', {});
    await queue.cancelJob(id!);
    await (await queue.getJob(id!))!.retry();
    const done = new EventLog(
      stage.worker(async () => 'done'),
      ['completed'],
    );
    expect(await done.get('completed')).toMatchObject([{ id }, 'done', 'active']);
  });

  it('tells the parent as any child that fails', async () => {
    const queue = queueOf();
    const children = [{ name: 'c', queueName: queue.name, opts: { jobId: 'c', failParentOnFailure: true } }];
    await stage.flowProducer().add({ ...{ name: 'p', queueName: queue.name, opts: { jobId: 'p' } }, children });
    await queue.cancelJob('c');
    const log = worker();
    const [job, error] = await log.get<[Job, Error]>('failed');
    expect([job.id, error.message]).toEqual(['p', `child bull:${queue.name}:c failed`]);
  });

  it('the next job of a scheduler stays, and says why', async () => {
    const queue = queueOf();
    const next = await queue.upsertJobScheduler('often', { every: HOUR, startDate: Date.now() + HOUR });
    expect((await rejection(queue.cancelJob(next.id!))).code).toBe(-8);
    expect(await queue.cancelJobs({ states: 'delayed' })).toBe(0);
  });

  it('one that runs in another process is told at once, and is not tried again', async () => {
    const queue = queueOf();
    const other = program();
    const { id } = await queue.add('job', {}, { attempts: 5 });
    await other.said('running');
    const since = performance.now();
    expect(await queue.cancelJob(id!, { reason: 'enough', waitForEnd: true })).toBe('signalled');
    expect(performance.now() - since).toBeLessThan(RENEWAL_MS);
    expect(await other.said('aborted')).toBe(`${id} enough`);
    const job = await queue.getJob(id!);
    expect(job).toMatchObject({ failedReason: 'ended for JobCancelledError', attemptsMade: 1 });
    expect(await queue.cancelJob(id!)).toBe('ended');
    other.tell('close');
    expect(await other.end()).toEqual({ code: 0, signal: null });
  });

  it('one whose handler does not look completes, and may run anew later', async () => {
    const queue = queueOf();
    const other = program();
    const { id } = await queue.add('deaf', {});
    await other.said('running');
    expect(await queue.cancelJob(id!)).toBe('signalled');
    const late = await rejection(queue.cancelJob(id!, { waitForEnd: 100 }));
    expect([late.code, late.message]).toEqual([
      'ERR_STILL_RUNNING',
      `Job ${id} still runs 100 ms after it was cancelled`,
    ]);
    other.tell('go');
    await until('it to complete', async () => (await queue.getJobState(id!)) === 'completed');
    const job = await queue.getJob(id!);
    expect(job!.deferredFailure).toBeUndefined();
    await job!.retry('completed');
    await other.said('running', 2);
    other.tell('close');
    other.tell('go');
  });

  it('one whose worker is killed fails when it comes back, and does not run', async () => {
    const queue = queueOf();
    const other = program({ LOCK_DURATION: 1_000 });
    const { id } = await queue.add('deaf', {});
    await other.said('running');
    await queue.cancelJob(id!, { reason: 'killed' });
    await other.kill();
    const log = worker({ stalledInterval: 100 });
    const [job, error] = await log.get<[Job, Error]>('failed', 1, START_MS);
    expect([job.id, error.message]).toEqual([id, textOf('killed')]);
  });

  it('the abort is there as soon as an event loop that was blocked turns', async () => {
    const queue = queueOf();
    const other = program({ BLOCK_MS: 1_000 });
    const { id } = await queue.add('job', {});
    await other.said('running');
    other.tell('block');
    await other.said('blocking');
    await queue.cancelJob(id!, { reason: 'now', waitForEnd: RENEWAL_MS });
    expect(other.lines.slice(-2)).toEqual(['turning', `aborted ${id} now`]);
    other.tell('close');
  });

  it('fails before it starts where a worker has fetched it', async () => {
    const queue = queueOf();
    const log = worker({ concurrency: 2 });
    await queue.addBulk(Array.from({ length: 40 }, (_, data) => ({ name: 'job', data })));
    await log.get('active', 2);
    const ids = Array.from({ length: 40 }, (_, i) => String(i + 1));
    const became = await Promise.all(ids.map((id) => queue.cancelJob(id)));
    await until('all to fail', async () => (await queue.getFailedCount()) === 40);
    const started = new Set(log.all<[Job]>('active').map(([job]) => job.id));
    const cancelled = ids.filter((_, i) => became[i] === 'cancelled');
    expect(cancelled.filter((id) => started.has(id))).toEqual([]);
    expect(new Set(became)).toEqual(new Set(['cancelled', 'signalled']));
  });

  it('each job is cancelled or started, and none is both, while a worker takes them', async () => {
    const queue = queueOf();
    const ran = new Set<string>();
    stage.worker(async (job) => ran.add(job.id!), { concurrency: 20 });
    const became = new Map<string, string>();
    for (let round = 0; round < 10; round++) {
      const jobs = await queue.addBulk(Array.from({ length: 50 }, (_, data) => ({ name: 'job', data })));
      await Promise.all(jobs.reverse().map(async ({ id }) => became.set(id!, await queue.cancelJob(id!))));
    }
    await until('all to end', async () => (await queue.countJobs({ states: ['completed', 'failed'] })) === 500);
    const wrong = [...became].filter(
      ([id, state]) => (state === 'cancelled' && ran.has(id)) || (state === 'ended' && !ran.has(id)),
    );
    expect(wrong).toEqual([]);
  });

  it.each([false, true])('in a file it hears as well: in a thread %s', async (useWorkerThreads) => {
    const queue = queueOf();
    const { connection } = queue.opts;
    const sandbox = stage.watch(new chasquimq.Worker(queue.name, SANDBOX, { connection, useWorkerThreads }));
    const log = new EventLog(sandbox, ['progress', 'failed']);
    const { id } = await queue.add('aborts', {}, { attempts: 3 });
    await log.get('progress', 1, START_MS);
    expect(await queue.cancelJob(id!, { reason: 'enough', waitForEnd: true })).toBe('signalled');
    const [, error] = await log.get<[Job, Error]>('failed');
    expect(error.message).toBe(`aborted: JobCancelledError: ${textOf('enough')}`);
    expect((await queue.getJob(id!))!.attemptsMade).toBe(1);
  });

  it('of a batch the one job hears', async () => {
    const queue = queueOf();
    const jobs = await queue.addBulk([1, 2].map((data) => ({ name: 'job', data, opts: { attempts: 3 } })));
    const handler = async (job: Job): Promise<string[]> => {
      const [one, other] = (
        job as unknown as { getBatch(): { signal: AbortSignal; setAsFailed(e: Error): void }[] }
      ).getBatch();
      await new Promise((resolve) => other.signal.addEventListener('abort', resolve));
      other.setAsFailed(other.signal.reason as Error);
      return [String(one.signal.aborted), ''];
    };
    const log = new EventLog(stage.worker(handler, { batch: { size: 2 } } as never), ['active', 'completed', 'failed']);
    await log.get('active', 2);
    expect(await queue.cancelJob(jobs[1].id!, { waitForEnd: true })).toBe('signalled');
    expect(await log.get('completed')).toMatchObject([{ id: jobs[0].id }, 'false', 'active']);
    expect(await log.get('failed')).toMatchObject([
      { id: jobs[1].id, attemptsMade: 1 },
      { message: textOf() },
      'active',
    ]);
  });

  const byId = (queue: Queue, id: string, opts: CancelJobOptions): Promise<unknown> => queue.cancelJob(id, opts);
  const byFilter = (queue: Queue, id: string, opts: CancelJobOptions): Promise<unknown> =>
    queue.cancelJobs({ name: id }, opts);

  it.each([
    [byId, {}, 'cancelled'],
    [byId, { remove: true }, 'cancelled'],
    [byFilter, {}, 1],
    [byFilter, { remove: true }, 1],
  ])('with its children, in whatever queues, with cascade: %o, %j', async (cancel, opts: CancelJobOptions, became) => {
    const prefix = '{family}';
    const [queue, other] = [queueOf('', { prefix }), queueOf('other', { prefix })];
    const child = (name: string, queueName: string, children: object[] = []): object => ({
      ...{ name, queueName, prefix, opts: { jobId: name, failParentOnFailure: true } },
      children,
    });
    const tree = child('p', queue.name, [child('c', other.name, [child('d', queue.name)]), child('e', other.name)]);
    await stage.flowProducer({ prefix }).add(tree as never);
    await other.add('else', {}, { jobId: 'else' });
    expect(await cancel(queue, 'p', { ...opts, reason: 'all', cascade: true })).toBe(became);
    const states = await Promise.all([
      ...['p', 'd'].map((id) => queue.getJobState(id)),
      ...['c', 'e', 'else'].map((id) => other.getJobState(id)),
    ]);
    const gone = opts.remove ? 'unknown' : 'failed';
    expect(states).toEqual([gone, gone, gone, gone, 'waiting']);
    if (!opts.remove) expect((await queue.getJob('p'))!.failedReason).toBe(textOf('all'));
  });

  it.each([false, true])('by a filter, until those that run have ended; with cascade: %j', async (cascade) => {
    const queue = queueOf();
    const gate = stage.gate();
    const log = new EventLog(
      stage.worker(() => gate.opened, { concurrency: 2 }),
      ['active'],
    );
    await queue.addBulk([1, 2].map((data) => ({ name: 'mail', data })));
    await log.get('active', 2);
    await queue.pause();
    await queue.upsertJobScheduler('s', { every: HOUR }, { name: 'mail' });
    await queue.add('mail', 3, { delay: HOUR });
    const late = await rejection(queue.cancelJobs({ name: 'mail' }, { cascade, waitForEnd: 100 }));
    expect(late).toMatchObject({ code: 'ERR_STILL_RUNNING' });
    expect(await queue.getJobCounts('active', 'failed')).toEqual({ active: 2, failed: 1 });
    await queue.add('mail', 4, { delay: HOUR });
    const stop = new AbortController();
    const stopped = queue.cancelJobs({ name: 'mail' }, { cascade, waitForEnd: true, signal: stop.signal });
    await until('the last to be cancelled', async () => (await queue.getFailedCount()) === 2);
    const asked: JobsProgress[] = [];
    const onProgress = (progress: JobsProgress): unknown => asked.push(progress);
    const done = queue.cancelJobs({ name: 'mail' }, { reason: 'anew', cascade, waitForEnd: true, onProgress });
    await until('both to be asked once more', () => asked.at(-1)?.done === 2);
    stop.abort(new Error('stopped'));
    expect((await rejection(stopped)).message).toBe('stopped');
    gate.open();
    expect(await done).toBe(2);
    expect(await queue.getJobCounts('active', 'failed', 'completed')).toEqual({ active: 0, failed: 2, completed: 2 });
  });

  it('with cascade, also where each is looked for in a long list', async () => {
    const queue = queueOf();
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'mail', data, opts: { lifo: true } })));
    const redis = redisClient();
    const front = `{bull:${queue.name}}:front`;
    await redis.rpush(front, ...Array.from({ length: 100_001 }, () => 'gone'));
    expect(await queue.cancelJobs({ name: 'mail' }, { cascade: true })).toBe(3);
    expect(await queue.getFailedCount()).toBe(3);
    await redis.quit();
  });

  it('by a filter, in steps, with progress and a stop', async () => {
    const queue = queueOf();
    const log = worker();
    await queue.add('mail', 0);
    await log.get('active');
    await queue.pause();
    await queue.addBulk(Array.from({ length: 600 }, (_, data) => ({ name: data % 2 ? 'mail' : 'call', data })));
    await queue.add('mail', 1, { delay: HOUR });
    const seen: JobsProgress[] = [];
    const stop = new AbortController();
    const onProgress = (progress: JobsProgress): void => {
      seen.push(progress);
      if (progress.state === 'waiting') stop.abort(new Error('stopped'));
    };
    const stopped = await rejection(queue.cancelJobs({ name: 'mail' }, { signal: stop.signal, onProgress }));
    expect(stopped.message).toBe('stopped');
    const { done } = seen.at(-1)!;
    expect(await queue.getFailedCount()).toBe(done);
    expect(await queue.cancelJobs({ name: 'mail' }, { limit: 1 })).toBe(1);
    expect(await queue.cancelJobs({ name: 'mail' }, { reason: 'all of them' })).toBe(302 - done - 1);
    expect(await log.get<[Job, Error]>('failed')).toMatchObject([
      { data: 0 },
      { message: textOf('all of them') },
      'active',
    ]);
    await until('the one that ran to be stored', async () => (await queue.getFailedCount()) === 302);
    expect(await queue.cancelJobs({ states: 'waiting' }, { remove: true })).toBe(300);
    expect(await queue.countJobs({ states: 'waiting' })).toBe(0);
  });

  it('refuses what it does not understand', async () => {
    const queue = queueOf();
    const refusals = await Promise.all([
      ...[{ reason: 1 }, { remove: 'yes' }, { cascade: 1 }, { waitForEnd: 0 }, { force: true }].map((opts) =>
        rejection(queue.cancelJob('1', opts as never)),
      ),
      rejection(queue.cancelJobs({})),
      rejection(queue.cancelJobs({ states: 'failed' })),
      rejection(queue.cancelJobs({ name: 'a' }, { cascade: 1 } as never)),
      rejection(queue.cancelJobs({ name: 'a' }, { force: true } as never)),
    ]);
    expect(refusals.map(({ message }) => message)).toEqual([
      'reason must be a text',
      'remove must be true or false',
      'cascade must be true or false',
      'waitForEnd must be true, false or a number of milliseconds above 0',
      'force is no option of this call',
      'The filter must say which jobs: name their states at least',
      'states must be some of waiting-children, delayed, prioritized, waiting, active',
      'cascade must be true or false',
      'force is no option of this call',
    ]);
  });
});
