/** Workers that wait to be told of work. */
import type { Redis } from 'ioredis';
import { until } from './waiting.js';

/** Waits until so many workers of a queue wait. */
export async function untilWaiting(redis: Redis, queueName: string, workers: number): Promise<void> {
  const key = `{bull:${queueName}}:waiting-workers`;
  await until(`${workers} waiting workers`, async () => (await redis.scard(key)) === workers);
}
