import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Cluster, Redis } from 'ioredis';
import type { RedisOptions } from '../../src/index.js';

/** The server under test as ioredis options, from REDIS_URL. No server means a failing run, never a skipped one. */
export const server = parseServer(process.env.REDIS_URL);

/** Where the queues of a test are: in the topology of its project (topology.ts), or else on the server under test. */
export const connection: RedisOptions = process.env.CONNECTION ? JSON.parse(process.env.CONNECTION) : server;

export interface ServerOptions {
  host: string;
  port: number;
  db: number;
  username?: string;
  password?: string;
}

function parseServer(url: string | undefined): ServerOptions {
  if (!url) throw new Error('REDIS_URL is not set: the tests need a Redis or Valkey server');
  const { hostname, port, pathname, username, password } = new URL(url);
  return {
    host: hostname,
    port: Number(port || 6379),
    db: Number(pathname.slice(1) || 0),
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
  };
}

/** REDIS_URL in a form that every client understands. */
export function serverUrl(): string {
  const { host, port, db, username = '', password = '' } = server;
  const user = username || password ? `${encodeURIComponent(username)}:${encodeURIComponent(password)}@` : '';
  return `redis://${user}${host}:${port}/${db}`;
}

/** A client that looks at the keys of queues, which the caller quits. One of a cluster takes the same commands. */
export function redisClient(): Redis {
  const { nodes } = connection;
  return nodes ? (new Cluster(nodes) as unknown as Redis) : new Redis(connection);
}

/** A client of each server that has keys of its own. */
export function mastersOf(client: Redis): Redis[] {
  return client.isCluster ? (client as unknown as Cluster).nodes('master') : [client];
}

/** Every key whose name contains `text`, once: SCAN may give one again while a server's table of keys changes its size. */
export async function keysContaining(client: Redis, text: string): Promise<string[]> {
  const found = new Set<string>();
  for (const master of mastersOf(client)) {
    const stream = master.scanStream({ match: `*${text}*`, count: 1_000 });
    for await (const keys of stream) for (const key of keys as string[]) found.add(key);
  }
  return [...found];
}

/** Deletes them. */
export async function unlinkContaining(client: Redis, text: string): Promise<void> {
  const keys = await keysContaining(client, text);
  // one by one: those of a cluster may lie in several slots
  await Promise.all(keys.map((key) => client.unlink(key)));
}

/** A port of this machine on which nothing listens. */
export async function closedPort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
