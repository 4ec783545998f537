// Redis Cluster: a queue lies in one slot, its connections find the node that serves it, and find it again.
import type { Cluster } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ConnectionOptions, Queue } from 'bullmq';
import { documentedClusterRights, documentedRule } from '../support/acl.js';
import type { Queue as OwnQueue } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { Ledger } from '../support/ledger.js';
import { OwnCluster } from '../support/own-cluster.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

/** A machine that is busy may take long to agree on a failover. */
const LIMIT_MS = 300_000;

describe('server.cluster', { timeout: LIMIT_MS }, () => {
  const stage = useStage(chasquimq);
  let cluster: OwnCluster;
  let client: Cluster;
  beforeAll(async () => {
    cluster = await OwnCluster.start();
    client = cluster.client({ redisOptions: { maxRetriesPerRequest: null } });
  }, LIMIT_MS);
  afterEach(() => cluster.mend());
  afterAll(async () => {
    client.disconnect();
    await cluster.close();
  });

  const keyOf = (queue: Queue) => `{${queue.qualifiedName}}:`;

  /** Sends jobs through a queue, a worker and a QueueEvents that all got `connection`. */
  async function roundTrip(connection: ConnectionOptions, part = ''): Promise<void> {
    const queue = stage.queue({ connection }, part);
    const events = stage.events({ connection }, part);
    const worker = stage.worker(
      async (job) => {
        if (job.attemptsMade === 0 && job.name === 'retried') throw new Error('once');
        await job.updateProgress(50);
        await job.log('a row');
        return (job.data as number) + 1;
      },
      { connection },
      part,
    );
    const jobs = [
      await queue.add('plain', 1),
      await queue.add('retried', 2, { attempts: 2, backoff: 1 }),
      await queue.add('delayed', 3, { delay: 10 }),
      await queue.add('first', 4, { priority: 1 }),
      ...(await queue.addBulk([{ name: 'bulk', data: 5, opts: { jobId: 'own' } }])),
    ];
    const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 60_000) as Promise<number>));
    expect(results).toEqual([2, 3, 4, 5, 6]);
    expect(await queue.getJobCounts('completed', 'failed')).toEqual({ completed: 5, failed: 0 });
    expect((await queue.getJobLogs('own')).logs).toEqual(['a row']);
    expect((await queue.getWorkers()).length).toBe(1);
    await worker.close();
    await queue.obliterate({ force: true });
    await Promise.all([events.close(), queue.close()]);
  }

  it('takes an ioredis Cluster, which stays open', async () => {
    // three queues or more lie on different nodes
    for (const part of ['a', 'b', 'c', 'd', 'e']) await roundTrip(client, part);
    expect(await client.ping()).toBe('PONG');
  });

  it.each<[string, () => ConnectionOptions]>([
    ['nodes', () => ({ nodes: cluster.startupNodes.slice(0, 1) })],
    ['nodes as URLs', () => ({ nodes: cluster.startupNodes.map(({ host, port }) => `redis://${host}:${port}`) })],
    ['a node that is gone, and one that is not', () => ({ nodes: [{ port: 1 }, ...cluster.startupNodes.slice(3, 4)] })],
  ])('takes %s', async (_, connection) => {
    await roundTrip(connection());
  });

  it('a user with the rights that the docs name is enough', async () => {
    await cluster.acl('jobs', 'reset', ...documentedRule(), ...documentedClusterRights());
    const login = { username: 'jobs', password: 'secret' };
    await roundTrip({ nodes: cluster.startupNodes, redisOptions: login });
  });

  it('tells that no node answers', async () => {
    const queue = stage.queue({ connection: { nodes: [{ host: '127.0.0.1', port: 1 }] } });
    const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect(error.message).toBe(
      'All nodes of the cluster are unreachable. Last error: connect ECONNREFUSED 127.0.0.1:1',
    );
    await queue.close();
    stage.takeErrors();
  });

  it('adds flows whose queues share a hash tag', async () => {
    const [connection, prefix] = [client, '{flows}'];
    const flows = stage.flowProducer({ connection, prefix });
    const worker = stage.worker(async (job) => Object.values(await job.getChildrenValues()), { connection, prefix });
    stage.worker(async (job) => (job.data as number) * 2, { connection, prefix }, 'child');
    const log = new EventLog(worker, ['completed']);
    const children = [1, 2].map((data) => ({ name: 'child', queueName: stage.name('child'), data }));
    const { job } = await flows.add({ name: 'parent', queueName: stage.name(), children });
    const [, values] = await log.get<[unknown, number[]]>('completed', 1, 60_000);
    expect(values.sort()).toEqual([2, 4]);
    const tree = await flows.getFlow({ queueName: stage.name(), id: job.id as string });
    expect(tree.children?.map((child) => child.job.data as number).sort()).toEqual([1, 2]);
    for (const part of ['', 'child']) await stage.queue({ connection, prefix }, part).obliterate({ force: true });
  });

  it('adds flows of one queue, whatever the prefix', async () => {
    const connection = client;
    const flows = stage.flowProducer({ connection });
    const trees = ['a', 'b', 'c', 'd'].map(async (part) => {
      const queueName = stage.name(part);
      const children = [{ name: 'child', queueName, data: part }];
      const { job } = await flows.add({ name: 'parent', queueName, children });
      expect(await job.getState()).toBe('waiting-children');
      return flows.getFlow({ queueName, id: job.id as string });
    });
    const found = await Promise.all(trees);
    expect(found.map((tree) => tree.children?.map((child) => child.job.data as string))).toEqual([
      ['a'],
      ['b'],
      ['c'],
      ['d'],
    ]);
    for (const part of ['a', 'b', 'c', 'd']) await stage.queue({ connection }, part).obliterate({ force: true });
  });

  it('removes a child whose id has three parts, as names of queues may have, with its parent', async () => {
    const [queue, queueName] = [stage.queue({ connection: client }), stage.name()];
    const children = [{ name: 'child', queueName, opts: { jobId: 'a:b:c' } }];
    const { job } = await stage.flowProducer({ connection: client }).add({ name: 'parent', queueName, children });
    await job.remove();
    expect(await queue.getJobCountByTypes()).toBe(0);
  });

  it('refuses flows that lie in several slots, as a whole', async () => {
    const connection = client;
    const flows = stage.flowProducer({ connection });
    const children = [{ name: 'child', queueName: stage.name('child'), data: 1 }];
    const refused = await rejection(flows.add({ name: 'parent', queueName: stage.name('parent'), children }));
    expect(refused.message).toMatch(/^CROSSSLOT .* a prefix with a hash tag/);
    const queue = stage.queue({ connection }, 'child');
    const parent = await stage.queue({ connection }, 'parent').add('parent', 1);
    const opts = { parent: { id: parent.id as string, queue: parent.queueQualifiedName } };
    expect((await rejection(queue.add('child', 1, opts))).message).toMatch(/^CROSSSLOT /);
    expect(await queue.getJobCountByTypes('waiting')).toBe(0);
    await stage.queue({ connection }, 'parent').obliterate({ force: true });
  });

  it('refuses to move jobs to a queue in another slot', async () => {
    const queue = stage.queue({ connection: client }, 'one') as unknown as OwnQueue;
    await queue.add('stays', 1);
    const refused = await rejection(queue.moveJobs(stage.name('other'), { name: 'stays' }));
    expect(refused.message).toMatch(/^CROSSSLOT .* a prefix with a hash tag/);
    expect(await queue.countJobs({ name: 'stays' })).toBe(1);
    await queue.obliterate({ force: true });
  });

  it('measures how late its queues are', async () => {
    const queue = stage.queue({ connection: client }, 'late') as unknown as OwnQueue;
    const worker = stage.worker(async () => 1, { connection: client, metrics: { latency: true } as never }, 'late');
    const log = new EventLog(worker, ['completed']);
    await queue.add('old', 1, { timestamp: Date.now() - 5_000 });
    await log.get('completed');
    await worker.close();
    await queue.add('waits', 1, { timestamp: Date.now() - 9_000 });
    const { oldest, waiting } = await queue.getLatency();
    expect([waiting.count, Number(oldest) >= 9_000, Number(waiting.p50) >= 5_000]).toEqual([1, true, true]);
    expect(await queue.exportPrometheusMetrics()).toContain('chasquimq_job_waiting_seconds_count');
    await queue.obliterate({ force: true });
  });

  /** What a QueueEvents has heard of so far: the ids of the jobs that completed, as often as it was told. */
  const told = (log: EventLog) => log.all<[{ jobId: string }]>('completed').map(([{ jobId }]) => Number(jobId));

  /** Adds and runs jobs while something happens to the node of the queue. Nothing may be lost by what is no loss. */
  async function during(happening: (key: string) => Promise<unknown>) {
    const connection = client;
    const ledger = new Ledger();
    const queue = stage.queue({ connection });
    const listening = new EventLog(stage.events({ connection }), ['completed']);
    const worker = stage.worker(ledger.run, { connection, concurrency: 10 });
    await ledger.addWhile(queue, () => happening(keyOf(queue)));
    const completed = await ledger.completed(queue);
    const lost = ledger.lost(completed);
    expect(lost.isTheEnd).toBe(true);
    // no job is there twice
    expect(new Set(completed.values()).size).toBe(completed.size);
    // the node that is left recorded each end once, and all were told of while it happened
    const recorded = new EventLog(stage.events({ connection, lastEventId: '0-0' }), ['completed']);
    await recorded.when('all ends', () => told(recorded).length >= completed.size, 60_000);
    const ids = [...completed.keys()].sort((a, b) => a - b);
    expect(told(recorded).sort((a, b) => a - b)).toEqual(ids);
    const isHeard = () => {
      const heard = new Set(told(listening));
      return ids.every((id) => heard.has(id));
    };
    await listening.when('all ends, as they happen', isHeard, 60_000);
    await worker.close();
    await queue.obliterate({ force: true });
    stage.takeErrors();
    return { ledger, lost: lost.count, toldAgain: told(listening).length - completed.size };
  }

  it('goes on when a replica takes over', async () => {
    const { ledger, lost, toldAgain } = await during((key) => cluster.failover(key));
    expect({ lost, toldAgain }).toEqual({ lost: 0, toldAgain: 0 });
    expect([...ledger.runs.values()].filter((runs) => runs !== 1)).toEqual([]);
  });

  it('goes on when the node is killed', async () => {
    // an end that the node told of and its replica did not hear of is recorded again, and so told again
    const { ledger, lost } = await during((key) => cluster.kill(key));
    expect(ledger.runs.size).toBeGreaterThanOrEqual(ledger.acknowledged.length - lost);
  });

  it('stands still while its slot is on the way to another node, and goes on there', async () => {
    const { ledger, lost, toldAgain } = await during((key) => cluster.migrate(key));
    expect({ lost, toldAgain }).toEqual({ lost: 0, toldAgain: 0 });
    expect([...ledger.runs.values()].filter((runs) => runs !== 1)).toEqual([]);
  });
});
