/* eslint-disable @typescript-eslint/no-explicit-any -- BullMQ's types: they accept every client's own option objects */

/** Options of every connection. */
export interface BaseOptions {
  /** Does not check the server's version. */
  skipVersionCheck?: boolean;
  /** `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. */
  url?: string;
}

/**
 * Connection options, with the names of ioredis. `src/connection/known-options.ts` lists which have an effect.
 * Source: BullMQ 6.7.0 `RedisOptions`.
 */
export interface RedisOptions extends BaseOptions {
  /** @defaultValue 127.0.0.1 */
  host?: string;
  /** @defaultValue 6379 */
  port?: number;
  /** Path of a unix socket, instead of host and port. */
  path?: string;
  /** 4 or 6: which addresses of a name are tried. Without it all of them. */
  family?: number;
  /** @defaultValue 0 */
  db?: number;
  /** User of the ACL: a text, or a function as that of `password`. */
  username?: any;
  /**
   * Password of the user, or of the server: a text, or a function that gives one, or a promise of one. It is asked for each connection that is opened, also in the
   * place of one that broke, so that a token may end. It has `connectTimeout` to answer. What it throws, or anything else, is told by the `error` event, and it
   * is asked again. The function may give `{ token, expiresAt }` (the text; a `Date`, or epoch ms) in place of a text: connections that are open then log in anew
   * before that time.
   */
  password?: any;
  /** Name of the connections, as `CLIENT LIST` shows it. */
  connectionName?: string;
  /** Refused: a queue's `prefix` is for this. */
  keyPrefix?: string;
  /**
   * `false`: while a connection is lost, calls reject instead of waiting for it.
   * @defaultValue true
   */
  enableOfflineQueue?: boolean;
  /** Has no effect: calls wait until the server is back, and each is carried out once. */
  maxRetriesPerRequest?: number | null;
  /**
   * Called after each failed attempt to connect; anything but a number gives up. The engine itself decides when to connect again.
   */
  retryStrategy?: (times: number) => number | void | null;
  /** Has no effect: the engine connects in the background. */
  lazyConnect?: boolean;
  /** `true`, or options of Node's `tls.connect`: `src/connection/tls-options.ts` lists which have an effect. */
  tls?: any;
  /** A driver's other options. */
  [key: string]: any;
}

/** Source: BullMQ 6.7.0 `ClusterOptions`. */
export interface ClusterOptions extends BaseOptions {
  /** Has no effect: calls wait until a server is back, and each is carried out once. */
  maxRetriesPerRequest?: number | null;
  /** As in {@link RedisOptions}. */
  enableOfflineQueue?: boolean;
  /** As in {@link RedisOptions}. */
  retryStrategy?: (times: number) => number | void | null;
  /** Has no effect: the engine connects in the background. */
  lazyConnect?: boolean;
  /** What the connections to the nodes need: login, TLS. */
  redisOptions?: RedisOptions;
  /** Changes nothing: masters are asked. */
  scaleReads?: string | ((...args: any[]) => any);
  /** `nodes`, and a driver's other options. */
  [key: string]: any;
}

/** An existing client, recognised by its methods. Only the options of an ioredis client can be read so far. */
export interface RedisConnectionClient {
  /** By this, and `duplicate`, a client is recognised; neither is called. */
  connect(...args: any[]): any;
  /** See `connect`. */
  duplicate(...args: any[]): any;
  /** Not called: the client stays the caller's. */
  disconnect?(...args: any[]): any;
  /** Whatever else the client has. */
  [key: string]: any;
}

/**
 * What `connection` takes: options, or an ioredis client, whose options are read. Beyond BullMQ constructors also take a URL as text, and
 * `opts.connection` then is `{ url }`; options that hold one are, for example, `QueueOptions<string>`.
 */
export type ConnectionOptions = RedisOptions | ClusterOptions | RedisConnectionClient;
