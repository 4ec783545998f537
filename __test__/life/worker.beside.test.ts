// A queue and its worker in one thread, and jobs that come while others run: an add takes the worker's step along, as long as a slot is free. Whatever
// happens to either meanwhile, each job runs once.
import type { Job, Queue, Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Proxy } from '../support/proxy.js';
import { Random } from '../support/random.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { Gate, sleep, until } from '../support/waiting.js';

const SLOTS = 10;
const JOBS = 200;
const BREAKS = 30;
const LIMIT_MS = 60_000;

describe('worker.beside', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();
  const random = new Random(11);
  let runs = new Map<unknown, number>();
  let gate = new Gate();

  const run = async (job: Job): Promise<unknown> => {
    runs.set(job.data, (runs.get(job.data) ?? 0) + 1);
    if (job.name === 'held') await gate.opened;
    // some end at once, others beside those that come
    else if (Number(job.data) % 3 > 0) await sleep(random.next(20));
    return job.data;
  };

  function start(opts: object = {}): { queue: Queue; worker: Worker } {
    [runs, gate] = [new Map(), new Gate()];
    return { queue: stage.queue(opts), worker: stage.worker(run, { concurrency: SLOTS, ...opts }) };
  }

  /** Adds jobs at odd moments until they are enough. Gives their number. */
  async function atOddMoments(queue: Queue, areEnough: (jobs: number) => boolean): Promise<number> {
    const adds: Promise<unknown>[] = [];
    while (!areEnough(adds.length)) {
      adds.push(queue.add('job', adds.length));
      // each moment finds the worker in another state; there is nothing to wait for
      await sleep(random.next(6));
    }
    await Promise.all(adds);
    return adds.length;
  }

  async function ranOnceEach(queue: Queue, jobs: number): Promise<void> {
    await until('all jobs to end', async () => (await queue.getCompletedCount()) >= jobs, LIMIT_MS);
    expect(await queue.getJobCounts('completed', 'active', 'waiting', 'failed')).toEqual({
      completed: jobs,
      active: 0,
      waiting: 0,
      failed: 0,
    });
    expect([...runs.values()]).toEqual(Array.from({ length: jobs }, () => 1));
  }

  const waitsBegun = async (): Promise<number> => {
    const [, calls] = /cmdstat_bzpopmin:calls=(\d+)/.exec(await own.redis.info('commandstats')) ?? [];
    return Number(calls);
  };

  it('an add takes a step along while a job runs, and the wait stands', async () => {
    const { queue, worker } = start({ connection: own.connection });
    await queue.add('held', 0);
    await until('the job to run', () => runs.size === 1);
    const before = await waitsBegun();
    for (let number = 1; number <= JOBS; number += 3) {
      const ended = new Promise((resolve) => worker.once('completed', resolve));
      await queue.add('job', 3 * number);
      await ended;
      // for the worker to wait again, of which nothing tells
      await sleep(2);
    }
    expect((await waitsBegun()) - before).toBeLessThan(JOBS / 6);
    gate.open();
    await ranOnceEach(queue, 1 + Math.ceil(JOBS / 3));
  });

  it('connections break at random, and the server forgets functions', { timeout: LIMIT_MS }, async () => {
    const proxy = stage.keep(new Proxy());
    proxy.upstream = { host: '127.0.0.1', port: own.connection.port };
    await proxy.open();
    const breaks = [
      async () => proxy.cut(),
      () => own.redis.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
      () => own.redis.function('FLUSH'),
    ];
    const connection = { ...own.connection, host: '127.0.0.1', port: proxy.port };
    // behind a wait that was lost, nothing goes along until that would have ended
    const { queue } = start({ connection, drainDelay: 0.1 });
    let [working, broken] = [true, 0];
    const breaking = (async () => {
      while (working) {
        // the moments have to be many and different; there is nothing to wait for
        await sleep(20 + random.next(300));
        await breaks[broken++ % breaks.length]();
      }
    })();
    const jobs = await atOddMoments(queue, () => broken >= BREAKS).finally(() => (working = false));
    await breaking;
    await ranOnceEach(queue, jobs);
    stage.takeErrors();
  });

  it('a lock lasts as long as its job, though steps go along', async () => {
    const { queue, worker } = start({ lockDuration: 300, stalledInterval: 50 });
    const lost: unknown[] = [];
    worker.on('stalled', (id) => lost.push(id)).on('lockRenewalFailed', (ids) => lost.push(ids));
    await queue.add('held', -1);
    const end = performance.now() + 1_500;
    const jobs = await atOddMoments(queue, () => performance.now() > end);
    gate.open();
    await ranOnceEach(queue, jobs + 1);
    expect(lost).toEqual([]);
  });

  it('an event loop that is busy for longer than a lock lasts loses no lock', async () => {
    const { queue, worker } = start({ lockDuration: 300, stalledInterval: 50 });
    const lost: unknown[] = [];
    worker.on('stalled', (id) => lost.push(id)).on('lockRenewalFailed', (ids) => lost.push(ids));
    await queue.add('held', -1);
    await until('the job to run', () => runs.size === 1);
    for (let number = 0; number < 3; number++) {
      const adding = queue.add('job', number);
      const begin = performance.now();
      // it was sent, and nobody reads the answer
      while (performance.now() - begin < 700);
      await adding;
    }
    gate.open();
    await ranOnceEach(queue, 4);
    expect(lost).toEqual([]);
  });

  it('a worker may close while others are added', async () => {
    const { queue, worker } = start();
    let closing: Promise<void> | undefined;
    const jobs = await atOddMoments(queue, (added) => {
      if (added === JOBS / 2) closing ??= worker.close();
      return added === JOBS;
    });
    await closing;
    expect(await queue.getActiveCount()).toBe(0);
    stage.worker(run, { concurrency: SLOTS });
    await ranOnceEach(queue, jobs);
  });

  it('a worker may pause, change its slots, and meet a delayed job or a limit', { timeout: LIMIT_MS }, async () => {
    const { queue, worker } = start();
    const others: Promise<unknown>[] = [];
    const jobs = await atOddMoments(queue, (added) => {
      if (added % 10 === 3) others.push(worker.pause(true));
      if (added % 10 === 5) void worker.resume();
      if (added % 10 === 7) worker.concurrency = 2 + random.next(SLOTS);
      if (added % 20 === 9) others.push(queue.add('job', 1_000 + added, { delay: random.next(30) }));
      if (added % 40 === 11) others.push(queue.setGlobalConcurrency(3));
      if (added % 40 === 31) others.push(queue.removeGlobalConcurrency());
      return added === JOBS;
    });
    await Promise.all(others);
    await queue.removeGlobalConcurrency();
    await worker.resume();
    await ranOnceEach(queue, jobs + JOBS / 20);
  });
});
