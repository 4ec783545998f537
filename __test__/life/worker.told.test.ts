// How workers that wait are told of work: all of a thread hear by one connection. Where somebody may not use channels, or a message is lost, no job waits for long.
import { afterEach, describe, expect, it } from 'vitest';
import type { Job, Queue, Worker } from 'bullmq';
import type { Queue as OurQueue } from '../../src/index.js';
import { documentedRule } from '../support/acl.js';
import { chasquimq } from '../support/chasquimq.js';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';
import { untilWaiting } from '../support/waiting-workers.js';

const MANY = 50;
/** Longer than anything here waits that is told. */
const LONG_S = 60;

describe('worker.told', () => {
  const own = useOwnServer();
  const opened: { close(): Promise<unknown> }[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close()));
    await until('no connection', async () => (await clients()).length === 0);
    await own.redis.flushall();
  });

  function keep<T extends { close(): Promise<unknown> }>(object: T): T {
    opened.push(object);
    return object;
  }

  const queueOf = (name: string, more = {}): Queue =>
    keep(new chasquimq.Queue(name, { connection: { ...own.connection, ...more } }));

  function workerOf(name: string, ran: string[], more = {}, opts = {}): Worker {
    const connection = { ...own.connection, ...more };
    return keep(new chasquimq.Worker(name, async (job) => ran.push(`${name}:${job.name}`), { connection, ...opts }));
  }

  /** All but the one that asks. */
  async function clients(): Promise<string[]> {
    const all = ((await own.redis.client('LIST')) as string).trim().split('\n');
    return all.filter((client) => !client.includes(' cmd=client|list '));
  }

  const hearing = async (): Promise<string[]> => (await clients()).filter((client) => !client.includes(' ssub=0 '));

  /** A user with these parts of the rule only. */
  async function user(name: string, has: (part: string) => boolean) {
    await own.redis.acl('SETUSER', name, 'reset', ...documentedRule().filter(has));
    return { username: name, password: 'secret' };
  }

  it(`${MANY} queues with a worker each need three connections, and each job comes at once`, async () => {
    const ran: string[] = [];
    const queues = Array.from({ length: MANY }, (_, number) => queueOf(`many-${number}`));
    for (const { name } of queues) workerOf(name, ran, {}, { drainDelay: LONG_S });
    for (const { name } of queues) await untilWaiting(own.redis, name, 1);
    expect(await clients()).toHaveLength(3);
    for (const each of queues) await each.add('job', {});
    await until('all to run', () => ran.length === MANY);
    expect(new Set(ran).size).toBe(MANY);
    expect(await clients()).toHaveLength(3);
    expect(await hearing()).toHaveLength(1);
  });

  it('one that closes is told nothing more, and the others are', async () => {
    const [ran, queue] = [[] as string[], queueOf('closing')];
    const workers = Array.from({ length: 3 }, () => workerOf('closing', ran, {}, { drainDelay: LONG_S }));
    await untilWaiting(own.redis, 'closing', 3);
    await workers[1]?.close();
    await untilWaiting(own.redis, 'closing', 2);
    for (let added = 1; added <= 20; added++) {
      await queue.add('job', {});
      await until('it to run', () => ran.length === added);
    }
    await Promise.all(workers.map((each) => each.close()));
    await until('nobody to hear', async () => (await hearing()).length === 0);
    expect(await own.redis.exists('{bull:closing}:waiting-workers')).toBe(0);
  });

  it('a connection that breaks loses no work that comes meanwhile', async () => {
    const [ran, queue] = [[] as string[], queueOf('breaking')];
    for (let number = 0; number < 3; number++) workerOf('breaking', ran, {}, { drainDelay: LONG_S });
    for (let added = 1; added <= 20; added++) {
      await untilWaiting(own.redis, 'breaking', 3);
      const client = await until('them to hear', async () => (await hearing())[0]);
      const [, id = ''] = /\bid=(\d+)/.exec(client) ?? [];
      await Promise.all([own.redis.client('KILL', 'ID', Number(id)), queue.add('job', {})]);
      await until('it to run', () => ran.length === added);
    }
  });

  it.each([
    ['channels', (part: string) => !part.startsWith('&')],
    ['the command', (part: string) => !part.startsWith('+ssubscribe')],
  ])('a worker whose user has no right to %s waits by a connection of its own', async (_, has) => {
    const as = await user('deaf', has);
    const [ran, queue] = [[] as string[], queueOf('deaf')];
    workerOf('deaf', ran, as, { drainDelay: LONG_S });
    for (let added = 1; added <= 5; added++) {
      await until('it to wait', async () => (await clients()).some((client) => client.includes(' flags=b ')));
      await queue.add('job', {});
      await until('it to run', () => ran.length === added);
    }
    expect(await hearing()).toHaveLength(0);
  });

  it('where who adds may not publish, a worker that waits finds out, and waits by a connection of its own', async () => {
    const as = await user('silent', (part) => part !== '+spublish');
    const [ran, silent] = [[] as string[], queueOf('silent', as)];
    const drainDelay = 1;
    workerOf('silent', ran, {}, { drainDelay });
    for (const nth of [1, 2]) {
      await untilWaiting(own.redis, 'silent', 1);
      await silent.add('unheard', {});
      await until('it to run', () => ran.length === nth);
    }
    const waits = async () => (await clients()).some((client) => client.includes(' flags=b '));
    await until('it to wait', waits);
    const begin = performance.now();
    await silent.add('next', {});
    await until('that to run', () => ran.length === 3);
    expect(performance.now() - begin).toBeLessThan(drainDelay * 1_000);
  });

  it('where who cancels may not publish, a worker finds out as it renews its lease', async () => {
    const [silent, reasons] = [
      queueOf('cancelled', await user('mute', (part) => part !== '+spublish')),
      [] as string[],
    ];
    const handler = (_: Job, __?: string, signal?: AbortSignal): Promise<void> =>
      new Promise((resolve) =>
        signal!.addEventListener('abort', () => resolve(void reasons.push((signal!.reason as Error).message))),
      );
    const renews = { lockDuration: 5_000, lockRenewTime: 200 };
    keep(new chasquimq.Worker('cancelled', handler, { connection: { ...own.connection }, ...renews }));
    const { id } = await silent.add('job', {});
    await until('it to run', async () => (await silent.getActiveCount()) === 1);
    expect(await (silent as unknown as OurQueue).cancelJob(id!, { reason: 'unheard' })).toBe('signalled');
    await until('it to hear', () => reasons.length === 1);
    expect(reasons).toEqual(['The job was cancelled: unheard']);
  });

  it('beside a release that knows only the marker a worker waits for that', async () => {
    const [ran, queue] = [[] as string[], queueOf('old')];
    workerOf('old', ran, {}, { drainDelay: 1 });
    await untilWaiting(own.redis, 'old', 1);
    await own.redis.zadd('{bull:old}:wake', 0, '0');
    await until('it to wait', async () => (await clients()).some((client) => client.includes(' flags=b ')));
    await queue.add('job', {});
    await until('it to run', () => ran.length === 1);
  });

  it('a worker that missed a message looks for work by itself', async () => {
    const [ran, queue] = [[] as string[], queueOf('missed')];
    const worker = workerOf('missed', ran, {}, { drainDelay: 1 });
    await untilWaiting(own.redis, 'missed', 1);
    // as one that was told, and does not know it
    await own.redis.del('{bull:missed}:waiting-workers');
    await queue.pause();
    await queue.add('job', {});
    await own.redis.del('{bull:missed}:wake');
    await own.redis.hdel('{bull:missed}:meta', 'paused');
    await until('it to run', () => ran.length === 1);
    expect(worker.isRunning()).toBe(true);
  });
});
