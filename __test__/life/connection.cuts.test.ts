// Connections that break at any moment, also between a command and its answer: each job is there exactly once and runs
// exactly once.
import { describe, expect, it } from 'vitest';
import type { Job, Queue } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { Proxy } from '../support/proxy.js';
import { Random } from '../support/random.js';
import { server } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { sleep, until } from '../support/waiting.js';

const LIMIT_MS = 300_000;
/** Milliseconds before a call is sent again over another connection, from the second that breaks on: at least. */
const PAUSES_MS = [50, 100, 200, 400];

describe('connection.cuts', () => {
  const stage = useStage(chasquimq);

  /** A queue whose way to the server can be cut. */
  async function queueBehindProxy(): Promise<{ proxy: Proxy; queue: Queue }> {
    const proxy = stage.keep(new Proxy());
    await proxy.open();
    return { proxy, queue: stage.queue({ connection: { ...server, host: '127.0.0.1', port: proxy.port } }) };
  }

  /** Adds jobs 0 .. count - 1, by `singles` calls and three bulks of `bulk` at a time; gives their ids. */
  async function addAll(
    queue: Queue,
    count: number,
    singles: number,
    bulk: number,
    ids: string[] = [],
  ): Promise<string[]> {
    let made = 0;
    const note = (job: Job) => ids.push(String(job.id));
    const singly = async () => {
      while (made < count) note(await queue.add('job', made++));
    };
    const inBulk = async () => {
      while (made < count) {
        const size = Math.min(bulk, count - made);
        const jobs = Array.from({ length: size }, () => ({ name: 'job', data: made++ }));
        (await queue.addBulk(jobs)).forEach(note);
      }
    };
    await Promise.all([...Array.from({ length: singles }, singly), ...Array.from({ length: 3 }, inBulk)]);
    return ids;
  }

  /** Breaks something again and again until `work` is done, each time after a moment; gives how often. */
  async function whileBreaking<T>(work: Promise<T>, seed: number, once: () => Promise<unknown>): Promise<[T, number]> {
    const random = new Random(seed);
    let working = true;
    let times = 0;
    const breaking = (async () => {
      while (working) {
        await once();
        times++;
        // The moments have to be many and different; there is nothing to wait for.
        await sleep(1 + random.next(15));
      }
    })();
    const result = await work.finally(() => (working = false));
    await breaking;
    return [result, times];
  }

  function numbers(count: number): number[] {
    return Array.from({ length: count }, (_, i) => i);
  }

  it('100,000 jobs added while the way to the server is cut at random', { timeout: LIMIT_MS }, async () => {
    const count = 100_000;
    const { proxy, queue } = await queueBehindProxy();
    const ids: string[] = [];
    const adding = addAll(queue, count, 20, 20, ids);
    // a machine so slow that no answer ever came between two cuts would never end
    const cut = async () => {
      const before = ids.length;
      proxy.cut();
      await until('an answer', () => ids.length > before || ids.length === count, LIMIT_MS);
    };
    const [, cuts] = await whileBreaking(adding, 100, cut);
    expect(cuts).toBeGreaterThan(20);
    stage.takeErrors();
    await queue.close();

    const direct = stage.queue();
    expect(new Set(ids).size).toBe(count);
    expect(await direct.getJobCounts('waiting')).toEqual({ waiting: count });
    const found: number[] = [];
    for (let from = 0; from < count; from += 10_000) {
      for (const job of await direct.getWaiting(from, from + 9_999)) found.push(job.data as number);
    }
    expect(found.sort((a, b) => a - b)).toEqual(numbers(count));
  });

  it('an add is cut off while a call waits for it', { timeout: LIMIT_MS }, async () => {
    const { proxy, queue } = await queueBehindProxy();
    const rounds = 50;
    const before = 20;
    for (let i = 0; i < rounds; i++) {
      // so many that the last of them go over a socket of their own again
      for (let k = 0; k < before; k++) await queue.add('job', {});
      const calls = [queue.add('job', {}), queue.count(), queue.add('job', {}), queue.count()];
      proxy.cut();
      await Promise.all(calls);
    }
    expect(await queue.count()).toBe((before + 2) * rounds);
    stage.takeErrors();
  });

  it('calls behind adds while the way to the server is cut at random', { timeout: LIMIT_MS }, async () => {
    const { proxy, queue } = await queueBehindProxy();
    const count = 10_000;
    let answered = 0;
    let made = 0;
    const pairs = async () => {
      while (made < count) {
        made++;
        await Promise.all([queue.add('job', {}), queue.count(), queue.count()]);
        answered++;
      }
    };
    const cut = async () => {
      const before = answered;
      proxy.cut();
      await until('an answer', () => answered > before || answered === count, LIMIT_MS);
    };
    const [, cuts] = await whileBreaking(Promise.all([pairs(), pairs(), pairs()]), 30, cut);
    expect(cuts).toBeGreaterThan(20);
    expect(await queue.count()).toBe(count);
    stage.takeErrors();
  });

  it('where the server ends each connection that sends a call, reconnecting has a pause', async () => {
    const { proxy, queue } = await queueBehindProxy();
    const cuts: number[] = [];
    let isEnding = false;
    let cut = 0;
    proxy.holdRequest = (piece) => {
      // what else comes over a connection that has ended is no call that was sent again
      if (isEnding && piece.includes(stage.queueName) && proxy.accepted > cut) {
        cut = proxy.accepted;
        cuts.push(performance.now());
        proxy.cut();
      }
      return undefined;
    };
    // one call alone: what the queue asks for at its beginning is answered
    await queue.count();
    isEnding = true;
    const counting = queue.count();
    await until('some cuts', () => cuts.length === PAUSES_MS.length + 2);
    isEnding = false;
    expect(await counting).toBe(0);
    // one that breaks may be chance
    const pauses = cuts.slice(2).map((at, i) => at - cuts[i + 1]);
    expect(pauses.map((pause, i) => pause >= PAUSES_MS[i])).toEqual(PAUSES_MS.map(() => true));
    stage.takeErrors();
  });

  it('20,000 jobs added and processed while the server kills all clients and forgets its scripts', async () => {
    const count = 20_000;
    const own = stage.keep(await OwnServer.start());
    const { connection } = own;
    const queue = stage.queue({ connection });
    const runs: number[] = [];
    const workers = [1, 50].map((concurrency) =>
      stage.worker(async (job) => runs.push(job.data as number), { connection, concurrency }),
    );
    const admin = own.client();
    const random = new Random(20);
    const disturb = async () => {
      if (random.next(2) === 0) await admin.call('FUNCTION', 'FLUSH', 'SYNC');
      if (random.next(3) > 0) await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    };
    const all = async () => {
      const ids = await addAll(queue, count, 4, 5);
      await until('all jobs to complete', async () => (await queue.getCompletedCount()) === count, LIMIT_MS);
      return ids;
    };
    const [ids, times] = await whileBreaking(all(), 21, disturb);
    await admin.quit();
    expect(times).toBeGreaterThan(10);
    expect(new Set(ids).size).toBe(count);
    expect(runs.sort((a, b) => a - b)).toEqual(numbers(count));
    expect(await queue.getJobCounts('waiting', 'active', 'failed')).toEqual({ waiting: 0, active: 0, failed: 0 });
    await Promise.all(workers.map((worker) => worker.close()));
    stage.takeErrors();
  });
});
