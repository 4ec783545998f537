// Pins what the worker options about locks and scans do: skipLockRenewal, lockRenewTime, skipStalledCheck, stalledInterval.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions, Queue, Worker } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, sleep } from '../support/waiting.js';

/** A scan finds what is lost within lockDuration and two stalledIntervals; the rest is for slow machines. */
const RECOVERY_MS = 25_000;

const QUICK = { lockDuration: 400, lockRenewTime: 50, stalledInterval: 200, drainDelay: 1 };
/** Workers with a free slot. */
const LOOKS = { concurrency: 2, drainDelay: 0.05 };
const WAITS = { concurrency: 2, drainDelay: 60 };
/** Locks that are renewed often, and that a machine under load does not let expire. */
const LONG = { lockDuration: 30_000, lockRenewTime: 100, stalledInterval: 200, drainDelay: 1 };

describe.each(libraries)('$name: worker.locking', ({ lib }) => {
  const stage = useStage(lib);

  it('skipLockRenewal lets a long job be taken by another worker, and refuses its end', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const slow = stage.worker(() => gate.opened, { ...QUICK, skipLockRenewal: true, skipStalledCheck: true });
    const taken = new EventLog(slow, ['active']);
    const refused = new EventLog(slow, ['error']);
    await queue.add('job', {});
    await taken.get('active', 1, RECOVERY_MS);
    const other = stage.worker(async () => 'second', QUICK);
    const log = new EventLog(other, ['stalled', 'completed']);
    expect((await log.get('completed', 1, RECOVERY_MS))[1]).toBe('second');
    expect(log.names).toEqual(['stalled', 'completed']);
    gate.open();
    const [error] = await refused.get<[Error]>('error', 1, RECOVERY_MS);
    expect(error.message).toMatch(/job 1/);
    expect((await fetchJob(queue, '1')).returnvalue).toBe('second');
    await slow.close();
    stage.takeErrors();
  });

  it('a lockRenewTime above the lockDuration comes too late', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const slow = stage.worker(() => gate.opened, { ...QUICK, lockRenewTime: 60_000, skipStalledCheck: true });
    const taken = new EventLog(slow, ['active']);
    await queue.add('job', {});
    await taken.get('active', 1, RECOVERY_MS);
    const other = stage.worker(async () => 'second', QUICK);
    const log = new EventLog(other, ['completed']);
    expect((await log.get('completed', 1, RECOVERY_MS))[1]).toBe('second');
    gate.open();
    await slow.close();
    stage.takeErrors();
  });

  it.each<[string, object, (queue: Queue, job: Job, token: string) => Promise<unknown>]>([
    ['obliterated', {}, (queue) => queue.obliterate({ force: true })],
    ['failed', {}, (_, job, token) => job.moveToFailed(new Error('by somebody else'), token)],
    ['delayed', {}, (_, job, token) => job.moveToDelayed(Date.now() + 60_000, token)],
    ['obliterated while its worker looks for more', LOOKS, (queue) => queue.obliterate({ force: true })],
    ['obliterated while its worker waits for more', WAITS, (queue) => queue.obliterate({ force: true })],
  ])('a job that runs, and that somebody else has %s, is told, and may be cancelled', async (_, opts, take) => {
    const queue = stage.queue();
    const gate = stage.gate();
    const tokens: string[] = [];
    const untilCancelled = async (_: Job, token?: string, signal?: AbortSignal): Promise<never> => {
      tokens.push(String(token));
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      gate.open();
      throw new Error('cancelled');
    };
    const worker = stage.worker(untilCancelled, { ...QUICK, skipStalledCheck: true, ...opts });
    worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => worker.cancelJob(id)));
    const log = new EventLog(worker, ['active', 'lockRenewalFailed', 'error']);
    const job = await queue.add('job', {});
    await log.get('active', 1, RECOVERY_MS);
    await take(queue, await fetchJob(queue, job.id), tokens[0] ?? '');
    await gate.opened;
    expect(await log.get('lockRenewalFailed')).toEqual([['1']]);
    expect((await log.get<[Error]>('error'))[0].message).toBe('could not renew lock for job 1');
    await worker.close();
    stage.takeErrors();
  });

  it('no job that runs for long is told to be lost, whatever its handler does', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const lost: unknown[] = [];
    const work = async (job: Job, token?: string): Promise<unknown> => {
      const kind = Number(job.id) % 4;
      if (kind === 0) await job.updateProgress(50);
      if (kind === 1) await job.updateData({ changed: true });
      if (kind === 2) await job.extendLock(String(token), LONG.lockDuration);
      await gate.opened;
      return undefined;
    };
    const jobs = 600;
    const worker = stage.worker(work, { ...LONG, concurrency: jobs });
    worker.on('lockRenewalFailed', (ids) => lost.push(ids)).on('stalled', (id) => lost.push(id));
    const log = new EventLog(worker, ['active', 'completed']);
    const opts = (i: number): JobsOptions => (i % 3 === 0 ? { priority: 1 } : {});
    await queue.addBulk(Array.from({ length: jobs }, (_, i) => ({ name: 'job', data: i, opts: opts(i) })));
    await log.get('active', jobs, RECOVERY_MS);
    // Several renewals go by; nothing tells of them.
    await sleep(10 * LONG.lockRenewTime);
    gate.open();
    await log.get('completed', jobs, RECOVERY_MS);
    expect(lost).toEqual([]);
  });

  it('skipStalledCheck leaves lost jobs to other workers', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const lost = stage.worker(() => gate.opened, { ...QUICK, skipStalledCheck: true });
    const taken = new EventLog(lost, ['active']);
    await queue.add('lost', {});
    await taken.get('active', 1, RECOVERY_MS);
    await lost.close(true);
    const blind = stage.worker(async () => 'blind', { ...QUICK, skipStalledCheck: true });
    const done = new EventLog(blind, ['completed']);
    // Each takes longer than a lock and two scans together.
    for (const delay of [500, 500, 500]) {
      await queue.add('later', {}, { delay });
      await done.get('completed', done.names.length + 1, RECOVERY_MS);
    }
    expect(await queue.getJobCounts('active', 'completed')).toEqual({ active: 1, completed: 3 });
    await blind.close();
    const seeing = stage.worker(async () => 'seeing', QUICK);
    const found = new EventLog(seeing, ['stalled', 'completed']);
    expect((await found.get('completed', 1, RECOVERY_MS))[1]).toBe('seeing');
    expect(found.names).toEqual(['stalled', 'completed']);
  });

  it('startStalledCheckTimer scans for a worker that does not run', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const lost = stage.worker(() => gate.opened, { ...QUICK, skipStalledCheck: true });
    const taken = new EventLog(lost, ['active']);
    await queue.add('lost', {});
    await taken.get('active', 1, RECOVERY_MS);
    await lost.close(true);
    const scanner: Worker = stage.worker(null, QUICK);
    const log = new EventLog(scanner, ['stalled']);
    await scanner.startStalledCheckTimer();
    expect(await log.get('stalled', 1, RECOVERY_MS)).toEqual(['1', 'active']);
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 0, waiting: 1 });
  });
});
