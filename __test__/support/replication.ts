import type { Redis } from 'ioredis';
import { until } from './waiting.js';

/**
 * Waits until a replica has what its master has by now. Gives that moment (epoch ms): the replica has heard of all that the master
 * had acknowledged before it.
 */
export async function caughtUp(master: Redis, replica: Redis, withinMs: number): Promise<number> {
  const at = Date.now();
  const [, offset] = (await master.call('ROLE')) as [string, number];
  const hasAll = async () => {
    const [role, , , link, applied] = (await replica.call('ROLE')) as [string, string, number, string, number];
    return role === 'slave' && link === 'connected' && applied >= offset;
  };
  await until('the replica to catch up', hasAll, withinMs);
  return at;
}

/** What a server answers; false while it has yet to take in what its master, or its file, has. */
export function unlessLoading<T>(answer: Promise<T>): Promise<T | false> {
  return answer.catch((error: Error) => {
    if (error.message.startsWith('LOADING')) return false;
    throw error;
  });
}
