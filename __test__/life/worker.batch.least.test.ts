// The worker options `batch.minSize` and `batch.timeout`: jobs are held until there are enough for a call, by one worker at a time.
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RateLimitError, Worker } from '../../src/index.js';
import type { BatchOptions, Job, WorkerOptions } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { connection, redisClient } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, until } from '../support/waiting.js';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Longer than any test: what begins sooner has not waited for it. */
const LONG_MS = 3_600_000;

describe('worker.batch.least', () => {
  const stage = useStage(chasquimq);
  let redis: Redis;
  /** Data of the jobs of each call, over all workers. */
  let calls: unknown[][];
  beforeEach(() => {
    redis = redisClient();
    calls = [];
  });
  afterEach(() => redis.quit());

  function worker(batch: BatchOptions, opts: Partial<WorkerOptions> = {}): Worker {
    const handler = async (job: Job): Promise<void> =>
      void calls.push(job.getBatch().map(({ data }) => data as unknown));
    return stage.worker(handler as never, { batch, ...opts }) as unknown as Worker;
  }

  async function addAll(count: number, opts: object = {}): Promise<string[]> {
    const jobs = await stage.queue().addBulk(numbers(count).map((i) => ({ name: 'job', data: i, opts })));
    return jobs.map(({ id }) => id!);
  }

  const counts = () => stage.queue().getJobCounts('active', 'waiting', 'completed');
  const activeOnes = (count: number) =>
    until(`${count} jobs to be held`, async () => (await counts()).active === count);
  const completed = (count: number) =>
    until(`${count} jobs to complete`, async () => (await counts()).completed === count);
  const gatherer = () => redis.get(`{bull:${stage.queueName}}:gatherer`);

  /** Each ran once, and no try of it counts that was not one. */
  async function ranOnce(ids: string[]): Promise<void> {
    for (const id of ids)
      expect(await fetchJob(stage.queue(), id)).toMatchObject({
        attemptsMade: 1,
        attemptsStarted: 1,
        stalledCounter: 0,
      });
    expect(calls.flat()).toHaveLength(ids.length);
  }

  describe('waits', () => {
    it('for so many jobs, and takes as many as there are then', async () => {
      worker({ size: 10, minSize: 4 });
      const ids = await addAll(3);
      await activeOnes(3);
      // it has said so: these were too few for a while
      await until('the server to know who gathers', gatherer);
      expect(calls).toEqual([]);
      ids.push(...(await addAll(1)));
      await completed(4);
      expect(calls).toEqual([[0, 1, 2, 0]]);
      await until('the server to know that nobody gathers', async () => !(await gatherer()));
      await ranOnce(ids);
    });

    it('for a while, from the first job on', async () => {
      const log = new EventLog(worker({ size: 10, minSize: 4, timeout: 400 }), ['active', 'completed']);
      await addAll(1);
      await log.get('active');
      const since = performance.now();
      await addAll(1);
      await log.get('completed', 2);
      // a timer of Node may ring a millisecond early, and the event is told before it is set
      expect(performance.now() - since).toBeGreaterThanOrEqual(390);
      expect(calls).toEqual([[0, 0]]);
    });

    it('no longer than that for each batch: not at all where it is 0, nor without a least size', async () => {
      for (const batch of [
        { size: 5, minSize: 3, timeout: 0 },
        { size: 5, timeout: LONG_MS },
        { size: 5, minSize: 1, timeout: LONG_MS },
      ]) {
        const each = worker(batch);
        const log = new EventLog(each, ['completed']);
        await addAll(1);
        await log.get('completed');
        await each.close();
      }
      expect(calls).toEqual([[0], [0], [0]]);
    });

    it('longer than any timer of Node lasts', async () => {
      worker({ size: 2, minSize: 2, timeout: Infinity });
      await addAll(1);
      await until('the server to know who gathers', gatherer);
      await addAll(1);
      await completed(2);
      expect(calls).toEqual([[0, 0]]);
    });

    it('for delayed jobs that become due, and those with a priority, as they come', async () => {
      worker({ size: 5, minSize: 3 });
      await addAll(1);
      await activeOnes(1);
      await stage.queue().add('job', 'due', { delay: 50 });
      await activeOnes(2);
      await stage.queue().add('job', 'first', { priority: 1 });
      await completed(3);
      expect(calls).toEqual([[0, 'due', 'first']]);
    });

    it('through the windows of a rate limit', async () => {
      worker({ size: 5, minSize: 5 }, { limiter: { max: 2, duration: 100 } });
      const ids = await addAll(5);
      await completed(5);
      expect(calls).toEqual([numbers(5)]);
      await ranOnce(ids);
    });

    it('for no more than may be active at once', async () => {
      await stage.queue().setGlobalConcurrency(2);
      worker({ size: 5, minSize: 5 });
      await addAll(4);
      await completed(4);
      expect(calls).toEqual([
        [0, 1],
        [2, 3],
      ]);
    });

    it('while another call runs, and after one that met a rate limit', async () => {
      const gate = stage.gate();
      let met = false;
      const handler = async (job: Job): Promise<void> => {
        calls.push(job.getBatch().map(({ data }) => data as unknown));
        if (calls.length === 1) await gate.opened;
        if (met) return;
        met = true;
        await busy.rateLimit(30);
        throw new RateLimitError();
      };
      const opts = { batch: { size: 2, minSize: 2 }, concurrency: 2 };
      const busy = stage.worker(handler as never, opts) as unknown as Worker;
      await addAll(2);
      await until('a call', () => calls.length === 1);
      await addAll(1);
      await activeOnes(3);
      gate.open();
      await until(
        'those that met the limit to be back',
        async () => calls.length === 2 && (await counts()).active === 1,
      );
      await addAll(1);
      await completed(4);
      expect(calls.map(({ length }) => length)).toEqual([2, 2, 2]);
    });
  });

  describe('gives back what it holds, and counts no try', () => {
    async function held(batch: BatchOptions = { size: 10, minSize: 4 }): Promise<{ holder: Worker; ids: string[] }> {
      const holder = worker(batch);
      const ids = await addAll(3);
      await until('the server to know who gathers', gatherer);
      await activeOnes(3);
      return { holder, ids };
    }

    it('at a pause, in their order, and takes them again', async () => {
      const { holder, ids } = await held();
      await holder.pause();
      expect(await counts()).toEqual({ active: 0, waiting: 3, completed: 0 });
      expect((await stage.queue().getWaiting()).map(({ id }) => id)).toEqual(ids);
      await holder.resume();
      await activeOnes(3);
      ids.push(...(await addAll(1)));
      await completed(4);
      expect(calls).toEqual([[0, 1, 2, 0]]);
      await ranOnce(ids);
    });

    it.each([false, true])('at a close, which waits for no company, forced: %s', async (force) => {
      const { holder, ids } = await held();
      await holder.close(force);
      expect(await counts()).toEqual({ active: 0, waiting: 3, completed: 0 });
      const plain = new EventLog(worker({ size: 10 }), ['completed', 'stalled']);
      await plain.get('completed', 3);
      expect(plain.all('stalled')).toEqual([]);
      expect(calls.flat()).toEqual(numbers(3));
      await ranOnce(ids);
    });

    it('at a pause of the queue, after which it waits again', async () => {
      const { ids } = await held();
      const queue = stage.queue();
      await queue.pause();
      await activeOnes(0);
      expect(await gatherer()).toBeNull();
      await queue.resume();
      await activeOnes(3);
      ids.push(...(await addAll(1)));
      await completed(4);
      await ranOnce(ids);
    });

    it.each([
      ['its renewal finds out', 'lockRenewalFailed'],
      ['they are found as stalled', 'stalled'],
    ])('when its locks are lost, and %s', async (_, event) => {
      const isRenewal = event === 'lockRenewalFailed';
      const renewed = isRenewal ? { lockDuration: 400, skipStalledCheck: true } : { stalledInterval: 100 };
      const holder = worker({ size: 10, minSize: 2 }, renewed);
      const log = new EventLog(holder, [event, 'active']);
      const [id] = await addAll(1);
      await until('the server to know who gathers', gatherer);
      await redis.del(`{bull:${stage.queueName}}:lease:${holder.id}`);
      const [lost] = await log.get<[string | string[]]>(event);
      expect([lost].flat()).toEqual([id]);
      // what it is given once more is the same job: there are no two
      await log.get('active', 2);
      const [second] = await addAll(1);
      await completed(2);
      expect(calls).toEqual([[0, 0]]);
      expect((await stage.queue().getCompleted()).map((job) => job.id).sort()).toEqual([id, second]);
      stage.takeErrors();
    });

    it('where its process is gone, and its lease over', async () => {
      const env = { QUEUE: stage.queueName, LOCK_DURATION: 500 };
      const program = stage.keep(Program.start('holding-worker.mjs', { env }));
      const ids = await addAll(3);
      await program.said('active', 3);
      await program.kill();
      const log = new EventLog(worker({ size: 3, minSize: 3 }, { stalledInterval: 100 }), ['completed', 'stalled']);
      await log.get('completed', 3);
      expect(
        log
          .all<[string]>('stalled')
          .map(([id]) => id)
          .sort(),
      ).toEqual(ids);
      expect(program.lines).toHaveLength(3);
      expect(calls).toEqual([numbers(3)]);
    });

    it('where its process stood still, and others have run them', async () => {
      const env = { QUEUE: stage.queueName, LOCK_DURATION: 500, TIMEOUT: 1000 };
      const program = stage.keep(Program.start('holding-worker.mjs', { env }));
      await addAll(3);
      await program.said('active', 3);
      process.kill(program.pid, 'SIGSTOP');
      const other = worker({ size: 3 }, { stalledInterval: 100, drainDelay: 1 });
      await completed(3);
      await other.close();
      process.kill(program.pid, 'SIGCONT');
      const [id] = await addAll(1);
      // the first call that it makes is not of those
      expect(await program.said('ran')).toBe(id);
      expect(calls.flat()).toEqual(numbers(3));
    });
  });

  describe('of several workers', () => {
    it.each([
      [2, 10],
      [6, 12],
    ])('one at a time gathers: %d of them get all of %d jobs that come one by one', async (workers, jobs) => {
      const all = numbers(workers).map(() => worker({ size: jobs, minSize: jobs }));
      await Promise.all(all.map((each) => each.waitUntilReady()));
      for (let round = 1; round <= 3; round++) {
        for (let i = 0; i < jobs; i++) await addAll(1);
        await completed(round * jobs);
      }
      expect(calls.map(({ length }) => length)).toEqual([jobs, jobs, jobs]);
    });

    it('the others take what is left when the one that gathered is busy, or gone', async () => {
      const gate = stage.gate();
      const running: string[] = [];
      const start = (): Worker => {
        const handler = async (job: Job): Promise<void> => {
          running.push(...job.getBatch().map(({ id }) => id!));
          await gate.opened;
        };
        return stage.worker(handler as never, { batch: { size: 3, minSize: 3 } } as never) as unknown as Worker;
      };
      const [one, another] = [start(), start()];
      await addAll(2);
      const id = await until('the server to know who gathers', gatherer);
      const [first, second] = one.id === id ? [one, another] : [another, one];
      await addAll(1);
      await until('a call', () => running.length === 3);
      await addAll(2);
      await until('the other one to gather', async () => (await gatherer()) === second.id);
      gate.open();
      await completed(3);
      await second.close();
      await until('the first one to gather', async () => (await gatherer()) === first.id);
      await addAll(1);
      await completed(6);
      expect(new Set(running).size).toBe(6);
    });

    it('one that finds another in its place gives back what it holds, until that is done', async () => {
      const ids = await addAll(2);
      worker({ size: 5, minSize: 3 });
      await until('the server to know who gathers', gatherer);
      await redis.set(`{bull:${stage.queueName}}:gatherer`, 'another', 'PX', LONG_MS);
      await activeOnes(0);
      ids.push(...(await addAll(1)));
      await redis.del(`{bull:${stage.queueName}}:gatherer`);
      await completed(3);
      await ranOnce(ids);
    });

    it('one without a least size runs what comes to it', async () => {
      worker({ size: 10, minSize: 10 });
      await addAll(2);
      await until('the server to know who gathers', gatherer);
      const plain = stage.worker(async () => 'plain') as unknown as Worker;
      const log = new EventLog(plain, ['completed']);
      await until('a job for it', async () => {
        await addAll(1);
        return log.names.length > 0;
      });
    });
  });

  it('runs a job at once that a user has taken', async () => {
    const batch = { size: 5, minSize: 5 };
    const manual = new Worker(stage.queueName, async (job) => job.getBatch().length, {
      ...{ connection: { ...connection }, autorun: false, batch },
    });
    const [id] = await addAll(1);
    const job = await manual.getNextJob('a token of mine');
    await manual.processJob(job, 'a token of mine', () => false);
    expect((await fetchJob(stage.queue(), id)).returnvalue).toBe(1);
    await manual.close();
  });
});
