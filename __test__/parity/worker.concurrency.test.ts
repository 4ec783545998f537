// Pins how many jobs one worker runs at once, and changes of that while it runs.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, Gate, until } from '../support/waiting.js';

describe.each(libraries)('$name: worker.concurrency', ({ lib }) => {
  const stage = useStage(lib);

  const jobs = (count: number) => Array.from({ length: count }, (_, data) => ({ name: 'job', data }));

  it('is as many jobs as run at once', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened, { concurrency: 3 });
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.addBulk(jobs(5));
    await log.get('active', 3);
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 3, waiting: 2 });
    gate.open();
    await log.get('completed', 5);
  });

  it('may be read and set; what it cannot be is refused', () => {
    const worker = stage.worker(async () => undefined, { concurrency: 2 });
    expect(worker.concurrency).toBe(2);
    worker.concurrency = 7;
    expect(worker.concurrency).toBe(7);
    for (const wrong of [0, -1, NaN, Infinity, '3' as never, undefined as never]) {
      expect(() => (worker.concurrency = wrong)).toThrow('concurrency must be a finite number greater than 0');
    }
    expect(worker.concurrency).toBe(7);
  });

  it.each([2 ** 32, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE])('of %d runs all there are', async (concurrency) => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened, { concurrency });
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.addBulk(jobs(20));
    await log.get('active', 20);
    worker.concurrency = concurrency;
    gate.open();
    await log.get('completed', 20);
    await queue.addBulk(jobs(1));
    await log.get('completed', 21);
  });

  it('that is raised is used once a job ends', async () => {
    const queue = stage.queue();
    const gates = Array.from({ length: 6 }, () => new Gate());
    const worker = stage.worker((job: Job) => gates[job.data as number]?.opened);
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.addBulk(jobs(6));
    await log.get('active');
    worker.concurrency = 3;
    gates[0]?.open();
    await log.get('active', 4);
    expect(await queue.getJobCounts('active', 'waiting', 'completed')).toEqual({ active: 3, waiting: 2, completed: 1 });
    for (const gate of gates) gate.open();
    await log.get('completed', 6);
  });

  it('that is raised while the queue is empty is used for what is added then', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active', 'drained']);
    await log.get('drained');
    worker.concurrency = 4;
    await queue.addBulk(jobs(5));
    await log.get('active', 4);
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 4, waiting: 1 });
  });

  it('that is lowered interrupts nothing and takes no more until there is room', async () => {
    const queue = stage.queue();
    const gates = Array.from({ length: 6 }, () => new Gate());
    const worker = stage.worker((job: Job) => gates[job.data as number]?.opened, { concurrency: 3 });
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.addBulk(jobs(6));
    await log.get('active', 3);
    worker.concurrency = 1;
    expect(await queue.getActiveCount()).toBe(3);
    gates[0]?.open();
    await log.get('completed');
    gates[1]?.open();
    await log.get('completed', 2);
    expect(log.all('active')).toHaveLength(3);
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 1, waiting: 3 });
    gates[2]?.open();
    await log.get('active', 4);
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 1, waiting: 2 });
    for (const gate of gates) gate.open();
    await log.get('completed', 6);
  });

  it('holds after a pause and a resume', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened, { concurrency: 2 });
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.addBulk(jobs(5));
    await log.get('active', 2);
    await worker.pause(true);
    await worker.resume();
    expect(await queue.getJobCounts('active', 'waiting')).toEqual({ active: 2, waiting: 3 });
    gate.open();
    await log.get('completed', 5);
  });

  it('is never exceeded, however fast jobs end', async () => {
    const queue = stage.queue();
    let running = 0;
    let most = 0;
    const worker = stage.worker(
      async () => {
        most = Math.max(most, ++running);
        await Promise.resolve();
        running--;
      },
      { concurrency: 7 },
    );
    const log = new EventLog(worker, ['completed']);
    await queue.addBulk(jobs(500));
    await log.get('completed', 500);
    expect(most).toBeLessThanOrEqual(7);
    await until('the end', async () => (await queue.getActiveCount()) === 0);
  });
});
