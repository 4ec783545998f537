// A server whose memory is used up: it refuses in its own words, keeps what it had, and all goes on once it has room
// (issue 2, "Bad input").
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection, until } from '../support/waiting.js';

const OOM = /^OOM command not allowed when used memory > 'maxmemory'/;

/** A refused step is tried again after a second. */
const RECOVERY_MS = 8_000;

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
    const used = /^used_memory:(\d+)/m.exec(await admin.info('memory'))?.[1];
    await admin.config('SET', 'maxmemory', String(Number(used) + 1_000_000));
    const data = 'x'.repeat(2_000);
    let acknowledged = 0;
    const filling = async () => {
      for (;;) {
        await queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'job', data })));
        acknowledged += 20;
      }
    };
    expect((await rejection(filling())).message).toMatch(OOM);
    expect(acknowledged).toBeGreaterThan(0);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: acknowledged });

    await giveRoom();
    let runs = 0;
    const worker = stage.worker(async () => void runs++, { connection: own.connection, concurrency: 10 });
    await until('all jobs to run', () => runs === acknowledged, RECOVERY_MS);
    await worker.close();
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 0, active: 0 });
  });

  it('a worker says so, and goes on by itself', async () => {
    const { connection } = own;
    const queue = stage.queue({ connection });
    const gate = stage.gate();
    const runs: string[] = [];
    const worker = stage.worker(
      async (job) => {
        runs.push(job.name);
        if (job.name === 'held') await gate.opened;
        if (job.name === 'flaky' && job.attemptsMade === 0) throw new Error('at first');
      },
      { connection },
    );
    const log = new EventLog(worker, ['active', 'completed', 'failed', 'error']);
    await queue.add('held', {});
    await queue.add('flaky', {}, { attempts: 2 });
    await log.get('active');
    await useUp();
    gate.open();
    expect((await log.get<[Error]>('error'))[0].message).toMatch(OOM);
    expect(log.all('completed')).toEqual([]);
    await giveRoom();
    await log.get('completed', 2, RECOVERY_MS);
    expect(runs).toEqual(['held', 'flaky', 'flaky']);
    expect(await queue.getJobCounts('completed', 'active', 'waiting')).toEqual({ completed: 2, active: 0, waiting: 0 });
    stage.takeErrors();
  });
});
