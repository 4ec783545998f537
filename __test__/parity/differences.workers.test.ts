// Pins wanted differences in workers, on both libraries: what BullMQ does, and what this package does instead. Titles carry ids.
import { describe, expect, it } from 'vitest';
import { fileURLToPath } from 'node:url';
import type { Job, WorkerOptions } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { libraries } from '../support/libraries.js';
import { keysContaining, redisClient } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { TestTelemetry } from '../support/telemetry.js';
import type { TestContext } from '../support/telemetry.js';
import { EventLog, sleep } from '../support/waiting.js';

const EXITS = fileURLToPath(new URL('processors/exits.cjs', import.meta.url));
/** Enough of them to let a worker see that its handlers are short. */
const MANY = 300;
const jobs = (count: number) => Array.from({ length: count }, () => ({ name: 'job', data: {} }));

describe.each(libraries)('$name: differences, workers', ({ name, lib }) => {
  const stage = useStage(lib);
  const of = <T>(sides: { bullmq: T; chasquimq: T }): T => (name === 'bullmq' ? sides.bullmq : sides.chasquimq);

  it.each<Partial<WorkerOptions>>([{ lockDuration: NaN }, { lockDuration: -1 }, { runRetryDelay: 0 }])(
    'worker-option-numbers: %o',
    (opts) => {
      const build = () => stage.worker(null, { autorun: false, ...opts });
      if (name === 'bullmq') expect(build).not.toThrow();
      else expect(build).toThrow(/must be greater than 0/);
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
  });

  it('completed-after-next-active', async () => {
    await stage.queue().addBulk(jobs(MANY));
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['active', 'completed']);
    await log.get('completed', MANY, 30_000);
    const alternates = log.names.every((event, i) => event === (i % 2 ? 'completed' : 'active'));
    expect(alternates).toBe(of({ bullmq: true, chasquimq: false }));
  });

  it('times-of-a-batch', async () => {
    await stage.queue().addBulk(jobs(MANY));
    const worker = stage.worker(async () => undefined);
    const log = new EventLog(worker, ['completed']);
    await log.get('completed', MANY, 30_000);
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
    const redis = redisClient();
    const keys = await keysContaining(redis, stage.queueName);
    await redis.quit();
    expect([keys.some((key) => key.endsWith(':1:lock')), keys.some((key) => key.includes(':lease:'))]).toEqual(
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
});

// What BullMQ does here depends on the moment, or never ends.
describe('chasquimq: differences, workers', () => {
  const stage = useStage(chasquimq);

  it('get-next-job-waits: it is over at once when its worker closes', async () => {
    const worker = stage.worker(null, { drainDelay: 30 });
    await worker.getNextJob('token');
    const next = worker.getNextJob('token');
    await worker.close();
    expect(await next).toBeUndefined();
  });

  it('sandboxed-child-that-exits: while it loads its file', async () => {
    await stage.queue().add('job', {});
    const worker = stage.watch(
      new chasquimq.Worker(stage.queueName, EXITS, { connection: stage.queue().opts.connection }),
    );
    const [job] = await new EventLog(worker, ['failed']).get<[Job]>('failed', 1, 20_000);
    expect(await job.getState()).toBe('failed');
  });
});
