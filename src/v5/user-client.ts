/**
 * What BullMQ 5 calls `client`: an ioredis client, for users' own commands. The engine has no need of one, so it is made when it is
 * first asked for, of the ioredis that the program has installed.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ConnectionClosedError } from '../errors/connection-closed-error.js';
import { NotSupportedError } from '../errors/not-supported-error.js';
import { patience } from '../worker/close-worker.js';
import type { RedisClient } from './types.js';

/** Whose client it is. */
interface Owner {
  readonly opts: { readonly connection?: unknown };
  emit(event: 'error', error: Error): boolean;
}

/** As much of a client as is needed here. */
interface Client {
  readonly status: string;
  connect(): Promise<unknown>;
  quit(): Promise<unknown>;
  disconnect(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  once(event: 'ready' | 'end', listener: () => void): unknown;
  off(event: 'ready' | 'end', listener: () => void): unknown;
}

type Fields = Record<string, unknown>;
type ClientClass = new (...args: unknown[]) => Client;

export class UserClient {
  private made: Client | undefined = undefined;
  private isClosed = false;
  /** Of the first time that the client is ready. */
  private readiness: Promise<RedisClient> | undefined = undefined;

  /** @param blocking a client that waits for the server as long as it takes, as those of workers do */
  constructor(
    private readonly owner: Owner,
    private readonly blocking = false,
  ) {}

  /** The client the user gave as `connection`, which stays the user's. */
  private get given(): Client | undefined {
    const { connection } = this.owner.opts;
    const isClient = typeof (connection as Fields | undefined)?.defineCommand === 'function';
    return isClient ? (connection as Client) : undefined;
  }

  /**
   * The client, once it was connected; a connection that is lost later changes nothing, as the client makes it anew.
   * @throws (rejects) Error with `code` `ERR_NO_IOREDIS` where ioredis is not installed, ConnectionClosedError after `close()` where it
   * was never connected
   */
  connected(): Promise<RedisClient> {
    return (this.readiness ??= this.connect().catch((error: unknown) => {
      this.readiness = undefined;
      throw error;
    }));
  }

  private async connect(): Promise<RedisClient> {
    const client = this.unconnected();
    await whenReady(client);
    return client as unknown as RedisClient;
  }

  /** The client; one that was never used connects with its first command. */
  private unconnected(): Client {
    if (this.given) return this.given;
    if (!this.made && this.isClosed) throw new ConnectionClosedError();
    return (this.made ??= this.make());
  }

  /** As {@link connected} without a connection; undefined where ioredis is not installed. */
  async offered(): Promise<void & RedisClient> {
    try {
      return this.unconnected() as unknown as void & RedisClient;
    } catch (error) {
      const { code } = error as { code?: unknown };
      const isAbsent = error instanceof ConnectionClosedError || error instanceof NotSupportedError;
      if (code !== NO_IOREDIS && !isAbsent) throw error;
      return undefined as void & RedisClient;
    }
  }

  private make(): Client {
    const { Redis, Cluster } = loadIoredis();
    const { connection } = this.owner.opts;
    const { username, password } = Object(connection) as Fields;
    // ioredis would send the text of the function
    if ([username, password].some((value) => typeof value === 'function')) {
      throw new NotSupportedError('`client` where `username` or `password` is a function', 'make an ioredis client');
    }
    const always = { lazyConnect: true, ...(this.blocking && { maxRetriesPerRequest: null }) };
    const client = newClient(Redis, Cluster, connection, always);
    client.on('error', (error) => {
      if (!this.isClosed) this.owner.emit('error', error);
    });
    return client;
  }

  /** Waits for the answers to commands under way, as long as the server gives them. */
  async close(): Promise<void> {
    const client = this.made;
    if (client?.status !== 'ready') return this.disconnect();
    this.isClosed = true;
    const ended = new Promise<void>((resolve) => void client.once('end', resolve));
    client.quit().catch(() => client.disconnect());
    const isOver = await Promise.race([ended.then(() => true), patience()]);
    if (!isOver) client.disconnect();
  }

  /** Closes at once. */
  disconnect(): void {
    this.isClosed = true;
    this.made?.disconnect();
  }
}

function newClient(Redis: ClientClass, Cluster: ClientClass, connection: unknown, always: Fields): Client {
  if (typeof connection === 'string' || connection instanceof URL) return new Redis(String(connection), always);
  const { url, nodes, ...options } = (connection ?? {}) as Fields & { url?: string | URL };
  if (nodes) return new Cluster(nodes, { ...options, lazyConnect: true });
  return url ? new Redis(String(url), { ...options, ...always }) : new Redis({ ...options, ...always });
}

async function whenReady(client: Client): Promise<void> {
  if (client.status === 'ready') return;
  if (client.status === 'end') throw new ConnectionClosedError();
  await new Promise<void>((resolve, reject) => {
    const onReady = (): void => {
      client.off('end', onEnd);
      resolve();
    };
    const onEnd = (): void => {
      client.off('ready', onReady);
      reject(new ConnectionClosedError());
    };
    client.once('ready', onReady);
    client.once('end', onEnd);
    // what fails is tried again, and told by `error`
    if (client.status === 'wait') client.connect().catch(() => {});
  });
}

const NO_IOREDIS = 'ERR_NO_IOREDIS';

/** The ioredis beside this package, or else beside the program: a bundle lies anywhere. */
function loadIoredis(): { Redis: ClientClass; Cluster: ClientClass } {
  let failure: unknown;
  for (const place of [import.meta.url, join(process.cwd(), 'program.js')]) {
    if (!place) continue;
    try {
      return createRequire(place)('ioredis') as { Redis: ClientClass; Cluster: ClientClass };
    } catch (error) {
      failure = error;
      if ((error as { code?: unknown }).code !== 'MODULE_NOT_FOUND') break;
    }
  }
  const text = '`client` is an ioredis client, and ioredis is not installed: npm install ioredis';
  throw Object.assign(new Error(text, { cause: failure }), { code: NO_IOREDIS });
}
