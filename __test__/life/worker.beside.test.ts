// A queue and its worker in one thread, and jobs that come while others run: an add takes the worker's step along, as long as a slot is free. Whatever
// happens to either meanwhile, each job runs once.
import type { Job, JobsOptions, Queue, Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { breakAtRandom } from '../support/breaking.js';
import { chasquimq } from '../support/chasquimq.js';
import { expectAllCompleted, expectOnceEach } from '../support/once-each.js';
import { Random } from '../support/random.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { doWork, workOf } from '../support/users-work.js';
import { Gate, sleep, until } from '../support/waiting.js';

const SLOTS = 10;
const JOBS = 200;
const BREAKS = 30;
const LIMIT_MS = 300_000;
const HOUR_MS = 3_600_000;

// jobs as they are added, by their number
const ADDED: ((number: number) => JobsOptions)[] = [
  () => ({}),
  (number) => ({ priority: 1 + (number % 3) }),
  (number) => ({ jobId: `id-${number}` }),
  () => ({ lifo: true }),
  (number) => ({ delay: number % 20 }),
];

/** Locks that run out soon where nobody renews them, and that a starved thread has time to renew. */
const SHORT_LOCKS = { lockDuration: 1_500, lockRenewTime: 100, stalledInterval: 50 };

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
      adds.push(queue.add('job', adds.length, ADDED[random.next(ADDED.length)](adds.length)));
      // each moment finds the worker in another state; there is nothing to wait for
      await sleep(random.next(6));
    }
    await Promise.all(adds);
    return adds.length;
  }

  async function ranOnceEach(queue: Queue, jobs: number): Promise<void> {
    await until('all jobs to end', async () => (await queue.getCompletedCount()) >= jobs, LIMIT_MS);
    await expectOnceEach(queue, runs, jobs);
  }

  const work = async (job: Job, token?: string): Promise<string> => {
    const number = Number(job.data);
    const nth = (runs.get(number) ?? 0) + 1;
    runs.set(number, nth);
    return doWork(job, token, { number, nth, random });
  };

  /** How often a worker came to wait, or waited no more. */
  const waitsChanged = async (): Promise<number> => {
    const stats = await own.redis.info('commandstats');
    return [...stats.matchAll(/cmdstat_s(?:add|rem|pop):calls=(\d+)/g)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    );
  };

  it.each([
    ['a plain job', {}, false],
    ['a job with a priority', { priority: 3 }, false],
    ['a job at the head of the line', { lifo: true }, false],
    ['a plain job beside a delayed one', {}, true],
  ])('an add takes a step along while a job runs, and the wait stands: %s', async (_, options, isDelayed) => {
    // longer than a worker looks ahead for what is due
    const { queue, worker } = start({ connection: own.connection, drainDelay: 60 });
    await queue.add('held', 0);
    if (isDelayed) await queue.add('later', -1, { delay: HOUR_MS });
    await until('the job to run', () => runs.size === 1);
    const before = await waitsChanged();
    for (let number = 1; number <= JOBS; number += 3) {
      const ended = new Promise((resolve) => worker.once('completed', resolve));
      await queue.add('job', 3 * number, options);
      await ended;
      // for the worker to wait again, of which nothing tells
      await sleep(2);
    }
    expect((await waitsChanged()) - before).toBeLessThan(JOBS / 6);
    gate.open();
    await ranOnceEach(queue, 1 + Math.ceil(JOBS / 3));
  });

  it('what is due starts when it is, while adds take steps along', async () => {
    // a wait would last for a minute
    const { queue } = start({ drainDelay: 60 });
    await queue.add('held', 0);
    await until('the job to run', () => runs.size === 1);
    let added = 1;
    for (let time = 0; time < 5; time++) {
      await queue.add('job', added++);
      await queue.add('job', added++, { delay: 100 });
      // nothing else happens until then
      await until('what is due to start', () => runs.size === added);
    }
    gate.open();
    await ranOnceEach(queue, added);
  });

  it('an id that is there already is one job', async () => {
    const { queue, worker } = start();
    for (let number = 0; number < JOBS; number++) {
      const adds = [
        queue.add('job', number, { jobId: `id-${number}` }),
        queue.add('job', -1, { jobId: `id-${number}` }),
      ];
      expect((await Promise.all(adds)).map(({ id }) => id)).toEqual([`id-${number}`, `id-${number}`]);
    }
    await until('all jobs to run', () => runs.size === JOBS);
    await worker.close();
    await ranOnceEach(queue, JOBS);
  });

  it('handlers that return 100 KiB, fail, move their job, or take time', { timeout: LIMIT_MS }, async () => {
    runs = new Map();
    const results = new Map<unknown, unknown>();
    const queue = stage.queue({ defaultJobOptions: { attempts: 2 } });
    const worker = stage.worker(work, { concurrency: SLOTS });
    worker.on('completed', ({ data }, result) => results.set(data, result));
    const jobs = await atOddMoments(queue, (added) => added === JOBS);
    await until('all jobs to end', () => results.size === jobs, LIMIT_MS);
    await expectAllCompleted(queue, jobs);
    const wanted = Array.from({ length: jobs }, (_, number) => workOf(number));
    expect(wanted.map((_, number) => ({ runs: runs.get(number), result: results.get(number) }))).toEqual(wanted);
  });

  it('connections break at random, and the server forgets functions', { timeout: LIMIT_MS }, async () => {
    const breaking = await breakAtRandom(stage, own, random);
    // behind a wait that was lost, nothing goes along until that would have ended
    const { queue } = start({ connection: breaking.connection, drainDelay: 0.1 });
    const jobs = await atOddMoments(queue, () => breaking.count() >= BREAKS).finally(breaking.stop);
    await ranOnceEach(queue, jobs);
    stage.takeErrors();
  });

  it('a lock lasts as long as its job, though steps go along', async () => {
    const { queue, worker } = start(SHORT_LOCKS);
    const lost: unknown[] = [];
    worker.on('stalled', (id) => lost.push(id)).on('lockRenewalFailed', (ids) => lost.push(ids));
    await queue.add('held', -1);
    const end = performance.now() + 2 * SHORT_LOCKS.lockDuration;
    const jobs = await atOddMoments(queue, () => performance.now() > end);
    gate.open();
    await ranOnceEach(queue, jobs + 1);
    expect(lost).toEqual([]);
  });

  it('an event loop that is busy for longer than a lock lasts loses no lock', async () => {
    const { queue, worker } = start(SHORT_LOCKS);
    const lost: unknown[] = [];
    worker.on('stalled', (id) => lost.push(id)).on('lockRenewalFailed', (ids) => lost.push(ids));
    await queue.add('held', -1);
    await until('the job to run', () => runs.size === 1);
    for (let number = 0; number < 2; number++) {
      const adding = queue.add('job', number);
      const begin = performance.now();
      // it was sent, and nobody reads the answer
      while (performance.now() - begin < 2_000);
      await adding;
    }
    gate.open();
    await ranOnceEach(queue, 3);
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
