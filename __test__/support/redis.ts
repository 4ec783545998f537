import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Redis } from 'ioredis';

/** The server under test as ioredis options, from REDIS_URL. No server means a failing run, never a skipped one. */
export const server = parseServer(process.env.REDIS_URL);

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

/** Every key on the server whose name contains `text`. */
export async function keysContaining(client: Redis, text: string): Promise<string[]> {
  const found: string[] = [];
  for await (const keys of client.scanStream({ match: `*${text}*`, count: 1_000 })) found.push(...(keys as string[]));
  return found;
}

/** A port of this machine on which nothing listens. */
export async function closedPort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
