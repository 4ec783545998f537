// Pins what workers do with jobs that have a priority when they pause, close, meet limits and share a queue.
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

describe.each(libraries)('$name: worker.priority', ({ lib }) => {
  const stage = useStage(lib);

  /** Adds `count` jobs with the priorities 1 to `priorities` in turn, named by the order in which they are to start. */
  async function fill(queue: Queue, count: number, priorities: number): Promise<void> {
    const each = count / priorities;
    const nameOf = (i: number) => String((i % priorities) * each + Math.floor(i / priorities));
    await queue.addBulk(
      Array.from({ length: count }, (_, i) => ({
        name: nameOf(i),
        data: {},
        opts: { priority: 1 + (i % priorities) },
      })),
    );
  }

  const inOrder = (count: number) => Array.from({ length: count }, (_, i) => String(i));

  it.each([1, 10])('%d slots start several hundred jobs in order', async (concurrency) => {
    const queue = stage.queue();
    await fill(queue, 400, 10);
    const order: string[] = [];
    const worker = stage.worker(
      async (job) => {
        order.push(job.name);
      },
      { concurrency },
    );
    await new EventLog(worker, ['completed']).get('completed', 400);
    expect(order).toEqual(inOrder(400));
  });

  it('a worker that closes half-way leaves the rest to another, in order', async () => {
    const queue = stage.queue();
    await fill(queue, 600, 3);
    const order: string[] = [];
    const first = stage.worker(async (job) => {
      order.push(job.name);
    });
    await new EventLog(first, ['completed']).get('completed', 250);
    await first.close();
    const left = await queue.getJobCounts('active', 'waiting', 'prioritized');
    expect(left).toEqual({ active: 0, waiting: 0, prioritized: 600 - order.length });
    expect((await queue.getPrioritized(0, 9)).map((job) => job.name)).toEqual(
      inOrder(600).slice(order.length, order.length + 10),
    );
    const second = stage.worker(async (job) => {
      order.push(job.name);
    });
    await new EventLog(second, ['drained']).get('drained');
    expect(order).toEqual(inOrder(600));
    expect(await queue.getJobCounts('completed')).toEqual({ completed: 600 });
  });

  it('a queue paused half-way keeps the order of the rest', async () => {
    const queue = stage.queue();
    await fill(queue, 600, 3);
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(job.name);
      if (order.length === 250) await queue.pause();
    });
    const log = new EventLog(worker, ['completed']);
    // Jobs that were taken before the queue was paused may start a moment later.
    await until('nothing to be active', async () => (await queue.getActiveCount()) === 0 && order.length >= 250);
    const before = order.length;
    expect(await queue.getPrioritizedCount()).toBe(600 - before);
    await queue.add('urgent', {}, { priority: 1 });
    await queue.resume();
    await log.get('completed', 601);
    expect(order).toEqual([...inOrder(before), ...(before < 200 ? [] : ['urgent']), ...inOrder(600).slice(before)]);
  });

  it('a job that meets a rate limit comes back to the front of its priority', async () => {
    const queue = stage.queue();
    await queue.addBulk(['a', 'b', 'c'].map((name) => ({ name, data: {}, opts: { priority: 2 } })));
    await queue.add('urgent', {}, { priority: 1 });
    const order: string[] = [];
    const worker = stage.worker(async (job) => {
      order.push(job.name);
      if (job.name === 'a' && job.attemptsStarted === 1) throw new lib.RateLimitError();
    });
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.get('completed', 4);
    expect(order).toEqual(['urgent', 'a', 'a', 'b', 'c']);
    expect(log.names).not.toContain('failed');
    const stored = await fetchJob(queue, '1');
    expect([stored.attemptsMade, stored.attemptsStarted, stored.priority]).toEqual([1, 2, 2]);
  });

  it('retention drops completed jobs with a priority like others', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => undefined, { removeOnComplete: { count: 2 } });
    const log = new EventLog(worker, ['completed']);
    await fill(queue, 6, 3);
    await log.get('completed', 6);
    // Which of those that ended in one millisecond stay is not said.
    expect((await queue.getCompleted()).length).toBe(2);
    await queue.addBulk([{ name: 'gone', data: {}, opts: { priority: 1, removeOnComplete: true } }]);
    await log.get('completed', 7);
    expect((await queue.getCompleted()).map((job) => job.name)).not.toContain('gone');
    expect(await queue.getJobCounts('completed', 'prioritized')).toEqual({ completed: 2, prioritized: 0 });
  });

  it('return values, names and data of many jobs with a priority stay apart', async () => {
    const queue = stage.queue();
    await queue.addBulk(
      Array.from({ length: 60 }, (_, i) => ({ name: `n${i}`, data: { i }, opts: { priority: 1 + (i % 4) } })),
    );
    const worker = stage.worker(
      async (job) => {
        const { i } = job.data as { i: number };
        return i % 3 === 0 ? undefined : { name: job.name, i };
      },
      { concurrency: 7 },
    );
    await new EventLog(worker, ['completed']).get('completed', 60);
    for (const job of await queue.getCompleted()) {
      const { i } = job.data as { i: number };
      const { name, returnvalue, priority, attemptsMade } = job as Job<unknown, unknown>;
      expect([name, returnvalue, priority, attemptsMade]).toEqual([
        `n${i}`,
        i % 3 === 0 ? null : { name, i },
        1 + (i % 4),
        1,
      ]);
    }
  });

  it('waitUntilFinished works for a job with a priority', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const job = await queue.add('job', {}, { priority: 5 });
    stage.worker(async () => 'done');
    expect(await job.waitUntilFinished(events)).toBe('done');
  });
});
