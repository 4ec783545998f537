// A server that deletes keys when it is full (`noeviction` is what it should have): adds are taken, or refused in the server's words, and counts stay
// those of jobs.
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import type { Queue } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { rejection, until } from '../support/waiting.js';

const OOM = /^OOM command not allowed when used memory > 'maxmemory'/;
const BATCH = 20;
/** What is left when the server begins to be full. */
const ROOM = 2_000_000;

describe('server.evicting', () => {
  const stage = useStage(chasquimq);
  let admin: Redis | undefined;
  afterEach(async () => {
    await admin?.quit();
    admin = undefined;
  });

  async function start(policy: string) {
    const own = stage.keep(await OwnServer.start('--maxmemory-policy', policy));
    admin = own.client();
    return { ...own, connection: own.connection, admin };
  }

  const info = async (redis: Redis, name: string) =>
    Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(await redis.info('all'))?.[1]);

  async function limitMemory(redis: Redis): Promise<void> {
    await redis.config('SET', 'maxmemory', String((await info(redis, 'used_memory')) + ROOM));
  }

  /** Adds a batch of jobs whose data begin with their numbers, from `from` on. Of two batches one lies in a key of its own. */
  function addSome(queue: Queue, from: number) {
    const pad = 'x'.repeat(from % (2 * BATCH) === 0 ? 2_000 : 500);
    return queue.addBulk(Array.from({ length: BATCH }, (_, at) => ({ name: 'job', data: { number: from + at, pad } })));
  }

  it.each(['volatile-lru', 'volatile-ttl', 'volatile-random'])(
    '%s: what expires goes first, then adds are refused, and each that was taken is there once',
    async (policy) => {
      const { connection, admin: redis } = await start(policy);
      const queue = stage.queue({ connection, skipVersionCheck: true });
      // an object of its own a batch: each has a memory of its own in the server
      const add = (from: number) => addSome(stage.queue({ connection, skipVersionCheck: true }), from);
      let taken = 0;
      await add(taken);
      taken += BATCH;
      await limitMemory(redis);
      const filling = async () => {
        for (; ; taken += BATCH) await add(taken);
      };
      expect((await rejection(filling())).message).toMatch(OOM);
      expect(await info(redis, 'evicted_keys')).toBeGreaterThan(0);
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: taken });

      await redis.config('SET', 'maxmemory', '0');
      const numbers: number[] = [];
      const worker = stage.worker(async ({ data }) => void numbers.push(data.number), {
        connection,
        concurrency: 10,
        skipVersionCheck: true,
      });
      await until('all jobs to run', () => numbers.length >= taken);
      await worker.close();
      expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: taken }, (_, at) => at));
      expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 0, active: 0 });
    },
  );

  it.each(['allkeys-lru', 'allkeys-random'])(
    '%s: all later adds are taken and run, and counts are those of jobs',
    async (policy) => {
      const { connection, admin: redis } = await start(policy);
      const queue = stage.queue({ connection, skipVersionCheck: true });
      await addSome(queue, 0);
      await limitMemory(redis);
      for (let added = BATCH; added < 6_000; added += BATCH) {
        expect(await addSome(queue, added)).toHaveLength(BATCH);
        for (const count of Object.values(await queue.getJobCounts())) {
          expect(count).toBeGreaterThanOrEqual(0);
          expect(count).toBeLessThanOrEqual(added + BATCH);
        }
      }
      expect(await info(redis, 'evicted_keys')).toBeGreaterThan(0);
      await redis.config('SET', 'maxmemory', '0');
      await addSome(queue, -BATCH);
      const numbers: number[] = [];
      const run = async ({ data }: { data: { number: number } }) => void numbers.push(data.number);
      const worker = stage.worker(run, { connection, concurrency: 10, stalledInterval: 200, skipVersionCheck: true });
      await until('the last jobs to run', () => numbers.filter((number) => number < 0).length >= BATCH);
      await until('nothing to do', async () => {
        const { waiting, active } = await queue.getJobCounts();
        return waiting === 0 && active === 0;
      });
      await worker.close();
      // jobs whose data were deleted fail
      for (const { message } of stage.takeErrors()) expect(message).toMatch(/is not readable/);
      expect(numbers.filter((number, at) => numbers.indexOf(number) !== at)).toEqual([]);
    },
  );
});
