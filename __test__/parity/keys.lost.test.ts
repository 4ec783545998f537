// A key of a queue is deleted, one after the other in queues of their own: what is added later runs, and nothing runs again that has ended.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Redis } from 'ioredis';
import type { Job } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { keysContaining, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

const LATER = ['later-1', 'later-2', 'later-3'];

describe.each(libraries)('$name: keys.lost', ({ lib }) => {
  const stage = useStage(lib);
  let redis: Redis;
  beforeEach(() => {
    redis = redisClient();
  });
  afterEach(() => redis.quit());

  /** Three jobs have completed, three wait, and one is delayed. Gives the names of the queue's keys. */
  async function begin(part: string): Promise<string[]> {
    const queue = stage.queue({}, part);
    const worker = stage.worker(async () => 'done', {}, part);
    await queue.addBulk([1, 2, 3].map((id) => ({ name: 'job', data: {}, opts: { jobId: `ended-${id}` } })));
    await until('three completed jobs', async () => (await queue.getCompletedCount()) === 3);
    await worker.close();
    await queue.addBulk([1, 2, 3].map(() => ({ name: 'job', data: {} })));
    await queue.add('job', {}, { delay: 50 });
    return (await keysContaining(redis, stage.name(part))).sort();
  }

  async function goOnWithout(key: string, part: string): Promise<void> {
    const queue = stage.queue({}, part);
    expect(await redis.del(key)).toBe(1);
    const added = await Promise.all(LATER.map((jobId) => queue.add('job', {}, { jobId })));
    expect(added.map(({ id }) => id)).toEqual(LATER);
    const starts: string[] = [];
    const run = async ({ id = '' }: Job) => void starts.push(id);
    const worker = stage.worker(run, { concurrency: 2, stalledInterval: 200 }, part);
    await until(`jobs that were added without ${key}`, () => LATER.every((id) => starts.includes(id)));
    await worker.close();
    expect(starts.filter((id) => id.startsWith('ended-'))).toEqual([]);
    expect(starts.filter((id, at) => starts.indexOf(id) !== at)).toEqual([]);
    for (const count of Object.values(await queue.getJobCounts())) {
      expect(count).toBeGreaterThanOrEqual(0);
      expect(count).toBeLessThanOrEqual(10);
    }
  }

  it('a queue takes and runs later adds, whichever of its keys is gone', async () => {
    const keys = await begin('0');
    for (let at = 0; at < keys.length; at++) {
      const part = String(at + 1);
      const found = await begin(part);
      // a lock, or what a client is known by, may be over, and have another name
      if (found[at]) await goOnWithout(found[at], part);
    }
    expect(keys.length).toBeGreaterThan(5);
    // a job that waits and is gone is told of
    stage.takeErrors();
  });
});
