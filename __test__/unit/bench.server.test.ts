// What the bench asks the server is not counted, and the same commands are when somebody else sends them.
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseConnection, Server } from '../../bench/server.js';

// what no other test asks of a server that all of them share
const NAMES = ['MEMORY USAGE', 'MEMORY STATS'];

let server: Server;
let client: Redis;
beforeAll(async () => {
  const connection = parseConnection(process.env.REDIS_URL ?? '');
  server = await Server.connect(connection);
  client = new Redis(connection);
});
afterAll(() => {
  server.close();
  client.disconnect();
});

async function callsDuring(act: () => Promise<unknown>): Promise<number[]> {
  const before = await server.commandCalls();
  await act();
  const after = await server.commandCalls();
  return NAMES.map((name) => (after.get(name) ?? 0) - (before.get(name) ?? 0));
}

it('counts commands of others, and none of its own', async () => {
  const key = `bench-server-${randomBytes(4).toString('hex')}`;
  await client.set(key, 1);
  const own = async () => expect(await server.keyBytes(key)).toBeGreaterThan(0);
  expect(await callsDuring(own)).toEqual([0, 0]);
  expect(await callsDuring(() => client.memory('USAGE', key))).toEqual([1, 0]);
  expect(await callsDuring(() => Promise.all([own(), client.memory('STATS')]))).toEqual([0, 1]);
  await client.del(key);
});
