// A connection that is reset: while the event loop is busy, so that what was answered before is read together with the reset; and behind an add of which the
// answer is lost.
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker as Thread } from 'node:worker_threads';
import type { Queue } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { rejection } from '../support/waiting.js';

const PROXY = new URL('programs/resetting-proxy.mjs', import.meta.url);
/** Milliseconds for which the event loop reads nothing: the answer and the reset come meanwhile. */
const BUSY_MS = 300;
/** Adds before, so that the queue has the connection of its adds. */
const BEFORE = 20;

describe('a connection that is reset', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();

  async function open(): Promise<{ proxy: Thread; queue: Queue }> {
    const proxy = new Thread(PROXY, { workerData: own.connection });
    stage.keep({ close: async () => void (await proxy.terminate()) });
    const [port] = (await once(proxy, 'message')) as [number];
    const queue = stage.queue({ connection: { ...own.connection, port } });
    for (let i = 0; i < BEFORE; i++) await queue.add('before', i);
    return { proxy, queue };
  }

  it('behind an answer that is not read yet loses no add behind that', async () => {
    const { proxy, queue } = await open();
    proxy.postMessage('answer');
    await once(proxy, 'message');
    const adds = [];
    for (let i = 0; i < 5; i++) {
      adds.push(queue.add('job', i));
      // a call each
      await nextTurn();
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS);
    const ids = (await Promise.all(adds)).map(({ id }) => Number(id));
    expect(ids).toEqual(adds.map((_, i) => BEFORE + i + 1));
    expect(await queue.count()).toBe(BEFORE + adds.length);
    stage.takeErrors();
  });

  it.each<[string, (queue: Queue) => Promise<{ id?: string | undefined }>]>([
    ['plain', (queue) => queue.add('job', 1)],
    ['delayed', (queue) => queue.add('job', 1, { delay: 60_000 })],
  ])(
    'instead of an answer refuses no add that was carried out, though the server is full by now: %s',
    async (_, add) => {
      const { proxy, queue } = await open();
      proxy.postMessage('swallow');
      await once(proxy, 'message');
      const added = add(queue);
      await once(proxy, 'message');
      await own.redis.config('SET', 'maxmemory', '1');
      proxy.postMessage('reset');
      expect((await added).id).toBe(String(BEFORE + 1));
      expect((await rejection(queue.add('job', 2))).message).toMatch(/^OOM/);
      await own.redis.config('SET', 'maxmemory', '0');
      expect(await queue.count()).toBe(BEFORE + 1);
      stage.takeErrors();
    },
  );
});
