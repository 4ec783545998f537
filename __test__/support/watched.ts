import { afterEach, beforeEach } from 'vitest';
import type { Redis } from 'ioredis';
import { redisClient } from './redis.js';
import type { Stage } from './stage.js';
import { watchdog } from './watchdog.js';
import type { Watchdog, WatchdogOptions } from './watchdog.js';

/** Watches over each test of a file that is about the stage's queues, from behind its beginning to before its end; see watchdog.ts. */
export function useWatchdog(stage: Stage, options: WatchdogOptions = {}): void {
  let redis: Redis;
  let dog: Watchdog;
  beforeEach(async () => {
    redis = redisClient();
    dog = await watchdog(redis, { about: stage.queueName, ...options });
  });
  afterEach(async () => {
    await dog.end().finally(() => redis.quit());
  });
}
