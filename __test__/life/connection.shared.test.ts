// What shares a connection does not share its fate: whatever happens to one queue's calls, those of the others go on, each exactly once.
import { Worker as Thread } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import type { Queue, Worker } from 'bullmq';
import { documentedRuleFor } from '../support/acl.js';
import { chasquimq } from '../support/chasquimq.js';
import { useOwnServer } from '../support/use-own-server.js';
import { until } from '../support/waiting.js';

const BUSY = new URL('programs/thread.mjs', import.meta.url);
const QUEUES = 21;
/** Calls that are under way at once. */
const CALLS = 100;

describe('connections that are shared', () => {
  const own = useOwnServer();
  const opened: { close(): Promise<unknown> }[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((each) => each.close()));
    await until('no connection', async () => (await clients()).length === 0);
  });

  function keep<T extends { close(): Promise<unknown> }>(object: T): T {
    opened.push(object);
    return object;
  }

  function queue(name: string, more = {}): Queue {
    return keep(new chasquimq.Queue(name, { connection: { ...own.connection, ...more } }));
  }

  function worker(name: string, does = async (): Promise<unknown> => undefined): Worker {
    return keep(new chasquimq.Worker(name, does, { connection: own.connection }));
  }

  /** All but the one that asks. */
  async function clients(): Promise<string[]> {
    const all = ((await own.redis.client('LIST')) as string).trim().split('\n');
    return all.filter((client) => !client.includes(' cmd=client|list '));
  }

  /** Adds that are under way at once, of the numbers 0 .. CALLS - 1. */
  const addMany = (to: Queue) => Array.from({ length: CALLS }, (_, number) => to.add('job', { number }));

  it(`of ${QUEUES} queues, with a worker each, and readers of events`, async () => {
    const names = Array.from({ length: QUEUES }, (_, number) => `shared-${number}`);
    const queues = names.map((name) => queue(name));
    const events = keep(new chasquimq.QueueEvents(names[0], { connection: own.connection }));
    await events.waitUntilReady();
    const logged = new Set<string>();
    for (const name of names) {
      keep(
        new chasquimq.Worker(name, async (job) => logged.add(`${name}:${await job.log('row')}`), {
          connection: own.connection,
        }),
      );
    }
    await Promise.all(queues.map((each) => each.add('job', {})));
    await until('all to run', () => logged.size === QUEUES);
    // one for calls, one for the steps of workers, one for what they are told, and one for each reader
    await until('so many', async () => (await clients()).length === 1 + 1 + 1 + 1);
    for (const each of queues) expect(await each.getWorkersCount()).toBe(1);
    await Promise.all(opened.splice(QUEUES + 1).map((each) => each.close()));
    for (const each of queues) expect(await each.getWorkersCount()).toBe(0);
    await until('the others', async () => (await clients()).length === 2);
  });

  it('only where they lead to the same server, with the same rights and settings', async () => {
    const differing = [
      {},
      {},
      { db: 1 },
      { connectionName: 'shown' },
      { connectTimeout: 9000 },
      { username: 'default' },
    ];
    for (const more of differing) await queue('differing', more).add('job', {});
    await until('so many', async () => (await clients()).length === differing.length - 1);
    const thread = new Thread(BUSY, { workerData: { name: 'of-a-thread', connection: own.connection, does: 'add' } });
    await new Promise((resolve) => thread.once('message', resolve));
    try {
      // its queue's, its worker's two, and one for its reader of events
      await until('those of the thread', async () => (await clients()).length === differing.length - 1 + 4);
    } finally {
      await thread.terminate();
    }
  });

  it('one queue whose adds are refused takes nothing from the others', async () => {
    await own.redis.acl('SETUSER', 'tenant', 'reset', ...documentedRuleFor('mine'));
    const connection = { ...own.connection, username: 'tenant', password: 'secret' };
    const [mine, others] = ['mine', 'theirs'].map((prefix) =>
      keep(new chasquimq.Queue('refused', { connection, prefix })),
    );
    await mine.add('first', {});
    for (let round = 0; round < 5; round++) {
      const calls = Array.from({ length: CALLS }, () => [mine.add('job', {}), others.add('job', {})]);
      const [added, refused] = [0, 1].map((side) => calls.map((pair) => pair[side]));
      const ended = await Promise.allSettled(refused);
      expect(ended.map((each) => each.status === 'rejected' && String(each.reason).slice(0, 30))).toEqual(
        ended.map(() => expect.stringContaining('NOPERM')),
      );
      const ids = (await Promise.all(added)).map((job) => Number(job.id));
      expect(ids).toEqual(ids.map((_, place) => ids[0] + place));
    }
    expect(await mine.getWaitingCount()).toBe(1 + 5 * CALLS);
    expect(await clients()).toHaveLength(1);
  });

  it.each<[string, (it: Queue) => Promise<unknown>]>([
    ['is closed', (it) => it.close()],
    ['is cut off', async (it) => it.disconnect()],
  ])('one queue that %s amid its calls takes nothing from the others', async (_, end) => {
    const [ending, going] = [queue('ending'), queue('going')];
    await Promise.all([ending.add('first', {}), going.add('first', {})]);
    const [before, calls] = [await going.getWaitingCount(), [addMany(ending), addMany(going)]];
    const [ended] = await Promise.all([Promise.allSettled(calls[0]), end(ending)]);
    const added = await Promise.all(calls[1]);
    expect(new Set(added.map((job) => job.id)).size).toBe(CALLS);
    expect(await going.getWaitingCount()).toBe(before + CALLS);
    // what was told to be there is there, and nothing twice
    const again = queue('ending');
    const told = ended.flatMap((each) => (each.status === 'fulfilled' ? [(each.value as { id: string }).id] : []));
    const there = (await again.getJobs(['waiting'], 0, -1)).map((job) => job.data.number as number);
    expect(new Set(there).size).toBe(there.length);
    for (const id of told) expect(await again.getJobState(id)).toBe('waiting');
    await Promise.all([again.obliterate(), going.obliterate()]);
  });

  it('each hears that it broke, once, and all go on', async () => {
    const queues = Array.from({ length: 3 }, (_, number) => queue(`breaking-${number}`));
    const ran: string[] = [];
    const workers = queues.map((each) =>
      keep(
        new chasquimq.Worker(each.name, async (job) => ran.push(`${each.name}:${job.data.number}`), {
          connection: own.connection,
        }),
      ),
    );
    await Promise.all(workers.map((each) => each.waitUntilReady()));
    const closed = new Map<unknown, number>();
    const hear = (each: unknown) => () => closed.set(each, (closed.get(each) ?? 0) + 1);
    queues.forEach((each) => each.on('ioredis:close', hear(each)));
    workers.forEach((each) => each.on('ioredis:close', hear(each)));
    const adding = queues.flatMap(addMany);
    await own.redis.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await Promise.all(adding);
    await until('all to run', () => ran.length >= 3 * CALLS);
    expect(new Set(ran).size).toBe(3 * CALLS);
    expect(ran).toHaveLength(3 * CALLS);
    await until('all to hear', () => closed.size === 6);
    expect([...closed.values()]).toEqual(Array.from({ length: 6 }, () => 1));
    await until('so many again', async () => (await clients()).length === 1 + 1 + 1);
    for (const each of queues) expect(await each.getWorkersCount()).toBe(1);
  });

  it('workers are told apart by their names, however odd', async () => {
    const names = ['a|b', '50%', '%7C', 'plain'];
    const count = queue('names');
    for (const name of names) {
      keep(new chasquimq.Worker('names', async () => {}, { connection: own.connection, name }));
    }
    worker('other');
    await until('all', async () => (await count.getWorkersCount()) === names.length);
    const found = (await count.getWorkers()).map((each) => each.rawname?.split(':w:')[1]);
    expect(found.sort()).toEqual([...names].sort());
  });
});
