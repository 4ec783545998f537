// `worker.close({ timeout })`: jobs that run have so long to end. Those that have not ended by then go back, and others start them at once.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { RateLimitError, UnrecoverableError, Worker } from '../../src/index.js';
import { Worker as V5Worker } from '../../src/v5/index.js';
import type { Job, WorkerOptions } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { connection } from '../support/redis.js';
import { fetchJob, useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import { EventLog, Gate } from '../support/waiting.js';

type Handler = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>;

/** Far longer than a test: a close that resolves has been told to wait for less. */
const NEVER_MS = 3_600_000;
/** What a close takes on slow machines. One that waits for a lease to run out takes 30 s. */
const BOUND_MS = 10_000;
const FILE = fileURLToPath(new URL('programs/shutdown.cjs', import.meta.url));

describe('worker.close with a timeout', () => {
  const stage = useStage(chasquimq);

  function worker(handler: Handler | string, opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(handler as never, opts) as unknown as Worker;
  }

  const stored = async (id: string): Promise<Job> => (await fetchJob(stage.queue(), id)) as unknown as Job;

  async function addAll(names: string[], opts: object = {}): Promise<string[]> {
    const jobs = await stage.queue().addBulk(names.map((name) => ({ name, data: {}, opts })));
    return jobs.map(({ id }) => id!);
  }

  /** A handler that holds the jobs called `held`, which nobody can end. */
  const holds: Handler = async ({ name }) => (name === 'held' ? new Promise(() => {}) : name);

  /** Runs all that waits in another worker. Gives how often each job was run there. */
  async function runRest(count: number): Promise<Map<string, number>> {
    const runs = new Map<string, number>();
    const rest = worker(async ({ id }) => void runs.set(id!, (runs.get(id!) ?? 0) + 1), { concurrency: 10 });
    const log = new EventLog(rest, ['completed', 'failed', 'stalled']);
    await log.when('the rest to end', () => log.names.length >= count);
    expect(log.names).toEqual(Array(count).fill('completed'));
    return runs;
  }

  it('gives back what has not ended, its try not counted, and another worker starts it at once', async () => {
    const ids = await addAll(['ends', 'held', 'held', 'waits'], { attempts: 1 });
    const closing = worker(holds, { concurrency: 3 });
    const log = new EventLog(closing, ['active', 'completed', 'failed', 'closed']);
    await log.get('completed');
    await log.get('active', 4);
    await closing.close({ timeout: 10 });
    expect(log.names.filter((name) => name !== 'active')).toEqual(['completed', 'completed', 'closed']);
    const queue = stage.queue();
    expect(await queue.getJobCounts('active', 'waiting', 'completed', 'failed')).toEqual({
      active: 0,
      waiting: 2,
      completed: 2,
      failed: 0,
    });
    for (const id of ids.slice(1, 3)) expect(await stored(id)).toMatchObject({ attemptsMade: 0, attemptsStarted: 1 });
    // by a lease of 30 s they would come too late
    expect([...(await runRest(2)).keys()].sort()).toEqual(ids.slice(1, 3));
    expect(await stored(ids[1])).toMatchObject({ attemptsMade: 1, attemptsStarted: 2, stalledCounter: 0 });
  });

  it('waits for those that end in time, and no longer than they take', async () => {
    const [id] = await addAll(['job']);
    const gate = new Gate();
    const closing = worker(() => gate.opened.then(() => 'ended'));
    const log = new EventLog(closing, ['active', 'completed']);
    await log.get('active');
    const closed = closing.close({ timeout: NEVER_MS });
    gate.open();
    await closed;
    expect(log.names).toEqual(['active', 'completed']);
    expect((await stored(id)).returnvalue).toBe('ended');
  });

  it('hears no handler that ends too late, and its token holds nothing any more', async () => {
    const [id] = await addAll(['held']);
    const gate = stage.gate();
    let lateToken = '';
    const closing = worker(async (_job, token) => {
      lateToken = token!;
      await gate.opened;
      return 'late';
    });
    const log = new EventLog(closing, ['active', 'completed', 'failed', 'error']);
    await log.get('active');
    await closing.close({ timeout: 0 });
    const held = worker(holds);
    await new EventLog(held, ['active']).get('active');
    gate.open();
    await expect((await stored(id)).moveToCompleted('late', lateToken, false)).rejects.toThrow(/lock/i);
    expect(log.names).toEqual(['active']);
    expect(await (await stored(id)).getState()).toBe('active');
    await held.close({ timeout: 0 });
    expect([...(await runRest(1)).values()]).toEqual([1]);
  });

  it('aborts the signals, and records those that complete then; what throws goes back, unless for good', async () => {
    const names = ['completes', 'throws', 'unrecoverable', 'limited', 'hangs'];
    const ids = await addAll(names, { attempts: 3 });
    const reasons: unknown[] = [];
    const handler: Handler = (job, _token, signal) =>
      new Promise((resolve, reject) => {
        signal!.addEventListener('abort', () => {
          reasons.push(signal!.reason);
          if (job.name === 'completes') resolve('cleaned up');
          if (job.name === 'throws') reject(new Error(String(signal!.reason)));
          if (job.name === 'unrecoverable') reject(new UnrecoverableError('for good'));
          if (job.name === 'limited') reject(new RateLimitError());
        });
      });
    const closing = worker(handler, { concurrency: 10 });
    const log = new EventLog(closing, ['active', 'completed', 'failed']);
    await log.get('active', ids.length);
    await closing.close({ timeout: 10 });
    expect(reasons).toEqual(Array(5).fill('the worker closes, and the time for its jobs is over'));
    const states = await Promise.all(ids.map(async (id) => (await stored(id)).getState()));
    expect(states).toEqual(['completed', 'waiting', 'failed', 'waiting', 'waiting']);
    expect(await stored(ids[0])).toMatchObject({ returnvalue: 'cleaned up' });
    expect(await stored(ids[1])).toMatchObject({ attemptsMade: 0, attemptsStarted: 1 });
    expect(log.all('failed')).toHaveLength(1);
  });

  it('gives back a job whose strategy does not answer, and drops what it answers later', async () => {
    const [id] = await addAll(['job'], { attempts: 2, backoff: { type: 'custom' } });
    const [asked, answer] = [new Gate(), new Gate()];
    const backoffStrategy = async (): Promise<number> => {
      asked.open();
      await answer.opened;
      return NEVER_MS;
    };
    const closing = worker(() => Promise.reject(new Error('no')), { settings: { backoffStrategy } });
    await asked.opened;
    await closing.close({ timeout: 0 });
    answer.open();
    expect(await stored(id)).toMatchObject({ attemptsMade: 0 });
    expect((await runRest(1)).get(id)).toBe(1);
  });

  it('keeps the order, and priorities', async () => {
    const queue = stage.queue();
    const first = await queue.add('held', {});
    const urgent = await queue.add('held', {}, { priority: 2 });
    const closing = worker(holds, { concurrency: 2 });
    await new EventLog(closing, ['active']).get('active', 2);
    const behind = await queue.addBulk([
      { name: 'job', data: {} },
      { name: 'job', data: {}, opts: { priority: 2 } },
    ]);
    await closing.close({ timeout: 0 });
    const order: string[] = [];
    const rest = worker(async ({ id }) => void order.push(id!));
    await new EventLog(rest, ['completed']).get('completed', 4);
    expect(order).toEqual([first.id, behind[0].id, urgent.id, behind[1].id]);
  });

  it('gives back each job of a batch that has not ended', async () => {
    const ids = await addAll(['job', 'job', 'job']);
    const said = new Gate();
    const handler: Handler = (job) => {
      job.getBatch()[1].setResult('never told, as the call has not ended');
      said.open();
      return new Promise(() => {});
    };
    const closing = worker(handler, { batch: { size: 3 } });
    await said.opened;
    await closing.close({ timeout: 10 });
    expect(await stage.queue().getJobCounts('active', 'waiting')).toEqual({ active: 0, waiting: 3 });
    for (const id of ids) expect(await stored(id)).toMatchObject({ attemptsMade: 0, attemptsStarted: 1 });
    const runs = await runRest(3);
    expect([...runs.entries()].sort()).toEqual(ids.map((id) => [id, 1]));
  });

  it('lets a batch end whose call hears of it, each job by itself', async () => {
    const ids = await addAll(['job', 'job', 'job']);
    const begun = new Gate();
    const handler: Handler = async (job, _token, signal) => {
      begun.open();
      await new Promise((resolve) => signal!.addEventListener('abort', resolve));
      job.getBatch()[0].setResult('done');
      throw new Error('the others are not');
    };
    const closing = worker(handler, { batch: { size: 3 } });
    await begun.opened;
    await closing.close({ timeout: 10 });
    const states = await Promise.all(ids.map(async (id) => (await stored(id)).getState()));
    expect(states).toEqual(['completed', 'waiting', 'waiting']);
    expect(await stored(ids[1])).toMatchObject({ attemptsMade: 0 });
  });

  it.each([false, true])(
    'kills the child that runs a job which has not ended, a thread: %s',
    async (useWorkerThreads) => {
      const [hangs, throws] = await addAll(['hangs', 'throws']);
      const closing = worker(FILE, { concurrency: 2, useWorkerThreads });
      const log = new EventLog(closing, ['progress', 'completed', 'failed', 'error']);
      await log.get('progress', 2, 60_000);
      const pids = log.all<[Job, number]>('progress').map(([, pid]) => pid);
      await closing.close({ timeout: 10 });
      if (!useWorkerThreads) for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
      expect(log.names).toEqual(['progress', 'progress']);
      for (const id of [hangs, throws]) {
        expect(await stored(id)).toMatchObject({ attemptsMade: 0, attemptsStarted: 1 });
        expect(await (await stored(id)).getState()).toBe('waiting');
      }
      expect((await runRest(2)).size).toBe(2);
    },
  );

  it('ends by the shortest timeout of all its calls', async () => {
    await addAll(['held']);
    const closing = worker(holds);
    await new EventLog(closing, ['active']).get('active');
    const closed = closing.close();
    expect(closing.close({ timeout: NEVER_MS })).toBe(closed);
    expect(closing.close({ timeout: 10 })).toBe(closed);
    expect(closing.close({ timeout: 2 * NEVER_MS })).toBe(closed);
    await closed;
    expect(await stage.queue().getWaitingCount()).toBe(1);
    // and is over
    expect(closing.close({ timeout: 10 })).toBe(closed);
  });

  it('with `force` waits for nothing, and leaves what runs', async () => {
    await addAll(['held']);
    const closing = worker(holds);
    await new EventLog(closing, ['active']).get('active');
    await closing.close({ force: true, timeout: NEVER_MS });
    expect(await stage.queue().getActiveCount()).toBe(1);
    const graceful = worker(async () => 'unused', {});
    await graceful.close({ force: false });
  });

  it('refuses a timeout that is none, and closes nothing then', async () => {
    const classes = [Worker, V5Worker] as unknown as (typeof Worker)[];
    for (const Class of classes) {
      const open = stage.watch(new Class(stage.queueName, async () => 'done', { connection: { ...connection } }));
      for (const timeout of [-1, NaN, '10', null, {}] as unknown as number[]) {
        await expect(open.close({ timeout })).rejects.toThrow('timeout must be a number of milliseconds, 0 or more');
      }
      expect(open.closing).toBeUndefined();
      const log = new EventLog(open, ['completed']);
      await addAll(['job']);
      await log.get('completed');
      const closed = open.close({ timeout: Infinity });
      await expect(open.close({ timeout: -1 })).rejects.toThrow(RangeError);
      await closed;
    }
  });

  it('gives back a job of a worker of chasquimq/v5', async () => {
    const [id] = await addAll(['held']);
    const closing = stage.watch(
      new V5Worker(stage.queueName, () => new Promise(() => {}), { connection: { ...connection } }),
    );
    await new EventLog(closing, ['active']).get('active');
    const closed = closing.close();
    await closing.close({ timeout: 10 });
    await closed;
    expect(await (await stored(id)).getState()).toBe('waiting');
  });

  it('ends the span of a job that goes back', async () => {
    await addAll(['held']);
    const telemetry = new TestTelemetry();
    const closing = worker(holds, { telemetry: telemetry as never });
    await new EventLog(closing, ['active']).get('active');
    await closing.close({ timeout: 10 });
    const spans = telemetry.spans.filter(({ name }) => name.startsWith('process'));
    expect(spans.map(({ ended }) => ended)).toEqual([1]);
  });

  it('closes soon where the server is frozen', async () => {
    const server = stage.keep(await OwnServer.start());
    const closing = worker(holds, { connection: server.connection });
    const log = new EventLog(closing, ['active', 'closed']);
    await stage.queue({ connection: server.connection }).add('held', {});
    await log.get('active');
    server.freeze();
    const since = performance.now();
    await closing.close({ timeout: 10 });
    expect(performance.now() - since).toBeLessThan(BOUND_MS);
    expect(log.names).toEqual(['active', 'closed']);
    stage.takeErrors();
  });
});
