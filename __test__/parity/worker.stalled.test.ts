// Pins recovery of jobs whose worker is gone, and their failure when that happens too often.
import { describe, expect, it } from 'vitest';
import type { Job, Queue, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, sleep } from '../support/waiting.js';

const QUICK = { lockDuration: 400, lockRenewTime: 50, stalledInterval: 200, drainDelay: 1 };

/** Recovery takes lockDuration and up to two stalledIntervals; the rest is for slow machines. */
const RECOVERY_MS = 25_000;

const TOO_OFTEN = 'job stalled more than allowable limit';

describe.each(libraries)('$name: worker.stalled', ({ lib }) => {
  const stage = useStage(lib);

  /** Leaves the next job of the queue active under a worker that is gone. */
  async function abandon(opts: Partial<WorkerOptions> = {}): Promise<void> {
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened, { ...QUICK, ...opts });
    await new EventLog(worker, ['active']).get('active', 1, RECOVERY_MS);
    await worker.close(true);
  }

  async function abandoned(): Promise<Queue> {
    const queue = stage.queue();
    await queue.add('held', { precious: true }, { attempts: 3 });
    await abandon();
    expect(await queue.getJobCounts('active')).toEqual({ active: 1 });
    return queue;
  }

  it('a job of a worker that was closed by force is run by another', async () => {
    const queue = await abandoned();
    const worker = stage.worker(async (job) => job.data as unknown, QUICK);
    const log = new EventLog(worker, ['active', 'stalled', 'completed', 'failed']);
    const [, result] = await log.get<[Job, unknown]>('completed', 1, RECOVERY_MS);
    expect(result).toEqual({ precious: true });
    expect(log.names).toEqual(['stalled', 'active', 'completed']);
    expect(log.all('stalled')).toEqual([['1', 'active']]);
    expect(await queue.getJobCounts('active', 'waiting', 'completed')).toEqual({ active: 0, waiting: 0, completed: 1 });
  });

  it('counts the stall and the second start, and no try made by the first', async () => {
    const queue = await abandoned();
    const worker = stage.worker(async (job) => [job.stalledCounter, job.attemptsStarted, job.attemptsMade], QUICK);
    const log = new EventLog(worker, ['completed']);
    expect((await log.get('completed', 1, RECOVERY_MS))[1]).toEqual([1, 2, 0]);
    const stored = await fetchJob(queue, '1');
    expect([stored.stalledCounter, stored.attemptsStarted, stored.attemptsMade]).toEqual([1, 2, 1]);
    expect([stored.failedReason, stored.stacktrace]).toEqual([undefined, []]);
  });

  it('is told by the global events waiting and stalled', async () => {
    await abandoned();
    const log = stage.globalLog();
    stage.worker(async () => 'done', QUICK);
    await log.get('completed', 1, RECOVERY_MS);
    const [active, ...rest] = log.entries.slice(2, 7).map(({ event, args }) => [event, args[0]]);
    expect(active).toEqual(['active', { jobId: '1', prev: 'waiting' }]);
    expect(rest).toEqual([
      ['waiting', { jobId: '1', prev: 'active' }],
      ['stalled', { jobId: '1' }],
      ['active', { jobId: '1', prev: 'waiting' }],
      ['completed', { jobId: '1', returnvalue: 'done', prev: 'active' }],
    ]);
  });

  it('goes before what waits already', async () => {
    const queue = await abandoned();
    const gate = stage.gate();
    const worker = stage.worker((job) => (job.name === 'busy' ? gate.opened : Promise.resolve()), QUICK);
    const log = new EventLog(worker, ['active', 'stalled', 'completed']);
    await queue.addBulk(['busy', 'waits'].map((name) => ({ name, data: {} })));
    await log.get('stalled', 1, RECOVERY_MS);
    gate.open();
    await log.get('completed', 3);
    expect(log.all<[Job]>('completed').map(([job]) => job.name)).toEqual(['busy', 'held', 'waits']);
  });

  it('does not hold up what waits', async () => {
    const queue = await abandoned();
    await queue.add('other', {});
    const worker = stage.worker(async () => undefined, QUICK);
    const log = new EventLog(worker, ['completed']);
    await log.get('completed', 2, RECOVERY_MS);
    expect(log.all<[Job]>('completed').map(([job]) => job.name)).toEqual(['other', 'held']);
  });

  it('recovers every job that a worker held', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const first = stage.worker(() => gate.opened, { ...QUICK, concurrency: 5 });
    const held = new EventLog(first, ['active']);
    await queue.addBulk(Array.from({ length: 8 }, (_, i) => ({ name: `n${i}`, data: {} })));
    await held.get('active', 5);
    await first.close(true);
    const log = new EventLog(
      stage.worker(async () => undefined, QUICK),
      ['completed', 'stalled'],
    );
    await log.get('completed', 8, RECOVERY_MS);
    expect(
      log
        .all<[string]>('stalled')
        .map(([id]) => id)
        .sort(),
    ).toEqual(['1', '2', '3', '4', '5']);
    expect(
      log
        .all<[Job]>('completed')
        .map(([job]) => job.id)
        .sort(),
    ).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']);
  });

  it('does not befall a job that runs longer than its lock lasts, under a worker that lives', async () => {
    const queue = stage.queue();
    let runs = 0;
    const options = { ...QUICK, lockDuration: 800 };
    const process = async () => {
      runs++;
      // Longer than the lock and two scans: a lock that was not renewed would be found out.
      await sleep(2_000);
    };
    const [one, two] = [stage.worker(process, options), stage.worker(process, options)];
    const stalls = [new EventLog(one, ['stalled']), new EventLog(two, ['stalled'])];
    const global = stage.globalLog();
    await queue.add('long', {});
    await global.get('completed', 1, RECOVERY_MS);
    expect([runs, ...stalls.map((log) => log.names)]).toEqual([1, [], []]);
    expect((await fetchJob(queue, '1')).stalledCounter).toBe(0);
  });

  describe('more often than maxStalledCount', () => {
    const strict = { ...QUICK, maxStalledCount: 0 };

    it('fails the job without running it, for good', async () => {
      const queue = await abandoned();
      let runs = 0;
      const worker = stage.worker(async () => ++runs, strict);
      const log = new EventLog(worker, ['stalled', 'active', 'failed', 'completed']);
      const [job, error, prev] = await log.get<[Job, Error, string]>('failed', 1, RECOVERY_MS);
      expect([error.message, error.name, prev]).toEqual([TOO_OFTEN, 'UnrecoverableError', 'active']);
      expect([job.id, job.failedReason, runs]).toEqual(['1', TOO_OFTEN, 0]);
      expect(log.names).toEqual(['stalled', 'active', 'failed']);
      expect(await queue.getJobCounts('failed', 'active', 'waiting')).toEqual({ failed: 1, active: 0, waiting: 0 });
    });

    it('records the reason, one trace and one try made of two started', async () => {
      const queue = await abandoned();
      const log = new EventLog(
        stage.worker(async () => undefined, strict),
        ['failed'],
      );
      await log.get('failed', 1, RECOVERY_MS);
      const stored = await fetchJob(queue, '1');
      expect([stored.failedReason, stored.attemptsMade, stored.attemptsStarted, stored.stalledCounter]).toEqual([
        TOO_OFTEN,
        1,
        2,
        1,
      ]);
      expect(stored.stacktrace).toHaveLength(1);
      expect(stored.stacktrace?.[0]).toMatch(/^UnrecoverableError: job stalled more than allowable limit/);
    });

    it('is told by the global events stalled, active and failed', async () => {
      await abandoned();
      const log = stage.globalLog();
      stage.worker(async () => undefined, strict);
      const [args] = await log.get('failed', 1, RECOVERY_MS);
      expect(args).toEqual({ jobId: '1', failedReason: TOO_OFTEN, prev: 'active' });
      expect(log.names.slice(0, 7)).toEqual(['added', 'waiting', 'active', 'waiting', 'stalled', 'active', 'failed']);
    });

    it('runs a job of a scheduler that is still there, and fails one whose scheduler was removed', async () => {
      const queue = stage.queue();
      await queue.upsertJobScheduler('kept', { every: 3_600_000 }, { name: 'kept' });
      await queue.upsertJobScheduler('gone', { every: 3_600_000 }, { name: 'gone' });
      const gate = stage.gate();
      const lost = stage.worker(() => gate.opened, { ...QUICK, concurrency: 2 });
      await new EventLog(lost, ['active']).get('active', 2, RECOVERY_MS);
      await lost.close(true);
      await queue.removeJobScheduler('gone');
      const worker = stage.worker(async () => 'done', strict);
      const log = new EventLog(worker, ['completed', 'failed']);
      const [completed, result] = await log.get<[Job, unknown]>('completed', 1, RECOVERY_MS);
      const [failed, error] = await log.get<[Job, Error]>('failed', 1, RECOVERY_MS);
      expect([completed.name, completed.stalledCounter, result]).toEqual(['kept', 1, 'done']);
      expect([failed.name, failed.stalledCounter, error.message]).toEqual(['gone', 1, TOO_OFTEN]);
    });

    it('of 1 recovers the job once and fails it the second time', async () => {
      const queue = stage.queue();
      await queue.add('held', {});
      await abandon();
      // The second worker recovers the job itself, and is then closed by force like the first.
      await abandon();
      const log = new EventLog(
        stage.worker(async () => undefined, QUICK),
        ['failed', 'completed'],
      );
      const [job, error] = await log.get<[Job, Error]>('failed', 1, RECOVERY_MS);
      expect([error.message, job.stalledCounter]).toEqual([TOO_OFTEN, 2]);
      expect(log.names).toEqual(['failed']);
    });

    it('honours removeOnFail', async () => {
      const queue = stage.queue();
      const job = await queue.add('held', {}, { removeOnFail: true });
      await abandon();
      const log = new EventLog(
        stage.worker(async () => undefined, strict),
        ['failed'],
      );
      await log.get('failed', 1, RECOVERY_MS);
      expect(await job.getState()).toBe('unknown');
    });
  });
});
