// Pins jobs that are taken and run by hand: getNextJob, processJob, nextJobFromJobData.
import { describe, expect, it } from 'vitest';
import type { Job, Processor, Worker, WorkerOptions } from 'bullmq';
import { DelayedError, RateLimitError, WaitingError } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const EVENTS = ['active', 'completed', 'failed', 'drained', 'stalled', 'paused'];

/** What subclasses reach. */
type Inner = { nextJobFromJobData(data?: unknown, id?: string, token?: string): Promise<Job | undefined> };

describe.each(libraries)('$name: worker.manual', ({ lib }) => {
  const stage = useStage(lib);

  function manualWorker(opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(null, { drainDelay: 1, ...opts });
  }

  /** A worker that runs its jobs only when told to, and what it emits. */
  function onCall(processor: Processor, opts: Partial<WorkerOptions> = {}): { worker: Worker; log: EventLog } {
    const worker = stage.worker(processor, { drainDelay: 1, autorun: false, ...opts });
    return { worker, log: new EventLog(worker, EVENTS) };
  }

  async function taken(worker: Worker, token = 't'): Promise<Job> {
    const job = await worker.getNextJob(token);
    if (!job) throw new Error('there is no next job');
    return job;
  }

  describe('getNextJob', () => {
    it('gives undefined when there is none, and tells drained once', async () => {
      const worker = manualWorker();
      const log = new EventLog(worker, EVENTS);
      expect(await worker.getNextJob('t')).toBeUndefined();
      expect(await worker.getNextJob('t', { block: false })).toBeUndefined();
      expect(log.names).toEqual(['drained']);
    });

    it('gives jobs in order, each active and with its token', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b', 'c'].map((name) => ({ name, data: { of: name } })));
      const worker = manualWorker({ name: 'hand' });
      const log = new EventLog(worker, EVENTS);
      const jobs = [await taken(worker, 'one'), await taken(worker, 'two')];
      expect(jobs.map(({ id, name, data, token }) => [id, name, data as unknown, token])).toEqual([
        ['1', 'a', { of: 'a' }, 'one'],
        ['2', 'b', { of: 'b' }, 'two'],
      ]);
      expect(jobs[0]).toBeInstanceOf(lib.Job);
      expect(await Promise.all(jobs.map((job) => job.isActive()))).toEqual([true, true]);
      expect(log.all<[Job, string]>('active').map(([job, prev]) => [job === jobs[0] || job === jobs[1], prev])).toEqual(
        [
          [true, 'waiting'],
          [true, 'waiting'],
        ],
      );
      expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1, active: 2 });
    });

    it('notes the start of the job', async () => {
      const queue = stage.queue();
      const before = Date.now();
      await queue.add('a', {});
      const job = await taken(manualWorker({ name: 'hand' }));
      expect([job.attemptsStarted, job.attemptsMade, job.processedBy, job.finishedOn]).toEqual([
        1,
        0,
        'hand',
        undefined,
      ]);
      expect(job.processedOn).toBeGreaterThanOrEqual(before);
      const stored = await fetchJob(queue, '1');
      expect([stored.processedOn, stored.attemptsStarted, stored.processedBy]).toEqual([job.processedOn, 1, 'hand']);
    });

    it('takes several at a time, each job once', async () => {
      const queue = stage.queue();
      await queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'a', data: {} })));
      const worker = manualWorker();
      const jobs = await Promise.all(Array.from({ length: 12 }, () => worker.getNextJob('t', { block: false })));
      const ids = jobs.flatMap((job) => (job ? [Number(job.id)] : [])).sort((a, b) => a - b);
      expect(ids).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });

    it('takes jobs that are due, and no earlier', async () => {
      const queue = stage.queue();
      await queue.add('later', {}, { delay: 60_000 });
      const worker = manualWorker();
      expect(await worker.getNextJob('t', { block: false })).toBeUndefined();
      await queue.add('due', {}, { delay: 1 });
      const due = await until('the due job', () => worker.getNextJob('t', { block: false }));
      expect(due.name).toBe('due');
    });

    it('leaves it to a retry, even one that is refused, to bring jobs into line that are due', async () => {
      const queue = stage.queue();
      const { id = '' } = await queue.add('late', {}, { attempts: 2 });
      const worker = manualWorker();
      const job = await taken(worker);
      await job.moveToDelayed(Date.now() - 1_000, 't');
      expect(await queue.getJobState(id)).toBe('delayed');
      await expect(job.moveToFailed(new Error('again'), 't', false)).rejects.toThrow(/^Missing lock for job 1/);
      expect(await queue.getJobState(id)).toBe('waiting');
    });

    it('that waits is woken by a new job', async () => {
      const queue = stage.queue();
      const worker = manualWorker({ drainDelay: 30 });
      await worker.getNextJob('t');
      const next = worker.getNextJob('t');
      await queue.add('a', {});
      expect((await next)?.name).toBe('a');
    });

    it('that waits is woken by the end of a pause', async () => {
      const queue = stage.queue();
      await queue.pause();
      await queue.add('a', {});
      const worker = manualWorker({ drainDelay: 30 });
      expect(await worker.getNextJob('t')).toBeUndefined();
      const next = worker.getNextJob('t');
      await queue.resume();
      expect((await next)?.name).toBe('a');
    });

    it('waits no longer than drainDelay', async () => {
      const worker = manualWorker({ drainDelay: 0.2 });
      await worker.getNextJob('t');
      const start = performance.now();
      expect(await worker.getNextJob('t')).toBeUndefined();
      expect(performance.now() - start).toBeLessThan(5_000);
    });

    it('gives nothing while the queue is paused', async () => {
      const queue = stage.queue();
      await queue.pause();
      await queue.add('a', {});
      expect(await manualWorker().getNextJob('t', { block: false })).toBeUndefined();
      expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1, active: 0 });
    });

    it('gives nothing while the worker is paused, or after it was closed', async () => {
      const queue = stage.queue();
      await queue.add('a', {});
      const worker = manualWorker();
      await worker.pause();
      expect(await worker.getNextJob('t')).toBeUndefined();
      await worker.resume();
      expect((await worker.getNextJob('t'))?.name).toBe('a');
      await worker.close();
      expect(await worker.getNextJob('t')).toBeUndefined();
    });

    it('rejects without a token', async () => {
      await stage.queue().add('a', {});
      await expect(manualWorker().getNextJob(undefined as unknown as string)).rejects.toThrow();
    });
  });

  describe('moveToFailed', () => {
    it('counts the tries that there were, not those that the object knows', async () => {
      const queue = stage.queue();
      const kept = await queue.add('a', {}, { attempts: 5 });
      const worker = manualWorker();
      for (let i = 0; i < 2; i++) await (await taken(worker)).moveToFailed(new Error('no'), 't', false);
      await taken(worker);
      await kept.moveToFailed(new Error('no'), 't', false);
      expect((await fetchJob(queue, '1')).attemptsMade).toBe(3);
      expect(kept.attemptsMade).toBe(1);
    });
  });

  describe('nextJobFromJobData', () => {
    it('makes a job of what moveToCompleted gave', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b'].map((name) => ({ name, data: { of: name }, opts: { attempts: 3 } })));
      const worker = manualWorker();
      const log = new EventLog(worker, EVENTS);
      const first = await taken(worker);
      const [data, id] = (await first.moveToCompleted('done', 't')) as [unknown, string];
      expect(log.names).toEqual(['active']);
      const next = await (worker as unknown as Inner).nextJobFromJobData(data, id, 't');
      expect([next?.id, next?.name, next?.data as unknown, next?.token, next?.opts.attempts]).toEqual([
        '2',
        'b',
        { of: 'b' },
        't',
        3,
      ]);
      expect(next).toBeInstanceOf(lib.Job);
      expect(log.names).toEqual(['active', 'active']);
      await next?.moveToCompleted('done', 't');
      expect(await queue.getJobCounts('completed')).toEqual({ completed: 2 });
    });

    it('of nothing gives undefined, and tells drained', async () => {
      const worker = manualWorker();
      const log = new EventLog(worker, EVENTS);
      expect(await (worker as unknown as Inner).nextJobFromJobData()).toBeUndefined();
      expect(log.names).toEqual(['drained']);
    });
  });

  describe('processJob', () => {
    it('runs the processor, stores the result and gives the next job', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
      const { worker, log } = onCall(async (job, token) => `${job.name} by ${token}`);
      const first = await taken(worker);
      const next = (await worker.processJob(first, 't')) as Job;
      expect([next.id, next.token, first.returnvalue, first.attemptsMade]).toEqual(['2', 't', 'a by t', 1]);
      expect(log.names).toEqual(['active', 'completed', 'active']);
      expect(log.all<[Job, string, string]>('completed')[0].slice(1)).toEqual(['a by t', 'active']);
      expect(await worker.processJob(next, 't')).toBeUndefined();
      expect(log.names).toEqual(['active', 'completed', 'active', 'completed', 'drained']);
      expect((await fetchJob(queue, '2')).returnvalue).toBe('b by t');
    });

    it('takes no next job when told so', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
      const { worker } = onCall(async () => 1);
      expect(await worker.processJob(await taken(worker), 't', () => false)).toBeUndefined();
      expect(await queue.getJobCounts('waiting', 'active', 'completed')).toEqual({
        waiting: 1,
        active: 0,
        completed: 1,
      });
    });

    it('stores a failure, and gives the next job', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
      const { worker, log } = onCall(async () => {
        throw new Error('boom');
      });
      const first = await taken(worker);
      const next = (await worker.processJob(first, 't')) as Job;
      expect([next.id, first.failedReason, await first.getState()]).toEqual(['2', 'boom', 'failed']);
      expect(log.names).toEqual(['active', 'failed', 'active']);
      expect(log.all<[Job, Error, string]>('failed')[0][1].message).toBe('boom');
    });

    it('gives a signal that cancelJob aborts', async () => {
      await stage.queue().add('a', {});
      const started = stage.gate();
      const { worker, log } = onCall(async (_job, _token, signal) => {
        started.open();
        await new Promise((_, reject) =>
          signal?.addEventListener('abort', () => reject(new Error(signal.reason as string))),
        );
      });
      const job = await taken(worker);
      const done = worker.processJob(job, 't');
      await started.opened;
      expect([worker.cancelJob('2', 'no'), worker.cancelJob('1', 'enough')]).toEqual([false, true]);
      await done;
      expect(log.all<[Job, Error]>('failed')[0][1].message).toBe('enough');
      expect(worker.cancelJob('1')).toBe(false);
    });

    it('leaves a job alone that its processor moved, and takes the next', async () => {
      const queue = stage.queue();
      await queue.addBulk(['delayed', 'b'].map((name) => ({ name, data: {} })));
      const { worker, log } = onCall(async (job, token) => {
        await job.moveToDelayed(Date.now() + 60_000, token);
        throw new DelayedError();
      });
      const next = (await worker.processJob(await taken(worker), 't')) as Job;
      expect(next.name).toBe('b');
      expect(log.names).toEqual(['active', 'active']);
      expect(await queue.getJobCounts('delayed', 'active')).toEqual({ delayed: 1, active: 1 });
    });

    it('leaves a job alone that its processor put back in the waiting list', async () => {
      const queue = stage.queue();
      await queue.add('a', {});
      const { worker, log } = onCall(async (job, token) => {
        await job.moveToWait(token);
        throw new WaitingError();
      });
      const again = (await worker.processJob(await taken(worker), 't')) as Job;
      expect([again.id, again.attemptsStarted]).toEqual(['1', 2]);
      expect(log.names).toEqual(['active', 'active']);
    });

    it('puts a job back that met a rate limit', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
      const { worker, log } = onCall(async () => {
        throw new RateLimitError();
      });
      expect(await worker.processJob(await taken(worker), 't')).toBeUndefined();
      expect((await queue.getWaiting()).map(({ name }) => name)).toEqual(['a', 'b']);
      expect(log.names).toEqual(['active']);
    });

    it('keeps the rate limit that a job met, without a limiter', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
      const { worker } = onCall(async () => {
        await queue.rateLimit(400);
        throw new RateLimitError();
      });
      const since = performance.now();
      await worker.processJob(await taken(worker), 't');
      expect(await worker.getNextJob('t')).toBeUndefined();
      expect(await worker.getNextJob('t', { block: false })).toBeUndefined();
      const job = await until('the next job', () => worker.getNextJob('t'));
      expect([job.name, performance.now() - since >= 390]).toEqual(['a', true]);
    });

    it('fails a job that was started too often', async () => {
      await stage.queue().add('a', {}, { attempts: 5 });
      const { worker, log } = onCall(async () => 1, { maxStartedAttempts: 1 });
      await (await taken(worker)).moveToWait('t');
      const job = await taken(worker);
      await worker.processJob(job, 't');
      expect([job.failedReason, await job.getState()]).toEqual(['job started more than allowable limit', 'failed']);
      expect(log.names).toContain('failed');
    });

    it('tells an error when somebody else holds the job', async () => {
      await stage.queue().add('a', {});
      const { worker, log } = onCall(async () => 1);
      const job = await taken(worker);
      expect(await worker.processJob(job, 'other')).toBeUndefined();
      const errors = stage.takeErrors().map(({ message }) => message);
      expect(errors).toEqual(Array(2).fill('Lock mismatch for job 1. Cmd moveToFinished from active'));
      expect([log.names, await job.getState()]).toEqual([['active'], 'active']);
    });

    it('uses the retention of the worker', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
      const { worker } = onCall(async (job) => (job.name === 'a' ? 1 : Promise.reject(new Error('no'))), {
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      });
      const next = (await worker.processJob(await taken(worker), 't')) as Job;
      await worker.processJob(next, 't');
      expect(await queue.getJobCounts('completed', 'failed', 'active')).toEqual({ completed: 0, failed: 0, active: 0 });
    });
  });

  describe('startStalledCheckTimer', () => {
    const QUICK = { lockDuration: 300, stalledInterval: 200 };

    it('brings back jobs whose lock was not extended', async () => {
      const queue = stage.queue();
      await queue.add('a', {});
      const worker = manualWorker(QUICK);
      const log = new EventLog(worker, ['stalled']);
      await taken(worker, 'first');
      await worker.startStalledCheckTimer();
      expect(await log.get('stalled')).toEqual(['1', 'active']);
      const again = await taken(worker, 'second');
      expect([again.attemptsStarted, again.stalledCounter]).toEqual([2, 1]);
    });

    it('leaves those whose lock is extended', async () => {
      const queue = stage.queue();
      await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
      const worker = manualWorker(QUICK);
      const log = new EventLog(worker, ['stalled']);
      const kept = await taken(worker, 'same');
      await taken(worker, 'same');
      await kept.extendLock('same', 60_000);
      await worker.startStalledCheckTimer();
      expect(await log.get('stalled')).toEqual(['2', 'active']);
      expect(await kept.getState()).toBe('active');
      await kept.moveToCompleted('done', 'same', false);
      expect(await kept.getState()).toBe('completed');
    });

    it('gives a job that stalled too often with its reason', async () => {
      await stage.queue().add('a', {});
      const worker = manualWorker({ ...QUICK, maxStalledCount: 0 });
      const log = new EventLog(worker, ['stalled']);
      await taken(worker);
      await worker.startStalledCheckTimer();
      await log.get('stalled');
      expect((await taken(worker)).deferredFailure).toBe('job stalled more than allowable limit');
    });
  });

  it('a job that comes with the end of another knows its parent', async () => {
    const { job } = await stage.flowProducer().add({
      name: 'parent',
      queueName: stage.name('top'),
      children: ['a', 'b'].map((name) => ({ name, queueName: stage.queueName })),
    });
    const worker = stage.worker(null);
    const first = await worker.getNextJob('t');
    const [data, id] = (await first.moveToCompleted(1, 't', true)) as [never, string];
    const second = await worker['nextJobFromJobData'](data, id, 't');
    for (const { opts, parent } of [first, second]) expect([opts.parent?.id, parent?.id]).toEqual([job.id, job.id]);
  });
});
