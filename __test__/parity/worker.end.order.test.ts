// Pins that what a handler calls and does not await is done before its job ends.
import type { Job, JobsOptions, Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, sleep } from '../support/waiting.js';

const JOBS = 60;

describe.each(libraries)('$name: what a handler does not await', ({ lib }) => {
  const stage = useStage(lib);

  /** Runs jobs one after the other, each added when the one before has ended. Gives those that were added. */
  async function runAll(handler: (job: Job) => unknown, opts: JobsOptions = {}): Promise<Job[]> {
    const queue = stage.queue();
    const worker = stage.worker(async (job: Job) => {
      // as most handlers; its end is another turn's
      if (Number(job.name) % 2 === 0) await sleep(1);
      return handler(job);
    });
    const added: Job[] = [];
    for (let i = 0; i < JOBS; i++) {
      const ended = new Promise((resolve) => {
        worker.once('completed', resolve);
      });
      added.push(await queue.add(String(i), { step: 0 }, opts));
      await ended;
    }
    return added;
  }

  it('its progress, its data and its log are stored, and its events come before the end', async () => {
    const events = stage.events();
    await events.waitUntilReady();
    const log = new EventLog(events, ['progress', 'completed']);
    const added = await runAll((job) => {
      void job.updateProgress(50);
      void job.updateData({ step: 1 });
      void job.log('row');
      void job.updateProgress(100);
    });
    const queue = stage.queue();
    for (const { id } of added) {
      const job = await fetchJob(queue, id);
      expect([job.progress, job.data, await queue.getJobLogs(id as string)]).toEqual([
        100,
        { step: 1 },
        { count: 1, logs: ['row'] },
      ]);
    }
    await log.when('the events', () => log.entries.length >= 3 * JOBS);
    for (const { id } of added) {
      const own = log.entries.filter(({ args: [told] }) => (told as { jobId: string }).jobId === id);
      expect(own.map(({ event }) => event)).toEqual(['progress', 'progress', 'completed']);
    }
  });

  it('it may do so though the job is removed at its end', async () => {
    const calls: Promise<unknown>[] = [];
    await runAll((job) => void calls.push(job.updateProgress(100), job.log('row'), job.updateData({ step: 1 })), {
      removeOnComplete: true,
    });
    await Promise.all(calls);
  });

  it('the next try has the data', async () => {
    const seen: unknown[] = [];
    await runAll(
      (job) => {
        if (job.attemptsMade > 0) return seen.push((job.data as { step: number }).step);
        void job.updateData({ step: 1 });
        throw new Error('again');
      },
      { attempts: 2 },
    );
    expect(seen).toEqual(Array.from({ length: JOBS }, () => 1));
  });

  it('the jobs that it adds are there, also behind another call of their queue', async () => {
    const others = stage.queue({}, 'others');
    const reader = stage.queue({}, 'others');
    const waiting: number[] = [];
    const queue = stage.queue();
    const worker = stage.worker(async (job: Job) => {
      if (Number(job.name) % 2 === 0) await sleep(1);
      void others.add('first', {});
      void others.getJobCounts();
      void others.add('second', {});
      void others.addBulk([{ name: 'third', data: {} }]);
    });
    for (let i = 0; i < JOBS; i++) {
      const ended = new Promise((resolve) => {
        worker.once('completed', resolve);
      });
      await queue.add(String(i), {});
      await ended;
      waiting.push(await reader.getWaitingCount());
    }
    expect(waiting).toEqual(Array.from({ length: JOBS }, (_, i) => 3 * (i + 1)));
  });

  it('a job that limits the rate comes back when that is over', async () => {
    const queue = stage.queue();
    const starts: number[] = [];
    const worker: Worker = stage.worker(async () => {
      starts.push(performance.now());
      if (starts.length % 2 === 0) return;
      void worker.rateLimit(100);
      throw new lib.RateLimitError();
    });
    for (let i = 1; i <= 5; i++) {
      const ended = new Promise((resolve) => {
        worker.once('completed', resolve);
      });
      await queue.add('job', i);
      await ended;
    }
    const rests = starts.flatMap((start, i) => (i % 2 === 1 ? [start - starts[i - 1]] : []));
    expect(rests).toHaveLength(5);
    expect(Math.min(...rests)).toBeGreaterThan(90);
  });

  it('a result that changes behind the end is told as it was', async () => {
    const queue = stage.queue();
    const result = { count: 1 };
    const worker = stage.worker(async (job) => {
      void job.updateProgress(1);
      setImmediate(() => result.count++);
      return result;
    });
    // BullMQ records no end before its connection for waits is open
    await worker.waitUntilReady();
    const ended = new Promise((resolve) => {
      worker.once('completed', resolve);
    });
    const { id } = await queue.add('job', {});
    await ended;
    expect((await fetchJob(queue, id)).returnvalue).toEqual({ count: 1 });
  });
});
