/** Opens queues for commands, and says in one line why one cannot be used. */
import type { Queue } from '../../index.js';
import { Failure, UsageError } from './command.js';
import { didYouMean } from './nearest.js';
import type { Server } from './server.js';
import { plain } from './text.js';

/** Queues that are open at once. */
const AT_ONCE = 8;

/**
 * A queue that is connected, which the caller closes. Nothing is written about it.
 * @param patient goes on when a connection that was there breaks, and connects again; otherwise commands then fail
 * @throws Failure when the server cannot be used
 */
export async function openQueue(server: Server, name: string, patient = false): Promise<Queue> {
  if (name.includes(':') || name === '') throw new UsageError(`"${name}" is no name of a queue: it has no colon.`);
  // loaded here: help, and what needs no server, do without the addon
  const { Queue } = await import('../../index.js');
  let isConnected = false;
  const retryStrategy = (): number | null => (patient && isConnected ? 1_000 : null);
  const queue = new Queue(name, {
    connection: { ...server.connection, retryStrategy },
    prefix: server.prefix,
    skipMetasUpdate: true,
  });
  queue.on('error', () => {}); // what fails because of it is told by whoever waits for it
  try {
    await queue.waitUntilReady();
    isConnected = true;
    return queue;
  } catch (error) {
    await queue.close();
    throw unusable(server, error);
  }
}

/** Runs a command's part that talks to the server, and closes its queue. */
export async function withQueue<T>(server: Server, name: string, use: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = await openQueue(server, name);
  try {
    return await use(queue);
  } catch (error) {
    throw unusable(server, error);
  } finally {
    await queue.close();
  }
}

/** What the server said, in one line that names it and says what to do. What is told to people already stays as it is. */
export function unusable(server: Server, error: unknown): Error {
  if (error instanceof Failure || error instanceof UsageError) return error;
  const { message, code } = error as Error & { code?: unknown };
  // the server is well
  if (code === 'ERR_STILL_RUNNING') return new Failure(`${message}.`);
  const [line = ''] = message.split('\n', 1);
  return new Failure(
    `The server at ${server.shown} cannot be used: ${line.replace(/\.$/, '')}.${advice(message, server)}`,
  );
}

function advice(message: string, { connection }: Server): string {
  if (message.includes('native addon')) return `\n${message.split('\n').slice(1).join('\n')}`;
  if (/NOAUTH/.test(message)) return ' It wants a password: put it into REDIS_PASSWORD.';
  if (/WRONGPASS|invalid password/.test(message)) return ' Check the user and REDIS_PASSWORD.';
  if (/MOVED|CROSSSLOT|cluster support/i.test(message)) return ' Is it a cluster or not? See --cluster.';
  if (/^ERR Function .* already exists/.test(message)) return ' Another library has it: see FUNCTION LIST.';
  if (/NOPERM|permissions/i.test(message)) return ' chasquimq doctor prints what to grant.';
  if (/ECONNREFUSED|ENOTFOUND|ENOENT|unreachable/.test(message)) return ' Is --url or REDIS_URL right?';
  if (connection.tls) return ' Does it speak TLS?';
  if (/does not speak the protocol|ECONNRESET|closed|broken pipe|unexpected end/i.test(message))
    return ' Is it Redis, and without TLS?';
  return '';
}

const ownNames = async (queue: Queue): Promise<string[]> => (await queue.getBackend().client).queueNames();

/**
 * The names of all queues of the prefix.
 * @param find finds others than ours
 */
export async function namesOf(server: Server, find = ownNames): Promise<string[]> {
  return withQueue(server, 'chasquimq', async (queue) => {
    try {
      return await find(queue);
    } catch (error) {
      if (!/NOPERM|permissions/i.test((error as Error).message)) throw error;
      throw new Failure('This user may not SCAN the server for its queues: name them.');
    }
  });
}

/** @throws Failure when there is nothing of that name, with the name that was probably meant */
export async function requireQueue(server: Server, queue: Queue): Promise<void> {
  const [meta, counts] = [await queue.getMeta(), await queue.getJobCounts()];
  const isThere = meta.paused || Object.keys(meta).length > 1 || Object.values(counts).some((jobs) => jobs > 0);
  if (isThere) return;
  const names = await namesOf(server).catch((): string[] => []);
  if (names.includes(queue.name)) return;
  throw new Failure(
    `There is no queue ${plain(queue.name)} with the prefix ${server.prefix} at ${server.shown}.` +
      didYouMean(queue.name, names) +
      ' Queues that BullMQ has written are not seen.',
  );
}

/**
 * Runs `each` for all names, a few at once; gives what it gave, in the order of the names. After a failure it begins no other, and rejects
 * when those that had begun have ended: what they opened can then be closed.
 */
export async function forEachName<T>(names: readonly string[], each: (name: string) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const take = async (): Promise<void> => {
    while (next < names.length && failures.length === 0) {
      const at = next++;
      try {
        results[at] = await each(names[at]);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, names.length) }, take));
  if (failures.length > 0) throw failures[0];
  return results;
}
