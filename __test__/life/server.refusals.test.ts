// A call whose answer was lost is sent again, and by then the server refuses it: what the first one did counts.
import type { FlowProducer, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { Proxy } from '../support/proxy.js';
import { keysContaining } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { rejection, until } from '../support/waiting.js';

/** How a server comes to refuse what writes, how it ends, and its words. */
const REFUSALS = [
  ['NOREPLICAS', ['min-replicas-to-write', '1', '0']],
  ['OOM', ['maxmemory', '1', '0']],
] as const;

const JOB = { name: 'job', data: {} };

describe('server.refusals', () => {
  const stage = useStage(chasquimq);
  let own: OwnServer;
  let proxy: Proxy;
  let admin: Redis;
  let losesAnswers: boolean;
  beforeEach(async () => {
    own = await OwnServer.start('--maxmemory-policy', 'noeviction');
    stage.keep(own);
    admin = own.client();
    losesAnswers = false;
    proxy = stage.keep(new Proxy());
    proxy.upstream = own.connection;
    proxy.holdAnswer = () => (losesAnswers ? new Promise(() => {}) : undefined);
    await proxy.open();
  });
  afterEach(async () => {
    await admin.quit();
  });

  const connection = () => ({ host: '127.0.0.1', port: proxy.port });

  describe.each(REFUSALS)('%s', (words, [setting, on, off]) => {
    it.each([
      ['add', 1, (queue: Queue) => queue.add('job', {})],
      ['addBulk', 2, (queue: Queue) => queue.addBulk([JOB, JOB])],
      ['add of a flow', 1, ({ name: queueName }: Queue, flows: FlowProducer) => flows.add({ ...JOB, queueName })],
    ] as const)(
      'an %s that was carried out resolves, though it is refused when it is sent again',
      async (_, jobs, add) => {
        const look = stage.queue({ connection: own.connection });
        const waiting = async () => (await look.getJobCounts('waiting')).waiting;
        const [queue, flows] = [
          stage.queue({ connection: connection() }),
          stage.flowProducer({ connection: connection() }),
        ];
        await add(queue, flows);
        losesAnswers = true;
        const added = add(queue, flows);
        await until('the second', async () => (await waiting()) === 2 * jobs);
        await admin.config('SET', setting, on);
        losesAnswers = false;
        proxy.cut();
        await added;
        await admin.config('SET', setting, off);
        expect(await waiting()).toBe(2 * jobs);
      },
    );

    it('the slot of a call that was refused is no other call’s: a copy of it may be under way', async () => {
      const queue = stage.queue({ connection: connection() });
      await queue.add('job', {});
      await admin.config('SET', setting, on);
      expect((await rejection(queue.add('job', {}))).message).toMatch(new RegExp(`^${words}`));
      await admin.config('SET', setting, off);
      await queue.add('job', {});
      // what the server remembers of calls, by client and slot
      expect((await keysContaining(admin, ':memo:')).map((key) => key.split(':').at(-1)).sort()).toEqual(['0', '1']);
    });
  });
});
