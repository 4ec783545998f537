/** The process in which programs run on one library: takes a program by message, answers with what was seen. */
import { Cluster } from 'ioredis';
import type { ConnectionOptions } from 'bullmq';
import type { Library } from '../support/libraries.js';
import { connection, redisClient, unlinkContaining } from '../support/redis.js';
import { execute } from './execute.js';
import type { Program } from './program.js';
import { messageOf } from './values.js';

export interface Task {
  readonly program: Program;
  readonly prefix: string;
}

const library = process.argv[2] ?? 'bullmq';
const unhandled: string[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(`rejection: ${messageOf(reason)}`));
process.on('uncaughtException', (error) => unhandled.push(`exception: ${messageOf(error)}`));
process.on('disconnect', () => process.exit());

const lib = (await import(library)) as unknown as Library;
const redis = redisClient();
/** BullMQ takes a client of a cluster, and its queues of one program lie together by their prefix. */
const shared =
  library === 'bullmq' && connection.nodes
    ? new Cluster(connection.nodes, { redisOptions: { maxRetriesPerRequest: null } })
    : undefined;

process.on('message', (task: Task) => void run(task));
process.send?.('ready');

async function run({ program, prefix: name }: Task): Promise<void> {
  const prefix = connection.nodes ? `{${name}}` : name;
  const place = (shared ?? { ...connection }) as ConnectionOptions;
  unhandled.length = 0;
  try {
    const observation = await execute(program, {
      ...{ lib, connection: place, prefix, unhandled },
      ranksByMillisecond: library === 'bullmq',
    });
    process.send?.({ observation });
  } catch (error) {
    process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : messageOf(error) });
  }
  await unlinkContaining(redis, prefix).catch(() => undefined);
}
