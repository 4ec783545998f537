// Pins what happens without a server, with a wrong password, and when a connection breaks.
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { constants } from 'node:os';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { libraries } from '../support/libraries.js';
import { Proxy } from '../support/proxy.js';
import { closedPort, connection, server } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

/** BullMQ's first try to reconnect comes after a second, further ones later. */
const RECONNECT_MS = 60_000;

describe.each(libraries)('$name: connection.faults', ({ lib }) => {
  const stage = useStage(lib);

  describe('without a server', () => {
    let nowhere = { host: '127.0.0.1', port: 0 };
    beforeEach(async () => {
      nowhere = { host: '127.0.0.1', port: await closedPort() };
    });
    const refused = () => ({
      ...{ code: 'ECONNREFUSED', message: `connect ECONNREFUSED 127.0.0.1:${nowhere.port}` },
      ...{ errno: -constants.errno.ECONNREFUSED, syscall: 'connect', address: nowhere.host, port: nowhere.port },
    });

    it('a queue emits the error and closes', async () => {
      const queue = stage.queue({ connection: nowhere });
      const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
      expect(error).toBeInstanceOf(Error);
      expect(error).toMatchObject(refused());
      expect(await queue.close()).toBeUndefined();
      stage.takeErrors();
    });

    it('a host that has no address is told', async () => {
      const queue = stage.queue({ connection: { host: 'no-such-host.invalid', port: 1 } });
      const [error] = await new EventLog(queue, ['error']).get<[Error & { code: string }]>('error');
      // a machine without a name server cannot say more than that it should be tried again
      expect(error.code).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
      expect(error.message).toBe(`getaddrinfo ${error.code} no-such-host.invalid`);
      expect(error).toMatchObject({ syscall: 'getaddrinfo', hostname: 'no-such-host.invalid' });
      expect(Number((error as { errno?: unknown }).errno)).toBeLessThan(0);
      await queue.close();
      stage.takeErrors();
    });

    it('a server that resets every connection is told', async () => {
      const resets = createServer((socket) => socket.resetAndDestroy());
      await new Promise<void>((resolve) => resets.listen(0, '127.0.0.1', resolve));
      const { port } = resets.address() as AddressInfo;
      const queue = stage.queue({ connection: { host: '127.0.0.1', port } });
      const [error] = await new EventLog(queue, ['error']).get<[Error & { code: string }]>('error');
      expect(error).toMatchObject({ code: 'ECONNRESET', errno: -constants.errno.ECONNRESET });
      await queue.close();
      stage.takeErrors();
      await new Promise((resolve) => resets.close(resolve));
    });

    it('a queue that is not let in holds up no worker, nor its close', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async () => 'done', { concurrency: 5 });
      const log = new EventLog(worker, ['completed']);
      await worker.waitUntilReady();
      const refused = { ...connection, username: 'nobody', password: 'wrong' };
      const other = stage.queue({ connection: refused }, 'other');
      await new EventLog(other, ['error']).get('error');
      // the second call waits behind the first, which gets no answer
      for (const data of ['x'.repeat(32_768), 'small']) {
        other.add('job', data).catch(() => {});
        await new Promise(setImmediate);
      }
      for (let n = 1; n <= 10; n++) {
        await queue.add('job', n);
        await log.get('completed', n);
      }
      await worker.close();
      await other.close();
      stage.takeErrors();
    });

    it('a server that answers nothing holds up no job of another server', async () => {
      const sockets = new Set<Socket>();
      const mute = createServer((socket) => sockets.add(socket));
      await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
      const elsewhere = { host: '127.0.0.1', port: (mute.address() as AddressInfo).port };
      const others = [stage.queue({ connection: elsewhere }), stage.flowProducer({ connection: elsewhere })] as const;
      // a job of the same name and number, and what may let jobs of any queue start
      others[0].getJob('1').catch(() => {});
      others[1].add({ name: 'parent', queueName: stage.queueName }).catch(() => {});
      const queue = stage.queue();
      const worker = stage.worker(async () => 'done');
      const log = new EventLog(worker, ['completed']);
      for (let n = 1; n <= 10; n++) {
        await queue.add('job', n);
        await log.get('completed', n);
      }
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => mute.close(resolve));
      for (const other of others) await other.close();
      stage.takeErrors();
    });

    it('a queue closes before it could connect', async () => {
      const queue = stage.queue({ connection: nowhere });
      expect(await queue.close()).toBeUndefined();
      stage.takeErrors();
    });

    it('a worker emits the error and closes by force', async () => {
      const worker = new lib.Worker(stage.queueName, async () => undefined, { connection: nowhere });
      const log = new EventLog(worker, ['error', 'closed']);
      expect((await log.get<[Error]>('error'))[0]).toMatchObject(refused());
      await worker.close(true);
      expect(log.names.at(-1)).toBe('closed');
    });

    it('waitUntilReady rejects once the client gives up', async () => {
      const connection = { ...nowhere, retryStrategy: () => null };
      const queue = stage.queue({ connection });
      const worker = stage.worker(async () => undefined, { connection });
      expect(await rejection(queue.waitUntilReady())).toMatchObject(refused());
      expect(await rejection(worker.waitUntilReady())).toMatchObject(refused());
      await Promise.all([queue.close(), worker.close()]);
      stage.takeErrors();
    });

    it('an error that nobody listens to is printed and harms nothing', async () => {
      const print = vi.spyOn(console, 'error').mockImplementation(() => undefined);
      const queue = stage.keep(new lib.Queue(stage.queueName, { connection: nowhere }));
      await until('the error to be printed', () => print.mock.calls.length > 0);
      expect(print.mock.calls[0]?.[0]).toMatchObject(refused());
      await queue.close();
      print.mockRestore();
    });
  });

  describe('with a wrong password', () => {
    const admin = () => new Redis(server);
    let user = '';
    beforeEach(async () => {
      user = stage.queueName;
      const client = admin();
      await client.acl('SETUSER', user, 'reset', 'on', '>right', '~*', '&*', '+@all');
      await client.quit();
    });
    afterEach(async () => {
      const client = admin();
      await client.acl('DELUSER', user);
      await client.quit();
    });

    const WRONG = /^WRONGPASS invalid username-password pair/;
    const credentials = () => ({ ...server, username: user, password: 'wrong' });

    it('a queue emits the error and closes', async () => {
      const queue = stage.queue({ connection: credentials() });
      const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
      expect(error.message).toMatch(WRONG);
      expect(await queue.close()).toBeUndefined();
      stage.takeErrors();
    });

    it('a worker emits the error and closes by force', async () => {
      const worker = new lib.Worker(stage.queueName, async () => undefined, { connection: credentials() });
      const [error] = await new EventLog(worker, ['error']).get<[Error]>('error');
      expect(error.message).toMatch(WRONG);
      await worker.close(true);
    });
  });

  describe('when a connection breaks', () => {
    let proxy = new Proxy();
    const through = () => ({ ...server, host: '127.0.0.1', port: proxy.port });
    beforeEach(async () => {
      proxy = new Proxy();
      await proxy.open();
      // Kept first, so closed last: what goes through it closes before.
      stage.keep(proxy);
    });

    describe.each([
      ['a queue', () => stage.queue({ connection: through() })],
      ['a flow producer', () => stage.flowProducer({ connection: through() })],
      ['a worker', () => stage.worker(async () => undefined, { connection: through() })],
      ['QueueEvents', () => stage.events({ connection: through() })],
    ])('%s that does nothing', (_, make) => {
      async function open(): Promise<EventLog> {
        // closed last: what is told of a connection that comes and goes is no matter of these tests
        stage.keep({ close: async () => void stage.takeErrors() });
        const idle = make();
        await idle.waitUntilReady();
        return new EventLog(idle, ['ioredis:close', 'error']);
      }
      /** Waits until each of so many connections is there again: BullMQ's worker that is closed before may wait for ever. */
      async function back(before: number): Promise<void> {
        await until('the way back', () => proxy.answered >= 2 * before, RECONNECT_MS);
      }

      it('tells it at once and once, and comes back by itself', async () => {
        const log = await open();
        const before = proxy.answered;
        proxy.cut();
        await log.get('ioredis:close');
        await back(before);
        expect(log.all('ioredis:close')).toHaveLength(1);
      });

      it('tells that it cannot come back, and comes back when it can', async () => {
        const log = await open();
        const before = proxy.answered;
        await proxy.close();
        await log.get('ioredis:close');
        const isRefused = () =>
          log.all<[Error & { code?: string }]>('error').some(([{ code }]) => code === 'ECONNREFUSED');
        await until('a try in vain', isRefused, RECONNECT_MS);
        await log.get('ioredis:close', 2);
        await proxy.open();
        await back(before);
      });
    });

    it('a queue goes on by itself', async () => {
      const queue = stage.queue({ connection: through() });
      await queue.add('before', {});
      proxy.cut();
      expect((await queue.add('after', {})).id).toBe('2');
      expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 2 });
      stage.takeErrors();
    });

    it('a worker goes on by itself', async () => {
      const queue = stage.queue();
      const worker = stage.worker(async (job) => job.name, { connection: through(), runRetryDelay: 100 });
      const log = new EventLog(worker, ['completed', 'drained']);
      await log.get('drained');
      proxy.cut();
      await queue.add('after', {});
      expect((await log.get('completed', 1, RECONNECT_MS))[1]).toBe('after');
      stage.takeErrors();
    });

    it('a worker completes the job that it ran meanwhile', async () => {
      const queue = stage.queue();
      const gate = stage.gate();
      const worker = stage.worker(() => gate.opened, { connection: through(), runRetryDelay: 100 });
      const log = new EventLog(worker, ['active', 'completed']);
      const job = await queue.add('job', {});
      await log.get('active');
      proxy.cut();
      gate.open();
      await log.get('completed', 1, RECONNECT_MS);
      expect(await job.getState()).toBe('completed');
      expect(log.names).toEqual(['active', 'completed']);
      stage.takeErrors();
    });

    it('QueueEvents miss nothing', async () => {
      const queue = stage.queue();
      const log = stage.globalLog({ connection: through() });
      await queue.add('before', {});
      await log.get('waiting');
      proxy.cut();
      await queue.add('after', {});
      await log.get('waiting', 2, RECONNECT_MS);
      expect(log.names).toEqual(['added', 'waiting', 'added', 'waiting']);
      stage.takeErrors();
    });

    it('what was asked for while the server was away is done when it is back', async () => {
      await proxy.close();
      const queue = stage.queue({ connection: through() });
      const log = new EventLog(queue, ['error']);
      const adding = queue.add('patient', {});
      await log.get('error');
      await proxy.open();
      expect((await adding).id).toBe('1');
      stage.takeErrors();
    });

    it('a worker that never had a server starts when there is one', async () => {
      await proxy.close();
      const queue = stage.queue();
      await queue.add('job', {});
      const worker = stage.worker(async () => 'done', { connection: through() });
      const log = new EventLog(worker, ['error', 'completed']);
      await log.get('error');
      await proxy.open();
      expect((await log.get('completed', 1, RECONNECT_MS))[1]).toBe('done');
      stage.takeErrors();
    });
  });
});
