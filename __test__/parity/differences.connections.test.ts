// Pins wanted differences in connections, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { EventEmitter } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { ConnectionOptions, IQueueBackend } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { OwnServer } from '../support/own-server.js';
import { Proxy } from '../support/proxy.js';
import { closedPort, connection, keysContaining, redisClient, server } from '../support/redis.js';
import { sideOf, thrown } from '../support/sides.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, sleep, until } from '../support/waiting.js';

/** Longer than anything that is to settle takes, on a slow machine. */
const SETTLED_MS = 20_000;

describe.each(libraries)('$name: differences, connections', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = sideOf(name);
  type Outcome = 'resolved' | 'rejected' | 'waits';
  /**
   * What a promise has come to. Nothing tells that one will not settle: one that is to wait is given so many milliseconds, and others what a slow
   * machine needs.
   */
  const outcome = (promise: Promise<unknown>, expected: Outcome, ms = 1_000): Promise<Outcome> =>
    Promise.race([
      promise.then(
        (): Outcome => 'resolved',
        (): Outcome => 'rejected',
      ),
      sleep(expected === 'waits' ? ms : SETTLED_MS).then((): Outcome => 'waits'),
    ]);
  const expectOutcome = async (promise: Promise<unknown>, expected: Outcome, ms?: number): Promise<void> =>
    expect(await outcome(promise, expected, ms)).toBe(expected);

  it('closed-errors', async () => {
    const queue = stage.queue();
    await queue.waitUntilReady();
    await queue.close();
    const error = await rejection(queue.getJobCounts());
    expect([error.message, error.name]).toEqual([
      'Connection is closed.',
      of({ bullmq: 'Error', chasquimq: 'ConnectionClosedError' }),
    ]);
  });

  it('workers-share-a-connection', async () => {
    const queue = stage.queue();
    const workers = ['one', 'two', 'three'].map((own) => stage.worker(async () => {}, { name: own }));
    for (const worker of workers) await worker.waitUntilReady();
    await until('three workers', async () => (await queue.getWorkersCount()) === 3);
    const found = await queue.getWorkers();
    expect(found.map((worker) => worker.rawname?.split(':w:')[1]).sort()).toEqual(['one', 'three', 'two']);
    expect(new Set(found.map((worker) => worker.id)).size).toBe(of({ bullmq: 3, chasquimq: 1 }));
  });

  it('reply-error-command', async () => {
    const own = stage.keep(await OwnServer.start());
    const told = (error: Error) => JSON.stringify((error as { command?: unknown }).command) ?? '';
    const refused = stage.queue({ connection: { ...own.connection, username: 'nobody', password: 'a password' } });
    const [error] = await new EventLog(refused, ['error']).get<[Error]>('error');
    expect(told(error).includes('a password')).toBe(of({ bullmq: true, chasquimq: false }));
    stage.takeErrors();
    await refused.close();

    const admin = own.client();
    await admin.config('SET', 'min-replicas-to-write', '1');
    const queue = stage.queue({ connection: own.connection });
    const command = told(await rejection(queue.add('job', { is: 'personal' })));
    expect([command.includes('personal'), command.includes(stage.queueName)]).toEqual([
      of({ bullmq: true, chasquimq: false }),
      true,
    ]);
    await admin.config('SET', 'min-replicas-to-write', '0');
    await admin.quit();
  });

  it.each(['', '{tag}'])('keys-of-its-own: names with %j', async (tag) => {
    stage.queueName += tag;
    const name = `bull:${stage.queueName}`;
    await stage.queue().add('job', {});
    const redis = redisClient();
    const keys = await keysContaining(redis, stage.queueName);
    await redis.quit();
    const base = of({ bullmq: `${name}:`, chasquimq: tag ? `${name}:chasqui:` : `{${name}}:` });
    expect([keys.length > 0, keys.filter((key) => !key.startsWith(base))]).toEqual([true, []]);
  });

  it('ioredis-is-read', async () => {
    const shared = new Redis({ ...server, lazyConnect: true, maxRetriesPerRequest: null });
    await stage.queue({ connection: shared }).add('job', {});
    expect(shared.status).toBe(of({ bullmq: 'ready', chasquimq: 'wait' }));
    stage.keep({ close: async () => shared.disconnect() });
  });

  it('server-7', async () => {
    const queue = stage.queue({ connection: await serverOf('6.2.14') });
    const ready = queue.waitUntilReady().then(
      () => 'ready',
      (error: Error & { code?: string }) => error.code,
    );
    expect(await ready).toBe(of({ bullmq: 'ready', chasquimq: 'ERR_SERVER_TOO_OLD' }));
    await queue.close();
    stage.takeErrors();
  });

  /** A server that tells this version, and agrees to everything else. */
  async function serverOf(version: string): Promise<ConnectionOptions> {
    const info = `# Server\r\nredis_version:${version}\r\nrun_id:one\r\nmaxmemory_policy:noeviction\r\n`;
    const listener = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (data) => {
        // Commands come whole here, and INFO is the only one with an answer of its own.
        for (const command of data
          .toString()
          .split(/^\*\d+\r\n/m)
          .slice(1)) {
          socket.write(/^info\r$/im.test(command) ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n');
        }
      });
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    stage.keep({ close: async () => void listener.close() });
    return { host: '127.0.0.1', port: (listener.address() as AddressInfo).port };
  }

  it('other-drivers', () => {
    // as a client of node-redis looks
    const client = Object.assign(new EventEmitter(), {
      connect: async () => undefined,
      disconnect: async () => undefined,
      destroy: () => undefined,
      close: async () => undefined,
      quit: async () => 'OK',
      duplicate: () => client,
      sendCommand: async () => null,
      info: async () => 'redis_version:8.2.0',
      hSet: async () => 1,
      options: {},
      isOpen: true,
      isReady: true,
    });
    // there is no server behind it, which BullMQ soon finds out
    stage.keep({ close: async () => void stage.takeErrors() });
    const build = () => stage.queue({ connection: client as unknown as ConnectionOptions });
    expect(thrown(build)?.name).toBe(of({ bullmq: undefined, chasquimq: 'NotSupportedError' }));
    expect(client.listenerCount('ready') > 0).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('backend-factory', async () => {
    const methods: (string | symbol)[] = [];
    const backend = new globalThis.Proxy(new EventEmitter(), {
      get(emitter, key) {
        methods.push(key);
        return key === 'then' ? undefined : (Reflect.get(emitter, key) ?? (async () => undefined));
      },
    });
    const build = () => new lib.Queue(stage.queueName, { connection }, () => backend as unknown as IQueueBackend);
    expect(thrown(build)?.name).toBe(of({ bullmq: undefined, chasquimq: 'NotSupportedError' }));
    expect(methods.length > 0).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('key-prefix-option', () => {
    const build = () => stage.queue({ connection: { ...connection, keyPrefix: 'mine:' } });
    expect(thrown(build)?.name).toBe(of({ bullmq: undefined, chasquimq: 'Error' }));
  });

  it('connection-options-without-effect: what the engine cannot carry out', () => {
    const build = () => stage.queue({ connection: { ...connection, commandTimeout: 60_000 } });
    expect(thrown(build)?.name).toBe(of({ bullmq: undefined, chasquimq: 'NotSupportedError' }));
  });

  it('connection-options-without-effect: reconnectOnError', async () => {
    let asked = 0;
    const reconnectOnError = () => {
      asked++;
      return false as const;
    };
    const queue = stage.queue({ connection: { ...connection, reconnectOnError } });
    await queue.add('job', {});
    const redis = redisClient();
    for (const key of await keysContaining(redis, stage.queueName)) await redis.set(key, 'of another kind');
    await redis.quit();
    await rejection(queue.add('job', {}));
    expect(asked > 0).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('retry-strategy', async () => {
    const proxy = new Proxy();
    await proxy.open();
    stage.keep(proxy);
    let asked = 0;
    const retryStrategy = () => {
      asked++;
      return 3_000;
    };
    const queue = stage.queue({ connection: { host: '127.0.0.1', port: proxy.port, retryStrategy } });
    await queue.waitUntilReady();
    proxy.cut();
    if (name === 'bullmq') await until('it to be asked', () => asked > 0);
    await expectOutcome(queue.add('job', {}), of({ bullmq: 'waits', chasquimq: 'resolved' }));
    await queue.getJobCounts();
    stage.takeErrors();
  });

  it.each(['worker', 'events'] as const)('close-without-a-server: %s', async (kind) => {
    const proxy = new Proxy();
    proxy.port = await closedPort();
    const opts = { connection: { host: '127.0.0.1', port: proxy.port } };
    const opened = kind === 'worker' ? stage.worker(async () => undefined, opts) : stage.events(opts);
    await new EventLog(opened, ['error']).get('error');
    const closing = opened.close();
    await expectOutcome(closing, of({ bullmq: 'waits', chasquimq: 'resolved' }), 4_000);
    await proxy.open();
    stage.keep(proxy);
    await closing;
    stage.takeErrors();
  });

  it('refused-for-now: a master that has become a replica', async () => {
    const own = stage.keep(await OwnServer.start());
    const queue = stage.queue({ connection: own.connection });
    await queue.add('before', {});
    const gone = await queue.add('gone', {});
    await gone.remove();
    const redis = new Redis(own.connection);
    await redis.replicaof('127.0.0.1', await closedPort());
    const added = queue.add('job', {});
    await expectOutcome(added, of({ bullmq: 'rejected', chasquimq: 'waits' }));
    // a replica may not know of a job yet
    const told = [gone.updateProgress(1), gone.updateData({}), gone.log('row')];
    for (const call of told) await expectOutcome(call, of({ bullmq: 'rejected', chasquimq: 'waits' }));
    await redis.replicaof('NO', 'ONE');
    redis.disconnect();
    const message = await added.then(
      () => 'added',
      ({ message }: Error) => message.split(' ')[0],
    );
    expect(message).toBe(of({ bullmq: 'READONLY', chasquimq: 'added' }));
    for (const call of told) await expect(call).rejects.toThrow('Missing key for job');
    stage.takeErrors();
  });

  it('refused-for-now: a database that the server does not have', async () => {
    const own = stage.keep(await OwnServer.start('--databases', '1'));
    const queue = stage.queue({ connection: { ...own.connection, db: 1 } });
    const log = new EventLog(queue, ['error']);
    const added = queue.add('job', {});
    expect((await log.get<[Error]>('error'))[0].message).toBe('ERR DB index is out of range');
    await expectOutcome(added, of({ bullmq: 'resolved', chasquimq: 'waits' }));
    added.catch(() => {}); // it is never taken
    await queue.close();
    stage.takeErrors();
  });

  it('close-with-redis-gone', async () => {
    const own = stage.keep(await OwnServer.start());
    const queue = stage.queue({ connection: { ...own.connection, retryStrategy: () => null } });
    await queue.waitUntilReady();
    own.freeze();
    const adding = queue.add('job', {}).catch(() => undefined);
    const closing = queue.close();
    await expectOutcome(closing, of({ bullmq: 'waits', chasquimq: 'resolved' }), 6_000);
    await own.kill();
    await Promise.all([adding, closing.catch(() => undefined)]);
    stage.takeErrors();
  });

  it('flow-producer-close', async () => {
    const producer = stage.flowProducer();
    await producer.waitUntilReady();
    const { queueName } = stage;
    const flows = Array.from({ length: 50 }, () => ({ name: 'p', queueName, children: [{ name: 'c', queueName }] }));
    const adding = producer.addBulk(flows);
    const settled = expectOutcome(adding, of({ bullmq: 'rejected', chasquimq: 'resolved' }));
    await producer.close();
    await settled;
  });
});
