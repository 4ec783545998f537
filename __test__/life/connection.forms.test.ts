// Ways to say where the server is that need a server of their own; those that do not are in parity/connection.forms.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { keysContaining } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

/** What it is, what is given, and which databases then hold keys. */
type Form = [string, () => ConnectionOptions | string, Record<number, boolean>];

const PASSWORD = 'p@ss:w/rd?#%';

describe('connection.forms', () => {
  const stage = useStage(chasquimq);
  let own: OwnServer;
  let admin: Redis;
  beforeAll(async () => {
    own = await OwnServer.start();
    admin = own.client();
    await admin.acl('SETUSER', 'ann', 'reset', 'on', `>${PASSWORD}`, '~*', '&*', '+@all');
    // No more than a queue needs: its own keys, and neither INFO nor CLIENT.
    const commands = ['+@all', '-@admin', '-info', '-client', '-keys', '-flushall', '-flushdb'];
    await admin.acl('SETUSER', 'bob', 'reset', 'on', '>secret', '~{bull:*', ...commands);
  });
  afterAll(async () => {
    await admin.quit();
    await own.close();
  });

  /** Sends a job through a queue, a worker and a QueueEvents that all got `connection`; counts the queue's keys by db. */
  async function roundTrip(form: ConnectionOptions | string): Promise<Record<number, boolean>> {
    // Texts are more than BullMQ's types take.
    const connection = form as ConnectionOptions;
    const queue = stage.queue({ connection });
    const events = stage.events({ connection });
    const worker = stage.worker(async (job) => (job.data as number) + 1, { connection });
    const job = await queue.add('job', 1);
    expect(await job.waitUntilFinished(events, 60_000)).toBe(2);
    for (const opened of [worker, events, queue]) await opened.close();
    const found: Record<number, boolean> = {};
    for (const db of [0, 3]) {
      const client = new Redis({ ...own.connection, db });
      found[db] = (await keysContaining(client, stage.queueName)).length > 0;
      await client.quit();
    }
    return found;
  }

  const IN_0 = { 0: true, 3: false };
  const IN_3 = { 0: false, 3: true };

  it.each<Form>([
    ['its path', () => ({ path: own.path }), IN_0],
    ['its path and a database', () => ({ path: own.path, db: 3 }), IN_3],
    ['its path, a user and a password', () => ({ path: own.path, username: 'ann', password: PASSWORD }), IN_0],
    ['its path alone', () => own.path, IN_0],
    ['a unix URL', () => `unix://${own.path}`, IN_0],
    ['a url that is a path', () => ({ url: own.path }), IN_0],
  ])('a unix socket by %s', async (_, connection, where) => {
    expect(await roundTrip(connection())).toEqual(where);
  });

  it('a unix socket of an ioredis instance, which stays open', async () => {
    const shared = new Redis(own.path, { maxRetriesPerRequest: null, db: 3 });
    expect(await roundTrip(shared)).toEqual(IN_3);
    expect(await shared.ping()).toBe('PONG');
    await shared.quit();
  });

  it('a unix socket that is not there is reported', async () => {
    const path = `${own.folder}/none.sock`;
    const queue = stage.queue({ connection: { path } });
    const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
    expect(error.message).toContain(path);
    expect(error).toMatchObject({ code: 'ENOENT' });
    await queue.close();
    stage.takeErrors();
  });

  const url = (credentials: string, db = '') => `redis://${credentials}127.0.0.1:${own.port}${db}`;
  const ann = `ann:${encodeURIComponent(PASSWORD)}@`;

  it.each<Form>([
    ['a URL', () => url(''), IN_0],
    ['a URL with a database', () => url('', '/3'), IN_3],
    ['a URL with a user and a password', () => url(ann), IN_0],
    ['a URL with everything', () => ({ url: url(ann, '/3') }), IN_3],
    ['a URL object', () => new URL(url(ann, '/3')), IN_3],
    ['a host and port alone', () => `127.0.0.1:${own.port}`, IN_0],
    ['a user and a password', () => ({ ...own.connection, username: 'ann', password: PASSWORD, db: 3 }), IN_3],
    ['a user with few rights', () => ({ ...own.connection, username: 'bob', password: 'secret' }), IN_0],
  ])('%s', async (_, connection, where) => {
    expect(await roundTrip(connection())).toEqual(where);
  });

  it('the options of an ioredis instance, which is neither used nor closed', async () => {
    const shared = new Redis({
      ...own.connection,
      username: 'ann',
      password: PASSWORD,
      db: 3,
      connectionName: 'shared',
      maxRetriesPerRequest: null,
    });
    await shared.ping();
    const calls = String(await admin.client('LIST')).match(/^id=\d+ .*name=shared .*$/m)?.[0];
    expect(await roundTrip(shared)).toEqual(IN_3);
    expect(shared.status).toBe('ready');
    expect(await shared.ping()).toBe('PONG');
    expect(calls).toContain(' user=ann');
    await shared.quit();
  });

  it('a password for the default user', async () => {
    await admin.config('SET', 'requirepass', PASSWORD);
    try {
      const locked = stage.queue({ connection: own.connection });
      expect((await new EventLog(locked, ['error']).get<[Error]>('error'))[0].message).toMatch(/^NOAUTH/);
      await locked.close();
      stage.takeErrors();
      const queue = stage.queue({ connection: { ...own.connection, password: PASSWORD } });
      expect((await queue.add('job', {})).id).toBe('1');
      const byUrl = stage.queue({ connection: { url: url(`:${encodeURIComponent(PASSWORD)}@`) } });
      expect((await byUrl.add('job', {})).id).toBe('2');
    } finally {
      await admin.config('SET', 'requirepass', '');
    }
  });

  it('a password that is wrong at first works once it is right', async () => {
    const queue = stage.queue({ connection: { ...own.connection, username: 'eve', password: 'late' } });
    const log = new EventLog(queue, ['error']);
    const adding = queue.add('job', {});
    expect((await log.get<[Error]>('error'))[0].message).toMatch(/^WRONGPASS/);
    await admin.acl('SETUSER', 'eve', 'reset', 'on', '>late', '~*', '&*', '+@all');
    expect((await adding).id).toBe('1');
    stage.takeErrors();
  });

  it('shows connectionName to the server', async () => {
    const queue = stage.queue({ connection: { ...own.connection, connectionName: 'till-7' } });
    await queue.waitUntilReady();
    expect(String(await admin.client('LIST'))).toContain(' name=till-7 ');
  });
});
