/** The process in which programs run on one library: takes a program by message, answers with what was seen. */
import { connection as server, mastersOf, redisClient, unlinkContaining } from '../support/redis.js';
import { Pool } from './apart.js';
import { execute } from './execute.js';
import { load } from './library.js';
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

const { lib, connection } = await load(library);
const redis = redisClient();
const pool = new Pool(library);

process.on('message', (task: Task) => void run(task));
process.send?.('ready');

async function run({ program, prefix: name }: Task): Promise<void> {
  const prefix = server.nodes ? `{${name}}` : name;
  unhandled.length = 0;
  try {
    const observation = await execute(program, {
      ...{ lib, connection, prefix, unhandled, pool },
      ranksByMillisecond: library === 'bullmq',
      hasGroups: library === 'chasquimq',
      ...(library === 'chasquimq' && { watched: mastersOf(redis) }),
    });
    process.send?.({ observation });
  } catch (error) {
    process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : messageOf(error) });
  }
  await unlinkContaining(redis, prefix).catch(() => undefined);
}
