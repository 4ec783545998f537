// `username` and `password` as functions: whoever opens a connection asks them, so that it goes on when a token has ended and another one counts.
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Queue, QueueEvents, Worker } from '../../src/index.js';
import { Queue as V5Queue } from '../../src/v5/index.js';
import type { ConnectionOptions } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { untilWaiting } from '../support/waiting-workers.js';
import { EventLog, until } from '../support/waiting.js';

const ADMIN = 'of the administrator';

describe('connection.credentials', () => {
  const stage = useStage(chasquimq);
  let own: OwnServer;
  let admin: Redis;

  beforeAll(async () => {
    own = await OwnServer.start();
    admin = own.client();
    await admin.acl('SETUSER', 'admin', 'on', `>${ADMIN}`, '~*', '+@all');
    await admin.auth('admin', ADMIN);
  });
  afterAll(async () => {
    await admin.quit();
    await own.close();
  });

  /** A queue, a worker and a reader of events, which go by these options. */
  function open(options: object): {
    queue: Queue;
    worker: Worker;
    events: QueueEvents;
    ends: EventLog;
    told: EventLog;
  } {
    const connection = { ...own.connection, ...options } as ConnectionOptions;
    const queue = stage.watch(new Queue(stage.queueName, { connection }));
    const worker = stage.watch(new Worker(stage.queueName, async ({ data }) => data as unknown, { connection }));
    const events = stage.watch(new QueueEvents(stage.queueName, { connection, lastEventId: '0-0' }));
    return {
      queue,
      worker,
      events,
      ends: new EventLog(worker, ['completed']),
      told: new EventLog(events, ['completed']),
    };
  }

  const connections = async (): Promise<number> =>
    ((await admin.client('LIST')) as string).trim().split('\n').length - 1;

  it('asks for each connection that is opened, and goes on when the password has changed', async () => {
    let password = 'first';
    let asked = 0;
    await admin.config('SET', 'requirepass', password);
    const ask = async (): Promise<string> => {
      asked++;
      return password;
    };
    const { queue, ends, told } = open({ password: ask });
    for (let job = 1; job <= 3; job++) {
      await queue.add('job', job);
      await ends.get('completed', job);
      await told.get('completed', job);
      const before = asked;
      // who is connected stays so when the password changes, as it is with tokens
      await admin.config('SET', 'requirepass', (password = `password ${job}`));
      await admin.call('CLIENT', 'KILL', 'SKIPME', 'yes');
      await until('connections', async () => asked > before && (await connections()) > 0);
    }
    await queue.add('job', 4);
    await ends.get('completed', 4);
    await told.get('completed', 4);
    stage.takeErrors();
    await admin.config('SET', 'requirepass', '');
  });

  it('asks for the user as well, and again when the server refuses them', async () => {
    await admin.acl('SETUSER', 'late', 'on', '>secret', '~*', '+@all');
    const passwords = ['wrong', 'wrong'];
    const { queue, ends } = open({ username: () => 'late', password: () => passwords.pop() ?? 'secret' });
    await queue.add('job', 1);
    await ends.get('completed');
    expect(await admin.client('LIST')).toContain('user=late');
    expect(stage.takeErrors().map(({ message }) => message)).toContain(
      'WRONGPASS invalid username-password pair or user is disabled.',
    );
  });

  it('tells what the function throws, and what is no text, and asks again', async () => {
    await admin.acl('SETUSER', 'odd', 'on', '>secret', '~*', '+@all');
    const answers = [
      () => Promise.reject(new Error('no token today')),
      () => undefined,
      () => ({}),
      () => ({ token: 1n, expiresAt: 1 }),
      () => '',
    ];
    const { queue, ends } = open({ username: 'odd', password: () => (answers.shift() ?? (() => 'secret'))() });
    await queue.add('job', 1);
    await ends.get('completed');
    const told = stage.takeErrors().map(({ message }) => message);
    expect(told).toContainEqual(expect.stringContaining('no token today'));
    expect(told).toContainEqual(
      expect.stringContaining('expiresAt of connection.password must be a Date, or epoch ms'),
    );
    expect(told).toContainEqual(
      expect.stringContaining('connection.password must give a string or { token, expiresAt }'),
    );
  });

  it('logs in anew on open connections before a token ends, and tries again when that is refused', async () => {
    const tokens = ['of one', 'of two', 'of three'];
    await admin.acl('SETUSER', 'brief', 'on', ...tokens.map((token) => `>${token}`), '~*', '&*', '+@all');
    const given: string[] = [];
    // the second answer of each is refused
    const password = () => {
      const token = given.length % 2 === 0 ? tokens[given.length % 3] : 'too late';
      given.push(token);
      return Promise.resolve({ token, expiresAt: new Date(Date.now() + 1_100) });
    };
    const logins = async (): Promise<number> =>
      Number(/cmdstat_auth:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0);
    const { queue, worker, events, ends, told } = open({ username: 'brief', password });
    await queue.add('job', 1);
    await ends.get('completed');
    await told.get('completed');
    // the last connection is that of an idle worker
    await untilWaiting(admin, queue.name, 1);
    const ids = async (): Promise<string[]> => {
      const list = ((await admin.client('LIST')) as string).split('\n').filter((line) => line.includes('user=brief'));
      return list.map((line) => line.split(' ')[0]).sort();
    };
    const [before, open_] = [await logins(), await ids()];
    await until('logins', async () => (await logins()) >= before + 3 * open_.length);
    expect(await ids()).toEqual(open_);
    await queue.add('job', 2);
    await told.get('completed', 2);
    // those that are open are refused again and again
    await Promise.all([queue.close(), worker.close(), events.close()]);
    expect(stage.takeErrors().map(({ message }) => message)).toContain(
      'WRONGPASS invalid username-password pair or user is disabled.',
    );
  });

  it('takes nothing that a server tells for what it says of a login that it refuses', async () => {
    await admin.acl('SETUSER', 'once', 'on', '>secret', '~*', '&*', '+@all');
    const queue = stage.watch(new Queue(stage.queueName, { connection: own.connection }));
    let asked = 0;
    const password = () => {
      const token = asked++ === 0 ? 'secret' : 'too late';
      return Promise.resolve({ token, expiresAt: new Date(Date.now() + 1_100) });
    };
    const connection = { ...own.connection, username: 'once', password };
    // it waits in the server nearly all the time
    const events = stage.watch(new QueueEvents(stage.queueName, { connection, lastEventId: '0-0' }));
    const told = new EventLog(events, ['added']);
    for (let job = 1; job <= 4; job++) {
      await until('a login', () => asked >= job);
      await queue.add('job', job);
      await told.get('added', job);
    }
    await events.close();
    const wrong = 'WRONGPASS invalid username-password pair or user is disabled.';
    expect(new Set(stage.takeErrors().map(({ message }) => message))).toEqual(new Set([wrong]));
  });

  it('lets who waits for a job wait on when the connection logs in anew', async () => {
    const queue = stage.watch(new Queue(stage.queueName, { connection: own.connection }));
    await admin.acl('SETUSER', 'taker', 'on', '>secret', '~*', '&*', '+@all');
    let asked = 0;
    const password = () => {
      asked++;
      return Promise.resolve({ token: 'secret', expiresAt: new Date(Date.now() + 1_100) });
    };
    const connection = { ...own.connection, username: 'taker', password };
    const worker = stage.watch(new Worker(stage.queueName, null, { connection, drainDelay: 20 }));
    // the first call finds the queue empty, and the next one waits
    expect(await worker.getNextJob('token')).toBeUndefined();
    const taken = worker.getNextJob('token');
    await until('it to wait', async () => ((await admin.client('LIST')) as string).includes('cmd=bzpopmin'));
    const before = asked;
    // of each connection more than once
    await until('logins', () => asked >= before + 8);
    const job = await queue.add('job', 1);
    expect((await taken)?.id).toBe(job.id);
  });

  it('closes while a function does not answer', async () => {
    const connection = { ...own.connection, password: () => new Promise<string>(() => {}) };
    const worker = stage.watch(new Worker(stage.queueName, async () => undefined, { connection }));
    const queue = stage.watch(new Queue(stage.queueName, { connection }));
    await Promise.all([worker.close(), queue.close()]);
  });

  it('refuses functions where they are not asked', async () => {
    const sentinels = { sentinels: [own.connection], name: 'mymaster', sentinelPassword: () => 'secret' };
    expect(() => new Queue(stage.queueName, { connection: sentinels })).toThrow(
      'a function as connection.sentinelPassword is not supported',
    );
    const connection = { ...own.connection, password: () => 'any' } as never;
    const queue = stage.watch(new V5Queue(stage.queueName, { connection }));
    await expect(queue.client).rejects.toThrow('`client` where `username` or `password` is a function');
    await queue.waitUntilReady();
    await queue.add('job', 1);
  });

  it('gives up on a function that does not answer in time', async () => {
    let asked = 0;
    const password = (): Promise<string> => (asked++ === 0 ? new Promise(() => {}) : Promise.resolve('any'));
    const queue = stage.watch(
      new Queue(stage.queueName, { connection: { ...own.connection, password, connectTimeout: 100 } }),
    );
    await queue.add('job', 1);
    expect(asked).toBe(2);
    expect(stage.takeErrors()).not.toEqual([]);
  });

  it('shares connections where the same functions are given', async () => {
    const [one, other] = [() => 'any', () => 'any'];
    const before = await connections();
    for (const [password, count] of [
      [one, 1],
      [one, 1],
      [other, 2],
      ['any', 3],
    ] as const) {
      const connection = { ...own.connection, password };
      const queue = stage.watch(new Queue(`${stage.queueName}-${String(count)}`, { connection }));
      await queue.add('job', 1);
      expect((await connections()) - before).toBe(count);
    }
  });
});
