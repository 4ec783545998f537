// What is known of jobs that repeat, and how they end.
import { describe, expect } from 'vitest';
import { idiom, libraries, useStage5 } from './stage.js';
import { until } from '../support/waiting.js';

const HOUR = 3_600_000;

describe.each(libraries)('$name: repeatable jobs', ({ lib }) => {
  const stage = useStage5(lib);

  idiom('repeatable-jobs', async () => {
    const queue = stage.queue();
    const endDate = Date.now() + 100 * HOUR;
    const first = await queue.add('tick', {}, { repeat: { every: HOUR, endDate: new Date(endDate) } });
    const second = await queue.add('night', {}, { repeat: { pattern: '0 3 * * *', tz: 'Asia/Kolkata' } });
    const told = await queue.getRepeatableJobs();
    expect(told.sort((a, b) => a.name.localeCompare(b.name))).toEqual([
      {
        key: second.repeatJobKey,
        name: 'night',
        endDate: null,
        tz: 'Asia/Kolkata',
        pattern: '0 3 * * *',
        every: null,
        next: Number(second.id?.split(':').at(-1)),
      },
      {
        key: first.repeatJobKey,
        name: 'tick',
        endDate,
        tz: null,
        pattern: null,
        every: String(HOUR),
        next: Number(first.id?.split(':').at(-1)),
      },
    ]);
  });

  idiom('repeatable-jobs-range', async () => {
    const queue = stage.queue();
    for (const hours of [1000, 3000, 2000]) await queue.add(String(hours), {}, { repeat: { every: hours * HOUR } });
    const names = async (...range: [number?, number?, boolean?]) =>
      (await queue.getRepeatableJobs(...range)).map(({ name }) => name);
    const all = await names(0, -1, true);
    expect(all.toSorted()).toEqual(['1000', '2000', '3000']);
    expect(await names()).toEqual(all.toReversed());
    expect(await names(0, 1, true)).toEqual(all.slice(0, 2));
    const next = (await queue.getRepeatableJobs(0, -1, true)).map((each) => each.next as number);
    expect(next).toEqual(next.toSorted((a, b) => a - b));
  });

  idiom('repeatable-jobs-schedulers', async () => {
    const queue = stage.queue();
    await queue.upsertJobScheduler('newer', { every: HOUR });
    const { repeatJobKey } = await queue.add('older', {}, { repeat: { every: HOUR } });
    const keys = (found: { key: string }[]) => found.map(({ key }) => key).sort();
    const both = ['newer', repeatJobKey].sort();
    expect(keys(await queue.getRepeatableJobs())).toEqual(both);
    expect(keys(await queue.getJobSchedulers())).toEqual(both);
    expect(await queue.getJobSchedulersCount()).toBe(2);
    expect(await queue.getJobCounts('repeat')).toEqual({ repeat: 2 });
    expect(await queue.removeJobScheduler(repeatJobKey as string)).toBe(true);
    expect(await queue.removeRepeatableByKey('newer')).toBe(true);
    expect(await queue.getRepeatableJobs()).toEqual([]);
  });

  idiom('repeatable-remove', async () => {
    const queue = stage.queue();
    await queue.add('tick', {}, { repeat: { every: HOUR } });
    expect(await queue.removeRepeatable('tick', { every: 2 * HOUR })).toBe(false);
    expect(await queue.removeRepeatable('tock', { every: HOUR })).toBe(false);
    expect(await queue.removeRepeatable('tick', { every: HOUR })).toBe(true);
    expect(await queue.removeRepeatable('tick', { every: HOUR })).toBe(false);
    expect(await queue.getDelayedCount()).toBe(0);
    expect(await queue.getRepeatableJobs()).toEqual([]);
  });

  idiom('repeatable-remove-job-id', async () => {
    const queue = stage.queue();
    const repeat = { pattern: '0 3 * * *' };
    await queue.add('tick', {}, { repeat, jobId: 'a' });
    await queue.add('tick', {}, { repeat, jobId: 'b' });
    expect(await queue.removeRepeatable('tick', repeat)).toBe(false);
    expect(await queue.removeRepeatable('tick', repeat, 'a')).toBe(true);
    expect(await queue.getDelayedCount()).toBe(1);
    expect((await queue.getDelayed())[0].opts.repeat?.jobId).toBe('b');
  });

  idiom('repeatable-remove-by-key', async () => {
    const queue = stage.queue();
    await queue.add('tick', {}, { repeat: { every: HOUR } });
    const [{ key }] = await queue.getRepeatableJobs();
    expect(await queue.removeRepeatableByKey('no such key')).toBe(false);
    expect(await queue.removeRepeatableByKey(key)).toBe(true);
    expect(await queue.removeRepeatableByKey(key)).toBe(false);
    expect(await queue.getDelayedCount()).toBe(0);
  });

  idiom('repeatable-queue-repeat', async () => {
    const queue = stage.queue();
    const repeat = await queue.repeat;
    expect(repeat).toBeInstanceOf(lib.Repeat);
    expect(await repeat.getRepeatableCount()).toBe(0);
    const job = await repeat.updateRepeatableJob('tick', { x: 1 }, { repeat: { every: HOUR } }, { override: true });
    expect(await repeat.getRepeatableCount()).toBe(1);
    expect(await repeat.removeRepeatableByKey('no such key')).toBe(1);
    expect(await repeat.removeRepeatableByKey(job?.repeatJobKey as string)).toBe(0);
  });

  idiom('repeatable-worker-repeat', async () => {
    await stage.queue().add('tick', {}, { repeat: { every: HOUR } });
    const worker = stage.worker(null);
    expect((await (await worker.repeat).getRepeatableJobs()).map(({ name }) => name)).toEqual(['tick']);
  });

  idiom('repeatable-scheduler', async () => {
    const queue = stage.queue();
    let runs = 0;
    stage.worker(async () => void runs++);
    const job = await queue.upsertJobScheduler('s', { every: 200 }, { name: 'tick', data: { x: 1 } });
    expect([job?.name, job?.repeatJobKey, job?.delay]).toEqual(['tick', 's', 0]);
    await until('two runs', () => runs >= 2);
    expect(await queue.removeJobScheduler('s')).toBe(true);
  });
});
