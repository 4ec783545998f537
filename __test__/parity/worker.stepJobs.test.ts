// Pins step jobs: handlers that move their own job, which the same worker then takes again while the old run ends; and runs
// whose job is gone and replaced (BullMQ: Job#moveToWait, #moveToDelayed, #moveToWaitingChildren, Queue#obliterate).
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Job, Processor, Worker, WorkerOptions } from 'bullmq';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { EventLog, sleep, until } from '../support/waiting.js';

const STEPS_FILE = fileURLToPath(new URL('./processors/steps.cjs', import.meta.url));

describe.each(libraries)('$name: worker.stepJobs', ({ lib }) => {
  const stage = useStage(lib);

  /** Runs `count` jobs to their end, and gives how often each of them started. */
  async function runAll(count: number, worker: Worker): Promise<Record<string, number>> {
    const queue = stage.queue();
    const log = new EventLog(worker, ['completed', 'failed', 'error']);
    await queue.addBulk(Array.from({ length: count }, (_, i) => ({ name: 'step', data: { i } })));
    await log.when('every job to end', () => log.entries.length >= count, 60_000);
    expect(log.names.filter((name) => name !== 'completed')).toEqual([]);
    expect(await queue.getJobCounts('active', 'waiting', 'delayed', 'waiting-children', 'completed')).toEqual({
      active: 0,
      waiting: 0,
      delayed: 0,
      'waiting-children': 0,
      completed: count,
    });
    const starts: Record<string, number> = {};
    for (const [job] of log.all<[Job]>('completed')) {
      starts[job.attemptsStarted] = (starts[job.attemptsStarted] ?? 0) + 1;
    }
    return starts;
  }

  function worker(processor: Processor, opts: Partial<WorkerOptions> = {}): Worker {
    return stage.worker(processor, { concurrency: 5, ...opts });
  }

  it('a job that moves itself to the head of the waiting list runs again at once', async () => {
    const steps = worker(async (job, token) => {
      if (job.attemptsStarted === 1) {
        await job.moveToWait(token);
        throw new lib.WaitingError();
      }
      return 'done';
    });
    expect(await runAll(100, steps)).toEqual({ 2: 100 });
  });

  it('a handler that takes a while after it moved its job leaves the next run alone', async () => {
    const steps = worker(async (job, token) => {
      if (job.attemptsStarted === 1) {
        await job.moveToWait(token);
        // long enough for the next run to have begun, and for some to have ended
        await sleep(job.data.i % 30);
        throw new lib.WaitingError();
      }
      await sleep(job.data.i % 10);
      return 'done';
    });
    expect(await runAll(100, steps)).toEqual({ 2: 100 });
  });

  it('a job that delays itself to now runs again at once', async () => {
    const steps = worker(async (job, token) => {
      if (job.attemptsStarted <= 2) {
        await job.moveToDelayed(Date.now(), token);
        throw new lib.DelayedError();
      }
    });
    expect(await runAll(20, steps)).toEqual({ 3: 20 });
  });

  it('a job that waits for children that it adds runs again when they have ended', async () => {
    const queue = stage.queue();
    const steps = worker(async (job, token) => {
      if (job.name === 'child') return 1;
      if (job.attemptsStarted === 1) {
        const parent = { id: job.id!, queue: job.queueQualifiedName };
        await queue.add('child', {}, { parent, removeOnComplete: true });
        if (await job.moveToWaitingChildren(token!)) throw new lib.WaitingChildrenError();
      }
      return Object.values(await job.getChildrenValues());
    });
    const log = new EventLog(steps, ['completed', 'failed', 'error']);
    await queue.addBulk(Array.from({ length: 50 }, (_, i) => ({ name: 'step', data: { i } })));
    await log.when('every job to end', () => log.entries.length >= 100, 60_000);
    const values = log.all<[Job, unknown]>('completed').filter(([job]) => job.name === 'step');
    expect(values.map(([, value]) => value)).toEqual(Array.from({ length: 50 }, () => [1]));
    expect(await queue.getJobCounts('active', 'waiting-children', 'failed')).toEqual({
      active: 0,
      'waiting-children': 0,
      failed: 0,
    });
  });

  it.each([
    ['a child process', {}],
    ['a worker thread', { useWorkerThreads: true }],
  ])('the same in %s', async (_, mode) => {
    const { connection } = stage.queue().opts;
    const steps = stage.watch(
      new lib.Worker(stage.queueName, STEPS_FILE, { connection, concurrency: 3, drainDelay: 1, ...mode }),
    );
    expect(await runAll(20, steps)).toEqual({ 2: 20 });
  });

  it('the token of an old run does not move the next one', async () => {
    const queue = stage.queue();
    const gate = stage.gate();
    const old: { job: Job; token: string }[] = [];
    const steps = worker(async (job, token) => {
      if (job.attemptsStarted === 1) {
        old.push({ job, token: token! });
        await job.moveToWait(token);
        await gate.opened;
        throw new lib.WaitingError();
      }
      const error = await old[0].job.moveToDelayed(Date.now() + 60_000, old[0].token).catch((e: Error) => e);
      return (error as Error).message;
    });
    const log = new EventLog(steps, ['completed', 'failed']);
    await queue.add('step', {});
    const [, message] = await log.get<[Job, string]>('completed');
    expect(message).toBe('Lock mismatch for job 1. Cmd moveToDelayed from active');
    gate.open();
  });

  it('an old handler does not complete the new job of its id after an obliterate', async () => {
    const queue = stage.queue();
    const gates = [stage.gate(), stage.gate()];
    let started = 0;
    const steps = worker(async () => {
      const run = started++;
      await gates[run].opened;
      return run === 0 ? 'old' : 'new';
    });
    const log = new EventLog(steps, ['completed', 'failed']);
    await queue.add('first', {});
    await until('the first job to start', () => started === 1);
    await queue.obliterate({ force: true });
    await queue.resume();
    const { id } = await queue.add('second', {});
    expect(id).toBe('1');
    await until('the second job to start', () => started === 2);
    const refused = new EventLog(steps, ['error']);
    gates[0].open();
    await refused.get('error');
    // BullMQ tells of it twice
    const messages = new Set(stage.takeErrors().map(({ message }) => message));
    expect([...messages]).toEqual(['Lock mismatch for job 1. Cmd moveToFinished from active']);
    expect(await queue.getJobCounts('active', 'completed')).toEqual({ active: 1, completed: 0 });
    gates[1].open();
    const [job, value] = await log.get<[Job, string]>('completed');
    expect([job.name, value]).toEqual(['second', 'new']);
    expect((await queue.getJob('1'))?.returnvalue).toBe('new');
    stage.takeErrors();
    expect(log.names).toEqual(['completed']);
  });
});
