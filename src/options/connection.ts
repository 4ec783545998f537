/* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's types: they accept every client's own option objects */

/** Options any connection takes. */
export interface BaseOptions {
  /** Does not check the server's version. */
  skipVersionCheck?: boolean;
  /** `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. */
  url?: string;
}

/**
 * Connection options, spelled as ioredis spells them. `src/connection/known-options.ts` lists which have an effect.
 * Source: BullMQ 6.7.0 `RedisOptions`.
 */
export interface RedisOptions extends BaseOptions {
  /** @defaultValue 127.0.0.1 */
  host?: string;
  /** @defaultValue 6379 */
  port?: number;
  /** Path of a unix socket, instead of host and port. */
  path?: string;
  family?: number;
  /** @defaultValue 0 */
  db?: number;
  username?: string;
  password?: string;
  connectionName?: string;
  keyPrefix?: string;
  enableOfflineQueue?: boolean;
  maxRetriesPerRequest?: number | null;
  retryStrategy?: (times: number) => number | void | null;
  lazyConnect?: boolean;
  tls?: any;
  [key: string]: any;
}

/** Source: BullMQ 6.7.0 `ClusterOptions`. */
export interface ClusterOptions extends BaseOptions {
  maxRetriesPerRequest?: number | null;
  enableOfflineQueue?: boolean;
  retryStrategy?: (times: number) => number | void | null;
  lazyConnect?: boolean;
  redisOptions?: RedisOptions;
  scaleReads?: string;
  [key: string]: any;
}

/** An existing client, recognised by its methods. Only the options of an ioredis client can be read so far. */
export interface RedisConnectionClient {
  connect(...args: any[]): any;
  duplicate(...args: any[]): any;
  disconnect?(...args: any[]): any;
  [key: string]: any;
}

/** What `connection` takes: options, an ioredis client whose options are read, or (beyond BullMQ) a URL. */
export type ConnectionOptions = RedisOptions | ClusterOptions | RedisConnectionClient | string;
