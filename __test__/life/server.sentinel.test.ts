// Redis Sentinel: every connection asks where the master is, and asks again when it was demoted or is gone.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { Ledger } from '../support/ledger.js';
import { OwnSentinels } from '../support/own-sentinels.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

/** A machine that is busy may take long to agree on a failover. */
const LIMIT_MS = 120_000;

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
    expect(await job.waitUntilFinished(events, 30_000)).toBe(2);
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

  it('goes on with the replica when the master is killed', async () => {
    const { connection } = watched; // with the sentinel that is about to go
    const ledger = new Ledger();
    const queue = stage.queue({ connection });
    const events = stage.events({ connection });
    const seen = new EventLog(events, ['completed']);
    const worker = stage.worker(ledger.run, { connection, concurrency: 10 });
    // the sentinel that is asked first goes down with it
    await watched.killSentinel();
    await ledger.addWhile(queue, () => watched.killMaster());
    const completed = await ledger.completed(queue);
    const lost = ledger.lost(completed);
    expect(lost.isTheEnd).toBe(true);
    expect(new Set(completed.values()).size).toBe(completed.size);
    expect(ledger.runs.size).toBeGreaterThanOrEqual(ledger.acknowledged.length - lost.count);
    const [last] = ledger.acknowledged.slice(-1);
    await until(
      'the last event',
      () => seen.entries.some(({ args }) => (args[0] as { jobId: string }).jobId === String(last?.id)),
      30_000,
    );
    await worker.close();
    stage.takeErrors();
  });

  it('a master that becomes a replica is left, and calls wait for a master', async () => {
    const [one, other] = [stage.keep(await OwnServer.start()), stage.keep(await OwnServer.start())];
    const queue = stage.queue({ connection: one.connection });
    const events = stage.events({ connection: one.connection });
    const worker = stage.worker(async () => 'done', { connection: one.connection });
    const first = await queue.add('job', 1);
    await first.waitUntilFinished(events, 30_000);
    const admin = one.client();
    const errors = new EventLog(queue, ['error']);
    await admin.replicaof('127.0.0.1', other.port);
    const adding = [queue.add('job', 2), queue.addBulk([{ name: 'job', data: 3 }])];
    const [error] = await errors.get<[Error]>('error', 1, 30_000);
    expect(error.message).toMatch(/^READONLY/);
    await admin.replicaof('NO', 'ONE');
    const jobs = (await Promise.all(adding)).flat();
    await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 30_000)));
    await admin.quit();
    for (const opened of [worker, events, queue]) await opened.close();
    stage.takeErrors();
  });
});
