// A program that adds faster than the server takes jobs is told, and keeps its memory (docs/guarantees.md).
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Queue, QueueOptions } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';

const LIMIT_MS = 300_000;

describe('backpressure', () => {
  const stage = useStage(chasquimq);
  let own: OwnServer;

  beforeEach(async () => {
    own = await OwnServer.start();
  }, LIMIT_MS);

  afterEach(() => own.close());

  const open = (maxPendingAdds?: number): Queue => {
    const opts = { connection: own.connection, maxPendingAdds } as unknown as QueueOptions;
    // while the server is gone its connection says so
    const queue = stage.watch(new chasquimq.Queue(stage.queueName, opts));
    queue.on('error', () => stage.takeErrors());
    return queue;
  };

  it(
    'adds past the limit reject while the server is gone, and those within it are added',
    { timeout: LIMIT_MS },
    async () => {
      const queue = open(100);
      await queue.add('first', 0);
      await own.kill();
      const outcomes: Promise<string>[] = [];
      // in ticks of ten: what one tick adds is sent at its end
      for (let tick = 0; tick < 20; tick++) {
        for (let n = 0; n < 10; n++) {
          outcomes.push(
            queue.add('job', n).then(
              () => 'added',
              (error: Error) => error.message,
            ),
          );
        }
        await new Promise(setImmediate);
      }
      const refused = '100 added jobs are without an answer, which is the limit (maxPendingAdds)';
      expect(await Promise.all(outcomes.slice(100))).toEqual(Array.from({ length: 100 }, () => refused));
      await expect(queue.addBulk([{ name: 'job', data: 1 }])).rejects.toThrow(refused);
      await own.start();
      expect(await Promise.all(outcomes.slice(0, 100))).toEqual(Array.from({ length: 100 }, () => 'added'));
      await queue.addBulk(Array.from({ length: 1_000 }, (_, n) => ({ name: 'job', data: n })));
      expect(await queue.getWaitingCount()).toBe(1_100);
      stage.takeErrors();
    },
  );

  it('adds of one tick count as well', { timeout: LIMIT_MS }, async () => {
    const queue = open(5_000);
    await queue.add('first', 0);
    const outcomes = await Promise.allSettled(Array.from({ length: 20_000 }, (_, n) => queue.add('job', n)));
    const added = outcomes.filter(({ status }) => status === 'fulfilled').length;
    // the limit is met by a batch of up to 4,096 jobs
    expect(added >= 5_000 && added < 5_000 + 4_096, String(added)).toBe(true);
    expect(await queue.getWaitingCount()).toBe(1 + added);
  });

  it.each([0, -1, NaN])('a limit of %s is refused', (limit) => {
    expect(() => open(limit)).toThrow(RangeError);
  });
});
