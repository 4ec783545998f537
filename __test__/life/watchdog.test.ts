// The watchdog of the long tests bites: it fails who blocks a server or the event loop, and nobody else, however slow the machine is.
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OwnServer } from '../support/own-server.js';
import { doKnownWork, runKnownScript } from '../support/pace.js';
import { rejection, sleep, until } from '../support/waiting.js';
import { watchdog } from '../support/watchdog.js';

/** What may be done at a time, in known scripts and in pieces of known work; and 20 times as much. The limits lie between. */
const LITTLE = { script: 10, pause: 10 };
const MUCH = { script: 20 * LITTLE.script, pause: 20 * LITTLE.pause };

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

  it('lets pass who does little at a time, however often', async () => {
    const dog = await watchdog(redis);
    for (let i = 0; i < 20; i++) {
      await runKnownScript(redis, LITTLE.script, 'one');
      doKnownWork(LITTLE.pause);
      await sleep(1); // the event loop turns
    }
    await dog.end();
    expect([dog.longest.script?.by, dog.longest.pause?.by]).toEqual(['eval', 'event loop']);
  });

  it('fails who blocks the server', async () => {
    const dog = await watchdog(redis);
    await dog.look();
    await runKnownScript(redis, MUCH.script, 'one');
    expect((await rejection(dog.end())).message).toMatch(/^the watchdog: eval took at least .* known scripts of/);
  });

  it('counts no script about something else, and nothing that is excused', async () => {
    const dogs = [
      await watchdog(redis, { about: 'another', mostPause: Infinity }),
      await watchdog(redis, { isExcused: () => true }),
    ];
    await runKnownScript(redis, MUCH.script, 'one');
    doKnownWork(MUCH.pause);
    for (const dog of dogs) await dog.end();
    expect(dogs.map(({ longest }) => longest.script)).toEqual([undefined, undefined]);
  });

  it('goes on with a server that was gone', async () => {
    const dog = await watchdog(() => [redis]);
    await server.kill();
    await until('the connection to be gone', () => redis.status !== 'ready');
    await server.start();
    await until('the connection to be there', () => redis.status === 'ready');
    await dog.look();
    await runKnownScript(redis, MUCH.script, 'one');
    expect((await rejection(dog.end())).message).toContain('eval took at least');
  });

  it('fails who blocks the event loop', async () => {
    const dog = await watchdog(redis);
    doKnownWork(MUCH.pause);
    expect((await rejection(dog.end())).message).toMatch(/^the watchdog: event loop took at least .* known work of/);
  });
});
