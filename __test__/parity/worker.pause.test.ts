// Pins pause and resume of one Worker object.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

describe.each(libraries)('$name: worker.pause', ({ lib }) => {
  const stage = useStage(lib);

  const twoJobs = [1, 2].map(() => ({ name: 'job', data: {} }));

  it('keeps an idle worker from what is added then', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['active', 'paused']);
    await worker.waitUntilReady();
    await worker.pause();
    await queue.addBulk(twoJobs);
    // Nothing signals that a paused worker stays paused; it would have started these within a few milliseconds.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(log.names).toEqual(['paused']);
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 2, active: 0 });
  });

  it('takes nothing any more, whatever it was waiting for', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined);
    const completed = new EventLog(worker, ['completed']);
    await queue.add('job', {});
    for (let i = 1; i <= 20; i++) {
      await completed.get('completed', i);
      await worker.pause();
      await queue.add('job', {});
      expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 1, active: 0 });
      await worker.resume();
    }
  });

  it('waits for the running job and takes no other', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active', 'completed', 'paused']);
    await queue.addBulk(twoJobs);
    await log.get('active');
    const pausing = worker.pause();
    expect(worker.isPaused()).toBe(true);
    gate.open();
    await pausing;
    expect(log.names).toEqual(['active', 'completed', 'paused']);
    expect(await queue.getJobCounts('waiting', 'active', 'completed')).toEqual({ waiting: 1, active: 0, completed: 1 });
    expect(worker.isRunning()).toBe(false);
  });

  it('does not wait for the running job when told so', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active', 'completed', 'paused']);
    await queue.addBulk(twoJobs);
    await log.get('active');
    await worker.pause(true);
    expect(log.names).toEqual(['active', 'paused']);
    expect([worker.isPaused(), worker.isRunning()]).toEqual([true, true]);
    gate.open();
    await log.get('completed');
    expect(await queue.getJobCounts('waiting', 'active', 'completed')).toEqual({ waiting: 1, active: 0, completed: 1 });
    await until('the loop to end', () => !worker.isRunning());
  });

  it('of an idle worker is over before the loop has ended when told not to wait', async () => {
    // BullMQ's loop ends with its wait
    const worker = stage.worker(async () => undefined, { drainDelay: 1 });
    await worker.waitUntilReady();
    await worker.pause(true);
    expect([worker.isPaused(), worker.isRunning()]).toEqual([true, true]);
    await until('the loop to end', () => !worker.isRunning());
    await worker.resume();
    expect([worker.isPaused(), worker.isRunning()]).toEqual([false, true]);
    await worker.pause(true);
    await worker.close();
    expect([worker.isPaused(), worker.isRunning()]).toEqual([true, false]);
  });

  it('ends with resume, which takes what waits', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['active', 'completed', 'paused', 'resumed']);
    await worker.pause();
    await queue.addBulk(twoJobs);
    await worker.resume();
    expect(worker.isPaused()).toBe(false);
    await log.get('completed', 2);
    expect(log.names).toEqual(['paused', 'resumed', 'active', 'completed', 'active', 'completed']);
    expect(worker.isRunning()).toBe(true);
  });

  it('ends with resume while a job still runs: the free slot works at once', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker((job) => (job.name === 'held' ? gate.opened : Promise.resolve()), { concurrency: 2 });
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.add('held', {});
    await log.get('active');
    await worker.pause(true);
    await queue.add('free', {});
    await worker.resume();
    await log.get('completed');
    expect(await queue.getJobCounts('active', 'completed')).toEqual({ active: 1, completed: 1 });
  });

  it('given twice emits paused once, as resume given twice emits resumed once', async () => {
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['paused', 'resumed']);
    await worker.resume();
    await worker.pause();
    await worker.pause();
    await worker.resume();
    await worker.resume();
    expect(log.entries).toEqual([
      { event: 'paused', args: [] },
      { event: 'resumed', args: [] },
    ]);
  });

  it('leaves other workers of the queue running', async () => {
    const queue = stage.queue();
    const paused = stage.worker(async () => 'paused one');
    const other = stage.worker(async () => 'other');
    const log = new EventLog(other, ['completed']);
    await paused.pause();
    await queue.addBulk(twoJobs);
    await log.get('completed', 2);
    expect(log.all('completed').map(([, result]) => result)).toEqual(['other', 'other']);
    expect(other.isPaused()).toBe(false);
  });

  it('does not keep the worker from closing, which takes nothing more', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['active', 'closed']);
    await worker.pause();
    await queue.addBulk(twoJobs);
    await worker.close();
    expect(log.names).toEqual(['closed']);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 2 });
  });

  it('is not told of a worker that was resumed meanwhile', async () => {
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['drained', 'paused', 'resumed']);
    await log.get('drained');
    // in BullMQ it settles, or rejects, when the worker stops
    worker.pause().catch(() => undefined);
    await worker.resume();
    // Nothing signals that it is not told; it would be within a few milliseconds.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([worker.isPaused(), log.names]).toEqual([false, ['drained', 'resumed']]);
  });

  it('can be called on a closed worker, as can resume; both are told', async () => {
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['closed', 'paused', 'resumed']);
    await worker.close();
    await worker.pause();
    expect(worker.isPaused()).toBe(true);
    await worker.resume();
    expect([worker.isPaused(), worker.isRunning()]).toEqual([false, false]);
    expect(log.names).toEqual(['closed', 'paused', 'resumed']);
  });

  it('is nothing that resume needs to start a worker', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { autorun: false });
    const log = new EventLog(worker, ['resumed', 'active', 'completed']);
    await queue.add('job', {});
    await worker.resume();
    await log.get('completed');
    await worker.resume();
    expect([worker.isRunning(), log.names]).toEqual([true, ['resumed', 'active', 'completed']]);
  });

  it('is nothing that resume needs of a worker without a processor, which tells', async () => {
    const worker = stage.worker(null);
    const log = new EventLog(worker, ['paused', 'resumed']);
    await worker.resume();
    await worker.pause();
    await worker.resume();
    expect([worker.isRunning(), log.names]).toEqual([false, ['resumed', 'paused', 'resumed']]);
  });

  it('makes run resolve without a start, which resume then makes up for', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { autorun: false });
    const log = new EventLog(worker, ['active', 'completed']);
    await worker.pause();
    await worker.run();
    expect(worker.isRunning()).toBe(false);
    await queue.add('job', {});
    await worker.resume();
    await log.get('completed');
    expect(worker.isRunning()).toBe(true);
  });
});
