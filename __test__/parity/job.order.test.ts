import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';

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
});
