// Pins processors that are files: what they get and may call, and how their children live and die.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import type { Job, JobsOptions, Worker, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { fetchJob, useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const file = (name: string): string => fileURLToPath(new URL(`./processors/${name}`, import.meta.url));
const BY_NAME = file('by-name.cjs');

/** A child is a process of its own, which takes a while to start. */
const START_MS = 60_000;

const MODES = [
  ['child process', {}],
  ['worker thread', { useWorkerThreads: true }],
] as const;

describe.each(libraries)('$name: worker.sandbox', ({ lib }) => {
  const stage = useStage(lib);

  function sandbox(processor: string | URL, opts: Partial<WorkerOptions> = {}): { worker: Worker; log: EventLog } {
    const connection = stage.queue().opts.connection;
    const worker = stage.watch(new lib.Worker(stage.queueName, processor, { connection, drainDelay: 1, ...opts }));
    return { worker, log: new EventLog(worker, ['active', 'progress', 'completed', 'failed']) };
  }

  describe.each(MODES)('in a %s', (_, mode) => {
    async function completes(name: string, data: unknown = {}, opts: JobsOptions = {}): Promise<[Job, unknown]> {
      const { log } = sandbox(BY_NAME, mode);
      await stage.queue().add(name, data, opts);
      return log.get<[Job, unknown]>('completed', 1, START_MS);
    }

    async function fails(name: string, data: unknown = {}, opts: JobsOptions = {}): Promise<[Job, Error]> {
      const { log } = sandbox(BY_NAME, mode);
      await stage.queue().add(name, data, opts);
      return log.get<[Job, Error]>('failed', 1, START_MS);
    }

    it('a result comes back', async () => {
      const [job, result] = await completes('double', { n: 21 });
      expect([result, job.returnvalue]).toEqual([42, 42]);
      expect((await fetchJob(stage.queue(), '1')).returnvalue).toBe(42);
    });

    it('a result that is promised comes back', async () => {
      expect((await completes('later', { a: ['x', null] }))[1]).toEqual({ a: ['x', null] });
    });

    it('no result comes back as null', async () => {
      expect((await completes('nothing'))[1]).toBeNull();
      expect((await fetchJob(stage.queue(), '1')).returnvalue).toBeNull();
    });

    it('the job has its fields', async () => {
      const [job, result] = await completes('fields', { x: 1 }, { attempts: 2 });
      expect(result).toMatchObject({
        id: '1',
        name: 'fields',
        data: { x: 1 },
        opts: { attempts: 2 },
        progress: 0,
        attemptsMade: 0,
        attemptsStarted: 1,
        stalledCounter: 0,
        timestamp: job.timestamp,
        processedOn: job.processedOn,
        queueName: stage.queueName,
        queueQualifiedName: `bull:${stage.queueName}`,
        prefix: 'bull',
      });
    });

    it('the processor gets the token and a signal', async () => {
      expect((await completes('token'))[1]).toEqual([2, 'object', false]);
    });

    it('progress, also as the job shows it', async () => {
      const { log } = sandbox(BY_NAME, mode);
      await stage.queue().add('progress', {});
      const [job, result] = await log.get<[Job, unknown]>('completed', 1, START_MS);
      expect(log.names).toEqual(['active', 'progress', 'progress', 'completed']);
      expect(log.all<[Job, unknown]>('progress').map(([, progress]) => progress)).toEqual([10, { at: 'half' }]);
      expect([job.progress, result]).toEqual([{ at: 'half' }, { at: 'half' }]);
      expect((await fetchJob(stage.queue(), '1')).progress).toEqual({ at: 'half' });
    });

    it('log rows', async () => {
      await completes('log');
      expect((await stage.queue().getJobLogs('1')).logs).toEqual(['one', 'two']);
    });

    it('new data', async () => {
      expect((await completes('data', { once: 'that' }))[1]).toEqual({ now: 'this' });
      expect((await fetchJob(stage.queue(), '1')).data).toEqual({ now: 'this' });
    });

    it('calls take effect in their order', async () => {
      const order: string[] = [];
      const spies = (['log', 'updateData', 'moveToWaitingChildren'] as const).map((method) => {
        const own = lib.Job.prototype[method] as (...args: unknown[]) => never;
        return vi.spyOn(lib.Job.prototype, method).mockImplementation(function (this: Job, ...args: unknown[]) {
          order.push(method);
          return own.apply(this, args);
        });
      });
      expect((await completes('steps'))[1]).toBe(false);
      expect(order).toEqual([...Array.from({ length: 20 }, () => 'log'), 'updateData', 'moveToWaitingChildren']);
      for (const spy of spies) spy.mockRestore();
    });

    it('moveToDelayed', async () => {
      const { log } = sandbox(BY_NAME, mode);
      const queue = stage.queue();
      await queue.add('delays', {});
      await queue.add('double', { n: 1 });
      await log.get('completed', 1, START_MS);
      expect([log.names.includes('failed'), await queue.getJobCounts('delayed', 'active')]).toEqual([
        false,
        { delayed: 1, active: 0 },
      ]);
    });

    it('moveToWait', async () => {
      expect((await completes('waits'))[1]).toBe('again');
    });

    it('an error comes back with what it carries', async () => {
      const [job, error] = await fails('throws');
      expect(error).toBeInstanceOf(Error);
      expect([error.message, error.name]).toEqual(['boom', 'Error']);
      expect(error).toMatchObject({ detail: { code: 7 }, extra: 'x' });
      expect(job.stacktrace?.[0]).toMatch(/^TypeError: boom\n.*by-name\.cjs/);
      const stored = await fetchJob(stage.queue(), '1');
      expect([stored.failedReason, stored.stacktrace]).toEqual(['boom', job.stacktrace]);
    });

    it('the JSON of an error has its message', async () => {
      const [, error] = await fails('throws');
      expect(JSON.parse(JSON.stringify(error))).toEqual({ message: 'boom', detail: { code: 7 }, extra: 'x' });
    });

    it('an error thrown before anything was promised', async () => {
      expect((await fails('throwsAtOnce'))[1].message).toBe('at once');
    });

    it('an error that refers to itself', async () => {
      const [, error] = await fails('throwsCircle');
      expect([error.message, (error as unknown as { self: unknown }).self]).toEqual(['circle', '[Circular]']);
    });

    it('an error by its name: no further try', async () => {
      const [job, error] = await fails('unrecoverable', {}, { attempts: 5 });
      expect([error.message, error.name]).toEqual(['never again', 'UnrecoverableError']);
      expect([await job.getState(), job.attemptsMade]).toEqual(['failed', 1]);
    });

    it('a failed job is tried again', async () => {
      const { log } = sandbox(BY_NAME, mode);
      await stage.queue().add('throws', {}, { attempts: 3 });
      await log.get('failed', 3, START_MS);
      const stored = await fetchJob(stage.queue(), '1');
      expect([stored.attemptsMade, stored.stacktrace?.length]).toEqual([3, 3]);
    });

    it('an error that nobody catches', async () => {
      expect((await fails('uncaught'))[1].message).toBe('out of reach');
    });

    it('an exit in the middle of a job', async () => {
      const [, error] = await fails('exits', { code: 0 });
      expect(error.message).toMatch(/^Unexpected exit code: 0 signal: (?:null|undefined)$/);
    });

    it('an exit with a code, and the next job gets a new child', async () => {
      const { log } = sandbox(BY_NAME, mode);
      const queue = stage.queue();
      await queue.add('exits', { code: 9 });
      await queue.add('double', { n: 2 });
      const [, error] = await log.get<[Job, Error]>('failed', 1, START_MS);
      expect(error.message).toMatch(/^Unexpected exit code: 9 /);
      expect((await log.get<[Job, number]>('completed', 1, START_MS))[1]).toBe(4);
    });

    it('a result without a form to travel in fails the job or comes back', async () => {
      const { log } = sandbox(BY_NAME, mode);
      await stage.queue().add('circle', {});
      const [job, error] = await log.get<[Job, Error]>('failed', 1, START_MS);
      expect(error.message).toMatch(/circular structure/);
      expect(await job.getState()).toBe('failed');
      stage.takeErrors();
    });

    it('cancelJob aborts the signal', async () => {
      const { worker, log } = sandbox(BY_NAME, mode);
      await stage.queue().add('aborts', {});
      await log.get('progress', 1, START_MS);
      expect(worker.cancelJob('1', 'enough')).toBe(true);
      const [, error] = await log.get<[Job, Error]>('failed');
      expect(error.message).toBe('aborted: enough');
      expect(worker.cancelJob('1')).toBe(false);
    });

    it('a file that throws, has a syntax error or exports no function fails the job', async () => {
      const reasons: string[] = [];
      for (const name of ['broken.cjs', 'no-syntax.cjs', 'no-function.cjs']) {
        const { worker, log } = sandbox(file(name), mode);
        await stage.queue().add('a', {});
        reasons.push((await log.get<[Job, Error]>('failed', 1, START_MS))[1].message);
        await worker.close();
      }
      expect(reasons[0]).toBe('this file is broken');
      expect(reasons[1]).toMatch(/Unexpected token/);
      expect(reasons[2]).toBe('No function is exported in processor file');
    });

    it('an ES module, a default export, and a URL', async () => {
      const results: unknown[] = [];
      for (const processor of [file('module.mjs'), file('default.cjs'), pathToFileURL(file('module.mjs'))]) {
        const { worker, log } = sandbox(processor, mode);
        await stage.queue().add('a', 1);
        results.push((await log.get<[Job, unknown]>('completed', 1, START_MS))[1]);
        await worker.close();
      }
      expect(results).toEqual([
        ['esm', 1],
        ['default', 1],
        ['esm', 1],
      ]);
    });

    it('close waits for the job that runs', async () => {
      const { worker, log } = sandbox(BY_NAME, mode);
      await stage.queue().add('slow', {});
      await log.get('progress', 1, START_MS);
      await worker.close();
      expect((await fetchJob(stage.queue(), '1')).returnvalue).toBe('slow');
    });
  });

  it('runs as many jobs at once as concurrency says, each in a child of its own', async () => {
    const { log } = sandbox(BY_NAME, { concurrency: 2 });
    const queue = stage.queue();
    const dir = mkdtempSync(join(tmpdir(), 'chasqui-meet-'));
    try {
      // each ends when both have started
      await queue.addBulk([1, 2].map(() => ({ name: 'meets', data: { dir, count: 2 } })));
      await log.get('completed', 2, START_MS);
    } finally {
      rmSync(dir, { recursive: true });
    }
    const children = log.all<[Job, number]>('completed').map(([, child]) => child);
    expect(new Set(children).size).toBe(2);
  });

  it('uses a child again, also when its processor threw at once', async () => {
    const { log } = sandbox(BY_NAME);
    const queue = stage.queue();
    await queue.add('pid', {});
    await log.get('completed', 1, START_MS);
    await queue.add('throwsAtOnce', {});
    await log.get('failed', 1, START_MS);
    await queue.add('pid', {});
    await log.get('completed', 2, START_MS);
    const [one, two] = log.all<[Job, number]>('completed').map(([, pid]) => pid);
    expect(one).toBe(two);
    expect(one).not.toBe(process.pid);
  });

  it('a thread is one', async () => {
    const { log } = sandbox(BY_NAME, { useWorkerThreads: true });
    await stage.queue().add('thread', {});
    expect((await log.get<[Job, boolean]>('completed', 1, START_MS))[1]).toBe(false);
  });

  it('hands on workerForkOptions', async () => {
    const workerForkOptions = { env: { ...process.env, OF_THE_WORKER: 'forked' } };
    const { log } = sandbox(BY_NAME, { workerForkOptions });
    await stage.queue().add('env', {});
    expect((await log.get<[Job, string]>('completed', 1, START_MS))[1]).toBe('forked');
  });

  it('hands on workerThreadsOptions', async () => {
    const workerThreadsOptions = { env: { ...process.env, OF_THE_WORKER: 'threaded' } };
    const { log } = sandbox(BY_NAME, { useWorkerThreads: true, workerThreadsOptions });
    await stage.queue().add('env', {});
    expect((await log.get<[Job, string]>('completed', 1, START_MS))[1]).toBe('threaded');
  });

  it('a child that is killed fails its job', async () => {
    const { log } = sandbox(BY_NAME);
    const queue = stage.queue();
    await queue.add('pid', {});
    const [, pid] = await log.get<[Job, number]>('completed', 1, START_MS);
    await queue.add('hangs', {});
    await log.get('progress', 1, START_MS);
    process.kill(pid, 'SIGKILL');
    const [, error] = await log.get<[Job, Error]>('failed');
    expect(error.message).toBe('Unexpected exit code: null signal: SIGKILL');
  });

  it('keeps its free and its busy children apart', async () => {
    const { worker, log } = sandbox(BY_NAME);
    const pool = (worker as unknown as { childPool: { retained: object; free: Record<string, unknown[]> } }).childPool;
    const queue = stage.queue();
    await queue.add('slow', {});
    await log.get('progress', 1, START_MS);
    expect(Object.keys(pool.retained)).toHaveLength(1);
    await log.get('completed');
    expect([Object.keys(pool.retained), pool.free[BY_NAME].length]).toEqual([[], 1]);
    await worker.close();
    expect([Object.keys(pool.retained), Object.values(pool.free).flat()]).toEqual([[], []]);
  });

  it('a file that is not there throws at once', () => {
    const make = (processor: string | URL) => () => sandbox(processor);
    const missing = file('missing.cjs');
    expect(make(missing)).toThrow(`File ${missing} does not exist`);
    const bare = file('missing');
    expect(make(bare)).toThrow(`File ${bare}.js does not exist`);
    const url = pathToFileURL(missing);
    expect(make(url)).toThrow(`URL ${url.href} does not exist in the local file system`);
  });

  it.each([{ default: async () => 1 }, 5, true])(
    'what is neither a function nor a path throws at once: %s',
    (processor) => {
      expect(() => sandbox(processor as unknown as string)).toThrow(TypeError);
    },
  );
});
