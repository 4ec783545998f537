// Pins the global concurrency: how many jobs of a queue are active at once, over all workers.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, Gate, until } from '../support/waiting.js';

describe.each(libraries)('$name: queue.globalConcurrency', ({ lib }) => {
  const stage = useStage(lib);

  const jobs = (count: number, opts = {}) => Array.from({ length: count }, (_, data) => ({ name: 'job', data, opts }));

  it('is set, read and removed', async () => {
    const queue = stage.queue();
    expect(await queue.getGlobalConcurrency()).toBeNull();
    expect(await queue.setGlobalConcurrency(3)).toBe(1);
    expect(await queue.getGlobalConcurrency()).toBe(3);
    expect(await queue.setGlobalConcurrency(5)).toBe(0);
    expect(await queue.getMeta()).toMatchObject({ concurrency: 5, paused: false });
    expect(await queue.removeGlobalConcurrency()).toBe(1);
    expect(await queue.removeGlobalConcurrency()).toBe(0);
    expect(await queue.getGlobalConcurrency()).toBeNull();
    expect(await queue.getMeta()).not.toHaveProperty('concurrency');
  });

  it('bounds the jobs of one worker', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    await queue.setGlobalConcurrency(2);
    const worker = stage.worker(() => gate.opened, { concurrency: 5 });
    const log = new EventLog(worker, ['active', 'completed', 'drained']);
    await queue.addBulk(jobs(4));
    await log.get('active', 2);
    await until('the rest to be refused', () => log.names.includes('drained'));
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 2, waiting: 2 });
    expect(await queue.isMaxed()).toBe(true);
    gate.open();
    await log.get('completed', 4);
    expect(await queue.isMaxed()).toBe(false);
  });

  it('bounds the jobs of several workers together, each place being taken again', async () => {
    const queue = stage.queue();
    let active = 0;
    let most = 0;
    await queue.setGlobalConcurrency(3);
    const process = async () => {
      most = Math.max(most, ++active);
      // Long enough for all workers to look meanwhile.
      await new Promise((resolve) => setTimeout(resolve, 5));
      active--;
    };
    for (let i = 0; i < 4; i++) stage.worker(process, { concurrency: 2 });
    await queue.addBulk(jobs(60));
    await until('all jobs', async () => (await queue.getCompletedCount()) === 60);
    expect(most).toBe(3);
  });

  it('gives a place that a worker leaves to another', async () => {
    const queue = stage.queue();
    const gates = [new Gate(), new Gate()];
    await queue.setGlobalConcurrency(1);
    const workers = gates.map((gate) => stage.worker(() => gate.opened, { drainDelay: 0.5 }));
    const logs = workers.map((worker) => new EventLog(worker, ['active', 'completed']));
    await queue.add('job', {});
    await until('a start', () => logs.some((log) => log.names.includes('active')));
    const [holder, other] = logs[0]?.names.includes('active') ? [0, 1] : [1, 0];
    await queue.add('job', {});
    const pausing = workers[holder]?.pause();
    gates[holder]?.open();
    await pausing;
    // In BullMQ after its drainDelay, at which it looks by itself.
    await logs[other]?.get('active');
    gates[other]?.open();
    await logs[other]?.get('completed');
  });

  it('frees the place of a job that fails, is delayed or goes back', async () => {
    const queue = stage.queue();
    await queue.setGlobalConcurrency(1);
    const worker = stage.worker(async (job: Job, token) => {
      if (job.data === 0) throw new Error('no');
      if (job.data === 1 && job.attemptsStarted === 1) {
        await job.moveToDelayed(Date.now() + 50, token);
        throw new lib.DelayedError();
      }
      if (job.data === 2 && job.attemptsStarted === 1) {
        await job.moveToWait(token);
        throw new lib.WaitingError();
      }
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    await queue.addBulk(jobs(4));
    await log.get('completed', 3);
    expect(log.all('failed')).toHaveLength(1);
    expect(await queue.getJobCounts('active', 'waiting', 'delayed')).toEqual({ active: 0, waiting: 0, delayed: 0 });
  });

  it('counts jobs as they are active, and takes more when it is raised by the time a job ends', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    await queue.setGlobalConcurrency(1);
    const worker = stage.worker((job: Job) => (job.data === 0 ? undefined : gate.opened) as Promise<void>, {
      concurrency: 5,
    });
    const log = new EventLog(worker, ['active']);
    await queue.pause();
    await queue.addBulk(jobs(5));
    await queue.setGlobalConcurrency(3);
    await queue.resume();
    await log.get('active', 4);
    expect(await queue.getJobCounts('active', 'waiting', 'completed')).toEqual({ active: 3, waiting: 1, completed: 1 });
    gate.open();
    await log.get('active', 5);
  });

  it('that is lowered stops nothing that runs', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened, { concurrency: 3 });
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.addBulk(jobs(3));
    await log.get('active', 3);
    await queue.setGlobalConcurrency(1);
    expect(await queue.isMaxed()).toBe(true);
    expect(await queue.getActiveCount()).toBe(3);
    gate.open();
    await log.get('completed', 3);
  });

  it.each([0, -1])('of %d lets nothing start', async (concurrency) => {
    const queue = stage.queue();
    await queue.setGlobalConcurrency(concurrency);
    expect(await queue.getGlobalConcurrency()).toBe(concurrency);
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['drained', 'completed']);
    await queue.addBulk(jobs(2));
    await log.get('drained');
    expect(await queue.getJobCounts('waiting', 'completed')).toEqual({ waiting: 2, completed: 0 });
    expect(await queue.isMaxed()).toBe(true);
  });

  it('that is a fraction counts as one more', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    await queue.setGlobalConcurrency(1.5);
    const worker = stage.worker(() => gate.opened, { concurrency: 4 });
    const log = new EventLog(worker, ['active', 'drained']);
    await queue.addBulk(jobs(4));
    await log.get('active', 2);
    await until('the rest to be refused', () => log.names.includes('drained'));
    expect(await queue.getActiveCount()).toBe(2);
    expect(await queue.getGlobalConcurrency()).toBe(1.5);
  });

  it('holds together with a rate limit', async () => {
    const queue = stage.queue();
    let active = 0;
    let most = 0;
    const starts: number[] = [];
    await queue.setGlobalConcurrency(2);
    const worker = stage.worker(
      async (job) => {
        starts.push(job.processedOn ?? 0);
        most = Math.max(most, ++active);
        await new Promise((resolve) => setTimeout(resolve, 5));
        active--;
      },
      { concurrency: 5, limiter: { max: 4, duration: 200 } },
    );
    const log = new EventLog(worker, ['completed']);
    await queue.addBulk(jobs(8));
    await log.get('completed', 8);
    expect(most).toBe(2);
    starts.sort((a, b) => a - b);
    expect((starts[4] ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(198);
  });

  it('tells drained at the end only', async () => {
    const queue = stage.queue();
    await queue.setGlobalConcurrency(1);
    const worker = stage.worker(async () => undefined, { concurrency: 3 });
    const log = new EventLog(worker, ['completed']);
    const global = stage.globalLog();
    await queue.addBulk(jobs(3));
    await log.get('completed', 3);
    await global.get('drained');
    expect(global.names.slice(-2)).toEqual(['completed', 'drained']);
    expect(global.all('drained')).toHaveLength(1);
  });
});
