// A worker thread that ends without a close leaves nothing open.
import { Worker as Thread } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';

const BUSY = new URL('programs/thread.mjs', import.meta.url);

describe('worker threads', () => {
  const own = useOwnServer();

  async function connections(): Promise<number> {
    const clients = (await own.redis.client('LIST')) as string;
    return clients.trim().split('\n').length;
  }

  it.each(['add', 'ask', 'look'])('that are ended while they are busy (%s) leave no connection open', async (does) => {
    // the engine's thread belongs to this one, too
    const { Queue } = await import('../../src/index.js');
    const queue = new Queue('this-thread', { connection: own.connection });
    await queue.waitUntilReady();
    const before = await connections();
    for (let i = 0; i < 5; i++) {
      const workerData = { name: `thread-${does}-${i}`, connection: own.connection, does };
      const thread = new Thread(BUSY, { workerData });
      await new Promise((resolve, reject) => {
        thread.once('message', resolve);
        thread.once('error', reject);
      });
      expect(await connections()).toBeGreaterThan(before);
      await thread.terminate();
    }
    await until('every connection of theirs to end', async () => (await connections()) === before);
    await queue.close();
  });
});
