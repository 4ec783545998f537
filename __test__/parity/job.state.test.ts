// Pins Job#getState and the is methods in every state of a plain job.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: job.state', ({ lib }) => {
  const stage = useStage(lib);

  const predicates = async (job: Job) => ({
    waiting: await job.isWaiting(),
    active: await job.isActive(),
    delayed: await job.isDelayed(),
    completed: await job.isCompleted(),
    failed: await job.isFailed(),
    waitingChildren: await job.isWaitingChildren(),
  });
  const none = {
    waiting: false,
    active: false,
    delayed: false,
    completed: false,
    failed: false,
    waitingChildren: false,
  };

  it('and the is methods agree while the job waits', async () => {
    const job = await stage.queue().add('job', {});
    expect([await job.getState(), await predicates(job)]).toEqual(['waiting', { ...none, waiting: true }]);
  });

  it('and the is methods agree while the job is delayed', async () => {
    const job = await stage.queue().add('job', {}, { delay: 60_000 });
    expect([await job.getState(), await predicates(job)]).toEqual(['delayed', { ...none, delayed: true }]);
  });

  it('and the is methods agree while the job is active', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const log = new EventLog(
      stage.worker(() => gate.opened),
      ['active'],
    );
    const job = await queue.add('job', {});
    await log.get('active');
    expect([await job.getState(), await predicates(job)]).toEqual(['active', { ...none, active: true }]);
  });

  it('and the is methods agree once the job completed', async () => {
    const queue = stage.queue();
    const log = new EventLog(
      stage.worker(async () => undefined),
      ['completed'],
    );
    const job = await queue.add('job', {});
    await log.get('completed');
    expect([await job.getState(), await predicates(job)]).toEqual(['completed', { ...none, completed: true }]);
  });

  it('and the is methods agree once the job failed', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => {
      throw new Error('no');
    });
    const log = new EventLog(worker, ['failed']);
    const job = await queue.add('job', {});
    await log.get('failed');
    expect([await job.getState(), await predicates(job)]).toEqual(['failed', { ...none, failed: true }]);
  });

  it('is unknown once the job was removed, and all is methods are false', async () => {
    const job = await stage.queue().add('job', {});
    await job.remove();
    expect([await job.getState(), await predicates(job)]).toEqual(['unknown', none]);
  });

  it('is what the is methods tell, whatever a getState of its own says', async () => {
    const job = await stage.queue().add('job', {});
    job.getState = async () => ((await job.isWaiting()) ? 'active' : 'unknown');
    expect([await job.getState(), await predicates(job)]).toEqual(['active', { ...none, waiting: true }]);
  });
});
