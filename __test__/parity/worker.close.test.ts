// Pins Worker#close and close(true), and a closed Queue.
import { describe, expect, it } from 'vitest';
import type { Job, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection, sleep, until } from '../support/waiting.js';

describe.each(libraries)('$name: worker.close', ({ lib }) => {
  const stage = useStage(lib);

  const jobs = (count: number) => Array.from({ length: count }, () => ({ name: 'job', data: {} }));

  it('waits for the running jobs, completes them and takes no other', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened, { concurrency: 2 });
    const log = new EventLog(worker, ['active', 'completed', 'closing', 'closed']);
    await queue.addBulk(jobs(5));
    await log.get('active', 2);
    const closing = worker.close();
    expect(worker.isRunning()).toBe(true);
    gate.open();
    await closing;
    expect(worker.isRunning()).toBe(false);
    expect(log.names).toEqual(['active', 'active', 'closing', 'completed', 'completed', 'closed']);
    expect(await queue.getJobCounts('waiting', 'active', 'completed')).toEqual({ waiting: 3, active: 0, completed: 2 });
  });

  it('waits for a job that fails, and puts it where its attempts say', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(async () => {
      await gate.opened;
      throw new Error('no');
    });
    const log = new EventLog(worker, ['active', 'failed', 'closed']);
    await queue.add('job', {}, { attempts: 2 });
    await log.get('active');
    const closing = worker.close();
    gate.open();
    await closing;
    expect(log.names).toEqual(['active', 'failed', 'closed']);
    expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 1, failed: 0 });
  });

  it('leaves what is added during it', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active', 'completed']);
    await queue.add('job', {});
    await log.get('active');
    const closing = worker.close();
    await queue.add('late', {});
    gate.open();
    await closing;
    expect(log.all<[Job]>('completed').map(([job]) => job.name)).toEqual(['job']);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
  });

  it('given twice closes once', async () => {
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['closing', 'closed']);
    await worker.waitUntilReady();
    await Promise.all([worker.close(), worker.close()]);
    await worker.close();
    expect(log.names).toEqual(['closing', 'closed']);
  });

  it('is told by closing, which is unset before', async () => {
    const worker = stage.worker(async () => undefined);
    expect(worker.closing).toBeUndefined();
    const closing = worker.close();
    expect(worker.closing).toBeInstanceOf(Promise);
    await closing;
  });

  it('works before the worker was ready', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined);
    await worker.close();
    await queue.add('job', {});
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
  });

  it('works for a worker that never ran', async () => {
    const worker = stage.worker(async () => undefined, { autorun: false });
    const log = new EventLog(worker, ['closing', 'closed']);
    await worker.close();
    expect(log.names).toEqual(['closing', 'closed']);
  });

  it('interrupts the wait of an idle worker', async () => {
    const worker = stage.worker(async () => undefined, { drainDelay: 60 });
    await new EventLog(worker, ['drained']).get('drained');
    const start = performance.now();
    await worker.close();
    expect(performance.now() - start).toBeLessThan(20_000);
  });

  it('lets another worker take over what waits', async () => {
    const queue = stage.queue();
    const first = stage.worker(async () => 'first');
    const firstLog = new EventLog(first, ['completed']);
    await queue.add('job', {});
    await firstLog.get('completed');
    await first.close();
    await queue.addBulk(jobs(3));
    const second = new EventLog(
      stage.worker(async () => 'second'),
      ['completed'],
    );
    await second.get('completed', 3);
    expect(await queue.getJobCounts('completed')).toEqual({ completed: 4 });
  });

  it('leaves the rest of a bulk in its order for the next worker', async () => {
    const queue = stage.queue();
    const order: number[] = [];
    const process = async (job: Job) => order.push(Number(job.id));
    const first = stage.worker(process);
    const firstLog = new EventLog(first, ['completed']);
    await queue.addBulk(jobs(200));
    await firstLog.get('completed', 60);
    await first.close();
    const rest = 200 - order.length;
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: rest, active: 0 });
    await new EventLog(stage.worker(process), ['completed']).get('completed', rest);
    expect(order).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
  });

  describe('with force', () => {
    it('does not wait: the job stays active and its end is not recorded', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const ended = stage.gate();
      const worker = stage.worker(async () => {
        await gate.opened;
        ended.open();
      });
      const log = new EventLog(worker, ['active', 'completed', 'failed', 'closing', 'closed']);
      await queue.addBulk(jobs(2));
      await log.get('active');
      await worker.close(true);
      expect(log.names).toEqual(['active', 'closing', 'closed']);
      gate.open();
      await ended.opened;
      // Nothing signals that the end of the processor is dropped.
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(log.names).toEqual(['active', 'closing', 'closed']);
      expect(await queue.getJobCounts('waiting', 'active', 'completed')).toEqual({
        waiting: 1,
        active: 1,
        completed: 0,
      });
    });

    it('records what has ended, and starts nothing more', async () => {
      const queue = stage.queue();
      const ended = new Set<string | undefined>();
      const many = stage.gate();
      const worker = stage.worker(
        async (job) => {
          if (Number(job.id) % 2 === 0) await sleep(1);
          ended.add(job.id);
          if (ended.size === 500) many.open();
        },
        { concurrency: 50 },
      );
      await queue.addBulk(jobs(2_000));
      await many.opened;
      // in a turn of the event loop in which no handler returns
      await new Promise((resolve) => setImmediate(resolve));
      const before = [...ended];
      await worker.close(true);
      const states = () => Promise.all(before.map((id) => queue.getJobState(id ?? '')));
      await until('the ends to be recorded', async () => (await states()).every((state) => state === 'completed'));
      expect((await queue.getActive()).filter(({ id }) => before.includes(id))).toEqual([]);
      expect(await queue.getWaitingCount()).toBeGreaterThan(0);
    });

    it('records an attempt that has failed', async () => {
      const queue = stage.queue();
      const thrown = stage.gate();
      const worker = stage.worker(async () => {
        setImmediate(thrown.open);
        throw new Error('no');
      });
      await queue.addBulk(jobs(100));
      await thrown.opened;
      await worker.close(true);
      await until('the failure', async () => (await queue.getJobState('1')) === 'failed');
      expect((await fetchJob(queue, '1')).failedReason).toBe('no');
    });

    it.each<[string, Partial<WorkerOptions>]>([
      ['before the worker was ready', {}],
      ['for a worker that never ran', { autorun: false }],
    ])('works %s, also twice', async (_, opts) => {
      const queue = stage.queue();
      await queue.add('job', {});
      const worker = stage.worker(async () => undefined, opts);
      const log = new EventLog(worker, ['closing', 'closed']);
      if (opts.autorun === false) await worker.waitUntilReady();
      await Promise.all([worker.close(true), worker.close(true), worker.disconnect()]);
      expect(log.names).toEqual(['closing', 'closed']);
      if (opts.autorun === false) expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
    });

    it('does not shorten a close that waits already', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const worker = stage.worker(() => gate.opened);
      const log = new EventLog(worker, ['active', 'completed', 'closed']);
      await queue.add('job', {});
      await log.get('active');
      const closing = worker.close();
      const forced = worker.close(true);
      gate.open();
      await Promise.all([closing, forced]);
      expect(log.names).toEqual(['active', 'completed', 'closed']);
    });
  });
});

