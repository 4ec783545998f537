// In a Cluster a queue moves where the keys of both lie in one slot, and it is said where they do not.
import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Queue as TheirQueue } from 'bullmq';
import * as source from '../../src/index.js';
import { Mover } from '../../src/migrate/mover.js';
import { Returner } from '../../src/migrate/returner.js';
import { cli } from '../support/cli.js';
import { OwnCluster } from '../support/own-cluster.js';
import { rejection } from '../support/waiting.js';

const LIMIT_MS = 120_000;

describe('moving in a Cluster', { timeout: LIMIT_MS }, () => {
  let cluster: OwnCluster;
  let client: Cluster;
  beforeAll(async () => {
    cluster = await OwnCluster.start();
    client = cluster.client({ redisOptions: { maxRetriesPerRequest: null } });
  }, LIMIT_MS);
  afterAll(async () => {
    client.disconnect();
    await cluster.close();
  });

  function target(name: string, prefix: string): source.Queue {
    return new source.Queue(name, { connection: { nodes: cluster.startupNodes }, prefix, skipMetasUpdate: true });
  }

  it('moves a queue whose prefix has a hash tag', async () => {
    const queue = new TheirQueue('mail', { connection: client, prefix: '{app}' });
    await queue.addBulk(Array.from({ length: 300 }, (_, i) => ({ name: 'n', data: { i } })));
    await queue.add('later', {}, { delay: 60_000, deduplication: { id: 'd', ttl: 60_000 } });
    const own = target('mail', '{app}');
    const mover = new Mover([own]);
    await mover.move();
    expect(mover.moved).toBe(301);
    expect(await own.getJobCountByTypes('waiting', 'delayed')).toBe(301);
    expect(await own.getDeduplicationJobId('d')).toBe('301');
    expect(await queue.getJobCountByTypes('waiting', 'delayed')).toBe(0);
    await Promise.all([own.close(), queue.close()]);
  });

  it.each(['mail', '{mail}'])('refuses the queue %s of another prefix, and says what to do', async (name) => {
    const own = target(name, 'bull');
    for (const refused of [new Mover([own]).move(), new Mover([own]).survey(), new Returner([own]).move()]) {
      const { message } = await rejection(refused);
      expect(message).toContain('different slots');
      expect(message).toContain('a prefix with a hash tag');
    }
    await own.close();
  });

  it('leaves a queue with a hash tag in its name as it is', async () => {
    const queue = new TheirQueue('{orders}', { connection: client });
    const { id } = await queue.add('n', {});
    const [{ host, port }] = cluster.startupNodes;
    const env = { REDIS_URL: `redis://${host}:${port}` };
    const { code, stdout, stderr } = await cli(['migrate', '{orders}', '--cluster', '--yes'], { env });
    expect([code, stdout], stderr).toEqual([1, '']);
    expect(stderr).toContain('different slots');
    expect((await queue.getWaiting()).map((job) => job.id)).toEqual([id]);
    await queue.close();
  });
});
