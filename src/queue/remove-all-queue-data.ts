import type { ConnectionOptions } from '../options/connection.js';
import { Queue } from './queue.js';

/**
 * Removes everything of a queue, active jobs included, as `queue.obliterate({ force: true })` does; for tests.
 * @param client an ioredis instance: it is read for its options, and then quits
 * Source: BullMQ 6.7.0 `removeAllQueueData`.
 */
export async function removeAllQueueData(
  client: { quit(): Promise<unknown> },
  queueName: string,
  prefix = 'bull',
): Promise<void> {
  const queue = new Queue(queueName, { connection: client as ConnectionOptions, prefix, skipMetasUpdate: true });
  try {
    await queue.obliterate({ force: true });
  } finally {
    await queue.close();
    await client.quit();
  }
}
