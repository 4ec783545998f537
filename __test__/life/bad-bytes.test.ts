// Bytes that no script wrote, where jobs lie: the job that cannot be read fails and says why, and the jobs around it are run.
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Job, Queue, Worker } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { keysContaining, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

const LIMIT_MS = 100_000;
const EVERY_STATE = ['waiting', 'active', 'delayed', 'prioritized', 'completed', 'failed'] as const;

type Entry = [id: Buffer, fields: Buffer[]];

// unreadable-jobs: a wanted difference (docs/differences.md)
describe('bad bytes', () => {
  const stage = useStage(chasquimq);
  let redis: Redis;
  let queue: Queue;

  beforeEach(() => {
    redis = redisClient();
    queue = stage.queue();
  });

  afterEach(() => redis.quit());

  const key = (suffix: string) => `{bull:${stage.queueName}}:${suffix}`;
  const add = (count: number) => queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: 'job', data: n })));
  const ids = (jobs: Job[]) => jobs.map(({ id }) => String(id));

  /** Runs all jobs. Gives the ids of those that completed, and why the others failed. */
  async function run(jobs: number, concurrency: number): Promise<{ done: string[]; failed: Record<string, string> }> {
    const done: string[] = [];
    const failed: Record<string, string> = {};
    const worker: Worker = stage.worker(async (job) => void (await Promise.resolve(job.data)), { concurrency });
    worker.on('completed', (job) => done.push(String(job.id)));
    worker.on('failed', (job, error) => (failed[String(job?.id)] = error.message));
    const ended = () => done.length + Object.keys(failed).length;
    await until(`${jobs} jobs to end, ${ended()} did`, () => ended() === jobs, LIMIT_MS);
    // what cannot be read is an `error` of the worker, too
    await until('errors', () => Object.keys(failed).length === 0 || stage.takeErrors().length > 0, LIMIT_MS);
    stage.takeErrors();
    expect(await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized')).toEqual({
      waiting: 0,
      active: 0,
      delayed: 0,
      prioritized: 0,
    });
    await worker.close();
    stage.takeErrors();
    return { done: done.sort((a, b) => Number(a) - Number(b)), failed };
  }

  /** Puts other fields into the log's entries, which keep their ids. */
  async function rewriteLog(change: (fields: Buffer[]) => (Buffer | string)[]): Promise<void> {
    const entries = (await redis.xrangeBuffer(key('log'), '-', '+')) as unknown as Entry[];
    await redis.del(key('log'));
    for (const [id, fields] of entries) await redis.xadd(key('log'), id, ...(change(fields) as [string, string]));
  }

  // a worker with one slot has its jobs from a frame that is broken on the server, the other one reads it whole
  describe.each([1, 100])('at concurrency %i', (concurrency) => {
    it('a stray entry in the log fails by itself, and jobs go on being added', async () => {
      const jobs = await add(3);
      const stray = await redis.xadd(key('log'), '1700000000000-0', 'who', 'knows');
      jobs.push(...(await add(3)));
      const again = await redis.xadd(key('log'), '1700000000000-70', 'f', 'knows', 'that', 'too');
      expect(await queue.getJobs([...EVERY_STATE])).toHaveLength(7);
      jobs.push(await queue.add('named', 1, { jobId: 'named' }));
      const { done, failed } = await run(9, concurrency);
      expect([...done].sort()).toEqual(ids(jobs).sort());
      expect(Object.keys(failed).sort()).toEqual([`unreadable-${stray}`, `unreadable-${again}`].sort());
      expect(Object.values(failed)[0]).toMatch(/^could not be read: /);
      const [found] = await queue.getFailed();
      expect(found.failedReason).toMatch(/^could not be read: /);
      expect((await redis.hget(key('jobs'), found.id ?? '')) ?? '').toContain('knows');
      await found.remove();
      expect(await queue.getFailedCount()).toBe(1);
    });

    it('of a truncated frame the jobs before the end are run', async () => {
      const jobs = ids(await add(5));
      await rewriteLog(([field, blob]) => [field, blob.subarray(0, blob.length - 4)]);
      expect(ids(await queue.getWaiting())).toEqual(jobs);
      const { done, failed } = await run(5, concurrency);
      expect(done).toEqual(jobs.slice(0, 3));
      expect(Object.keys(failed)).toEqual(jobs.slice(3));
      expect(new Set(Object.values(failed))).toEqual(new Set([failed[jobs[4]]]));
      expect(failed[jobs[4]]).toMatch(/^could not be read: /);
      expect((await queue.getFailed()).map((job) => job.failedReason)).toEqual(Object.values(failed).reverse());
    });

    it.each(['', 'garbage', '\u0091\u0091', '{}'])('a frame of %j fails, and no other one', async (bytes) => {
      const bad = ids(await add(3));
      await rewriteLog(([field]) => [field, bytes]);
      const good = ids(await add(3));
      expect(ids(await queue.getWaiting())).toEqual([...bad, ...good]);
      const { done, failed } = await run(6, concurrency);
      expect([done, Object.keys(failed)]).toEqual([good, bad]);
    });

    it.each([
      ['jobs', 'garbage'],
      // an array of more values than there are
      ['jobs', Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff])],
      // a map: a version that is not there yet
      ['jobs', Buffer.from([0x81, 0xa4, 0x6e, 0x61, 0x6d, 0x65, 0xa1, 0x78])],
      // a body of which the options are none
      ['jobs', Buffer.from([0x94, 0x01, 0xa3, 0x6e, 0x6f, 0x65, 0xa1, 0x61, 0xa1, 0x31])],
      ['vitals', 'garbage'],
      // tries that are a text
      ['vitals', Buffer.from([0x81, 0xa2, 0x61, 0x6d, 0xa1, 0x78])],
    ])('a record with other bytes in %s fails, in whatever line it stands', async (hash, bytes) => {
      const opts = [{}, { priority: 3 }, { delay: 5 }, { lifo: true }];
      const add = (prefix: string) =>
        Promise.all(opts.map((opt, n) => queue.add('job', n, { ...opt, jobId: `${prefix}${n}` })));
      const bad = ids(await add('bad'));
      const good = ids(await add('good'));
      for (const id of bad) await redis.hset(key(hash), id, bytes);
      expect(ids(await queue.getJobs([...EVERY_STATE])).sort()).toEqual([...bad, ...good].sort());
      const { done, failed } = await run(8, concurrency);
      expect([...done].sort()).toEqual(good);
      expect(Object.keys(failed).sort()).toEqual(bad);
      for (const job of await queue.getFailed()) {
        expect(job.failedReason).toMatch(/^could not be read: /);
        expect(await job.getState()).toBe('failed');
      }
      await queue.retryJobs({ state: 'failed' });
      expect((await queue.getWaitingCount()) + (await queue.getPrioritizedCount())).toBe(4);
      await queue.drain();
      await queue.clean(0, 100, 'failed');
      await queue.obliterate();
      // what answers calls that are sent again expires by itself
      const left = (await keysContaining(redis, stage.queueName)).filter((name) => !name.startsWith(key('memo:')));
      expect(left).toEqual([]);
    });
  });

  it('values that are no JSON keep no getter from the others', async () => {
    await add(2);
    const worker = stage.worker(async (job) => job.data as number);
    await until('jobs to complete', async () => (await queue.getCompletedCount()) === 2, LIMIT_MS);
    await worker.close();
    const job = await queue.add('job', 1, { jobId: 'one' });
    // {p: 'nope', tr: 'nope'}
    await redis.hset(key('vitals'), 'one', Buffer.from([0x81, 0xa1, 0x70, 0xa4, 0x6e, 0x6f, 0x70, 0x65]));
    await redis.hset(key('traces'), 'one', 'nope');
    const [found] = await queue.getWaiting();
    expect([found.id, found.progress, found.stacktrace]).toEqual([job.id, 0, []]);
    const failing = stage.worker(() => Promise.reject(new Error('no')));
    await until('the job to fail', () => queue.getFailedCount(), LIMIT_MS);
    await failing.close();
    expect((await queue.getFailed())[0].stacktrace).toHaveLength(1);
  });

  it('events that nobody wrote are passed over', async () => {
    const events = stage.events();
    const seen: string[] = [];
    events.on('waiting', ({ jobId }) => seen.push(jobId));
    await events.waitUntilReady();
    const [one] = await add(1);
    await redis.xadd(key('events'), '*', 'who', 'knows');
    // above the time of every event to come
    await redis.xadd(key('events'), '99999999999999-5', 'e', 'knows');
    const [two] = await add(1);
    await until('both events', () => seen.length === 2, LIMIT_MS);
    expect(seen).toEqual(ids([one, two]));
  });
});
