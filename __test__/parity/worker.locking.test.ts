// Pins what the worker options about locks and scans do: skipLockRenewal, lockRenewTime, skipStalledCheck, stalledInterval.
import { describe, expect, it } from 'vitest';
import type { Worker } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

/** A scan finds what is lost within lockDuration and two stalledIntervals; the rest is for slow machines. */
const RECOVERY_MS = 10_000;

const QUICK = { lockDuration: 400, stalledInterval: 200, drainDelay: 1 };

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
