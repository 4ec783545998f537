// A key of a queue in use is replaced by one of another type, and put right again. What was under way may be left half done (see
// docs/chaos.md); the queue goes on: what is added from then on is run, once.
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { addKinds, failAtFirst } from '../support/kinds.js';
import { redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

const LIMIT_MS = 300_000;
const WAIT_MS = 100_000;

const SUFFIXES = [
  ...['state', 'meta', 'log', 'front', 'takes', 'jobs', 'vitals', 'traces', 'active', 'delayed', 'prioritized'],
  ...['completed', 'runs', 'events', 'wake'],
];

describe('keys.replaced', () => {
  const stage = useStage(chasquimq);

  it.each(SUFFIXES)('a queue goes on once its key %s is its own again', { timeout: LIMIT_MS }, async (suffix) => {
    const redis = redisClient();
    const queue = stage.queue();
    const [key, aside] = [`{bull:${queue.name}}:${suffix}`, `{bull:${queue.name}}:aside`];
    const told: string[] = [];
    const completed = new Map<string, number>();
    const worker = stage.worker(failAtFirst, { concurrency: 2 });
    worker.on('error', ({ message }) => told.push(message));
    worker.on('completed', ({ id = '' }) => completed.set(id, (completed.get(id) ?? 0) + 1));
    const all = async (jobs: readonly Job[]) =>
      until(
        `all of ${jobs.map(({ id }) => id).join()}; ${told.join('; ')}`,
        () => jobs.every(({ id = '' }) => completed.has(id)),
        WAIT_MS,
      );

    await all(await Promise.all(addKinds(queue, 1)));
    await redis.multi().rename(key, aside).sadd(key, 'foreign').exec();
    const outcomes = await Promise.allSettled(addKinds(queue, 2));
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') told.push(String((outcome.reason as Error).message));
    const isDone = () =>
      outcomes.every((outcome) => outcome.status === 'fulfilled' && completed.has(String(outcome.value.id)));
    await until('an error, or all jobs to complete', () => told.length > 0 || isDone(), WAIT_MS);
    await redis.multi().del(key).rename(aside, key).exec();

    const later = await Promise.all(addKinds(queue, 3));
    await all(later);
    expect(later.map(({ id = '' }) => completed.get(id))).toEqual(later.map(() => 1));
    for (const message of told) expect(message).toMatch(/^WRONGTYPE|^Missing (lock|key) for job/);
    await worker.close();
    stage.takeErrors();
    await redis.quit();
  });
});
