// What an obliterated queue leaves: what the server knows calls by, for a minute, and where its events ended, for two.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { keysContaining, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000];

describe('queue.obliterate', () => {
  const stage = useStage(chasquimq);

  it('nothing stays for longer than two minutes, whoever used the queue', async () => {
    const redis = redisClient();
    const [queue, ...others] = [stage.queue(), stage.queue(), stage.queue()];
    const worker = stage.worker(async () => 'done');
    await Promise.all(others.map((other) => other.add('job', {}, { jobId: undefined })));
    await until('two completed jobs', async () => (await queue.getCompletedCount()) === 2);
    await others[0].add('later', {}, { delay: HOUR_MS });
    await worker.close();
    const memos = (keys: readonly string[]) => keys.filter((key) => key.includes(':memo:'));
    expect(memos(await keysContaining(redis, queue.name)).length).toBeGreaterThan(2);
    await queue.obliterate();

    const left = await keysContaining(redis, queue.name);
    expect(left.filter((key) => !/:(memo|lease):/.test(key))).toEqual([]);
    for (const key of left) {
      const ms = await redis.pttl(key);
      expect(ms, key).toBeGreaterThan(0);
      expect(ms, key).toBeLessThanOrEqual(key.endsWith(':last-event') ? 2 * MINUTE_MS : MINUTE_MS);
    }
    await redis.quit();
  });

  it('calls of a queue that is in use again are remembered for as long as any', async () => {
    const redis = redisClient();
    const [queue, other] = [stage.queue(), stage.queue()];
    await queue.add('job', {});
    await queue.obliterate();
    await other.add('job', {});
    const lasting = [];
    for (const key of await keysContaining(redis, queue.name)) {
      if ((await redis.pttl(key)) > HOUR_MS / 2) lasting.push(key);
    }
    expect(lasting).toEqual([expect.stringContaining(':memo:')]);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 1 });
    await redis.quit();
  });
});
