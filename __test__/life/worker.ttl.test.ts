// Time limits of a run: `ttl` and `killAfter` of a worker, `timeout` and `timeoutIsFinal` of a job.
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { DelayedError, JobTimeoutError, UnrecoverableError } from '../../src/index.js';
import type { Job, JobsOptions, WorkerOptions, Worker } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog, Gate, sleep } from '../support/waiting.js';

type Handler = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>;

/** A time that is soon over. */
const SOON_MS = 20;
/** A time that no test waits for. */
const NEVER_MS = 3_600_000;
const FILE = fileURLToPath(new URL('programs/too-long.cjs', import.meta.url));
/** Children are processes of their own, which take a while to start. */
const START_MS = 60_000;
/** A time that is soon over, and in which a child tells where it runs. */
const IN_CHILD_MS = 100;

const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener('abort', () => resolve(signal.reason));
  });

/** Hears of its signal, and throws its reason. */
const hears: Handler = async (_job, _token, signal) => {
  throw (await aborted(signal!)) as Error;
};

describe('time limits', () => {
  const stage = useStage(chasquimq);

  function worker(handler: Handler | string, opts: Partial<WorkerOptions>): Worker {
    return stage.worker(handler as never, opts) as unknown as Worker;
  }

  const add = async (name = 'job', opts: JobsOptions = {}): Promise<string> =>
    (await stage.queue().add(name, {}, opts)).id!;

  const stored = async (id: string): Promise<Job> => (await fetchJob(stage.queue(), id)) as unknown as Job;

  const logOf = (of: Worker): EventLog => new EventLog(of, ['active', 'completed', 'failed', 'progress', 'error']);

  it('aborts the signal with an error that names job and time, and the try fails with it, and is tried again', async () => {
    const events = stage.globalLog();
    const id = await add('job', { attempts: 2 });
    const reasons: unknown[] = [];
    const handler: Handler = async (job, _token, signal) => {
      if (job.attemptsStarted > 1) return 'in time';
      reasons.push(await aborted(signal!));
      throw signal!.reason;
    };
    const log = logOf(worker(handler, { ttl: SOON_MS }));
    await log.get('completed');
    const [, error] = log.all<[Job, JobTimeoutError]>('failed')[0];
    expect(error).toBeInstanceOf(JobTimeoutError);
    expect(reasons).toEqual([error]);
    expect(error).toMatchObject({
      name: 'JobTimeoutError',
      code: 'ERR_JOB_TIMEOUT',
      message: 'Job job took longer than 20 ms',
      jobName: 'job',
      jobId: id,
      timeout: SOON_MS,
    });
    expect(log.names).toEqual(['active', 'failed', 'active', 'completed']);
    expect(await stored(id)).toMatchObject({ attemptsMade: 2, attemptsStarted: 2, returnvalue: 'in time' });
    await events.get('completed');
    expect(events.all('failed')).toEqual([]);
  });

  it('ends a job with its last try, and tells the queue', async () => {
    const events = stage.globalLog();
    const id = await add();
    worker(hears, { ttl: SOON_MS });
    const [{ jobId, failedReason }] = await events.get<[{ jobId: string; failedReason: string }]>('failed');
    expect([jobId, failedReason]).toEqual([id, 'Job job took longer than 20 ms']);
    const job = await stored(id);
    expect(job.stacktrace).toHaveLength(1);
    expect(job.stacktrace![0]).toContain('JobTimeoutError: Job job took longer than 20 ms');
  });

  it('of some names concern no others', async () => {
    for (const name of ['other', 'toString', '__proto__', 'short']) await add(name);
    const short = stage.gate();
    const handler: Handler = async ({ name }, _token, signal) => {
      if (name !== 'short') await short.opened;
      else await aborted(signal!);
      short.open();
      return signal!.aborted;
    };
    const log = logOf(worker(handler, { ttl: { short: SOON_MS, unused: SOON_MS }, concurrency: 4 }));
    await log.when('all to end', () => log.all('completed').length === 3 && log.all('failed').length === 1);
    expect(log.all<[Job, boolean]>('completed').map(([, result]) => result)).toEqual([false, false, false]);
    expect(log.all<[Job, Error]>('failed')[0][0].name).toBe('short');
  });

  it('of a job go before those of its worker', async () => {
    const long = await add('long', { timeout: NEVER_MS });
    const own = await add('own', { timeout: 10 });
    const others = await add('others');
    const ended = stage.gate();
    const handler: Handler = async ({ name }, _token, signal) => {
      if (name !== 'long') throw (await aborted(signal!)) as Error;
      await ended.opened;
    };
    const log = logOf(worker(handler, { ttl: { long: SOON_MS, others: 15 }, concurrency: 3 }));
    await log.get('failed', 2);
    ended.open();
    await log.get('completed');
    expect(await (await stored(long)).getState()).toBe('completed');
    expect((await stored(own)).failedReason).toBe('Job own took longer than 10 ms');
    expect((await stored(others)).failedReason).toBe('Job others took longer than 15 ms');
  });

  it('are known of jobs whose options somebody has read', async () => {
    const id = await add('job', { timeout: SOON_MS });
    const watched = worker(hears, {});
    watched.on('active', (job) => expect(job.opts.timeout).toBe(SOON_MS));
    await logOf(watched).get('failed');
    expect((await stored(id)).failedReason).toContain('20 ms');
  });

  it('come from a queue, a flow and a scheduler', async () => {
    const timeout = SOON_MS;
    await stage.queue({ defaultJobOptions: { timeout } as never }).add('default', {});
    const child = { name: 'child', queueName: stage.queueName, data: {}, opts: { timeout, failParentOnFailure: true } };
    await stage.flowProducer().add({ name: 'parent', queueName: stage.queueName, data: {}, children: [child] });
    await stage
      .queue()
      .upsertJobScheduler('daily', { every: NEVER_MS }, { name: 'scheduled', opts: { timeout } as never });
    const log = logOf(worker(hears, { concurrency: 4 }));
    await log.when('all to fail', () => log.all('failed').length === 4);
    const failed = log.all<[Job, Error]>('failed').filter(([, error]) => error instanceof JobTimeoutError);
    expect(failed.map(([{ name }]) => name).sort()).toEqual(['child', 'default', 'scheduled']);
  });

  it.each(['ttl', 'timeout'])('are final where the job says so, by its %s', async (which) => {
    const own = which === 'timeout' ? { timeout: SOON_MS } : {};
    const id = await add('job', { attempts: 5, timeoutIsFinal: true, ...own });
    const other = await add('other', { attempts: 5, timeoutIsFinal: true });
    const handler: Handler = async (job, token, signal) => {
      if (job.name === 'job') await hears(job, token, signal);
      if (job.attemptsStarted === 1) throw new Error('an error of its own');
    };
    const log = logOf(worker(handler, which === 'ttl' ? { ttl: SOON_MS } : {}));
    await log.when('both to end', () => log.all('completed').length === 1 && log.all('failed').length === 2);
    expect(await stored(id)).toMatchObject({ attemptsMade: 1 });
    expect(await (await stored(id)).getState()).toBe('failed');
    expect(await stored(other)).toMatchObject({ attemptsMade: 2 });
  });

  it('have tries that wait as others do, and a strategy gets the error', async () => {
    const asked: unknown[] = [];
    const backoffStrategy = (_made: number, _type?: string, error?: Error): number => {
      asked.push(error);
      return NEVER_MS;
    };
    const own = await add('job', { attempts: 2, backoff: { type: 'mine' } });
    const fixed = await add('job', { attempts: 2, backoff: NEVER_MS });
    const log = logOf(worker(hears, { ttl: SOON_MS, settings: { backoffStrategy } }));
    await log.get('failed', 2);
    expect(asked).toEqual([expect.any(JobTimeoutError)]);
    for (const id of [own, fixed]) expect(await (await stored(id)).getState()).toBe('delayed');
  });

  it('fail a try whatever its handler comes to, unless it says what becomes of the job', async () => {
    const names = ['returns', 'throws', 'plain', 'ends for good', 'moves'];
    const ids: string[] = [];
    for (const name of names) ids.push(await add(name, { attempts: 2, backoff: NEVER_MS }));
    const handler: Handler = async (job, token, signal) => {
      await aborted(signal!);
      if (job.name === 'throws') throw new Error('cut off');
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- what users may do
      if (job.name === 'plain') throw 'no error';
      if (job.name === 'ends for good') throw new UnrecoverableError('for good');
      if (job.name === 'moves') {
        await job.moveToDelayed(Date.now() + NEVER_MS, token);
        throw new DelayedError();
      }
      return 'too late';
    };
    const log = logOf(worker(handler, { ttl: SOON_MS, concurrency: names.length }));
    await log.get('failed', 4);
    const ends = await Promise.all(
      ids.map(async (id) => [await (await stored(id)).getState(), (await stored(id)).failedReason ?? undefined]),
    );
    expect(ends).toEqual([
      ['delayed', 'Job returns took longer than 20 ms'],
      ['delayed', 'Job throws took longer than 20 ms'],
      ['delayed', 'Job plain took longer than 20 ms'],
      ['failed', 'for good'],
      ['delayed', undefined],
    ]);
    expect((await stored(ids[0])).returnvalue).toBeNull();
  });

  it('let a handler that takes no signal run on, which holds its slot until it ends', async () => {
    const [first] = [await add('first'), await add('second')];
    const gate = stage.gate();
    const begun = new Gate();
    const log = logOf(
      worker(
        async ({ name }: Job) => {
          if (name === 'second') return;
          begun.open();
          await gate.opened;
        },
        { ttl: { first: SOON_MS } },
      ),
    );
    await begun.opened;
    // nothing is told of a time that is over before its handler has ended
    await sleep(5 * SOON_MS);
    expect(log.names).toEqual(['active']);
    gate.open();
    await log.get('completed');
    expect(log.names).toEqual(['active', 'failed', 'active', 'completed']);
    expect((await stored(first)).failedReason).toContain('took longer');
  });

  it('concern no job that ends in time, and none that has ended', async () => {
    const ids = [await add(), await add()];
    const signals: AbortSignal[] = [];
    const log = logOf(worker(async (_job, _token, signal) => void signals.push(signal!), { ttl: NEVER_MS }));
    await log.get('completed', ids.length);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  });

  it('may be longer than a timer can be', async () => {
    await add('job', { timeout: 2 ** 33 });
    const log = logOf(worker(async (_job, _token, signal) => signal!.aborted, {}));
    expect((await log.get<[Job, boolean]>('completed'))[1]).toBe(false);
  });

  it('hold for jobs that a user takes', async () => {
    const id = await add('job', { attempts: 2, backoff: NEVER_MS });
    const manual = worker(hears, { ttl: SOON_MS, autorun: false });
    const log = logOf(manual);
    const job = await manual.getNextJob('mine');
    await manual.processJob(job, 'mine', () => false);
    expect(log.all<[Job, Error]>('failed')[0][1]).toBeInstanceOf(JobTimeoutError);
    expect(await stored(id)).toMatchObject({ attemptsMade: 1, failedReason: 'Job job took longer than 20 ms' });
  });

  it('end a try that counts, also while the worker closes', async () => {
    const id = await add('job', { attempts: 2 });
    const begun = new Gate();
    const closing = worker(
      async (_job, _token, signal) => {
        begun.open();
        await aborted(signal!);
        await closing.close({ timeout: 0 });
      },
      { ttl: SOON_MS, killAfter: SOON_MS },
    );
    await begun.opened;
    const log = new EventLog(closing, ['closed', 'error']);
    await log.get('closed');
    expect(await stored(id)).toMatchObject({ attemptsMade: 1 });
    stage.takeErrors();
  });

  describe('with killAfter', () => {
    it('free the slot of a handler that runs on, whose end is not heard', async () => {
      const id = await add('held', { attempts: 2 });
      await add('next');
      const gate = new Gate();
      const late = new Gate();
      const tokens: string[] = [];
      const held: Handler = async (job, token) => {
        if (job.name === 'next') return 'next';
        tokens.push(token!);
        if (job.attemptsStarted > 1) return 'again';
        await gate.opened;
        setImmediate(late.open);
        return 'late';
      };
      const log = logOf(worker(held, { ttl: SOON_MS, killAfter: SOON_MS }));
      await log.get('completed', 2);
      const before = [...log.names];
      expect(before).toEqual(['active', 'error', 'failed', 'active', 'completed', 'active', 'completed']);
      expect(log.all<[Job, unknown]>('completed').map(([, result]) => result)).toEqual(['next', 'again']);
      gate.open();
      await late.opened;
      const errors = stage.takeErrors();
      expect(errors.map(({ message }) => message)).toEqual([
        `The handler of job held (id ${id}) runs on after its timeout: its slot is free, and its end is not heard`,
      ]);
      expect(errors[0].cause).toBeInstanceOf(JobTimeoutError);
      expect(log.names).toEqual(before);
      expect(await stored(id)).toMatchObject({ returnvalue: 'again', attemptsMade: 2 });
      expect(new Set(tokens).size).toBe(2);
    });

    it('hold no job that has failed: its token is worth nothing', async () => {
      const id = await add('held', { attempts: 2, backoff: NEVER_MS });
      let lateToken = '';
      const held: Handler = async (_job, token) => {
        lateToken = token!;
        await new Promise(() => {});
      };
      const log = logOf(worker(held, { ttl: SOON_MS, killAfter: 0 }));
      await log.get('failed');
      const job = await stored(id);
      expect(await job.getState()).toBe('delayed');
      await expect(job.moveToCompleted('late', lateToken, false)).rejects.toMatchObject({ code: expect.any(Number) });
      expect(await job.getState()).toBe('delayed');
      stage.takeErrors();
    });

    it('wait for one that ends soon, and say nothing', async () => {
      await add();
      const log = logOf(worker(hears, { ttl: SOON_MS, killAfter: NEVER_MS }));
      await log.get('failed');
      expect(log.names).toEqual(['active', 'failed']);
    });
  });

  describe('of batches', () => {
    const addAll = async (...opts: JobsOptions[]): Promise<string[]> => {
      const jobs = await stage.queue().addBulk(opts.map((each, data) => ({ name: 'job', data, opts: each as never })));
      return jobs.map(({ id }) => id!);
    };

    it('abort the signal of a job, and fail it alone', async () => {
      const ids = await addAll({}, { timeout: SOON_MS }, {});
      const signals: boolean[] = [];
      const handler: Handler = async (job, _token, signal) => {
        const jobs = job.getBatch();
        const reason = await aborted(jobs[1].signal!);
        expect(reason).toMatchObject({ jobId: ids[1] });
        signals.push(signal!.aborted, ...jobs.map((each) => each.signal!.aborted));
        return 'done';
      };
      const log = logOf(worker(handler, { batch: { size: 3 } }));
      await log.when('all to end', () => log.all('completed').length === 2 && log.all('failed').length === 1);
      expect(signals).toEqual([false, false, true, false]);
      expect((await stored(ids[1])).failedReason).toBe('Job job took longer than 20 ms');
      expect((await stored(ids[2])).returnvalue).toBe('done');
    });

    it('concern no job of which the processor has said how it ends', async () => {
      const ids = await addAll({}, {});
      const handler: Handler = async (job) => {
        const [first, second] = job.getBatch();
        first.setResult('said before');
        await aborted(second.signal!);
        second.setResult('said too late');
      };
      const log = logOf(worker(handler, { batch: { size: 2 }, ttl: SOON_MS }));
      await log.when('both to end', () => log.all('completed').length === 1 && log.all('failed').length === 1);
      expect((await stored(ids[0])).returnvalue).toBe('said before');
      expect((await stored(ids[1])).failedReason).toContain('took longer');
    });

    it('begin when the processor is called', async () => {
      await addAll({});
      const aborts: boolean[] = [];
      const handler: Handler = async (job, _token, signal) => void aborts.push(signal!.aborted, job.signal!.aborted);
      // it waits for a second job twice as long as it may run
      const batch = { size: 2, minSize: 2, timeout: 2 * SOON_MS };
      const log = logOf(worker(handler, { batch, ttl: SOON_MS }));
      await log.get('completed');
      expect(aborts).toEqual([false, false]);
    });

    it('with killAfter free the place of the call once that is so of all its jobs', async () => {
      const ids = await addAll({ timeout: SOON_MS }, { timeout: 3 * SOON_MS });
      const calls: string[][] = [];
      const handler: Handler = async (job) => {
        calls.push(job.getBatch().map(({ id }) => id!));
        if (calls.length === 1) await new Promise(() => {});
      };
      const log = logOf(worker(handler, { batch: { size: 2 }, killAfter: 0 }));
      await log.get('failed');
      const [next] = await addAll({});
      await log.get('completed');
      expect(calls).toEqual([ids, [next]]);
      const ends = log.all<[Job, unknown]>('failed').map(([{ id }, error]) => [id, error instanceof JobTimeoutError]);
      expect(ends).toEqual(ids.map((id) => [id, true]));
      expect(log.names.filter((name) => name === 'active')).toHaveLength(3);
      expect(stage.takeErrors()).toHaveLength(2);
    });
  });

  describe.each([false, true])('of a processor that is a file, in a thread: %s', (useWorkerThreads) => {
    /** A worker whose child is there already, and would otherwise take some of the time of a job. */
    async function warm(opts: Partial<WorkerOptions>): Promise<EventLog> {
      const log = logOf(worker(FILE, { useWorkerThreads, ...opts }));
      await add('warm');
      await log.get('completed', 1, START_MS);
      return log;
    }

    it('tell it why, and wait for it', async () => {
      const log = await warm({ ttl: { hears: IN_CHILD_MS }, killAfter: NEVER_MS });
      const id = await add('hears');
      await log.get('failed');
      expect(log.all<[Job, unknown]>('progress').at(-1)![1]).toEqual({
        name: 'JobTimeoutError',
        message: 'Job hears took longer than 100 ms',
        jobId: id,
      });
      expect(log.all<[Job, Error]>('failed')[0][1]).toBeInstanceOf(JobTimeoutError);
    });

    it.each(['hangs', 'blocks'])('kill the child in which it %s', async (name) => {
      const log = await warm({ ttl: { [name]: IN_CHILD_MS } });
      const id = await add(name, { attempts: 2, backoff: NEVER_MS });
      const [, pid] = await log.get<[Job, number]>('progress');
      await log.get('failed');
      // runs in another child
      await add('warm');
      await log.get('completed', 2, START_MS);
      if (!useWorkerThreads) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
      expect(log.names.slice(2)).toEqual(['active', 'progress', 'failed', 'active', 'completed']);
      expect(await stored(id)).toMatchObject({ failedReason: `Job ${name} took longer than 100 ms`, attemptsMade: 1 });
      expect(await (await stored(id)).getState()).toBe('delayed');
    });

    it('run no job whose time is over when its child is there', async () => {
      const log = logOf(worker(FILE, { useWorkerThreads, ttl: { late: 1 }, killAfter: NEVER_MS }));
      const id = await add('late');
      await log.get('failed', 1, START_MS);
      expect(log.names).toEqual(['active', 'failed']);
      expect((await stored(id)).failedReason).toBe('Job late took longer than 1 ms');
    });
  });

  it('that are none are refused by the constructor', () => {
    const build = (opts: object) => () => worker(async () => 'unused', { autorun: false, ...opts });
    const TEXT = 'must be a number of milliseconds above 0, not';
    for (const ttl of [0, -1, NaN, Infinity, '5', null, true, [5]]) {
      expect(build({ ttl })).toThrow(new RangeError(`ttl ${TEXT} ${inspect(ttl)}`));
    }
    for (const ms of [0, -1, NaN, Infinity, '5', null, undefined, {}]) {
      expect(build({ ttl: { resize: ms, other: 5 } })).toThrow(new RangeError(`ttl.resize ${TEXT} ${inspect(ms)}`));
    }
    for (const killAfter of [-1, NaN, '5', null]) {
      const text = `killAfter must be a number of milliseconds, 0 or more, not ${inspect(killAfter)}`;
      expect(build({ killAfter })).toThrow(new RangeError(text));
    }
  });

  it('that are none are refused by the call that adds the job', async () => {
    const TEXT = 'The job option timeout must be a number of milliseconds above 0, not';
    const queue = stage.queue();
    for (const timeout of [0, -1, '5', true, {}] as never[]) {
      await expect(queue.add('job', {}, { timeout } as never)).rejects.toThrow(`${TEXT} ${inspect(timeout)}`);
      const tree = { name: 'job', queueName: stage.queueName, opts: { timeout } as never };
      await expect(stage.flowProducer().add(tree)).rejects.toThrow(TEXT);
      const template = { opts: { timeout } as never };
      await expect(queue.upsertJobScheduler('s', { every: 1000 }, template)).rejects.toThrow(TEXT);
    }
    await expect(queue.add('job', {}, { timeout: NaN } as never)).rejects.toThrow('timeout');
    await expect(queue.add('job', {}, { timeoutIsFinal: 'yes' } as never)).rejects.toThrow(
      'The job option timeoutIsFinal must be true or false',
    );
    expect(await queue.getJobCountByTypes('waiting')).toBe(0);
    await queue.add('job', {}, { timeout: null, timeoutIsFinal: null } as never);
  });
});
