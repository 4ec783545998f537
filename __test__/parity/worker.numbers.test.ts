// Pins what becomes of numbers that are odd: texts, fractions, and what is endless, as the delay of a job or of its next try, as
// its number of tries, and as what is kept of it.
import { describe, expect, it } from 'vitest';
import type { Job, JobsOptions, Queue, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

const ENDLESS: [string, number][] = [
  ['Infinity', Infinity],
  ['1e300', 1e300],
  ['2 ** 64', 2 ** 64],
  ['1e19', 1e19],
];
/** Those that options may have: JSON has no Infinity. */
const LONG = ENDLESS.slice(1);
/** A year that nobody waits for. */
const FAR = 1e13;

describe.each(libraries)('$name: worker.numbers', ({ lib }) => {
  const stage = useStage(lib);

  /** Runs one job that always fails until there is nothing to run at once. */
  async function tries(
    opts: JobsOptions,
    workerOpts: Partial<WorkerOptions> = {},
  ): Promise<[runs: number, Queue, Job]> {
    const queue = stage.queue();
    const { id } = await queue.add('job', {}, opts);
    let runs = 0;
    const worker = stage.worker(async () => {
      throw new Error(`try ${++runs}`);
    }, workerOpts);
    await new EventLog(worker, ['drained']).get('drained');
    await worker.close();
    return [runs, queue, await fetchJob(queue, id)];
  }

  /** A job that waits for ever is delayed for all getters, is not run, and can be promoted and removed. */
  async function waitsForEver(queue: Queue, job: Job): Promise<void> {
    expect(await job.getState()).toBe('delayed');
    expect((await queue.getDelayed()).map(({ id }) => id)).toEqual([job.id]);
    expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 1, waiting: 0 });
    const ran: string[] = [];
    const worker = stage.worker(async ({ name, id }) => void ran.push(`${name} ${id}`));
    const log = new EventLog(worker, ['completed']);
    await queue.add('other', {});
    await log.get('completed');
    expect(ran).toEqual([expect.stringContaining('other')]);
    const found = await fetchJob(queue, job.id);
    await found.promote();
    await log.get('completed', 2);
    expect(ran[1]).toBe(`job ${job.id}`);
    await (await fetchJob(queue, job.id)).remove();
    expect(await job.getState()).toBe('unknown');
  }

  const mine = (delay: unknown): Partial<WorkerOptions> => ({ settings: { backoffStrategy: () => delay as number } });

  describe('the delay of the next try', () => {
    it.each<[string, unknown, least: number, most: number]>([
      ['fixed, a text', { type: 'fixed', delay: '20000' }, 20_000, 20_000],
      ['exponential, a text', { type: 'exponential', delay: '20000' }, 20_000, 20_000],
      ['fixed, a text, with a jitter', { type: 'fixed', delay: '20000', jitter: 0.5 }, 10_000, 20_000],
      ['fixed, with a jitter that is a text', { type: 'fixed', delay: 20_000, jitter: '0.5' }, 10_000, 20_000],
      ['exponential, an array', { type: 'exponential', delay: [20_000] }, 20_000, 20_000],
    ])('is %s', async (_, backoff, least, most) => {
      const [runs, , job] = await tries({ attempts: 2, backoff: backoff as never });
      expect([runs, await job.getState()]).toEqual([1, 'delayed']);
      expect(job.delay).toBeGreaterThanOrEqual(least);
      expect(job.delay).toBeLessThanOrEqual(most);
    });

    it.each([...LONG, ...LONG.map(([name, ms]) => [`'${name}'`, String(ms)] as const)])(
      'is endless: fixed and exponential, %s',
      async (_, delay) => {
        for (const type of ['fixed', 'exponential']) {
          stage.queueName += '-';
          const [runs, queue, job] = await tries({ attempts: 2, backoff: { type, delay: delay as number } });
          expect(runs).toBe(1);
          await waitsForEver(queue, job);
        }
      },
    );

    it('is endless: exponential, after so many tries that it overflows', async () => {
      const queue = stage.queue();
      await queue.add('job', {}, { attempts: 1e6, backoff: { type: 'exponential', delay: 1 } });
      const worker = stage.worker(null);
      const job = await worker.getNextJob('token');
      job.attemptsMade = 2000;
      await job.moveToFailed(new Error('try 2001'), 'token');
      await waitsForEver(queue, job);
    });

    it.each(ENDLESS)('is endless: %s of a strategy', async (_, delay) => {
      const [runs, queue, job] = await tries({ attempts: 2, backoff: { type: 'mine' } }, mine(delay));
      expect(runs).toBe(1);
      await waitsForEver(queue, job);
    });

    it.each<[unknown]>([[NaN], [-5], [-Infinity], [undefined], [null], [0.3], ['0'], ['']])(
      'is none: %s of a strategy',
      async (delay) => {
        const [runs, , job] = await tries({ attempts: 2, backoff: { type: 'mine' } }, mine(delay));
        expect([runs, await job.getState()]).toEqual([2, 'failed']);
      },
    );

    it.each<[unknown]>([[-1], ['-1'], [-1n]])('%s of a strategy: there is none', async (delay) => {
      const [runs, , job] = await tries({ attempts: 2, backoff: { type: 'mine' } }, mine(delay));
      expect([runs, await job.getState()]).toEqual([1, 'failed']);
    });

    it('-1 of a built-in backoff: there is none', async () => {
      for (const backoff of [-1, { type: 'fixed', delay: '-1' as never }]) {
        stage.queueName += '-';
        expect((await tries({ attempts: 2, backoff }))[0]).toBe(1);
      }
    });

    it.each<[string, unknown]>([
      ['a text', '200'],
      ['true', true],
      ['an array', [200]],
    ])('a backoff that is %s has no strategy', async (_, backoff) => {
      const queue = stage.queue();
      const { id } = await queue.add('job', {}, { attempts: 2, backoff: backoff as number });
      const worker = stage.worker(async () => {
        throw new Error('boom');
      });
      const [error] = await new EventLog(worker, ['error']).get<[Error]>('error');
      expect(error.message).toMatch(/^Unknown backoff strategy undefined\./);
      expect(await queue.getJobState(id ?? '')).toBe('active');
      expect(stage.takeErrors()).toEqual([error]);
    });
  });

  it.each<[unknown, number]>([
    [2.5, 3],
    ['3', 3],
    ['2.5', 3],
    [0.5, 1],
    [-1, 1],
    [0, 1],
    [null, 1],
  ])('attempts of %j are %d tries', async (attempts, runs) => {
    expect((await tries({ attempts: attempts as number }))[0]).toBe(runs);
  });

  it.each<[unknown]>([[NaN], [Infinity]])('attempts of %s are refused', async (attempts) => {
    await rejection(stage.queue().add('job', {}, { attempts: attempts as number }));
  });

  it('1e300 attempts are many', async () => {
    const [runs, , job] = await tries({ attempts: 1e300, backoff: FAR });
    expect([runs, job.attemptsMade, await job.getState()]).toEqual([1, 1, 'delayed']);
  });

  describe('a delay that is endless', () => {
    it.each([...LONG, ['Number.MAX_SAFE_INTEGER', Number.MAX_SAFE_INTEGER] as const])('add, %s', async (_, delay) => {
      const queue = stage.queue();
      await waitsForEver(queue, await queue.add('job', {}, { delay }));
    });

    it.each(LONG)('addBulk, with a timestamp as well, %s', async (_, delay) => {
      const queue = stage.queue();
      const [job] = await queue.addBulk([{ name: 'job', data: {}, opts: { delay, timestamp: delay } }]);
      await waitsForEver(queue, job);
    });

    it('a flow, 1e19', async () => {
      const { job } = await stage
        .flowProducer()
        .add({ name: 'job', queueName: stage.queueName, opts: { delay: 1e19 } });
      await waitsForEver(stage.queue(), job);
    });

    it.each(LONG)('changeDelay, %s', async (_, delay) => {
      const queue = stage.queue();
      const job = await queue.add('job', {}, { delay: 1 });
      await job.changeDelay(delay);
      await waitsForEver(queue, job);
    });

    it.each(ENDLESS)('moveToDelayed, %s', async (_, timestamp) => {
      const queue = stage.queue();
      await queue.add('job', {});
      const worker = stage.worker(async (job, token) => {
        await job.moveToDelayed(timestamp, token);
        throw new lib.DelayedError();
      });
      await new EventLog(worker, ['drained']).get('drained');
      await worker.close();
      await waitsForEver(queue, await fetchJob(queue, '1'));
    });
  });

  it('moveToDelayed refuses a BigInt', async () => {
    const queue = stage.queue();
    await queue.add('job', {});
    const job = await stage.worker(null).getNextJob('token');
    expect((await rejection(job.moveToDelayed(1n as never, 'token'))).name).toBe('TypeError');
    expect(await job.getState()).toBe('active');
  });

  it.each<[JobsOptions['removeOnComplete'], number]>([
    [{ age: 1e300 }, 3],
    [{ age: 1e300, count: 1 }, 1],
    [{ age: -5 }, 0],
    [{ age: 60, count: -7 }, 3],
    [{ age: 0, limit: 2 ** 53 }, 0],
    [{ count: 2 ** 52 }, 3],
    [-7, 3],
  ])('removeOnComplete of %j keeps %d of three', async (removeOnComplete, kept) => {
    const queue = stage.queue();
    await queue.addBulk([1, 2, 3].map((data) => ({ name: 'job', data, opts: { removeOnComplete } })));
    const worker = stage.worker(async () => {});
    await new EventLog(worker, ['drained']).get('drained');
    await worker.close();
    expect(await queue.getCompletedCount()).toBe(kept);
  });
});
