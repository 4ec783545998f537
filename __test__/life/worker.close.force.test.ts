// A worker that is closed by force leaves active what its handlers run, and nothing else: what has ended is recorded, what did not start goes back.
import { fileURLToPath } from 'node:url';
import type { Job, Queue, Worker, WorkerOptions } from 'bullmq';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { connection } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import { EventLog, sleep, until } from '../support/waiting.js';

const JOBS = 10_000;
/** Jobs that end before the close, for a surplus to be there. */
const ENDED = 3_000;
const QUICK = { lockDuration: 3_000, stalledInterval: 200, drainDelay: 1 };
/** Half a second at most, and what slow machines take. A close that waits for locks to run out takes 30 s. */
const BOUND_MS = 10_000;
const BY_NAME = fileURLToPath(new URL('../parity/processors/by-name.cjs', import.meta.url));

describe('worker.close(true)', () => {
  const stage = useStage(chasquimq);

  /** What the first worker's handlers had done by the moment of its close. */
  interface Account {
    readonly started: ReadonlySet<string>;
    readonly ended: ReadonlySet<string>;
    /** How often handlers returned, of all workers. */
    readonly runs: Map<string, number>;
    readonly log: EventLog;
  }

  /** Closes a worker in the midst of its jobs, from a handler. */
  async function closeAmid(
    queue: Queue,
    run: (job: Job) => Promise<void> | void,
    opts: Partial<WorkerOptions>,
    close: (worker: Worker) => Promise<void>,
  ): Promise<Account> {
    const [started, ended] = [new Set<string>(), new Set<string>()];
    const runs = new Map<string, number>();
    await queue.addBulk(Array.from({ length: JOBS }, (_, data) => ({ name: 'job', data })));
    let closeNow = (): void => {};
    const closing = new Promise<{ before: Pick<Account, 'started' | 'ended'>; closed: Promise<void> }>((resolve) => {
      closeNow = () => resolve({ before: { started: new Set(started), ended: new Set(ended) }, closed: close(worker) });
    });
    const worker = stage.worker(
      async ({ id = '', ...job }) => {
        started.add(id);
        await run({ id, ...job } as Job);
        ended.add(id);
        runs.set(id, (runs.get(id) ?? 0) + 1);
        if (ended.size === ENDED) closeNow();
      },
      { ...QUICK, ...opts },
    );
    const log = new EventLog(worker, ['closing', 'completed', 'failed', 'closed']);
    const { before, closed } = await closing;
    await closed;
    expect(log.names.at(-1)).toBe('closed');
    return { ...before, runs, log };
  }

  /** Lets a second worker run the rest, until nothing is left. */
  async function runRest(queue: Queue, runs: Map<string, number>, opts: Partial<WorkerOptions>): Promise<void> {
    const count = async ({ id = '' }: Job) => void runs.set(id, (runs.get(id) ?? 0) + 1);
    stage.worker(count, { concurrency: 100, ...QUICK, ...opts });
    await until('the rest to end', async () => (await queue.getJobCountByTypes('active', 'waiting')) === 0, 60_000);
  }

  it.each([
    ['whose handlers do nothing', () => undefined],
    ['whose handlers take a moment', () => sleep(1 + Math.random() * 4)],
  ])('of a worker %s runs no ended job again', async (_, run) => {
    const queue = stage.queue();
    const { started, ended, runs } = await closeAmid(queue, run, { concurrency: 100 }, (worker) => worker.close(true));
    const active = (await queue.getActive()).map(({ id = '' }) => id);
    expect(active.filter((id) => ended.has(id) || !started.has(id))).toEqual([]);
    await runRest(queue, runs, {});
    expect(await queue.getCompletedCount()).toBe(JOBS);
    expect(runs.size).toBe(JOBS);
    expect([...ended].filter((id) => runs.get(id) !== 1)).toEqual([]);
    const stalled = (await queue.getCompleted()).filter(({ stalledCounter }) => stalledCounter > 0);
    expect(stalled.filter(({ id = '' }) => !active.includes(id))).toEqual([]);
  });

  it('fails no job that did not start, though none may stall, and leaves held ones', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const held = new Set(['100', '1000', '2000']);
    const strict = { concurrency: 20, maxStalledCount: 0 };
    const run = ({ id = '' }: Job) => (held.has(id) ? gate.opened : undefined);
    const { runs } = await closeAmid(queue, run, strict, (worker) => worker.disconnect());
    expect(new Set((await queue.getActive()).map(({ id }) => id))).toEqual(held);
    await runRest(queue, runs, strict);
    expect(new Set((await queue.getFailed()).map(({ id }) => id))).toEqual(held);
    expect(await queue.getCompletedCount()).toBe(JOBS - held.size);
    expect([...runs.values()].every((count) => count === 1)).toBe(true);
  });

  it('tells of no end once it is closed', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const run = ({ id }: Job) => (id === '7' ? gate.opened : undefined);
    const { log } = await closeAmid(queue, run, { concurrency: 2 }, (worker) => worker.close(true));
    const names = [...log.names];
    gate.open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(log.names).toEqual(names);
    expect(names.filter((name) => name === 'completed')).toHaveLength(await queue.getCompletedCount());
  });

  it('records an end that waits for what its handler called', async () => {
    const queue = stage.queue();
    const returned = stage.gate();
    const worker = stage.worker(async (job) => {
      void job.updateProgress(100);
      process.nextTick(returned.open);
    });
    await queue.add('job', {});
    await returned.opened;
    await worker.close(true);
    const [job] = await queue.getCompleted();
    expect(job.progress).toBe(100);
  });

  it('records a failed try whose strategy is being asked', async () => {
    const queue = stage.queue();
    const [asked, answer] = [stage.gate(), stage.gate()];
    const backoffStrategy = async () => {
      asked.open();
      await answer.opened;
      return 60_000;
    };
    const worker = stage.worker(() => Promise.reject(new Error('no')), { settings: { backoffStrategy } });
    const job = await queue.add('fails', {}, { attempts: 2, backoff: { type: 'custom' } });
    await asked.opened;
    const closed = worker.close(true);
    // longer than a close takes that waits for nothing, and shorter than it may
    await sleep(50);
    answer.open();
    await closed;
    expect(await job.getState()).toBe('delayed');
  });

  it('leaves what children run', async () => {
    const queue = stage.queue();
    const opts = { connection: { ...connection } };
    const worker = stage.watch(new chasquimq.Worker(stage.queueName, BY_NAME, opts));
    const log = new EventLog(worker, ['progress', 'completed', 'failed', 'closed']);
    await queue.add('hangs', {});
    await log.get('progress', 1, 60_000);
    await worker.close(true);
    expect(log.names).toEqual(['progress', 'closed']);
    expect(await queue.getActiveCount()).toBe(1);
  });

  it.each(['gone', 'frozen'])('ends soon where the server is %s, and spans with it', async (how) => {
    const server = stage.keep(await OwnServer.start());
    const queue = stage.queue({ connection: server.connection });
    const gate = stage.gate();
    const telemetry = new TestTelemetry();
    const opts = { connection: server.connection, concurrency: 2, telemetry };
    const worker = stage.worker(({ name }) => (name === 'held' ? new Promise(() => {}) : gate.opened), opts);
    const log = new EventLog(worker, ['active', 'completed', 'ioredis:close', 'closed']);
    await queue.addBulk(['held', 'ends'].map((name) => ({ name, data: {} })));
    await log.get('active', 2);
    if (how === 'gone') {
      await server.kill();
      await log.get('ioredis:close');
    } else {
      server.freeze();
    }
    gate.open();
    const since = performance.now();
    await worker.close(true);
    expect(performance.now() - since).toBeLessThan(BOUND_MS);
    expect(log.all('completed')).toEqual([]);
    const spans = telemetry.spans.filter(({ name }) => name.startsWith('process'));
    expect(spans.map(({ ended }) => ended)).toEqual([0, 1]);
    stage.takeErrors();
  });

  it('ends at once where nothing is at hand and the server is frozen, before one that has something to record', async () => {
    const server = stage.keep(await OwnServer.start());
    const { connection } = server;
    const gate = stage.gate();
    const idle = stage.worker(async () => undefined, { connection }, 'idle');
    await new EventLog(idle, ['drained']).get('drained');
    const records = stage.worker(() => gate.opened, { connection });
    const log = new EventLog(records, ['active']);
    await stage.queue({ connection }).add('ends', {});
    await log.get('active');
    server.freeze();
    gate.open();
    const closed: string[] = [];
    const close = async (worker: Worker, name: string) => {
      await worker.close(true);
      closed.push(name);
    };
    await Promise.all([close(records, 'records'), close(idle, 'idle')]);
    expect(closed).toEqual(['idle', 'records']);
    stage.takeErrors();
  });
});
