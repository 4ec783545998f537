/** Connections as BullMQ 5 takes them, with ioredis's types of what is called. Source: BullMQ 5.81. */
import type {
  ClusterOptions as BaseClusterOptions,
  RedisConnectionClient,
  RedisOptions as BaseRedisOptions,
} from '../options/connection.js';

/** Connection options, with the names of ioredis. */
export interface RedisOptions extends BaseRedisOptions {
  /** Has no effect: the engine decides by itself when to connect again. */
  reconnectOnError?: ((err: Error) => boolean | 1 | 2) | null;
  /** Has no effect: the engine decides by itself when to ask the sentinels again. */
  sentinelRetryStrategy?: (retryAttempts: number) => number | void | null;
  /** As `sentinelRetryStrategy`. */
  sentinelReconnectStrategy?: (retryAttempts: number) => number | void | null;
}

/** Connection options of a cluster. */
export interface ClusterOptions extends BaseClusterOptions {
  /** Called after each failed attempt to connect; anything but a number gives up. */
  clusterRetryStrategy?: ((times: number, reason?: Error) => number | void | null) | null;
  /** Has no effect: the engine looks addresses up by itself. */
  dnsLookup?: (
    hostname: string,
    callback: (err: NodeJS.ErrnoException | null | undefined, address: string, family?: number) => void,
  ) => void;
  /** What the connections to the nodes need: login, TLS. */
  redisOptions?: RedisOptions;
}

/** What `connection` takes: options, or an ioredis client, whose options are read. */
export type ConnectionOptions = RedisOptions | ClusterOptions | RedisConnectionClient;

/** What constructors take: also a URL as text. */
export type Given = ConnectionOptions | string;
