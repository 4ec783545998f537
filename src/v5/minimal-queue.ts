import type { MinimalQueue as BaseMinimalQueue } from '../job/minimal-queue.js';
import type { DatabaseType } from '../types/database-type.js';
import type { KeyPrefixOptions } from '../options/queue.js';
import type { RedisClient } from './types.js';

/** What `Queue` and `Worker` have in common. Source: BullMQ 5.81 `MinimalQueue`. */
export interface MinimalQueue extends Omit<BaseMinimalQueue, 'on' | 'removeListener'> {
  /** The options given. */
  opts: BaseMinimalQueue['opts'] & KeyPrefixOptions;
  /* eslint-disable @typescript-eslint/no-explicit-any -- EventEmitter's own signature, of which listeners are subtypes */
  /** As of an `EventEmitter`. */
  on(event: string | symbol, listener: (...args: any[]) => void): this;
  /** As of an `EventEmitter`. */
  removeListener(event: string | symbol, listener: (...args: any[]) => void): this;
  /* eslint-enable @typescript-eslint/no-explicit-any */
  /** An ioredis client for commands of the user's own. */
  readonly client: Promise<RedisClient>;
  /** Version of the server. */
  readonly redisVersion: string;
  /** Which server it is. */
  readonly databaseType: DatabaseType;
  /** Resolves with {@link client} when the connection is usable. */
  waitUntilReady(): Promise<void & RedisClient>;
}
