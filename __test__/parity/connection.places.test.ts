// Pins which addresses of a host are used, and what a url may be beside one.
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: connection.places', ({ lib }) => {
  const own = useOwnServer();
  const stage = useStage(lib);
  afterEach(() => own.redis.flushall());

  it.each([
    ['4', { family: 4 }],
    ['0, which is any', { family: 0 }],
    ['IPv4', { family: 'IPv4' as unknown as number }],
  ])('a name with family %s leads to a server at 127.0.0.1', async (_, family) => {
    const queue = stage.queue({ connection: { ...own.connection, host: 'localhost', ...family } });
    expect((await queue.add('job', {})).id).toBe('1');
  });

  it.each([
    ['an option', () => ({ host: 'localhost', port: own.server.port, family: 6 })],
    ['a url', () => ({ url: `redis://localhost:${own.server.port}?family=6` })],
  ])('a name with family 6 by %s does not', async (_, connection) => {
    const queue = stage.queue({ connection: connection() });
    const [error] = await new EventLog(queue, ['error']).get<[Error & { code?: string }]>('error');
    // where the machine has no such address, or nobody listens there
    expect(error.code).toMatch(/^(ENOTFOUND|EAI_AGAIN|EADDRNOTAVAIL|ENETUNREACH|ECONNREFUSED)$/);
    await queue.close();
    stage.takeErrors();
  });

  it('an address is used, whatever the family', async () => {
    const queue = stage.queue({ connection: { ...own.connection, family: 6 } });
    expect((await queue.add('job', {})).id).toBe('1');
  });

  it.each([
    ['a host and port behind two slashes', () => `//127.0.0.1:${own.server.port}`, 0],
    ['the same with a database', () => `//127.0.0.1:${own.server.port}/3`, 3],
    ['a host and port', () => `127.0.0.1:${own.server.port}`, 0],
    ['the path of a socket', () => own.server.path, 0],
    ['the path of a socket with a database', () => `${own.server.path}?db=3`, 3],
  ])('a url may be %s', async (_, url, db) => {
    const queue = stage.queue({ connection: { url: url() } });
    await queue.add('job', {});
    await own.redis.select(db);
    expect((await own.redis.keys(`*${stage.queueName}*`)).length).toBeGreaterThan(0);
    await own.redis.select(0);
  });

  it('a url may be a port of this machine', async () => {
    const arrivals = createServer((socket) => socket.destroy());
    const arrived = new Promise((resolve) => arrivals.once('connection', resolve));
    await new Promise<void>((resolve) => arrivals.listen(0, resolve));
    const queue = stage.queue({ connection: { url: String((arrivals.address() as AddressInfo).port) } });
    await arrived;
    await queue.close();
    stage.takeErrors();
    await new Promise((resolve) => arrivals.close(resolve));
  });
});
