// A server whose memory is used up: it refuses adds in its own words and keeps what it had; workers go on all the same.
import type { Job } from 'bullmq';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { keysContaining } from '../support/redis.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { untilWaiting } from '../support/waiting-workers.js';
import { EventLog, rejection, until } from '../support/waiting.js';

const OOM = /^OOM command not allowed when used memory > 'maxmemory'/;

/** A refused step is tried again after a second. */
const RECOVERY_MS = 25_000;

describe('server.memory', () => {
  const stage = useStage(chasquimq);
  let own: OwnServer;
  let admin: Redis;
  beforeEach(async () => {
    own = await OwnServer.start('--maxmemory-policy', 'noeviction');
    stage.keep(own);
    admin = own.client();
  });
  afterEach(async () => {
    await admin.quit();
  });

  /** Leaves the server so little room that it refuses whatever could make it larger. */
  const useUp = () => admin.config('SET', 'maxmemory', '1');
  const giveRoom = () => admin.config('SET', 'maxmemory', '0');

  it('adds of every kind are refused, and work once there is room', async () => {
    const queue = stage.queue({ connection: own.connection });
    const first = await queue.add('first', {});
    await useUp();
    const refused = [
      queue.add('job', {}),
      queue.add('job', {}, { jobId: 'own' }),
      queue.add('job', {}, { delay: 1_000 }),
      queue.addBulk([
        { name: 'job', data: {} },
        { name: 'job', data: {} },
      ]),
    ];
    for (const error of await Promise.all(refused.map(rejection))) expect(error.message).toMatch(OOM);
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 1, delayed: 0 });

    await giveRoom();
    const added = [await queue.add('job', {}), await queue.add('job', {}, { jobId: 'own' })];
    expect([first, ...added].map(({ id }) => id)).toEqual(['1', '2', 'own']);
    expect((await queue.getWaiting()).map(({ id }) => id)).toEqual(['1', '2', 'own']);
  });

  it('adds are refused from the moment on when the memory is full, and none is lost', async () => {
    const queue = stage.queue({ connection: own.connection });
    const data = 'x'.repeat(2_000);
    let acknowledged = 0;
    const addSome = async () => {
      await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data })));
      acknowledged += 20;
    };
    // connections, and the scripts that the server is given, take memory of their own
    await addSome();
    const used = /^used_memory:(\d+)/m.exec(await admin.info('memory'))?.[1];
    await admin.config('SET', 'maxmemory', String(Number(used) + 4_000_000));
    const filling = async () => {
      for (;;) await addSome();
    };
    expect((await rejection(filling())).message).toMatch(OOM);
    expect(acknowledged).toBeGreaterThan(20);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: acknowledged });

    await giveRoom();
    let runs = 0;
    const worker = stage.worker(async () => void runs++, { connection: own.connection, concurrency: 10 });
    await until('all jobs to run', () => runs === acknowledged, RECOVERY_MS);
    await worker.close();
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 0, active: 0 });
  });

  it('workers go on: jobs end, are tried again and become due, so that the server has room some day', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    const worker = stage.worker(
      async (job) => {
        if (job.name === 'held') await gate.opened;
        if (job.name !== 'plain' && job.attemptsMade === 0) throw new Error('at first');
      },
      { connection, concurrency: 5 },
    );
    const log = new EventLog(worker, ['active', 'completed', 'failed']);
    await queue.add('held', {}, { attempts: 2 });
    await log.get('active');
    await queue.pause();
    const removed = { removeOnComplete: true };
    await queue.addBulk(Array.from({ length: 200 }, () => ({ name: 'plain', data: {}, opts: removed })));
    await queue.add('later', {}, { attempts: 2, delay: 1, ...removed });
    await queue.add('again', {}, { attempts: 2, backoff: 1, ...removed });
    await useUp();
    await queue.resume();
    gate.open();
    await log.get('completed', 203);
    expect(log.all('failed')).toHaveLength(3);
    expect(await queue.getJobCounts('completed', 'active', 'waiting', 'delayed')).toEqual({
      completed: 1,
      active: 0,
      waiting: 0,
      delayed: 0,
    });
  });

  it('jobs that are taken by hand end, and limits are lifted', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    const worker = stage.worker(null, { connection });
    await queue.add('done', {});
    await queue.add('failed', {});
    await queue.setGlobalConcurrency(5);
    await useUp();
    const done = await worker.getNextJob('token');
    await done.moveToCompleted('result', 'token', false);
    const failed = await worker.getNextJob('token');
    await failed.moveToFailed(new Error('no'), 'token', false);
    expect(await queue.getJobCounts('completed', 'failed', 'active')).toEqual({ completed: 1, failed: 1, active: 0 });
    expect(await queue.removeGlobalConcurrency()).toBe(1);
  });

  it('job schedulers go on', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    const worker = stage.worker(async () => undefined, { connection });
    const log = new EventLog(worker, ['completed', 'stalled', 'failed']);
    await queue.upsertJobScheduler('often', { every: 50 }, { name: 'job', data: {} });
    await log.get('completed');
    await useUp();
    await log.get('completed', log.all('completed').length + 4, 60_000);
    expect(log.names.filter((name) => name !== 'completed')).toEqual([]);
  });

  it('a worker that is paused leaves work to others', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    const opts = { connection, drainDelay: 60 };
    const fails = ({ name }: Job) => (name === 'later' ? Promise.reject(new Error('at first')) : gate.opened);
    const paused = stage.worker(fails, { ...opts, concurrency: 2 });
    const held = new EventLog(paused, ['active', 'failed']);
    const later = await queue.add('later', {});
    await held.get('failed');
    await queue.add('held', {});
    await held.get('active', 2);
    await untilWaiting(admin, queue.name, 1);
    await paused.pause(true);
    const other = new EventLog(
      stage.worker(async () => undefined, opts),
      ['completed'],
    );
    await untilWaiting(admin, queue.name, 1);
    await useUp();
    await later.retry();
    await other.get('completed');
    gate.open();
  });

  it('leases are renewed', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    const lockDuration = 2_000;
    const opts = { connection, lockDuration, lockRenewTime: lockDuration / 4, stalledInterval: 100 };
    const log = new EventLog(
      stage.worker(() => gate.opened, opts),
      ['active', 'completed', 'stalled'],
    );
    await queue.add('held', {});
    await log.get('active');
    const [lease] = await keysContaining(admin, ':lease:');
    await useUp();
    // an idle one renews none
    stage.worker(async () => undefined, opts);
    let [renewals, left] = [0, 0];
    await until('three renewals', async () => {
      const before = left;
      left = await admin.pttl(lease);
      if (left > before) renewals += 1;
      return renewals > 3;
    });
    gate.open();
    await log.get('completed');
    expect(log.names).not.toContain('stalled');
  });

  it('a lease that was lost is there again, and the job ends', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened, { connection, lockDuration: 1_000, stalledInterval: 60_000 });
    const log = new EventLog(worker, ['active', 'completed', 'error']);
    await queue.add('held', {});
    await log.get('active');
    await useUp();
    const [lease] = await keysContaining(admin, ':lease:');
    await admin.del(lease);
    await until('another lease', () => admin.exists(lease));
    gate.open();
    await log.get('completed');
    const errors = stage.takeErrors().map(({ message }) => message);
    expect(errors.filter((message) => OOM.test(message))).toEqual([]);
  });

  it('jobs can be moved and removed, and the queue as a whole', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    await queue.addBulk([
      { name: 'a', data: {} },
      { name: 'b', data: {} },
    ]);
    const [first, second] = await Promise.all([1, 2].map(() => queue.add('later', {}, { delay: 60_000 })));
    await useUp();
    await queue.remove('1');
    await first.promote();
    await second.changeDelay(30_000);
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 2, delayed: 1 });
    await queue.obliterate();
    expect(await queue.getJobCounts('waiting', 'delayed')).toEqual({ waiting: 0, delayed: 0 });
  });
});
