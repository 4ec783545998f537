// Pins that whatever a handler asks of its job, and does not await, sees the job as it runs; and that a scheduler is removed behind its upsert.
import type { Job, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { libraries } from '../support/libraries.js';
import { server } from '../support/redis.js';
import { useStage } from '../support/stage.js';

const TIMES = 10;

describe.each(libraries)('$name: calls that are not awaited', ({ lib }) => {
  const stage = useStage(lib);

  it.each<[string, unknown, (job: Job, token: string, queue: Queue) => Promise<unknown>]>([
    ['getState', 'active', (job) => job.getState()],
    ['extendLock', 1, (job, token) => job.extendLock(token, 30_000)],
    ['remove of the queue', 0, (job, _, queue) => queue.remove(job.id as string)],
    ['getChildrenValues', {}, (job) => job.getChildrenValues()],
  ])('%s', async (_, expected, call) => {
    // BullMQ's queue and worker have a connection each, and the server may read from the second one first: here they share one
    const shared = new Redis({ ...server, lazyConnect: true, maxRetriesPerRequest: null });
    stage.keep({ close: async () => shared.disconnect() });
    const opts = lib === chasquimq ? {} : { connection: shared };
    const queue = stage.queue(opts);
    const answers: Promise<unknown>[] = [];
    const worker = stage.worker(async (job, token) => void answers.push(call(job, token as string, queue)), opts);
    for (let i = 0; i < TIMES; i++) {
      const ended = new Promise((resolve) => {
        worker.once('completed', resolve);
      });
      await queue.add('job', i, { removeOnComplete: true });
      await ended;
    }
    expect(await Promise.all(answers)).toEqual(Array.from({ length: TIMES }, () => expected));
  });

  it('getChildrenValues of a parent that is removed at its end', async () => {
    const flow = stage.flowProducer();
    const values: Promise<unknown>[] = [];
    const worker = stage.worker(async (job) => {
      if (job.name === 'child') return 'value';
      values.push(job.getChildrenValues().then((found) => Object.values(found)));
      return undefined;
    });
    const { queueName } = stage;
    for (let i = 0; i < TIMES; i++) {
      const ended = new Promise<void>((resolve) => {
        worker.on('completed', ({ name }) => name === 'parent' && resolve());
      });
      await flow.add({
        name: 'parent',
        queueName,
        opts: { removeOnComplete: true },
        children: [{ name: 'child', queueName }],
      });
      await ended;
    }
    expect(await Promise.all(values)).toEqual(Array.from({ length: TIMES }, () => ['value']));
  });

  it('a scheduler that is removed, and made again at once, is there', async () => {
    const queue = stage.queue();
    const upsert = (name: string) => queue.upsertJobScheduler('s', { every: 5_000 }, { name });
    await Promise.all([upsert('a'), queue.removeJobScheduler('s'), upsert('b')]);
    expect(await queue.getJobSchedulers()).toMatchObject([{ key: 's', name: 'b' }]);
  });

  it('a scheduler that is removed at once is gone', async () => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    const upserted = queue.upsertJobScheduler('s', { every: 5_000 }, { name: 'a' });
    const found = queue.getJobScheduler('s');
    const removed = queue.removeJobScheduler('s');
    await upserted;
    expect(await found).toMatchObject({ key: 's' });
    expect(await removed).toBe(true);
    expect(await queue.getJobSchedulersCount()).toBe(0);
  });
});
