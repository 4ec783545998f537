// The worker option `batch`: several jobs in one call of the processor, each with an end of its own.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { DelayedError, QueueEvents, RateLimitError, UnrecoverableError, Worker } from '../../src/index.js';
import type { Job, WorkerOptions } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { connection } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, Gate, until } from '../support/waiting.js';

type Handler = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>;

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe('worker.batch', () => {
  const stage = useStage(chasquimq);

  function worker(handler: Handler, opts: Partial<WorkerOptions>): Worker {
    return stage.worker(handler as never, opts) as unknown as Worker;
  }

  async function addAll(count: number, opts: object = {}): Promise<string[]> {
    const jobs = await stage.queue().addBulk(numbers(count).map((i) => ({ name: 'job', data: i, opts })));
    return jobs.map(({ id }) => id!);
  }

  const stored = async (id: string): Promise<Job> => (await fetchJob(stage.queue(), id)) as unknown as Job;

  it('takes what waits, up to its size, and gives each job its result', async () => {
    const ids = await addAll(25);
    const batches: number[][] = [];
    const handler: Handler = async (job) => {
      const jobs = job.getBatch();
      expect(jobs[0]).toBe(job);
      batches.push(jobs.map(({ data }) => data as number));
      return jobs.map(({ data }) => (data as number) * 2);
    };
    const log = new EventLog(worker(handler, { batch: { size: 10 } }), ['active', 'completed']);
    await log.get('completed', 25);
    expect(batches.map(({ length }) => length)).toEqual([10, 10, 5]);
    expect(batches.flat()).toEqual(numbers(25));
    expect(log.all<[Job]>('active')).toHaveLength(25);
    for (const [job, result] of log.all<[Job, number]>('completed')) {
      expect(result).toBe((job.data as number) * 2);
      // of the event it is one job's
      expect(job.getBatch()).toEqual([job]);
    }
    expect((await stored(ids[7])).returnvalue).toBe(14);
  });

  it('takes the jobs of one group, with groupAffinity, within the limits of the group', async () => {
    const grouped = (id: string, count: number): object[] =>
      numbers(count).map((data) => ({ name: id, data, opts: id === '-' ? {} : { group: { id } } }));
    const queue = stage.queue();
    await queue.addBulk([...grouped('a', 5), ...grouped('b', 2), ...grouped('-', 3), ...grouped('c', 1)] as never);
    const batches: string[] = [];
    const handler: Handler = async (job) => {
      batches.push(
        job
          .getBatch()
          .map(({ name }) => name)
          .join(''),
      );
    };
    const opts = { batch: { size: 4, groupAffinity: true }, group: { concurrency: 3 }, concurrency: 2 };
    const log = new EventLog(worker(handler, opts), ['completed']);
    await log.get('completed', 11);
    for (const batch of batches) expect(new Set(batch).size).toBe(1);
    expect(batches[0]).toBe('---');
    expect(batches.filter((batch) => batch.startsWith('a')).every(({ length }) => length <= 3)).toBe(true);
    expect(batches.join('').split('').sort().join('')).toBe('---aaaaabbc');
  });

  it('gives all the result that is no array of as many, unless something was said of one', async () => {
    const ids = await addAll(4);
    const handler: Handler = async (job) => {
      const jobs = job.getBatch();
      jobs[1].setResult('of its own');
      jobs[2].setAsFailed(new UnrecoverableError('not this one'));
      return ['common'];
    };
    const log = new EventLog(worker(handler, { batch: { size: 4 } }), ['completed', 'failed']);
    await log.when('all to end', () => log.names.length === 4);
    const ends = await Promise.all(ids.map(async (id) => (await stored(id)).returnvalue as unknown));
    expect(ends).toEqual([['common'], 'of its own', null, ['common']]);
    expect((await stored(ids[2])).failedReason).toBe('not this one');
  });

  it('fails all that it throws for, but those of which something was said, and each has its own tries', async () => {
    const [twice] = await addAll(1, { attempts: 2 });
    const [once, done] = await addAll(2);
    const runs: string[][] = [];
    const handler: Handler = async (job) => {
      const jobs = job.getBatch();
      runs.push(jobs.map(({ id }) => id!));
      if (runs.length > 1) return 'again';
      jobs.find(({ id }) => id === done)!.setResult('done');
      throw new Error('boom');
    };
    const log = new EventLog(worker(handler, { batch: { size: 3 } }), ['completed', 'failed']);
    await log.when('the end of all', () => log.all('completed').length === 2 && log.all('failed').length === 2);
    expect(runs).toEqual([[twice, once, done], [twice]]);
    expect(await stored(twice)).toMatchObject({ attemptsMade: 2, returnvalue: 'again' });
    expect(await stored(once)).toMatchObject({ attemptsMade: 1, failedReason: 'boom' });
    expect(await stored(done)).toMatchObject({ attemptsMade: 1, returnvalue: 'done' });
  });

  it('stores results of 100 KB, and tells of one that has no JSON form', async () => {
    const ids = await addAll(3);
    const long = 'x'.repeat(100_000);
    const batch = worker(async () => [long, 1n, { long }], { batch: { size: 3 } });
    const log = new EventLog(batch, ['completed', 'failed']);
    await log.when('all to end', () => log.names.length === 3);
    expect((await stored(ids[0])).returnvalue).toBe(long);
    expect((await stored(ids[1])).failedReason).toContain('serialize a BigInt');
    expect((await stored(ids[2])).returnvalue).toEqual({ long });
    expect(stage.takeErrors()).toHaveLength(1);
  });

  it('leaves to others what comes while its calls run, and counts calls by concurrency', async () => {
    const gate = new Gate();
    const running: number[][] = [];
    const held: Handler = async (job) => {
      running.push(job.getBatch().map(({ data }) => data as number));
      await gate.opened;
    };
    const busy = worker(held, { batch: { size: 5 } });
    const queue = stage.queue();
    try {
      await queue.add('job', 0);
      await until('a call to begin', () => running.length === 1);
      await queue.addBulk(numbers(3).map((i) => ({ name: 'job', data: 10 + i })));
      const other = worker(async () => 'other', {});
      const log = new EventLog(other, ['completed']);
      await log.get('completed', 3);
      await other.close();
      // one call more may run
      busy.concurrency = 2;
      await queue.add('job', 20);
      await until('the second call', () => running.length === 2);
    } finally {
      gate.open();
    }
    expect(running).toEqual([[0], [20]]);
  });

  it('tells the events of each job, and its progress', async () => {
    const events = new QueueEvents(stage.queueName, { connection: { ...connection } });
    const log = new EventLog(events, ['completed', 'failed', 'progress']);
    await events.waitUntilReady();
    const ids = await addAll(3);
    worker(
      async (job) => {
        const jobs = job.getBatch();
        await Promise.all(jobs.map((each) => each.updateProgress(each.data as number)));
        jobs[2].setAsFailed(new Error('odd'));
      },
      { batch: { size: 3 } },
    );
    await log.when('the ends', () => log.all('completed').length === 2 && log.all('failed').length === 1);
    const told = (event: string): string[] => log.all<[{ jobId: string }]>(event).map(([{ jobId }]) => jobId);
    expect(told('progress').sort()).toEqual(ids);
    expect([...told('completed'), ...told('failed')]).toEqual(ids);
    await events.close();
  });

  it('aborts the signal of the one that is cancelled, and that of the call once all are', async () => {
    const ids = await addAll(2);
    const seen: unknown[] = [];
    const all = new Gate();
    const handler: Handler = async (job, _token, signal) => {
      const jobs = job.getBatch();
      signal!.addEventListener('abort', () => all.open());
      batch.cancelJob(ids[1], 'not wanted');
      seen.push(...jobs.map((each) => each.signal?.aborted), signal!.aborted);
      jobs[1].setAsFailed(new UnrecoverableError(String(jobs[1].signal!.reason)));
      batch.cancelAllJobs('none');
      await all.opened;
      return 'kept';
    };
    const batch = worker(handler, { batch: { size: 2 } });
    const log = new EventLog(batch, ['completed', 'failed']);
    await log.when('both to end', () => log.names.length === 2);
    expect(seen).toEqual([false, true, false]);
    expect((await stored(ids[0])).returnvalue).toBe('kept');
    expect((await stored(ids[1])).failedReason).toBe('not wanted');
  });

  it('puts back those that meet a rate limit, and lets one be moved', async () => {
    const ids = await addAll(3);
    let calls = 0;
    const handler: Handler = async (job) => {
      calls++;
      if (calls === 1) {
        await batch.rateLimit(50);
        throw new RateLimitError();
      }
      const later = job.getBatch().find(({ id, attemptsStarted }) => id === ids[1] && attemptsStarted === 2);
      if (later) {
        await later.moveToDelayed(Date.now() + 20, later.token);
        later.setAsFailed(new DelayedError());
      }
      return calls;
    };
    const batch = worker(handler, { batch: { size: 3 } });
    const log = new EventLog(batch, ['completed', 'failed']);
    await log.get('completed', 3);
    expect(log.all('failed')).toEqual([]);
    expect(await stored(ids[0])).toMatchObject({ attemptsMade: 1, attemptsStarted: 2, returnvalue: 2 });
    expect(await stored(ids[1])).toMatchObject({ attemptsMade: 1, attemptsStarted: 3, returnvalue: 3 });
  });

  it('goes back job by job when its worker is gone', async () => {
    const ids = await addAll(4);
    const begun = new Gate();
    const lost = worker(
      (job) => {
        job.getBatch()[0].setResult('never told');
        begun.open();
        return new Promise(() => {});
      },
      { batch: { size: 4 }, lockDuration: 300, stalledInterval: 100 },
    );
    await begun.opened;
    await lost.close(true);
    const seen: string[][] = [];
    const handler: Handler = async (job) => void seen.push(job.getBatch().map(({ id }) => id!));
    const log = new EventLog(worker(handler, { batch: { size: 3 }, stalledInterval: 100 }), ['completed', 'stalled']);
    await log.get('completed', 4);
    expect(seen.flat().sort()).toEqual(ids);
    expect(log.all('stalled')).toHaveLength(4);
  });

  it('runs a job alone where there is one, and without the option', async () => {
    const seen: unknown[] = [];
    const handler: Handler = async (job) => {
      seen.push(job.getBatch().length);
      if (job.signal) return void job.setResult('in a batch');
      expect(() => job.setResult(1)).toThrow('setResult is for a job of a batch');
      expect(() => job.setAsFailed(new Error())).toThrow('setAsFailed is for a job of a batch');
    };
    for (const opts of [{ batch: { size: 10 } }, {}]) {
      const each = worker(handler, opts);
      const log = new EventLog(each, ['completed']);
      const added = await stage.queue().add('job', {});
      await log.get('completed');
      expect((await stored(added.id!)).returnvalue).toBe('batch' in opts ? 'in a batch' : null);
      await each.close();
      expect(() => (added as unknown as Job).setResult(1)).toThrow('setResult is for a job of a batch');
    }
    expect(seen).toEqual([1, 1]);
  });

  describe.each([false, true])('a processor that is a file, in a thread: %s', (useWorkerThreads) => {
    const file = fileURLToPath(new URL('programs/batch.cjs', import.meta.url));

    async function run(data: object[], least = {}): Promise<{ batch: Worker; log: EventLog; ids: string[] }> {
      const opts = { attempts: 3 };
      const jobs = await stage
        .queue()
        .addBulk(data.map((each, number) => ({ name: 'job', data: { number, ...each }, opts })));
      const batch = worker(file as never, { batch: { size: 3, ...least }, useWorkerThreads });
      return { batch, log: new EventLog(batch, ['completed', 'failed', 'progress']), ids: jobs.map(({ id }) => id!) };
    }

    it('gets its batch, and says of each job what becomes of it', async () => {
      const { log, ids } = await run([{}, {}, {}, {}]);
      await log.when('all to end', () => log.all('completed').length === 3 && log.all('failed').length === 1);
      expect(await Promise.all(ids.map(async (id) => (await stored(id)).returnvalue as unknown))).toEqual([
        '0 of 3, 3',
        'of its own',
        null,
        '3 of 1, 1',
      ]);
      expect(await stored(ids[2])).toMatchObject({ failedReason: 'not this one', attemptsMade: 1 });
      expect(log.all<[Job, number]>('progress').map(([{ id }, progress]) => [id, progress])).toEqual(
        ids.map((id, number) => [id, number]),
      );
    });

    it('gets no fewer than the least, unless their time is over', async () => {
      const { log, ids } = await run([{}, {}, {}, {}], { minSize: 2, timeout: 50 });
      await log.get('completed', 3);
      expect((await stored(ids[0])).returnvalue).toBe('0 of 3, 3');
      // alone, it waited for another one
      const { returnvalue, processedOn, finishedOn } = await stored(ids[3]);
      expect(returnvalue).toBe('3 of 1, 1');
      expect(finishedOn! - processedOn!).toBeGreaterThanOrEqual(45);
      await stage.queue().addBulk([4, 5].map((number) => ({ name: 'job', data: { number } })));
      const [, result] = await log.get('completed', 5);
      expect(result).toBe('5 of 2, 1');
    });

    it('hears of the job that is cancelled', async () => {
      const { batch, log, ids } = await run([{ waits: true }, {}]);
      await log.get('progress', 2);
      expect(batch.cancelJob(ids[1], 'not wanted')).toBe(true);
      const [job, error] = await log.get<[Job, Error]>('failed');
      expect([job.id, error.message]).toEqual([ids[1], 'not wanted, and false']);
      await log.get('completed', 2);
      expect((await stored(ids[0])).returnvalue).toBe('0 of 2, 2');
      expect(await stored(ids[1])).toMatchObject({ returnvalue: '1 of 1, 1', attemptsMade: 2 });
    });
  });

  it('refuses what it does not understand, and says what is not there yet', () => {
    const make = (batch: unknown, processor: unknown = async () => {}) =>
      new Worker(
        stage.queueName,
        processor as never,
        { connection: { ...connection }, autorun: false, batch } as never,
      );
    for (const batch of [null, 5, {}, { size: 0 }, { size: 1.5 }, { size: '2' }, { size: Infinity }]) {
      expect(() => make(batch)).toThrow('batch.size must be an integer of at least 1');
    }
    for (const minSize of [null, 0, 3, 1.5, '2', NaN, Infinity]) {
      expect(() => make({ size: 2, minSize })).toThrow('batch.minSize must be an integer from 1 to batch.size');
    }
    for (const timeout of [null, -1, '2', NaN]) {
      expect(() => make({ size: 2, timeout })).toThrow('batch.timeout must be a number of milliseconds of at least 0');
    }
    expect(() => make({ size: 2, groupAffinity: 1 })).toThrow('batch.groupAffinity must be true or false');
    expect(() => make({ size: 2, minSize: 2, groupAffinity: true })).toThrow('batch.minSize together with');
    expect(() => make({ size: 2, others: 3 })).toThrow('the worker option "batch.others" is not supported');
  });
});
