/** The process in which programs run on one library: takes a program by message, answers with what was seen. */
import { Redis } from 'ioredis';
import type { Library } from '../support/libraries.js';
import { connection, unlinkContaining } from '../support/redis.js';
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
const redis = new Redis(connection);

process.on('message', (task: Task) => void run(task));
process.send?.('ready');

async function run({ program, prefix }: Task): Promise<void> {
  unhandled.length = 0;
  try {
    const observation = await execute(program, { lib, connection: { ...connection }, prefix, unhandled });
    process.send?.({ observation });
  } catch (error) {
    process.send?.({ failure: error instanceof Error ? (error.stack ?? error.message) : messageOf(error) });
  }
  await unlinkContaining(redis, prefix).catch(() => undefined);
}
