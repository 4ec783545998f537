// Pins wanted differences in workers, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { describe, expect, it, vi } from 'vitest';
import { execFileSync } from 'node:child_process';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Job, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { Program } from '../support/program.js';
import { connection, keysContaining, redisClient } from '../support/redis.js';
import { ROOT } from '../support/registry.js';
import { sideOf, thrown } from '../support/sides.js';
import { fetchJob, useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import type { TestContext } from '../support/telemetry.js';
import { EventLog, sleep, until } from '../support/waiting.js';

const LATE = fileURLToPath(new URL('processors/late.cjs', import.meta.url));
const TELLS = fileURLToPath(new URL('processors/tells.cjs', import.meta.url));
const THROWS = fileURLToPath(new URL('processors/throws.js', import.meta.url));
const NO_DEFAULT = fileURLToPath(new URL('processors/no-default.mjs', import.meta.url));
const EXITS = fileURLToPath(new URL('processors/exits.cjs', import.meta.url));
/** Enough of them to let a worker see that its handlers are short. */
const MANY = 300;
/** A worker that dies of the job that it starts in the tick in which another one ended, or else of the last one. */
const DIES = `
  import { writeSync } from 'node:fs';
  const { Worker } = await import(process.env.LIBRARY);
  const opts = { connection: JSON.parse(process.env.CONNECTION), lockDuration: 1_500, stalledInterval: 100 };
  let ended = 0;
  const worker = new Worker(process.env.QUEUE, async (job) => {
    const isSecond = ended > 0 && job.data.at > 1_000;
    if (isSecond || job.name === 'last') {
      writeSync(1, 'dies ' + job.id + '\\n');
      process.kill(process.pid, 'SIGKILL');
    }
    if (++ended === 1) setImmediate(() => (ended = 0));
  }, opts);
  worker.on('error', () => undefined);`;
/** Adds a job, and waits until somebody takes it, for as long as one who can would need. */
const ADDS = `
  const { Queue } = await import(process.env.LIBRARY);
  const queue = new Queue(process.env.QUEUE, { connection: JSON.parse(process.env.CONNECTION) });
  await queue.add('job', {});
  for (let i = 0; i < 300 && (await queue.getWaitingCount()) > 0; i++) await new Promise((next) => setTimeout(next, 10));
  await queue.close();`;
const jobs = (count: number) => Array.from({ length: count }, () => ({ name: 'job', data: {} }));

describe.each(libraries)('$name: differences, workers', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = sideOf(name);

  it.each<Partial<WorkerOptions>>([{ lockDuration: NaN }, { lockDuration: -1 }, { runRetryDelay: 0 }])(
    'worker-option-numbers: %o',
    (opts) => {
      const build = () => stage.worker(null, { autorun: false, ...opts });
      const told = thrown(build)?.message ?? '';
      expect(told).toMatch(of({ bullmq: /^$/, chasquimq: /must be greater than 0/ }));
    },
  );

  it('close-by-force', async () => {
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active']);
    await stage.queue().add('job', {});
    await log.get('active');
    await worker.close(true);
    expect(worker.isRunning()).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('close-with-options', async () => {
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active']);
    const { id } = await stage.queue().add('job', {});
    await log.get('active');
    await worker.close({ timeout: 10 } as never);
    const job = await fetchJob(stage.queue(), id);
    expect(await job.getState()).toBe(of({ bullmq: 'active', chasquimq: 'waiting' }));
  });

  it('time-limits', async () => {
    const gate = stage.gate();
    const worker = stage.worker(async () => gate.opened, { ttl: 1, concurrency: 2 } as never);
    const log = new EventLog(worker, ['active', 'completed', 'failed']);
    await stage.queue().addBulk([{}, { timeout: 2 }].map((opts) => ({ name: 'job', data: {}, opts: opts as never })));
    await log.get('active', 2);
    // longer than the jobs may run
    await sleep(20);
    gate.open();
    await log.when('both to end', () => log.entries.length === 4);
    expect(log.names[2]).toBe(of({ bullmq: 'completed', chasquimq: 'failed' }));
    expect(log.names[3]).toBe(log.names[2]);
    const added = stage.queue().add('job', {}, { timeout: 'long' } as never);
    const refusal = await added.then(
      () => '',
      ({ message }: Error) => message,
    );
    expect(refusal).toBe(
      of({
        bullmq: '',
        chasquimq: "The job option timeout must be a number of milliseconds above 0, not 'long'",
      }),
    );
  });

  it('methods-of-the-loop', async () => {
    const called = new Set<string>();
    class Hooked extends lib.Worker {}
    for (const method of ['createJob', 'processJob', 'callProcessJob', 'handleCompleted', 'handleFailed']) {
      const own = Reflect.get(Hooked.prototype, method) as ((...args: unknown[]) => unknown) | undefined;
      const value = function (this: unknown, ...args: unknown[]): unknown {
        called.add(method);
        return own?.apply(this, args);
      };
      Object.defineProperty(Hooked.prototype, method, { value });
    }
    const moves = [vi.spyOn(lib.Job.prototype, 'moveToCompleted'), vi.spyOn(lib.Job.prototype, 'moveToFailed')];
    await stage.queue().addBulk([...jobs(1), { name: 'fails', data: {} }]);
    const processor = (job: Job) => (job.name === 'fails' ? Promise.reject(new Error('told')) : Promise.resolve());
    const worker = stage.watch(new Hooked(stage.queueName, processor, { connection: { ...connection } }));
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.get('failed');
    const moved = moves.map((move) => move.mock.calls.length);
    for (const move of moves) move.mockRestore();
    const all = ['createJob', 'processJob', 'callProcessJob', 'handleCompleted', 'handleFailed'];
    expect([...called]).toEqual(of({ bullmq: all, chasquimq: all.slice(0, 3) }));
    expect(moved).toEqual(of({ bullmq: [1, 1], chasquimq: [0, 0] }));
  });

  it('drained-of-a-closing-worker', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    await queue.addBulk(jobs(2));
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active', 'completed', 'drained']);
    await log.get('active');
    const closed = worker.close();
    gate.open();
    await closed;
    const drained = log.names.filter((event) => event === 'drained').length;
    expect([drained, await queue.getWaitingCount()]).toEqual([of({ bullmq: 1, chasquimq: 0 }), 1]);

    const later = stage.gate();
    const other = stage.worker(async (job) => {
      await later.opened;
      await job.moveToCompleted('by hand', job.token!, false);
    });
    await new EventLog(other, ['active']).get('active');
    const otherClosed = other.close();
    later.open();
    await otherClosed;
    const refused = 'Missing lock for job 2. moveToFinished';
    expect(stage.takeErrors().map(({ message }) => message)).toEqual(of({ bullmq: [], chasquimq: [refused] }));
  });

  it('completed-after-next-active', async () => {
    await stage.queue().addBulk(jobs(MANY));
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['active', 'completed']);
    await log.get('completed', MANY, 60_000);
    const alternates = log.names.every((event, i) => event === (i % 2 ? 'completed' : 'active'));
    expect(alternates).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('times-of-a-batch', async () => {
    await stage.queue().addBulk(jobs(MANY));
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['completed']);
    await log.get('completed', MANY, 60_000);
    const batches = new Map<number, number>();
    for (const [{ finishedOn = 0 }] of log.all<[Job]>('completed')) {
      batches.set(finishedOn, (batches.get(finishedOn) ?? 0) + 1);
    }
    // more than any server ends one by one within a millisecond
    const most = Math.max(...batches.values());
    expect(most > 10).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('lease-of-the-worker', async () => {
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened);
    const log = new EventLog(worker, ['active']);
    await stage.queue().add('job', {});
    await log.get('active');
    const held = await keys();
    expect([held.some((key) => key.endsWith(':1:lock')), held.some((key) => key.includes(':lease:'))]).toEqual(
      of({ bullmq: [true, false], chasquimq: [false, true] }),
    );
  });

  it('lock-renewal', async () => {
    const gate = stage.gate();
    const worker = stage.worker(() => gate.opened, { lockRenewTime: 20 });
    const log = new EventLog(worker, ['active', 'locksRenewed']);
    await stage.queue().add('job', {});
    await log.get('active');
    if (name === 'bullmq') await log.get('locksRenewed');
    // nothing tells that nothing will be told
    else await sleep(200);
    expect(log.names.includes('locksRenewed')).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('telemetry-behind-a-job', async () => {
    const telemetry = new TestTelemetry();
    await stage.queue().addBulk(jobs(2));
    const worker = stage.worker(async () => undefined, { telemetry });
    const within: TestContext[] = [];
    worker.on('drained', () => within.push(telemetry.contextManager.active()));
    await new EventLog(worker, ['drained']).get('drained');
    expect(within[0]?.span === undefined).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('telemetry-of-scans', async () => {
    const telemetry = new TestTelemetry();
    const worker = stage.worker(async () => undefined, { telemetry, stalledInterval: 20 });
    await worker.waitUntilReady();
    const scans = () => telemetry.names.filter((span) => span.startsWith('moveStalledJobsToWait')).length;
    if (name === 'bullmq') await until('a scan', () => scans() > 0);
    // nothing tells that nothing will be told
    else await sleep(200);
    expect(scans() > 0).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('get-next-job-waits', async () => {
    // BullMQ waits to the end of it, and this package is not to
    const worker = stage.worker(null, { drainDelay: of({ bullmq: 1, chasquimq: 600 }) });
    await worker.waitUntilReady();
    if (name === 'bullmq') await worker.getNextJob('token');
    const next = worker.getNextJob('token').catch((error: Error) => error.message);
    await worker.close();
    expect(await next).toBe(of<unknown>({ bullmq: 'Connection is closed.', chasquimq: undefined }));
  });

  it('sandboxed-child-that-exits', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {});
    const worker = stage.watch(new lib.Worker(stage.queueName, EXITS, { connection: { ...connection } }));
    const log = new EventLog(worker, ['active', 'failed']);
    await log.get('active');
    if (name === 'chasquimq') await log.get<[Job]>('failed', 1, 60_000);
    // its child is long gone by then
    else await sleep(1_500);
    expect(await (await fetchJob(queue, id)).getState()).toBe(of({ bullmq: 'active', chasquimq: 'failed' }));
    await worker.close(true);
    stage.takeErrors();
  });

  it.each([false, true])('sandboxed-late-calls: with threads %s', async (useWorkerThreads) => {
    const queue = stage.queue();
    const child = { name: 'leaves', queueName: stage.queueName, data: { of: 'child' } };
    const flow = await stage.flowProducer().add({ ...child, data: { of: 'parent' }, children: [child] });
    const worker = stage.watch(
      new lib.Worker(stage.queueName, LATE, { connection: { ...connection }, useWorkerThreads }),
    );
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.get('completed', 2, 60_000);
    const { id } = await queue.add('makes', { of: 'next' });
    const [, values] = await log.get<[Job, unknown]>('completed', 3);

    const look = async (job: Job) => [job.data, job.progress, (await queue.getJobLogs(String(job.id))).count];
    const touched = [{ of: 'late' }, 'late', 1];
    const parent = await look(await fetchJob(queue, flow.job.id));
    const next = await look(await fetchJob(queue, id));
    expect(parent).toEqual(of({ bullmq: [{ of: 'parent' }, 0, 0], chasquimq: touched }));
    expect(next).toEqual(of({ bullmq: touched, chasquimq: [{ of: 'next' }, 0, 0] }));
    const key = stage.childKey(flow.children?.[0].job.id);
    expect(values).toEqual(of({ bullmq: {}, chasquimq: { [key]: null } }));
  });

  describe.each([false, true])('in a sandbox, with threads %s', (useWorkerThreads) => {
    /** How a job of this name fails. */
    async function failure(file: string, jobName = 'job'): Promise<Error & Record<string, unknown>> {
      await stage.queue().add(jobName, {});
      const opts = { connection: { ...connection }, useWorkerThreads };
      const worker = stage.watch(new lib.Worker(stage.queueName, file, opts));
      const [, error] = await new EventLog(worker, ['failed']).get<[Job, Error]>('failed', 1, 60_000);
      return error as Error & Record<string, unknown>;
    }

    it('sandboxed-error-members: a BigInt', async () => {
      const { message, size, code } = await failure(TELLS, 'bigint');
      const bullmq = ['Do not know how to serialize a BigInt', undefined, undefined];
      expect([message, size, code]).toEqual(of({ bullmq, chasquimq: ['boom', '10', 'E'] }));
    });

    it('sandboxed-error-members: the message of its cause', async () => {
      const { message, cause } = await failure(TELLS, 'cause');
      const { message: why, code, stack } = cause as { message?: string; code: string; stack?: string };
      expect([message, code]).toEqual(['boom', 'C']);
      expect(why).toBe(of({ bullmq: undefined, chasquimq: 'why' }));
      expect(stack?.includes('tells.cjs') ?? false).toBe(of({ bullmq: false, chasquimq: true }));
    });

    it.each([
      ['relative', relative(process.cwd(), TELLS)],
      ['without .js', THROWS.replace(/\.js$/, '')],
    ])('sandboxed-relative-path: %s', async (_, file) => {
      const { message } = await failure(file, 'cause');
      expect(message === 'boom').toBe(of({ bullmq: false, chasquimq: true }));
    });

    it('sandboxed-no-default', async () => {
      const { message } = await failure(NO_DEFAULT);
      const bullmq = "Cannot read properties of undefined (reading 'default')";
      expect(message).toBe(of({ bullmq, chasquimq: 'No function is exported in processor file' }));
    });
  });

  it.each(['function', 'symbol'])('sandboxed-result-not-cloned: a %s', async (kind) => {
    await stage.queue().add(kind, {});
    const worker = stage.watch(
      new lib.Worker(stage.queueName, TELLS, { connection: { ...connection }, useWorkerThreads: true }),
    );
    const [, { message }] = await new EventLog(worker, ['failed']).get<[Job, Error]>('failed', 1, 60_000);
    expect(message.endsWith(' could not be cloned.')).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('lease-of-the-worker: that ran out, with nobody there to recover its jobs', async () => {
    const queue = stage.queue();
    const isOver = async () => !(await keys()).some((key) => /:lock$|:lease:/.test(key));
    const worker = stage.worker(
      async () => {
        await until('its lease to end', isOver);
        return 'late';
      },
      { lockDuration: 300, skipLockRenewal: true, skipStalledCheck: true },
    );
    const log = new EventLog(worker, ['completed', 'error']);
    const { id } = await queue.add('job', {});
    // BullMQ's end is refused, and so is the failure that it then tries
    await log.when('its end', () => log.entries.length >= of({ bullmq: 2, chasquimq: 1 }));
    expect(log.names).toEqual(of({ bullmq: ['error', 'error'], chasquimq: ['completed'] }));
    stage.takeErrors();
    expect(await queue.getJobState(id as string)).toBe(of({ bullmq: 'active', chasquimq: 'completed' }));
  });

  it('jobs-taken-in-advance', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    let isSlow = false;
    await queue.addBulk([...jobs(1_000), { name: 'slow', data: {} }, ...jobs(1_000)]);
    const worker = stage.worker(async (job) => {
      if (job.name !== 'slow') return;
      isSlow = true;
      await gate.opened;
    });
    await until('the slow job', () => isSlow, 60_000);
    await until('the rest to wait', async () => (await queue.getWaitingCount()) === 1_000);
    gate.open();
    await new EventLog(worker, ['drained']).get('drained', 1, 60_000);
    const global = stage.globalLog();
    await global.get('drained', 1, 60_000);
    expect(global.all('active').length > 2_001).toBe(of({ bullmq: false, chasquimq: true }));
  });

  it('stalled-in-one-scan', async () => {
    const queue = stage.queue();
    const { id } = await queue.add('job', {});
    const gone = stage.worker(null, { lockDuration: 100 });
    await gone.getNextJob('token', { block: false });
    await until('its lock to end', async () => !(await keys()).some((key) => /:lock$|:lease:/.test(key)));
    // the next scan is far away
    const scanner = stage.worker(null, { stalledInterval: 3_600_000 });
    await scanner.startStalledCheckTimer();
    if (name === 'chasquimq') await new EventLog(scanner, ['stalled']).get('stalled');
    else await until('the scan', async () => (await keys()).some((key) => key.endsWith(':stalled-check')));
    expect(await (await fetchJob(queue, id)).getState()).toBe(of({ bullmq: 'active', chasquimq: 'waiting' }));
  });

  it('stalled-oldest-first', async () => {
    const queue = stage.queue();
    const rows = Array.from({ length: 3_000 }, (_, at) => ({ name: 'job', data: { at } }));
    await queue.addBulk([...rows, { name: 'last', data: {} }]);
    const program = stage.keep(Program.startText(DIES, { env: { LIBRARY: name, QUEUE: stage.queueName } }));
    const id = await program.said('dies');
    await program.ended;
    const scanner = stage.worker(null, { stalledInterval: 100, lockDuration: 1_500 });
    const log = new EventLog(scanner, ['stalled']);
    await scanner.startStalledCheckTimer();
    await log.get('stalled', 1, 60_000);
    await until('what was active to wait', async () => (await queue.getActiveCount()) === 0);
    const stalled = (await queue.getJobs(['waiting'])).filter((job) => job.stalledCounter > 0);
    expect(stalled).toHaveLength(1);
    expect(stalled[0]?.id === id).toBe(of({ bullmq: true, chasquimq: false }));
    expect(log.all('stalled')).toHaveLength(1);
  });

  it('worker-options-read-once', async () => {
    const queue = stage.queue();
    const fail = async () => {
      throw new Error('again');
    };
    const worker = stage.worker(fail, { autorun: false });
    worker.opts.removeOnFail = { count: 0 };
    worker.opts.settings = { backoffStrategy: () => -1 };
    void worker.run();
    const log = new EventLog(worker, ['failed']);
    await queue.add('job', {}, { attempts: 3, backoff: { type: 'own' } });
    await log.get('failed');
    expect(await queue.getFailedCount()).toBe(of({ bullmq: 0, chasquimq: 1 }));

    const started = stage.worker(fail, { autorun: false }, '-started');
    started.opts.maxStartedAttempts = 2;
    void started.run();
    const tries = new EventLog(started, ['failed']);
    await stage.queue({}, '-started').add('job', {}, { attempts: 9 });
    await tries.get('failed', of({ bullmq: 2, chasquimq: 3 }));
    expect(await stage.queue({}, '-started').getFailedCount()).toBe(1);
  });

  it('limiter-replaced', async () => {
    const redis = redisClient();
    // one that hears by no channel: ours fetches for it whether or not its event loop turns
    await redis.acl('SETUSER', stage.queueName, 'reset', 'on', 'nopass', 'allkeys', 'resetchannels', '+@all');
    try {
      const queue = stage.queue();
      const opts = { limiter: { max: 1, duration: 60_000 }, drainDelay: 60 };
      const as = { ...connection, username: stage.queueName, password: 'any' };
      const worker = stage.worker(async () => undefined, { ...opts, connection: as });
      const log = new EventLog(worker, ['drained', 'completed']);
      await log.get('drained');
      // the job comes, and the event loop stands still
      const env = { ...process.env, LIBRARY: name, QUEUE: stage.queueName, CONNECTION: JSON.stringify(connection) };
      execFileSync(process.execPath, ['--input-type=module', '--eval', ADDS], { cwd: ROOT, env });
      worker.opts.limiter = { max: 1, duration: 1_000 };
      await log.get('completed');
      expect((await queue.getRateLimitTtl()) > 1_000).toBe(of({ bullmq: false, chasquimq: true }));
      await worker.close();
    } finally {
      await redis.acl('DELUSER', stage.queueName);
      await redis.quit();
    }
  });

  /** Every key of this test. */
  async function keys(): Promise<string[]> {
    const redis = redisClient();
    const found = await keysContaining(redis, stage.queueName);
    await redis.quit();
    return found;
  }
});
