// Pins who may end, move or hold a job: tokens and locks.
import { describe, expect, it } from 'vitest';
import type { Job, Worker, WorkerOptions } from 'bullmq';
import { UnrecoverableError } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, sleep } from '../support/waiting.js';

/** Every way out of `active` that a token opens, and what errors call it. */
const WAYS: [string, string, (job: Job, token: string) => Promise<unknown>][] = [
  ['moveToCompleted', 'moveToFinished', (job, token) => job.moveToCompleted('x', token)],
  ['moveToFailed for good', 'moveToFinished', (job, token) => job.moveToFailed(new UnrecoverableError('x'), token)],
  ['moveToFailed, to be tried again', 'retryJob', (job, token) => job.moveToFailed(new Error('x'), token)],
  ['moveToDelayed', 'moveToDelayed', (job, token) => job.moveToDelayed(Date.now() + 60_000, token)],
  ['moveToWait', 'moveJobFromActiveToWait', (job, token) => job.moveToWait(token)],
];

describe.each(libraries)('$name: job.locks', ({ lib }) => {
  const stage = useStage(lib);

  async function taken(opts: Partial<WorkerOptions> = {}): Promise<{ job: Job; worker: Worker }> {
    const queue = stage.queue();
    await queue.add('a', {}, { attempts: 5 });
    const worker = stage.worker(null, opts);
    return { job: await worker.getNextJob('mine'), worker };
  }

  describe.each(WAYS)('%s', (_, command, way) => {
    it('rejects with another token, and changes nothing', async () => {
      const { job } = await taken();
      const error = await rejection(way(job, 'theirs'));
      expect([error.message, error.code]).toEqual([`Lock mismatch for job 1. Cmd ${command} from active`, -6]);
      expect([await job.getState(), await job.extendLock('mine', 10_000)]).toEqual(['active', 1]);
    });

    it('rejects when the lock has run out', async () => {
      const { job } = await taken({ lockDuration: 20 });
      // The lock's life is the server's.
      await sleep(50);
      const error = await rejection(way(job, 'mine'));
      expect([error.message, error.code]).toEqual([`Missing lock for job 1. ${command}`, -2]);
      expect(await job.getState()).toBe('active');
    });

    it('rejects when the job is in the waiting list again', async () => {
      const { job } = await taken();
      await job.moveToWait('mine');
      const error = await rejection(way(job, 'mine'));
      expect([error.message, error.code]).toEqual([`Missing lock for job 1. ${command}`, -2]);
      expect(await job.getState()).toBe('waiting');
    });

    it('rejects when the job is gone', async () => {
      const { job } = await taken();
      await stage.queue().obliterate({ force: true });
      const error = await rejection(way(job, 'mine'));
      expect([error.message, error.code]).toEqual([`Missing key for job 1. ${command}`, -1]);
    });

    it('works with the token 0 for whoever holds the job', async () => {
      const { job } = await taken();
      await way(job, '0');
      expect(await job.isActive()).toBe(false);
    });
  });

  it('the token 0 does not end what has ended', async () => {
    const { job } = await taken();
    await job.moveToCompleted('x', 'mine');
    const errors = await Promise.all([
      rejection(job.moveToCompleted('y', '0')),
      rejection(job.moveToFailed(new UnrecoverableError('y'), '0')),
      rejection(job.moveToDelayed(Date.now())),
    ]);
    expect(errors.map(({ message, code }) => [message, code])).toEqual([
      ['Job 1 is not in the active state. moveToFinished', -3],
      ['Job 1 is not in the active state. moveToFinished', -3],
      ['Job 1 is not in the active state. moveToDelayed', -3],
    ]);
    expect(await job.getState()).toBe('completed');
  });

  it('moveToWait without a token does nothing to a job that has ended', async () => {
    const { job } = await taken();
    await job.moveToCompleted('x', 'mine');
    expect([await job.moveToWait(), await job.getState()]).toEqual([0, 'completed']);
  });

  describe('a token that is left open', () => {
    // as callers write who have it from elsewhere
    const NULL = null as unknown as string;

    async function parent(): Promise<Job> {
      const { job } = await taken();
      await stage.queue().add('child', {}, { parent: { id: job.id!, queue: job.queueQualifiedName } });
      return job;
    }

    it.each<[string, () => Promise<Job>, (job: Job) => Promise<unknown>]>([
      ['moveToWaitingChildren()', parent, (job) => job.moveToWaitingChildren(undefined as unknown as string)],
      ['moveToWaitingChildren(null)', parent, (job) => job.moveToWaitingChildren(NULL)],
      [
        'moveToDelayed(at, null)',
        async () => (await taken()).job,
        (job) => job.moveToDelayed(Date.now() + 60_000, NULL),
      ],
      ['moveToWait(null)', async () => (await taken()).job, (job) => job.moveToWait(NULL)],
      [
        'moveToFailed(error), for good',
        async () => (await taken()).job,
        (job) => job.moveToFailed(new UnrecoverableError('x'), undefined as unknown as string),
      ],
    ])('%s is refused', async (_case, prepare, move) => {
      const job = await prepare();
      const error = await rejection(move(job));
      expect([error.code, await job.getState()]).toEqual([-6, 'active']);
    });

    it("moveToFailed(error) retries anybody's job", async () => {
      const { job } = await taken();
      await job.moveToFailed(new Error('x'), undefined as unknown as string);
      expect(await job.getState()).toBe('waiting');
    });
  });

  it('a job taken again belongs to the new token', async () => {
    const { job, worker } = await taken();
    await job.moveToWait('mine');
    const again = await worker.getNextJob('new');
    expect((await rejection(job.moveToCompleted('x', 'mine'))).message).toMatch(/^Lock mismatch for job 1/);
    await again.moveToCompleted('y', 'new');
    expect((await fetchJob(stage.queue(), '1')).returnvalue).toBe('y');
  });

  it('a lock goes with the end of its job only', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b'].map((name) => ({ name, data: {} })));
    const worker = stage.worker(null);
    const [a, b] = [await worker.getNextJob('same'), await worker.getNextJob('same')];
    await a.moveToCompleted('x', 'same', false);
    expect([await a.extendLock('same', 1_000), await b.extendLock('same', 1_000)]).toEqual([0, 1]);
    await b.moveToCompleted('x', 'same', false);
    expect(await b.getState()).toBe('completed');
  });

  it('a lock may be extended beyond lockDuration', async () => {
    const { job } = await taken({ lockDuration: 600 });
    expect(await job.extendLock('mine', 60_000)).toBe(1);
    // The lock's life is the server's.
    await sleep(650);
    await job.moveToCompleted('x', 'mine');
    expect(await job.getState()).toBe('completed');
  });

  it('extendLock gives 0 to who does not hold the job', async () => {
    const { job, worker } = await taken();
    expect([await job.extendLock('theirs', 1_000), await job.extendLock('0', 1_000)]).toEqual([0, 0]);
    const waiting = await stage.queue().add('b', {});
    expect(await waiting.extendLock('mine', 1_000)).toBe(0);
    expect(await worker.extendJobLocks([], [], 1_000)).toEqual([]);
  });

  it('extendJobLocks gives the ids of those not held', async () => {
    const { worker } = await taken();
    await stage.queue().add('b', {});
    await worker.getNextJob('other');
    expect(await worker.extendJobLocks(['1', '2', '9', '1'], ['mine', 'mine', 'mine', 'other'], 1_000)).toEqual([
      '2',
      '9',
      '1',
    ]);
  });

  it('a duration that is no number rejects', async () => {
    const { job } = await taken();
    await expect(job.extendLock('mine', undefined as unknown as number)).rejects.toThrow();
  });

  it('a job that is held is not removed; one whose lock has run out is', async () => {
    const { job } = await taken({ lockDuration: 1_000 });
    const text = 'Job 1 could not be removed because it is locked by another worker';
    expect((await rejection(job.remove())).message).toBe(text);
    // The lock's life is the server's.
    await sleep(1_050);
    await job.remove();
    expect(await job.getState()).toBe('unknown');
  });

  it('a processor that ends its job itself makes the worker tell an error', async () => {
    const queue = stage.queue();
    await queue.add('a', {});
    const worker = stage.worker(async (job, token) => {
      await job.moveToCompleted('mine', token as string, false);
      return 'late';
    });
    const log = new EventLog(worker, ['error', 'completed', 'failed']);
    const [error] = await log.get<[Error]>('error');
    expect(error.message).toBe('Missing lock for job 1. moveToFinished');
    expect((await fetchJob(queue, '1')).returnvalue).toBe('mine');
    expect(log.names).not.toContain('completed');
    await worker.close();
    stage.takeErrors();
  });
});
