// A key of the queue that holds something else: the server's words reach whoever asked, and once the key is gone
// everything works, with nothing lost.
import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { addKinds, failAtFirst } from '../support/kinds.js';
import { connection, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

/** A refused step is tried again after a second. */
const RECOVERY_MS = 25_000;

/** As in the heads of the scripts (crates/chasquimq/lua). */
const SUFFIXES = [
  ...['state', 'meta', 'log', 'front', 'takes', 'frames', 'jobs', 'vitals', 'traces', 'active', 'delayed'],
  ...['completed', 'runs', 'failed', 'events', 'wake', 'stalled'],
];

describe('foreign-keys', () => {
  const stage = useStage(chasquimq);

  /** Uses a queue on which `suffix` is taken, then frees the key. What does not go well is thrown. */
  async function play(suffix: string, redis: Redis): Promise<void> {
    const name = `${stage.queueName}-${suffix}`;
    const key = `{bull:${name}}:${suffix}`;
    // A set: no key of a queue is one.
    await redis.sadd(key, 'foreign');

    const queue = stage.watch(new chasquimq.Queue(name, { connection }));
    const completed = new Set<string>();
    const worker = new chasquimq.Worker(name, failAtFirst, { connection, concurrency: 2, stalledInterval: 100 });
    stage.keep(worker).on('completed', (job: Job) => completed.add(String(job.id)));
    const told: string[] = [];
    worker.on('error', ({ message }) => told.push(message));

    const added: string[] = [];
    for (const outcome of await Promise.allSettled(addKinds(queue, 1))) {
      if (outcome.status === 'fulfilled') added.push(String(outcome.value.id));
      else told.push(String((outcome.reason as Error).message));
    }
    const done = () => added.every((id) => completed.has(id));
    await until('the jobs to complete or an error', () => told.length > 0 || done());
    expect(await redis.type(key)).toBe('set');

    await redis.del(key);
    added.push(...(await Promise.all(addKinds(queue, 2))).map(({ id }) => String(id)));
    await until(`jobs ${added.join()} to complete; ${told.join('; ')}`, done, RECOVERY_MS);
    const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'failed');
    expect(counts).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    expect(told.filter((message) => !message.includes('WRONGTYPE'))).toEqual([]);
  }

  it('a queue works once its keys are its own', async () => {
    const redis = redisClient();
    const outcomes = await Promise.all(
      SUFFIXES.map((suffix) =>
        play(suffix, redis).then(
          () => [suffix, 'works'],
          (error: Error) => [suffix, error.message],
        ),
      ),
    );
    await redis.quit();
    expect(Object.fromEntries(outcomes)).toEqual(Object.fromEntries(SUFFIXES.map((suffix) => [suffix, 'works'])));
  });
});
