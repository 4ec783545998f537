import type { EventEmitter } from 'node:events';
import type { Commands } from './commands.js';
import type { Connection } from './read-connection.js';
import { NotSupportedError } from '../errors/not-supported-error.js';
import type { NativeQueueOptions } from '../native/types.js';
import type { ConnectionOptions } from '../options/connection.js';
import type { QueueBaseOptions } from '../options/queue.js';

/** What a tool learns of a queue's connection. */
export interface BackendClient {
  /** `ready` while there is a connection, `end` once it was closed. */
  readonly status: 'connecting' | 'ready' | 'end';
  /** Whether the server is one of a cluster. */
  readonly isCluster: boolean;
  /** The server's answer to `INFO`; in a cluster that of the server with the queue. */
  info(): Promise<string>;
  /** `PONG`, once the server has answered. */
  ping(): Promise<string>;
  /**
   * Names of the queues with the prefix of this one, in order. Not in BullMQ. Walks all keys of the server, in a cluster those of
   * each master, with `SCAN`, which the user must be allowed.
   */
  queueNames(): Promise<string[]>;
}

/** As BullMQ names it: here it has what tools ask for, and no commands for keys. Source: BullMQ 6.7.0 `IRedisClient`. */
export type IRedisClient = BackendClient;

/** Source: BullMQ 6.7.0 `RedisClient`. */
export type RedisClient = IRedisClient;

/** A connection that emits events, as programs describe one of their own. Source: BullMQ 6.7.0 `IConnection`. */
export interface IConnection extends EventEmitter {
  /** Resolves with true when the connection is usable. */
  waitUntilReady(): Promise<boolean>;
  /** Resolves with the client. */
  client: Promise<RedisClient>;
}

/** What has a client. Source: BullMQ 6.7.0 `RedisConnection`. */
export interface RedisConnection {
  /** Resolves with the client. */
  readonly client: Promise<RedisClient>;
}

/**
 * Gives the backend that a queue is to use: one that `getBackend()` of another queue or flow producer gave.
 * Source: BullMQ 6.7.0 `BackendFactory`.
 */
export type BackendFactory<B = Backend, ConnectionOptionsType = ConnectionOptions> = (
  name: string,
  opts: QueueBaseOptions<ConnectionOptionsType>,
  context?: { blocking?: boolean },
) => B;

/** @internal Whose queue a backend is of, and by which connection it is reached. */
export interface BackendParts {
  readonly commands: Commands;
  readonly target: NativeQueueOptions;
  readonly connection: Connection;
}

/**
 * What `getBackend()` gives: as much as tools on top of BullMQ ask for. There is no datastore to be had here, for that
 * is the engine; what they would do with its keys has no meaning for ours. A queue or flow producer may be made with it
 * instead of a connection of its own: who closes one, then closes both.
 */
export class Backend implements RedisConnection {
  /** Resolves at once, whether there is a connection or not. */
  readonly client: Promise<BackendClient>;
  /** `<prefix>:<name>` of the queue. */
  readonly qualifiedName: string;
  /** @internal */
  readonly parts: BackendParts;

  /** @internal */
  constructor(parts: BackendParts) {
    this.parts = parts;
    this.qualifiedName = `${parts.target.prefix}:${parts.target.name}`;
    this.client = Promise.resolve(clientOf(parts));
  }

  /** `<qualified name>:<type>` */
  toKey(type: string): string {
    return `${this.qualifiedName}:${type}`;
  }

  /** Resolves when the connection is usable. */
  waitUntilReady(): Promise<void> {
    return this.parts.commands.ready();
  }
}

/** A type alone: what BullMQ's classes take as `B`. Source: BullMQ 6.7.0 `IQueueBackend`. */
export type IQueueBackend = Backend;

/** As {@link IQueueBackend}. Source: BullMQ 6.7.0 `RedisQueueBackend`. */
export type RedisQueueBackend = Backend;

function clientOf({ commands, connection }: BackendParts): BackendClient {
  const { discovery } = connection.native;
  return {
    get status() {
      return commands.status;
    },
    isCluster: discovery !== undefined && !discovery.sentinel,
    info: async () => commands.native.info(),
    ping: async () => {
      await commands.native.isPaused(); // of what the server answers, the least
      return 'PONG';
    },
    queueNames: async () => commands.native.queueNames(),
  };
}

/**
 * The backend to use instead of an own connection, if there is a factory.
 * @throws NotSupportedError when the factory gives something else, such as a datastore of the caller's own
 */
export function backendOf<C>(
  factory: BackendFactory<unknown, C> | undefined,
  name: string,
  opts: QueueBaseOptions<C>,
  blocking: boolean,
): Backend | undefined {
  if (!factory) return undefined;
  const backend = factory(name, opts, { blocking });
  if (backend instanceof Backend) return backend;
  throw new NotSupportedError('a backend other than one that getBackend() gave');
}
