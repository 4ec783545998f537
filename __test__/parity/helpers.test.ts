// Functions that programs and their tests use beside the classes.
import { describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: helpers', ({ lib }) => {
  const stage = useStage(lib);

  describe('delay', () => {
    it('resolves after its time', async () => {
      const started = performance.now();
      expect(await lib.delay(20)).toBeUndefined();
      expect(performance.now() - started).toBeGreaterThan(18);
    });

    it('resolves at once when it is aborted', async () => {
      const controller = new AbortController();
      const waiting = lib.delay(1_000_000, controller as Parameters<typeof lib.delay>[1]);
      controller.abort();
      expect(await waiting).toBeUndefined();
    });
  });

  describe('Worker#delay', () => {
    it('resolves after its time, 100 ms by default', async () => {
      const worker = stage.worker(null);
      for (const [given, ms] of [[20, 20] as const, [0, 100] as const, [undefined, 100] as const]) {
        const started = performance.now();
        expect(await worker.delay(given)).toBeUndefined();
        expect(performance.now() - started).toBeGreaterThan(ms - 2);
      }
    });

    it('resolves at once when it is aborted', async () => {
      const controller = new AbortController();
      const waiting = stage.worker(null).delay(1_000_000, controller as Parameters<typeof lib.delay>[1]);
      controller.abort();
      expect(await waiting).toBeUndefined();
    });
  });

  describe('removeAllQueueData', () => {
    it('removes jobs in every state, and what belongs to them', async () => {
      const queue = stage.queue({ skipMetasUpdate: true });
      const worker = stage.worker(() => new Promise(() => {}));
      const active = new EventLog(worker, ['active']);
      await queue.addBulk([
        { name: 'a', data: 1 },
        { name: 'b', data: 1, opts: { delay: 1_000_000 } },
      ]);
      await active.get('active');
      await worker.close(true);
      const client = redisClient();
      const ended = new EventLog(client, ['end']);
      await lib.removeAllQueueData(client, stage.queueName);
      await ended.get('end');
      expect(await queue.getJobCounts()).toMatchObject({ active: 0, delayed: 0, waiting: 0 });
      expect(await queue.getJob('1')).toBeUndefined();
    });

    it('leaves other queues alone, of the same name under another prefix too', async () => {
      const queue = stage.queue({ prefix: 'other' });
      await queue.add('a', 1);
      await lib.removeAllQueueData(redisClient(), stage.queueName);
      expect(await queue.count()).toBe(1);
      await lib.removeAllQueueData(redisClient(), stage.queueName, 'other');
      expect(await queue.count()).toBe(0);
    });

    it('leaves a cluster, and its client, as they are', async () => {
      const cluster = { isCluster: true, quit: () => Promise.reject(new Error('it quits')) };
      expect(await lib.removeAllQueueData(cluster as never, stage.queueName)).toBe(false);
    });
  });
});
