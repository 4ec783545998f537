// The watchdog of the long tests bites: it fails who blocks a server or the event loop, and nobody else.
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OwnServer } from '../support/own-server.js';
import { rejection, until } from '../support/waiting.js';
import { watchdog } from '../support/watchdog.js';

const LONG_MS = 300;
/** Blocks the server by the server's own clock. */
const LONG_SCRIPT = `
  local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
  local begin = now()
  while now() - begin < ${LONG_MS} do end
`;

describe('the watchdog', () => {
  let server: OwnServer;
  let redis: Redis;
  beforeEach(async () => {
    server = await OwnServer.start();
    redis = server.client();
    redis.on('error', () => undefined);
  });
  afterEach(async () => {
    redis.disconnect();
    await server.close();
  });

  const spin = () => {
    for (const since = performance.now(); performance.now() - since < LONG_MS;);
  };

  it('lets pass who takes little time', async () => {
    const dog = await watchdog(redis);
    await redis.eval('return 1', 0);
    await dog.end();
  });

  it('fails who blocks the server, unless it does not look there', async () => {
    const [dog, aside] = [await watchdog(redis), await watchdog(redis, { about: 'another' })];
    await redis.eval(LONG_SCRIPT, 0, 'one');
    expect((await rejection(dog.end())).message).toMatch(/^the watchdog: eval took at least \d/);
    await aside.end();
  });

  it('goes on with a server that was gone', async () => {
    const dog = await watchdog(() => [redis]);
    await server.kill();
    await until('the connection to be gone', () => redis.status !== 'ready');
    await server.start();
    await redis.eval(LONG_SCRIPT, 0);
    expect((await rejection(dog.end())).message).toContain('eval took at least');
  });

  it('fails who blocks the event loop, and counts nothing that is excused', async () => {
    const [dog, idle] = [await watchdog(redis), await watchdog(redis, { isExcused: () => true })];
    spin();
    await redis.eval(LONG_SCRIPT, 0);
    expect((await rejection(dog.end())).message).toMatch(/eval took.*; event loop took at least/);
    await idle.end();
  });
});
