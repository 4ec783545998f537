import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

/** Calls given at once, and how often: what is out of order is so by chance. */
const CALLS = 200;
const TIMES = 40;

describe.each(libraries)('$name: commands that are not awaited', ({ lib }) => {
  const stage = useStage(lib);

  /** Gives many calls at once, a few times, and collects what the last ones left. */
  async function lastOnes<T>(call: (job: Job, i: number) => Promise<unknown>, read: (job: Job) => T): Promise<T[]> {
    const queue = stage.queue();
    const job = await queue.add('flooded', {});
    const found: T[] = [];
    for (let time = 0; time < TIMES; time++) {
      await Promise.all(Array.from({ length: CALLS }, (_, i) => call(job, i)));
      found.push(read(await fetchJob(queue, job.id)));
    }
    return found;
  }

  it('the last progress given is the one that stays', async () => {
    const found = await lastOnes(
      (job, i) => job.updateProgress(i),
      (job) => job.progress,
    );

    expect(found).toEqual(Array.from({ length: TIMES }, () => CALLS - 1));
  });

  it('the last data given are those that stay', async () => {
    const found = await lastOnes(
      (job, i) => job.updateData({ i }),
      (job) => job.data as unknown,
    );

    expect(found).toEqual(Array.from({ length: TIMES }, () => ({ i: CALLS - 1 })));
  });

  it('progress events come in the order of the calls', async () => {
    const queue = stage.queue();
    const events = stage.events();
    const job = await queue.add('flooded', {});
    const seen: unknown[] = [];
    const all = new Promise<void>((resolve) => {
      events.on('progress', ({ data }) => {
        if (seen.push(data) === TIMES * CALLS) resolve();
      });
    });

    for (let time = 0; time < TIMES; time++) {
      await Promise.all(Array.from({ length: CALLS }, (_, i) => job.updateProgress(time * CALLS + i)));
    }
    await all;

    expect(seen).toEqual(Array.from({ length: TIMES * CALLS }, (_, i) => i));
  });

  it('events come in the order of the calls', async () => {
    const queue = stage.queue();
    const told: unknown[] = [];
    const worker = stage.worker(async (job) => {
      for (let i = 1; i <= 5; i++) void job.updateProgress(i);
    });
    worker.on('progress', (job, progress) => told.push([job.id, progress]));
    queue.on('progress', (job, progress) => told.push([(job as unknown as Job).id, progress]));
    const ids: string[] = [];
    const expected = (): unknown[] => ids.flatMap((id) => [1, 2, 3, 4, 5].map((i) => [id, i]));
    for (let time = 0; time < TIMES; time++) {
      ids.push((await queue.add('job', {})).id!);
      await until('the progress of the worker', () => told.length === 5 * ids.length);
    }
    expect(told).toEqual(expected());
    const job = await queue.add('late', {}, { delay: 60_000 });
    for (let time = 0; time < TIMES; time++) {
      ids.push(job.id!);
      await Promise.all([1, 2, 3, 4, 5].map((i) => job.updateProgress(i)));
    }
    expect(told).toEqual(expected());
  });

  it('calls are answered in the order in which they were given', async () => {
    const queue = stage.queue();
    const job = await queue.add('late', {}, { delay: 60_000 });
    for (let time = 0; time < TIMES; time++) {
      const answered: number[] = [];
      const calls = [job.getState(), queue.getJob(job.id!), job.updateData(1), job.getState(), job.log('x')];
      await Promise.all(calls.map((call: Promise<unknown>, i) => call.then(() => answered.push(i))));
      // the worker's jobs, the look-ups and the log rows go by ways of their own
      expect(answered.filter((i) => [0, 2, 3].includes(i))).toEqual([0, 2, 3]);
    }
  });

  it('a state is that before the calls behind it', async () => {
    const queue = stage.queue();
    for (let time = 0; time < TIMES; time++) {
      const job = await queue.add('job', {}, { priority: 2 });
      expect((await Promise.all([job.getState(), job.remove()]))[0]).toBe('prioritized');
      const late = await queue.add('job', {}, { delay: 60_000 });
      expect((await Promise.all([late.getState(), late.remove()]))[0]).toBe('delayed');
    }
  });
});
