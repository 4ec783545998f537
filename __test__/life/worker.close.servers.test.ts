// Closing a worker whose server is gone, frozen, busy, a replica, or refuses what it is asked: it ends, and what it held is run elsewhere.
import type { Job } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { documentedRule } from '../support/acl.js';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { closedPort } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { EventLog, sleep, until } from '../support/waiting.js';

/** Longer than a close waits for a server that refuses everything. */
const GONE_MS = 4_000;

describe('worker.close', () => {
  const stage = useStage(chasquimq);

  it('ends where the server has become a replica', async () => {
    const server = stage.keep(await OwnServer.start());
    const { connection } = server;
    const worker = stage.worker(async () => 1, { connection });
    await worker.waitUntilReady();
    const redis = server.client();
    await redis.replicaof('127.0.0.1', await closedPort());
    await redis.quit();
    await worker.close();
    stage.takeErrors();
  });

  it('stores what ended while the server was gone', async () => {
    const server = stage.keep(await OwnServer.start('--appendonly', 'yes', '--appendfsync', 'always'));
    const connection = server.connection;
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    await queue.add('job', {});
    const worker = stage.worker(() => gate.opened, { connection });
    const log = new EventLog(worker, ['active', 'completed', 'closed']);
    await log.get('active');
    await server.kill();
    gate.open();
    const closing = worker.close();
    await sleep(GONE_MS);
    await server.start();
    await closing;
    expect(log.names).toEqual(['active', 'completed', 'closed']);
    expect(await queue.getJobCounts('active', 'waiting', 'completed')).toEqual({ active: 0, waiting: 0, completed: 1 });
    stage.takeErrors();
  });

  /** Has a server say that it is busy, until it is killed. */
  async function keepBusy(server: OwnServer): Promise<void> {
    const [client, other] = [server.client(), server.client()];
    for (const each of [client, other]) {
      each.on('error', () => undefined);
      stage.keep({ close: async () => each.disconnect() });
    }
    void client.eval('while true do end', 0).catch(() => undefined);
    await until('it to be busy', () =>
      other.ping().then(
        () => false,
        ({ message }: Error) => message.startsWith('BUSY'),
      ),
    );
  }

  it.each<[string, (server: OwnServer) => unknown]>([
    ['without a server', (server) => server.kill()],
    ['with a server that answers nothing', (server) => server.freeze()],
    ['with a server that is busy', keepBusy],
  ])('ends %s once the locks of its jobs have run out', async (_, take) => {
    const server = stage.keep(await OwnServer.start('--lua-time-limit', '1'));
    const connection = server.connection;
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    await queue.add('job', {});
    const worker = stage.worker(() => gate.opened, { connection, lockDuration: GONE_MS });
    const log = new EventLog(worker, ['active', 'completed', 'closed']);
    await log.get('active');
    await take(server);
    gate.open();
    const since = performance.now();
    await worker.close();
    expect(performance.now() - since).toBeGreaterThan(GONE_MS);
    expect(log.names).toEqual(['active', 'closed']);
    stage.takeErrors();
  });

  it('ends where the server refuses the data of the next job, and another worker runs what is left', async () => {
    const server = stage.keep(await OwnServer.start());
    const { connection } = server;
    const admin = server.client();
    stage.keep({ close: async () => admin.disconnect() });
    // all keys but those in which long data lie apart
    const keys = ['~{bull:*}:', '~{bull:*}:[^a]*', '~{bull:*}:active'];
    const rule = [...documentedRule().filter((part) => !part.startsWith('~')), ...keys];
    await admin.call('ACL', 'SETUSER', 'blind', 'reset', ...rule);
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    const locks = { lockDuration: GONE_MS, stalledInterval: GONE_MS / 10 };
    const blind = { ...connection, username: 'blind', password: 'secret' };
    const worker = stage.worker(() => gate.opened, { connection: blind, concurrency: 2, ...locks });
    const log = new EventLog(worker, ['active', 'completed', 'error', 'closed']);
    await queue.add('held', 'x');
    await log.get('active');
    await queue.add('long', 'x'.repeat(100_000));
    await log.get('error');
    // what it returns cannot be stored while the data of the other one are asked for
    gate.open();
    await worker.close();
    expect(log.names.filter((name) => name !== 'error')).toEqual(['active', 'closed']);
    for (const { message } of stage.takeErrors()) expect(message).toMatch(/^NOPERM .* key/);
    const other = stage.worker(async (job) => (job.data as string).length, { connection, ...locks });
    const done = new EventLog(other, ['completed']);
    await done.get('completed', 2, 4 * GONE_MS);
    const lengths = done.all<[Job, number]>('completed').map(([{ name }, length]) => [name, length]);
    expect(Object.fromEntries(lengths)).toEqual({ held: 1, long: 100_000 });
  });
});