describe.each(libraries)('$name: queue.close', ({ lib }) => {
  const stage = useStage(lib);

  it('makes every later call reject', async () => {
    const queue = stage.queue();
    const job = await queue.add('job', {});
    await queue.close();
    const calls = [
      queue.add('job', {}),
      queue.addBulk([{ name: 'job', data: {} }]),
      queue.getJob('1'),
      queue.getJobCounts(),
      job.getState(),
    ];
    for (const call of calls) expect((await rejection(call)).message).toBe('Connection is closed.');
  });

  it('may be called twice, also at once', async () => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    expect(await Promise.all([queue.close(), queue.close()])).toEqual([undefined, undefined]);
    expect(await queue.close()).toBeUndefined();
  });

  it('before the queue was ready resolves', async () => {
    expect(await stage.queue().close()).toBeUndefined();
  });

  it('is told by closing, which is unset before', async () => {
    const queue = stage.queue();
    expect(queue.closing).toBeUndefined();
    const closing = queue.close();
    expect(queue.closing).toBeInstanceOf(Promise);
    await closing;
  });

  it('leaves other Queue objects of the name working', async () => {
    const [one, other] = [stage.queue(), stage.queue()];
    await one.add('job', {});
    await one.close();
    expect((await other.add('job', {})).id).toBe('2');
  });

  it('may be followed by disconnect', async () => {
    const queue = stage.queue();
    await queue.close();
    expect(await queue.disconnect()).toBeUndefined();
  });
});
