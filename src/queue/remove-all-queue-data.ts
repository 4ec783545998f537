import type { ConnectionOptions } from '../options/connection.js';
import { Queue } from './queue.js';

/**
 * Removes everything of a queue, active jobs included, as `queue.obliterate({ force: true })` does; for tests.
 * @param client an ioredis instance: it is read for its options, and then quits. One of a cluster is left as it is, as in BullMQ.
 * @returns false for a client of a cluster, whose data stay
 * Source: BullMQ 6.7.0 `removeAllQueueData`.
 */
export async function removeAllQueueData(
  client: { quit(): Promise<unknown>; isCluster?: boolean },
  queueName: string,
  prefix = process.env.BULLMQ_TEST_PREFIX || 'bull',
): Promise<void | boolean> {
  if (client.isCluster) return false;
  const queue = new Queue(queueName, { connection: client as ConnectionOptions, prefix, skipMetasUpdate: true });
  try {
    await queue.obliterate({ force: true });
  } finally {
    await queue.close();
    await client.quit();
  }
}
