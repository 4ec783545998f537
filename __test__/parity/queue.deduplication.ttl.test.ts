// Pins deduplication for a time, fixed (throttle) and extended by each add (debounce).
import { describe, expect, it } from 'vitest';
import type { Queue } from 'bullmq';
import { by, deduplications } from '../support/deduplication.js';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, sleep, until } from '../support/waiting.js';

const LONG = 60_000;

/** Waits until nobody owns the id, and says how long that took. */
async function untilFree(queue: Queue, id: string): Promise<number> {
  const start = performance.now();
  await until(`the end of ${id}`, async () => (await queue.getDeduplicationJobId(id)) === null);
  return performance.now() - start;
}

describe.each(libraries)('$name: deduplication with a ttl', ({ lib }) => {
  const stage = useStage(lib);

  it('discards until the time is over, whatever comes in between', async () => {
    const queue = stage.queue();
    await queue.add('job', {}, by('d', { ttl: 1_000 }));
    expect((await queue.add('job', {}, by('d', { ttl: LONG }))).id).toBe('1');
    expect((await queue.add('job', {}, by('d'))).id).toBe('1');
    await untilFree(queue, 'd');
    expect((await queue.add('job', {}, by('d', { ttl: 1_000 }))).id).toBe('4');
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 2 });
  });

  it.each([['completed', {}] as const, ['completed', { removeOnComplete: true }] as const, ['failed', {}] as const])(
    'discards also when the job has %s (%j)',
    async (end, opts) => {
      const queue = stage.queue();
      const log = stage.globalLog();
      stage.worker(() => (end === 'failed' ? Promise.reject(new Error('boom')) : Promise.resolve()));
      await queue.add('job', {}, by('d', { ttl: LONG }, opts));
      await log.get(end);
      expect((await queue.add('job', {}, by('d', { ttl: LONG }))).id).toBe('1');
      await log.get('deduplicated');
      expect(deduplications(log)).toEqual([['1', 'd', '2']]);
    },
  );

  it('discards also when retention has removed the job', async () => {
    const queue = stage.queue({ defaultJobOptions: { removeOnComplete: 1 } });
    const log = stage.globalLog();
    stage.worker(async () => undefined);
    await queue.add('job', {}, by('d', { ttl: LONG }));
    await queue.add('job', {});
    await log.get('completed', 2);
    expect(await queue.getJob('1')).toBeUndefined();
    expect((await queue.add('job', {}, by('d', { ttl: LONG }))).id).toBe('1');
  });

  it('ends when a finished job is removed', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    stage.worker(async () => undefined);
    const job = await queue.add('job', {}, by('d', { ttl: LONG }));
    await log.get('completed');
    await job.remove();
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
  });

  it('ends when it is removed', async () => {
    const queue = stage.queue();
    await queue.add('job', {}, by('d', { ttl: LONG }));
    expect(await queue.removeDeduplicationKey('d')).toBe(1);
    expect((await queue.add('job', {}, by('d', { ttl: LONG }))).id).toBe('2');
  });

  it.each([0, -5, null, undefined])('is without one when the ttl is %j', async (ttl) => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const opts = by('d', { ttl: ttl as number });
    await queue.add('job', {}, opts);
    expect((await queue.add('job', {}, opts)).id).toBe('1');
    stage.worker(async () => undefined);
    await log.get('completed');
    expect(await queue.getDeduplicationJobId('d')).toBeNull();
  });

  it('discards within one addBulk', async () => {
    const queue = stage.queue();
    const opts = by('d', { ttl: LONG });
    const jobs = await queue.addBulk([1, 2, 3].map((n) => ({ name: 'job', data: n, opts })));
    expect(jobs.map((job) => job.id)).toEqual(['1', '1', '1']);
  });

  it('frees the id only when the owner of that time is still the owner', async () => {
    const queue = stage.queue();
    const log = stage.globalLog();
    const gate = stage.gate();
    stage.worker((job) => (job.id === '1' ? gate.opened : Promise.resolve()), { concurrency: 2 });
    await queue.add('job', {}, by('d', { ttl: 20 }));
    await untilFree(queue, 'd');
    await queue.add('job', {}, by('d', {}, { delay: LONG }));
    gate.open();
    await log.get('completed');
    expect(await queue.getDeduplicationJobId('d')).toBe('2');
  });

  describe('and extend', () => {
    it('starts the time anew with each add', async () => {
      const queue = stage.queue();
      const opts = by('d', { ttl: 1_200, extend: true });
      await queue.add('job', {}, opts);
      // time itself is what is tested: half of it passes
      await sleep(600);
      expect((await queue.add('job', {}, opts)).id).toBe('1');
      expect(await untilFree(queue, 'd')).toBeGreaterThan(700);
      expect((await queue.add('job', {}, opts)).id).toBe('3');
    });

    it('goes by the ttl of the last add, also when that is shorter', async () => {
      const queue = stage.queue();
      await queue.add('job', {}, by('d', { ttl: LONG, extend: true }));
      await queue.add('job', {}, by('d', { ttl: 50, extend: true }));
      await untilFree(queue, 'd');
    });

    it('puts a time on an owner that had none', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      await queue.add('job', {}, by('d'));
      await queue.add('job', {}, by('d', { ttl: LONG, extend: true }));
      stage.worker(async () => undefined);
      await log.get('completed');
      expect(await queue.getDeduplicationJobId('d')).toBe('1');
    });

    it('changes nothing without a ttl', async () => {
      const queue = stage.queue();
      await queue.add('job', {}, by('d', { ttl: 600 }));
      expect((await queue.add('job', {}, by('d', { extend: true }))).id).toBe('1');
      await untilFree(queue, 'd');
    });

    it('tells of each add that is discarded', async () => {
      const queue = stage.queue();
      const log = stage.globalLog();
      const opts = by('d', { ttl: LONG, extend: true });
      for (let i = 0; i < 3; i++) await queue.add('job', {}, opts);
      await log.get('deduplicated', 2);
      expect(deduplications(log)).toEqual([
        ['1', 'd', '2'],
        ['1', 'd', '3'],
      ]);
    });
  });

  it('leaves one job of many adds: the last one, when they are delayed and replace each other', async () => {
    const queue = stage.queue();
    const done: unknown[] = [];
    const worker = stage.worker(async (job) => void done.push(job.data));
    const log = new EventLog(worker, ['completed']);
    const opts = by('d', { ttl: 1_000, extend: true, replace: true }, { delay: 1_000 });
    for (let n = 1; n <= 5; n++) await queue.add('save', n, opts);
    await log.get('completed');
    expect(done).toEqual([5]);
    expect(await queue.getJobCounts('delayed', 'waiting', 'completed')).toEqual({
      delayed: 0,
      waiting: 0,
      completed: 1,
    });
  });
});
