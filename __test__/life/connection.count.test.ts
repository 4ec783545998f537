// How many connections each object has, once it does all that it can: what a user reckons with who sets `maxclients`.
import { afterEach, describe, expect, it } from 'vitest';
import { documentedRule } from '../support/acl.js';
import { chasquimq } from '../support/chasquimq.js';
import { useOwnServer } from '../support/use-own-server.js';
import { rejection, until } from '../support/waiting.js';

const { Queue, QueueEvents, Worker } = chasquimq;

/** Adds that the server refuses, one after the other. */
const REFUSED = 200;

describe('connections', () => {
  const own = useOwnServer();
  const opened: { close(): Promise<unknown> }[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close()));
    await become(0);
    await own.redis.config('SET', 'maxmemory', '0');
  });

  function keep<T extends { close(): Promise<unknown> }>(object: T): T {
    opened.push(object);
    return object;
  }

  /** All but the one that asks. */
  async function count(): Promise<number> {
    return ((await own.redis.client('LIST')) as string).trim().split('\n').length - 1;
  }

  function become(number: number): Promise<boolean> {
    return until(`${number} connections`, async () => (await count()) === number);
  }

  it('a Queue has one, whatever it does', async () => {
    const queue = keep(new Queue('count', { connection: own.connection }));
    await queue.waitUntilReady();
    await become(1);
    await queue.getJobCounts();
    expect(await count()).toBe(1);
    for (let i = 0; i < 3; i++) {
      await queue.add('job', {});
      await queue.addBulk([{ name: 'job', data: {} }]);
      expect(await count()).toBe(1);
    }
  });

  /** Connections that the server has ever had. */
  async function everOpened(): Promise<number> {
    return Number(/^total_connections_received:(\d+)/m.exec(await own.redis.info('stats'))?.[1]);
  }

  it.each<[string, () => Promise<unknown>]>([
    ['memory', () => own.redis.config('SET', 'maxmemory', '1')],
    ['rights', () => own.redis.acl('SETUSER', 'adds', 'resetkeys')],
  ])('a Queue whose adds are refused for want of %s opens no more', async (_, refuse) => {
    await own.redis.acl('SETUSER', 'adds', 'reset', ...documentedRule());
    const connection = { ...own.connection, username: 'adds', password: 'secret' };
    const queue = keep(new Queue('refused', { connection }));
    await queue.add('job', {});
    await become(1);
    await refuse();
    const before = await everOpened();
    for (let i = 0; i < REFUSED; i++) expect((await rejection(queue.add('job', {}))).message).toMatch(/^(OOM|NOPERM)/);
    expect((await everOpened()) - before).toBe(0);
  });

  it('a QueueEvents has one', async () => {
    const events = keep(new QueueEvents('count', { connection: own.connection }));
    await events.waitUntilReady();
    await become(1);
  });

  it('a Worker has two, and calls of its jobs go by that of the queues', async () => {
    const queue = keep(new Queue('count-worker', { connection: own.connection }));
    const ofQueue = 1;
    await queue.add('plain', {});
    await become(ofQueue);
    const work = async (job: { name: string; log: (row: string) => Promise<number> }) =>
      job.name === 'logs' ? job.log('row') : 0;
    const worker = keep(new Worker('count-worker', work, { connection: own.connection }));
    await worker.waitUntilReady();
    await become(ofQueue + 2);
    await queue.add('logs', {});
    await until('the row', async () => (await queue.getJobLogs('2')).count === 1);
    expect(await count()).toBe(ofQueue + 2);
  });
});
