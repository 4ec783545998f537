// A queue and its worker in one thread, a job at a time: the add takes the worker's step along, and its connection records how the job ended. Whatever
// happens to either meanwhile, each job runs once.
import type { Job, Queue, Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { breakAtRandom } from '../support/breaking.js';
import { chasquimq } from '../support/chasquimq.js';
import { expectOnceEach } from '../support/once-each.js';
import { Random } from '../support/random.js';
import { useStage } from '../support/stage.js';
import { useOwnServer } from '../support/use-own-server.js';
import { untilWaiting } from '../support/waiting-workers.js';
import { Gate, sleep, until } from '../support/waiting.js';

const JOBS = 200;
const BREAKS = 30;
const LIMIT_MS = 300_000;

describe('worker.along', () => {
  const stage = useStage(chasquimq);
  const own = useOwnServer();
  const runs = new Map<unknown, number>();

  const run = async (job: Job): Promise<unknown> => {
    runs.set(job.data, (runs.get(job.data) ?? 0) + 1);
    // some end at once, others do not
    if (Number(job.data) % 5 === 0) await sleep(1);
    return job.data;
  };

  function start(opts: object = {}): { queue: Queue; worker: Worker } {
    runs.clear();
    return { queue: stage.queue(opts), worker: stage.worker(run, opts) };
  }

  /** Adds jobs, each when the one before has ended, until they are enough. Gives their number. */
  async function oneAtATime(queue: Queue, worker: Worker, areEnough: (jobs: number) => boolean): Promise<number> {
    let jobs = 0;
    while (!areEnough(jobs)) {
      const ended = new Promise((resolve) => worker.once('completed', resolve));
      await queue.add('job', jobs++);
      await ended;
    }
    return jobs;
  }

  const ranOnceEach = (queue: Queue, jobs = JOBS): Promise<void> => expectOnceEach(queue, runs, jobs);

  it(
    'jobs end while their connections break at random, and the server forgets functions',
    { timeout: LIMIT_MS },
    async () => {
      const breaking = await breakAtRandom(stage, own, new Random(7));
      // behind a wait that was lost, nothing goes along until that would have ended
      const { queue, worker } = start({ connection: breaking.connection, drainDelay: 0.1 });
      const jobs = await oneAtATime(queue, worker, () => breaking.count() >= BREAKS).finally(breaking.stop);
      stage.takeErrors();
      await ranOnceEach(queue, jobs);
    },
  );

  it('an event loop that is busy for longer than a lock lasts loses no lock', async () => {
    const { queue, worker } = start({ lockDuration: 1_500, lockRenewTime: 100, stalledInterval: 50 });
    await oneAtATime(queue, worker, (jobs) => jobs === 5);
    const stalled: string[] = [];
    worker.on('stalled', (id) => stalled.push(id));
    const ended = new Promise((resolve) => worker.once('completed', resolve));
    const adding = queue.add('job', 5);
    const begin = performance.now();
    // it was sent, and nobody reads the answer
    while (performance.now() - begin < 2_500);
    await adding;
    await ended;
    expect(stalled).toEqual([]);
    await ranOnceEach(queue, 6);
  });

  it('what is due comes in its time, though the one whose wait hears of it is busy', async () => {
    const [ended, long] = [new Set<string>(), new Gate()];
    const opts = { connection: own.connection, drainDelay: 60 };
    const work = (): Worker => {
      const worker = stage.worker(({ name }: Job) => (name === 'long' ? long.opened : Promise.resolve()), opts);
      return worker.on('completed', ({ name }) => ended.add(name));
    };
    const queue = stage.queue(opts);
    const waits = (workers: number) => untilWaiting(own.redis, queue.name, workers);
    work();
    await waits(1);
    for (const name of ['first', 'second']) {
      await queue.add(name, 0);
      await until(`the ${name} job`, () => ended.has(name));
    }
    work();
    await waits(2);
    await queue.add('long', 0);
    await queue.add('late', 0, { delay: 200 });
    await until('the late job', () => ended.has('late')).finally(long.open);
    await until('the long job', () => ended.has('long'));
  });

  it('who waits for the end of a job that is removed then hears of it', async () => {
    const { queue } = start();
    const events = stage.events();
    await events.waitUntilReady();
    for (let number = 0; number < JOBS; number++) {
      const job = await queue.add('job', number, { removeOnComplete: true });
      expect(await job.waitUntilFinished(events)).toBe(number);
    }
  });

  it('a queue may close while its connection has an end to record', async () => {
    runs.clear();
    const worker = stage.worker(run);
    for (let number = 0; number < 20; number++) {
      const queue = stage.queue();
      const ended = new Promise((resolve) => worker.once('completed', resolve));
      await queue.add('warm', 2 * number);
      await ended;
      const next = new Promise((resolve) => worker.once('completed', resolve));
      await queue.add('job', 2 * number + 1);
      await queue.close();
      await next;
    }
    await ranOnceEach(stage.queue(), 40);
  });

  it('a worker may close while a step of its goes along', async () => {
    runs.clear();
    const queue = stage.queue();
    for (let number = 0; number < 20; number++) {
      const worker = stage.worker(run);
      const ended = new Promise((resolve) => worker.once('completed', resolve));
      await queue.add('warm', 2 * number);
      await ended;
      const adding = queue.add('job', 2 * number + 1);
      if (number % 2 === 0) await Promise.resolve();
      await Promise.all([worker.close(), adding]);
      expect(await queue.getActiveCount()).toBe(0);
    }
    const last = stage.worker(run);
    await until('all jobs to end', async () => (await queue.getCompletedCount()) === 40, LIMIT_MS);
    await last.close();
    await ranOnceEach(queue, 40);
  });

  it('a worker may pause, and others add, meanwhile', async () => {
    const { queue, worker } = start();
    const other = stage.queue();
    const second = stage.worker(run);
    const adding: Promise<unknown>[] = [];
    for (let number = 0; number < JOBS; number++) {
      adding.push((number % 3 === 0 ? other : queue).add('job', number));
      if (number % 7 === 0) await worker.pause(true);
      if (number % 7 === 1) await worker.resume();
      if (number % 11 === 0) await Promise.all(adding);
      if (number % 13 === 0) second.concurrency = 1 + (number % 3);
    }
    await worker.resume();
    await Promise.all(adding);
    await until('all jobs to end', async () => (await queue.getCompletedCount()) === JOBS, LIMIT_MS);
    await ranOnceEach(queue);
  });
});
