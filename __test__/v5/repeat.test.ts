// Jobs that repeat: what `add` with `repeat` makes.
import { describe, expect, it, vi } from 'vitest';
import { idiom, libraries, useStage5 } from './stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

const HOUR = 3_600_000;

/** The time in a job's id. */
const slotOf = (id = '') => Number(id.split(':').at(-1));

describe.each(libraries)('$name: repeat', ({ name, lib }) => {
  const stage = useStage5(lib);
  const ours = name === 'chasquimq/v5';

  idiom('repeat-every', async () => {
    const queue = stage.queue();
    const before = Date.now();
    const job = await queue.add('tick', { x: 1 }, { repeat: { every: HOUR } });
    const next = Math.floor(before / HOUR) * HOUR + HOUR;
    expect(slotOf(job.id)).toBe(next);
    expect(await job.getState()).toBe('delayed');
    expect(Math.abs(job.delay - (next - before))).toBeLessThan(60_000);
    expect((await queue.getDelayed()).map(({ id, name, data }) => [id, name, data])).toEqual([
      [job.id, 'tick', { x: 1 }],
    ]);
    expect(await queue.getJobSchedulersCount()).toBe(1);
  });

  idiom('repeat-pattern', async () => {
    const queue = stage.queue();
    const job = await queue.add('night', {}, { repeat: { pattern: '0 3 * * *', tz: 'Asia/Kolkata' } });
    const at = new Date(slotOf(job.id));
    // 3:00 there is 21:30 UTC, all the year
    expect([at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]).toEqual([21, 30, 0]);
    expect(slotOf(job.id) - Date.now()).toBeLessThanOrEqual(24 * HOUR);
    expect(await job.getState()).toBe('delayed');
  });

  idiom('repeat-utc', async () => {
    const queue = stage.queue();
    const job = await queue.add('night', {}, { repeat: { pattern: '0 3 * * *', utc: true } });
    expect(new Date(slotOf(job.id)).getUTCHours()).toBe(3);
    const [{ name, pattern, tz }] = await queue.getRepeatableJobs();
    const told = { pattern: pattern ?? undefined, tz: tz ?? undefined, utc: true };
    expect(await queue.removeRepeatable(name, told as never)).toBe(true);
    // whatever `tz` says, also for a job scheduler
    const repeat = { pattern: '0 3 * * *', utc: true, tz: 'Asia/Tokyo' };
    const [added, upserted] = [await queue.add('a', {}, { repeat }), await queue.upsertJobScheduler('b', repeat)];
    // BullMQ 5 may be two milliseconds early
    expect([added, upserted].map(({ id }) => new Date(slotOf(id) + 2).getUTCHours())).toEqual([3, 3]);
  });

  idiom('repeat-cron', async () => {
    const queue = stage.queue();
    const older = await queue.add('night', {}, { repeat: { cron: '0 3 * * *', tz: 'UTC' } as never });
    const newer = await queue.add('night', {}, { repeat: { pattern: '0 3 * * *', tz: 'UTC' } });
    expect(newer.id).toBe(older.id);
  });

  idiom('repeat-immediately', async () => {
    const queue = stage.queue();
    const before = Date.now();
    const job = await queue.add('now', {}, { repeat: { pattern: '0 3 * * *', immediately: true } });
    expect(await job.getState()).toBe('waiting');
    expect(Math.abs(slotOf(job.id) - before)).toBeLessThan(60_000);
    expect(job.opts.repeat).not.toHaveProperty('immediately');
  });

  idiom('repeat-every-immediately', async () => {
    const queue = stage.queue();
    const before = Date.now();
    const job = await queue.add('now', {}, { repeat: { every: HOUR, immediately: true } });
    expect(await job.getState()).toBe('waiting');
    if (ours) expect(slotOf(job.id)).toBeGreaterThanOrEqual(before);
    else expect(slotOf(job.id) % HOUR).toBe(0);
  });

  idiom('repeat-id', async () => {
    const queue = stage.queue();
    const job = await queue.add('tick', {}, { repeat: { every: HOUR } });
    const [{ key, next }] = await queue.getRepeatableJobs();
    // of the words `tick::::3600000`, by md5
    expect(key).toBe('fa82ade5322ad8fbe7404b1aab1666fc');
    expect(job.id).toBe(`repeat:${key}:${next}`);
    expect(job.repeatJobKey).toBe(key);
    const found = await queue.getJob(job.id!);
    expect([found?.repeatJobKey, found?.opts.prevMillis ?? next]).toEqual([key, next]);
  });

  idiom('repeat-opts', async () => {
    const queue = stage.queue();
    const job = await queue.add('tick', {}, { repeat: { pattern: '0 3 * * *', limit: 9 }, attempts: 3, priority: 5 });
    const found = await queue.getJob(job.id!);
    for (const each of [job, found]) {
      expect(each?.opts).toMatchObject({
        attempts: 3,
        priority: 5,
        repeat: { pattern: '0 3 * * *', limit: 9, count: 1 },
      });
    }
  });

  idiom('repeat-again', async () => {
    const queue = stage.queue();
    const repeat = { pattern: '0 3 * * *' };
    const first = await queue.add('tick', {}, { repeat });
    const second = await queue.add('tick', {}, { repeat });
    expect(second.id).toBe(first.id);
    expect(await queue.getDelayedCount()).toBe(1);
    expect(await queue.getRepeatableJobs()).toHaveLength(1);
    await queue.add('tock', {}, { repeat });
    await queue.add('tick', {}, { repeat: { pattern: '0 4 * * *' } });
    expect(await queue.getRepeatableJobs()).toHaveLength(3);
  });

  idiom('repeat-again-data', async () => {
    const queue = stage.queue();
    const job = await queue.add('tick', { x: 1 }, { repeat: { pattern: '0 3 * * *' } });
    await queue.add('tick', { x: 2 }, { repeat: { pattern: '0 3 * * *' } });
    expect((await queue.getJob(job.id!))?.data).toEqual({ x: ours ? 2 : 1 });
  });

  idiom('repeat-job-id', async () => {
    const queue = stage.queue();
    const a = await queue.add('tick', {}, { repeat: { every: HOUR }, jobId: 'a' });
    const b = await queue.add('tick', {}, { repeat: { every: HOUR }, jobId: 'b' });
    expect(a.repeatJobKey).not.toBe(b.repeatJobKey);
    expect(a.opts.repeat?.jobId).toBe('a');
    expect(await queue.getDelayedCount()).toBe(2);
  });

  idiom('repeat-key', async () => {
    const queue = stage.queue();
    const job = await queue.add('tick', {}, { repeat: { every: HOUR, key: 'mine' } });
    expect(job.repeatJobKey).toBe('mine');
    expect(job.id).toBe(`repeat:mine:${slotOf(job.id)}`);
    expect(await queue.removeRepeatable('any', { every: 1, key: 'mine' })).toBe(true);
  });

  idiom('repeat-hash', async () => {
    const queue = stage.queue({ settings: { repeatKeyHashAlgorithm: 'sha256' } });
    const job = await queue.add('tick', {}, { repeat: { every: HOUR } });
    expect(job.repeatJobKey).toMatch(/^[0-9a-f]{64}$/);
    expect(await queue.removeRepeatable('tick', { every: HOUR })).toBe(true);
  });

  idiom('repeat-limit', async () => {
    const queue = stage.queue();
    const counts: unknown[] = [];
    stage.worker(async (job) => void counts.push(job.opts.repeat?.count));
    await queue.add('tick', {}, { repeat: { every: 50, limit: 2 } });
    await until('two runs', () => counts.length === 2);
    await until('nothing is left', async () => (await queue.count()) === 0 && (await queue.getActiveCount()) === 0);
    expect(counts).toEqual([1, 2]);
  });

  it('the same add at each start of a program goes on with the count', async () => {
    const queue = stage.queue();
    const counts: unknown[] = [];
    const worker = stage.worker(async (job) => void counts.push(job.opts.repeat?.count));
    const add = () => queue.add('tick', {}, { repeat: { every: 1_000, limit: 2 } });
    await add();
    await new EventLog(worker, ['completed']).get('completed');
    await add();
    const isOver = async () => (await queue.count()) === 0 && (await queue.getActiveCount()) === 0;
    await until('nothing is left', isOver);
    expect(counts).toEqual([1, 2]);
    // and once it is over, anew
    await add();
    await until('the first run', () => counts.length === 3);
    await add();
    await until('nothing is left', isOver);
    expect(counts).toEqual([1, 2, 1, 2]);
  });

  idiom('repeat-end-date', async () => {
    const queue = stage.queue();
    const adding = queue.add('tick', {}, { repeat: { every: HOUR, endDate: Date.now() - HOUR } });
    expect((await rejection(adding)).message).toBe('End date must be greater than current timestamp');
    expect(await queue.getRepeatableJobs()).toEqual([]);
  });

  idiom('repeat-neither', async () => {
    const queue = stage.queue();
    await rejection(queue.add('tick', {}, { repeat: {} }));
    expect(await queue.getRepeatableJobs()).toEqual([]);
  });

  idiom('repeat-both', async () => {
    const queue = stage.queue();
    const adding = queue.add('tick', {}, { repeat: { every: HOUR, pattern: '0 3 * * *' } });
    const text = 'Both .pattern and .every options are defined for this repeatable job';
    expect((await rejection(adding)).message).toBe(text);
  });

  idiom('repeat-bad-pattern', async () => {
    const queue = stage.queue();
    await rejection(queue.add('tick', {}, { repeat: { pattern: 'soon' } }));
    expect(await queue.getRepeatableJobs()).toEqual([]);
  });

  idiom('repeat-strategy', async () => {
    const at = Date.now() + HOUR;
    const repeatStrategy = vi.fn(() => at);
    const queue = stage.queue({ settings: { repeatStrategy } });
    const job = await queue.add('tick', {}, { repeat: { pattern: 'when the cock crows' } });
    expect(slotOf(job.id)).toBe(at);
    expect(repeatStrategy.mock.calls[0].slice(1)).toEqual([{ pattern: 'when the cock crows' }, 'tick']);
  });

  idiom('repeat-runs', async () => {
    const queue = stage.queue();
    const seen: unknown[][] = [];
    stage.worker(async (job) => void seen.push([job.name, job.data, job.opts.attempts, job.opts.repeat?.count]));
    await queue.add('tick', { x: 1 }, { repeat: { every: 100 }, attempts: 4 });
    await until('three runs', () => seen.length >= 3);
    expect(seen.slice(0, 3)).toEqual([1, 2, 3].map((count) => ['tick', { x: 1 }, 4, count]));
    const [{ key }] = await queue.getRepeatableJobs();
    const ids = (await queue.getCompleted()).map(({ id }) => slotOf(id) % 100);
    expect(new Set(ids)).toEqual(new Set([0]));
    expect(await queue.removeRepeatableByKey(key)).toBe(true);
  });

  idiom('repeat-defaults', async () => {
    const queue = stage.queue({ defaultJobOptions: { attempts: 7, removeOnComplete: true } });
    const job = await queue.add('tick', {}, { repeat: { every: HOUR }, attempts: 2 });
    expect((await queue.getJob(job.id!))?.opts).toMatchObject({ attempts: 2, removeOnComplete: true });
  });

  idiom('repeat-none-emitted', async () => {
    const queue = stage.queue();
    const ids: unknown[] = [];
    queue.on('waiting', (job) => ids.push(job.name));
    await queue.add('tick', {}, { repeat: { every: HOUR } });
    await queue.add('plain', {});
    expect(ids).toEqual(['plain']);
  });
});
