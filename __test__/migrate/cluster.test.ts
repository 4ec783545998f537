// In a Cluster every queue moves that BullMQ can have there, and it is said which it cannot have. What else moves is held to the same tests
// there as on one server (vitest.config.mjs).
import type { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Queue as TheirQueue } from 'bullmq';
import * as source from '../../src/index.js';
import { Mover } from '../../src/tools/migrate/mover.js';
import { Returner } from '../../src/tools/migrate/returner.js';
import { cli } from '../support/cli.js';
import { OwnCluster } from '../support/own-cluster.js';
import { rejection } from '../support/waiting.js';
import { jobsOf } from './bench.js';

const LIMIT_MS = 300_000;

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

  it.each([
    ['{app}', 'mail'],
    ['bull', '{mail}'],
    ['bull', 'a{mail}b'],
    ['bull', 'x{mail}}'],
    ['a{b', 'c}d'],
  ])('moves a queue of the prefix %s and the name %s, and moves it back', async (prefix, name) => {
    const queue = new TheirQueue(name, { connection: client, prefix });
    await queue.addBulk(Array.from({ length: 300 }, (_, i) => ({ name: 'n', data: { i } })));
    await queue.add('later', {}, { delay: 60_000, deduplication: { id: 'd', ttl: 60_000 } });
    const before = await jobsOf(queue);
    const own = target(name, prefix);
    const [mover, returner] = [new Mover([own], { compares: true }), new Returner([own], { compares: true })];
    await mover.move();
    expect([mover.moved, mover.accounts[0]?.differ]).toEqual([301, new Map()]);
    expect(await own.getJobCountByTypes('waiting', 'delayed')).toBe(301);
    expect(await own.getDeduplicationJobId('d')).toBe('301');
    expect(await jobsOf(queue)).toEqual({});
    await returner.move();
    expect([returner.moved, returner.accounts[0]?.differ]).toEqual([301, new Map()]);
    expect(await jobsOf(queue)).toEqual(before);
    await Promise.all([own.close(), queue.close()]);
  });

  it.each([
    [
      'the master of both dies',
      'dying',
      async (key: string): Promise<void> => {
        await cluster.kill(key);
        await cluster.mend();
      },
    ],
    ['the slot of both goes to another master', 'going', (key: string): Promise<void> => cluster.migrate(key)],
  ])('has each job in one of the two while %s', async (_, tag, happens) => {
    const [name, key] = [`{${tag}}`, `bull:{${tag}}:wait`];
    const queue = new TheirQueue(name, { connection: client });
    const jobs = Array.from({ length: 5_000 }, (_, i) => ({
      name: 'n',
      data: { i },
      opts: { delay: (i % 2) * 90_000 },
    }));
    const all = (await queue.addBulk(jobs)).map(({ id }) => id).sort();
    await cluster.heard(key);
    const own = target(name, 'bull');
    own.on('error', () => {}); // its server is killed
    const idsIn = async (...queues: readonly (TheirQueue | source.Queue)[]): Promise<unknown[]> =>
      (await Promise.all(queues.map((each) => each.getJobs(['waiting', 'delayed'])))).flat().map(({ id }) => id);

    const stop = new AbortController();
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const mover = new Mover([own], { signal: stop.signal, onStep: () => begin() });
    const moving = (async () => {
      while (!stop.signal.aborted) await mover.move();
    })();
    await begun;
    await happens(key).finally(() => stop.abort());
    await moving;
    expect((await idsIn(queue, own)).sort()).toEqual(all);
    const next = new Mover([own]);
    await next.move();
    expect([await jobsOf(queue), next.accounts[0]?.stays]).toEqual([{}, new Map()]);
    expect((await idsIn(own)).sort()).toEqual(all);
    await Promise.all([own.close(), queue.close()]);
  });

  it.each(['mail', '{}mail'])('refuses the queue %s, which BullMQ cannot have there', async (name) => {
    const queue = new TheirQueue(name, { connection: client, skipMetasUpdate: true });
    expect((await rejection(queue.add('n', {}))).message).toContain('CROSSSLOT');
    const own = target(name, 'bull');
    for (const refused of [new Mover([own]).move(), new Mover([own]).survey(), new Returner([own]).move()]) {
      const { message } = await rejection(refused);
      expect(message).toContain('different slots');
      expect(message).toContain('has a hash tag');
    }
    await Promise.all([own.close(), queue.close()]);
  });

  it('takes a hash tag in a name on the command line', async () => {
    const queue = new TheirQueue('{orders}', { connection: client });
    const { id } = await queue.add('n', {});
    const [{ host, port }] = cluster.startupNodes;
    const env = { REDIS_URL: `redis://${host}:${port}` };
    const migrate = (...args: string[]): ReturnType<typeof cli> => cli(['migrate', ...args, '--cluster'], { env });
    const own = target('{orders}', 'bull');

    expect(await migrate('{orders}', '--yes', '--compare')).toMatchObject({ code: 0, stderr: '' });
    expect((await own.getWaiting()).map((job) => job.id)).toEqual([id]);
    const back = await migrate('--all', '--back', '--yes');
    expect([back.code, back.stderr]).toEqual([0, '']);
    expect(back.stdout).toContain('{orders}: 1 jobs moved back');
    expect((await queue.getWaiting()).map((job) => job.id)).toEqual([id]);

    const counted = await migrate('--all', '--dry-run');
    expect(counted.stdout).toContain('{orders}: 1 jobs would move');

    const refused = await migrate('orders', '--yes');
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toContain('different slots');
    await Promise.all([own.close(), queue.close()]);
  });
});
