// Redis Sentinel: every connection asks where the master is, and asks again when it was demoted or is gone.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from 'bullmq';
import { documentedSentinelRights } from '../support/acl.js';
import { chasquimq } from '../support/chasquimq.js';
import { Ledger } from '../support/ledger.js';
import { OwnSentinels } from '../support/own-sentinels.js';
import { OwnServer } from '../support/own-server.js';
import { Proxy } from '../support/proxy.js';
import { closedPort } from '../support/redis.js';
import { caughtUp } from '../support/replication.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

/** A machine that is busy may take long to agree on a failover. */
const LIMIT_MS = 300_000;

describe('server.sentinel', { timeout: LIMIT_MS }, () => {
  const stage = useStage(chasquimq);
  let watched: OwnSentinels;
  beforeAll(async () => {
    watched = await OwnSentinels.start();
  }, LIMIT_MS);
  afterAll(() => watched.close());

  /** Sends a job through a queue, a worker and a QueueEvents that all got `connection`. */
  async function roundTrip(connection: ConnectionOptions): Promise<void> {
    const queue = stage.queue({ connection });
    const events = stage.events({ connection });
    const worker = stage.worker(async (job) => (job.data as number) + 1, { connection });
    const job = await queue.add('job', 1);
    expect(await job.waitUntilFinished(events, 60_000)).toBe(2);
    for (const opened of [worker, events, queue]) await opened.close();
  }

  it.each<[string, (given: OwnSentinels['connection']) => ConnectionOptions]>([
    ['sentinels and a name', (given) => given],
    ['one sentinel of three', ({ sentinels, name }) => ({ sentinels: sentinels.slice(0, 1), name })],
    [
      'a sentinel that is gone, and one that is not',
      ({ sentinels, name }) => ({
        sentinels: [{ host: '127.0.0.1', port: 1 }, ...sentinels.slice(1, 2)],
        name,
      }),
    ],
  ])('takes %s', async (_, connection) => {
    await roundTrip(connection(watched.connection));
  });

  it('takes an ioredis instance, which stays open', async () => {
    const shared = new Redis({ ...watched.connection, maxRetriesPerRequest: null });
    await roundTrip(shared);
    expect(await shared.ping()).toBe('PONG');
    await shared.quit();
  });

  it('logs in to sentinels with the rights that the docs name', async () => {
    const rights = documentedSentinelRights();
    await watched.acl('asker', 'reset', 'on', '>secret', ...rights);
    await watched.acl('default', '-sentinel');
    const login = { sentinelUsername: 'asker', sentinelPassword: 'secret' };
    try {
      await roundTrip({ ...watched.connection, ...login });
      const queue = stage.queue({ connection: watched.connection });
      const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
      expect(error.message).toMatch(/^NOPERM/);
      await queue.close();
      stage.takeErrors();
    } finally {
      await watched.acl('default', '+@all');
    }
  });

  it.each<[string, (given: OwnSentinels['connection']) => ConnectionOptions, string]>([
    [
      'no sentinel answers',
      ({ name }) => ({ sentinels: [{ host: '127.0.0.1', port: 1 }], name }),
      'All sentinels are unreachable. Last error: connect ECONNREFUSED 127.0.0.1:1',
    ],
    ['nobody knows the name', (given) => ({ ...given, name: 'another' }), 'knows no master named another'],
  ])('tells that %s', async (_, connection, message) => {
    const queue = stage.queue({ connection: connection(watched.connection) });
    const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
    expect(error.message).toContain(message);
    await queue.close();
    stage.takeErrors();
  });

  it.each<[string, (master: OwnServer) => unknown]>([
    ['is killed', (master) => master.kill()],
    ['stands still', (master) => master.freeze()],
  ])('goes on with the replica when the master %s', async (_, happens) => {
    const own = stage.keep(await OwnSentinels.start());
    const { connection } = own; // with the sentinel that is about to go
    const ledger = new Ledger();
    const queue = stage.queue({ connection });
    // a wait on a server that stands still ends in its time
    const events = stage.events({ connection, blockingTimeout: 500 });
    const seen = new EventLog(events, ['completed']);
    const worker = stage.worker(ledger.run, { connection, concurrency: 10 });
    // the sentinel that is asked first goes down with it
    await own.killSentinel();
    await ledger.addWhile(queue, () => own.replaceMaster(happens));
    const completed = await ledger.completed(queue);
    const lost = ledger.lost(completed);
    expect(lost.isTheEnd).toBe(true);
    expect(new Set(completed.values()).size).toBe(completed.size);
    expect(ledger.runs.size).toBeGreaterThanOrEqual(ledger.acknowledged.length - lost.count);
    const lastId = String(ledger.acknowledged.at(-1)?.id);
    const isLast = ({ args }: { args: readonly unknown[] }) => (args[0] as { jobId: string }).jobId === lastId;
    await until('the last event', () => seen.entries.some(isLast), 60_000);
    await worker.close();
    stage.takeErrors();
  });

  it('who waits leaves a master that stands still as soon as there is another', async () => {
    const own = stage.keep(await OwnSentinels.start());
    const { connection } = own;
    const queue = stage.queue({ connection });
    const worker = stage.worker(async () => 1, { connection, drainDelay: 60 });
    const events = stage.events({ connection, blockingTimeout: 60_000 });
    const logs = [worker, events].map((emitter) => new EventLog(emitter, ['completed']));
    await queue.add('before', 1);
    for (const log of logs) await log.get('completed');
    await own.replaceMaster((master) => master.freeze());
    const since = performance.now();
    await queue.add('after', 1);
    for (const log of logs) await log.get('completed', 2, 60_000);
    // not only when their waits are over
    expect(performance.now() - since).toBeLessThan(30_000);
    await worker.close();
    stage.takeErrors();
  });

  it.each([
    ['a frame', () => ({})],
    ['records', (i: number) => ({ jobId: `own-${i}` })],
  ])('jobs of %s whose end the replica has not heard of run again, and no others', async (_, opts) => {
    const master = stage.keep(await OwnServer.start('--repl-diskless-sync-delay', '0'));
    const replica = stage.keep(await OwnServer.start('--replicaof', '127.0.0.1', String(master.port)));
    const proxy = stage.keep(new Proxy());
    proxy.upstream = master.connection;
    await proxy.open();
    const connection = { host: '127.0.0.1', port: proxy.port };
    const gates = ['ends', 'goes on'].map(() => stage.gate());
    const runs: string[] = [];
    const worker = stage.worker(
      async ({ name }) => {
        runs.push(name);
        await gates[name === 'ends' ? 0 : 1]?.opened;
      },
      { connection, concurrency: 2 },
    );
    const log = new EventLog(worker, ['active', 'completed', 'stalled']);
    const queue = stage.queue({ connection });
    await queue.addBulk(['ends', 'goes on'].map((name, i) => ({ name, data: i, opts: opts(i) })));
    await log.get('active', 2, 60_000);

    // the replica follows up to here, and no further
    const [client, follower] = [master.client(), replica.client()];
    await client.set('here', 1);
    const isThere = async () => (await follower.get('here')) === '1';
    await until('the replica to follow', isThere, 60_000);
    await follower.replicaof('NO', 'ONE');
    gates[0]?.open();
    await log.get('completed', 1, 60_000);

    proxy.upstream = replica.connection;
    proxy.cut();
    await log.get('completed', 2, 60_000);
    expect(runs).toEqual(['ends', 'goes on', 'ends']);
    gates[1]?.open();
    await log.get('completed', 3, 60_000);
    expect(await queue.getJobCounts('completed', 'active', 'waiting')).toEqual({ completed: 2, active: 0, waiting: 0 });
    expect(log.all('stalled').length).toBe(1);
    for (const opened of [client, follower]) opened.disconnect();
    await worker.close();
    stage.takeErrors();
  });

  it('a master that becomes a replica is left, and calls wait for a master', async () => {
    const [one, other] = [stage.keep(await OwnServer.start()), stage.keep(await OwnServer.start())];
    const queue = stage.queue({ connection: one.connection });
    const events = stage.events({ connection: one.connection });
    const worker = stage.worker(async () => 'done', { connection: one.connection });
    const first = await queue.add('job', 1);
    await first.waitUntilFinished(events, 60_000);
    const admin = one.client();
    const errors = new EventLog(queue, ['error']);
    await admin.replicaof('127.0.0.1', other.port);
    const adding = [queue.add('job', 2), queue.addBulk([{ name: 'job', data: 3 }])];
    const [error] = await errors.get<[Error]>('error', 1, 60_000);
    expect(error.message).toMatch(/^READONLY/);
    await admin.replicaof('NO', 'ONE');
    const jobs = (await Promise.all(adding)).flat();
    await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 60_000)));
    await admin.quit();
    for (const opened of [worker, events, queue]) await opened.close();
    stage.takeErrors();
  });

  /** Its connection to a server that was a master stays open, and that hears of nothing new any more. */
  async function readsFromSuccessor(connection: ConnectionOptions, demote: () => Promise<void>): Promise<void> {
    const reader = stage.queue({ connection });
    expect(await reader.getJobCounts('waiting')).toEqual({ waiting: 0 });
    await demote();
    const writer = stage.queue({ connection });
    const { id = '' } = await writer.add('job', 'new');
    const job = await reader.getJob(id);
    expect(job?.data).toBe('new');
    expect(await reader.getJobCounts('waiting')).toEqual({ waiting: 1 });
    stage.takeErrors();
  }

  it('what a master answers that has become a replica is not told: sentinels', async () => {
    const own = stage.keep(await OwnSentinels.start());
    await readsFromSuccessor(own.connection, async () => {
      await own.failover();
      await own.deafen(await closedPort());
    });
  });

  it('what a master answers that has become a replica is not told: an address that leads to another server', async () => {
    const [old, successor] = [stage.keep(await OwnServer.start()), stage.keep(await OwnServer.start())];
    const proxy = stage.keep(new Proxy());
    proxy.upstream = old.connection;
    await proxy.open();
    await readsFromSuccessor({ host: '127.0.0.1', port: proxy.port }, async () => {
      proxy.upstream = successor.connection;
      const admin = old.client();
      await admin.replicaof('127.0.0.1', await closedPort());
      await admin.quit();
    });
  });

  it('reads from a replica that was named on purpose', async () => {
    const [master, replica] = [stage.keep(await OwnServer.start()), stage.keep(await OwnServer.start())];
    const { id = '' } = await stage.queue({ connection: master.connection }).add('job', 1);
    const [one, other] = [master.client(), replica.client()];
    await other.replicaof('127.0.0.1', master.port);
    await caughtUp(one, other, 60_000);
    const reader = stage.queue({ connection: replica.connection, skipMetasUpdate: true });
    expect((await reader.getJob(id))?.data).toBe(1);
    for (const client of [one, other]) await client.quit();
  });
});
