// A job that waits in a frame is read by plain commands, without a function; every other job, and whatever became of its neighbours, by one. Frames that
// lie apart are read by a plain command behind that.
import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { Proxy } from '../support/proxy.js';
import { useStage } from '../support/stage.js';
import { EventLog, Gate, sleep } from '../support/waiting.js';

describe('reading a job', () => {
  const stage = useStage(chasquimq);

  async function serve(): Promise<{ own: OwnServer; admin: Redis; queue: Queue }> {
    const own = stage.keep(await OwnServer.start());
    const admin = own.client();
    stage.keep({ close: async () => void (await admin.quit()) });
    return { own, admin, queue: stage.queue({ connection: own.connection }) };
  }

  async function callsOf(admin: Redis, command: string): Promise<number> {
    const stats = await admin.info('commandstats');
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  }

  const bulk = (count: number, data: unknown = 'x') =>
    Array.from({ length: count }, (_, n) => ({ name: `job ${n % 3}`, data: { n, data } }));

  it('takes no function while it waits in a frame', async () => {
    const { admin, queue } = await serve();
    const jobs = await queue.addBulk(bulk(100));
    jobs.push(await queue.add('alone', { n: 100 }, { attempts: 3 }));
    const before = await callsOf(admin, 'fcall');
    for (const { id = '', name, data, opts, timestamp } of jobs) {
      const found = await queue.getJob(id);
      expect([found?.id, found?.name, found?.data, found?.timestamp]).toEqual([id, name, data, timestamp]);
      expect(found?.opts.attempts).toBe(opts.attempts);
    }
    expect(await callsOf(admin, 'fcall')).toBe(before);
    for (const { id = '' } of jobs) expect(await queue.getJobState(id)).toBe('waiting');
  });

  it('takes one for some time after a job that waits in no frame, or in a large one', async () => {
    const { admin, queue } = await serve();
    const [small] = await queue.addBulk(bulk(10));
    const [large] = await queue.addBulk(bulk(10, 'x'.repeat(10_000)));
    for (const id of ['none', String(large?.id), '999']) {
      await queue.getJob(id);
      const before = await callsOf(admin, 'fcall');
      for (let i = 0; i < 40; i++) expect((await queue.getJob(small?.id ?? ''))?.id).toBe(small?.id);
      expect((await callsOf(admin, 'fcall')) - before).toBe(id === 'none' ? 0 : 15);
    }
  });

  it('says the same by both ways, whatever becomes of its neighbours', async () => {
    const { own, queue } = await serve();
    const ids = (await queue.addBulk(bulk(10))).map(({ id = '' }) => id);
    const worker = stage.worker(null, { connection: own.connection });
    // what has asked in vain asks a function
    const asksFunctions = stage.queue({ connection: own.connection });

    async function compare(): Promise<(string | undefined)[]> {
      const states: (string | undefined)[] = [];
      for (const id of [...ids, '11', '12']) {
        await asksFunctions.getJob('999');
        const plain = await stage.queue({ connection: own.connection }).getJob(id);
        const asked = await asksFunctions.getJob(id);
        expect(plain?.asJSON()).toEqual(asked?.asJSON());
        states.push(plain && (await plain.getState()));
      }
      return states;
    }

    const waiting = Array.from({ length: 10 }, () => 'waiting');
    const gone = Array.from({ length: 2 }, () => undefined);
    expect(await compare()).toEqual([...waiting, ...gone]);
    await (await queue.getJob('3'))?.remove();
    await (await queue.getJob('4'))?.updateData({ changed: true });
    await (await queue.getJob('5'))?.changePriority({ priority: 2 });
    waiting[4] = 'prioritized';
    expect(await compare()).toEqual([...waiting.slice(0, 2), undefined, ...waiting.slice(3), ...gone]);
    const first = await worker.getNextJob('token');
    const second = await worker.getNextJob('token');
    await first?.moveToCompleted('done', 'token', false);
    await second?.moveToFailed(new Error('no'), 'token', false);
    expect((await compare()).slice(0, 4)).toEqual(['completed', 'failed', undefined, 'waiting']);
    await queue.drain();
    expect((await compare()).slice(2)).toEqual([
      undefined,
      undefined,
      undefined,
      ...Array.from({ length: 7 }, () => undefined),
    ]);
    await queue.add('after', 1);
    expect((await compare())[10]).toBe('waiting');
    await queue.obliterate({ force: true });
    expect(await compare()).toEqual(Array.from({ length: 12 }, () => undefined));
  });

  describe('whose frame lies apart', () => {
    /** A queue of a server whose every plain read of such frames is told, and held up until that has settled. */
    async function openReader(own: OwnServer, onRead: () => Promise<void> | undefined): Promise<Queue> {
      const proxy = stage.keep(new Proxy());
      proxy.upstream = { host: '127.0.0.1', port: own.connection.port };
      proxy.holdRequest = (piece) => (piece.includes('apart:') ? onRead() : undefined);
      await proxy.open();
      return stage.queue({ connection: { host: '127.0.0.1', port: proxy.port } });
    }

    it('brings it by a plain command, in any state', async () => {
      const { own, queue } = await serve();
      let reads = 0;
      const reader = await openReader(own, () => void reads++);
      // some share a frame, the others have one each
      const data = [...bulk(20, 'x'.repeat(20_000)), ...bulk(3, 'x'.repeat(300_000))].map((job) => job.data);
      await queue.addBulk(data.map((data) => ({ name: 'job', data })));

      async function read(state: 'waiting' | 'active' | 'completed'): Promise<void> {
        reads = 0;
        expect((await reader.getJobs(state, 0, -1, true)).map((job) => job.data as unknown)).toEqual(data);
        expect(reads).toBe(1);
        for (const id of ['2', '22']) expect((await reader.getJob(id))?.data).toEqual(data[Number(id) - 1]);
        expect(reads).toBe(3);
      }

      await read('waiting');
      const gate = new Gate();
      const worker = stage.worker(() => gate.opened, { connection: own.connection, concurrency: data.length });
      const log = new EventLog(worker, ['active', 'completed']);
      await log.get('active', data.length);
      await read('active');
      gate.open();
      await log.get('completed', data.length);
      await read('completed');
    });

    it('is asked for once more when it left that between the two reads', async () => {
      const { own, queue } = await serve();
      const data = [1, 2, 3].map((n) => ({ n, text: 'x'.repeat(300_000) }));
      await queue.addBulk(data.map((data) => ({ name: 'job', data })));

      async function change(): Promise<void> {
        await queue.remove('1');
        await (await queue.getJob('2'))?.changePriority({ priority: 1 });
      }
      let changed: Promise<void> | undefined;
      const reader = await openReader(own, () => (changed ??= change()));
      const found = await reader.getJobs('waiting', 0, -1, true);
      expect(changed).toBeDefined();
      expect(found.map((job) => [job.id, job.data as unknown])).toEqual([
        ['2', data[1]],
        ['3', data[2]],
      ]);
    });

    it('is whole at any moment, while jobs fail, change and return 100 KB', async () => {
      const { own, queue } = await serve();
      const jobs = 300;
      const dataOf = (n: number) => ({ n, text: 'x'.repeat([10, 20_000, 70_000, 300_000][n % 4] ?? 0) });
      await queue.addBulk(
        Array.from({ length: jobs }, (_, n) => ({ name: 'job', data: dataOf(n), opts: { attempts: 2 } })),
      );

      async function run(job: Job<{ n: number }>): Promise<unknown> {
        await sleep(3);
        const { n } = job.data;
        if (n % 3 === 0 && job.attemptsMade === 0) throw new Error('first');
        if (n % 5 === 1) await job.updateProgress(n);
        if (n % 7 === 2) await job.updateData(dataOf(n));
        return n % 11 === 0 ? 'r'.repeat(100_000) : n;
      }
      const worker = stage.worker(run, { connection: own.connection, concurrency: 10 });
      let areAllEnded = false;
      const ended = new EventLog(worker, ['completed']).get('completed', jobs, 60_000).then(() => (areAllEnded = true));

      let seen = 0;
      const look = async (): Promise<void> => {
        for (const state of ['waiting', 'active', 'completed'] as const) {
          for (const { data } of await queue.getJobs(state, 0, 40, true)) {
            expect(data).toEqual(dataOf((data as { n: number }).n));
            seen++;
          }
        }
      };
      do await look();
      while (!areAllEnded);
      await ended;
      // more than the last look at completed ones
      expect(seen).toBeGreaterThan(41);
      expect(await queue.getCompletedCount()).toBe(jobs);
    });

    it('has no data when that is gone', async () => {
      const { own, admin, queue } = await serve();
      await queue.add('job', 'x'.repeat(300_000));
      await admin.del(`{bull:${queue.name}}:apart:1`);
      const reader = await openReader(own, () => undefined);
      const found = await reader.getJob('1');
      expect([found?.id, found?.name, found?.data as unknown, found?.deferredFailure]).toEqual([
        '1',
        '',
        {},
        "could not be read: a job's data: they are not there",
      ]);
    });
  });
});
