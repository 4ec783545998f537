// Pins wanted differences in connections, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { keysContaining, redisClient, server } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { rejection } from '../support/waiting.js';

describe.each(libraries)('$name: differences, connections', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = <T>(sides: { bullmq: T; chasquimq: T }): T => (name === 'bullmq' ? sides.bullmq : sides.chasquimq);

  it('closed-errors', async () => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    await queue.close();
    const error = await rejection(queue.getJobCounts());
    expect([error.message, error.name]).toEqual([
      'Connection is closed.',
      of({ bullmq: 'Error', chasquimq: 'ConnectionClosedError' }),
    ]);
  });

  it('keys-of-its-own', async () => {
    await stage.queue().add('job', {});
    const redis = redisClient();
    const keys = await keysContaining(redis, stage.queueName);
    await redis.quit();
    const base = of({ bullmq: `bull:${stage.queueName}:`, chasquimq: `{bull:${stage.queueName}}:` });
    expect([keys.length > 0, keys.filter((key) => !key.startsWith(base))]).toEqual([true, []]);
  });

  it('ioredis-is-read', async () => {
    const shared = new Redis({ ...server, lazyConnect: true, maxRetriesPerRequest: null });
    await stage.queue({ connection: shared }).add('job', {});
    expect(shared.status).toBe(of({ bullmq: 'ready', chasquimq: 'wait' }));
    stage.keep({ close: async () => shared.disconnect() });
  });
});
