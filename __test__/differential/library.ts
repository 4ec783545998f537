/** One of the two libraries, and how its queues are reached. */
import { Cluster } from 'ioredis';
import type { ConnectionOptions } from 'bullmq';
import type { Library } from '../support/libraries.js';
import { connection } from '../support/redis.js';

export interface Loaded {
  readonly lib: Library;
  readonly connection: ConnectionOptions;
}

export async function load(name: string): Promise<Loaded> {
  const lib = (await import(name)) as unknown as Library;
  // BullMQ takes a client of a cluster, and its queues of one program lie together by their prefix
  const shared =
    name === 'bullmq' && connection.nodes
      ? new Cluster(connection.nodes, { redisOptions: { maxRetriesPerRequest: null } })
      : undefined;
  return { lib, connection: (shared ?? { ...connection }) as ConnectionOptions };
}
