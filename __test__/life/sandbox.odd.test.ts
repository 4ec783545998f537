// A child that is about to exit gets no other job. BullMQ gives it the next one, and fails that one as well. A thread that has exited is forgotten, which
// BullMQ mistakes for thread 1.
import { fileURLToPath } from 'node:url';
import type { Worker as Thread } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import type { Job } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { useStage } from '../support/stage.js';
import { EventLog } from '../support/waiting.js';

const file = (name: string): string => fileURLToPath(new URL(`../parity/processors/${name}`, import.meta.url));
const ODD = file('odd.cjs');
const BY_NAME = file('by-name.cjs');
/** Children are processes of their own, which take a while to start. */
const START_MS = 60_000;

describe('sandbox.odd', () => {
  const stage = useStage(chasquimq);

  it.each([false, true])('what is thrown fails its own job alone (threads: %s)', async (useWorkerThreads) => {
    const names = ['message', 'later', 'proxy', 'later', 'result'];
    const queue = stage.queue();
    await queue.addBulk(names.flatMap((name) => [name, 'fine']).map((name) => ({ name, data: {} })));
    const { connection } = queue.opts;
    const worker = stage.watch(new chasquimq.Worker(stage.queueName, ODD, { connection, useWorkerThreads }));
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.when('all to end', () => log.entries.length === 2 * names.length, START_MS);
    const results = log.all<[Job, unknown]>('completed').map(([job, result]) => [job.name, result]);
    expect(results).toEqual(names.map(() => ['fine', 'fine']));
  });

  it('a processor calls nothing of its job but what it may', async () => {
    const queue = stage.queue();
    await queue.addBulk(['removes', 'asks', 'fine', 'bare'].map((name) => ({ name, data: {} })));
    const { connection } = queue.opts;
    const worker = stage.watch(new chasquimq.Worker(stage.queueName, ODD, { connection }));
    const log = new EventLog(worker, ['completed', 'failed']);
    await log.when('all to end', () => log.entries.length === 4, START_MS);
    const failed = log.all<[Job, Error]>('failed').map(([job, error]) => [job.name, error.message]);
    expect(failed).toEqual([
      ['removes', 'A processor in a file has no call "remove"'],
      ['bare', 'undefined'],
    ]);
    const completed = log.all<[Job, string]>('completed').map(([job, result]) => [job.name, result]);
    expect(completed).toEqual([
      ['asks', 'A processor in a file has no call "constructor"'],
      ['fine', 'fine'],
    ]);
    expect(await queue.getJobCountByTypes('failed')).toBe(2);
  });

  it('a thread that exits takes no other along', async () => {
    const queue = stage.queue();
    const { connection } = queue.opts;
    const opts = { connection, useWorkerThreads: true, concurrency: 2 };
    const worker = stage.watch(new chasquimq.Worker(stage.queueName, BY_NAME, opts));
    stage.keep({ close: async () => worker.cancelAllJobs() });
    const { retained } = (worker as unknown as { childPool: { retained: Record<string, { worker?: Thread }> } })
      .childPool;
    const numbers = (): (number | undefined)[] => Object.values(retained).map((child) => child.worker?.threadId);
    const log = new EventLog(worker, ['progress', 'completed', 'failed']);
    await queue.add('aborts', {});
    await log.get('progress', 1, START_MS);
    const running = numbers();
    expect(running).toEqual([expect.any(Number)]);
    await queue.add('exits', { code: 9 });
    const [exited, error] = await log.get<[Job, Error]>('failed', 1, START_MS);
    expect([exited.name, error.message]).toEqual(['exits', expect.stringMatching(/^Unexpected exit code: 9 /)]);
    expect(numbers()).toEqual(running);
    await queue.add('double', { n: 21 });
    expect((await log.get<[Job, number]>('completed', 1, START_MS))[1]).toBe(42);
    expect(worker.cancelJob('1', 'enough')).toBe(true);
    expect((await log.get<[Job, Error]>('failed', 2))[1].message).toBe('aborted: enough');
    await worker.close();
    expect(retained).toEqual({});
  });
});
